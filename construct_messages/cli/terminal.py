"""The terminal: errors, progress, standard input and output, signals, and no command that writes what it reads.

A process may be started without standard files (`<&-`, `>&-`, or by a service manager). Its object in Python is then
None, the next file that is opened gets its number, and `print(file=None)` writes to standard output: into the log.
"""

from __future__ import annotations

import argparse
import glob
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from construct_messages.errors import IncompleteResult, UsageError
from construct_messages.rdf.files.output import refuse_input

STANDARD: Final = "-"
"""The name of standard input and standard output."""

# --- errors ---------------------------------------------------------------------------------------


def report(error: Exception, *, debug: bool) -> None:
    """Reports an error; with `debug` also where in the program it occurred."""
    if debug:
        import traceback  # takes longer to import than to run

        traceback.print_exception(error)
        return
    print("\n".join(report_lines(error)), file=sys.stderr)


def report_lines(error: Exception) -> list[str]:
    """The lines that report an error."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        # that of a socket has a text of its own
        own = error.strerror.startswith("cannot ")
        message = error.strerror if own else f"cannot write: {error.strerror}"
    text, _, hint = message.partition("\n  hint: ")
    places = getattr(error, "__notes__", ())
    # the message of an engine may have several lines
    lines = [f"error: {' '.join(': '.join((*places, text)).split())}"]
    return [*lines, f"hint: {' '.join(hint.split())}"] if hint else lines


def warn(text: str) -> None:
    """Reports in one line a failure after which the command continues."""
    print("warning:", " ".join(text.split()), file=sys.stderr)


# --- progress -------------------------------------------------------------------------------------

_STEP_SECONDS: Final = 0.1


@contextmanager
def progress(
    counts: Callable[[], tuple[int, int]], *, quiet: bool, output: str | None = None
) -> Iterator[Callable[[], None]]:
    """Yields a function to call after each step; shows the progress on standard error if that is a terminal.

    `counts` returns messages and bytes so far. If the `output` is the same terminal, only the last line is shown.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    # imported here because most runs show no progress, and would take longer to start
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import Progress, SpinnerColumn, TextColumn

    started = updated = time.monotonic()

    def state() -> str:
        messages, size = counts()
        rate = messages / max(time.monotonic() - started, 1e-3)
        return f"{messages:,} messages, {rate:,.0f} messages/s, {decimal(size)}"

    def step() -> None:
        nonlocal updated
        if time.monotonic() - updated >= _STEP_SECONDS:
            updated = time.monotonic()
            shown.update(task, description=state())

    console = Console(stderr=True, highlight=False)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=output == STANDARD and sys.stdout.isatty(),
    ) as shown:
        task = shown.add_task(state())
        yield step
    console.print(state())


# --- stopping -------------------------------------------------------------------------------------
# Stops endless work cleanly at Ctrl-C, SIGTERM and SIGHUP.

END_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""The signals of a service manager and of a closed terminal."""

STOP_SIGNALS: Final = [signal.SIGINT, *END_SIGNALS]
"""`END_SIGNALS`, and the signal of Ctrl-C."""


async def until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Does some work until it is done, or a signal ends it."""
    import asyncio  # imported here because most commands do not need it

    task = asyncio.ensure_future(work)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    when_stopped(stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise


def when_stopped(stop: Callable[[], object]) -> None:
    """Makes the running event loop call a function at each signal, instead of ending the program."""
    import asyncio

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            asyncio.get_running_loop().add_signal_handler(number, stop)


# --- standard -------------------------------------------------------------------------------------

# options of all commands, by the names of their values
_INPUTS: Final = (
    *("file", "source", "log", "logs", "paths", "quads", "shapes", "shapes_data", "frame"),
    *("transform", "state"),
)
_OUTPUTS: Final = ("output", "to", "report", "invalid_to", "quarantine", "dead_letters")

_CHUNK_BYTES: Final = 1 << 16


def reopen_closed_standard_streams() -> None:
    """Replaces closed standard files: reading and writing them fail as usual, and reports are dropped."""
    # each open uses the lowest free descriptor
    for name, flags in (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            setattr(
                sys,
                name,
                open(  # noqa: SIM115 - open as long as the process
                    descriptor, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False
                ),
            )


def refuse_inputs(options: argparse.Namespace) -> None:
    """Checks that no option names an output that another one reads; see `refuse_input`."""
    from construct_messages.sparql.sources.open import VARIABLE

    given = vars(options)
    inputs = [name for option in _INPUTS for name in _names(given.get(option), 0)]
    if "source" in given and not given["source"]:
        inputs += _names(os.environ.get(VARIABLE), 0)
    for option in _OUTPUTS:
        for output in _names(given.get(option), 1):
            refuse_input(output, inputs)


def _names(value: Any, standard: int) -> list[str | int]:
    """The names in the value of an option, and those that patterns stand for; descriptors for standard files."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    names: list[str | int] = [standard if name == STANDARD else name for name in values]
    patterns = [name for name in values if set("*?[") & set(name)]
    return names + [found for pattern in patterns for found in glob.iglob(pattern)]


def target(name: str) -> str | BinaryIO:
    """Returns the target for a name on the command line."""
    return sys.stdout.buffer if name == STANDARD else name


def standard_input() -> Iterator[bytes]:
    """The bytes of standard input as they arrive; output is flushed before waiting for more."""
    read = 0
    while chunk := _read(read):
        yield chunk
        read += len(chunk)
        sys.stdout.buffer.flush()


async def astandard_input() -> AsyncIterator[bytes]:
    """`standard_input` for asyncio: no thread waits for input when the program ends."""
    import asyncio

    loop, descriptor, read = asyncio.get_running_loop(), sys.stdin.fileno(), 0
    while True:
        readable = asyncio.Event()
        try:
            loop.add_reader(descriptor, readable.set)
        except OSError:  # a file or a closed descriptor, which never block
            pass
        else:
            try:
                await readable.wait()
            finally:
                loop.remove_reader(descriptor)
        if not (chunk := _read(read)):
            return
        yield chunk
        read += len(chunk)


def _read(before: int) -> bytes:
    try:
        return os.read(sys.stdin.fileno(), _CHUNK_BYTES)
    except OSError as error:
        if before:
            raise IncompleteResult(
                f"cannot read the rest of standard input: {error.strerror}"
            ) from error
        raise UsageError(
            f"cannot read standard input: {error.strerror}",
            hint="name a file, or pass the log on standard input",
        ) from error
