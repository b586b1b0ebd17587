"""Live streams of messages: a store of elements that one process writes and many follow.

An *element* is a message with its stream, its sequence in it and its time. `open_store` opens a store. No HTTP and no
broker here: transports read and append through `StreamStore`, without access to its tables.
"""

from __future__ import annotations

from construct_messages.streams.element import Description, Element, Retention
from construct_messages.streams.publication import Publication
from construct_messages.streams.reading import Seen
from construct_messages.streams.store import StreamStore, open_store

__all__ = [
    "Description",
    "Element",
    "Publication",
    "Retention",
    "Seen",
    "StreamStore",
    "open_store",
]
