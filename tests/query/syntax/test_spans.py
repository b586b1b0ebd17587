"""Places of nodes: each holds its parts, its text is read as an equal node again, and splicing changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from construct_messages import QueryError
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
from construct_messages.query.syntax.parser import parse
from construct_messages.query.syntax.query import Query
from tests.support.places import shared_path
from tests.support.queries.mutants import BASE
from tests.support.queries.syntax_cases import syntax_cases

PATTERNS = (
    *("OptionalPattern", "UnionPattern", "MinusPattern", "GraphPattern", "ServicePattern"),
    *("FilterPattern", "BindPattern", "ValuesPattern", "TriplesBlock"),
)
TERMS = (BooleanNode, IriNode, LiteralNode, NumberNode, VariableNode)
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


def moved(node: Any, by: int) -> Any:
    """A node at another place, with blank nodes numbered anew."""
    labels: dict[str, str] = {}

    def move(part: Any) -> Any:
        if isinstance(part, BlankNode) and part.label.startswith("."):
            label = labels.setdefault(part.label, f".{len(labels)}")
            return BlankNode(part.start + by, part.end + by, label)
        if type(part) is tuple:
            return tuple(map(move, part))
        if isinstance(part, tuple):
            start, end, *rest = part
            offset = {"offset": part.offset + by} if isinstance(part, Unknown) else {}
            return type(part)(start + by, end + by, *map(move, rest))._replace(**offset)
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


@pytest.mark.suite
def test_the_text_of_a_node_is_read_as_an_equal_node() -> None:
    for query in corpus():
        form: Any = query.form
        if isinstance(form, ConstructForm) and form.template is not None:
            text = query.text[form.template.start : form.template.end]
            found: Any = parse(f"CONSTRUCT {text} {{}}", base=BASE).form
            assert moved(found.template, -found.template.start) == moved(
                form.template, -form.template.start
            )
            form = form._replace(template=None)  # in which groups are Jena's, and may be of blank nodes
        for node in walk(form):
            text = query.text[node.start : node.end]
            name = type(node).__name__
            if isinstance(node, GroupPattern):
                found = parse(f"ASK {text}", base=BASE).form.where
            elif name in PATTERNS:
                (found,) = parse(f"ASK {{ {text} }}", base=BASE).form.where.elements
            elif isinstance(node, EXPRESSIONS):
                (pattern,) = parse(f"ASK {{ FILTER({text}) }}", base=BASE).form.where.elements
                found = pattern.condition
            elif isinstance(node, TERMS) and (name != "IriNode" or text == node.written != "a"):
                (pattern,) = parse(f"ASK {{ FILTER({text}) }}", base=BASE).form.where.elements
                found = pattern.condition
            else:
                continue
            assert moved(found, -found.start) == moved(node, -node.start), (query.text, text)


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
