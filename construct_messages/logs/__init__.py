"""Message logs: messages in, bytes out, one file a syntax. No I/O, and nothing about sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from construct_messages.formats import Format, Syntax
from construct_messages.logs.lines import LinesEncoder
from construct_messages.logs.turtle import TurtleEncoder
from construct_messages.message import Message


class Encoder(Protocol):
    """Writes one log: `start()`, then `encode(message)` for each message, then `finish()`; joined, they are the log."""

    def start(self) -> bytes:
        """What stands before the first message."""
        ...

    def encode(self, message: Message) -> bytes:
        """One message with its delimiter.

        Raises:
            CannotCarry: a quad that the format or the version has no syntax for.
        """
        ...

    def finish(self) -> bytes:
        """What stands after the last message."""
        ...


def encoder_for(format: Format, syntax: Syntax, prefixes: Mapping[str, str] | None = None) -> Encoder:
    """An encoder for a new log.

    Args:
        format: the RDF serialization.
        syntax: how messages are delimited.
        prefixes: for Turtle and TriG.
    """
    if format.extension in ("nt", "nq"):
        return LinesEncoder(format, syntax)
    return TurtleEncoder(format, syntax, prefixes)
