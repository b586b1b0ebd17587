"""Rows and files of results that are made up for tests of the report."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from benchmarks.suite.records import Groups, Measured, Results, Row


def groups(expected: int, **others: int) -> Groups:
    """Groups of which those that are not named came right."""
    kinds = {kind: others.get(kind, 0) for kind in ("wrong", "merged", "split", "missing")}
    return Groups(expected, others.get("right", expected), **kinds)


def row(competitor: str = "ours", seconds: float | None = 1.0, **values: Any) -> Row:
    """A row that ended with all groups right, unless values say otherwise; without seconds, one that timed out."""
    ended = seconds is not None
    defaults: dict[str, Any] = {
        "title": competitor.capitalize(),
        "query": "star",
        "shape": "star",
        "dataset": "dbpedia-shaped",
        "size": 100_000,
        "engine": "file",
        "status": "ok" if ended else "timeout",
        "seconds": seconds,
        "first_seconds": seconds / 2 if seconds is not None else None,
        "cpu_seconds": seconds,
        "peak_bytes": 50 * 2**20 if ended else None,
        "results_per_second": 1000 / seconds if seconds is not None else None,
        "groups": groups(1000) if ended else None,
        "counts_match": True if ended else None,
        "group": "ours" if competitor.startswith("ours") else "flat",
    }
    return Row(competitor, **defaults | values)


def results(*rows: Row) -> Results:
    """A file of results that holds rows."""
    return Results(
        machine={"cores": 2, "processor": "made up"},
        versions={"construct-messages": "0.1.0"},
        commit="0123abc",
        seed=7,
        started="2026-11-23T00:00:00+00:00",
        profile="default",
        limits={str(size): 30.0 for size in (10_000, 100_000, 1_000_000)},
        rows=list(rows),
    )


def many() -> Results:
    """Three sizes, four queries, two ways to get them, and competitors of every kind of outcome."""
    rows = []
    for engine, (number, query), size in product(
        ("file", "oxigraph"),
        enumerate(("star", "path", "tree", "capped")),
        (10_000, 100_000, 1_000_000),
    ):
        solutions = 100 if query == "capped" else size // (10 * (number + 1))
        cost = size / 100_000 * (number + 1)
        common: dict[str, Any] = {"query": query, "shape": query, "size": size, "engine": engine}
        common["loads"] = engine == "file"
        right = {"groups": groups(solutions)}
        half = groups(
            solutions,
            right=solutions // 2,
            split=solutions // 3,
            missing=solutions - solutions // 2 - solutions // 3,
        )
        faulty = {"groups": replace(half, merged=7, wrong=4), "counts_match": False}
        rows += [
            row("ours", 0.3 + cost / 10, **common, **right, runs=(Measured(0.3, 0.1, 0.3, 5),)),
            row("ours-python", 0.35 + cost / 8, title="Ours, `Message` objects", **common, **right),
            row(
                "cli",
                0.05 + cost / (20 if query == "capped" else 5),
                peak_bytes=2**26 + size * 90,
                **common,
                **right,
            ),
            row("slow", 1 + cost, peak_bytes=size * 3000, **common, **right)
            if size < 1_000_000
            else row("slow", None, **common),
            row("flat", 0.4 + cost / 4, title="Flat <CONSTRUCT> | CBD", **common, **faulty),
            row(
                "gone",
                None,
                title="Gone *tool*",
                status="absent",
                reason="npm install gone",
                **common,
            ),
            row("broken", None, status="failed", reason="exit status 1: <oh no>", **common),
        ]
    return results(*rows)
