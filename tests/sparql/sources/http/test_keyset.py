"""Pages by key, named or chosen: every solution once, whatever the order of equal keys; or an error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

import pytest

from construct_messages import ConstructQuery
from construct_messages.errors import ConstructMessagesError, IncompleteResult, UsageError
from construct_messages.query.select import Select, paging_key
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

    filters = True

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
        least = re.search(r'>= "([^"]*)"\)', query) if self.filters else None
        found = re.search(r" LIMIT (\d+)(?: OFFSET (\d+))?$", query)
        assert found
        table = [row for row in self._table if least is None or _key(row) >= least[1]]
        if ' ORDER BY COALESCE(IF(isIRI(?s), STR(?s), ""), "") LIMIT' in query:
            self._random.shuffle(table)
            table.sort(key=lambda row: self._order(_key(row)))
        start = int(found[2] or 0)
        rows = table[start : start + min(int(found[1]), self._cap)]
        cut = self._cuts.pop(0) if self._cuts else None
        return response(json_document(VARIABLES, rows), cut=cut, status=self._status)


def _key(solution: tuple[Term, ...]) -> str:
    return solution[0][1:-1] if solution[0].startswith("<") else ""


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


# --- a chosen key ----------------------------------------------------------------------------------------------------


def _limits(server: FaultServer) -> list[str]:
    return [asked.parameters["query"][0].partition(" LIMIT ")[2] for asked in server.asked]


def _read_by_chosen(
    server: FaultServer, client: str, size: int | Literal["auto"]
) -> tuple[list[tuple[Term, ...]], ConstructMessagesError | None]:
    source = EndpointSource(server.url, profile="fuseki")
    return read(client, source, Request(SELECT, page_size=size, timeout=60))


# in the order of their texts: values without one, and IRIs that engines order, or we write, differently
_KEYS = (
    "",
    "_:b",
    '"text"',
    '"urn:a"',
    "<urn:a>",
    "<urn:a%20b>",
    "<urn:b>",
    "<urn:c/\u00e9>",
    "<urn:c/\uff5e>",
)
_KEYS += ("<urn:c/\U0001f600>", "<urn:d>", "<urn:e>", "<urn:e/f>", "<urn:\u00e9>")


@pytest.mark.parametrize("cap", [1 << 40, 5])
@pytest.mark.parametrize("utf_16", [False, True], ids=["", "utf-16"])
def test_values_of_all_kinds(server: FaultServer, client: str, cap: int, utf_16: bool) -> None:
    random = Random(42)
    for size in (1, 2, 5, 9, 20, 60, "auto"):
        sizes = [random.choice((0, 1, 1, 2, 3)) for _ in _KEYS]
        if size == 9:
            sizes[random.randrange(len(sizes))] = 30  # more than a page
        table = [
            (Term(key), literal(str(place)))
            for key, count in zip(_KEYS, sizes, strict=True)
            for place in range(count)
        ]
        order = (lambda key: key.encode("utf-16-be").hex()) if utf_16 else str
        server.play(Engine(table, cap=cap, order=order))
        came, error = _read_by_chosen(server, client, size)
        assert error is None
        assert Counter(map(_told, came)) == Counter(map(_told, table))


def _told(solution: tuple[Term, ...]) -> tuple[str, ...]:
    return tuple("_:" if term.startswith("_:") else term for term in solution)


@pytest.mark.parametrize("size", [500, 10_000, "auto"])
def test_a_small_result_takes_two_requests(
    server: FaultServer, client: str, size: int | Literal["auto"]
) -> None:
    """As it does by OFFSET."""
    table = [(Term("_:b"), literal("x")), *_groups(*[1] * 30)]
    server.play(Engine(table))
    came, error = _read_by_chosen(server, client, size)
    assert error is None
    assert len(came) == len(table)
    assert _limits(server) == ["500", "2"]


def test_pages_grow_up_to_a_cap(server: FaultServer, client: str) -> None:
    table = _groups(*[1] * 2_000)
    server.play(Engine(table, cap=700))
    came, error = _read_by_chosen(server, client, "auto")
    assert error is None
    assert came == table
    assert _limits(server) == ["500", "10000", "2", "700", "700", "2"]


class Changing(Engine):
    """Answers each request from the next of several tables."""

    def __init__(self, *tables: Table) -> None:
        super().__init__(tables[0])
        self._tables = iter(tables)

    def __call__(self, asked: Asked) -> bytes:
        self._table = next(self._tables, self._table)
        return super().__call__(asked)


def test_what_does_not_change_comes_once(server: FaultServer, client: str) -> None:
    """By OFFSET, solutions that are added or removed before the next page would move it."""
    table = _groups(*[1] * 30)
    early, late = ((iri(f"urn:{n:04}/a"), literal("new")) for n in (1, 20))
    more = [*table, early, late]
    less = [solution for solution in more if solution != table[2]]
    server.play(Changing(table, more, less))
    came, error = _read_by_chosen(server, client, 12)
    assert error is None
    assert came == sorted([*table, late], key=_key)


def test_the_key_of_the_next_page_vanishes(server: FaultServer, client: str) -> None:
    table = _groups(*[1] * 30)
    server.play(Changing(table, [*table[:11], *table[12:]]))
    came, error = _read_by_chosen(server, client, 12)
    assert isinstance(error, IncompleteResult)
    assert "was asked for solutions from urn:0011 on, and began with urn:0012" in error.message
    assert came == table[:11]


def test_filter_is_ignored(server: FaultServer, client: str) -> None:
    table = _groups(*[1] * 30)

    engine = Engine(table)
    engine.filters = False
    server.play(engine)
    came, error = _read_by_chosen(server, client, 12)
    assert isinstance(error, IncompleteResult)
    assert came == table[:11]


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("{ ?s ?p ?o }", "s"),
        ("{ { ?s ?p ?o } UNION { ?x ?o ?s } }", "s"),
        ("{ { SELECT DISTINCT ?s ?o { ?s ?p ?o } } }", "s"),
        ("{ ?s ?p ?o FILTER(xsd:integer(?o) > 1) }", "s"),
        ("{ <urn:x> ?p ?o, ?s }", None),
        ("{ ?s ?p ?o FILTER(RAND() < 0.5) }", None),
        ("{ ?s ?p ?o FILTER(<urn:function>(?o)) }", None),
        ("{ ?x ?p ?o BIND(IRI(?o) AS ?s) ?s ?p ?y }", None),
        ("{ SERVICE <urn:service> { ?s ?p ?o } }", None),
        ("{ { SELECT ?s ?o { ?s ?p ?o } LIMIT 5 } }", None),
        ("{ { SELECT REDUCED ?s ?o { ?s ?p ?o } } }", None),
        ("{ { SELECT (SAMPLE(?x) AS ?o) { ?x ?p 1 } } ?s ?p ?o }", None),
        ("{ ?s ?p ?o } GROUP BY ?s ?o", None),
        ("{ ?s ?p ?o } ORDER BY ?o", None),
        ("{ ?s ?p ?o } LIMIT 9", None),
        ("{ ?s ?p ?o OPTION(TRANSITIVE) }", None),
    ],
)
def test_which_key_is_chosen(where: str, key: str | None) -> None:
    """None: the solutions, or their keys, may differ between two requests."""
    prologue = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    query = ConstructQuery.parse(f"{prologue}CONSTRUCT {{ ?s <urn:p> ?o }} WHERE {where}")
    assert paging_key(query.rewritten) == key


def test_no_key_is_chosen_of_an_engine_whose_order_is_unknown(
    server: FaultServer, client: str
) -> None:
    server.play(Engine(_groups(1, 1)))
    for profile in ("generic", "graphdb", "stardog", "qlever", "ontop"):
        source = EndpointSource(server.url, profile=profile)
        _, error = read(client, source, Request(SELECT, page_size=100, timeout=60))
        assert error is None
    assert not any("isIRI" in asked.parameters["query"][0] for asked in server.asked)
