"""Clients of remote live streams: `subscribe` reads the elements of a stream, `publish` sends messages to one, `relay`
does both, and `register` registers a query whose results fill one.

The first three continue where they stopped, so that no element is lost. They support any server, by the transports of
`table.py`. RDF Messages, section 3; Linked Data Notifications. Names are imported when they are first used: the command
line reads the table without a client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from construct_messages.feeds.publication import publish
    from construct_messages.feeds.registration import register
    from construct_messages.feeds.relaying import relay
    from construct_messages.feeds.state import Checkpoint
    from construct_messages.feeds.subscription import Subscription, subscribe

_ROOMS: Final = {
    "Checkpoint": "state",
    "Subscription": "subscription",
    "publish": "publication",
    "register": "registration",
    "relay": "relaying",
    "subscribe": "subscription",
}

__all__ = ["Checkpoint", "Subscription", "publish", "register", "relay", "subscribe"]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
