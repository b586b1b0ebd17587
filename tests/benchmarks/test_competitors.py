"""`benchmarks/suite/competitors/`: each does the whole job; what a method gets wrong is written down, not skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.suite.competitors.table import COMPETITORS
from benchmarks.suite.groups import compare
from benchmarks.suite.records import Competitor, Groups, Job
from benchmarks.suite.truth import Reference
from tests.support.engines.servers import Serve
from tests.support.places import ROOT, absent

DATA = """
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:a a ex:Company ; rdfs:label "A"@en ; ex:staff 12 ; ex:at ex:x ; ex:address _:one .
ex:b a ex:Company ; rdfs:label "B \\"b\\" \\\\ é"@en ; ex:staff 3 ; ex:at ex:x, ex:y ; ex:address _:one .
ex:c a ex:Company ; rdfs:label "C\\nc"@en ; ex:staff 7 ; ex:at ex:y .
_:one ex:street "Main street" ; ex:number 1.5 .
ex:x ex:people 100 .
ex:y ex:people 200 .
"""

PREFIXES = "PREFIX ex: <http://example.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"

STAR = f"""{PREFIXES} CONSTRUCT {{ ?c a ex:Company ; rdfs:label ?name ; ex:staff ?n }}
WHERE {{ ?c a ex:Company ; rdfs:label ?name ; ex:staff ?n }}"""

# ?c has two solutions, and the addresses of ex:a and ex:b are one blank node
_TREE = "?c rdfs:label ?name ; ex:at ?place ; ex:address ?a . ?place ex:people ?n . ?a ex:street ?street"
TREE = f"{PREFIXES} CONSTRUCT {{ {_TREE} }} WHERE {{ {_TREE} }}"

UNION = f"""{PREFIXES} CONSTRUCT {{ ?c ex:at ?place ; ex:staff ?n }}
WHERE {{ {{ ?c ex:at ?place }} UNION {{ ?c ex:staff ?n }} }}"""

ALL_RIGHT = {
    "star": Groups(3, 3, 0, 0, 0, 0),
    "tree": Groups(3, 3, 0, 0, 0, 0),
    "union": Groups(7, 7, 0, 0, 0, 0),
}
QUERIES = {"star": STAR, "tree": TREE, "union": UNION}

# an IRI is not followed; two solutions of ex:b are one group
BY_NODE = {"tree": Groups(3, 0, 2, 0, 0, 3), "union": Groups(7, 0, 0, 3, 0, 7)}
# paths are followed, so that only the two solutions of ex:b are one group
BY_PATH = {"tree": Groups(3, 1, 0, 1, 0, 2), "union": Groups(7, 0, 0, 3, 0, 7)}
# all parts of a resource match together; which of them came alone is lost
BY_PATTERN = {"union": Groups(7, 0, 0, 4, 0, 7)}
WRONG: dict[str, dict[str, Groups | None]] = {
    "flat-cbd": dict(BY_NODE),
    "flat-scbd": dict(BY_NODE),
    "flat-shape": dict(BY_PATH),
    "flat-rdflib": dict(BY_PATTERN),
    "flat-pyoxigraph": dict(BY_PATTERN),
    "comunica-cli": dict(BY_PATTERN),
    "entities": dict(BY_PATH),
    "ldkit": BY_PATH | {"union": None},  # a schema cannot say it
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pyoxigraph as ox

    path = tmp_path_factory.mktemp("data") / "data.nt"
    ox.serialize(ox.parse(DATA, ox.RdfFormat.TURTLE), path, ox.RdfFormat.N_TRIPLES)
    return path


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("competitor", COMPETITORS, ids=lambda each: each.name)
def test_groups_are_right_but_where_the_method_cannot_know(
    competitor: Competitor, data: Path, tmp_path: Path, oxigraph_server: Serve
) -> None:
    if competitor.version() is None:
        absent(f"{competitor.title}: {competitor.install}")
    endpoint = None if competitor.engine == "file" else oxigraph_server(data)
    # those that do the tree right are not asked the easiest one, and Spark, which takes long to start, is asked once
    for name in (
        QUERIES
        if "tree" in WRONG.get(competitor.name, ())
        else ["tree"]
        if competitor.smallest
        else ["tree", "union"]
    ):
        done = _run(competitor, QUERIES[name], data, endpoint, tmp_path / name)
        wanted = WRONG.get(competitor.name, {}).get(name, ALL_RIGHT[name])
        if wanted is None:
            assert (done.ending, done.stderr[:8]) == ("failed", "cannot: "), name
            continue
        assert done.ending == "ok", done.stderr
        assert done.first_seconds is not None, name
        assert (
            compare(Reference(data).groups(QUERIES[name]), competitor.groups(done.stdout)) == wanted
        ), name


def _run(
    competitor: Competitor, query: str, data: Path, endpoint: str | None, workdir: Path
) -> harness.Run:
    workdir.mkdir()
    path = workdir / "query.rq"
    path.write_text(query)
    env = os.environ | dict(competitor.environment)
    with ExitStack() as stack:
        if competitor.service is not None:
            endpoint = stack.enter_context(competitor.service(str(endpoint), competitor.engine)).url
        command = competitor.command(Job(data, endpoint, query, path, workdir, competitor.engine))
        return harness.run(command, first=competitor.first, env=env, cwd=workdir)


def test_names_are_unique_and_everything_is_said() -> None:
    assert (
        len({each.name for each in COMPETITORS})
        == len({each.title for each in COMPETITORS})
        == len(COMPETITORS)
    )
    assert all(each.install and each.group for each in COMPETITORS)
    assert WRONG.keys() <= {each.name for each in COMPETITORS}


@pytest.mark.parametrize(
    "version",
    [each.version for each in COMPETITORS if each.name in ("ours", "flat-cbd", "select-rdflib")],
)
def test_versions_are_told(version: Callable[[], str | None]) -> None:
    found = version()
    assert found is not None
    assert found.split()[-1][0].isdigit()


def test_programs_in_python_wait_for_nothing_of_the_suite() -> None:
    """What they import is measured with them."""
    code = "import sys, benchmarks.suite.competitors.select; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT, text=True
    )
    modules = set(done.stdout.split())
    assert {
        name for name in modules if name.startswith(("benchmarks.", "tests", "construct_messages"))
    } == {
        "benchmarks.suite",
        *(
            f"benchmarks.suite.competitors{name}"
            for name in ("", ".printing", ".select", ".solutions")
        ),
    }
    assert modules & {"importlib.metadata", "pytest", "rdflib", "subprocess", "tempfile"} == set()
