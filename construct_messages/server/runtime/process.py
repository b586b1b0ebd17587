"""One serving process: runs the application on a socket, from start to graceful stop.

Run as a module, it is a worker of `supervisor.py`: it gets one order, its job, and reports that it is ready. It stops
when the supervisor ends.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from construct_messages.errors import ConstructMessagesError
from construct_messages.processes.parent import Parent
from construct_messages.server.config import Config
from construct_messages.server.http.app import REQUEST_TASK, make_app, runner_of
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.pages.templates import problem_page
from construct_messages.server.runtime.endpoints import open_endpoints

THREADS: Final = 4
"""How many threads a serving process has for what would hold up the event loop. They compute, so more would only take
turns; name look-up and other waiting has the event loop's own."""
THREAD_NAMES: Final = "construct-messages"

# Several processes accept from one queue: few at a time, or the first to wake would take a whole burst.
_ACCEPTED_AT_ONCE: Final = 16
_QUEUE: Final = 1024
_YOUNG_OBJECTS: Final = 20_000
_RESET_SECONDS: Final = 2.0
"""How long resetting answers may take."""


class WorkerJob(msgspec.Struct, frozen=True):
    """The job of a worker.

    Args:
        config: the settings, with the worker's share of what all may do.
        directories: by endpoint: the store directories that files have been loaded into.
        socket: the file descriptor that it inherited.
    """

    config: Config
    directories: dict[str, str]
    socket: int


class Ready(msgspec.Struct, frozen=True):
    """The worker answers requests."""


class Stop:
    """A request to stop: called once, running answers may end; called again, they are reset."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.forced = asyncio.Event()

    def __call__(self) -> None:
        (self.forced if self.requested.is_set() else self.requested).set()

    def on(self, *signals: signal.Signals) -> None:
        """Calls it on signals."""
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

    Then it accepts nothing new, ends followers of streams, lets other answers run for `shutdown_seconds`, and
    resets the rest.

    Args:
        config: the settings.
        directories: by endpoint: the store directories that files have been loaded into.
        listening: the socket, bound; closed at the end.
        request_log: where it logs.
        stop: the request to stop.
        ready: called once requests are answered.

    Raises:
        ConstructMessagesError: an endpoint cannot be opened.
    """
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
            )  # what would go on without end is ended first, as nothing else waits for it
            await _end_requests(stop.forced, config.shutdown_seconds)
            await _cancel_requests()
        finally:
            await runner.cleanup()


def collect_less_garbage() -> None:
    """Makes the interpreter look for cycles less often, and not among what the server has loaded.

    Each look at everything stops all answers, with many followers for as long as a message may take to reach them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 50)


# aiohttp's own shutdown closes unfinished answers, which some clients take for a clean end. A cancelled answer is reset
# by the task that writes it.


def _running() -> set[asyncio.Task[Any]]:
    """The tasks of the requests that are being answered."""
    return {task for task in asyncio.all_tasks() if task.get_name() == REQUEST_TASK}


async def _end_requests(forced: asyncio.Event, seconds: float) -> None:
    """Waits until no request is being answered, for so long at most, or until `forced` is set."""
    waits = [asyncio.create_task(_none_running()), asyncio.create_task(forced.wait())]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _none_running() -> None:
    while running := _running():
        await asyncio.wait(running)


async def _cancel_requests() -> None:
    """Cancels the requests that are being answered."""
    for task in (running := _running()):
        task.cancel("the server stops")
    if running:
        await asyncio.wait(running, timeout=_RESET_SECONDS)


async def _work(job: WorkerJob, request_log: RequestLog, supervisor: Parent[WorkerJob]) -> None:
    stop = Stop()
    stop.on(signal.SIGTERM)
    # nothing more comes from the supervisor but its end
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
    """Does the job that the supervisor sends; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's business
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
