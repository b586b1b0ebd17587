"""`benchmarks/suite/datasets.py` and `real.py`: generated data have the measured shape; real files are checked."""

from __future__ import annotations

import bz2
import hashlib
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyoxigraph as ox
import pytest

from benchmarks.suite import real
from benchmarks.suite.datasets import dbpedia_shaped, write_dbpedia_shaped

pytestmark = pytest.mark.slow

_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


def test_data_are_the_same_for_a_seed_and_of_the_size_asked_for(tmp_path: Path) -> None:
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    for path, seed in ((first, 1), (again, 1), (other, 2)):
        write_dbpedia_shaped(path, 3_000, seed)
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
    assert len(first.read_text().splitlines()) == len(set(first.read_text().splitlines())) == 3_000


def test_the_shape_is_that_of_dbpedia(tmp_path: Path) -> None:
    write_dbpedia_shaped(tmp_path / "data.nt", 40_000)
    triples: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    links: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for quad in ox.parse(path=str(tmp_path / "data.nt")):
        triples[str(quad.subject)] += 1
        kinds[type(quad.object).__name__] += 1
        if quad.predicate.value == _LABEL:
            labels[str(quad.subject)] += 1
        elif quad.predicate.value == "http://dbpedia.org/ontology/birthPlace":
            links[str(quad.object)] += 1
    degrees = sorted(triples[entity] for entity in labels)
    assert 30 <= statistics.median(degrees) <= 45  # 40 in the sample of 2015-10
    assert 40 <= statistics.mean(degrees) <= 52  # 49.7
    assert 60 <= degrees[len(degrees) * 9 // 10] <= 100  # 99
    assert 5 <= statistics.mean(labels.values()) <= 8  # 6.2 in DBpedia 2014
    assert 0.45 <= kinds["Literal"] / kinds.total() <= 0.6  # 0.48
    assert kinds["BlankNode"] > 50
    # hubs: the first has the links of many
    assert links.most_common(1)[0][1] > 20 * statistics.median(links.values())


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="there is no /proc to tell of memory"
)
def test_memory_does_not_grow_with_the_size(tmp_path: Path) -> None:
    # not `ru_maxrss`, which is that of pytest where it is more
    program = (
        "import sys\nfrom pathlib import Path\nfrom benchmarks.suite.datasets import write_dbpedia_shaped\n"
        "def peak(triples):\n"
        "  write_dbpedia_shaped(Path(sys.argv[1]), triples)\n"
        "  return Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print(peak(10_000), peak(200_000))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x")],
        check=True,
        capture_output=True,
        text=True,
        cwd=root,
    )
    small, large = map(int, done.stdout.split())
    assert large < small + 8_000  # KiB; the file has 30 MB


def test_a_data_set_is_written_once(tmp_path: Path) -> None:
    path = dbpedia_shaped(500, folder=tmp_path)
    path.write_text("kept")
    assert dbpedia_shaped(500, folder=tmp_path).read_text() == "kept"
    assert dbpedia_shaped(500, seed=1, folder=tmp_path) != path


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one small file instead of the real ones."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    content = bz2.compress(b"<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:o> .\n")
    (folder / "links.nt.bz2").write_bytes(content)
    monkeypatch.setattr(real, "_LINKS", {"links.nt.bz2": hashlib.sha256(content).hexdigest()})
    return folder


@pytest.mark.parametrize("scheme", ["folder", "mirror"])
def test_real_files_are_taken_from_a_folder_or_a_mirror(
    scheme: str, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(mirror)
    if scheme == "mirror":
        place = "http://mirror.example/dbpedia/"
        monkeypatch.setattr(
            "urllib.request.urlopen",
            lambda url, timeout: (mirror / url.rpartition("/")[2]).open("rb"),  # noqa: ARG005
        )
    links = next(each for each in real.real(place, tmp_path) if each.name == "dbpedia-links")
    assert links.path().read_text() == "<urn:s> <urn:p> <urn:o> .\n"
    assert links.path() == links.path()


def test_another_file_or_none_is_refused(mirror: Path, tmp_path: Path) -> None:
    (mirror / "links.nt.bz2").write_bytes(b"another")
    links = next(each for each in real.real(str(mirror), tmp_path) if each.name == "dbpedia-links")
    with pytest.raises(SystemExit, match="is not the file that it should be"):
        links.path()
    with pytest.raises(SystemExit, match="CONSTRUCT_MESSAGES_DBPEDIA"):
        next(
            each for each in real.real(str(tmp_path), tmp_path) if each.name == "dbpedia-links"
        ).path()
