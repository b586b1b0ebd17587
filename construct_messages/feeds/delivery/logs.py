"""A log that is read as a stream: a file, or the output of another program. Its messages are counted from 1."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.transport import Start, Transport
from construct_messages.logs.reading import LogReader
from construct_messages.rdf.errors import UsageError
from construct_messages.streams import Element
from construct_messages.streams.publication import received


class ReadableLog(Transport):
    """A log; see `Transport`. A position is a number of messages, which are skipped when the log is read again."""

    def __init__(self, log: LogReader, name: str) -> None:
        self._log, self._name = log, name
        self._position: Checkpoint | None = None

    @property
    def position(self) -> Checkpoint | None:
        return self._position

    async def read(self, start: Start, *, follow: bool) -> AsyncGenerator[Element | None]:
        """Yields the elements until the end of the log; see `Transport.read`.

        Raises `UsageError` for a position that logs do not have, or fewer messages than were read before.
        """
        if follow:
            raise UsageError(
                f"{self._name} is a log, and ends",
                hint=f"construct-messages tail -n 0 --follow {self._name} | construct-messages relay --from - …",
            )
        if start.last is not None or start.since is not None:
            raise UsageError(
                f"the messages of {self._name} have no times and no known number",
                hint="start after a number of messages, or give the last ones: construct-messages tail -n N",
            )
        if start.checkpoint is not None:
            start.checkpoint.check()
            skipped = start.checkpoint.sequence
        else:
            skipped = start.after or 0
        self._position = Checkpoint(skipped)
        yield None
        count = 0
        async with self._log:
            async for message in self._log:
                count += 1
                if count > skipped:
                    element = received(self._name, count, message)
                    self._position = Checkpoint(count)
                    yield element
        if count < skipped:
            raise UsageError(
                f"{self._name} has {count} messages, and {skipped} were read before",
                hint="give the same log, or another state file",
            )
