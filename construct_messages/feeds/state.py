"""State files: how far a publisher or a subscriber is, for when it is started again. Each is whole or not there.

Also the keys of batches, which another process that continues has again.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeVar
from uuid import uuid4

import msgspec

from construct_messages.errors import UsageError
from construct_messages.files.output import atomic_file


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The position of a subscription, to continue from.

    Args:
        sequence: the sequence of the last element; or the number of elements, if the source has no sequences.
        place: what else the transport needs to continue, which only it understands; empty: nothing.
        identity: what distinguishes the stream from others of its name; empty: the server does not send it.
    """

    sequence: int
    place: dict[str, tuple[str, ...]] = {}
    identity: str = ""

    def check(self, *names: str) -> None:
        """Checks that the place is one of a transport.

        Args:
            names: those of the texts that the transport keeps there.

        Raises:
            UsageError: another transport wrote it.
        """
        if self.place.keys() - set(names):
            raise UsageError(
                "the checkpoint is of another transport", hint="continue via the same one"
            )


_OWN: Final = re.compile("writer-[0-9a-f]{32}")


class BatchKey(NamedTuple):
    """The key of a batch.

    Args:
        writer: the same for all batches of one writer.
        number: grows from batch to batch.
    """

    writer: str
    number: int

    @staticmethod
    def new_writer() -> str:
        """Returns a name that no other writer has; see `is_own`."""
        return f"writer-{uuid4().hex}"

    @property
    def is_own(self) -> bool:
        """Whether no other writer can have the name, so that equal numbers under it are equal messages.

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
    """The state of a publisher or a relay.

    Args:
        url: where it sends messages.
        key: what the keys of its batches begin with.
        source: where it reads messages; empty: its caller passes them.
        acknowledged: how many messages were.
        position: of the source, after the messages that were acknowledged or are in flight; None: not known yet.
        in_flight: the messages of the batch that was sent last, as N-Quads, if it may not have been acknowledged.
        size: bytes of the target before this batch; None: it is no file.
    """

    url: str
    key: str
    source: str = ""
    acknowledged: int = 0
    position: Checkpoint | None = None
    in_flight: tuple[str, ...] = ()
    size: int | None = None

    @classmethod
    def begin(cls, url: str, key: str | None = None, *, source: str = "") -> Self:
        """Before the first message; a key that is None is random."""
        return cls(url, BatchKey.new_writer() if key is None else key, source)


class Received(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a subscriber.

    Args:
        url: where it subscribes.
        checkpoint: of its subscription.
        size: bytes of the output with what came before; None: the output cannot be cut.
    """

    url: str
    checkpoint: Checkpoint
    size: int | None


S = TypeVar("S", Sent, Received)


def read_state(
    path: str | os.PathLike[str], kind: type[S], url: str, *, source: str = ""
) -> S | None:
    """Reads the state file of a stream; None: there is none.

    Args:
        path: of the file.
        kind: of the state.
        url: of the stream.
        source: of a relay; see `Sent.source`.

    Raises:
        UsageError: it cannot be read, is no such state, or is one of another stream.
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
    """Puts a state in the place of the one before.

    Raises:
        CannotWrite: the place cannot be written.
    """
    with atomic_file(path) as file:
        file.write(msgspec.json.encode(state) + b"\n")
        file.flush()
        os.fsync(
            file.fileno()
        )  # otherwise the name may be there before the bytes, when the power goes
