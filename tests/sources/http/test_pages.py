"""Endpoints that cap their results, or make something else of LIMIT and OFFSET: every page, or an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from construct_messages.errors import (
    IncompleteResult,
    SourceError,
)
from construct_messages.labels import Labels
from construct_messages.query.select import Select
from construct_messages.sources import Request
from construct_messages.sources.http.endpoint import EndpointSource
from construct_messages.terms import Term, iri, literal
from tests.support.http.clients import JSON_BODY, SELECT, TABLE, VARIABLES, read
from tests.support.http.fault_server import STALL, Asked, FaultServer, response
from tests.support.results.documents import json_document

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("once")]

# --- caps and pages --------------------------------------------------------------------------------------------------


def _page(start: int, end: int, cap: int | None = None) -> bytes:
    headers = {} if cap is None else {"X-SPARQL-MaxRows": str(cap)}
    return response(json_document(VARIABLES, TABLE[start:end]), headers=headers)


def _limits(server: FaultServer) -> list[str]:
    return [asked.parameters["query"][0].partition(" LIMIT ")[2] for asked in server.asked]


@pytest.mark.parametrize(
    ("limit", "page_size", "answers", "sent", "count"),
    [
        pytest.param(None, 5, [_page(0, 5), _page(5, 10), _page(10, 12), _page(12, 12)],
                     ["5 OFFSET 0", "5 OFFSET 5", "5 OFFSET 10", "1 OFFSET 12"], 12, id="until-a-short-page"),
        pytest.param(None, 6, [_page(0, 6), _page(6, 12), _page(12, 12)],
                     ["6 OFFSET 0", "6 OFFSET 6", "6 OFFSET 12"], 12, id="until-an-empty-page"),
        pytest.param(7, 5, [_page(0, 5), _page(5, 7)], ["5 OFFSET 0", "2 OFFSET 5"], 7, id="inside-the-limit"),
        pytest.param(5, 5, [_page(0, 5)], ["5 OFFSET 0"], 5, id="limit-of-a-page"),
        pytest.param(None, 8, [_page(0, 5, 5), _page(5, 10, 5), _page(10, 12, 5), _page(12, 12, 5)],
                     ["8 OFFSET 0", "5 OFFSET 5", "5 OFFSET 10", "1 OFFSET 12"], 12, id="cap-below-the-page"),
        pytest.param(None, 5, [_page(0, 5, 5), _page(5, 10, 5), _page(10, 12, 5), _page(12, 12, 5)],
                     ["5 OFFSET 0", "5 OFFSET 5", "5 OFFSET 10", "1 OFFSET 12"], 12, id="cap-of-a-page"),
        pytest.param(None, 20, [_page(0, 12, 15), _page(12, 12)], ["20 OFFSET 0", "1 OFFSET 12"], 12,
                     id="cap-not-reached"),
        pytest.param(5, None, [_page(0, 5, 5)], [""], 5, id="unpaged-limit-of-the-cap"),
        pytest.param(3, None, [_page(0, 3, 5)], [""], 3, id="unpaged-limit-below-the-cap"),
        pytest.param(None, None, [_page(0, 5, 6)], [""], 5, id="unpaged-below-the-cap"),
        pytest.param(None, None, [_page(0, 12, 12), _page(12, 12, 12)], ["", "1 OFFSET 12"], 12,
                     id="unpaged-whole-at-the-cap"),
        pytest.param(20, None, [_page(0, 12, 12), _page(12, 12)], ["", "1 OFFSET 12"], 12,
                     id="unpaged-whole-at-the-cap-below-the-limit"),
        pytest.param(None, 4, [_page(0, 4, 4), _page(4, 8, 4), _page(8, 12, 4), _page(12, 12, 4)],
                     ["4 OFFSET 0", "4 OFFSET 4", "4 OFFSET 8", "4 OFFSET 12"], 12, id="multiple-of-cap-and-page"),
        pytest.param(12, 4, [_page(0, 4, 4), _page(4, 8, 4), _page(8, 12, 4)],
                     ["4 OFFSET 0", "4 OFFSET 4", "4 OFFSET 8"], 12, id="multiple-of-the-page-is-the-limit"),
        pytest.param(12, 5, [_page(0, 3, 3), _page(3, 6, 3), _page(6, 9, 3), _page(9, 12, 3)],
                     ["5 OFFSET 0", "3 OFFSET 3", "3 OFFSET 6", "3 OFFSET 9"], 12, id="cap-below-page-up-to-the-limit"),
    ],
)  # fmt: skip
def test_pages(
    server: FaultServer,
    client: str,
    limit: int | None,
    page_size: int | None,
    answers: list[bytes],
    sent: list[str],
    count: int,
) -> None:
    server.play(*answers)
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", limit=limit)
    came, error = read(client, EndpointSource(server.url), Request(select, page_size=page_size, timeout=120))
    assert error is None
    assert came == TABLE[:count]
    assert _limits(server) == sent


@pytest.mark.parametrize(
    ("limit", "page_size", "answer", "words"),
    [
        pytest.param(None, None, _page(0, 5, 5), "gives at most 5 solutions, and 5 came", id="cap"),
        pytest.param(None, None, _page(0, 6, 5), "gives at most 5 solutions, and 6 came", id="past-the-cap"),
        pytest.param(6, None, _page(0, 5, 5), "gives at most 5 solutions", id="cap-below-the-limit"),
        pytest.param(None, 4, _page(0, 5), "does not heed LIMIT", id="limit-ignored"),
        pytest.param(4, None, _page(0, 5), "more solutions than LIMIT 4 allows", id="13.19-limit-ignored"),
        pytest.param(0, None, _page(0, 5), "more solutions than LIMIT 0 allows", id="13.19-limit-0-ignored"),
    ],
)
def test_caps(
    server: FaultServer, client: str, limit: int | None, page_size: int | None, answer: bytes, words: str
) -> None:
    server.play(answer)
    select = Select("", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", limit=limit)
    _, error = read(client, EndpointSource(server.url), Request(select, page_size=page_size, timeout=120))
    assert isinstance(error, IncompleteResult)
    assert words in error.message


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(b"SR353", "text/plain", status="500 Oops"), id="refused"),
        pytest.param(response(b"busy", "text/plain", status="503 Busy"), id="busy"),
        pytest.param(response(JSON_BODY, status="206 Partial Content"), id="partial"),
        pytest.param(response(JSON_BODY)[:-20], id="cut"),
        pytest.param(response(b"", status="302 Found", headers={"Location": "http://other.example/"}), id="redirected"),
    ],
)
def test_a_probe_that_fails_says_nothing(server: FaultServer, client: str, answer: bytes) -> None:
    server.play(_page(0, 12, 12), answer)
    came, error = read(client, EndpointSource(server.url))
    assert came == TABLE
    assert isinstance(error, IncompleteResult)
    assert "gives at most 12 solutions, and 12 came" in error.message
    assert isinstance(error.__cause__, SourceError)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("profile", "order", "offset", "sent"),
    [
        ("generic", "", 3, "SELECT ?s ?o WHERE { ?s ?p ?o } LIMIT 1 OFFSET 15"),
        ("virtuoso", "", 9_999, "SELECT ?s ?o WHERE { ?s ?p ?o } LIMIT 1 OFFSET 10011"),
        ("generic", " ORDER BY ?o", 9_999, "SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 1 OFFSET 10011"),
        ("virtuoso", " ORDER BY ?o", 9_987, "SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o LIMIT 1 OFFSET 9999"),
        (
            "virtuoso",
            " ORDER BY ?o",
            9_988,
            "SELECT ?s ?o WHERE { { SELECT ?s ?o WHERE { ?s ?p ?o } ORDER BY ?o } } LIMIT 1 OFFSET 10000",
        ),
    ],
)
def test_what_a_probe_asks(server: FaultServer, client: str, profile: str, order: str, offset: int, sent: str) -> None:
    server.play(_page(0, 12, 12), _page(12, 12))
    select = Select(
        "", "SELECT ?s ?o ", VARIABLES, "WHERE ", "{ ?s ?p ?o }", order=order, slice=f" OFFSET {offset}", offset=offset
    )
    assert read(client, EndpointSource(server.url, profile=profile), Request(select, timeout=120)) == (TABLE, None)
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
    [("generic", ["_:x_p0_b", "_:x_p0_c", "_:x_p2_b"]), ("virtuoso", ["_:x_db", "_:x_dc", "_:x_db"])],
)
def test_blank_nodes_of_pages(server: FaultServer, client: str, profile: str, labels: list[str]) -> None:
    pages = [json_document(("s",), [(Term(label),) for label in page]) for page in (["_:b", "_:c"], ["_:b"])]
    nothing = json_document(("s",), [])
    # behind the first page is seen whether OFFSET is heeded, behind the last, which is short, whether it is the last
    server.play(*map(response, [pages[0], nothing, pages[1], nothing]))
    select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }")
    request = Request(select, page_size=2, timeout=120, labels=Labels("x"))
    came, error = read(client, EndpointSource(server.url, profile=profile), request)
    assert error is None
    assert [term for (term,) in came] == labels


def test_pages_are_numbered_responses(server: FaultServer) -> None:
    server.play(_page(0, 5), _page(5, 10), _page(10, 12), _page(12, 12))
    batches = list(EndpointSource(server.url).solutions(Request(SELECT, page_size=5)))
    assert [batch.response for batch in batches for _ in batch] == [0] * 5 + [1] * 5 + [2] * 2


# --- what an endpoint makes of LIMIT and OFFSET ---


class Windows:
    """Answers with the part of a result that is asked for, as an endpoint with ways of its own understands it."""

    def __init__(
        self, table: Sequence[tuple[Term, ...]], *, cap: int = 1 << 40, limit: bool = True, offset: bool = True
    ) -> None:
        self._table, self._cap, self._heeds_limit, self._heeds_offset = table, cap, limit, offset

    def __call__(self, asked: Asked) -> bytes:
        found = re.search(r" LIMIT (\d+) OFFSET (\d+)$", asked.parameters["query"][0])
        assert found
        start = int(found[2]) if self._heeds_offset else 0
        most = min(int(found[1]) if self._heeds_limit else len(self._table), self._cap)
        return response(json_document(VARIABLES, self._table[start : start + most]))


MANY = sorted((iri(f"urn:{n}"), literal(f"label {n}")) for n in range(2000))
ALIKE = [TABLE[0]] * 2000
BLANK = [(Term(f"_:b{n}"), TABLE[0][1]) for n in range(1200)]


@pytest.mark.parametrize(
    ("table", "cap"),
    [(table, cap) for table in (MANY, ALIKE) for cap in (300, 500, 1000, 1001, 1 << 40)]
    + [(table, cap) for table in (MANY[:20], ALIKE[:20], MANY[:1], []) for cap in (1, 7, 20, 1000)],
)
def test_an_unannounced_cap(server: FaultServer, client: str, table: list[tuple[Term, ...]], cap: int) -> None:
    """Issue 13, 19: what pages give is the whole, whatever the endpoint gives at most."""
    server.play(Windows(table, cap=cap))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60))
    assert error is None
    assert came == table


def test_blank_nodes_in_capped_pages(server: FaultServer, client: str) -> None:
    server.play(Windows(BLANK, cap=300))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60))
    assert error is None
    assert [s.rpartition("_")[2] for s, _ in came] == [s[2:] for s, _ in BLANK]


@pytest.mark.parametrize("cap", [3, 500, 1 << 40])
@pytest.mark.parametrize("limit", [True, False], ids=["limit", "no-limit"])
@pytest.mark.parametrize("table", [MANY[:1], MANY[:20], MANY, ALIKE[:1], ALIKE[:20], ALIKE, BLANK[:1], BLANK])
def test_an_endpoint_that_ignores_offset(
    server: FaultServer, client: str, table: list[tuple[Term, ...]], limit: bool, cap: int
) -> None:
    """Issue 13, 19: it sends the same page again and again."""
    server.play(Windows(table, cap=cap, limit=limit, offset=False))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=1000, timeout=60))
    assert isinstance(error, IncompleteResult)
    assert len(came) <= len(table)
    assert len(server.asked) <= 4


def test_a_page_that_comes_again_is_given_once(server: FaultServer, client: str) -> None:
    """Issue 13, 19."""
    server.play(Windows(TABLE, offset=False))
    came, error = read(client, EndpointSource(server.url), Request(SELECT, page_size=5, timeout=120))
    assert isinstance(error, IncompleteResult)
    assert "sent the same page again: it does not heed OFFSET" in error.message
    assert came == TABLE[:5]


PERIODIC = [TABLE[n % 5] for n in range(20)]


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize("heeds", [True, False])
def test_pages_in_an_order_of_the_query_s_own(server: FaultServer, client: str, heeds: bool, limit: int | None) -> None:
    """Solutions may come again in an order by what they do not hold; that is no reason to refuse them."""
    server.play(Windows(PERIODIC if heeds else TABLE, offset=heeds))
    slice = "" if limit is None else f" LIMIT {limit}"
    select = replace(SELECT, order=" ORDER BY ?hidden", slice=slice, limit=limit)
    came, error = read(client, EndpointSource(server.url), Request(select, page_size=5, timeout=120))
    if heeds:
        assert error is None
        assert came == PERIODIC[:limit]
    else:
        assert isinstance(error, IncompleteResult)
        assert "does not heed OFFSET" in error.message


def test_solutions_without_end_for_a_limit(server: FaultServer, client: str) -> None:
    """Issue 13, 19: the error comes with the first solution that is one too many, not with the end of the answer."""
    server.play([response(JSON_BODY)[:-200], STALL])
    select = replace(SELECT, slice=" LIMIT 3", limit=3)
    _, error = read(client, EndpointSource(server.url), Request(select))
    assert isinstance(error, IncompleteResult)
    assert "does not heed LIMIT" in error.message
