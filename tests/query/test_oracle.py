"""Rewriting against Oxigraph: the W3C's tests, queries found in the wild, and random templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages import construct_messages
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.template import (
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
    legal,
)
from construct_messages.rdf.terms import (
    RDF,
    Term,
    boolean,
    from_pyoxigraph,
    iri,
    literal,
    number,
    triple,
)
from tests.support.places import shared_path
from tests.support.queries import page as queries_page
from tests.support.queries.oracle import KINDS, disagreement, value

pytestmark = [pytest.mark.suite, pytest.mark.slow]

W3C = "http://www.w3.org/tests/"


# --- the W3C's tests and the queries found in the wild ---------------------------------------------------------------


def test_w3c_syntax() -> None:
    shared_path("suites/w3c/construct-tests.tsv")
    count = 0
    for row, found in queries_page.w3c():
        count += 1
        if row["type"].startswith("Negative"):
            assert (
                queries_page.verdict(found) != "accepted" or found.name in queries_page.EXTENSIONS
            )
        else:
            assert found.passes, found
    assert count == 56


def test_w3c_evaluation() -> None:
    folder = shared_path("suites/w3c")
    evaluations = [
        row for row in queries_page.rows(folder / "construct-tests.tsv") if row["result"]
    ]
    assert len(evaluations) == 19
    for row in evaluations:
        store = ox.Store()
        if row["data"]:
            store.load(path=folder / row["data"], base_iri=W3C + row["data"])
        if row["graphData"]:
            name = W3C + row["graphData"]
            store.load(path=folder / row["graphData"], base_iri=name, to_graph=ox.NamedNode(name))
        query = (folder / row["query"]).read_text(encoding="utf-8")
        expected = graph(ox.parse(path=folder / row["result"], base_iri=W3C + row["result"]))
        for format, parser in LOGS.items():
            log = b"".join(
                construct_messages(query, store, base=W3C + row["query"]).serialize(format)
            )
            assert graph(ox.parse(log, parser)).isomorphic(expected), (row["name"], format)


LOGS = {
    "nt": ox.RdfFormat.N_TRIPLES,
    "nq": ox.RdfFormat.N_QUADS,
    "ttl": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
}


def graph(statements: Iterable[ox.Quad]) -> Message:
    return Message(
        Quad(*(from_pyoxigraph(term) for term in (quad.subject, quad.predicate, quad.object)))
        for quad in statements
    )


def test_queries_found_in_the_wild() -> None:
    shared_path("queries/INDEX.tsv")
    found = list(queries_page.wild())
    assert len(found) == 348
    assert [case for case in found if case.is_wrong] == []
    # what is accepted by Oxigraph as it is, and the others, mostly with graphs in the template
    accepted = [case for case in found if not case.oxigraph_original]
    assert (len(accepted), sum(case.passes for case in accepted)) == (299, 299)
    assert sum(case.passes for case in found) == 328


# --- random templates -------------------------------------------------------------------------------------------------

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
IRIS = [
    ("<urn:a>", "urn:a"),
    ("<urn:\\u0061>", "urn:a"),
    ("<b>", "http://e/b"),
    ("<#c>", "http://e/#c"),
    (":d", "http://e/d"),
    (":d.e:f", "http://e/d.e:f"),
    ("p:\\-x\\,", "http://p/-x,"),
    ("p:", "http://p/"),
    ("p:%41", "http://p/%41"),
]
LITERALS = [
    ('"a"', literal("a")),
    ("'a\\n\\'\\u00E9'", literal("a\n'é")),
    ('"""a"b\n"""', literal('a"b\n')),
    ("'''''a'''", literal("''a")),
    ('"a"@EN', literal("a", language="en")),
    ("'a'@en--rtl", literal("a", language="en", direction="rtl")),
    ('"a"^^<urn:t>', literal("a", datatype="urn:t")),
    ('"a" ^^ :t', literal("a", datatype="http://e/t")),
    (f'"a"^^<{XSD_STRING}>', literal("a")),
    ("1", number("1")),
    ("-1.50", number("-1.50")),
    ("+.5E-3", number("+.5E-3")),
    ("true", boolean("true")),
    ("false", boolean("false")),
]
PROLOGUE = "BASE <http://e/> PREFIX : <http://e/> PREFIX p: <http://p/> "


class Writer:
    """Writes a random template by the grammar, and beside it the triples that the grammar's meaning gives it.

    Blank nodes are numbered as they come and triples are not in order: templates are compared by what they give.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.tokens: list[str] = []
        self.variables: list[str] = []
        self.labels: dict[str, Blank] = {}
        self.blanks = 0
        self.patterns: list[Pattern] = []

    def text(self) -> str:
        spaces = st.sampled_from([" ", " ", "\n", "\t ", " # } ' <\n", "\r\n"])
        return "".join(self.draw(spaces) + token for token in self.tokens) + "\n"

    def put(self, *tokens: str) -> None:
        self.tokens.extend(tokens)

    def one_of(self, *choices: Callable[[], Slot]) -> Slot:
        return (self.draw(st.sampled_from(choices)) if self.has_room() else choices[0])()

    def chance(self, percent: int) -> bool:
        return self.has_room() and self.draw(st.integers(0, 99)) >= 100 - percent

    def has_room(self) -> bool:
        return len(self.tokens) < 60

    # terms

    def variable(self) -> Slot:
        name = self.draw(st.sampled_from("abc"))
        self.put(self.draw(st.sampled_from("?$")) + name)
        if name not in self.variables:
            self.variables.append(name)
        return Variable(self.variables.index(name))

    def iri(self) -> Slot:
        text, meant = self.draw(st.sampled_from(IRIS))
        self.put(text)
        return Constant(iri(meant))

    def literal(self) -> Slot:
        text, meant = self.draw(st.sampled_from(LITERALS))
        self.put(text)
        return Constant(meant)

    def fresh(self) -> Blank:
        self.blanks += 1
        return Blank(self.blanks - 1)

    def blank(self) -> Slot:
        if self.chance(30):
            self.put(*self.draw(st.sampled_from([("[]",), ("[", "]")])))
            return self.fresh()
        label = self.draw(st.sampled_from(["_:a", "_:b.c-1"]))
        self.put(label)
        if label not in self.labels:
            self.labels[label] = self.fresh()
        return self.labels[label]

    def nil(self) -> Slot:
        self.put("()")
        return Constant(iri(RDF + "nil"))

    def triple_term(self) -> Slot:
        self.put("<<(")
        slot = nested(self.inner(), self.verb(), self.inner())
        self.put(")>>")
        return slot

    def inner(self) -> Slot:
        return self.one_of(
            self.variable, self.variable, self.iri, self.blank, self.literal, self.triple_term
        )

    def term(self) -> Slot:
        simple = (self.variable, self.iri, self.blank)
        return self.one_of(
            *simple, *simple, *simple, self.literal, self.literal, self.nil, self.triple_term
        )

    def verb(self) -> Slot:
        if self.chance(20):
            self.put("a")
            return Constant(iri(RDF + "type"))
        return self.one_of(self.variable, self.iri, self.iri)

    # nodes

    def add(self, subject: Slot, predicate: str | Slot, object: Slot) -> None:
        verb = Constant(iri(RDF + predicate)) if isinstance(predicate, str) else predicate
        self.patterns.append(Pattern(subject, verb, object))

    def reifies(self, reifier: Slot, stated: Slot) -> Slot:
        self.add(reifier, "reifies", stated)
        return reifier

    def reifier(self, stated: Slot) -> Slot:
        self.put("~")
        if self.chance(40):
            return self.reifies(self.fresh(), stated)
        return self.reifies(self.one_of(self.variable, self.iri, self.blank), stated)

    def reified(self) -> Slot:
        event("reified triple")
        self.put("<<")
        subject = self.reified() if self.chance(15) else self.inner()
        verb = self.verb()
        object = self.reified() if self.chance(15) else self.inner()
        stated = nested(subject, verb, object)
        reifier = self.reifier(stated) if self.chance(50) else self.reifies(self.fresh(), stated)
        self.put(">>")
        return reifier

    def collection(self) -> Slot:
        event("collection")
        self.put("(")
        cells = [self.fresh() for _ in range(self.draw(st.integers(1, 3)))]
        for cell, rest in zip(cells, [*cells[1:], Constant(iri(RDF + "nil"))], strict=True):
            self.add(cell, "first", self.node())
            self.add(cell, "rest", rest)
        self.put(")")
        return cells[0]

    def property_list(self) -> Slot:
        event("property list")
        self.put("[")
        subject = self.fresh()
        self.properties(subject)
        self.put("]")
        return subject

    def node(self) -> Slot:
        if self.chance(25):
            return self.one_of(self.collection, self.property_list, self.reified)
        return self.term()

    # statements

    def properties(self, subject: Slot) -> None:
        while True:
            verb = self.verb()
            self.object(subject, verb)
            while self.chance(20):
                self.put(",")
                self.object(subject, verb)
            if not self.chance(25):
                return
            self.put(*[";"] * self.draw(st.integers(1, 2)))
            if self.chance(20):
                return

    def object(self, subject: Slot, verb: Slot) -> None:
        object = self.node()
        self.add(subject, verb, object)
        reifier: Slot | None = None
        while self.chance(20):
            if self.chance(50):
                reifier = self.reifier(nested(subject, verb, object))
            else:
                event("annotation")
                self.put("{|")
                self.properties(
                    reifier or self.reifies(self.fresh(), nested(subject, verb, object))
                )
                self.put("|}")
                reifier = None

    def template(self) -> None:
        count = self.draw(st.integers(0, 3))
        for index in range(count):
            if self.chance(30):
                subject = self.one_of(self.reified, self.collection, self.property_list)
                if self.chance(50):
                    self.properties(subject)
            else:
                self.properties(self.term())
            if index < count - 1 or self.chance(50):
                self.put(".")


def nested(subject: Slot, verb: Slot, object: Slot) -> Slot:
    slot = Nested(subject, verb, object)
    match slot:
        case Nested(Constant(s), Constant(p), Constant(o)) if legal(slot, "object"):
            return Constant(triple(s, p, o))
    return slot


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Template]:
    writer = Writer(draw)
    writer.template()
    return writer.text(), Template(tuple(writer.variables or ["solution"]), tuple(writer.patterns))


@settings(max_examples=3 * settings.default.max_examples)
@given(written())
def test_random_templates(case: tuple[str, Template]) -> None:
    inside, expected = case
    text = f"{PROLOGUE}CONSTRUCT{{{inside}}}WHERE{{}}"
    query = ConstructQuery.parse(text)
    assert query.template.variables == expected.variables
    assert len(query.template.patterns) == len(expected.patterns)
    for turn in range(KINDS):
        solution: list[Term] = [
            value(turn + index, index)[1] for index in range(len(query.template.variables))
        ]
        ours, theirs = (
            Message(template.instantiate(solution, 0)) for template in (query.template, expected)
        )
        assert ours.isomorphic(theirs)
    assert disagreement(text, query) == ""
    ox.Store().query(query.select)


@settings(max_examples=50, deadline=None)
@given(written(), written())
def test_random_graphs(default: tuple[str, Template], named: tuple[str, Template]) -> None:
    text = f"{PROLOGUE}CONSTRUCT {{ {default[0]} GRAPH ?g {{ {named[0]} }} }} WHERE {{}}"
    query = ConstructQuery.parse(text)
    assert disagreement(text, query) == ""
    graphs = {pattern.graph for pattern in query.template.patterns}
    assert graphs <= {None, Variable(query.template.variables.index("g"))}


@pytest.mark.parametrize(
    "text", ["?a <urn:p> 'x' . GRAPH <urn:g> { ?a <urn:q> [] }", "{ } GRAPH ?a { ?a ?a ?b }"]
)
def test_the_oracle_hears_a_difference(text: str) -> None:
    text = f"CONSTRUCT {{ {text} }} WHERE {{ }}"
    query = ConstructQuery.parse(text)
    assert disagreement(text, query) == ""
    spoilt = Template(
        query.template.variables,
        (
            *query.template.patterns[:-1],
            query.template.patterns[-1]._replace(object=Constant(iri("urn:other"))),
        ),
    )
    assert (
        disagreement(text, ConstructQuery(query.rewritten, spoilt, query.prefixes, query.base))
        != ""
    )
