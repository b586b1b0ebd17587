"""`sparql/sources/evaluators/loading.py`: a store directory that is whole, or none."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pyoxigraph as ox
import pytest

from construct_messages.errors import SourceError, UsageError
from construct_messages.sparql.sources.evaluators.loading import load_directory
from construct_messages.sparql.sources.files import open_directory
from tests.support.processes import command_line
from tests.support.waiting import SECONDS, wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]

EX = "http://example.org/"


def lines(count: int) -> bytes:
    return b"".join(
        b'<%bs%d> <%bp> "%d" .\n' % (EX.encode(), n, EX.encode(), n) for n in range(count)
    )


def test_files_of_several_kinds_are_one_store(tmp_path: Path) -> None:
    (tmp_path / "a.nt.gz").write_bytes(gzip.compress(lines(1000)))
    (tmp_path / "b.trig").write_text(f"<{EX}g> {{ _:b <{EX}p> <relative> }}")
    (tmp_path / "c.ttl").write_text(f"_:b <{EX}p> 1 .")
    load_directory([tmp_path / name for name in ("a.nt.gz", "b.trig", "c.ttl")], tmp_path / "store")
    store = open_directory(tmp_path / "store")  # which no writer holds any more
    assert len(store) == 1002
    assert list(store.named_graphs()) == [ox.NamedNode(f"{EX}g")]
    blanks = {quad.subject for quad in store if isinstance(quad.subject, ox.BlankNode)}
    assert len(blanks) == 2, "blank nodes of two files stay apart"


def test_progress_counts_the_bytes_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_bytes(lines(50_000))
    (tmp_path / "b.nt.gz").write_bytes(gzip.compress(lines(10)))
    paths = [tmp_path / "a.nt", tmp_path / "b.nt.gz"]
    total, seen = sum(path.stat().st_size for path in paths), list[tuple[int, int]]()
    load_directory(paths, tmp_path / "store", lambda count, of: seen.append((count, of)))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("bad.ttl", b"<u:a> <u:b>\n <u:c> .\n<u:a> ,", r"bad\.ttl: .*line 3"),
        ("cut.nt.gz", gzip.compress(lines(20_000))[:-2000], r"cut\.nt\.gz: "),
    ],
    ids=["malformed", "cut"],
)
def test_a_failed_file_names_itself_and_leaves_no_directory(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "good.nt").write_bytes(lines(1000))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=words):
        load_directory([tmp_path / "good.nt", tmp_path / name], tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "data.nt").write_bytes(lines(1))
    (tmp_path / "data.doc").write_bytes(b"")
    with pytest.raises(UsageError, match="no such file"):
        load_directory([tmp_path / "absent.nt"], tmp_path / "store")
    with pytest.raises(UsageError, match="is not an RDF format"):
        load_directory([tmp_path / "data.nt", tmp_path / "data.doc"], tmp_path / "store")
    with pytest.raises(UsageError, match="is not empty"):
        load_directory([tmp_path / "data.nt"], tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["data.doc", "data.nt"]


def loaders(directory: Path) -> list[psutil.Process]:
    """The processes that load into a directory."""
    wanted = {"construct_messages.sparql.sources.evaluators.loading", str(directory)}
    return [process for process in psutil.process_iter() if wanted <= set(command_line(process))]


@pytest.fixture
def much(tmp_path: Path) -> Path:
    """A file that takes minutes to load: 50 million lines, the same ones again and again."""
    path = tmp_path / "much.nt.gz"
    path.write_bytes(gzip.compress(lines(100) * 10_000) * 50)
    return path


def test_a_killed_loader_is_an_error(much: Path, tmp_path: Path) -> None:
    directory = tmp_path / "store"

    def kill() -> None:
        wait_until(lambda: directory.exists() and loaders(directory))
        for process in loaders(directory):
            process.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(SourceError, match="that loaded the files was ended by SIGKILL"):
        load_directory([much], directory)
    thread.join()
    assert not directory.exists()


def test_interrupting_stops_the_loader_and_leaves_nothing(much: Path, tmp_path: Path) -> None:
    directory = tmp_path / "store"
    script = (
        "import sys; from pathlib import Path\n"
        "from construct_messages.sparql.sources.evaluators.loading import load_directory\n"
        "load_directory([Path(sys.argv[1])], Path(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(much), str(directory)], stderr=subprocess.DEVNULL
    )
    wait_until(directory.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) != 0
    assert loaders(directory) == []
    assert not directory.exists()


def test_malformed_terms_are_loaded_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text('<http://e/100%> <urn:p> "x" .\n')
    with pytest.raises(SourceError, match=r"line 1.*percent encoding"):
        load_directory([tmp_path / "a.nt"], tmp_path / "strict")
    load_directory([tmp_path / "a.nt"], tmp_path / "lenient", lenient=True)
    assert [str(quad.subject) for quad in open_directory(tmp_path / "lenient")] == [
        "<http://e/100%>"
    ]
