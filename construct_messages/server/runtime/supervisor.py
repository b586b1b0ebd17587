"""Runs a server: binds its socket, loads files into stores, and keeps its processes running.

A single process serves requests itself. Several are spawned (a fork would copy threads' locks and open stores) and
inherit one listening socket: with a socket each (SO_REUSEPORT), connections that wait for a process would be lost with
it.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from prometheus_client.multiprocess import mark_process_dead

from construct_messages.errors import IncompleteResult, SourceError
from construct_messages.server.config import Config, EndpointSettings
from construct_messages.server.http.metrics import DIRECTORY
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.runtime.checks import bounded
from construct_messages.server.runtime.process import (
    Ready,
    Stop,
    WorkerJob,
    collect_less_garbage,
    serve,
)
from construct_messages.server.sparql.endpoint import path_of
from construct_messages.sparql.children import Child
from construct_messages.sparql.sources.evaluators.loading import load_directory

FAILED: Final = 1

_TRIES: Final = 3
"""The number of times in a row that a process may end before it is ready; then the server stops."""
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 30.0
_STABLE_SECONDS: Final = 60.0
_KILL_AFTER_SECONDS: Final = 10.0
"""The additional time, after `shutdown_seconds`, for a process to stop."""

_HINTS: Final = {
    errno.EADDRINUSE: "end the program that listens there, or choose another port: bind, or --bind",
    errno.EACCES: "choose a port from 1024 on: bind, or --bind",
}

Progress = Callable[[str, int, int], None]
"""A callback with the path of an endpoint, the number of bytes read so far, and the size of all its files."""


def run(
    config: Config, loading: Callable[[], AbstractContextManager[Progress | None]] = nullcontext
) -> int:
    """Runs a server until SIGTERM or SIGINT, and returns the exit status: 0, or 1 if its processes fail repeatedly.

    `loading` is a context manager around loading files, which returns the callback for progress.
    """
    config = bounded(config)
    request_log = RequestLog(config)
    request_log.capture_logging()
    with ExitStack() as stack:
        # before the stores, which may take long: an address in use is an error at once
        listening = stack.enter_context(bound(config))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="construct-messages-")))
        began = time.monotonic()
        with loading() as progress:
            directories = load_stores(config, place, progress)
        if directories:
            loaded = [path_of(name) for name in directories]
            request_log.log(
                "info",
                "loaded",
                endpoints=" ".join(loaded),
                seconds=round(time.monotonic() - began, 3),
            )
        listening.listen()
        url = url_of(listening)
        if "*" in config.cors:
            request_log.log("warning", "pages of every website may read answers", cors="*")
        if config.workers == 1:
            asyncio.run(_alone(config, directories, listening, request_log, url))
            return 0
        metrics = place / "metrics"
        metrics.mkdir()
        return asyncio.run(
            Supervisor(config, directories, listening, request_log, metrics).run(url)
        )


def bound(config: Config) -> socket.socket:
    """Binds a socket to the address of the settings; it does not listen yet."""
    host, port = config.address
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        listening = socket.socket(family, kind, protocol)
        try:
            # a restarted server need not wait until connections of the previous one expire
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "check the host and the port: bind, or --bind")
        reason = f"cannot listen at {config.bind}: {error.strerror}\n  hint: {hint}"
        raise OSError(error.errno, reason) from error
    return listening


def url_of(listening: socket.socket) -> str:
    """Returns the URL of a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def load_stores(config: Config, place: Path, progress: Progress | None = None) -> dict[str, Path]:
    """Loads the files of all endpoints that have files for a source into store directories. Returns the directories by
    endpoint.
    """
    directories = {}
    for number, (name, endpoint) in enumerate(config.endpoints.items()):
        paths = [Path(source) for source in endpoint.source]
        if endpoint.is_remote or paths[0].is_dir():
            continue
        directories[name] = place / f"store-{number}"
        report = None if progress is None else partial(progress, path_of(name))
        load_directory(paths, directories[name], report, lenient=endpoint.lenient)
    return directories


def share(config: Config, worker: int) -> Config:
    """Returns the settings of one of several workers: limits of an endpoint are divided among them.

    >>> config = Config(endpoints={"": EndpointSettings(source=("a.ttl",), concurrency=50, rate=10)}, workers=4)
    >>> [share(config, worker).endpoints[""].concurrency for worker in range(4)]
    [13, 13, 12, 12]
    """

    def part(whole: int) -> int:
        return whole // config.workers + (worker < whole % config.workers)

    def of(endpoint: EndpointSettings) -> EndpointSettings:
        return replace(
            endpoint,
            concurrency=part(endpoint.concurrency),
            queue_length=part(endpoint.queue_length),
            # unused with a URL, so they need not suffice for all workers
            evaluators=max(1, part(endpoint.evaluators)),
            rate=None if endpoint.rate is None else endpoint.rate / config.workers,
        )

    return replace(
        config, endpoints={name: of(endpoint) for name, endpoint in config.endpoints.items()}
    )


async def _alone(
    config: Config,
    directories: Mapping[str, Path],
    listening: socket.socket,
    request_log: RequestLog,
    url: str,
) -> None:
    stop = Stop()
    stop.on(signal.SIGTERM, signal.SIGINT)

    def ready() -> None:
        collect_less_garbage()
        request_log.log("info", f"listening on {url}")

    await serve(config, directories, listening, request_log, stop, ready)
    request_log.log("info", "stopped")


class Supervisor:
    """Keeps a number of processes running that accept from one socket, and share values in an empty directory."""

    def __init__(
        self,
        config: Config,
        directories: Mapping[str, Path],
        listening: socket.socket,
        request_log: RequestLog,
        metrics: Path,
    ) -> None:
        self._config, self._directories = config, directories
        self._listening, self._request_log, self._metrics = listening, request_log, metrics
        self._processes: set[Child[Ready]] = set()
        self._ready: set[int] = set()

    async def run(self, url: str) -> int:
        """Runs until SIGTERM or SIGINT; returns the exit status: 0, or 1 if a process failed repeatedly."""
        stop = Stop()
        stop.on(signal.SIGTERM, signal.SIGINT)
        requested = asyncio.create_task(stop.requested.wait())
        keepers = [
            asyncio.create_task(self._keep(worker, url)) for worker in range(self._config.workers)
        ]
        await asyncio.wait([requested, *keepers], return_when=asyncio.FIRST_COMPLETED)
        gave_up = [keeper for keeper in keepers if keeper.done()]
        for task in (requested, *keepers):
            task.cancel()
        await asyncio.wait([requested, *keepers])
        self._listening.close()
        await self._end(stop.forced)
        for keeper in gave_up:
            keeper.result()  # raises unexpected errors
        self._request_log.log("info", "stopped")
        return FAILED if gave_up else 0

    async def _keep(self, worker: int, url: str) -> None:
        """Keeps one process running; returns after too many failures."""
        failures, failed_starts = 0, 0
        while failed_starts < _TRIES:
            began = time.monotonic()
            try:
                process = await self._start(worker)
            except SourceError as error:
                self._request_log.log(
                    "error", "a worker cannot be started", worker=worker, reason=str(error)
                )
                was_ready = False
            else:
                was_ready = await self._live(process, worker, url)
            failures = 1 if time.monotonic() - began > _STABLE_SECONDS else failures + 1
            failed_starts = 0 if was_ready else failed_starts + 1
            await asyncio.sleep(min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE))
        self._request_log.log(
            "error", "giving up: a worker ends before it can serve", worker=worker
        )

    async def _live(self, process: Child[Ready], worker: int, url: str) -> bool:
        """Waits for the end of a process; returns whether it was ready before."""
        was_ready = False
        with suppress(IncompleteResult):  # it has ended
            await process.receive()
            was_ready = True
            self._add_ready(worker, url)
        code = await process.exited()
        process.kill_and_wait()  # this closes the socket
        self._processes.discard(process)
        mark_process_dead(process.pid, str(self._metrics))  # type: ignore[no-untyped-call] # prometheus_client's
        self._request_log.log("error", "a worker ended", worker=worker, pid=process.pid, code=code)
        return was_ready

    async def _start(self, worker: int) -> Child[Ready]:
        directories = {name: str(directory) for name, directory in self._directories.items()}
        job = WorkerJob(share(self._config, worker), directories, self._listening.fileno())
        process = Child[Ready](
            "construct_messages.server.runtime.process",
            reports=Ready,
            task="serves requests",
            pass_fds=[self._listening.fileno()],
            environment={DIRECTORY: str(self._metrics)},
        )
        self._processes.add(process)
        with suppress(IncompleteResult):  # it has ended, and `_live` handles it
            await process.send(job)
        return process

    def _add_ready(self, worker: int, url: str) -> None:
        all_were_ready = len(self._ready) == self._config.workers
        self._ready.add(worker)
        if not all_were_ready and len(self._ready) == self._config.workers:
            self._request_log.log("info", f"listening on {url}", workers=self._config.workers)

    async def _end(self, forced: asyncio.Event) -> None:
        """Stops the processes: gracefully, at once when `forced` is set, and kills processes that hang."""
        self._signal(signal.SIGTERM)
        ended: asyncio.Future[Any] = asyncio.gather(
            *(process.exited() for process in self._processes)
        )
        now: asyncio.Future[Any] = asyncio.create_task(forced.wait())
        grace_seconds = self._config.shutdown_seconds + _KILL_AFTER_SECONDS
        await asyncio.wait([ended, now], timeout=grace_seconds, return_when=asyncio.FIRST_COMPLETED)
        if now.done():
            self._signal(signal.SIGTERM)
            await asyncio.wait([ended], timeout=_KILL_AFTER_SECONDS)
        now.cancel()
        if not ended.done():
            self._request_log.log("error", "killing workers that do not stop")
            self._signal(signal.SIGKILL)
        await ended

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.signal(number)
