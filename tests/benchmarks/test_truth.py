"""`benchmarks/suite/truth.py` and the queries: the reference evaluator and this package agree on every query."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyoxigraph as ox
import pytest

from benchmarks.suite.datasets import write_dbpedia_shaped
from benchmarks.suite.groups import bag, verdict
from benchmarks.suite.truth import Reference, instantiate, root, select
from benchmarks.suite.workload import FOLDER, Query, expected, queries
from construct_messages import construct_messages

SIZE = 5_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.nt"
    write_dbpedia_shaped(path, SIZE)
    return path


@pytest.fixture(scope="module")
def reference(data: Path) -> Reference:
    return Reference(data)


@pytest.mark.slow
@pytest.mark.parametrize("query", queries(), ids=lambda query: query.name)
def test_each_query_has_the_expected_number_of_results_and_ours_are_right(
    query: Query, reference: Reference, data: Path
) -> None:
    assert reference.counts(query.text) == expected(SIZE, 42)[query.name]
    store = ox.Store()
    store.bulk_load(path=data, format=ox.RdfFormat.N_TRIPLES)
    ours = bag(
        frozenset((str(quad.subject), str(quad.predicate), str(quad.object)) for quad in message)
        for message in construct_messages(query.text, store)
    )
    wanted = bag(reference.groups(query.text))
    found = verdict(wanted, ours)
    assert (found.expected, found.right) == (wanted.total(), ours.total())
    assert found.right == found.expected > 0


def test_there_are_twenty_queries_of_different_shapes_and_figures_for_each_size() -> None:
    found = queries()
    assert len(found) >= 20
    assert len({query.shape for query in found}) >= 18
    for size in (5_000, 10_000, 100_000, 1_000_000):
        assert set(expected(size, 42)) == {query.name for query in found}
    assert expected(5_000, 43) == expected(5_001, 42) == {}
    assert expected(1_000_000, 42)["capped"][1] >= 100_000
    assert {path.stem for path in FOLDER.glob("*.rq")} == {query.name for query in found}


def test_the_reference_imports_nothing_of_the_package() -> None:
    program = (
        "import sys, benchmarks.suite.truth; print([name for name in "
        "sys.modules if 'construct_messages' in name])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=FOLDER.parents[1],
    )
    assert found.stdout == "[]\n"


@pytest.mark.parametrize(
    ("template", "solution", "triples"),
    [
        ("?s <urn:p> ?o", {"s": "<urn:s>", "o": '"1"'}, [("<urn:s>", "<urn:p>", '"1"')]),
        ("?s <urn:p> ?o", {"s": "<urn:s>"}, None),
        ("?s <urn:p> ?o", {"s": '"1"', "o": '"1"'}, None),
        ("?s ?p ?o", {"s": "<urn:s>", "p": "_:x", "o": '"1"'}, None),
        ("?s <urn:p> 1, 'x'@en ; <urn:q> ?o", {"s": "_:b"}, [
            ("_:b", "<urn:p>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'), ("_:b", "<urn:p>", '"x"@en'),
        ]),
    ],
    ids=["whole", "unbound", "literal subject", "blank predicate", "constants"],
)  # fmt: skip
def test_a_template_is_instantiated(
    template: str, solution: dict[str, str], triples: list[tuple[str, str, str]] | None
) -> None:
    query = f"CONSTRUCT {{ {template} }} WHERE {{ ?s ?p ?o }}"
    assert list(instantiate(query, [solution])) == ([] if triples is None else [frozenset(triples)])


def test_blank_nodes_of_a_template_are_new_for_each_solution() -> None:
    query = "CONSTRUCT { _:a <urn:p> ?o . _:a <urn:q> [] } WHERE { ?s ?p ?o }"
    one, other = instantiate(query, [{"o": "<urn:o>"}] * 2)
    nodes = [
        {term for triple in group for term in triple if term.startswith("_:")}
        for group in (one, other)
    ]
    assert len(nodes[0]) == len(nodes[1]) == 2
    assert not nodes[0] & nodes[1]


def test_the_root_is_what_the_template_begins_with() -> None:
    assert root("CONSTRUCT { [] <urn:p> ?b . ?a <urn:q> ?b } WHERE { ?a ?p ?b }") in ("a", "b")
    assert root("CONSTRUCT { ?a <urn:p> ?b } WHERE { ?b ?p ?a }") == "a"


def test_a_query_without_a_template_is_refused() -> None:
    with pytest.raises(ValueError, match="no CONSTRUCT query"):
        select("SELECT * WHERE { ?s ?p ?o }")
