"""Places of nodes: each holds its parts, its text is read as an equal node again, and splicing changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from construct_messages.errors import QueryError
from construct_messages.query.syntax.nodes import (
    AggregateNode,
    BlankNode,
    BooleanNode,
    CallNode,
    ConstructForm,
    ExistsNode,
    GroupPattern,
    IriNode,
    LiteralNode,
    NumberNode,
    OperationNode,
    SliceClause,
    Unknown,
    VariableNode,
    walk,
)
from construct_messages.query.syntax.parser import Query, parse
from tests.support.places import shared_path
from tests.support.queries.mutants import BASE
from tests.support.queries.syntax_cases import syntax_cases

PATTERNS = (
    *("OptionalPattern", "UnionPattern", "MinusPattern", "GraphPattern", "ServicePattern"),
    *("FilterPattern", "BindPattern", "ValuesPattern", "TriplesBlock"),
)
TERMS = (BooleanNode, IriNode, LiteralNode, NumberNode, VariableNode)
PATHS = ("PathSequence", "PathAlternative", "PathInverse", "PathRepetition", "PathNegation")
KINDS = ("variable", "iri", "pname", "string", "number")
EXPRESSIONS = (AggregateNode, CallNode, ExistsNode, OperationNode)


def corpus() -> list[Query]:
    """Legal queries of the suites, and those found in the wild."""
    wild = sorted(shared_path("queries").rglob("*.rq"))
    texts = [case.text for case in syntax_cases() if case.legal]
    texts += [path.read_bytes().decode("utf-8", errors="replace") for path in wild]
    queries = []
    for text in texts:
        try:
            queries.append(parse(text, base=BASE))
        except QueryError:
            continue  # broken templates; see test_wild
    assert len(queries) > 1300
    return queries


def at_zero(node: Any) -> Any:
    """A node at another place, with blank nodes numbered anew."""
    labels: dict[str, str] = {}
    by = -node.start

    def move(part: Any) -> Any:
        if isinstance(part, BlankNode) and part.label.startswith("."):
            label = labels.setdefault(part.label, f".{len(labels)}")
            return BlankNode(part.start + by, part.end + by, label)
        if type(part) is tuple:
            return tuple(map(move, part))
        if isinstance(part, tuple):
            start, end, *rest = part
            if isinstance(part, Unknown):
                message, offset, *others = rest
                rest = [message, offset + by, *others]
            return type(part)(start + by, end + by, *map(move, rest))
        return part

    return move(node)


@pytest.mark.suite
def test_nodes_lie_within_those_that_hold_them() -> None:
    for query in corpus():
        for node in walk(query.before, query.form):
            assert 0 <= node.start <= node.end <= len(query.text)
            for part in walk(*(part for part in node if isinstance(part, tuple))):
                if part.end > part.start:  # else it stands for a short notation
                    assert node.start <= part.start, (query.text, node, part)
                    assert part.end <= node.end, (query.text, node, part)


def read_again(node: Any, text: str) -> Any:
    """The node that its text is read as where it may stand; None for what is no text of its own."""
    name = type(node).__name__
    if isinstance(node, GroupPattern):
        return element(f"{{ {text} }} UNION {{}}").groups[0].elements[0]
    if name in PATTERNS:
        return element(text)
    if name in PATHS:
        return element(f"?s {text} ?o").triples[0].predicate
    if isinstance(node, IriNode) and not text == node.written != "a":
        return None  # it stands for a short notation
    if isinstance(node, (*EXPRESSIONS, *TERMS)):
        return element(f"FILTER({text})").condition
    return None


def element(text: str) -> Any:
    """The only element of a group."""
    where = parse(f"ASK {{ {text} }}", base=BASE).form.where
    assert where is not None
    (only,) = where.elements
    return only


@pytest.mark.suite
@pytest.mark.slow
def test_the_text_of_a_node_is_read_as_an_equal_node() -> None:
    for query in corpus():
        form = query.form
        if isinstance(form, ConstructForm) and form.template is not None:
            text = query.text[form.template.start : form.template.end]
            again = parse(f"CONSTRUCT {text} {{}}", base=BASE).form
            assert isinstance(again, ConstructForm)
            assert again.template is not None
            assert at_zero(again.template) == at_zero(form.template)
            # groups in the template are Jena's, and may be of blank nodes
            form = ConstructForm(form.start, form.end, None, form.dataset, form.where, form.clauses)
        for node in walk(form):
            text = query.text[node.start : node.end]
            found = read_again(node, text)
            assert found is None or at_zero(found) == at_zero(node), (query.text, text)


@pytest.mark.slow
@pytest.mark.suite
def test_all_names_and_literals_are_in_the_tree() -> None:
    """What rewriting passes over, because no node tells of it, holds neither names nor literals."""
    for query in corpus():
        nodes = list(walk(query.form))
        starts = {node.start for node in nodes if isinstance(node, TERMS)}
        starts |= {node.end - len(node.number) for node in nodes if isinstance(node, SliceClause)}
        unknown = [range(node.start, node.end) for node in nodes if isinstance(node, Unknown)]
        for token in query.source.tokens:
            if not query.form.start <= token.start < query.form.end or token.kind not in KINDS:
                continue
            if token.kind in ("string", "number") and any(token.start in each for each in unknown):
                continue  # of what is unknown only names are read
            # a sign, and < before what looks like an IRI, may be operators
            assert {token.start, token.start + 1} & starts, (query.text, token)
