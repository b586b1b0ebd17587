"""A registered query, as data: its text, where its messages come from, its options, and whether it runs. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal, TypeAlias

import msgspec

from construct_messages.continuous.windows import Bounds, Compared, WindowOptions
from construct_messages.errors import StoreError
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import ContinuousQuery, Operator, Report

VERSION: Final = 1
"""Of registrations and of all other state of their queries, as a store keeps them. Any other version is refused."""

Status: TypeAlias = Literal["running", "paused", "failed"]


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A registered query.

    With windows it reads the streams of its windows. Without, it sees each message of one stream alone; or, where it
    reads no stream, it watches a source.

    Args:
        text: RSP-QL, C-SPARQL or CQELS, or SPARQL.
        streams: the IRI of the list of streams with a slash at the end, which relative IRIs resolve against.
        inputs: names of streams, by their IRI in the query.
        after: by the name of each: the sequence after which it is read.
        source: the path of the SPARQL endpoint that is watched.
        static: the path of the SPARQL endpoint with the static data.
        every: how often, in microseconds; with windows, the period of periodic reports.
        operator: the operator; None: that of the text.
        time, lateness, max_ahead, bounds, report, compare: see `WindowOptions`; microseconds, and the values of
            `Bounds`, `Report` and `Compared`.
        skip_after: after how many failures with one element that element is left out; None: never.
        status: `"failed"` is paused by an error.
        error: the last one.
    """

    text: str
    streams: str
    inputs: dict[str, str] = {}
    after: dict[str, int] = {}
    source: str | None = None
    static: str | None = None
    every: int | None = None
    operator: str | None = None
    time: str = "arrival"
    lateness: int = 0
    max_ahead: int | None = None
    bounds: str = Bounds.OPEN_CLOSED.value
    report: str | None = None
    compare: str = Compared.SOLUTIONS.value
    skip_after: int | None = None
    status: Status = "running"
    error: str | None = None

    def query(self) -> ContinuousQuery:
        """The query, taken apart.

        Raises:
            QueryError: see `parse_continuous`.
        """
        query = parse_continuous(self.text, base=self.streams)
        return query if self.operator is None else replace(query, operator=Operator(self.operator))

    def options(self) -> WindowOptions:
        """The options of its windows.

        Raises:
            UsageError: see `WindowOptions`.
        """
        return WindowOptions(
            time=self.time,
            lateness=self.lateness,
            max_ahead=self.max_ahead,
            bounds=Bounds(self.bounds),
            report=None if self.report is None else Report(self.report),
            every=self.every,
            compare=Compared(self.compare),
        )

    def stream_iri(self, name: str) -> str:
        """The IRI of a stream."""
        return f"{self.streams}{name}"

    def element_iri(self, stream: str, sequence: int) -> str:
        """Builds an element's IRI from the IRI of its stream in the query."""
        return f"{self.stream_iri(self.inputs[stream])}/output/{sequence}"

    def encode(self) -> bytes:
        """The registration as a store keeps it, with `VERSION`."""
        return msgspec.json.encode(_Saved(VERSION, msgspec.Raw(msgspec.json.encode(self))))

    @classmethod
    def decode(cls, data: bytes) -> Registration:
        """The registration that `encode` wrote.

        Raises:
            StoreError: one of another version.

        >>> Registration.decode(b'{"version": 7, "registration": {}}')
        Traceback (most recent call last):
        construct_messages.errors.StoreError: the query is saved in version 7, and this program knows version 1
          hint: use the release of construct-messages that saved it
        """
        try:
            saved = msgspec.json.decode(data, type=_Saved)
        except msgspec.ValidationError:
            saved = _Saved(0, msgspec.Raw())
        if saved.version != VERSION:
            raise StoreError(
                f"the query is saved in version {saved.version}, and this program knows version {VERSION}",
                hint="use the release of construct-messages that saved it",
            )
        return msgspec.json.decode(saved.registration, type=cls)


class _Saved(msgspec.Struct, frozen=True):
    """A registration of any version."""

    version: int
    registration: msgspec.Raw
