"""The guarantees of a relay for each pair of a source and a target, by their capabilities. No I/O.

docs/reference/streams/relay.md has the table, which a test compares with these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from construct_messages.feeds.table import TRANSPORTS, Capabilities

LOG: Final = Capabilities(ends=True, replays=True, numbered=True, writes=True, keyed=True)
"""The capabilities of a log file: its size before a batch has the role of the key."""

OUTPUT: Final = Capabilities(ends=True, replays=True, numbered=True, writes=True)
"""The capabilities of standard input, if the same log is passed again, and of standard output."""

ENDS: Final = {
    **{kind.title: kind.capabilities for kind in TRANSPORTS},
    "log file": LOG,
    "standard input or output": OUTPUT,
}
"""The sources and targets of relays, by their names in the documentation."""


class Guarantee(StrEnum):
    """How often each message of a source is in a target, after the process was killed and restarted."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"
    NONE = "no relay"


def guarantee(source: Capabilities, target: Capabilities) -> Guarantee:
    """Returns the guarantee of a relay with a state; without one, a process cannot continue where another one stopped.

    Exactly once requires a source that can be read again from a position, and a target that recognises a batch.

    >>> guarantee(LOG, OUTPUT).value, guarantee(LOG, LOG).value
    ('at least once', 'exactly once')
    """
    if not target.writes:
        return Guarantee.NONE
    return Guarantee.EXACTLY_ONCE if source.replays and target.keyed else Guarantee.AT_LEAST_ONCE
