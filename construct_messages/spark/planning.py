"""Planning: turns a CONSTRUCT query and its parameters into a template and the plan of its SELECT.

Unsupported queries are refused here, before Spark starts. No pyspark and no tables here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.algebra.translation import translate_query
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.errors import Position, QueryError, UsageError
from construct_messages.rdf.options import UNION, Dataset, Grouping
from construct_messages.rdf.terms import XSD, as_term, literal

_LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")


def plan_query(
    query: str,
    *,
    group_by: Grouping | str | Sequence[str] = (),
    bindings: Mapping[str, Any] | None = None,
    dataset: Dataset = Dataset(),
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
) -> tuple[ConstructQuery, Plan]:
    """Parses a CONSTRUCT query and translates its SELECT; returns the query and the plan.

    Args:
        query, group_by, bindings, dataset, prefixes, base: as for `construct.construct_messages`.

    Raises:
        QueryError: the query is not a legal CONSTRUCT query; the position refers to its text.
        UnsupportedQuery: a part of it that is not supported on Spark.
        UsageError: an invalid option.

    >>> parsed, plan = plan_query("CONSTRUCT { ?s a ?o } WHERE { ?s <urn:p> ?o }")
    >>> plan.variables
    ('s', 'o')
    """
    grouping = Grouping.of(group_by)
    if UNION in dataset.default_graph:
        raise UsageError(
            'Dataset("union") is not evaluated on Spark', hint="name the graphs to merge"
        )
    parsed = ConstructQuery.parse(query, base=base, prefixes=prefixes, group_by=grouping.by)
    select = parsed.rewritten
    if bindings:
        select = select.bind(
            {name.lstrip("?$"): as_term(value) for name, value in bindings.items()}
        )
    if grouping.is_sorted:
        select = select.sorted_by(grouping.by)
    now = literal(datetime.now(UTC).isoformat(), datatype=XSD + "dateTime")
    try:
        plan = translate_query(
            str(select),
            now=now,
            base=base,
            default_graphs=dataset.default_graph,
            named_graphs=dataset.named_graphs,
        )
    except QueryError as error:
        error.position = error.position and _in_query(
            error.position, str(select), query.removeprefix("\ufeff")
        )
        raise
    return parsed, plan


def _in_query(position: Position, select: str, query: str) -> Position | None:
    """Returns the position in the query of a position in its SELECT; None if the text of the SELECT is not in the
    query.

    >>> _in_query(Position(1, 13), "SELECT ?s { ?s ?p }", "CONSTRUCT { ?s a 1 } { ?s ?p }")
    Position(line=1, column=24)
    """
    lines = [0, *(match.end() for match in _LINE_BREAK.finditer(select))]
    offset = lines[position.line - 1] + position.column - 1
    if query.startswith(select[: offset + 1]):
        return position
    if query.endswith(select[offset:]):
        return Position.at(query, len(query) - len(select) + offset)
    return None
