"""The union of the messages is the graph of the CONSTRUCT: random templates, with Oxigraph as the oracle."""

from __future__ import annotations

from collections import Counter

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages import construct_messages
from construct_messages.rdf import terms
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.template import Blank, Constant, Pattern, Slot, Template, Variable
from construct_messages.rdf.terms import Term, parse_term
from tests.support.strategies import DATA_BLANKS, IRIS, LITERALS

# --- union of messages = CONSTRUCT -----------------------------------------------------------------------------------

WHERES = [
    "{ ?a ?b ?c }",
    "{ ?a ?b ?c OPTIONAL { ?c ?e ?d } }",
    "{ ?a ?e ?b OPTIONAL { ?b ?f ?c OPTIONAL { ?c ?g ?d } } }",
    "{ { ?a ?b ?c } UNION { ?d ?b ?a } }",
    "{ ?e ?f ?a . ?e ?b ?c OPTIONAL { ?e ?f ?d FILTER(isLiteral(?d)) } }",
]
SUBJECTS = (
    st.sampled_from([parse_term(f"<http://example.org/{name}>") for name in "ab"]) | DATA_BLANKS
)
PREDICATES = st.sampled_from([parse_term(f"<http://example.org/{name}>") for name in "pq"])
TRIPLES = st.tuples(SUBJECTS, PREDICATES, st.one_of(SUBJECTS, SUBJECTS, LITERALS, IRIS))
VARIABLES = tuple("abcd")
VARIABLE = st.sampled_from([Variable(index) for index in range(4)])
SUBJECT: st.SearchStrategy[Slot] = st.sampled_from(
    [VARIABLE, VARIABLE, st.integers(0, 1).map(Blank)]
).flatmap(lambda slot: slot)
OBJECT: st.SearchStrategy[Slot] = st.one_of(SUBJECT, SUBJECT, st.builds(Constant, LITERALS))
PATTERN = st.builds(
    Pattern, SUBJECT, st.one_of(st.builds(Constant, PREDICATES), VARIABLE), OBJECT, st.none()
)


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[Pattern], str]:
    """A template and a WHERE; in half of them ?d is ?a, and two triples that are equal then."""
    patterns, where = draw(st.lists(PATTERN, min_size=1, max_size=4)), draw(st.sampled_from(WHERES))
    if draw(st.booleans()):
        where = "{ ?a ?b ?c BIND(?a AS ?d) }"
        predicate, object = draw(st.builds(Constant, PREDICATES)), draw(OBJECT)
        patterns += [Pattern(Variable(VARIABLES.index(name)), predicate, object) for name in "ad"]
    return patterns, where


def sparql(slot: Slot) -> str:
    match slot:
        case Variable(index):
            return f"?{VARIABLES[index]}"
        case Blank(index):
            return f"_:b{index}"
        case Constant(term):
            return term
    raise AssertionError(slot)


def as_dataset(quads: list[ox.Quad]) -> ox.Dataset:
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def check_union(
    triples: list[tuple[Term, Term, Term]], patterns: list[Pattern], where: str
) -> dict[str, bool]:
    """One example; says what happened in it."""
    store = ox.Store()
    for triple in triples:
        store.add(ox.Quad(*map(terms.to_pyoxigraph, triple)))  # type: ignore[arg-type]
    text = " . ".join(" ".join(map(sparql, (p.subject, p.predicate, p.object))) for p in patterns)
    query = f"CONSTRUCT {{ {text} }} WHERE {where}"
    stream = construct_messages(query, store, label_prefix="x")
    messages = list(stream)

    # one message per solution, in the order of the SELECT
    names = stream.query.template.variables
    solutions = list(store.query(stream.select))
    assert len(messages) == len(solutions)
    values = [
        tuple(
            "" if (v := solution[name]) is None else terms.from_pyoxigraph(v, "x_d")
            for name in names
        )
        for solution in solutions
    ]
    template = stream.query.template.labelled(Labels("x"))
    assert [list(m) for m in messages] == [
        template.instantiate(value, n) for n, value in enumerate(values)
    ]  # type: ignore[arg-type]

    # their union is what the engine's own CONSTRUCT says
    own = [ox.Quad(t.subject, t.predicate, t.object) for t in store.query(query)]
    united = [quad for message in messages for quad in message.to_pyoxigraph()]
    assert as_dataset(united) == as_dataset(own)

    # the log by the fast path is the log by the slow path, and plain parsers read it
    log = b"".join(construct_messages(query, store, label_prefix="x").serialize("nq"))
    assert as_dataset(list(ox.parse(log, ox.RdfFormat.N_QUADS))) == as_dataset(united)
    slow = "".join(
        "# @message\n" + "".join(f"{quad}\n" for quad in message) for message in messages
    )
    assert log == slow.encode()

    used = {slot.index for p in template.patterns for slot in p if isinstance(slot, Variable)}
    subjects = {p.subject.index for p in template.patterns if isinstance(p.subject, Variable)}
    return {
        "unbound variable": any(not value[index] for value in values for index in used),
        "literal subject": any(
            value[index].startswith('"') for value in values for index in subjects
        ),
        "shared blank node": len({m for m in messages if any("_:x_d" in str(q) for q in m)}) > 1,
        "duplicate inside a message": any(
            len(m) < sum(len(Template(names, (p,)).instantiate(v, 0)) for p in template.patterns)  # type: ignore[arg-type]
            for m, v in zip(messages, values, strict=True)
        ),
    }


@given(st.lists(TRIPLES, min_size=1, max_size=8), queries())
def test_union_of_messages_is_construct(
    triples: list[tuple[Term, Term, Term]], query: tuple[list[Pattern], str]
) -> None:
    for what, happened in check_union(triples, *query).items():
        event(f"{what}: {happened}")


@pytest.mark.slow
def test_the_union_property_meets_what_it_is_about() -> None:
    counts: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True)
    @given(st.lists(TRIPLES, min_size=1, max_size=8), queries())
    def count(triples: list[tuple[Term, Term, Term]], query: tuple[list[Pattern], str]) -> None:
        counts["examples"] += 1
        counts.update(what for what, happened in check_union(triples, *query).items() if happened)

    count()
    examples = counts.pop("examples")
    assert len(counts) == 4
    assert min(counts.values()) >= examples / 10, (counts, examples)
