"""EXPLAIN: a plan as text, its nodes from the outside in, with join orders and estimates.

The text depends on the plan and the statistics only. `optimize` chooses the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from construct_messages.query.algebra.calls import conjuncts, exists_in
from construct_messages.query.algebra.nodes import (
    Bgp,
    Dataset,
    Distinct,
    Extend,
    Filter,
    Graphs,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Number,
    OrderBy,
    Path,
    Plan,
    Project,
    Slice,
    Star,
    Triple,
    Union,
    Unit,
    Values,
    Var,
    VarOrTerm,
    linked,
    mentions,
)
from construct_messages.query.optimizer.optimize import Estimates, Statistics
from construct_messages.query.optimizer.push_down import Links, links


def explanation(plan: Plan, statistics: Statistics) -> str:
    """Returns a plan as indented text: a line for each node, and below lists of patterns their order and estimates.

    >>> from construct_messages.rdf.terms import iri
    >>> x, y, p = Var("x"), Var("y"), iri("urn:p")
    >>> print(explanation(Plan("SELECT", Project(Bgp((Triple(x, p, y),)), (x, y)), ("x", "y")), Statistics()))
    estimates: guesses (the table has no statistics)
    duplicates: removed pattern by pattern
    project ?x ?y
      patterns, joined in this order
        1. ?x <urn:p> ?y (50000 matches): about 50000 solutions
    """
    estimates = Estimates(statistics)
    rows = "unknown" if statistics.rows is None else statistics.rows
    known = f"statistics of {rows} quads and {len(statistics.predicates)} predicates"
    lines = [
        f"estimates: {known if estimates.known else 'guesses (the table has no statistics)'}",
        f"duplicates: {'none in the table' if statistics.distinct else 'removed pattern by pattern'}",
    ]
    if plan.dataset != Dataset():
        lines.append(f"dataset: {_dataset(plan.dataset)}")
    if plan.shared_scan:
        lines.append(
            f"quads: read once for {len(plan.shared_scan)} patterns, and shuffled by subject"
        )
    return "\n".join([*lines, *_lines(plan.pattern, estimates)])


def _dataset(dataset: Dataset) -> str:
    default, named = (
        " ".join(names or ()) or "nothing" for names in (dataset.default, dataset.named)
    )
    return f"default graph of {default}; named graphs {named}"


def _lines(node: Node, estimates: Estimates, known: Links = ()) -> Iterator[str]:
    """The lines of a node, and below it, indented, those of its parts.

    `known` are the variables that the condition on a join links.
    """
    yield _head(node, known)
    match node:
        case Bgp(patterns):
            yield from _indented(_steps(patterns, estimates))
        case Star(_, patterns, optional):
            yield from _indented(_steps(patterns, estimates))
            yield from _indented(
                f"-. {_written(pattern)}: where there is one" for pattern in optional
            )
        case Filter(pattern, condition):
            yield from _indented(_lines(pattern, estimates, links(conjuncts(condition))))
            for exists in exists_in(condition):
                yield from _indented(
                    ["the body of EXISTS", *_indented(_lines(exists.pattern, estimates))]
                )
        case Join(left, right):
            for part in (left, right):
                yield from _indented(_lines(part, estimates, known))
        case _:
            for part in node.children:
                yield from _indented(_lines(part, estimates))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _head(node: Node, known: Links) -> str:
    """Describes a node in a few words; `known` as in `_lines`."""
    match node:
        case Unit():
            return "one empty solution"
        case Bgp():
            return "patterns, joined in this order"
        case Star(subject, patterns, _):
            where = _within(patterns[0].graph)
            return f"star of {_position(subject)}{where}: objects collected subject by subject"
        case Path(subject, _, object, graph):
            return f"path from {_position(subject)} to {_position(object)}{_within(graph)}"
        case Graphs(graph):
            return f"named graphs {_position(graph)}"
        case Values(names, solutions):
            return f"inline data of {_positions(names)}: {len(solutions)} solutions"
        case Join(left, right):
            shared = left.possible & right.possible
            for link in known:
                if linked(left.possible, right.possible, [link]):
                    shared |= link[0] | link[1]
            return (
                f"join on {_positions(sorted(shared))}"
                if shared
                else "cross product (no shared variable)"
            )
        case LeftJoin(left, right, condition):
            read = (
                f", with a condition on {_positions(sorted(mentions(condition)))}"
                if condition
                else ""
            )
            return f"optional on {_positions(sorted(left.possible & right.possible))}{read}"
        case Union():
            return "union"
        case Minus(left, right):
            return f"minus on {_positions(sorted(left.possible & right.possible))}"
        case Filter(_, condition):
            return f"filter on {_positions(sorted(mentions(condition)))}"
        case Extend(_, variable, expression):
            return f"bind {_position(variable)} from {_positions(sorted(mentions(expression)))}"
        case Number():
            return "number the solutions"
        case Group(_, keys, aggregates):
            made = _positions(variable for variable, _ in aggregates)
            return f"group by {_positions(keys)} for {made}"
        case Project(_, names):
            return f"project {_positions(names)}"
        case Distinct():
            return "distinct"
        case OrderBy():
            return "order"
        case Slice(_, offset, limit):
            return f"slice: offset {offset}, limit {'none' if limit is None else limit}"
        case _:
            assert_never(node)


def _steps(patterns: tuple[Triple, ...], estimates: Estimates) -> Iterator[str]:
    for number, step in enumerate(estimates.as_written(patterns), start=1):
        matches = estimates.matches(step.pattern)
        crossing = "" if step.connected else "; a cross product (no shared variable)"
        about = f"about {step.solutions:.6g} solutions"
        yield f"{number}. {_written(step.pattern)} ({matches:.6g} matches): {about}{crossing}"


def _written(pattern: Triple) -> str:
    return f"{_positions((pattern.subject, pattern.predicate, pattern.object))}{_within(pattern.graph)}"


def _within(graph: VarOrTerm | None) -> str:
    return "" if graph is None else f" in graph {_position(graph)}"


def _positions(positions: Iterable[VarOrTerm]) -> str:
    return " ".join(map(_position, positions)) or "nothing"


def _position(position: VarOrTerm) -> str:
    return f"?{position.name}" if isinstance(position, Var) else position
