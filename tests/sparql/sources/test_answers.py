"""`rdf/formats/results.py` and `rdf/formats/media_types.py`: what a client wants of what there is, and that it gets
just that."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pyoxigraph as ox
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import NotAcceptable
from construct_messages.rdf import terms
from construct_messages.rdf.formats.media_types import TRIPLES
from construct_messages.rdf.formats.negotiation import choose
from construct_messages.rdf.formats.results import SOLUTIONS
from construct_messages.sparql.results.json import JsonDecoder
from construct_messages.sparql.results.tsv import TsvDecoder
from construct_messages.sparql.results.xml import XmlDecoder
from construct_messages.sparql.sources import Operation
from construct_messages.sparql.sources.evaluators.pool import EvaluatorPool

EX = "http://example.org/"
COUNT = 500

JSON, XML, CSV, TSV = (each.media_type for each in SOLUTIONS)
TURTLE, N_TRIPLES, RDF_XML, JSON_LD, N_QUADS, TRIG = (each.media_type for each in TRIPLES)


@pytest.mark.parametrize(
    ("accept", "format", "of_solutions", "of_triples"),
    [
        (None, None, JSON, TURTLE),
        ("", None, JSON, TURTLE),
        (" ,", None, None, None),
        ("*/*", None, JSON, TURTLE),
        ("*/*;q=0", None, None, None),
        ("application/*", None, JSON, N_TRIPLES),
        ("text/*", None, CSV, TURTLE),
        ("text/turtle;q=1, application/xml;q=0.2, text/csv;q=0.1", None, XML, TURTLE),
        ("text/csv;q=0.5, application/json;q=0.6", None, JSON, JSON_LD),
        ("text/csv, application/json", None, CSV, JSON_LD),
        ("*/*, text/csv", None, CSV, TURTLE),
        (f"*/*;q=0.1, {JSON};q=0, text/turtle;q=0", None, XML, N_TRIPLES),
        ("text/*;q=0.9, text/csv;q=0.1, text/turtle;q=0", None, TSV, None),
        ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", None, XML, RDF_XML),
        (
            "nonsense, ;q=1, application/trig;q=2, application/n-quads, text/csv;q=1.0",
            None,
            CSV,
            N_QUADS,
        ),
        ('Text/CSV; charset="utf-8"; Q=0.5', None, CSV, None),
        ("text/csv", "json", JSON, JSON_LD),
        ("text/csv", "XML", XML, RDF_XML),
        (None, "text/csv; header=present", CSV, None),
        (None, "nt", None, N_TRIPLES),
        (None, "nonsense", None, None),
    ],
    ids=str,
)
def test_what_a_client_wants(
    accept: str | None, format: str | None, of_solutions: str | None, of_triples: str | None
) -> None:
    found = (choose(SOLUTIONS, accept, format), choose(TRIPLES, accept, format))
    assert tuple(each and each.media_type for each in found) == (of_solutions, of_triples)


RANGES = st.sampled_from(
    [JSON, CSV, TURTLE, N_TRIPLES, "application/json", "text/*", "application/*", "*/*", "a/b", "?"]
)


@given(st.lists(st.tuples(RANGES, st.sampled_from([";q=0", ";q=0.3", ";q=1", ""])), max_size=6))
def test_what_is_excluded_by_name_is_never_chosen(ranges: list[tuple[str, str]]) -> None:
    for offered in (SOLUTIONS, TRIPLES):
        found = choose(offered, ",".join(media_type + weight for media_type, weight in ranges))
        if found is not None and ranges:
            weights = [
                weight
                for media_type, weight in ranges
                if media_type in (found.media_type, *found.names)
            ]
            assert not weights or set(weights) != {";q=0"}
            assert any(weight != ";q=0" for _, weight in ranges)


@pytest.mark.parametrize("header", [",", "a/b,", "text/csv;q=0.", '"', ";" * 9], ids=str)
def test_long_headers_take_linear_time(header: str) -> None:
    choose(SOLUTIONS, header * (65536 // len(header)))


# --- what then comes ---


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serializations") / "store"
    store = ox.Store(str(path))
    p = ox.NamedNode(f"{EX}p")
    store.bulk_extend(ox.Quad(ox.NamedNode(f"{EX}s{n}"), p, ox.Literal(n)) for n in range(COUNT))
    del store
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(directory: Path) -> AsyncIterator[EvaluatorPool]:
    async with aclosing(EvaluatorPool(directory, size=1)) as opened:
        yield opened


async def ask(pool: EvaluatorPool, text: str, accept: str | None = None) -> tuple[str, bytes]:
    answer = await pool.answer(
        Operation(text, headers={} if accept is None else {"Accept": accept})
    )
    async with aclosing(answer.body) as chunks:
        ((name, content_type),) = answer.headers
        assert (answer.status, name) == (200, "Content-Type")
        return content_type, b"".join([chunk async for chunk in chunks])


module = pytest.mark.asyncio(loop_scope="module")

SELECT = "SELECT ?s ?n { ?s ?p ?n } ORDER BY ?n"
DECODERS = {
    "application/sparql-results+json": JsonDecoder,
    "application/sparql-results+xml": XmlDecoder,
    "text/tab-separated-values; charset=utf-8": TsvDecoder,
}


@module
@pytest.mark.parametrize(
    ("content_type", "decoder_class"), DECODERS.items(), ids=["json", "xml", "tsv"]
)
async def test_solutions_in_every_format(
    content_type: str, decoder_class: Callable[[tuple[str, ...]], JsonDecoder], pool: EvaluatorPool
) -> None:
    found, body = await ask(pool, SELECT, content_type)
    assert found == content_type
    decoder = decoder_class(("s", "n"))
    solutions = [
        solution for batch in (*decoder.feed(body), *decoder.close()) for solution in batch
    ]
    assert solutions == [(f"<{EX}s{n}>", f'"{n}"^^<{terms.XSD}integer>') for n in range(COUNT)]


@module
async def test_solutions_as_csv(pool: EvaluatorPool) -> None:
    content_type, body = await ask(pool, SELECT, "text/csv")
    assert content_type == "text/csv; charset=utf-8"
    header, *lines = csv.reader(io.StringIO(body.decode()))
    assert header == ["s", "n"]
    assert lines == [[f"{EX}s{n}", str(n)] for n in range(COUNT)]


@module
@pytest.mark.parametrize(
    "query", ["CONSTRUCT WHERE { ?s ?p ?n }", f"DESCRIBE <{EX}s1> <{EX}s2>"], ids=str.split
)
@pytest.mark.parametrize(
    ("accept", "content_type", "format"),
    [
        (None, "text/turtle; charset=utf-8", ox.RdfFormat.TURTLE),
        ("*/*", "text/turtle; charset=utf-8", ox.RdfFormat.TURTLE),
        ("application/n-triples", "application/n-triples", ox.RdfFormat.N_TRIPLES),
        ("application/rdf+xml", "application/rdf+xml", ox.RdfFormat.RDF_XML),
        ("application/ld+json", "application/ld+json", ox.RdfFormat.JSON_LD),
        ("application/n-quads", "application/n-quads", ox.RdfFormat.N_QUADS),
        ("application/trig", "application/trig", ox.RdfFormat.TRIG),
    ],
    ids=lambda value: str(value),
)
async def test_triples_in_every_format(
    query: str,
    accept: str | None,
    content_type: str,
    format: ox.RdfFormat,
    pool: EvaluatorPool,
    directory: Path,
) -> None:
    found, body = await ask(pool, query, accept)
    assert found == content_type
    expected = ox.Store.read_only(str(directory)).query(query)
    assert isinstance(expected, ox.QueryTriples)
    assert {quad.triple for quad in ox.parse(body, format=format)} == set(expected)


@module
@pytest.mark.parametrize(
    ("query", "offered"),
    [("ASK {}", JSON), ("SELECT * {}", CSV), ("CONSTRUCT {} {}", TURTLE)],
    ids=str,
)
async def test_who_takes_nothing_is_told_what_there_is(
    query: str, offered: str, pool: EvaluatorPool
) -> None:
    with pytest.raises(NotAcceptable) as caught:
        await ask(pool, query, "text/html")
    assert offered in caught.value.offered
    assert offered in str(caught.value)


@module
@pytest.mark.parametrize(
    ("query", "content_type", "body"),
    [
        ("ASK {}", JSON, b'{"head":{},"boolean":true}'),
        ("ASK { FILTER(false) }", CSV, b"false"),
        ("SELECT ?x {} LIMIT 0", CSV, b"x\r\n"),
        ("CONSTRUCT {} {}", TURTLE, b""),
    ],
    ids=str,
)
async def test_small_answers(
    query: str, content_type: str, body: bytes, pool: EvaluatorPool
) -> None:
    found, answered = await ask(pool, query, content_type)
    assert (found.partition(";")[0], answered) == (content_type, body)
