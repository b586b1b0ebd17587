"""Planning: turns a CONSTRUCT query and its parameters into a template and the plan of its SELECT, and a SELECT query
into its plan.

Unsupported queries are refused here, before Spark starts. No pyspark and no tables here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from construct_messages.errors import UsageError
from construct_messages.query.algebra.nodes import Plan
from construct_messages.query.algebra.translation import translate
from construct_messages.query.rewrite import ConstructQuery, parse_select
from construct_messages.query.select import Select
from construct_messages.rdf.options import UNION, Dataset, Grouping
from construct_messages.rdf.terms import XSD, as_term, literal


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
    parsed = ConstructQuery.parse(query, base=base, prefixes=prefixes, group_by=grouping.by)
    return parsed, _plan(parsed.select_for(bindings, grouping), dataset)


def plan_select(
    query: str,
    *,
    bindings: Mapping[str, Any] | None = None,
    dataset: Dataset = Dataset(),
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
) -> Plan:
    """Parses a SELECT query and returns its plan.

    >>> plan_select("SELECT * WHERE { ?s <urn:p> ?o }").variables
    ('s', 'o')
    """
    select = parse_select(query, base=base, prefixes=prefixes)
    if bindings:
        select = select.bind({name.lstrip("?$"): as_term(term) for name, term in bindings.items()})
    return _plan(select, dataset)


def _plan(select: Select, dataset: Dataset) -> Plan:
    if UNION in dataset.default_graph:
        raise UsageError(
            'Dataset("union") is not evaluated on Spark', hint="name the graphs to merge"
        )
    return translate(
        select.tree,
        now=literal(datetime.now(UTC).isoformat(), datatype=XSD + "dateTime"),
        default_graphs=dataset.default_graph,
        named_graphs=dataset.named_graphs,
    )
