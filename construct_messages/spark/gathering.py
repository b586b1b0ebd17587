"""The quads that several patterns of a query match, read once and together by their subjects.

What is read from text is parsed and checked each time that it is read, which takes longer than all else that is done
with it: so, it is read once for the whole query, and shuffled once. Which patterns are worth it is decided in
`optimize`; each then takes its own from here, by `scans` or `stars`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from pyspark.sql import functions as F

from construct_messages.spark.algebra import Dataset, Triple, Var
from construct_messages.spark.scans import in_graph
from construct_messages.spark.table import COLUMNS, QuadTable
from construct_messages.spark.values import any_of, literal
from construct_messages.terms import Term


def gather(patterns: Iterable[Triple], table: QuadTable, dataset: Dataset) -> QuadTable:
    """The quads that any of the patterns matches, those of one subject in one partition.

    Args:
        patterns: their predicates are terms.
        table: all quads.
        dataset: what FROM and FROM NAMED say.
    """
    quads = table.frame.filter(wanted(patterns, dataset)).repartition("subject")
    # Spark would push what each pattern filters and selects below the shuffle, and so read and shuffle the quads once
    # for each pattern, if that did not change a figure that was asked for: this is all that the figure is for.
    # It is of all columns, as each pattern may need others; and no two figures of a query may have one name.
    size = sum((F.coalesce(F.octet_length(name), F.lit(0)) for name in COLUMNS), start=F.lit(0))
    return replace(table, frame=quads.observe(f"gathered {uuid4()}", F.sum(size).alias("bytes")))


def wanted(patterns: Iterable[Triple], dataset: Dataset) -> str:
    """SQL over a table's columns: whether a quad may match one of the patterns.

    >>> from construct_messages.terms import iri
    >>> s, o, p, q = Var("s"), Var("o"), iri("urn:p"), iri("urn:q")
    >>> print(wanted([Triple(s, p, o), Triple(s, q, p)], Dataset()))
    (graph IS NULL AND (predicate IN ('<urn:p>') OR (predicate = '<urn:q>' AND object = '<urn:p>')))
    """
    by_graph: defaultdict[str, list[Triple]] = defaultdict(list)
    for pattern in patterns:
        by_graph[in_graph(pattern.graph, dataset)].append(pattern)
    return " OR ".join(f"({graph} AND ({_any_of(some)}))" for graph, some in by_graph.items())


def _any_of(patterns: Iterable[Triple]) -> str:
    whole: set[Term] = set()
    parts: dict[str, None] = {}
    for pattern in patterns:
        assert not isinstance(pattern.predicate, Var), "what is gathered is told by its predicate"
        terms = {
            name: position
            for name, position in zip(COLUMNS[:3], pattern.positions, strict=False)
            if not isinstance(position, Var | None)
        }
        if len(terms) == 1:
            whole.add(pattern.predicate)
        else:
            parts[f"({' AND '.join(f'{name} = {literal(term)}' for name, term in terms.items())})"] = None
    return " OR ".join([*([any_of("predicate", sorted(whole))] if whole else []), *parts])
