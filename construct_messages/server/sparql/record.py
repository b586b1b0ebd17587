"""The record of a SPARQL request: the form of the operation, its text, solutions, and the time of the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from construct_messages.server.http.request_log import Counted, RequestRecord

FORMS: Final = frozenset(("SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "UPDATE", "description"))


class CountedLog(Counted, Protocol):
    """The counters of a message log that is being written."""

    @property
    def solution_count(self) -> int: ...


@dataclass(kw_only=True)
class SparqlRecord(RequestRecord):
    """The record of a request to a SPARQL endpoint.

    Args:
        form: the form of the operation, one of `FORMS`; None: unknown.
        query: the text, which is only logged if the settings allow it.
        messages: the log, if the answer is a log.
        source_seconds: the time from the request to the source to its first bytes.
    """

    LABELS: ClassVar[Mapping[str, frozenset[str]]] = {"form": FORMS}
    COUNTERS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.COUNTERS,
        "solutions": "Solutions read from sources for messages.",
    }
    DURATIONS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.DURATIONS,
        "source": "From the request to a source to the first bytes that follow from its answer.",
    }

    form: str | None = None
    query: str | None = None
    messages: CountedLog | None = None
    source_seconds: float | None = None
    _source_asked: float | None = None

    def source_asked(self) -> None:
        """Records that the request to the source begins now."""
        self._source_asked = self.seconds

    def sent(self, size: int) -> None:
        """Counts bytes of the body; see `RequestRecord.sent`."""
        if self._source_asked is not None and self.source_seconds is None:
            self.source_seconds = self.seconds - self._source_asked
        super().sent(size)

    def fields(self) -> dict[str, object]:
        """Returns the fields of the log line; see `RequestRecord.fields`."""
        return super().fields() | {
            "form": self.form,
            "source_seconds": self.source_seconds,
            "solutions": self.messages.solution_count if self.messages else None,
        }

    def texts(self) -> dict[str, object]:
        """Returns fields with text from the client; see `RequestRecord.texts`."""
        return {"query": self.query}

    def labels(self) -> Mapping[str, str]:
        """Returns values of labels; see `RequestRecord.labels`."""
        return {"form": self.form or ""}

    def counts(self) -> Mapping[str, int]:
        """Returns the counts; see `RequestRecord.counts`."""
        return {
            **super().counts(),
            "solutions": self.messages.solution_count if self.messages else 0,
        }

    def durations(self) -> Mapping[str, float | None]:
        """Returns the durations; see `RequestRecord.durations`."""
        return {**super().durations(), "source": self.source_seconds}
