"""Messages as people read them: nothing lost, nothing doubled, and blank nodes nested where that says the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import Message, Quad, iri, literal
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.terms import RDF, Term, parse_term
from construct_messages.server.streams.html.nesting import Node, Shown, card
from tests.support.http.streams import read

NODES = [Term(f"_:b{number}") for number in range(5)]
SUBJECTS = st.sampled_from([*NODES, iri("urn:s"), iri("urn:t")])
PREDICATES = st.sampled_from([iri("urn:p"), iri("urn:q"), iri(f"{RDF}first"), iri(f"{RDF}rest")])
OBJECTS = st.one_of(
    SUBJECTS,
    st.sampled_from([iri(f"{RDF}nil"), literal("a"), parse_term("<<( _:b0 <urn:p> _:b1 )>>")]),
)
GRAPHS = st.sampled_from([None, None, None, iri("urn:g"), NODES[0]])
MESSAGES = st.lists(st.builds(Quad, SUBJECTS, PREDICATES, OBJECTS, GRAPHS), max_size=14).map(
    Message
)


def no_links(_: str) -> str | None:
    return None


class Reading:
    """What a reader makes of a card: each node that has no label is one of its own."""

    def __init__(self, message: Message) -> None:
        self._new = 0
        self.quads = [
            quad
            for graph in card(message, no_links).graphs
            for subject in graph.subjects
            for quad in self._said(
                self._term(subject.term), subject, graph.name and self._term(graph.name)
            )
        ]

    def _said(self, subject: str, node: Node, graph: str | None) -> Iterator[str]:
        for predicate, objects in node.properties:
            for each in objects:
                object, further = self._object(each, graph)
                yield " ".join(filter(None, (subject, self._term(predicate), object, graph, ".")))
                yield from further

    def _object(self, node: Node, graph: str | None) -> tuple[str, list[str]]:
        if node.items:
            said, names = [], [self._name() for _ in node.items]
            for name, item, rest in zip(
                names, node.items, [*names[1:], f"<{RDF}nil>"], strict=True
            ):
                object, further = self._object(item, graph)
                said += [
                    " ".join(filter(None, (name, f"<{RDF}first>", object, graph, "."))),
                    *further,
                ]
                said.append(" ".join(filter(None, (name, f"<{RDF}rest>", rest, graph, "."))))
            return names[0], said
        if node.nested:
            name = self._name() if node.term.kind == "blank" else self._term(node.term)
            return name, list(self._said(name, node, graph))
        return self._term(node.term), []

    def _name(self) -> str:
        self._new += 1
        return f"_:new{self._new}"

    def _term(self, shown: Shown) -> str:
        match shown.kind:
            case "iri":
                return f"<{shown.title}>"
            case "literal":
                return str(literal(shown.text))
            case "triple":
                return f"<<( {' '.join(map(self._term, shown.parts))} )>>"
            case _:
                return shown.text


@given(MESSAGES)
def test_a_card_says_what_its_message_says(message: Message) -> None:
    lines = Reading(message).quads
    assert len(lines) == len(message)
    assert read("".join(f"{line}\n" for line in lines), N_QUADS).isomorphic(message)


def test_what_is_deep_is_at_the_top_again() -> None:
    chain = [Quad(Term(f"_:c{n}"), iri("urn:p"), Term(f"_:c{n + 1}")) for n in range(3000)]
    shown = card(Message(chain), no_links)
    assert (shown.quads, shown.omitted) == (3001 - 1, 2000)
    assert len(shown.graphs[0].subjects) > 50


@pytest.mark.parametrize("length", [2000, 2001, 1_000_000])
def test_long_literals_are_cut_and_say_so(length: int) -> None:
    message = Message([Quad(iri("urn:s"), iri("urn:p"), literal("x" * length))])
    shown = card(message, no_links).graphs[0].subjects[0].properties[0][1][0].term
    assert (len(shown.text), shown.omitted) == (2000, length - 2000)


def test_long_iris_are_cut_and_no_links() -> None:
    shown = (
        card(Message([Quad(iri("http://e/" + "x" * 5000), iri("urn:p"), literal("o"))]), str)
        .graphs[0]
        .subjects[0]
        .term
    )
    assert (shown.href, len(shown.text), len(shown.title), shown.omitted) == (
        None,
        2000,
        2000,
        3009,
    )
