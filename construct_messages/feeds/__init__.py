"""Clients of live streams over HTTP: `subscribe` gives the elements of a stream, `publish` sends messages to one, and
`register` has a query fill one.

The first two go on where they stopped, so that nothing is lost and nothing comes twice. All speak to any server that
speaks as `server/streams` does, and import none of it. RDF Messages, section 3; Linked Data Notifications.
"""

from __future__ import annotations

from construct_messages.feeds.publication import publish
from construct_messages.feeds.registration import register
from construct_messages.feeds.state import Checkpoint
from construct_messages.feeds.subscription import Subscription, subscribe

__all__ = ["Checkpoint", "Subscription", "publish", "register", "subscribe"]
