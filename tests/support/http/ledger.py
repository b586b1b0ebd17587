"""What a server counted and logged of the requests of a test."""

from __future__ import annotations

import re
from collections import Counter

from tests.support.http.serving import Served
from tests.support.waiting import eventually


class Ledger:
    """What the server says of its requests, from now on."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._place = len(served.request_log.getvalue())
        self._before = self._counts()

    def _counts(self) -> Counter[tuple[str, ...]]:
        counts: Counter[tuple[str, ...]] = Counter()
        exposition, _ = self._served.metrics.exposition(None)
        for name, label, value in re.findall(
            r"^construct_messages_(\w+)_total{([^}]*)} (\S+)$", exposition.decode(), re.M
        ):
            counts[name, *re.findall('reason="(.*)"', label)] += int(float(value))
        return counts

    def counted(self, name: str) -> dict[str, int]:
        """A metric, by reason."""
        return {
            key[-1]: count
            for key, count in (self._counts() - self._before).items()
            if key[0] == name
        }

    def lines(self) -> list[str]:
        """The outcomes of the requests that have ended."""
        return re.findall(
            r"event=request .* outcome=(\S+)", self._served.request_log.getvalue()[self._place :]
        )

    async def ended(self, requests: int) -> set[str]:
        """The outcomes of so many requests, when all have ended."""
        await eventually(lambda: len(self.lines()) >= requests)
        assert len(self.lines()) == requests
        return set(self.lines())

    async def sent(self, messages: int) -> None:
        """When so many messages have been sent."""
        await eventually(lambda: self.counted("messages").get("messages", 0) >= messages)
