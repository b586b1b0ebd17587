"""The reference evaluator: one set of triples for each solution. Imports nothing of construct_messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.suite.records import Group


def truth(query: str, data: Path) -> Iterator[Group]:
    """The result of each solution of a CONSTRUCT query over N-Triples; solutions without triples give none."""
    raise NotImplementedError
