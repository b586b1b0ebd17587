"""Errors of an engine name places of the query as its author wrote it: those that the engine itself names for it."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp
import pyoxigraph as ox
import pytest
import rdflib
from pyparsing import ParseException

from construct_messages import construct_messages
from construct_messages.errors import Position, QueryError, SourceError
from construct_messages.query.select import OriginalQuery
from construct_messages.rdf.options import Grouping, Requests
from tests.support.commands import Done
from tests.support.http.serving import serving
from tests.support.places import ROOT

PROLOGUE: Final = "PREFIX a: <urn:>\nPREFIX b: <urn:b/>\n"


def place_of(marked: str) -> Position:
    """The position of the stroke in a query."""
    return Position.at(marked, marked.index("|"))


# a stroke is before the first word that is not allowed
MARKED: Final = {
    "an expression": "CONSTRUCT { ?s <urn:a> ?o ; <urn:long> ?s , ?s , ?s } WHERE { ?s ?p ?o FILTER(?o > |) }",
    "a word": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o |FILTR(?o) }",
    "a template in lines": "CONSTRUCT {\n  ?s ?p ?o ;\n\r    a ?c .\r\n} WHERE { ?s ?p ?o ; a ?c BIND(?o AS |?c) }",
    "no template": "CONSTRUCT WHERE { ?s ?p ?o } |ORDR BY ?s",
    "a clause": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT |-1",
    "a prologue": f"{PROLOGUE}CONSTRUCT {{ ?s a:p _:x . _:x b:q ?o }} WHERE {{ ?s a:p [ b:q ?o ] . ?s |; }}",
    "a comment": "# WHERE { } }\nCONSTRUCT { ?s ?p ?o } # FILTER(\n FROM <urn:g> WHERE { ?s ?p ?o } |HAVIN (?s)",
    "a prefix": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?s |c:d ?o }",
    "more than ASCII": 'CONSTRUCT { ?ü <urn:ü> "äöü😀" } WHERE { ?ü <urn:ü> "äöü😀" . ?ü ?ü |}',
    "GROUP BY": "CONSTRUCT { ?s <urn:n> ?n } WHERE { SELECT ?s (COUNT(*) AS ?n) |?q { ?s ?p ?o } GROUP BY ?s }",
}


REFUSED: Final = {name: query.replace("|", "") for name, query in MARKED.items()}
PLACES: Final = {REFUSED[name]: place_of(query) for name, query in MARKED.items()}


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_by_the_package(query: str) -> None:
    """Issue 26, 22."""
    with pytest.raises(QueryError, match="the embedded engine refuses the query") as refused:
        list(construct_messages(query, ox.Store(), group_by=(), prefixes={"unused": "urn:unused/"}))
    assert refused.value.position == PLACES[query]
    assert "rewritten" not in str(refused.value)


def test_with_declarations_from_outside() -> None:
    marked = "CONSTRUCT { ?s ex:p <o> } WHERE { ?s ex:p <o> . ?s ex:q |} "
    query = marked.replace("|", "")
    with pytest.raises(QueryError) as refused:
        list(
            construct_messages(
                query, ox.Store(), base="http://example.org/", prefixes={"ex": "urn:ex/"}
            )
        )
    assert refused.value.position == place_of(marked)


def test_with_a_template_that_engines_do_not_know() -> None:
    marked = "CONSTRUCT { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } |FILTR(?o) }"
    with pytest.raises(QueryError) as refused:
        list(construct_messages(marked.replace("|", ""), ox.Store()))
    assert refused.value.position == place_of(marked)


def test_with_bindings_and_groups() -> None:
    marked = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?s ?p |}"
    query = marked.replace("|", "")
    with pytest.raises(QueryError) as refused:
        list(
            construct_messages(
                query, ox.Store(), group_by=Grouping("s", order="sorted"), bindings={"p": "<urn:p>"}
            )
        )
    assert refused.value.position == place_of(marked)


def test_what_was_expected_is_said() -> None:
    with pytest.raises(QueryError, match=r"expected a clause or the end of the query, found ORDR$"):
        list(construct_messages(REFUSED["no template"], ox.Store()))


@pytest.mark.parametrize("query", [REFUSED["a word"], REFUSED["no template"], REFUSED["a clause"]])
def test_by_rdflib(query: str) -> None:
    with pytest.raises(QueryError, match="rdflib refuses the query") as refused:
        list(construct_messages(query, rdflib.Graph()))
    with pytest.raises(ParseException) as own:
        rdflib.Graph().query(query)
    assert refused.value.position == (own.value.lineno, own.value.column)


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_on_the_command_line(query: str, here: Callable[..., Done]) -> None:
    done = here(
        "run", "--query", query, "--source", str(ROOT / "queries" / "data" / "companies.ttl")
    )
    assert done.status == 2
    assert f"{PLACES[query]}: the embedded engine refuses" in done.errors


@pytest.mark.process
@pytest.mark.parametrize("accept", ["*/*", "application/n-quads; messages=rdfm"])
async def test_by_the_server(tmp_path: Path, accept: str) -> None:
    """A plain CONSTRUCT and one for messages are refused at the same place."""
    ox.Store(str(tmp_path / "store")).flush()
    async with serving(tmp_path / "store") as server, aiohttp.ClientSession() as session:
        for query in REFUSED.values():
            async with session.post(
                server.sparql, data={"query": query}, headers={"Accept": accept}
            ) as answer:
                problem = json.loads(await answer.text())
                assert answer.status == 400
                assert (problem["line"], problem["column"]) == PLACES[query]


_PLACE: Final = re.compile(r"(?:line |at )(\d+)(?:, column |:)(\d+)", re.IGNORECASE)


def of_endpoint(url: str, query: str) -> re.Match[str] | None:
    """Where an endpoint refuses a query by itself; None: it names no place."""
    form = urllib.parse.urlencode({"query": query}).encode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, form)
    return _PLACE.search(refused.value.read().decode())


@pytest.mark.process
@pytest.mark.parametrize("engine", ["oxigraph", pytest.param("fuseki", marks=pytest.mark.slow)])
def test_by_an_endpoint(
    serve_with: Callable[[str, Path], str], tmp_path: Path, engine: str
) -> None:
    """Issue 27, 1: an endpoint names places of the SELECT."""
    data = tmp_path / "data.ttl"
    data.write_text("<urn:s> <urn:p> <urn:o> .")
    url = serve_with(engine, data)
    for name, query in REFUSED.items():
        if engine == "fuseki" and not query.isascii():
            continue  # it counts units of UTF-16
        for page_size in (None, 10):
            requests = Requests(page_size=page_size)
            with pytest.raises((SourceError, QueryError)) as refused:
                list(construct_messages(query, url, requests=requests))
            if isinstance(refused.value, SourceError):
                found, own = _PLACE.search(str(refused.value)), of_endpoint(url, query)
                assert (found is None) == (own is None), name
                if "positions in this message" in str(refused.value.hint):
                    assert page_size, name  # in the ORDER BY of pages, at which Oxigraph stops
                elif found is not None and own is not None:
                    assert found.groups() == own.groups(), (name, page_size)


def test_places_of_the_select_alone() -> None:
    query = OriginalQuery("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", where=(29, 41))
    select = "SELECT ?s ?p ?o WHERE { ?s ?p ?o } ORDER BY ?s"
    said = "Line 1, column 40: no; line 1:5: no; Line 1, column 25: no; line 2 column 1"
    translated = "Line 1, column 40: no; line 1:5: no; Line 1, column 32: no; line 2 column 1"
    assert query.translated(said, select) == (translated, False)
