"""Operations of the SPARQL Protocol that a source answers by itself, from the text to the bytes of the answer.

The additional operations of a source that a server needs (SPARQL 1.1 Protocol, section 2). Reads no query.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from construct_messages.sparql.sources import Source


@dataclass(frozen=True)
class Operation:
    """One operation."""

    text: str | None  # the query or update; None asks for the service description
    update: bool = False
    # IRIs of `default-graph-uri` (`using-graph-uri` of an update), in order; see also `Request`
    default_graphs: tuple[str, ...] = ()
    # IRIs of `named-graph-uri` (`using-named-graph-uri`), in order
    named_graphs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()  # all other parameters of the request, in order
    # `Accept`, and those of the client's headers that may be forwarded. Names as in `Accept`
    headers: Mapping[str, str] = field(default_factory=dict)
    head: bool = False  # whether only the status and headers are requested
    timeout: float | None = None  # the maximal time for the whole answer, in seconds


@dataclass(frozen=True)
class Answer:
    """The answer to an operation, to be sent to a client."""

    status: int
    headers: tuple[tuple[str, str], ...]  # in order; only headers for a client
    # the bytes; raises `SourceError` if they cannot be read completely. Its reader must close it, which cancels the
    # operation
    body: AsyncGenerator[bytes]


class Backend(Source, Protocol):
    """A source for a server: it also answers operations by itself."""

    async def answer(self, operation: Operation) -> Answer:
        """Returns the answer to an operation as soon as its status is known; see the errors of `Source`."""
        ...

    async def start(self) -> None:
        """Prepares resources that the first answer would otherwise wait for; may raise `SourceError`."""
        ...

    async def check(self) -> None:
        """Raises `SourceError` if the source does not answer."""
        ...

    async def aclose(self) -> None:
        """Cancels running operations, and closes connections and processes."""
        ...
