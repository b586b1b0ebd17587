"""What a relay guarantees for each pair of a source and a target, as their capabilities have it. No I/O.

docs/reference/streams/relay.md has the table, which a test compares with these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from construct_messages.feeds.table import TRANSPORTS, Capabilities

LOG: Final = Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True)
"""Those of a log file: the size that it had before a batch is what the key is elsewhere."""

OUTPUT: Final = Capabilities(ends=True, replays=True, numbered=True, writes=True)
"""Those of standard input, if the same log is passed again, and of standard output."""

ENDS: Final = {
    **{kind.title: kind.capabilities for kind in TRANSPORTS},
    "log file": LOG,
    "standard input or output": OUTPUT,
}
"""What can be relayed from and to, by its name in the documentation."""


class Guarantee(StrEnum):
    """How often each message of a source is in a target, after the process was killed and started again."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    NONE = "no relay"


def guarantee(source: Capabilities, target: Capabilities) -> Guarantee:
    """Returns what a relay with a state guarantees; without one, no process continues where another one was.

    Exactly once takes a source that can be read again from a position, and a target that recognises a batch.

    >>> guarantee(LOG, OUTPUT).value, guarantee(LOG, LOG).value
    ('at least once', 'exactly once')
    """
    if not target.writes:
        return Guarantee.NONE
    return Guarantee.EXACTLY_ONCE if source.replays and target.keyed else Guarantee.AT_LEAST_ONCE
