"""`checking.py`: what a caller hands over is RDF, or refused by name; in every format and syntax, from every door."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages import Message, Quad, read_log, write_log
from construct_messages.errors import ConstructMessagesError, TermError, UsageError
from construct_messages.logs.checking import Checker
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.lines.decoder import lines_read_back
from construct_messages.rdf.formats import FORMATS
from construct_messages.rdf.terms import Lenience, Term, iri, literal, triple

S, P, O = (iri(f"http://e/{name}") for name in "spo")  # noqa: E741 - as RDF has it
ONE = Message([Quad(S, P, O)])

REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "no terms": (("urn:a", "urn:b", "urn:c"), "'urn:a' is not an RDF term"),
    "a literal as subject": ((literal("x"), P, O), '"x" cannot be the subject'),
    "a triple term as subject": ((triple(S, P, O), P, O), "cannot be the subject"),
    "a blank node as predicate": ((S, Term("_:p"), O), "_:p cannot be the predicate"),
    "a literal as predicate": ((S, literal("x"), O), '"x" cannot be the predicate'),
    "a literal as graph": ((S, P, O, literal("g")), '"g" cannot be the graph'),
    "a triple term with a literal as subject": (
        (S, P, triple(literal("x"), P, O, generalized=True)),
        '"x" cannot be the subject of a triple term',
    ),
    "a malformed IRI": ((Term("<http://e/100%>"), P, O), "<http://e/100%> is no IRI"),
    "a malformed IRI as object": ((S, P, Term("<http://e/100%>")), "<http://e/100%> is no IRI"),
    "a malformed IRI within": (
        (S, P, Term("<<( <http://e/s> <http://e/[> <http://e/o> )>>")),
        "is no IRI",
    ),
    "a relative IRI": ((S, P, Term("<a>")), "IRI <a> is relative"),
    "no IRI": ((S, P, Term("<>")), "IRI <> is relative"),
    "two terms": ((S, P, Term(f"{O} .\n{S} {P} {O}")), "unexpected"),
    "white space": ((S, P, Term(f" {O}")), "is not canonical"),
    "a malformed tag": ((S, P, Term('"x"@a')), "'a' is not a language tag"),
    "a tag in capitals": ((S, P, Term('"x"@EN')), "is not canonical"),
    "a line break": ((S, P, Term('"a\nb"')), "is not an RDF term"),
    "NUL": ((S, P, Term('"a\0b"')), "is not canonical"),
    "no character": ((S, P, Term('"\uffff"')), "is not canonical"),
    "a surrogate": ((S, P, Term('"\ud800"')), "holds a surrogate"),
    "a needless escape": ((S, P, Term(r'"\u0041"')), "is not canonical"),
    "xsd:string": (
        (S, P, Term('"x"^^<http://www.w3.org/2001/XMLSchema#string>')),
        "is not canonical",
    ),
    "a label that none can write": ((S, P, Term("_:a b")), "unexpected"),
    "a label with a dot at its end": ((S, P, Term("_:a.")), "unexpected"),
    "unbound": ((S, P, Term("")), "is not an RDF term"),
    "None": ((None, P, O), "the subject is None, no term"),
    "another library's term": ((S, P, 5), "the object is 5, no term"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_rdf_is_refused_by_name(case: str, tmp_path: Path) -> None:
    """Issue 13, 9: it was written, with no error, for nobody to read."""
    parts, words = REFUSED[case]
    quad = Quad(*parts)
    for format in FORMATS:
        path = tmp_path / f"log.{format.extension}"
        with pytest.raises(TermError) as error:
            write_log([ONE, Message([Quad(S, P, literal("first")), quad])], path)
        assert error.value.message.startswith("message 2: ")
        assert words in error.value.message
        assert error.value.hint
        assert not path.exists()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_rdf_is_not_read_back(case: str) -> None:
    assert lines_read_back(Message([Quad(*REFUSED[case][0])])) is None


@pytest.mark.parametrize("case", REFUSED)
def test_objects_of_pyoxigraph_are_rdf_or_an_error_of_ours(case: str) -> None:
    """Issue 13, 9: it was a bare ValueError."""
    message = Message([Quad(*REFUSED[case][0])])
    try:
        quads = message.to_pyoxigraph()
    except ConstructMessagesError:
        return
    # what is only not canonical, it takes
    assert (
        list(
            ox.parse(ox.serialize(quads, format=ox.RdfFormat.N_QUADS), format=ox.RdfFormat.N_QUADS)
        )
        == quads
    )


NO_MESSAGES: dict[str, tuple[Any, str]] = {
    "quads": (Quad(S, P, O), "is a Quad"),
    "text": (f"{S} {P} {O} .", "is a str"),
}


@pytest.mark.parametrize("case", NO_MESSAGES)
def test_what_is_no_message(case: str) -> None:
    given, words = NO_MESSAGES[case]
    with pytest.raises(UsageError, match=f"message 2.*{words}"):
        write_log([ONE, given], io.BytesIO())


def test_what_was_read_is_not_looked_at_again() -> None:
    (message,) = read_log(b"<urn:s> <urn:p> <urn:o> .")
    assert message.checked
    assert not Message(message).checked
    Checker().check(again := Message(message))
    assert again.checked


def test_lenience() -> None:
    dirty = Message([Quad(Term("<http://e/100%>"), P, Term('"x"@a'))])
    lenience = Lenience()
    Checker(lenience).check(dirty)
    assert (lenience.passed, dirty.checked) == (2, False)
    log = io.BytesIO()
    assert write_log([dirty], log, "nt", lenient=True) == 1
    assert log.getvalue() == b'# @message\n<http://e/100%> <http://e/p> "x"@a .\n'
    with pytest.raises(TermError):
        write_log([Message([Quad(literal("x"), P, O)])], io.BytesIO(), lenient=True)


def test_generalized_statements() -> None:
    """Jelly carries them, where its options say so."""
    wide = Message([Quad(literal("x"), P, triple(literal("x"), P, O, generalized=True))])
    log = io.BytesIO()
    options = JellyOptions(generalized_statements=True, rdf_star=True)
    assert write_log([wide], log, "jelly", options=options) == 1
    assert not wide.checked
    with pytest.raises(TermError):
        write_log([wide], log, "jelly")
    with pytest.raises(TermError, match="is not canonical"):
        write_log([Message([Quad(Term('"x"@EN'), P, O)])], log, "jelly", options=options)


def test_many_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("construct_messages.logs.checking._MOST", 3)
    checker = Checker()
    for number in range(10):
        checker.check(
            Message([Quad(iri(f"urn:{number}"), P, literal("x", datatype=f"urn:{number}"))])
        )
    with pytest.raises(TermError, match="message 11"):
        checker.check(Message([Quad(literal("x"), P, O)]))
