"""The record of a request to a stream: the stream, the action, and the numbers of elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from construct_messages.server.http.request_log import RequestRecord

ACTIONS: Final = frozenset(
    (
        "describe",
        "create",
        "delete",
        "publish",
        "list",
        "element",
        "pull",
        "events",
        "websocket",
        "subscribe",
        "ldes",
        "register",
        "pause",
        "resume",
    )
)


@dataclass(kw_only=True)
class StreamRecord(RequestRecord):
    """The record of a request.

    Args:
        stream: the name of the stream.
        action: the action, one of `ACTIONS`.
        published: the number of appended elements.
        delivered: the number of sent elements.
        last: the sequence of the last element that was appended over gRPC; None: none was.
    """

    LABELS: ClassVar[Mapping[str, frozenset[str]]] = {"action": ACTIONS}
    COUNTERS: ClassVar[Mapping[str, str]] = {
        **RequestRecord.COUNTERS,
        "published": "Elements appended to streams.",
        "delivered": "Elements sent to clients.",
    }

    stream: str | None = None
    action: str | None = None
    published: int = 0
    delivered: int = 0
    last: int | None = None

    def deliver(self, count: int) -> None:
        """Counts sent elements."""
        self.delivered += count

    def fields(self) -> dict[str, object]:
        """Returns the fields of the log line; see `RequestRecord.fields`."""
        return super().fields() | {
            "stream": self.stream,
            "action": self.action,
            "published": self.published or None,
            "delivered": self.delivered or None,
        }

    def labels(self) -> Mapping[str, str]:
        """Returns values of labels; see `RequestRecord.labels`."""
        return {"action": self.action or ""}

    def counts(self) -> Mapping[str, int]:
        """Returns the counts; see `RequestRecord.counts`."""
        return {**super().counts(), "published": self.published, "delivered": self.delivered}
