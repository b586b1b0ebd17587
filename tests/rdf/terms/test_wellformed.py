"""`rdf/terms/wellformed.py`: what is an IRI, what a language tag, what is passed; and that nothing else becomes a
term."""

from __future__ import annotations

import logging
import re

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from construct_messages.errors import TermError
from construct_messages.rdf import terms
from construct_messages.rdf.terms import (
    RDF,
    USUAL_ASCII_IRI,
    USUAL_IRI,
    USUAL_LANGUAGE,
    Lenience,
    parse_term,
)
from construct_messages.rdf.terms.wellformed import (
    MALFORMED_IRI,
    MALFORMED_LANGUAGE,
    percent_encoded,
)
from tests.support.strategies import HOSTILE_IRIS, HOSTILE_LANGUAGES

MALFORMED_IRIS = {
    "lone percent": "http://e/100%",
    "no hexadecimal": "http://e/%zz",
    "bracket": "http://e/[",
    "two fragments": "http://e/a#b#c",
    "bad port": "http://e:80x/",
    "private use": "http://e/\ue000",
    "noncharacter": "http://e/\ufffe",
    "delete": "http://e/\x7f",
    "C1": "http://e/\x85",
}
"""What syntax can carry, and what is no IRI."""
IMPOSSIBLE_IRIS = {
    "empty": "",
    "relative": "a",
    "no scheme": "//e/",
    "space": "http://e/a b",
    "bracket": "http://e/>",
    "quote": 'http://e/"',
    "NUL": "http://e/\0",
    "line feed": "http://e/\n",
    "surrogate": "http://e/\ud800",
    "backslash": "http://e/\\",
}
"""What no syntax can carry, or means another IRI wherever it is read."""
MALFORMED_LANGUAGES = ["a", "abcdefghijk", "zh-classical"]


@pytest.mark.parametrize("value", MALFORMED_IRIS.values(), ids=MALFORMED_IRIS)
def test_malformed_iris_are_refused_or_passed_and_counted(value: str) -> None:
    """Issue 13, 9: what no reader takes for an IRI is no term, unless leniently."""
    for make in (terms.iri, lambda value: parse_term(f"<{value}>")):
        with pytest.raises(TermError, match="is no IRI"):
            make(value)
    with pytest.raises(TermError, match="is no IRI"):
        terms.literal("x", datatype=value)
    lenience = Lenience()
    assert (
        terms.iri(value, lenience=lenience)
        == parse_term(f"<{value}>", lenience=lenience)
        == f"<{value}>"
    )
    assert terms.literal("x", datatype=value, lenience=lenience) == f'"x"^^<{value}>'
    assert lenience.counts == {MALFORMED_IRI: 3}
    assert lenience.firsts == {MALFORMED_IRI: f"<{value}>"}


@pytest.mark.parametrize("value", IMPOSSIBLE_IRIS.values(), ids=IMPOSSIBLE_IRIS)
def test_what_no_syntax_carries_is_never_passed(value: str) -> None:
    lenience = Lenience(mends=False)
    for given_lenience in (None, lenience, Lenience("skip"), Lenience("strict")):
        with pytest.raises(TermError):
            terms.iri(value, lenience=given_lenience)
    assert not lenience.passed


@pytest.mark.parametrize("value", IMPOSSIBLE_IRIS.values(), ids=IMPOSSIBLE_IRIS)
def test_what_no_syntax_carries_is_encoded_or_resolved(value: str) -> None:
    lenience = Lenience(base="http://example.org/dir/")
    if any(char in value for char in "\ud800\n"):  # no text at all, or an IRI that does not end
        with pytest.raises(TermError):
            terms.iri(value, lenience=lenience)
        return
    found = terms.iri(value, lenience=lenience)
    assert parse_term(found, lenience=Lenience(mends=False)) == found
    assert lenience.passed == 1


@pytest.mark.parametrize("tag", MALFORMED_LANGUAGES)
def test_malformed_language_tags(tag: str) -> None:
    """Issue 13, 9: neither is a tag that is none by RFC 5646."""
    with pytest.raises(TermError, match="is not a language tag"):
        terms.literal("x", language=tag)
    with pytest.raises(TermError, match="is not a language tag"):
        parse_term(f'"x"@{tag}')
    lenience = Lenience()
    assert terms.literal("x", language=tag, lenience=lenience) == f'"x"@{tag}'
    assert parse_term(f'"x"@{tag}--rtl', lenience=lenience) == f'"x"@{tag}--rtl'
    assert lenience.counts == {MALFORMED_LANGUAGE: 2}


@pytest.mark.parametrize("name", ["langString", "dirLangString"])
def test_datatypes_that_need_a_language(name: str) -> None:
    with pytest.raises(TermError, match="no language tag"):
        terms.literal("x", datatype=RDF + name)
    with pytest.raises(TermError, match="no language tag"):
        terms.literal("x", datatype=RDF + name, lenience=Lenience("skip"))
    strict, lenience = Lenience("strict"), Lenience()
    assert terms.literal("x", datatype=RDF + name, lenience=strict) == '"x"'
    assert terms.literal("x", datatype=RDF + name, lenience=lenience) == f'"x"^^<{RDF}{name}>'
    assert strict.passed == lenience.passed == 1


@pytest.mark.parametrize(
    "text",
    [
        '<<( "x" <urn:p> <urn:o> )>>',
        "<<( <<( <urn:s> <urn:p> <urn:o> )>> <urn:p> 1 )>>",
        "<<( <urn:s> _:p <urn:o> )>>",
    ],
)
def test_terms_out_of_place_make_no_triple_term(text: str) -> None:
    with pytest.raises(TermError, match=r"cannot be the (subject|predicate) of a triple term"):
        parse_term(text)


@given(HOSTILE_IRIS)
@example("http://e/a?\ue000")
@example("http://e/a#b?\ue000")
def test_an_iri_is_what_pyoxigraph_reads(value: str) -> None:
    try:
        term = terms.iri(value)
    except TermError:
        with pytest.raises((SyntaxError, UnicodeEncodeError)):
            list(ox.parse(f"<{value}> <urn:p> <urn:o> .".encode(), format=ox.RdfFormat.N_TRIPLES))
    else:
        (quad,) = ox.parse(f"{term} <urn:p> <urn:o> .", format=ox.RdfFormat.N_TRIPLES)
        assert str(quad.subject) == term == parse_term(term)


@given(HOSTILE_LANGUAGES)
def test_a_language_tag_is_what_pyoxigraph_reads(tag: str) -> None:
    try:
        term = terms.literal("x", language=tag)
    except TermError:
        with pytest.raises(SyntaxError):
            list(ox.parse(f'<urn:s> <urn:p> "x"@{tag} .', format=ox.RdfFormat.N_TRIPLES))
    else:
        if tag:
            (quad,) = ox.parse(f"<urn:s> <urn:p> {term} .", format=ox.RdfFormat.N_TRIPLES)
            assert str(quad.object) == term == parse_term(term)


@given(HOSTILE_IRIS)
def test_patterns_take_nothing_but_iris(value: str) -> None:
    for pattern in (USUAL_IRI, USUAL_ASCII_IRI):
        if re.fullmatch(pattern, value):
            assert terms.is_iri(value)
        # as in a line, and among others
        if (match := re.fullmatch(f"<({pattern})>", f"<{value}>")) is not None:
            assert terms.is_iri(match[1])


@given(st.from_regex(USUAL_LANGUAGE, fullmatch=True))
def test_the_pattern_takes_nothing_but_language_tags(tag: str) -> None:
    assert terms.is_language(tag)
    assert tag == tag.lower()


@given(HOSTILE_IRIS)
def test_percent_encoding_makes_iris_of_legacy_ones(value: str) -> None:
    if terms.is_iri(value):
        assert percent_encoded(value) == value
    try:
        term = terms.iri(value, encode=True)
    except TermError:
        return
    assert parse_term(term) == term


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("http://e/a b", "http://e/a%20b"),
        ("http://e/\ue000?\ue000#\ue000", "http://e/%EE%80%80?\ue000#%EE%80%80"),
        ("http://e/#?\ue000", "http://e/#?%EE%80%80"),
        ("http://e/\x7f\x85\ufffe", "http://e/%7F%C2%85%EF%BF%BE"),
    ],
)
def test_what_is_percent_encoded(value: str, encoded: str) -> None:
    assert terms.iri(value, encode=True) == f"<{encoded}>"


@pytest.mark.parametrize("value", ["http://e/100%", "http://e/[", "http://e/##", "http://e:x/"])
def test_what_is_not_percent_encoded(value: str) -> None:
    """A lone `%` would become another IRI, as what was meant cannot be told."""
    with pytest.raises(TermError, match="is no IRI"):
        terms.iri(value, encode=True)


@given(HOSTILE_IRIS, HOSTILE_LANGUAGES)
def test_what_is_passed_is_read_again(value: str, tag: str) -> None:
    lenience = Lenience()
    made = []
    for make in (
        lambda: terms.iri(value, lenience=lenience),
        lambda: terms.literal("x", language=tag, lenience=lenience),
        lambda: terms.literal("x", datatype=value, lenience=lenience),
    ):
        try:
            made.append(make())
        except TermError:
            continue
    for term in made:
        assert parse_term(term, lenience=Lenience()) == term
        (quad,) = ox.parse(f"<urn:s> <urn:p> {term} .", format=ox.RdfFormat.N_TRIPLES, lenient=True)
        assert terms.from_pyoxigraph(quad.object, lenience=Lenience()) == term


def test_the_report(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    lenience = Lenience()
    with caplog.at_level(logging.WARNING):
        lenience.report("a.nt")
        assert not caplog.records
        terms.iri("http://e/100%", lenience=lenience)
        terms.literal("x", language="a", lenience=lenience)
        terms.literal("x", language="a", lenience=lenience)
        lenience.report("a.nt")
    (record,) = caplog.records
    assert record.getMessage() == (
        "a.nt: passed as found: 1 malformed IRI (the first: <http://e/100%>),"
        " 2 malformed language tags (the first: @a)"
    )
    assert capsys.readouterr().out == ""
