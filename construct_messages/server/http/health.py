"""Liveness and readiness, for load balancers and orchestrators.

Live: the process answers. Ready: at least one endpoint's source answers, so that one broken source does not take the
others off the network. Each source is checked at most once in some seconds, independently of the rate of probes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from aiohttp import web

from construct_messages.rdf.errors import ConstructMessagesError

_KEPT_SECONDS: Final = 5.0
_CHECK_SECONDS: Final = 5.0


class Checkable(Protocol):
    """Something with a health check."""

    async def check(self) -> None:
        """Raises an error of this package if the backend does not answer."""
        ...


class Health:
    """The handlers of the two probes.

    Args:
        backends: the backends, by endpoint name.
        reported: returns additional members of the readiness report, by name; they do not affect readiness.
        kept_seconds: how long a result is valid.
        check_seconds: the maximal time for the answer of a source.
    """

    def __init__(
        self,
        backends: Mapping[str, Checkable],
        reported: Callable[[], Mapping[str, object]] = dict,
        *,
        kept_seconds: float = _KEPT_SECONDS,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self._reported = reported
        self._checks = {
            name: _Check(backend, kept_seconds=kept_seconds, check_seconds=check_seconds)
            for name, backend in backends.items()
        }

    async def live(self, _: web.Request) -> web.Response:
        """Answers 200: the process is alive."""
        return _report(200, {"status": "live"})

    async def ready(self, _: web.Request) -> web.Response:
        """Answers 200 if at least one source answers, else 503; the body lists the sources that answer."""
        names, answers = (
            list(self._checks),
            await asyncio.gather(*(check.passes() for check in self._checks.values())),
        )
        ready = any(answers)
        return _report(
            200 if ready else 503,
            {
                "status": "ready" if ready else "not ready",
                "endpoints": {
                    name: "answers" if ok else "fails"
                    for name, ok in zip(names, answers, strict=True)
                },
                **self._reported(),
            },
        )


class _Check:
    """The last result of one check, which is repeated after its time; concurrent probes wait for the same check."""

    def __init__(self, backend: Checkable, *, kept_seconds: float, check_seconds: float) -> None:
        self._backend, self._kept_seconds, self._check_seconds = (
            backend,
            kept_seconds,
            check_seconds,
        )
        self._asking = asyncio.Lock()
        self._asked: float | None = None
        self._passed = False

    async def passes(self) -> bool:
        async with self._asking:
            if self._asked is None or time.monotonic() - self._asked >= self._kept_seconds:
                self._passed = await self._ask()
                self._asked = time.monotonic()
            return self._passed

    async def _ask(self) -> bool:
        try:
            async with asyncio.timeout(self._check_seconds):
                await self._backend.check()
        except (ConstructMessagesError, TimeoutError):
            return False
        return True


def _report(status: int, document: dict[str, object]) -> web.Response:
    return web.json_response(document, status=status, headers={"Cache-Control": "no-store"})
