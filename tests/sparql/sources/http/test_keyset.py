"""Pages by key: every solution once, whatever the order of equal keys; or an error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest

from construct_messages.errors import ConstructMessagesError, IncompleteResult, UsageError
from construct_messages.query.select import Select
from construct_messages.rdf.terms import Term, iri, literal
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import EndpointSource
from tests.support.http.clients import SELECT, VARIABLES, read
from tests.support.http.fault_server import Asked, FaultServer, response
from tests.support.results.documents import json_document

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("at_once")]

Table = Sequence[tuple[Term, ...]]


def _groups(*sizes: int) -> list[tuple[Term, ...]]:
    return [
        (iri(f"urn:{n:04}"), literal(str(place)))
        for n, size in enumerate(sizes)
        for place in range(size)
    ]


class Engine:
    """Answers pages by key; solutions with equal keys come in another order each time."""

    def __init__(
        self,
        table: Table,
        *,
        cap: int = 1 << 40,
        order: Callable[[str], str] = str,
        cut: Sequence[int] = (),
        status: str = "200 OK",
    ) -> None:
        self._table, self._cap, self._order, self._cuts = table, cap, order, list(cut)
        self._random, self._status = Random(5), status

    def __call__(self, asked: Asked) -> bytes:
        query = asked.parameters["query"][0]
        least = re.search(r'>= "(.*)"\)', query)
        found = re.search(r"ORDER BY STR\(\?s\) LIMIT (\d+)(?: OFFSET (\d+))?$", query)
        assert found
        table = [row for row in self._table if least is None or row[0][1:-1] >= least[1]]
        self._random.shuffle(table)
        table.sort(key=lambda row: self._order(row[0]))
        start = int(found[2] or 0)
        rows = table[start : start + min(int(found[1]), self._cap)]
        cut = self._cuts.pop(0) if self._cuts else None
        return response(json_document(VARIABLES, rows), cut=cut, status=self._status)


def _read(
    server: FaultServer, client: str, size: int, select: Select = SELECT
) -> tuple[list[tuple[Term, ...]], ConstructMessagesError | None]:
    return read(
        client,
        EndpointSource(server.url),
        Request(select, page_size=size, page_key="s", timeout=60),
    )


@pytest.mark.parametrize("cap", [1 << 40, 7])
@pytest.mark.parametrize("size", [5, 7, 12, 100])
@pytest.mark.parametrize(
    "table", [_groups(), _groups(1), _groups(4), _groups(*[1] * 30), _groups(*[2, 1, 4, 3] * 6)]
)
def test_every_solution_once(
    server: FaultServer, client: str, table: Table, size: int, cap: int
) -> None:
    server.play(Engine(table, cap=cap))
    came, error = _read(server, client, size)
    assert error is None
    assert Counter(came) == Counter(table)
    assert [s for s, _ in came] == [s for s, _ in table]


def test_a_page_that_is_cut_is_resumed(server: FaultServer, client: str) -> None:
    table = _groups(*[2, 1, 4, 3] * 6)
    server.play(Engine(table, cut=[700, 900, 300]))
    came, error = _read(server, client, 30)
    assert error is None
    assert Counter(came) == Counter(table)


@pytest.mark.parametrize(
    ("engine", "words", "hint"),
    [
        pytest.param(Engine(_groups(1, 5, 1)), "has 4 solutions or more with urn:0001 for ?s", "raise page_size",
                     id="a-group-of-more-than-a-page"),
        pytest.param(Engine(_groups(1, 1, 1), order=lambda term: "z" + term if "1" in term else term),
                     "does not order texts by code point", "without page_key", id="another-order"),
        pytest.param(Engine([(Term(""), literal("1"))]), "?s is unbound", "name a variable", id="unbound"),
        pytest.param(Engine([(literal("a"), literal("1"))]), '?s is "a"', "name a variable", id="a-literal"),
        pytest.param(Engine([(Term("_:b"), literal("1"))]), "?s is _:", "name a variable", id="a-blank-node"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(
    server: FaultServer, client: str, engine: Engine, words: str, hint: str
) -> None:
    server.play(engine)
    _, error = _read(server, client, 4)
    assert isinstance(error, IncompleteResult)
    assert words in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize("status", ["200 OK", "203 Non-Authoritative Information"])
@pytest.mark.parametrize("count", [3, 9], ids=["on the last page", "before"])
def test_a_key_that_the_engine_writes_otherwise(
    server: FaultServer, client: str, count: int, status: str
) -> None:
    """A space in an IRI is encoded here, so that the engine does not find the text that it sent."""
    table = [(Term(f"<urn:a b{n}>"), literal("1")) for n in range(count)]
    server.play(Engine(table, status=status))
    _, error = _read(server, client, 4)
    assert isinstance(error, IncompleteResult)


@pytest.mark.parametrize(
    ("select", "key", "words"),
    [
        (
            Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", order=" ORDER BY ?o"),
            "s",
            "ORDER",
        ),
        (
            Select(
                "", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", slice=" LIMIT 5", limit=5
            ),
            "s",
            "LIMIT",
        ),
        (SELECT, "p", "?p is no key"),
        (
            Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?o ?p 1 BIND(UUID() AS ?s) }"),
            "s",
            "?s is no key",
        ),
    ],
)
def test_what_has_no_pages_by_key(
    server: FaultServer, client: str, select: Select, key: str, words: str
) -> None:
    server.play(Engine([]))
    request = Request(select, page_size=5, page_key=key, timeout=60)
    came, error = read(client, EndpointSource(server.url), request)
    assert isinstance(error, UsageError)
    assert words in error.message
    assert not came
    assert not server.asked
