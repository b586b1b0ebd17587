"""State files: the progress of a publisher or a subscriber, for a restart. Each is written atomically.

Also the keys of batches, which another process reuses when it continues, and the order of sequences.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeVar
from uuid import uuid4

import msgspec

from construct_messages.errors import SourceError, UsageError
from construct_messages.rdf.files.output import atomic_file

# --- state ----------------------------------------------------------------------------------------


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The position of a subscription, to continue from.

    Args:
        sequence: the sequence of the last element; or the number of elements, if the source has no sequences.
        place: additional data of the transport, which only it interprets; empty: none.
        identity: distinguishes the stream from others with its name; empty: the server does not send it.
    """

    sequence: int
    place: dict[str, tuple[str, ...]] = {}
    identity: str = ""

    def check(self, *names: str) -> None:
        """Checks that the place is that of a transport.

        Args:
            names: the names of the texts that the transport stores there.

        Raises:
            UsageError: another transport wrote it.
        """
        if self.place.keys() - set(names):
            raise UsageError(
                "the checkpoint is of another transport", hint="continue via the same one"
            )


_OWN: Final = re.compile("writer-[0-9a-f]{32}")


class BatchKey(NamedTuple):
    """The key of a batch."""

    writer: str  # the same for all batches of one writer
    number: int  # grows from batch to batch

    @staticmethod
    def new_writer() -> str:
        """Returns a unique name of a writer; see `is_own`."""
        return f"writer-{uuid4().hex}"

    @property
    def is_own(self) -> bool:
        """Whether the name is unique, so that equal numbers under it are equal messages.

        >>> BatchKey(BatchKey.new_writer(), 1).is_own, BatchKey("rooms", 1).is_own
        (True, False)
        """
        return _OWN.fullmatch(self.writer) is not None and self.number > 0

    @classmethod
    def parse(cls, key: str) -> BatchKey:
        """Reads a key, `WRITER-NUMBER`.

        >>> BatchKey.parse("rooms-2026-1001"), BatchKey.parse("rooms")
        (BatchKey(writer='rooms-2026', number=1001), BatchKey(writer='rooms', number=0))
        """
        writer, _, number = key.rpartition("-")
        if writer and number.isascii() and number.isdigit() and len(number) < 19:
            return cls(writer, int(number))
        return cls(key, 0)


class Sent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state of a publisher or a relay."""

    url: str
    key: str  # the beginning of the keys of its batches
    source: str = ""  # the source of messages; empty: its caller passes them
    acknowledged: int = 0  # the number of acknowledged messages
    # the position of the source, after the messages that were acknowledged or are in flight; None: unknown yet
    position: Checkpoint | None = None
    # the messages of the batch that was sent last, as N-Quads, if it may not have been acknowledged
    in_flight: tuple[str, ...] = ()
    # the size of the target in bytes: before the batch in flight, or after the acknowledged messages if there is none
    # in flight; None: it is not a file, or nothing was sent
    size: int | None = None

    @classmethod
    def begin(cls, url: str, key: str | None = None, *, source: str = "") -> Self:
        """Returns the state before the first message; None: a random key."""
        return cls(url, BatchKey.new_writer() if key is None else key, source)


class Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a subscriber."""

    url: str
    checkpoint: Checkpoint
    # the size of the output at the checkpoint, in bytes; None: the output cannot be cut
    size: int | None


S = TypeVar("S", Sent, Received)


def read_state(
    path: str | os.PathLike[str], kind: type[S], url: str, *, source: str = ""
) -> S | None:
    """Reads the state file of a stream, and of a source for a relay; None: there is no file.

    Raises `UsageError` if it cannot be read, or is another one.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {os.fspath(path)}: {error.strerror}") from error
    try:
        state = msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"{os.fspath(path)} is no state of this command", hint="name another file"
        ) from error
    for kept, given in ((state.url, url), (getattr(state, "source", ""), source)):
        if kept != given:
            raise UsageError(
                f"the state is of {kept or 'a publisher'}, and not of {given or 'a publisher'}",
                hint="name another state file",
            )
    return state


def write_state(path: str | os.PathLike[str], state: Sent | Received) -> None:
    """Replaces the previous state."""
    with atomic_file(path) as file:
        file.write(msgspec.json.encode(state) + b"\n")


# --- sequences ------------------------------------------------------------------------------------
# Checks sequences of elements from servers: their form, and their order. No I/O.

_DIGITS: Final = 20  # more digits than sequences have
_GONE: Final = 410


def is_sequence(text: str) -> bool:
    """Returns whether a text is the sequence of an element.

    >>> is_sequence("12"), is_sequence("1.2"), is_sequence("")
    (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) < _DIGITS


def check_next(stream: str, last: int, sequence: int) -> None:
    """Raises `SourceError` (410, as for elements that retention removed) if elements are missing between two sequences.

    >>> check_next("https://example.org/streams/a", 7, 8)
    >>> check_next("https://example.org/a", 7, 10)
    Traceback (most recent call last):
    construct_messages.errors.SourceError: https://example.org/a: elements 8 to 9 are missing between 7 and 10
      hint: they may have been removed before they were read; begin again after 9
    """
    if sequence > last + 1:
        missing = (
            f"elements {last + 1} to {sequence - 1} are"
            if sequence > last + 2
            else f"element {last + 1} is"
        )
        raise SourceError(
            f"{stream}: {missing} missing between {last} and {sequence}",
            status=_GONE,
            hint=f"they may have been removed before they were read; begin again after {sequence - 1}",
        )


def same_stream(stream: str, known: str, answered: str) -> str:
    """Returns the identity of a stream, which an answer may repeat; empty: unknown.

    Raises `SourceError` (410) if the answer is of another stream, so that the position is meaningless.

    >>> same_stream("https://example.org/streams/a", "", "7"), same_stream("https://example.org/streams/a", "7", "")
    ('7', '7')
    """
    if known and answered and known != answered:
        raise SourceError(
            f"{stream} is another stream than the one that was read before",
            status=_GONE,
            hint="it was deleted and created again: begin again, without the state",
        )
    return answered or known


def begin_after(stream: str, sequence: int | None, after: int) -> int:
    """Returns the sequence after which an answer begins; the server chooses it if none was requested.

    Raises `SourceError` if the answer begins at another position than requested.

    >>> begin_after("https://example.org/streams/a", None, 7)
    7
    """
    if sequence is None:
        return after
    check_next(stream, sequence, after + 1)
    if after < sequence:
        raise SourceError(f"{stream} begins after element {after}, and not after {sequence}")
    return sequence
