"""A query in the algebra, with its dataset: the result of translation, which the optimizer rewrites and an engine
evaluates.

SPARQL 1.1 Query, sections 13 (dataset) and 18.2. No query text and no engine here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from construct_messages.query.algebra.nodes import Expression, Node, Triple
from construct_messages.rdf.terms import Term


@dataclass(frozen=True)
class Dataset:
    """FROM and FROM NAMED: names of the graphs that are merged as the default graph, and of the named graphs.

    Both None: the dataset is that of the quads. If only one was written, the other is empty.
    """

    default: tuple[Term, ...] | None = None
    named: tuple[Term, ...] | None = None


@dataclass(frozen=True)
class Scan:
    """A triple pattern and the filters pushed down to it, each on one variable: quads that fail one need not be
    read."""

    pattern: Triple
    filters: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A query in the algebra.

    Args:
        form: `"SELECT"` or `"ASK"`.
        pattern: returns the solutions; for SELECT a `Project` is on top, below any `Distinct` and `Slice`.
        variables: the projected names, in order.
        dataset: the graphs of FROM and FROM NAMED.
        ordered: whether the order of the solutions was asked for.
        shared_scan: the patterns whose quads are to be read in one pass over the table, before they are matched.
    """

    form: Literal["SELECT", "ASK"]
    pattern: Node
    variables: tuple[str, ...]
    dataset: Dataset = Dataset()
    ordered: bool = False
    shared_scan: tuple[Scan, ...] = ()
