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

from construct_messages.errors import IncompleteResult
from construct_messages.rdf import terms
from construct_messages.rdf.terms import (
    UNBOUND,
    Term,
    iri,
    map_blanks,
    number,
    parse_term,
    unescape,
)
from construct_messages.sparql.results.json import JsonDecoder
from construct_messages.sparql.results.tsv import TsvDecoder
from construct_messages.sparql.results.xml import XmlDecoder
from tests.support.results import documents
from tests.support.results.kinds import KINDS, Results
from tests.support.results.reading import OXIGRAPH
from tests.support.results.tables import QUERY, ROWS, in_random_pieces, table
from tests.support.results.tables import VARIABLES as OF_TABLES
from tests.support.strategies import TERMS

FORMATS = {
    "json": (JsonDecoder, documents.json_document),
    "json-indented": (
        JsonDecoder,
        lambda v, s: documents.json_document(v, s, indent=2, ensure_ascii=False),
    ),
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


# --- terms as engines write them beyond the recommendations ---------------------------------------------------------


def _binding(name: str, value: str) -> bytes:
    """A document with two solutions, of which the second binds ?x to this value."""
    if name == "xml":
        results = (
            f'<results><result/><result><binding name="x">{value}</binding></result></results>'
        )
        return f'<sparql xmlns="http://www.w3.org/2005/sparql-results#">{results}</sparql>'.encode()
    return f'{{"results":{{"bindings":[{{}},{{"x":{value}}}]}}}}'.encode()


def _json(text: str) -> str:
    """JSON whose terms are abbreviated: `A` to `C` are IRIs, `L` is a literal."""
    for letter in "ABC":
        text = text.replace(letter, f'{{"type":"uri","value":"urn:{letter.lower()}"}}')
    return text.replace("L", '{"xml:lang":"en","type":"literal","value":"hi"}')


def _xml(text: str) -> str:
    for letter in "ABC":
        text = text.replace(letter, f"<uri>urn:{letter.lower()}</uri>")
    return text.replace("L", '<literal xml:lang="en">hi</literal>')


TRIPLE = '<<( <urn:a> <urn:b> "hi"@en )>>'
STARRED = {
    # https://www.w3.org/TR/sparql12-results-json/
    "RDF 1.2": '{"type":"triple","value":{"subject":A,"predicate":B,"object":L}}',
    # https://github.com/eclipse-rdf4j/rdf4j/issues/2502 and 2526
    "RDF4J": '{"type":"triple","value":{"s":A,"p":B,"o":L}}',
    "RDF4J in another order": '{"value":{"o":L,"s":A,"p":B},"type":"triple"}',
    "Stardog": '{"type":"statement","s":A,"p":B,"o":L}',
    "Stardog with a graph": '{"type":"statement","s":A,"p":B,"o":L,"g":C}',
    "Stardog as it was taken to be": '{"type":"statement","value":{"s":A,"p":B,"o":L}}',
}
STARRED_XML = {
    "RDF 1.2": "<triple><subject>A</subject><predicate>B</predicate><object>L</object></triple>",
    # https://github.com/eclipse-rdf4j/rdf4j/issues/2495
    "Stardog": "<statement> <s>A</s> <p>B</p> <o>L</o> </statement>",
    "Stardog with a graph": "<statement><s>A</s><p>B</p><o>L</o><g>C</g></statement>",
}


@pytest.mark.parametrize("text", STARRED.values(), ids=STARRED)
def test_triple_terms_of_engines_in_json(text: str) -> None:
    document = _binding("json", _json(text))
    assert decode(JsonDecoder(("x",)), [document]) == [("",), (TRIPLE,)]
    assert decode(JsonDecoder(("x",)), bytewise(document)) == [("",), (TRIPLE,)]
    nested = _json('{"type":"triple","value":{"s":A,"p":C,"o":') + _json(text) + "}}"
    assert decode(JsonDecoder(("x",)), [_binding("json", nested)])[1] == (
        f"<<( <urn:a> <urn:c> {TRIPLE} )>>",
    )


@pytest.mark.parametrize("text", STARRED_XML.values(), ids=STARRED_XML)
def test_triple_terms_of_engines_in_xml(text: str) -> None:
    assert decode(XmlDecoder(("x",)), [_binding("xml", _xml(text))]) == [("",), (TRIPLE,)]
    nested = _xml("<statement><s>A</s><p>C</p><o>") + _xml(text) + "</o></statement>"
    assert decode(XmlDecoder(("x",)), [_binding("xml", nested)])[1] == (
        f"<<( <urn:a> <urn:c> {TRIPLE} )>>",
    )


_OPAQUE = "urn:rdf4j:triple:PDw8dXJuOmE-IDx1cm46cD4gIngiPj4="  # as RDF4J 4.1.3 wrote it
CHANGED = [
    # what would be another term without a member or attribute
    ('{"type":"literal","value":"a","lang":"nl"}', "solution 2 .*`lang`, in 'x'"),
    ('{"type":"literal","value":"a","language":"nl"}', "solution 2 .*`language`, in 'x'"),
    ('{"type":"literal","value":"a","dataType":"urn:d"}', "solution 2 .*`dataType`, in 'x'"),
    ('{"type":"uri","value":"urn:a","datatype":"urn:d"}', "solution 2 .*`datatype`, in 'x'"),
    ('{"type":"bnode","value":"a","xml:lang":"nl"}', "solution 2 .*`xml:lang`, in 'x'"),
    ('{"type":"literal","value":"a","xml:lang":"nl","datatype":"urn:d"}', "solution 2 .*'nl' and"),
    (_json('{"type":"triple","value":{"s":A,"p":B,"o":L,"g":C}}'), "solution 2 .*'x.value'"),
    (_json('{"type":"triple","value":{"s":A,"p":B,"o":L,"object":L}}'), "solution 2 .*object, s"),
    (_json('{"type":"triple","value":{"s":A,"p":B}}'), "solution 2 .* triple term of s, p"),
    (_json('{"type":"statement","g":C}'), "solution 2 .* triple term of nothing"),
    (f'{{"type":"uri","value":"{_OPAQUE}"}}', f"solution 2 .*<{_OPAQUE}> stands for"),
    # and in a column of IRIs alone, which are read together
    (f'{{"type":"uri","value":"urn:a"}}}},{{"x":{{"type":"uri","value":"{_OPAQUE}"}}',
     f"solution 3 .*<{_OPAQUE}> stands for"),
    ('<literal lang="nl">a</literal>', "after solution 1: unexpected attribute 'lang'"),
    ('<literal Datatype="urn:d">a</literal>', "after solution 1: unexpected attribute 'Datatype'"),
    ('<uri datatype="urn:d">urn:a</uri>', "after solution 1: unexpected attribute 'datatype'"),
    ('<literal xml:lang="nl" datatype="urn:d">a</literal>', "solution 2 .*'nl' and"),
    (_xml("<triple><s>A</s><p>B</p><o>L</o><g>C</g></triple>"), "unexpected element 'g'"),
    (_xml("<triple><subject>A</subject><p>B</p><o>L</o></triple>"), "of subject, p, o"),
    (_xml("<statement><s>A</s><p>B</p></statement>"), "a triple term of s, p"),
    (f"<uri>{_OPAQUE}</uri>", f"solution 2 .*<{_OPAQUE}> stands for"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "words"), CHANGED)
def test_nothing_of_a_term_is_left_out(value: str, words: str) -> None:
    name = "json" if value.startswith("{") else "xml"
    decoder = JsonDecoder if name == "json" else XmlDecoder
    for pieces in ([_binding(name, value)], bytewise(_binding(name, value))):
        with pytest.raises(IncompleteResult, match=words):
            decode(decoder(("x",)), pieces)


@pytest.mark.parametrize("others", ["<urn:b>", "_:b", '"a"', "<urn:b>\n" * 500])
def test_iris_for_triple_terms_in_tsv(others: str) -> None:
    document = f"?x\n{others}\n<{_OPAQUE}>\n"
    with pytest.raises(IncompleteResult, match=f"<{_OPAQUE}> stands for") as refused:
        decode(TsvDecoder(("x",)), [document.encode()])
    assert 'results="json"' in str(refused.value)
    twice = "?x\t?y\n" + "".join(f"<urn:{n}>\t<{_OPAQUE}>\n" for n in range(100))
    with pytest.raises(IncompleteResult, match=f"line 2 .*<{_OPAQUE}> stands for"):
        decode(TsvDecoder(("x", "y")), [twice.encode()])
    assert decode(TsvDecoder(("x",)), [f'?x\n"<{_OPAQUE}>"\n'.encode()]) == [(f'"<{_OPAQUE}>"',)]


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
    "json": ("json", JsonDecoder),
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
