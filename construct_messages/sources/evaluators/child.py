"""The program of an evaluating process: evaluates over a read-only store directory, one query at a time.

Reads orders from a Unix socket as JSON lines; the write ends of the pipes for the answer come with the line
(SCM_RIGHTS). Results go into these pipes, reports over the socket. Both ends run the same version of this package, so
the lines are the structures below. Enforces no time limit and ignores signals: `pool.py` kills the process, which also
ends when the process that started it ends.
"""

from __future__ import annotations

import os
import resource
import select as polling
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
import pyoxigraph as ox

from construct_messages.errors import (
    ConstructMessagesError,
    NotAcceptable,
    Position,
    QueryError,
    SourceError,
    UsageError,
)
from construct_messages.formats.documents import TRIPLES
from construct_messages.formats.results import SOLUTIONS
from construct_messages.query.written import WrittenQuery
from construct_messages.sources import REWRITTEN
from construct_messages.sources.evaluators.evaluation import (
    QueryResult,
    explain,
    query,
    serialize,
    write_solutions,
)
from construct_messages.sources.files import open_directory

_RECEIVED: Final = 1 << 16  # bytes at once


class Solve(msgspec.Struct, tag=True, frozen=True):
    """Evaluate a SELECT into two TSV documents (see `write_solutions`). Comes with two pipes."""

    text: str
    variables: tuple[str, ...]
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]
    written: WrittenQuery | None = None


class Respond(msgspec.Struct, tag=True, frozen=True):
    """Evaluate a query of any form and serialize its result; first say in which format. Comes with one pipe.

    Args:
        solutions_format: the media type for the result of SELECT and ASK; None: the client takes none.
        triples_format: the media type for the result of CONSTRUCT and DESCRIBE; None: the client takes none.
        head: whether the format is all that is wanted.
    """

    text: str
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]
    solutions_format: str | None
    triples_format: str | None
    head: bool


class Formatted(msgspec.Struct, tag=True, frozen=True):
    """The query is legal; `media_type` is what its result is serialized as."""

    media_type: str


class Failure(msgspec.Struct, frozen=True):
    """An error of this package on its way to the other process."""

    kind: str
    message: str
    position: tuple[int, int] | None
    status: int
    hint: str | None
    offered: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: ConstructMessagesError) -> Failure:
        """Creates the value to send for an error."""
        offered = error.offered if isinstance(error, NotAcceptable) else ()
        return cls(
            type(error).__name__, error.message, error.position, error.status, error.hint, offered
        )

    def error(self) -> ConstructMessagesError:
        """The error again."""
        if self.kind == NotAcceptable.__name__:
            return NotAcceptable(self.message, hint=self.hint, offered=self.offered)
        kind = next(
            (kind for kind in (QueryError, UsageError) if kind.__name__ == self.kind), SourceError
        )
        position = Position(*self.position) if self.position else None
        return kind(self.message, position=position, status=self.status, hint=self.hint)


class Ended(msgspec.Struct, tag=True, frozen=True):
    """The evaluation, or the start of the process, is over; without `failure` it went well."""

    failure: Failure | None = None


Order: TypeAlias = Solve | Respond
Report: TypeAlias = Formatted | Ended


def main() -> None:
    """`python -m construct_messages.sources.evaluators.child SOCKET DIRECTORY MEMORY`, started by `process.py`.

    SOCKET is the descriptor of the socket, MEMORY a bound in bytes or 0.
    """
    control = socket.socket(fileno=int(sys.argv[1]))
    end_with(control.fileno())
    if memory := int(sys.argv[3]):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        store = open_directory(
            Path(sys.argv[2]), allow_stale=True
        )  # whoever starts this has looked for a writer
    except ConstructMessagesError as error:  # the directory was there before
        _report(control, Ended(Failure.of(SourceError(error.message, status=503, hint=error.hint))))
        return
    _report(control, Ended())
    for order, pipes in _orders(control):
        try:
            if isinstance(order, Solve):
                _solve(store, order, *pipes)
            else:
                _respond(store, order, control, *pipes)
        except (
            ConstructMessagesError,
            SyntaxError,
            OSError,
            ValueError,
            RuntimeError,
            MemoryError,
        ) as error:
            hint, written = (REWRITTEN, order.written) if isinstance(order, Solve) else (None, None)
            _report(control, Ended(Failure.of(explain(error, order.text, hint, written))))
        else:
            _report(control, Ended())


def end_with(descriptor: int) -> None:
    """Ignores signals, and ends this process, whatever it does, when the other end of a socket or pipe is closed."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)

    def wait() -> None:
        poll = polling.poll()
        poll.register(descriptor, 0)  # hang-ups are reported unasked
        poll.poll()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def _orders(control: socket.socket) -> Iterator[tuple[Order, list[int]]]:
    decoder = msgspec.json.Decoder(Order)
    received, pipes = b"", list[int]()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, _RECEIVED, 2)
        if not data:
            return
        received += data
        pipes += descriptors
        if received.endswith(b"\n"):
            yield decoder.decode(received), pipes
            received, pipes = b"", []


def _report(control: socket.socket, report: Report) -> None:
    control.sendall(msgspec.json.encode(report) + b"\n")


def _solve(store: ox.Store, order: Solve, first: int, bulk: int) -> None:
    run = partial(query, store, order.text, order.default_graphs, order.named_graphs)
    write_solutions(run, order.variables, first, bulk)


def _respond(store: ox.Store, order: Respond, control: socket.socket, pipe: int) -> None:
    try:
        result = query(store, order.text, order.default_graphs, order.named_graphs)
        media_type, format = _format(result, order)
        _report(control, Formatted(media_type))
        if not order.head:
            serialize(result, pipe, format)
    finally:
        os.close(pipe)


def _format(
    result: QueryResult, order: Respond
) -> tuple[str, ox.QueryResultsFormat | ox.RdfFormat]:
    of_triples = isinstance(result, ox.QueryTriples)
    media_type = order.triples_format if of_triples else order.solutions_format
    if media_type is None:
        offered = tuple(each.media_type for each in (TRIPLES if of_triples else SOLUTIONS))
        raise NotAcceptable(
            "the client takes no format that this query's result can be had in",
            hint=f"ask for one of {', '.join(offered)}",
            offered=offered,
        )
    format = (ox.RdfFormat if of_triples else ox.QueryResultsFormat).from_media_type(media_type)
    assert format is not None
    return media_type, format


if __name__ == "__main__":
    main()
