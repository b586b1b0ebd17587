"""A Virtuoso that gives 10,000 solutions at most, as DBpedia's does: a log holds all there is, or does not end well."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages
from construct_messages.errors import IncompleteResult
from construct_messages.rdf.options import Requests
from tests.support.engines import reference
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.engine, pytest.mark.slow]

CAP, SIZE = 10_000, 10_500
CONSTRUCT = "CONSTRUCT { ?s <urn:is> ?n ; a <urn:Thing> }"
# what follows, how many solutions it has, and how many of them one answer can hold
ASKED = [
    ("all", "WHERE { ?s <urn:n> ?n }", None, None),
    ("all in order", "WHERE { ?s <urn:n> ?n } ORDER BY ?n", None, None),
    ("a LIMIT past the cap", f"WHERE {{ ?s <urn:n> ?n }} LIMIT {CAP + 1}", None, None),
    ("a LIMIT of the cap", f"WHERE {{ ?s <urn:n> ?n }} LIMIT {CAP}", None, CAP),
    ("as many as the cap", f"WHERE {{ ?s <urn:n> ?n FILTER(?n < {CAP}) }}", None, CAP),
    ("one less than the cap", f"WHERE {{ ?s <urn:n> ?n FILTER(?n < {CAP - 1}) }}", None, CAP - 1),
    ("all in pages", "WHERE { ?s <urn:n> ?n }", CAP, SIZE),
    ("all in order, in pages", "WHERE { ?s <urn:n> ?n } ORDER BY DESC(?n)", CAP, SIZE),
    ("all in small pages", "WHERE { ?s <urn:n> ?n } ORDER BY ?n", 3_000, SIZE),
    ("all in pages past the cap", "WHERE { ?s <urn:n> ?n } ORDER BY ?n", CAP + 300, SIZE),
    (
        "an own LIMIT and OFFSET in pages",
        "WHERE { ?s <urn:n> ?n } ORDER BY ?n LIMIT 10100 OFFSET 300",
        CAP,
        10_100,
    ),
]

THROUGH = ["all", "a LIMIT of the cap", "all in pages", "an own LIMIT and OFFSET in pages"]
"""Of these, a server is asked, which reads the results by the same code."""


@pytest.fixture(scope="session")
def endpoint(
    tmp_path_factory: pytest.TempPathFactory, serve_with: Callable[[str, Path], str]
) -> str:
    file = tmp_path_factory.mktemp("capped") / "data.nt"
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    file.write_text("".join(f'<urn:s{n}> <urn:n> "{n}"^^<{integer}> .\n' for n in range(SIZE)))
    return serve_with("virtuoso", file)


def post(url: str, query: str, accept: str) -> tuple[int, str | None, bytes]:
    """Status, what is said of a cap, and the body, read to its end."""
    parts = urlsplit(url)
    headers = {"Accept": accept, "Content-Type": "application/x-www-form-urlencoded"}
    with closing(HTTPConnection(parts.netloc, timeout=SECONDS)) as connection:
        connection.request("POST", parts.path, urlencode({"query": query}), headers)
        response = connection.getresponse()
        return response.status, response.headers["X-SPARQL-MaxRows"], response.read()


def check(log: bytes, count: int) -> None:
    messages = reference.decode(log)
    assert len(messages) == count
    assert all(len(message) == 2 for message in messages)
    assert len({message[0].subject for message in messages}) == count


each = pytest.mark.parametrize(
    ("rest", "page_size", "count"), [asked[1:] for asked in ASKED], ids=[a[0] for a in ASKED]
)


@each
def test_by_the_package(endpoint: str, rest: str, page_size: int | None, count: int | None) -> None:
    query = f"{CONSTRUCT} {rest}"
    stream = construct_messages(
        query, endpoint, requests=Requests(profile="virtuoso", page_size=page_size, timeout=SECONDS)
    )
    if count is None:
        with pytest.raises(
            IncompleteResult, match=r"at most 10000 solutions(?s:.)*page_size=10000"
        ):
            b"".join(stream.serialize("nq"))
    else:
        check(b"".join(stream.serialize("nq")), count)


@pytest.mark.parametrize(
    ("rest", "page_size", "count"),
    [asked[1:] for asked in ASKED if asked[0] in THROUGH],
    ids=THROUGH,
)
def test_through_the_server(
    endpoint: str, proxy: Callable[..., str], rest: str, page_size: int | None, count: int | None
) -> None:
    url = proxy(endpoint, profile="virtuoso", page_size=page_size)
    accept = "application/n-quads; messages=rdfm"
    if count is None:
        with pytest.raises((HTTPException, ConnectionError)):
            post(url, f"{CONSTRUCT} {rest}", accept)
    else:
        status, _, log = post(url, f"{CONSTRUCT} {rest}", accept)
        assert status == 200
        check(log, count)


def test_its_own_construct_is_short(endpoint: str) -> None:
    """Why all this: there is no sign of it."""
    status, cap, body = post(
        endpoint, f"{CONSTRUCT} WHERE {{ ?s <urn:n> ?n }}", "application/n-triples"
    )
    triples = {quad.triple for quad in ox.parse(body, ox.RdfFormat.N_TRIPLES)}
    assert (status, cap, len(triples)) == (200, None, CAP + 1)
    assert len(triples) < 2 * SIZE
