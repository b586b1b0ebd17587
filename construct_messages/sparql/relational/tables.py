"""The record of a table of quads: which Parquet files it has, of which source files, and their statistics.

A table is a folder of Parquet files with the string columns `subject`, `predicate`, `object` and `graph` (NULL: the
default graph), of canonical N-Triples terms, in any folders below, and of the folder `_construct_messages.json` of
entries. Each load adds an entry when its Parquet files are complete, and never changes one: so a folder without entries
is not whole, loads at the same time do not lose each other's files, and a load that was killed has no effect. DuckDB
(`quads`) and Spark (`spark/quads`) write the same tables. No engine and no files here.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

import msgspec

from construct_messages.errors import QuadsError
from construct_messages.query.optimizer.optimize import PredicateStatistics, Statistics
from construct_messages.rdf.terms import Term

RECORD: Final = "_construct_messages.json"
"""The folder of the entries, as Spark writes no single files."""

VERSION: Final = 2


def run_id() -> str:
    """Returns an identifier of a load, or of another run, which sorts after those of earlier ones."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(2)}"


class SourceQuads(msgspec.Struct, frozen=True):
    """The Parquet files of one source, without duplicates, and their statistics."""

    files: list[str]  # their paths in the folder of the table
    rows: int
    predicates: dict[Term, PredicateStatistics]


class _Versioned(msgspec.Struct):
    version: int


class LoadEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one load: quads of some source files; without sources, a whole table in place of all before."""

    version: int
    number: int = 0  # one more than those of the entries before
    run: str = ""
    sources: dict[str, SourceQuads] = {}
    files: list[str] = []
    rows: int = 0
    predicates: dict[Term, PredicateStatistics] = {}

    @property
    def parts(self) -> dict[str, SourceQuads]:
        """The quads of each source; a whole table has one source without a name."""
        return self.sources or {"": SourceQuads(self.files, self.rows, self.predicates)}

    def encoded(self) -> bytes:
        """Returns a line of JSON."""
        return msgspec.json.encode(self) + b"\n"


def source_of(url: str) -> str:
    """Returns the name of a source file in an entry. Engines escape URLs differently.

    >>> source_of("file:///data/%C3%A9%20(1).nt"), source_of("file:///data/é%20%281%29.nt")
    ('file:///data/é (1).nt', 'file:///data/é (1).nt')
    """
    return unquote(url)


class TableRecord:
    """The entries of a table, and its contents by them.

    >>> quads = {name: SourceQuads([f"{name}.parquet"], 1, {"<urn:p>": PredicateStatistics(1, 1, 1)}) for name in "ab"}
    >>> first = TableRecord([]).entry(quads)
    >>> record = TableRecord([first, TableRecord([first]).entry({"a": SourceQuads(["c.parquet"], 0, {})})])
    >>> record.files, record.replaced, record.statistics.rows
    (['b.parquet', 'c.parquet'], ['a.parquet'], 1)
    """

    def __init__(self, entries: Iterable[LoadEntry]) -> None:
        self.entries = sorted(entries, key=lambda entry: (entry.number, entry.run))
        self.parts: dict[str, SourceQuads] = {}
        for entry in self.entries:
            self.parts = {**self.parts, **entry.sources} if entry.sources else entry.parts

    @classmethod
    def read(cls, lines: Iterable[str | bytes], table: str) -> TableRecord:
        """Reads the lines of all entries.

        Args:
            table: its path, for errors.

        Raises:
            QuadsError: there is no entry, or one is malformed or of another version.
        """
        lines = [line for line in lines if line.strip()]
        try:
            # first of all: the entries of other versions may have other fields
            versions = {msgspec.json.decode(line, type=_Versioned).version for line in lines}
            if versions - {VERSION}:
                raise QuadsError(
                    f"{table} was written by another version of this package", hint="write it again"
                )
            entries = [msgspec.json.decode(line, type=LoadEntry) for line in lines]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise incomplete(table, str(error)) from error
        if not entries:
            raise incomplete(table, f"{RECORD} is empty")
        return cls(entries)

    def entry(self, sources: Mapping[str, SourceQuads], run: str | None = None) -> LoadEntry:
        """Returns the entry of a load after all others."""
        number = 1 + max((entry.number for entry in self.entries), default=0)
        return LoadEntry(version=VERSION, number=number, run=run or run_id(), sources=dict(sources))

    @property
    def files(self) -> list[str]:
        return sorted(name for part in self.parts.values() for name in part.files)

    @property
    def replaced(self) -> list[str]:
        """The files of entries that the table no longer has."""
        parts = (part for entry in self.entries for part in entry.parts.values())
        names = {name for part in parts for name in part.files if ".." not in name.split("/")}
        return sorted(names.difference(self.files))

    @property
    def outdated(self) -> list[LoadEntry]:
        """The entries of which the table has nothing."""
        return [
            entry
            for entry in self.entries
            if not any(self.parts.get(name) == part for name, part in entry.parts.items())
        ]

    @property
    def repeated(self) -> frozenset[Term]:
        """The predicates of several sources, which may have the same quad."""
        counts = Counter(term for part in self.parts.values() for term in part.predicates)
        return frozenset(term for term, count in counts.items() if count > 1)

    @property
    def statistics(self) -> Statistics:
        """The figures of the table: those of its sources, added."""
        predicates: dict[Term, PredicateStatistics] = {}
        for part in self.parts.values():
            for term, one in part.predicates.items():
                other = predicates.get(term, PredicateStatistics(0, 0, 0))
                predicates[term] = PredicateStatistics(
                    one.rows + other.rows,
                    one.subjects + other.subjects,
                    one.objects + other.objects,
                )
        rows = sum(part.rows for part in self.parts.values())
        return Statistics(rows, not self.repeated, predicates)


def incomplete(table: str, reason: str) -> QuadsError:
    """Returns the error for a folder that is not a complete table."""
    return QuadsError(
        f"{table} is not a complete table of quads: {reason}",
        hint="write it by construct-messages load or spark load, or in Spark use another table with "
        "QuadTable.of(spark.read.parquet(…))",
    )
