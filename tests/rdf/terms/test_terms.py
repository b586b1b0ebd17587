"""`rdf/terms/`: canonical forms, escapes, and other libraries' terms there and back."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import TermError
from construct_messages.rdf import terms
from construct_messages.rdf.terms import XSD, Term, parse_term
from tests.support.strategies import IRIS, LITERALS, TERMS, TEXT

CASES = [
    # what is read, and the canonical term
    ("<http://example.org/a>", "<http://example.org/a>"),
    (r"<http://example.org/\u00e9>", "<http://example.org/é>"),
    ("<urn:a>", "<urn:a>"),
    ('"x"', '"x"'),
    ("'x'", '"x"'),
    ("'a \"quoted\" one'", r'"a \"quoted\" one"'),
    (r'"\u0041\U00000042\t\'"', r'''"AB\t'"'''),
    ('"tab\there"', r'"tab\there"'),
    ('"\x01\x7f"', r'"\u0001\u007F"'),
    ('"\ufffd\ufffe\uffff\U0001fffe"', '"\ufffd\\uFFFE\\uFFFF\U0001fffe"'),
    ('"x"@EN-Gb', '"x"@en-gb'),
    ('"x"@en--ltr', '"x"@en--ltr'),
    (f'"x"^^<{XSD}string>', '"x"'),
    (f'"01"^^<{XSD}integer>', f'"01"^^<{XSD}integer>'),
    ("1", f'"1"^^<{XSD}integer>'),
    ("-1", f'"-1"^^<{XSD}integer>'),
    ("+1.0", f'"+1.0"^^<{XSD}decimal>'),
    (".5", f'".5"^^<{XSD}decimal>'),
    ("1e0", f'"1e0"^^<{XSD}double>'),
    ("1.5E-3", f'"1.5E-3"^^<{XSD}double>'),
    ("true", f'"true"^^<{XSD}boolean>'),
    ("_:b0", "_:b0"),
    ("_:0.a", "_:0.a"),
    ('<<( <urn:s> <urn:p> "a )>> b" )>>', '<<( <urn:s> <urn:p> "a )>> b" )>>'),
    ("<<(<urn:s> <urn:p> 1)>>", f'<<( <urn:s> <urn:p> "1"^^<{XSD}integer> )>>'),
    (
        "<<( _:s <urn:p> <<( <urn:s> <urn:p> _:o )>> )>>",
        "<<( _:s <urn:p> <<( <urn:s> <urn:p> _:o )>> )>>",
    ),
]


@pytest.mark.parametrize(("text", "canonical"), CASES, ids=[case[0] for case in CASES])
def test_parse_term(text: str, canonical: str) -> None:
    assert parse_term(text) == canonical
    assert parse_term(canonical) == canonical
    assert parse_term(f"  {text} ") == canonical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not an RDF term"),
        ("foo", "not an RDF term"),
        ("ex:a", "not an RDF term"),
        ("<a>", "relative"),
        ("<http://example.org/a b>", "not an RDF term"),
        ('"open', "not an RDF term"),
        ('"a" "b"', "after the term"),
        (r'"\q"', "unknown escape"),
        (r'"\uD800"', "is not a character"),
        (r'"\UFFFFFFFF"', "is not a character"),
        ('"x"@', "after the term"),
        ('"x"@en--up', "neither ltr nor rtl"),
        ("<<( <urn:s> <urn:p> )>>", "unexpected"),
        ("<<( <urn:s> <urn:p> <urn:o>", "not closed"),
        ("12abc", "not an RDF term"),
        ("1.2.3", "not an RDF term"),
        ("_:", "not an RDF term"),
    ],
)
def test_parse_term_refuses(text: str, words: str) -> None:
    with pytest.raises(TermError, match=words):
        parse_term(text)


@given(TERMS)
def test_canonical_terms_are_read_as_they_are(term: Term) -> None:
    assert parse_term(term) == term


@given(TERMS)
def test_canonical_is_what_pyoxigraph_writes(term: Term) -> None:
    assert terms.from_pyoxigraph(terms.to_pyoxigraph(term)) == term
    quad = ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), terms.to_pyoxigraph(term))
    assert (
        ox.serialize([quad], format=ox.RdfFormat.N_TRIPLES)
        == f"<urn:s> <urn:p> {term} .\n".encode()
    )


@given(st.one_of(IRIS, LITERALS))
def test_rdflib_there_and_back(term: Term) -> None:
    if "--" in term and terms.is_literal(term) and terms.literal_parts(term)[3]:
        with pytest.raises(TermError, match="base direction"):
            terms.to_rdflib(term)
    else:
        assert terms.from_rdflib(terms.to_rdflib(term)) == term


def test_rdflib_has_no_triple_terms() -> None:
    with pytest.raises(TermError, match="no triple terms"):
        terms.to_rdflib(parse_term("<<( <urn:s> <urn:p> <urn:o> )>>"))
    with pytest.raises(TermError, match="Variable"):
        terms.from_rdflib(rdflib.Variable("x"))


@given(TEXT)
def test_escape_and_back(text: str) -> None:
    assert terms.unescape(terms.escape(text)) == text
    assert not set(terms.escape(text)) & set("\n\r\t\x00\x7f\ufffe\uffff")


@given(st.text(min_size=1), st.text(min_size=1))
def test_blank_labels_stay_apart(a: str, b: str) -> None:
    assert (terms.blank(a, "d") == terms.blank(b, "d")) == (a == b)
    assert terms.blank(a, "d") != terms.blank(a, "p1_")
    assert ox.BlankNode(terms.blank(a, "d")[2:])


def test_iri_encodes_what_no_iri_may_hold() -> None:
    assert terms.iri('http://x y/<a>"é', encode=True) == "<http://x%20y/%3Ca%3E%22é>"
    with pytest.raises(TermError, match="which no IRI may"):
        terms.iri("http://x y/")
    with pytest.raises(TermError, match="which no IRI may"):
        terms.iri("http://x/\ud800", encode=True)


@given(TERMS)
def test_blanks_inside_a_term(term: Term) -> None:
    changed = terms.map_blanks(term, lambda blank: Term(f"<urn:{blank[2:]}>"))
    assert not terms.has_blank(changed)
    assert (changed != term) == terms.has_blank(term)
    assert terms.has_blank(term) == terms.has_blank(term, "d")
