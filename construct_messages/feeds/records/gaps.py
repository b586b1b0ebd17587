"""Detects messages of a publisher that a broker dropped, by the numbers in the keys of records. No I/O.

Brokers of MQTT drop messages that a slow reader has not received. The reader cannot see that, since packets have no
sequences. `RecordTransport.write` numbers the records of a publisher without gaps.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from construct_messages.rdf.errors import SourceError

_GONE: Final = 410
_PUBLISHERS: Final = 1000


def numbered_key(key: str) -> tuple[str, int] | None:
    """Returns the publisher of a record and its number, from its key; None: the key has another form.

    >>> numbered_key("a1-1001-3"), numbered_key("a1")
    (('a1', 1003), None)
    """
    batch, _, number = key.rpartition("-")
    publisher, _, first = batch.rpartition("-")
    if publisher and first.isdecimal() and number.isdecimal() and len(key) < 200:
        return publisher, int(first) + int(number) - 1
    return None


class Gaps:
    """The last number of each publisher.

    Args:
        url: the URL of the topic.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._last: OrderedDict[str, int] = OrderedDict()

    def check(self, key: str) -> None:
        """Checks the key of the next record.

        Raises:
            SourceError: messages of its publisher are missing before it (410). The next call continues after them.
        """
        if (found := numbered_key(key)) is None:
            return
        publisher, number = found
        last = self._last.pop(publisher, number - 1)
        self._last[publisher] = max(last, number)
        if len(self._last) > _PUBLISHERS:
            self._last.popitem(last=False)
        if number > last + 1:
            raise SourceError(
                f"{self._url}: messages {last + 1} to {number - 1} of publisher {publisher} did not come",
                status=_GONE,
                hint="the broker dropped them, as it queues a bounded number for a slow reader (Mosquitto: 1,000, see "
                "max_queued_messages); read again to go on after them",
            )
