"""Planning: turns a CONSTRUCT query and its parameters into a template and the plan of its SELECT.

Unsupported queries are refused here, before Spark starts. No pyspark and no tables here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from construct_messages.errors import UsageError
from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.algebra.translation import translate
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.options import UNION, Dataset, Grouping
from construct_messages.rdf.terms import XSD, literal


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
    now = literal(datetime.now(UTC).isoformat(), datatype=XSD + "dateTime")
    plan = translate(
        parsed.select_for(bindings, grouping).tree,
        now=now,
        default_graphs=dataset.default_graph,
        named_graphs=dataset.named_graphs,
    )
    return parsed, plan
