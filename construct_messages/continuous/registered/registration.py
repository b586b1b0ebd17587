"""A registered query, as data: its text, its inputs, its options, and its status. No I/O."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Final, Literal, TypeAlias

import msgspec

from construct_messages.continuous.windows import ARRIVAL, Bounds, Compared, WindowOptions
from construct_messages.errors import Conflict, StoreError
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import (
    ContinuousQuery,
    CountWindow,
    Operator,
    Report,
    written,
)
from construct_messages.streams.element import Retention

VERSION: Final = 1
"""The version of saved registrations and all other state of their queries. Other versions are errors."""

_SECOND: Final = 1_000_000  # microseconds

Status: TypeAlias = Literal["running", "paused", "failed"]


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A registered query.

    With windows, it reads the streams of its windows. Without windows, it reads single messages of one stream; or, if
    it has no stream, it watches a source.

    Args:
        text: RSP-QL, C-SPARQL or CQELS, or SPARQL.
        streams: the IRI of the list of streams with a slash at the end, which relative IRIs resolve against.
        inputs: names of streams, by their IRI in the query.
        after: the sequence after which each is read, by its name.
        source: the path of the SPARQL endpoint that is watched.
        static: the path of the SPARQL endpoint with the static data.
        every: the interval of evaluations in microseconds; with windows, the period of periodic reports.
        operator: the operator; None: the operator in the text.
        time, lateness, max_ahead, bounds, report, compare: see `WindowOptions`; microseconds, and the values of
            `Bounds`, `Report` and `Compared`.
        idle: the microseconds after which windows do not wait for a silent stream, if time is not that of arrival;
            None: they wait for ever. See `WindowedQuery.idle`.
        maintain: see `WindowedQuery`.
        skip_after: the number of failures with one element after which it is left out; None: never.
        status: `"failed"` is paused by an error.
        error: the last error.
    """

    text: str
    streams: str
    inputs: dict[str, str] = {}
    after: dict[str, int] = {}
    source: str | None = None
    static: str | None = None
    every: int | None = None
    operator: str | None = None
    time: str = ARRIVAL
    lateness: int = 0
    max_ahead: int | None = None
    bounds: str = Bounds.OPEN_CLOSED.value
    report: str | None = None
    compare: str = Compared.SOLUTIONS.value
    idle: int | None = None
    maintain: bool = True
    skip_after: int | None = None
    status: Status = "running"
    error: str | None = None

    def query(self) -> ContinuousQuery:
        """The parsed query."""
        query = parse_continuous(self.text, base=self.streams)
        return query if self.operator is None else replace(query, operator=Operator(self.operator))

    def options(self) -> WindowOptions:
        """The options of its windows."""
        return WindowOptions(
            time=self.time,
            lateness=self.lateness,
            max_ahead=self.max_ahead,
            bounds=Bounds(self.bounds),
            report=None if self.report is None else Report(self.report),
            every=self.every,
            compare=Compared(self.compare),
        )

    def check_retention(self, name: str, retention: Retention) -> None:
        """Raises `Conflict` if a stream would keep fewer elements than windows hold: a resumed query reads them again.

        A limit of another kind than the window's, such as a number of elements for a time, cannot be compared.
        """
        query, options = self.query(), self.options()
        report, every = options.policy_of(query)
        period = every if report is Report.PERIODIC and every else 0
        for window in query.windows:
            if self.inputs[window.stream] != name:
                continue
            # the last evaluation is repeated, so its elements are needed until the next one has been made
            needed: float | None
            kept: float | None
            if isinstance(window, CountWindow):
                needed, kept, unit = window.count + window.step, retention.count, "messages"
            elif window.range is None:
                needed, unit = None, "messages"
                kept = 0 if retention != Retention() else None
            elif self.time != ARRIVAL:
                continue
            else:
                microseconds = window.range + max(window.step, period) + self.lateness
                needed, kept, unit = microseconds / _SECOND, retention.seconds, "seconds"
            if kept is not None and (needed is None or kept < needed):
                amount = (
                    "all messages" if needed is None else f"those of the last {needed:g} {unit}"
                )
                limits = [f"{limit:g} {of}" for of, limit in asdict(retention).items() if limit]
                raise Conflict(
                    f"the window {written(window.name)} needs {amount} of {name}, which keeps "
                    f"{' or '.join(limits).replace('count', 'messages')}: the query could not be resumed",
                    hint=f"let {name} keep them, and some more for the time of a restart, or make the window smaller",
                )

    def stream_iri(self, name: str) -> str:
        """The IRI of a stream."""
        return f"{self.streams}{name}"

    def element_iri(self, stream: str, sequence: int) -> str:
        """Builds an element's IRI from the IRI of its stream in the query."""
        return f"{self.stream_iri(self.inputs[stream])}/output/{sequence}"

    def encode(self) -> bytes:
        """Encodes the registration for a store, with `VERSION`."""
        return msgspec.json.encode(_Saved(VERSION, msgspec.Raw(msgspec.json.encode(self))))

    @classmethod
    def decode(cls, data: bytes) -> Registration:
        """Decodes the result of `encode`.

        >>> Registration.decode(b'{"version": 7, "registration": {}}')
        Traceback (most recent call last):
        construct_messages.errors.StoreError: the query is saved in version 7, and this program has version 1
          hint: use the release of construct-messages that saved it
        """
        try:
            saved = msgspec.json.decode(data, type=_Saved)
        except msgspec.ValidationError:
            saved = _Saved(0, msgspec.Raw())
        if saved.version != VERSION:
            raise StoreError(
                f"the query is saved in version {saved.version}, and this program has version {VERSION}",
                hint="use the release of construct-messages that saved it",
            )
        return msgspec.json.decode(saved.registration, type=cls)


class _Saved(msgspec.Struct, frozen=True):
    """Decodes a registration of any version."""

    version: int
    registration: msgspec.Raw
