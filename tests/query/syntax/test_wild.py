"""The CONSTRUCT queries found in the wild: all are read but for broken templates, and dialects show as such."""

from __future__ import annotations

import csv
from typing import Final

import pytest

from construct_messages.errors import Position, QueryError
from construct_messages.query.syntax.nodes import Unknown, walk
from construct_messages.query.syntax.parser import parse
from tests.support.places import shared_path
from tests.support.queries.mutants import BASE

pytestmark = pytest.mark.suite

REFUSED: Final = {
    "Q0018": "concat (",  # a function in the template
    "Q0023": ":creator",  # a full stop is missing
    "Q0025": "`bif:concat",  # Virtuoso's expressions in templates
    "Q0028": "(",  # a function in the template
    "Q0689": "{triples}",  # a format string of Python
}
"""Templates that the package cannot read, by what is illegal in them."""

UNKNOWN: Final = {
    "Q0003": ["(?subject ?property ?value)"],  # no expression
    "Q0210": ["<<?s ?p  ?o>>"],  # a draft of RDF-star: a reified triple as an expression
    "Q0605": ['define input:inference "ldbc"'],  # Virtuoso
    "Q0606": ['define input:inference "ldbc"'],
    "Q0618": ['define input:inference "ldbc"', "option (same_as)"],
    "Q0628": ["LIMIT"],  # without a number
    "Q0690": ["solution_modifier"],  # a format string of Python
}
"""Parts of queries that are no SPARQL."""


def test_every_query_is_read_as_its_engine_reads_it() -> None:
    index = shared_path("queries/INDEX.tsv")
    with index.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    assert len(rows) == 348
    refused: dict[str, str] = {}
    unknown: dict[str, list[str]] = {}
    for row in rows:
        path = index.parent / (row["filled"] or row["file"])
        text = path.read_bytes().decode("utf-8", errors="replace")
        try:
            query = parse(text, base=BASE)
        except QueryError as error:
            place = error.position or Position(1, 1)
            refused[row["id"]] = text.splitlines()[place.line - 1][place.column - 1 :]
            continue
        nodes = walk(query.before, query.form)
        if found := [
            query.text[node.start : node.end] for node in nodes if isinstance(node, Unknown)
        ]:
            unknown[row["id"]] = found
    assert unknown == UNKNOWN
    assert refused.keys() == REFUSED.keys()
    assert {name for name in refused if not refused[name].startswith(REFUSED[name])} == set()
