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
    """One operation.

    Args:
        text: the query or update; None asks for the service description.
        update: whether the text is an update.
        default_graphs: IRIs of `default-graph-uri` (`using-graph-uri` of an update), in order; see also `Request`.
        named_graphs: IRIs of `named-graph-uri` (`using-named-graph-uri`), in order.
        parameters: all other parameters of the request, in order.
        headers: `Accept`, and those of the client's headers that may be forwarded. Names as in `Accept`.
        head: whether only the status and headers are requested.
        timeout: the maximal time for the whole answer, in seconds.
    """

    text: str | None
    update: bool = False
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    head: bool = False
    timeout: float | None = None


@dataclass(frozen=True)
class Answer:
    """The answer to an operation, to be sent to a client.

    Args:
        status: the HTTP status.
        headers: in order; only headers for a client.
        body: the bytes; raises `SourceError` if they cannot be read completely. Its reader must close it, which cancels
            the operation.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: AsyncGenerator[bytes]


class Backend(Source, Protocol):
    """A source for a server: it also answers operations by itself."""

    async def answer(self, operation: Operation) -> Answer:
        """Returns the answer to an operation as soon as its status is known.

        Raises:
            QueryError: the source's parser rejects the text.
            SourceError: no answer.
            SourceTimeout: `operation.timeout` passed.
        """
        ...

    async def start(self) -> None:
        """Prepares resources that the first answer would otherwise wait for.

        Raises:
            SourceError: the preparation failed.
        """
        ...

    async def check(self) -> None:
        """Checks that the source answers.

        Raises:
            SourceError: it does not.
        """
        ...

    async def aclose(self) -> None:
        """Cancels running operations, and closes connections and processes."""
        ...
