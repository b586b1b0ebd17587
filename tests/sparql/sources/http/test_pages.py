"""Endpoints that cap their results, or make something else of LIMIT and OFFSET: every page, or an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Literal

import pytest

from construct_messages.errors import (
    IncompleteResult,
    SourceError,
)
from construct_messages.query.select import Select
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import Term, iri, literal
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import EndpointSource
from construct_messages.sparql.sources.http.profiles import PROFILES
from tests.support.http.clients import JSON_BODY, SELECT, TABLE, VARIABLES, read
from tests.support.http.fault_server import STALL, Asked, FaultServer, response
from tests.support.results.documents import json_document

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("once")]

# --- caps and pages --------------------------------------------------------------------------------------------------


class Windows:
    """Answers with the part of a result that is asked for, as an endpoint with ways of its own understands it."""

    def __init__(
        self,
        table: Sequence[tuple[Term, ...]],
        *,
        cap: int | None = None,
        announced: bool = False,
        limit: bool = True,
        offset: bool = True,
        variables: tuple[str, ...] = VARIABLES,
    ) -> None:
        self._table, self._cap, self._obeys_limit, self._obeys_offset = table, cap, limit, offset
        self._variables = variables
        self._headers = {"X-SPARQL-MaxRows": str(cap)} if announced else {}

    def __call__(self, asked: Asked) -> bytes:
        found = re.search(r" LIMIT (\d+) OFFSET (\d+)$", asked.parameters["query"][0])
        limit, offset = map(int, found.groups()) if found else (len(self._table), 0)
        start = offset if self._obeys_offset else 0
        most = min(limit if self._obeys_limit else len(self._table), self._cap or 1 << 40)
        rows = self.rows(start, start + most)
        return response(json_document(self._variables, rows), headers=self._headers)

    def rows(self, start: int, end: int) -> Sequence[tuple[Term, ...]]:
        return self._table[start:end]


def _page(start: int, end: int, cap: int | None = None) -> bytes:
    headers = {} if cap is None else {"X-SPARQL-MaxRows": str(cap)}
    return response(json_document(VARIABLES, TABLE[start:end]), headers=headers)


def _limits(server: FaultServer) -> list[str]:
    return [asked.parameters["query"][0].partition(" LIMIT ")[2] for asked in server.asked]


@pytest.mark.parametrize(
    ("limit", "page_size", "cap", "announced", "sent"),
    [
        pytest.param(None, 5, None, False, ["5 OFFSET 0", "5 OFFSET 3", "5 OFFSET 6", "5 OFFSET 9", "1 OFFSET 12"],
                     id="until-a-short-page"),
        pytest.param(None, 6, None, False, ["6 OFFSET 0", "6 OFFSET 3", "6 OFFSET 6", "6 OFFSET 9", "1 OFFSET 12"],
                     id="until-a-page-without-a-new-solution"),
        pytest.param(7, 5, None, False, ["5 OFFSET 0", "4 OFFSET 3"], id="inside-the-limit"),
        pytest.param(5, 5, None, False, ["5 OFFSET 0"], id="limit-of-a-page"),
        pytest.param(None, 8, 5, True, ["8 OFFSET 0", "5 OFFSET 3", "5 OFFSET 6", "5 OFFSET 9", "1 OFFSET 12"],
                     id="cap-below-the-page"),
        pytest.param(None, 8, 5, False,
                     ["8 OFFSET 0", "1 OFFSET 5", "5 OFFSET 3", "5 OFFSET 6", "5 OFFSET 9", "1 OFFSET 12"],
                     id="cap-that-is-not-announced"),
        pytest.param(None, 5, 5, True, ["5 OFFSET 0", "5 OFFSET 3", "5 OFFSET 6", "5 OFFSET 9", "1 OFFSET 12"],
                     id="cap-of-a-page"),
        pytest.param(None, 20, 15, True, ["20 OFFSET 0", "1 OFFSET 12"], id="cap-not-reached"),
        pytest.param(5, None, 5, True, [""], id="unpaged-limit-of-the-cap"),
        pytest.param(3, None, 5, True, [""], id="unpaged-limit-below-the-cap"),
        pytest.param(None, None, 13, True, [""], id="unpaged-below-the-cap"),
        pytest.param(None, None, 12, True, ["", "1 OFFSET 12"], id="unpaged-whole-at-the-cap"),
        pytest.param(20, None, 12, True, ["", "1 OFFSET 12"], id="unpaged-whole-at-the-cap-below-the-limit"),
        pytest.param(None, 4, 4, True, [f"4 OFFSET {n}" for n in (0, 2, 4, 6, 8, 10)] + ["1 OFFSET 12"],
                     id="multiple-of-cap-and-page"),
        pytest.param(12, 4, 4, True, [f"4 OFFSET {n}" for n in (0, 2, 4, 6, 8)],
                     id="multiple-of-the-page-is-the-limit"),
        pytest.param(12, 5, 3, True, ["5 OFFSET 0"] + [f"3 OFFSET {n}" for n in (2, 4, 6, 8)] + ["2 OFFSET 10"],
                     id="cap-below-page-up-to-the-limit"),
        pytest.param(None, "auto", None, False, ["500 OFFSET 0", "1 OFFSET 12"], id="auto"),
        pytest.param(None, "auto", 5, False,
                     ["500 OFFSET 0", "1 OFFSET 5", "5 OFFSET 3", "5 OFFSET 6", "5 OFFSET 9", "1 OFFSET 12"],
                     id="auto-below-a-cap"),
        pytest.param(3, 1, None, False, ["1 OFFSET 0", "1 OFFSET 1000000000", "1 OFFSET 1", "1 OFFSET 2"],
                     id="pages-of-one-solution-share-none"),
    ],
)  # fmt: skip
def test_pages(
    server: FaultServer,
    client: str,
    limit: int | None,
    page_size: int | Literal["auto"] | None,
    cap: int | None,
    announced: bool,
    sent: list[str],
) -> None:
    server.play(Windows(TABLE[:limit], cap=cap, announced=announced))
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", limit=limit)
    came, error = read(
        client, EndpointSource(server.url), Request(select, page_size=page_size, timeout=120)
    )
    assert error is None
    assert came == TABLE[:limit]
    assert _limits(server) == sent


@pytest.mark.parametrize(
    ("limit", "page_size", "answer", "words"),
    [
        pytest.param(
            None, None, _page(0, 5, 5), "returns at most 5 solutions, and 5 came", id="cap"
        ),
        pytest.param(
            None, None, _page(0, 6, 5), "returns at most 5 solutions, and 6 came", id="past-the-cap"
        ),
        pytest.param(
            6, None, _page(0, 5, 5), "returns at most 5 solutions", id="cap-below-the-limit"
        ),
        pytest.param(None, 4, _page(0, 5), "does not obey LIMIT", id="limit-ignored"),
        pytest.param(
            4, None, _page(0, 5), "more solutions than LIMIT 4 allows", id="13.19-limit-ignored"
        ),
        pytest.param(
            0, None, _page(0, 5), "more solutions than LIMIT 0 allows", id="13.19-limit-0-ignored"
        ),
    ],
)
def test_caps(
    server: FaultServer,
    client: str,
    limit: int | None,
    page_size: int | None,
    answer: bytes,
    words: str,
) -> None:
    server.play(answer)
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", limit=limit)
    _, error = read(
        client, EndpointSource(server.url), Request(select, page_size=page_size, timeout=120)
    )
    assert isinstance(error, IncompleteResult)
    assert words in error.message


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(b"SR353", "text/plain", status="500 Oops"), id="refused"),
        pytest.param(response(b"busy", "text/plain", status="503 Busy"), id="busy"),
        pytest.param(response(JSON_BODY, status="206 Partial Content"), id="partial"),
        pytest.param(response(JSON_BODY)[:-20], id="cut"),
        pytest.param(
            response(b"", status="302 Found", headers={"Location": "http://other.example/"}),
            id="redirected",
        ),
    ],
)
def test_a_probe_that_fails_says_nothing(server: FaultServer, client: str, answer: bytes) -> None:
    server.play(_page(0, 12, 12), answer)
    came, error = read(client, EndpointSource(server.url))
    assert came == TABLE
    assert isinstance(error, IncompleteResult)
    assert "returns at most 12 solutions, and 12 came" in error.message
    assert isinstance(error.__cause__, SourceError)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("profile", "order", "offset", "sent"),
    [
        ("generic", "", 3, "SELECT ?s ?o WHERE { ?s ?p ?o } LIMIT 1 OFFSET 15"),
        ("virtuoso", "", 9_999, "SELECT ?s ?o WHERE { ?s ?p ?o } LIMIT 1 OFFSET 10011"),
        (
            "generic",
            " ORDER BY ?o",
            9_999,
            "SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 1 OFFSET 10011",
        ),
        (
            "virtuoso",
            " ORDER BY ?o",
            3,
            "SELECT ?s ?o WHERE { { SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o } } LIMIT 1 OFFSET 15",
        ),
    ],
)
def test_what_a_probe_asks(
    server: FaultServer, client: str, profile: str, order: str, offset: int, sent: str
) -> None:
    server.play(_page(0, 12, 12), _page(12, 12))
    select = Select(
        "",
        "SELECT ?s ?o ",
        VARIABLES,
        "WHERE ",
        "{ ?s ?p ?o }",
        order=order,
        slice=f" OFFSET {offset}",
        offset=offset,
    )
    assert read(
        client, EndpointSource(server.url, profile=profile), Request(select, timeout=120)
    ) == (TABLE, None)
    assert server.asked[1].parameters["query"] == [sent]


def test_a_limit_that_cannot_be_told(server: FaultServer, client: str) -> None:
    server.play(_page(0, 12, 12))
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", slice=" LIMIT ${n}")
    _, error = read(client, EndpointSource(server.url), Request(select, timeout=120))
    assert isinstance(error, IncompleteResult)
    assert len(server.asked) == 1


def test_a_probe_gives_nothing(server: FaultServer, client: str) -> None:
    server.play(_page(0, 11, 11), _page(11, 12))
    came, error = read(client, EndpointSource(server.url))
    assert came == TABLE[:11]
    assert isinstance(error, IncompleteResult)


@pytest.mark.parametrize(
    ("profile", "labels"),
    [
        ("generic", ["_:x_p0_b", "_:x_p0_c", "_:x_p2_b"]),
        ("virtuoso", ["_:x_db", "_:x_dc", "_:x_db"]),
    ],
)
def test_blank_nodes_of_pages(
    server: FaultServer, client: str, profile: str, labels: list[str]
) -> None:
    # after the first page, one more request shows whether OFFSET is obeyed, if blank nodes cannot
    server.play(Windows([(Term(label),) for label in ("_:b", "_:c", "_:b")], variables=("s",)))
    select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?x ?p ?s }")
    request = Request(select, page_size=2, timeout=120, labels=Labels("x"))
    came, error = read(client, EndpointSource(server.url, profile=profile), request)
    assert error is None
    assert [term for (term,) in came] == labels


def test_pages_are_numbered_responses(server: FaultServer) -> None:
    server.play(Windows(TABLE))
    batches = list(EndpointSource(server.url).solutions(Request(SELECT, page_size=5)))
    assert [batch.response for batch in batches for _ in batch] == [0] * 5 + [1] * 3 + [2] * 3 + [3]


# --- what an endpoint makes of LIMIT and OFFSET ---


MANY = sorted((iri(f"urn:{n}"), literal(f"label {n}")) for n in range(2000))
ALIKE = [TABLE[0]] * 2000
BLANK = [(Term(f"_:b{n}"), TABLE[0][1]) for n in range(1200)]


@pytest.mark.parametrize(
    ("table", "cap"),
    [(table, cap) for table in (MANY, ALIKE) for cap in (300, 500, 1000, 1001, 1 << 40)]
    + [(table, cap) for table in (MANY[:20], ALIKE[:20], MANY[:1], []) for cap in (1, 7, 20, 1000)],
)
def test_an_unannounced_cap(
    server: FaultServer, client: str, table: list[tuple[Term, ...]], cap: int
) -> None:
    """Issue 13, 19: what pages give is the whole, whatever the endpoint returns at most."""
    server.play(Windows(table, cap=cap))
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60)
    )
    assert error is None
    assert came == table


def test_a_cap_that_the_profile_knows(
    server: FaultServer, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million solutions of an old QLever may be all that there are, or not."""
    qlever = PROFILES["qlever"]
    assert qlever.row_cap == 1_000_000
    monkeypatch.setitem(PROFILES, "qlever", replace(qlever, row_cap=10))  # type: ignore[arg-type] # a constant
    source = EndpointSource(server.url, profile="qlever")
    for there_are in (9, 10, 11):
        server.play(Windows(MANY[:there_are], cap=10))
        came, error = read(client, source, Request(SELECT, timeout=60))
        assert came == MANY[: min(there_are, 10)]
        assert isinstance(error, IncompleteResult) == (there_are > 10)
    assert error is not None
    assert error.hint == "read the result in pages: page_size=10"
    server.play(Windows(MANY[:11], cap=10))
    assert read(client, source, Request(SELECT, page_size=10, timeout=60)) == (MANY[:11], None)


def test_blank_nodes_in_capped_pages(server: FaultServer, client: str) -> None:
    server.play(Windows(BLANK, cap=300))
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60)
    )
    assert error is None
    assert [s.rpartition("_")[2] for s, _ in came] == [s[2:] for s, _ in BLANK]


@pytest.mark.parametrize("cap", [3, 500, 1 << 40])
@pytest.mark.parametrize("limit", [True, False], ids=["limit", "no-limit"])
@pytest.mark.parametrize(
    "table", [MANY[:1], MANY[:20], MANY, ALIKE[:1], ALIKE[:20], ALIKE, BLANK[:1], BLANK]
)
def test_an_endpoint_that_ignores_offset(
    server: FaultServer, client: str, table: list[tuple[Term, ...]], limit: bool, cap: int
) -> None:
    """Issue 13, 19: it sends the same page again and again."""
    server.play(Windows(table, cap=cap, limit=limit, offset=False))
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60)
    )
    assert isinstance(error, IncompleteResult)
    assert len(came) <= len(table)
    assert len(server.asked) <= 4


class Changing(Windows):
    """Answers each request from the next of several tables."""

    def __init__(self, *tables: Sequence[tuple[Term, ...]]) -> None:
        super().__init__(tables[0])
        self._tables = iter(tables)

    def rows(self, start: int, end: int) -> Sequence[tuple[Term, ...]]:
        self._table = next(self._tables, self._table)
        return super().rows(start, end)


def _shuffled(seed: int) -> list[tuple[Term, ...]]:
    return Random(seed).sample(MANY, len(MANY))


@pytest.mark.parametrize(
    ("tables", "words", "count"),
    [
        pytest.param([_shuffled(seed) for seed in range(8)], "for the same place of two pages: solution 491", 500,
                     id="another-order-for-each-request"),
        pytest.param([MANY, MANY, MANY[::-1]], "for the same place of two pages: solution 981 was <urn:18", 990,
                     id="another-order-from-the-third-page-on"),
        pytest.param([MANY, MANY[1:]], "solution 491", 500, id="one-solution-removed"),
        pytest.param([MANY, [*MANY[:3], *MANY[2:]]], "solution 491", 500, id="one-solution-added"),
        pytest.param([MANY, MANY[:495]], "sent only 5 of 10 solutions again", 500, id="shorter"),
        pytest.param([MANY, []], "sent only 0 of 10 solutions again", 500, id="empty"),
        pytest.param([MANY, [*MANY[:499], *MANY[500:]]], "solution 500 was", 500, id="the-last-solution-removed"),
    ],
)  # fmt: skip
def test_pages_that_do_not_fit_together(
    server: FaultServer, client: str, tables: list[list[tuple[Term, ...]]], words: str, count: int
) -> None:
    """Issue 26, 0 and 12."""
    server.play(Changing(*tables))
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=500, timeout=60)
    )
    assert isinstance(error, IncompleteResult)
    assert words in error.message
    assert server.url in error.message
    assert "does not keep its order" in (error.hint or "")
    assert came == tables[0][:count]


@pytest.mark.parametrize("shift", [1, -1])
def test_an_offset_that_is_off_by_one(server: FaultServer, client: str, shift: int) -> None:
    """Issue 26, 12."""

    class Shifted(Windows):
        def rows(self, start: int, end: int) -> Sequence[tuple[Term, ...]]:
            moved = shift if start else 0
            return super().rows(start + moved, end + moved)

    server.play(Shifted(MANY))
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=300, timeout=60)
    )
    assert isinstance(error, IncompleteResult)
    assert came == MANY[:300]


def test_the_engine_is_named(server: FaultServer, client: str) -> None:
    server.play(
        response(json_document(VARIABLES, MANY[:4]), headers={"Server": "Virtuoso/07.20.3240"}),
        response(json_document(VARIABLES, MANY[4:8]), headers={"Server": "Virtuoso/07.20.3240"}),
    )
    _, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=4, timeout=60))
    assert isinstance(error, IncompleteResult)
    assert f"{server.url} (Virtuoso/07.20.3240) returned other solutions" in error.message
    assert 'profile="virtuoso"' in (error.hint or "")


def test_values_that_are_new_in_each_request_are_not_compared(
    server: FaultServer, client: str
) -> None:
    """BIND(NOW() AS ?o) has another value in each response, and is no sort key."""
    table = [(s, literal("")) for s, _ in MANY]

    class Clock(Windows):
        def rows(self, start: int, end: int) -> Sequence[tuple[Term, ...]]:
            now = literal(str(len(server.asked)))
            return [(s, now) for s, _ in super().rows(start, end)]

    server.play(Clock(table))
    select = replace(SELECT, group="{ ?s <urn:p> ?x BIND(NOW() AS ?o) }")
    came, error = read(
        client, EndpointSource(server.url), Request(select, page_size=500, timeout=60)
    )
    assert error is None
    assert [s for s, _ in came] == [s for s, _ in MANY]
    assert all(
        'IF(isBlank(?s), ?s, ""), "") LIMIT' in asked.parameters["query"][0]
        for asked in server.asked[:2]
    )


def test_a_page_that_comes_again_is_given_once(server: FaultServer, client: str) -> None:
    """Issue 13, 19."""
    server.play(Windows(TABLE, offset=False))
    came, error = read(
        client, EndpointSource(server.url), Request(SELECT, page_size=5, timeout=120)
    )
    assert isinstance(error, IncompleteResult)
    assert "sent the same page again: it does not obey OFFSET" in error.message
    assert came == TABLE[:5]


PERIODIC = [TABLE[n % 5] for n in range(20)]


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize("obeys", [True, False])
def test_pages_in_an_order_of_the_query_s_own(
    server: FaultServer, client: str, obeys: bool, limit: int | None
) -> None:
    """Solutions may come again in an order by what they do not hold; that is no reason to refuse them."""
    server.play(Windows(PERIODIC if obeys else TABLE, offset=obeys))
    slice = "" if limit is None else f" LIMIT {limit}"
    select = replace(SELECT, order=" ORDER BY ?hidden", slice=slice, limit=limit)
    came, error = read(
        client, EndpointSource(server.url), Request(select, page_size=5, timeout=120)
    )
    if obeys:
        assert error is None
        assert came == PERIODIC[:limit]
    else:
        assert isinstance(error, IncompleteResult)
        assert "does not obey OFFSET" in error.message


def test_solutions_without_end_for_a_limit(server: FaultServer, client: str) -> None:
    """Issue 13, 19: the error comes with the first solution that is one too many, not with the end of the answer."""
    server.play([response(JSON_BODY)[:-200], STALL])
    select = replace(SELECT, slice=" LIMIT 3", limit=3)
    _, error = read(client, EndpointSource(server.url), Request(select))
    assert isinstance(error, IncompleteResult)
    assert "does not obey LIMIT" in error.message
