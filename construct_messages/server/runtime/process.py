"""One serving process: runs the application on a socket, from start to graceful stop.

Run as a module, it is a worker of `supervisor.py`: it receives its job and reports that it is ready. It stops when the
supervisor ends.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from construct_messages.errors import ConstructMessagesError, QueryWarning
from construct_messages.server.config import Config
from construct_messages.server.http.app import REQUEST_TASK, make_app, runner_of
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.pages.endpoint import problem_page
from construct_messages.server.runtime.endpoints import open_endpoints
from construct_messages.sparql.children import Parent

THREADS: Final = 4
"""The number of threads of a serving process for work that would block the event loop. They compute, so more threads
would not be faster; name resolution and other waiting use the event loop's own threads.
"""
THREAD_NAMES: Final = "construct-messages"

# Several processes accept from one queue: few connections at a time, or the first process to wake would take a whole
# burst.
_ACCEPTED_AT_ONCE: Final = 16
_QUEUE: Final = 1024
_YOUNG_OBJECTS: Final = 20_000
_RESET_SECONDS: Final = 2.0
"""The maximal time for resetting answers."""


class WorkerJob(msgspec.Struct, frozen=True):
    """The job of a worker: its share of the limits, the store directories by endpoint, and the inherited socket."""

    config: Config
    directories: dict[str, str]
    socket: int


class Ready(msgspec.Struct, frozen=True):
    """The report that the worker answers requests."""


class Stop:
    """A request to stop: called once, running answers may end; called again, they are reset."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.forced = asyncio.Event()

    def __call__(self) -> None:
        (self.forced if self.requested.is_set() else self.requested).set()

    def on(self, *signals: signal.Signals) -> None:
        """Calls `stop` on signals."""
        for number in signals:
            asyncio.get_running_loop().add_signal_handler(number, self)


async def serve(
    config: Config,
    directories: Mapping[str, Path],
    listening: socket.socket,
    request_log: RequestLog,
    stop: Stop,
    ready: Callable[[], None],
) -> None:
    """Serves until a stop is requested.

    It closes the socket at the end, and calls `ready` once requests are answered.

    Then the server accepts no new requests, ends followers of streams, lets other answers run for `shutdown_seconds`,
    and resets the remaining ones.
    """
    warnings.simplefilter("ignore", QueryWarning)  # queries are those of clients
    with ThreadPoolExecutor(THREADS, THREAD_NAMES) as executor:
        app = make_app(
            config,
            open_endpoints(config, directories, request_log, executor),
            request_log=request_log,
            problem_page=problem_page if config.page else None,
        )
        runner = runner_of(app, shutdown_seconds=_RESET_SECONDS)
        await runner.setup()
        try:
            site = web.SockSite(runner, listening, backlog=_ACCEPTED_AT_ONCE)
            await site.start()
            listening.listen(_QUEUE)
            ready()
            await stop.requested.wait()
            request_log.log("info", "stopping", under_way=len(_running()))
            await site.stop()
            assert runner.server is not None
            runner.server.pre_shutdown()
            await (
                app.shutdown()
            )  # endless answers are ended first, because nothing else waits for them
            await _end_requests(stop.forced, config.shutdown_seconds)
            await _cancel_requests()
        finally:
            await runner.cleanup()


def collect_less_garbage() -> None:
    """Makes the interpreter collect cycles less often, without the objects that the server has loaded.

    Each full collection stops all answers, with many followers for longer than the delivery of a message may take.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 50)


# aiohttp's own shutdown closes unfinished answers, which some clients consider complete. A cancelled answer is reset by
# the task that writes it.


def _running() -> set[asyncio.Task[Any]]:
    """Returns the tasks of the running requests."""
    return {task for task in asyncio.all_tasks() if task.get_name() == REQUEST_TASK}


async def _end_requests(forced: asyncio.Event, seconds: float) -> None:
    """Waits until all requests have ended, up to a maximal time, or until `forced` is set."""
    waits = [asyncio.create_task(_none_running()), asyncio.create_task(forced.wait())]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _none_running() -> None:
    while running := _running():
        await asyncio.wait(running)


async def _cancel_requests() -> None:
    """Cancels the running requests."""
    for task in (running := _running()):
        task.cancel("the server stops")
    if running:
        await asyncio.wait(running, timeout=_RESET_SECONDS)


async def _work(job: WorkerJob, request_log: RequestLog, supervisor: Parent[WorkerJob]) -> None:
    stop = Stop()
    stop.on(signal.SIGTERM)
    # the supervisor sends nothing more, so data means that it has ended
    asyncio.get_running_loop().add_reader(supervisor.fileno(), _supervisor_ended, supervisor, stop)
    directories = {name: Path(directory) for name, directory in job.directories.items()}
    with socket.socket(fileno=job.socket) as listening:

        def ready() -> None:
            collect_less_garbage()
            supervisor.report(Ready())

        await serve(job.config, directories, listening, request_log, stop, ready)


def _supervisor_ended(supervisor: Parent[WorkerJob], stop: Stop) -> None:
    asyncio.get_running_loop().remove_reader(supervisor.fileno())
    stop()


def main() -> int:
    """Runs the job from the supervisor; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    supervisor = Parent[WorkerJob](WorkerJob)
    job, _ = next(supervisor.orders())
    request_log = RequestLog(job.config)
    request_log.capture_logging()
    try:
        asyncio.run(_work(job, request_log, supervisor))
    except ConstructMessagesError as error:
        request_log.log("error", "cannot serve", reason=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
