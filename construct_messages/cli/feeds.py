"""The commands `publish`, `subscribe` and `register`: a log into a stream, a stream into a log, a query at a server."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from construct_messages.cli.arguments import (
    Commands,
    add_format,
    add_reports,
    add_token,
    format_options,
    option,
    pairs,
    token_of,
)
from construct_messages.cli.logs import add_input, contexts, open_log
from construct_messages.cli.progress import progress
from construct_messages.cli.queries import add_query, query_text
from construct_messages.cli.standard import STANDARD, astandard_input, target
from construct_messages.cli.stopping import when_stopped
from construct_messages.errors import CannotWrite, UsageError
from construct_messages.feeds.table import TRANSPORTS
from construct_messages.files.compression import COMPRESSIONS
from construct_messages.formats import find_log
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.message import Message
from construct_messages.reading import LogReader
from construct_messages.targets import format_of_target, log_file

if TYPE_CHECKING:
    from construct_messages.feeds import Subscription
    from construct_messages.feeds.state import Received
    from construct_messages.streams.element import Element

# clients are imported only where they are used: other commands need no HTTP client, and would wait for it

_SAVE_SECONDS: Final = 1.0
"""How long a message is in a log before the state tells of it."""


def add(commands: Commands) -> None:
    """Adds the commands."""
    publish = commands.add_parser(
        "publish",
        help="send a log to a live stream",
        description="Send the messages of a log to a stream, in order, each once.",
        examples=[
            "construct-messages publish log.nq --to http://127.0.0.1:8080/streams/companies --create",
            "construct-messages run query.rq --source data.ttl | construct-messages publish - --to http://127.0.0.1:8080/s",
        ],
        epilog="Exit status: 0 all acknowledged, 1 state not written, 2 wrong usage, 3 malformed log, or the server "
        "refuses or cannot be reached, 4 beyond a limit.",
    )
    publish.set_defaults(command=_publish)
    publish.add_argument("log", metavar="LOG", help="the log to read; - for standard input")
    option(publish, "--to URL", "the stream, or its input", required=True)
    option(publish, "--batch N", "send at most N messages at once", type=int, default=1000)
    option(publish, "--create", "create the stream if it does not exist")
    _add_requests(publish, "the number of acknowledged messages, to continue after a restart")
    add_input(publish)
    add_reports(publish)

    subscribe = commands.add_parser(
        "subscribe",
        help="write the messages of a live stream as a log",
        description="Write the messages of a stream as a log, each as soon as it comes.",
        examples=[
            "construct-messages subscribe http://127.0.0.1:8080/streams/companies --last 10 --format ttl",
            "construct-messages subscribe http://127.0.0.1:8080/streams/companies --follow --output log.trig --state s",
        ],
        epilog="Exit status: 0 complete, or stopped by Ctrl-C or SIGTERM, 1 log not written, 2 wrong usage, or a "
        "message that cannot be written, 3 the server refuses or cannot be reached, 4 beyond a limit.",
    )
    subscribe.set_defaults(command=_subscribe)
    subscribe.add_argument(
        "url",
        metavar="URL",
        help="the stream, or its events, socket or output; an event stream (LDES); an LDN inbox",
    )
    where = subscribe.add_mutually_exclusive_group()
    option(where, "--last N", "start with the N newest messages", type=int)
    option(
        where,
        "--after N",
        "start after the message with this sequence; 0: with the first",
        type=int,
    )
    option(
        where,
        "--since TIME",
        "start with messages stored at this time or later, as in 2026-11-22T12:00:00Z",
    )
    option(
        subscribe,
        "--follow",
        "wait for more messages, by default from the next one on; without --follow, end after the newest",
    )
    option(
        subscribe,
        "--via TRANSPORT",
        f"one of {', '.join(kind.name for kind in TRANSPORTS)}; default: the first that the stream offers",
        choices=[kind.name for kind in TRANSPORTS],
    )
    option(
        subscribe,
        "--allow-origin ORIGIN",
        "also read pages and notifications of this origin; default: that of URL",
        repeatable=True,
    )
    option(subscribe, "--context IRI=FILE", "a JSON-LD context", repeatable=True)
    option(
        subscribe,
        "--output FILE",
        "write messages to FILE as they arrive, instead of standard output",
        default=STANDARD,
    )
    _add_requests(subscribe, "the last message that was written, to continue after a restart")
    log = subscribe.add_argument_group("output log")
    add_format(log, "that of the extension of FILE, else nq")
    add_reports(subscribe)

    register = commands.add_parser(
        "register",
        help="register a query over live streams at a server",
        description="Register a query at a server of streams, and print the URL of the stream that it fills.",
        examples=[
            "construct-messages register hot.rq --at http://127.0.0.1:8080/streams/readings --name hot",
            "construct-messages register windows.rq --at http://127.0.0.1:8080/streams --set from=first",
            "construct-messages register new.rq --at http://127.0.0.1:8080/streams --set every=PT60S",
        ],
        epilog="Exit status: 0 registered, 2 wrong usage, 3 the server refuses or cannot be reached.",
    )
    register.set_defaults(command=_register)
    add_query(register.add_argument_group("query"))
    option(
        register,
        "--at URL",
        "the stream that the query is over, or the list of streams",
        required=True,
    )
    option(register, "--name NAME", "the name of the stream that it fills")
    option(
        register,
        "--set PARAMETER=VALUE",
        "a parameter of the registration, such as from=first",
        repeatable=True,
    )
    add_token(register)
    add_reports(register, quiet=None)


def _add_requests(command: argparse.ArgumentParser, state: str) -> None:
    option(command, "--state FILE", f"store in FILE {state}")
    add_token(command)
    option(command, "--retries N", "repeat a request up to N times in a row", type=int, default=10)


def _register(options: argparse.Namespace) -> int:
    from construct_messages.feeds import register

    location = asyncio.run(
        register(
            query_text(options, "--set"),
            options.at,
            name=options.name,
            parameters=pairs("--set", options.set, "PARAMETER=VALUE"),
            token=token_of(options),
        )
    )
    print(location)
    return 0


def _publish(options: argparse.Namespace) -> int:
    # what labels mean in the whole log, they mean when it is read again
    asyncio.run(_send(open_log(options.log, options, standard=astandard_input), options))
    return 0


async def _send(reader: LogReader, options: argparse.Namespace) -> None:
    from construct_messages.feeds import publish

    async def watched() -> AsyncGenerator[Message]:
        async with reader:
            async for message in reader:
                step()
                yield message

    with progress(
        lambda: (reader.message_count, reader.bytes_read), quiet=options.quiet, in_the_way=False
    ) as step:
        await publish(
            watched(),
            options.to,
            state=options.state,
            batch=options.batch,
            create=options.create,
            token=token_of(options),
            retries=options.retries,
        )


def _subscribe(options: argparse.Namespace) -> int:
    from construct_messages.feeds import subscribe
    from construct_messages.feeds.state import Received, read_state

    since = None if options.since is None else _time(options.since)
    format, syntax = find_log(
        format_of_target(target(options.output), options.format), options.syntax
    )
    own = format_options(options)
    if options.state is not None and format.binary:
        raise UsageError(
            f"a {format.name} log cannot be continued",
            hint="leave out --state, or write a text format",
        )
    state = None if options.state is None else read_state(options.state, Received)
    if state is not None and state.url != options.url:
        raise UsageError(
            f"the state is of {state.url}, and not of {options.url}", hint="name another state file"
        )
    where = {"last": options.last, "after": options.after, "since": since}
    if (
        options.follow
        and not options.quiet
        and state is None
        and not any(each is not None for each in where.values())
    ):
        print(
            "begins with what comes next; --after 0 begins with the first message", file=sys.stderr
        )
    elements = subscribe(
        options.url,
        **(where if state is None else {"checkpoint": state.checkpoint}),
        follow=options.follow,
        via=options.via,
        contexts=contexts(options),
        origins=options.allow_origin,
        token=token_of(options),
        retries=options.retries,
    )
    log = _Log(
        encoder_for(format, syntax, EncoderOptions(triple_terms=True, own=own)), options, state
    )
    in_the_way = options.output == STANDARD and sys.stdout.isatty()
    with (
        log.opened(),
        progress(
            lambda: (log.message_count, log.size), quiet=options.quiet, in_the_way=in_the_way
        ) as step,
    ):
        asyncio.run(_receive(elements, log, step, stoppable=options.follow))
        log.finish()
    return 0


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--since {text} is no time", hint="write it as in 2026-11-22T12:00:00Z"
        ) from None
    if time.tzinfo is None:
        raise UsageError(
            f"--since {text} has no time zone", hint="write it as in 2026-11-22T12:00:00Z"
        )
    return time


async def _receive(
    elements: Subscription, log: _Log, step: Callable[[], None], *, stoppable: bool
) -> None:
    """Writes elements as they come, until there are no more, or a signal ends what would go on for ever."""
    task = asyncio.current_task()
    assert task is not None
    stopped = False

    def stop(_: object = None) -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    if stoppable:
        when_stopped(stop)
    saving: asyncio.Task[None] | None = None
    try:
        async with aclosing(elements):
            await elements.start()
            log.reach(elements)
            if log.keeps_state:
                log.save()
                saving = asyncio.create_task(log.keep_saving())
                saving.add_done_callback(stop)
            async for element in elements:
                log.write(element)
                step()
    except asyncio.CancelledError:
        if not stopped:
            raise
    finally:
        if saving is not None:
            saving.remove_done_callback(stop)
            saving.cancel()
            await asyncio.wait([saving])
        log.save()  # also before an error: what was written stays
    if saving is not None and not saving.cancelled():
        saving.result()  # its error


class _Log:
    """The log that a subscription writes, message by message; it may go on where an earlier one was stopped.

    Args:
        encoder: of the log.
        options: of the command.
        state: where an earlier run got to; None: there was none.
    """

    def __init__(
        self, encoder: Encoder, options: argparse.Namespace, state: Received | None
    ) -> None:
        self._encoder, self._options, self._state = encoder, options, state
        self._write: Callable[[bytes], object] = bytearray().extend
        self._sync: Callable[[], object] = lambda: None
        self._cannot_be_cut = options.output == STANDARD
        self._elements: Subscription | None = None
        self._changed = asyncio.Event()
        self._saved: Received | None = state
        self._whole = True  # the last element was written
        self.keeps_state = options.state is not None
        self.message_count, self.size = 0, 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Opens the output. A file that grows has its name from the start; any other has it when it is whole.

        Raises:
            CannotWrite: it cannot be written.
            UsageError: it is to be packed while it grows, or is not as the state says.
        """
        place, begun = target(self._options.output), False
        grows = self._options.follow or self._options.state is not None
        with ExitStack() as stack:
            if isinstance(place, str) and grows:
                file = stack.enter_context(
                    _growing(place, None if self._state is None else self._state.size)
                )
                self.size = file.tell()
                self._write, begun = file.write, self.size > 0
                if Path(place).is_file():  # a device has nothing to sync
                    self._sync = lambda: os.fsync(file.fileno())
            else:
                self._write = stack.enter_context(log_file(place))
            if not begun:
                self._put(self._encoder.start())
            yield

    def reach(self, elements: Subscription) -> None:
        """Takes the subscription whose position is to be kept."""
        self._elements = elements

    def write(self, element: Element) -> None:
        """Writes an element. What a file holds beyond what its state says is cut off when it is continued."""
        self._whole = False
        self._put(self._encoder.encode(element.message))
        self._whole = True
        self.message_count += 1
        if self._cannot_be_cut:
            self.save()
        else:
            self._changed.set()

    def save(self) -> None:
        """Writes how far this is, behind the log itself.

        Raises:
            CannotWrite: the state cannot be written.
        """
        checkpoint = None if self._elements is None else self._elements.checkpoint
        if checkpoint is None or not self.keeps_state or not self._whole:
            return
        from construct_messages.feeds.state import Received, write_state

        self._changed.clear()
        state = Received(self._options.url, checkpoint, None if self._cannot_be_cut else self.size)
        if state != self._saved:
            self._sync()
            write_state(self._options.state, state)
            self._saved = state

    async def keep_saving(self) -> None:
        """Saves within a second of what is written, or later where saving itself takes long."""
        pause = _SAVE_SECONDS
        while True:
            await self._changed.wait()
            await asyncio.sleep(pause)
            started = time.monotonic()
            self.save()
            pause = max(_SAVE_SECONDS, 10 * (time.monotonic() - started))

    def finish(self) -> None:
        """Writes what stands behind the last message."""
        self._put(self._encoder.finish())

    def _put(self, data: bytes) -> None:
        self._write(data)
        self.size += len(data)
        if self._options.output == STANDARD:
            sys.stdout.buffer.flush()


@contextmanager
def _growing(name: str, size: int | None) -> Iterator[IO[bytes]]:
    """A file that is written as it grows, without a buffer; behind its first bytes where `size` tells how many."""
    if Path(name).suffix.lower() in COMPRESSIONS:
        raise UsageError(
            f"{name}: a log that grows is not packed", hint="write standard output, and pack that"
        )
    try:
        file = open(name, "wb" if size is None else "r+b", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise CannotWrite(
            f"cannot write {name}: {error.strerror}", hint="choose another place"
        ) from error
    with file:
        if size is not None:
            if file.seek(0, os.SEEK_END) < size:
                raise UsageError(
                    f"{name} is shorter than the state requires",
                    hint="remove both, and begin again",
                )
            file.truncate(size)  # what was written and not told to the state comes again
            file.seek(size)
        yield file
