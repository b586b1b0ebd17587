"""`template.py`: SPARQL's rules for instantiation (SPARQL 1.2 Query, section 16.2), case by case."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.rdf.template import (
    FORBIDDEN,
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
    coinciding,
    may_coincide,
)
from construct_messages.rdf.terms import Term, has_blank, triple_parts
from tests.support.strategies import SOLUTIONS, templates

S, P, O, G = (Constant(Term(f"<urn:{name}>")) for name in "spog")  # noqa: E741 - the usual letter for an object
X, Y = Variable(0), Variable(1)
LITERAL, BLANK, IRI, NESTED = (
    Term('"x"'),
    Term("_:dx"),
    Term("<urn:x>"),
    Term("<<( <urn:s> <urn:p> <urn:o> )>>"),
)

# (name, patterns, solution, quads)
CASES: list[tuple[str, tuple[Pattern, ...], tuple[str, ...], list[str]]] = [
    ("bound", (Pattern(X, P, Y),), (IRI, LITERAL), ['<urn:x> <urn:p> "x" .']),
    ("unbound object", (Pattern(X, P, Y), Pattern(X, P, O)), (IRI, ""), ["<urn:x> <urn:p> <urn:o> ."]),
    ("unbound graph", (Pattern(S, P, O, X),), ("", ""), []),
    ("literal subject", (Pattern(X, P, O), Pattern(S, P, X)), (LITERAL, ""), ['<urn:s> <urn:p> "x" .']),
    ("triple term subject", (Pattern(X, P, O), Pattern(S, P, X)), (NESTED, ""), [f"<urn:s> <urn:p> {NESTED} ."]),
    ("blank subject", (Pattern(X, P, O),), (BLANK, ""), ["_:dx <urn:p> <urn:o> ."]),
    ("literal predicate", (Pattern(S, X, O),), (LITERAL, ""), []),
    ("blank predicate", (Pattern(S, X, O),), (BLANK, ""), []),
    ("triple term predicate", (Pattern(S, X, O),), (NESTED, ""), []),
    ("iri predicate", (Pattern(S, X, O),), (IRI, ""), ["<urn:s> <urn:x> <urn:o> ."]),
    ("literal graph", (Pattern(S, P, O, X),), (LITERAL, ""), []),
    ("triple term graph", (Pattern(S, P, O, X),), (NESTED, ""), []),
    ("blank graph", (Pattern(S, P, O, X),), (BLANK, ""), ["<urn:s> <urn:p> <urn:o> _:dx ."]),
    ("constant literal subject", (Pattern(Constant(LITERAL), P, O), Pattern(S, P, O)), ("", ""), [
        "<urn:s> <urn:p> <urn:o> ."
    ]),
    ("template blanks", (Pattern(Blank(0), P, Blank(1)), Pattern(Blank(1), P, Blank(0))), ("", ""), [
        "_:x_t7b0 <urn:p> _:x_t7b1 .",
        "_:x_t7b1 <urn:p> _:x_t7b0 .",
    ]),
    ("template blank predicate", (Pattern(S, Blank(0), O),), ("", ""), []),
    ("same triple twice", (Pattern(X, P, Y), Pattern(Y, P, X)), (IRI, IRI), ["<urn:x> <urn:p> <urn:x> ."]),
    ("same triple in two graphs", (Pattern(S, P, O), Pattern(S, P, O, G)), ("", ""), [
        "<urn:s> <urn:p> <urn:o> .",
        "<urn:s> <urn:p> <urn:o> <urn:g> .",
    ]),
    ("nested", (Pattern(S, P, Nested(X, P, Y)),), (IRI, LITERAL), ['<urn:s> <urn:p> <<( <urn:x> <urn:p> "x" )>> .']),
    ("nested blank", (Pattern(S, P, Nested(Blank(0), P, Y)),), ("", LITERAL), [
        '<urn:s> <urn:p> <<( _:x_t7b0 <urn:p> "x" )>> .'
    ]),
    ("nested unbound", (Pattern(S, P, Nested(X, P, Y)),), (IRI, ""), []),
    ("nested literal subject", (Pattern(S, P, Nested(X, P, O)),), (LITERAL, ""), []),
    ("nested triple subject", (Pattern(S, P, Nested(X, P, O)),), (NESTED, ""), []),
    ("nested blank predicate", (Pattern(S, P, Nested(S, X, O)),), (BLANK, ""), []),
    ("nested as subject", (Pattern(Nested(X, P, O), P, O),), (IRI, ""), []),
    ("nested in nested", (Pattern(S, P, Nested(S, P, Nested(X, P, Y))),), (IRI, LITERAL), [
        '<urn:s> <urn:p> <<( <urn:s> <urn:p> <<( <urn:x> <urn:p> "x" )>> )>> .'
    ]),
    ("nested in nested unbound", (Pattern(S, P, Nested(S, P, Nested(X, P, Y))),), (IRI, ""), []),
    ("variable and blank of one index", (Pattern(S, P, Nested(X, P, O)), Pattern(S, P, Nested(Blank(0), P, O))), (
        IRI, "",
    ), ["<urn:s> <urn:p> <<( <urn:x> <urn:p> <urn:o> )>> .", "<urn:s> <urn:p> <<( _:x_t7b0 <urn:p> <urn:o> )>> ."]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("patterns", "solution", "quads"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_instantiate(
    patterns: tuple[Pattern, ...], solution: tuple[Term, ...], quads: list[str]
) -> None:
    assert [
        str(quad) for quad in Template(("x", "y"), patterns, Labels("x")).instantiate(solution, 7)
    ] == quads


def _by_the_book(slot: Slot, solution: tuple[Term, ...], position: str) -> str | None:
    """SPARQL's rules once more, as slowly as they read."""
    match slot:
        case Variable(index):
            term: str | None = solution[index] or None
        case Constant(term):
            pass
        case Blank(index):
            term = f"_:x_t3b{index}"
        case Nested():
            parts = [
                _by_the_book(part, solution, name)
                for part, name in zip(slot, FORBIDDEN, strict=False)
            ]
            term = None if None in parts else f"<<( {' '.join(map(str, parts))} )>>"
    kind = (
        None
        if term is None
        else "triple"
        if term[:3] == "<<("
        else {"<": "iri", "_": "blank", '"': "literal"}[term[0]]
    )
    allowed = {
        "subject": {"iri", "blank"},
        "predicate": {"iri"},
        "object": {"iri", "blank", "literal", "triple"},
        "graph": {"iri", "blank"},
    }
    return term if kind in allowed[position] else None


@given(templates(), SOLUTIONS)
def test_instantiate_by_the_book(template: Template, solutions: list[tuple[Term, ...]]) -> None:
    for solution in solutions:
        expected = {}
        for pattern in template.patterns:
            parts = [
                _by_the_book(slot, solution, name) if slot is not None else ""
                for slot, name in zip(pattern, FORBIDDEN, strict=True)
            ]
            if None not in parts:
                expected[tuple(part or None for part in parts)] = None
        assert [
            tuple(quad) for quad in template.labelled(Labels("x")).instantiate(solution, 3)
        ] == list(expected)


@given(templates(), SOLUTIONS, st.integers(0, 1000))
def test_by_column_as_one_by_one(
    template: Template, solutions: list[tuple[Term, ...]], first: int
) -> None:
    columns = [list(column) for column in zip(*solutions, strict=True)]
    expected = [
        tuple(template.instantiate(solution, number))
        for number, solution in enumerate(solutions, first)
    ]
    assert list(template.instantiate_all(columns, first)) == expected


def test_by_column_of_constants() -> None:
    constant = Constant(Term("<urn:a>"))
    template = Template(("x",), (Pattern(constant, constant, constant),) * 2)
    quad = Quad(constant.term, constant.term, constant.term)
    assert list(template.instantiate_all([[Term(""), Term('"x"')]], 0)) == [(quad,), (quad,)]


@given(templates(), SOLUTIONS)
def test_what_may_not_coincide_does_not(
    template: Template, solutions: list[tuple[Term, ...]]
) -> None:
    for solution in solutions:
        for i, a in enumerate(template.patterns):
            for b in template.patterns[:i]:
                quads = [
                    Template(template.variables, (p,), template.labels).instantiate(solution, 0)
                    for p in (a, b)
                ]
                if quads[0] and quads[0] == quads[1]:
                    assert may_coincide(a, b)
                    assert may_coincide(b, a)


@given(templates())
def test_coinciding_patterns_are_those_that_may(template: Template) -> None:
    patterns = (*template.patterns, *template.patterns[:1])
    pairs = combinations(range(len(patterns)), 2)
    assert sorted(coinciding(patterns)) == [
        (i, j) for i, j in pairs if may_coincide(patterns[i], patterns[j])
    ]


@pytest.mark.parametrize("slots", ["subjects", "predicates", "objects", "blanks and variables"])
def test_patterns_that_differ_are_not_compared(slots: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 14: of a thousand patterns Spark compared half a million pairs."""
    compared = []
    monkeypatch.setattr(
        "construct_messages.rdf.template.may_coincide", lambda *pair: compared.append(pair)
    )
    s, p, o = Variable(0), Constant(Term("<urn:p>")), Variable(1)
    others = [Constant(Term(f"<urn:{number}>")) for number in range(500)]
    patterns = {
        "subjects": [Pattern(other, p, o) for other in others],
        "predicates": [Pattern(s, other, o) for other in others],
        "objects": [Pattern(s, p, other) for other in others],
        "blanks and variables": [
            Pattern(one, p, Variable(n)) for n in range(500) for one in (Blank(n),)
        ]
        + [Pattern(Variable(n), p, Blank(n)) for n in range(500)],
    }[slots]
    assert not any(coinciding(patterns))
    assert not compared


@given(templates(), SOLUTIONS)
def test_blanks_of_two_solutions_never_meet(
    template: Template, solutions: list[tuple[Term, ...]]
) -> None:
    seen: set[str] = set()
    for number, solution in enumerate(solutions):
        labels = {label for quad in template.instantiate(solution, number) for term in quad if term
                  for label in _labels(term) if label.startswith("_:t")}  # fmt: skip
        assert not labels & seen
        seen |= labels


def _labels(term: Term) -> set[str]:
    if term.startswith("<<("):
        return {label for part in triple_parts(term) for label in _labels(part)}
    return {term} if has_blank(term) else set()
