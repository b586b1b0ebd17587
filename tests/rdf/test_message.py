"""`message.py`: quads and messages as values, and as other libraries' objects."""

from __future__ import annotations

import gc
import pickle
import random
import sys
from typing import Any
from xml.etree import ElementTree

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import TermError, UsageError
from construct_messages.logs.reading import read_log
from construct_messages.rdf import compiled
from construct_messages.rdf.message import Message, Quad, of_terms
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import XSD, Term, iri, literal, parse_term
from tests.support.strategies import SOLUTIONS, templates

S, P, O = iri("urn:s"), iri("urn:p"), iri("urn:o")  # noqa: E741 - the usual letter for an object


def test_a_message_is_a_set_of_quads() -> None:
    one, other = Quad(S, P, O), Quad(S, P, O, iri("urn:g"))
    message = Message([one, other, one])
    assert len(message) == 2
    assert list(message) == [one, other]
    assert one in message
    assert (S, P, O, None) in message
    assert Quad(O, P, S) not in message
    assert message == Message([other, one])
    assert hash(message) == hash(Message([other, one]))
    assert message != Message([one])
    assert message != [one, other]
    assert not Message()


def test_repr_shows_what_it_holds() -> None:
    assert repr(Message()) == "<Message, empty>"
    many = Message([Quad(S, P, Term(f'"{n}"')) for n in range(5)])
    assert (
        repr(many)
        == '<Message of 5 quads: <urn:s> <urn:p> "0" . <urn:s> <urn:p> "1" . <urn:s> <urn:p> "2" . …>'
    )


@given(templates(), SOLUTIONS, st.randoms())
def test_isomorphic(
    template: Template, solutions: list[tuple[Term, ...]], chance: random.Random
) -> None:
    quads = [
        quad
        for number, solution in enumerate(solutions)
        for quad in template.instantiate(solution, number)
    ]
    message = Message(quads)
    shuffled = list(message)
    chance.shuffle(shuffled)
    renamed = Message(shuffled).skolemize("urn:x:")
    assert Message(shuffled).isomorphic(message)
    other = Message(template.instantiate(solutions[0], 99))
    assert other.isomorphic(Message(template.instantiate(solutions[0], 100)))
    if message != renamed:
        assert not message.isomorphic(renamed)
    assert not message.isomorphic(Message([*message, Quad(iri("urn:more"), P, O)]))


@given(templates(), SOLUTIONS)
def test_to_pyoxigraph(template: Template, solutions: list[tuple[Term, ...]]) -> None:
    message = Message(template.instantiate(solutions[0], 0))
    lines = ox.serialize(message.to_pyoxigraph(), format=ox.RdfFormat.N_QUADS)
    assert lines == "".join(f"{quad}\n" for quad in message).encode()


def test_to_rdflib() -> None:
    message = Message(
        [
            Quad(S, P, parse_term('"01"^^<http://www.w3.org/2001/XMLSchema#integer>')),
            Quad(S, P, O, S),
        ]
    )
    dataset = message.to_rdflib()
    assert len(dataset.default_graph) == 1
    assert len(dataset.graph(rdflib.URIRef("urn:s"))) == 1
    assert {str(o) for o in dataset.default_graph.objects()} == {"01"}
    with pytest.raises(TermError, match="no triple terms"):
        Message([Quad(S, P, parse_term("<<( <urn:s> <urn:p> 1 )>>"))]).to_rdflib()


def test_skolemize_reaches_into_triple_terms() -> None:
    message = Message(
        [Quad(Term("_:da"), P, parse_term('<<( _:da <urn:p> "_:da" )>>'), Term("_:t0b0"))]
    )
    (quad,) = message.skolemize("https://example.org/genid/")
    a, t = "<https://example.org/genid/da>", "<https://example.org/genid/t0b0>"
    assert str(quad) == f'{a} <urn:p> <<( {a} <urn:p> "_:da" )>> {t} .'


# --- from other libraries ---------------------------------------------------------------------------------------------

TERMS = st.sampled_from(
    [
        "<urn:a>",
        "<http://example.org/é?q#f>",
        "_:b",
        "_:c",
        '"text"@en',
        '"a\\"\\n\\\\"',
        '"01"^^<urn:d>',
    ]
)
NODES = TERMS.filter(lambda term: not term.startswith('"'))
QUADS = st.lists(
    st.builds(
        Quad,
        NODES.map(Term),
        st.just(P),
        TERMS.map(Term),
        st.none() | st.sampled_from([iri("urn:g"), Term("_:g")]),
    ),
    max_size=8,
)


@given(QUADS)
def test_what_other_libraries_hold_comes_back(quads: list[Quad]) -> None:
    """Issue 13, what users missed: `from_rdflib` and `from_pyoxigraph`."""
    message = Message(quads)
    assert Message.from_pyoxigraph(message.to_pyoxigraph()) == message
    assert Message.from_pyoxigraph(ox.Dataset(message.to_pyoxigraph())) == message
    assert Message.from_rdflib(message.to_rdflib()) == message


def test_triples_of_pyoxigraph() -> None:
    triple = ox.Triple(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.NamedNode("urn:o"))
    assert Message.from_pyoxigraph([triple]) == Message([Quad(S, P, O)])
    nested = ox.Triple(ox.BlankNode("b"), ox.NamedNode("urn:p"), triple)
    assert Message.from_pyoxigraph([nested]).to_pyoxigraph() == [ox.Quad(*nested)]


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")
def test_graphs_of_rdflib() -> None:
    s, p, o = map(rdflib.URIRef, ("urn:s", "urn:p", "urn:o"))
    assert Message.from_rdflib(rdflib.Graph().add((s, p, o))) == Message([Quad(S, P, O)])
    assert Message.from_rdflib(rdflib.Graph()) == Message()
    conjunctive = rdflib.ConjunctiveGraph()
    conjunctive.add((s, p, o))
    conjunctive.get_context(s).add((o, p, s))
    assert Message.from_rdflib(conjunctive) == Message([Quad(S, P, O), Quad(O, P, S, S)])
    with pytest.raises(TermError, match="blank node label"):
        Message.from_rdflib(rdflib.Graph().add((rdflib.BNode("a b"), p, o)))
    with pytest.raises(TermError, match="Variable"):
        Message.from_rdflib(rdflib.Graph().add((rdflib.Variable("v"), p, o)))


# --- as terms in a row ------------------------------------------------------------------------------------------------


@given(
    QUADS.flatmap(
        lambda quads: st.lists(st.sampled_from(quads), max_size=12) if quads else st.just(quads)
    )
)
def test_terms_in_a_row_are_quads(quads: list[Quad]) -> None:
    def in_a_row() -> Message:
        return of_terms([term for quad in quads for term in quad])

    message = Message(quads)
    assert list(in_a_row()) == list(message)
    assert len(in_a_row()) == len(message)
    assert in_a_row() == message == in_a_row()
    assert hash(in_a_row()) == hash(message)
    assert in_a_row().quads == message.quads
    assert in_a_row().lines == message.lines == "".join(f"{quad}\n" for quad in message).encode()
    assert repr(in_a_row()) == repr(message)
    assert in_a_row().isomorphic(message)
    assert list(pickle.loads(pickle.dumps(in_a_row()))) == list(message)
    assert in_a_row().to_pyoxigraph() == message.to_pyoxigraph()


@pytest.mark.skipif(compiled.wire is None, reason="there is no compiled module")
@given(st.lists(st.tuples(*[st.sampled_from("abc")] * 3, st.sampled_from((None, "a")))), st.data())
def test_equal_statements_are_found(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    assert compiled.wire is not None
    different = list(dict.fromkeys(rows)) + [(f"{n}", "p", "o", None) for n in range(len(rows))]
    assert compiled.wire.are_distinct([term for row in different for term in row])
    if different:
        different.insert(
            data.draw(st.integers(0, len(different))), data.draw(st.sampled_from(different))
        )
        assert not compiled.wire.are_distinct([term for row in different for term in row])


def test_quads_are_made_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("construct_messages.rdf.message.make_quads", None)
        message = of_terms([S, P, O, None, S, P, S, O])
        assert len(message) == 2
        assert message.lines == b"<urn:s> <urn:p> <urn:o> .\n<urn:s> <urn:p> <urn:s> <urn:o> .\n"
        message = pickle.loads(pickle.dumps(message))
    assert list(message) == [Quad(S, P, O), Quad(S, P, S, O)]


def test_a_message_keeps_only_its_own_terms_alive() -> None:
    lines = [f'<urn:s{number}> <urn:p> "{number:0100}" .\nMESSAGE\n' for number in range(1000)]
    log = "".join(('VERSION "1.2-messages"\n', *lines)).encode()
    for made in (False, True):
        kept = list(read_log(log))[500]
        if made:
            assert list(kept)
        assert _size(kept) < 2000, "its terms are 150 characters; the block it was read with 30,000"


def _size(root: object) -> int:
    """The bytes of all that an object keeps alive, but for classes."""
    met = {id(root): root}
    waiting = [root]
    while waiting:
        for found in gc.get_referents(waiting.pop()):
            if id(found) not in met and not isinstance(found, type):
                met[id(found)] = found
                waiting.append(found)
    return sum(map(sys.getsizeof, met.values()))


PERSON = Message(
    [
        Quad(S, P, iri("urn:o")),
        Quad(S, P, literal(5), iri("urn:g")),
        Quad(O, P, literal(5)),
        Quad(S, iri("urn:age"), literal(7)),
    ]
)


def test_subjects_objects_and_values() -> None:
    assert PERSON.subjects(P) == [S, O]
    assert PERSON.subjects(object=literal(5)) == [S, O]
    assert PERSON.subjects(P, literal(7)) == []
    assert PERSON.objects(S) == [O, literal(5), literal(7)]
    assert PERSON.objects() == [O, literal(5), literal(7)]
    assert PERSON.value(O, P) == 5
    assert PERSON.value(S, iri("urn:age")) == 7
    assert PERSON.value(S, iri("urn:name"), default="") == ""
    assert PERSON.value(S, iri("urn:name")) is None


def test_values_that_are_not_one() -> None:
    with pytest.raises(UsageError, match="2 values there: <urn:o>"):
        PERSON.value(S, P)
    with pytest.raises(TermError, match="no value"):
        Message([Quad(S, P, literal("x", datatype=f"{XSD}integer"))]).value(S, P)
    for text in ("urn:s", "?s", ""):
        with pytest.raises(UsageError, match="no term"):
            PERSON.objects(text)  # type: ignore[arg-type] # what type checkers would say


def test_a_message_in_a_notebook() -> None:
    assert Message()._repr_html_() == "<p>Message of 0 quads</p>"
    hostile = Message([Quad(S, P, literal("<script>alert(1)</script>&"))] * 2)
    shown = hostile._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    many = Message(Quad(S, P, literal(n)) for n in range(1234))._repr_html_()
    assert many.count("<tr>") == 100
    assert many.startswith("<p>Message of 1,234 quads</p>")
    assert many.endswith("<p>and 1,134 more</p>")
    assert ElementTree.fromstring(f"<div>{shown}{many}</div>") is not None
