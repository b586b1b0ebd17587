"""All results decoders on the same solutions: they agree, hand on what is whole at once, and refuse what is not."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import terms
from construct_messages.errors import IncompleteResult
from construct_messages.results.json import JsonDecoder
from construct_messages.results.tsv import TsvDecoder
from construct_messages.results.xml import XmlDecoder
from construct_messages.terms import UNBOUND, Term, iri, map_blanks, number, parse_term, unescape
from tests.support.results import documents
from tests.support.results.kinds import KINDS, Results
from tests.support.results.reading import OXIGRAPH, ByStandardLibrary, ByStructs
from tests.support.results.tables import QUERY, ROWS, in_random_pieces, table
from tests.support.results.tables import VARIABLES as OF_TABLES
from tests.support.strategies import TERMS

FORMATS = {
    "json": (JsonDecoder, documents.json_document),
    "json-indented": (
        JsonDecoder,
        lambda v, s: documents.json_document(v, s, indent=2, ensure_ascii=False),
    ),
    "json-plain": (ByStandardLibrary, documents.json_document),
    "xml": (XmlDecoder, documents.xml_document),
    "tsv": (TsvDecoder, documents.tsv_document),
}
each_format = pytest.mark.parametrize("name", FORMATS)

VARIABLES = ("s", "x", "müll_1")
TABLE: list[tuple[Term, ...]] = [
    tuple(parse_term(text) if text else terms.UNBOUND for text in solution)
    for solution in [
        ("<http://example.org/a>", '"chat"@fr', "42"),
        ("<http://example.org/a>", '"chat"@fr', "42"),
        ("_:b0", "", "1.50"),
        ("<urn:ü>", '"a \\"b\\" \\\\ \\t\\n\\r {[}],"', "-1e6"),
        ("", "", ""),
        ("<mailto:a@b.c>", '"مرحبا"@ar--rtl', "true"),
        (
            '<<( _:b0 <http://example.org/p> <<( <urn:a> <urn:p> "x, y"@en )>> )>>',
            '""',
            '"01"^^<http://example.org/dt>',
        ),
        ("<http://example.org/?a=b&c=%20#d>", '"},{"', "_:b.1"),
        (
            "<http://example.org/z>",
            '"😀]}}"',
            '"2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date>',
        ),
    ]
]


def scoped(table: Iterable[Sequence[Term]], scope: str = "d") -> list[tuple[Term, ...]]:
    return [
        tuple(map_blanks(term, lambda b: Term(f"_:{scope}{b[2:]}")) for term in solution)
        for solution in table
    ]


def decode(decoder: Any, pieces: Iterable[bytes]) -> list[tuple[Term, ...]]:
    solutions = [
        solution for piece in pieces for batch in decoder.feed(piece) for solution in batch
    ]
    return solutions + [solution for batch in decoder.close() for solution in batch]


def bytewise(document: bytes) -> list[bytes]:
    return [document[i : i + 1] for i in range(len(document))]


@each_format
@pytest.mark.parametrize("cut", [lambda document: [document], bytewise], ids=["whole", "bytewise"])
@pytest.mark.parametrize("table", [TABLE, TABLE[:1], []], ids=["all", "one", "none"])
def test_decoders_agree(
    name: str, cut: Callable[[bytes], list[bytes]], table: list[tuple[Term, ...]]
) -> None:
    decoder, document = FORMATS[name]
    assert decode(decoder(VARIABLES), cut(document(VARIABLES, table))) == scoped(table)


NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@pytest.mark.slow
@each_format
@given(data=st.data())
def test_any_table_cut_anywhere(name: str, data: st.DataObject) -> None:
    decoder, document = FORMATS[name]
    values = st.one_of(st.just(terms.UNBOUND), TERMS)
    if name == "xml":
        values = values.filter(lambda term: not NOT_IN_XML.search(unescape(term)))
    table = data.draw(st.lists(st.tuples(values, values, values), max_size=6))
    whole = document(VARIABLES, table)
    cuts = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=8))})
    pieces = [whole[start:end] for start, end in pairwise(cuts)]
    assert decode(decoder(VARIABLES), pieces) == scoped(table)


def outcome(decoder: Any, pieces: Iterable[bytes]) -> list[tuple[Term, ...]] | None:
    """What a document gives; None where it is refused."""
    try:
        return decode(decoder, pieces)
    except IncompleteResult:
        return None


@pytest.mark.slow
@each_format
@given(data=st.data())
def test_damage_is_the_same_in_any_pieces(name: str, data: st.DataObject) -> None:
    decoder, document = FORMATS[name]
    whole = document(VARIABLES, TABLE[3:7])
    for _ in range(data.draw(st.integers(0, 2))):
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 40)))
        put = data.draw(
            st.sampled_from(
                [
                    b"",
                    b'"',
                    b"\\",
                    b"{",
                    b"}",
                    b"]",
                    b",",
                    b"},{",
                    b"<",
                    b"\t",
                    b"\n",
                    whole[:start],
                ]
            )
        )
        whole = whole[:start] + put + whole[end:]
    cuts = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=8))})
    expected = outcome(decoder(VARIABLES), [whole])
    assert outcome(decoder(VARIABLES), bytewise(whole)) == expected
    assert (
        outcome(decoder(VARIABLES), [whole[start:end] for start, end in pairwise(cuts)]) == expected
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_is_the_same_in_any_pieces(kind: Callable[[int], Results]) -> None:
    results = kind(1 << 11)
    decoder = {"json": JsonDecoder, "xml": XmlDecoder, "tsv": TsvDecoder}[results.format]
    expected = outcome(decoder(results.variables), [results.document])
    for size in (1, 7, 100):
        pieces = [
            results.document[start : start + size]
            for start in range(0, len(results.document), size)
        ]
        assert outcome(decoder(results.variables), pieces) == expected


@each_format
def test_what_is_whole_comes_at_once(name: str) -> None:
    decoder, document = FORMATS[name]
    whole = document(VARIABLES, TABLE)
    end = {
        "json-indented": b"\n    ]\n  }\n}",
        "xml": b"</results></sparql>\n",
        "tsv": b"",
    }.get(name, b"]}}")
    assert whole.endswith(end)
    stalled = whole[: len(whole) - len(end)]
    reader = decoder(VARIABLES)
    assert [s for batch in reader.feed(stalled) for s in batch] == scoped(TABLE)
    reader = decoder(VARIABLES)
    assert [s for batch in reader.feed(stalled[:-1]) for s in batch] == scoped(TABLE[:-1])


@pytest.mark.slow
@each_format
def test_nothing_may_be_missing(name: str) -> None:
    decoder, document = FORMATS[name]
    whole = (
        document(VARIABLES, TABLE).rstrip(b"\n") if name == "xml" else document(VARIABLES, TABLE)
    )
    for end in range(len(whole)):
        if name == "tsv" and whole[:end].endswith(b"\n"):
            continue  # only the HTTP framing can tell
        with pytest.raises(IncompleteResult):
            decode(decoder(VARIABLES), [whole[:end]])


@each_format
@pytest.mark.parametrize(
    "text",
    [
        b"The SPARQL operation has been cancelled",
        b"!TIMEDOUT!",
        b"!!!!>># An error has occurred while exporting the query result.\n",
        b"<html/>",
        b"{}",
        b"\0",
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_nothing_may_follow(name: str, text: bytes, at_once: bool) -> None:
    decoder, document = FORMATS[name]
    whole = document(VARIABLES, TABLE)
    with pytest.raises(IncompleteResult):
        decode(decoder(VARIABLES), [whole + text] if at_once else [whole, text])


@pytest.mark.parametrize("name", ["json", "xml"])
def test_white_space_may_follow(name: str) -> None:
    decoder, document = FORMATS[name]
    assert decode(decoder(VARIABLES), [document(VARIABLES, TABLE) + b" \r\n", b"\n"]) == scoped(
        TABLE
    )


@each_format
def test_text_in_the_middle(name: str) -> None:
    decoder, document = FORMATS[name]
    whole = document(VARIABLES, TABLE)
    place = {"json-indented": b",\n      {", "xml": b"<result>", "tsv": b"\n"}.get(name, b", {")
    for match in re.finditer(re.escape(place), whole):
        with pytest.raises(IncompleteResult):
            decode(
                decoder(VARIABLES), [whole[: match.start()] + b"!ERROR!" + whole[match.start() :]]
            )


@each_format
def test_columns_are_those_asked_for(name: str) -> None:
    decoder, document = FORMATS[name]
    whole = document(("_star_fake", *VARIABLES), [(number("1"), *solution) for solution in TABLE])
    wanted = ("müll_1", "s")
    assert decode(decoder(wanted), [whole]) == [
        (solution[2], solution[0]) for solution in scoped(TABLE)
    ]


@each_format
def test_response_and_scope(name: str) -> None:
    decoder, document = FORMATS[name]
    (batch,) = decoder(VARIABLES, response=3, scope="p3_").feed(document(VARIABLES, TABLE[:3]))[:1]
    assert batch.response == 3
    assert list(batch) == scoped(TABLE[:3], "p3_")[: len(batch)]


@pytest.mark.parametrize("name", ["json", "xml"])
def test_an_empty_binding_object_is_a_solution(name: str) -> None:
    decoder, document = FORMATS[name]
    assert decode(decoder(("x",)), [document(("x",), [(UNBOUND,), (UNBOUND,)])]) == [("",), ("",)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("json", "http://example.org/a b"),
        ("xml", "http://example.org/a b"),
    ],
)
def test_iris_are_percent_encoded(name: str, value: str) -> None:
    decoder, document = FORMATS[name]
    whole = document(("x",), [(Term(f"<{value}>"),), (iri("http://example.org/c"),)])
    assert decode(decoder(("x",)), [whole]) == [
        ("<http://example.org/a%20b>",),
        ("<http://example.org/c>",),
    ]


@each_format
def test_relative_iris_are_refused(name: str) -> None:
    decoder, document = FORMATS[name]
    whole = document(("x",), [(iri("urn:a"),), (Term("<relative>"),)])
    with pytest.raises(
        IncompleteResult, match=r"(solution 2|line 3) of the \w+ result: IRI <relative> is relative"
    ):
        decode(decoder(("x",)), [whole])


# --- documents that other libraries wrote ----------------------------------------------------------------------------

STORED = [
    "<http://example.org/é>",
    "_:blank",
    '"plain"',
    '"tab\\tquote\\"backslash\\\\line\\nreturn\\r"',
    '"chat"@fr',
    '"x"@ar--rtl',
    "1",
    "-1.5",
    "1.0e6",
    "true",
    '"2026-01-01"^^<http://www.w3.org/2001/XMLSchema#date>',
    "<<( <urn:a> <urn:b> 7 )>>",
]


@pytest.mark.parametrize(
    ("decoder", "format"),
    [
        (JsonDecoder, ox.QueryResultsFormat.JSON),
        (XmlDecoder, ox.QueryResultsFormat.XML),
        (TsvDecoder, ox.QueryResultsFormat.TSV),
    ],
    ids=["json", "xml", "tsv"],
)
def test_pyoxigraph_wrote_it(decoder: Any, format: ox.QueryResultsFormat) -> None:
    store = ox.Store()
    for place, text in enumerate(STORED):
        store.load(f"<urn:{place}> <urn:p> {text} .".encode(), ox.RdfFormat.TURTLE)
    query = "SELECT ?s ?o ?none WHERE { ?s ?p ?o }"
    solutions = list(store.query(query))
    expected = [(*(terms.from_pyoxigraph(s[name], "d") for name in "so"), "") for s in solutions]
    written = store.query(query).serialize(format=format)
    assert sorted(decode(decoder(("s", "o", "none")), [written])) == sorted(expected)
    assert sorted(decode(decoder(("s", "o", "none")), bytewise(written))) == sorted(expected)
    assert len(expected) == len(STORED)


@pytest.mark.parametrize("decoder", [JsonDecoder, XmlDecoder], ids=["json", "xml"])
def test_rdflib_wrote_it(decoder: Any) -> None:
    graph = rdflib.Graph()
    # rdflib has no triple terms and no directions, and its XML loses carriage returns
    known = [text.replace("\\r", "") for text in STORED if "<<(" not in text and "--" not in text]
    for place, text in enumerate(known):
        graph.parse(data=f"<urn:{place}> <urn:p> {text} .", format="turtle")
    result = graph.query("SELECT ?s ?o WHERE { ?s ?p ?o }")
    out = io.BytesIO()
    result.serialize(out, format="json" if decoder is JsonDecoder else "xml")
    expected = [tuple(terms.from_rdflib(term, "d") for term in solution) for solution in result]
    assert sorted(decode(decoder(("s", "o")), bytewise(out.getvalue()))) == sorted(expected)
    assert len(expected) == len(known)


AT_LENGTH = {
    "json": ("json", ByStructs),
    "json-plain": ("json", ByStandardLibrary),
    "xml": ("xml", XmlDecoder),
    "tsv": ("tsv", TsvDecoder),
}


@pytest.mark.slow
def test_long_tables_are_what_pyoxigraph_selects(pytestconfig: pytest.Config) -> None:
    for seed in range(1, 1 + pytestconfig.getoption("--tables")):
        store = table(seed)
        expected = [
            tuple(
                UNBOUND if each is None else terms.from_pyoxigraph(each, "d") for each in solution
            )
            for solution in store.query(QUERY)
        ]
        assert len(expected) == ROWS
        for name, (format, decoder) in AT_LENGTH.items():
            document = store.query(QUERY).serialize(format=OXIGRAPH[format])
            pieces = in_random_pieces(document, Random(seed))
            for place, solution in enumerate(decode(decoder(OF_TABLES), pieces)):
                assert solution == expected[place], (name, seed, place)
            assert place == ROWS - 1, (name, seed)
