"""Results for the W3C's CONSTRUCT tests and for queries of public repositories.

`python -m tests.support.queries.page` prints them as a page.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox

from construct_messages.errors import QueryError
from construct_messages.query.rewrite import ConstructQuery
from tests.support.places import shared_path
from tests.support.queries.oracle import disagreement

BASE = "http://example.org/base/"


class Outcome(NamedTuple):
    """What became of a query: every field but the first three is a reason, empty where all is well."""

    origin: str
    name: str
    kind: str
    refused: str
    oxigraph_original: str
    oxigraph_select: str
    template: str

    @property
    def passes(self) -> bool:
        """The query is rewritten, Oxigraph takes the SELECT, and its template is Oxigraph's."""
        return not (self.refused or self.oxigraph_select or self.template)

    @property
    def is_wrong(self) -> bool:
        """This project spoilt what Oxigraph takes, or made another template of it."""
        return self.template.startswith("differs") or (
            not self.oxigraph_original and bool(self.oxigraph_select)
        )


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def oxigraph_refusal(text: str, base: str | None) -> str:
    """Why Oxigraph cannot read a query; nothing is evaluated."""
    try:
        ox.Store().query(text, base_iri=base)
    except (SyntaxError, ValueError) as problem:
        return " ".join(str(problem).partition("\n")[0].split())
    except RuntimeError as problem:
        if "custom function" not in str(problem):  # it is read, only the store has no such function
            raise
    return ""


def outcome(origin: str, name: str, kind: str, text: str, base: str | None) -> Outcome:
    original = oxigraph_refusal(text, base)
    try:
        query = ConstructQuery.parse(text, base=base)
    except QueryError as refused:
        return Outcome(origin, name, kind, str(refused).partition("\n")[0], original, "", "")
    select = oxigraph_refusal(query.select, base)
    try:
        found = disagreement(text, query)
    except SyntaxError as problem:
        template = f"no oracle: {' '.join(str(problem).partition(chr(10))[0].split())}"
    else:
        template = f"differs: {found}" if found else ""
    return Outcome(origin, name, kind, "", original, select, template)


def wild() -> Iterator[Outcome]:
    """The queries found in the wild."""
    folder = shared_path("queries")
    for row in rows(folder / "INDEX.tsv"):
        file = folder / (row["filled"] or row["file"])
        origin, name = row["file"].split("/", 1)
        base = BASE if row["needs_base"] else None
        yield outcome(
            origin.replace("+", "/"), name, row["class"], file.read_bytes().decode("utf-8"), base
        )


def w3c() -> Iterator[tuple[dict[str, str], Outcome]]:
    """The W3C's CONSTRUCT tests. Their IRIs are relative to the test files, whose place is made up here."""
    folder = shared_path("suites/w3c")
    for row in rows(folder / "construct-tests.tsv"):
        text = (folder / row["query"]).read_bytes().decode("utf-8")
        base = f"http://www.w3.org/tests/{row['query']}"
        yield row, outcome(row["manifest"].split("/")[2], row["name"], row["type"], text, base)


def verdict(found: Outcome) -> str:
    """Who refused a W3C test."""
    if found.refused:
        return "refused by the rewriting"
    return "refused by the engine" if found.oxigraph_select else "accepted"


def cell(text: str) -> str:
    text = text.replace("|", "\\|").replace("`", "'")
    return text if len(text) <= 140 else text[:139] + "…"


def page() -> str:
    suite, found = list(w3c()), list(wild())
    passing = [case for case in found if case.passes]
    accepted = [case for case in found if not case.oxigraph_original]
    lines = [
        "# Queries: rewriting tested",
        "",
        "Each query is rewritten into a SELECT and a template. Oxigraph checks that the SELECT is legal. To check the",
        "template, WHERE is replaced by values of every kind (IRI, literal, blank node, triple term, unbound), and the",
        "result is compared with that of Oxigraph's own CONSTRUCT. Graphs in templates, an extension of Apache Jena,",
        "are compared graph by graph.",
        "",
        "## Queries found in public repositories",
        "",
        f"{len(passing)} of {len(found)} queries pass: they are rewritten, Oxigraph accepts the SELECT, and the",
        "template produces the same triples.",
        "",
        "| queries | number | pass |",
        "|---|--:|--:|",
        f"| accepted by Oxigraph as they are | {len(accepted)} | {sum(case.passes for case in accepted)} |",
        f"| others, mostly with graphs in the template | {len(found) - len(accepted)} "
        f"| {sum(case.passes and case not in accepted for case in found)} |",
        "",
        "These queries do not pass:",
        "",
        "| repository | query | class | refused by | reason |",
        "|---|---|---|---|---|",
    ]
    for case in found:
        if not case.passes:
            by = (
                "rewriting"
                if case.refused
                else "Oxigraph (SELECT)"
                if case.oxigraph_select
                else "oracle"
            )
            reason = case.refused or case.oxigraph_select or case.template
            lines.append(f"| {case.origin} | {case.name} | {case.kind} | {by} | {cell(reason)} |")
    kinds = Counter((row["type"], verdict(case)) for row, case in suite)
    lines += [
        "",
        "## CONSTRUCT tests of the W3C",
        "",
        "`tests/query/test_oracle.py` also compares the graphs of the evaluation tests with the expected ones.",
        "",
        "| type | verdict | tests |",
        "|---|---|---|",
        *(f"| {kind} | {what} | {count} |" for (kind, what), count in sorted(kinds.items())),
        "",
        "The tests of negative syntax:",
        "",
        "| test | verdict | reason |",
        "|---|---|---|",
    ]
    for row, case in suite:
        if row["type"].startswith("Negative"):
            reason = case.refused or case.oxigraph_select or EXTENSIONS[case.name]
            lines.append(f"| {case.name} | {verdict(case)} | {cell(reason)} |")
    return "\n".join([*lines, ""])


EXTENSIONS = {
    "constructwhere06 - CONSTRUCT WHERE": "GRAPH in the short form is an extension of Apache Jena, and the SELECT is "
    "legal; refused without a base, because the name of its graph is a relative IRI",
}
"""Tests of negative syntax that are accepted on purpose, and why."""

if __name__ == "__main__":
    print(page(), end="")
