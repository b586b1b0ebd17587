"""The commands `publish` (a log to a stream), `subscribe` (a stream to a log) and `register` (a query at a server)."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from construct_messages.cli.arguments import (
    Commands,
    add_format,
    add_reports,
    add_token,
    contexts,
    format_options,
    option,
    pairs,
    token_of,
)
from construct_messages.cli.feeds.options import (
    add_reading,
    add_set,
    add_start,
    add_transport,
    start,
    transport_arguments,
)
from construct_messages.cli.logs import add_input, open_log
from construct_messages.cli.progress import progress
from construct_messages.cli.queries import add_query, query_text
from construct_messages.cli.shapes import STATUS, add_shapes, status_of, validating
from construct_messages.cli.standard import STANDARD, astandard_input, target, until_stopped
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.logs.reading import LogReader
from construct_messages.logs.targets import format_of_target, log_file
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats import COLUMNS, LogType
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.message import Message

if TYPE_CHECKING:
    from construct_messages.construct.shapes import Validation
    from construct_messages.logs.writing import OpenLog

# clients are imported where they are used: other commands need no HTTP client, and would take longer to start


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
        f"refuses or cannot be reached, 4 beyond a limit, {STATUS}",
    )
    publish.set_defaults(command=_publish)
    publish.add_argument("log", metavar="LOG", help="the log to read; - for standard input")
    option(publish, "--to URL", "the stream, or its input", required=True)
    option(publish, "--batch N", "send at most N messages at once", type=int, default=1000)
    add_transport(publish)
    _add_requests(publish, "the number of acknowledged messages, to continue after a restart")
    add_input(publish)
    add_shapes(publish)
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
        help="the stream, or its events, socket or output; an event stream (LDES); an LDN inbox; a topic of a broker",
    )
    add_start(subscribe)
    add_reading(subscribe)
    add_token(subscribe)
    add_set(subscribe, "--set")
    option(subscribe, "--media-type TYPE", "of records of a broker, or of events, that name none")
    option(
        subscribe,
        "--output FILE",
        "write messages to FILE as they arrive, instead of standard output",
        default=STANDARD,
    )
    _add_requests(subscribe, "the last message that was written, to continue after a restart")
    log = subscribe.add_argument_group("output log")
    add_format(log, "that of the extension of FILE, else nq", has_contexts=True)
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
    # labels mean the same in the whole log, and when it is read again
    with validating(options, grows=True) as validation:
        log = open_log(options.log, options, standard=astandard_input)
        asyncio.run(_send(log, options, validation))
    return status_of(validation, options)


async def _send(
    reader: LogReader, options: argparse.Namespace, validation: Validation | None
) -> None:
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
            watched() if validation is None else validation.apassed(watched()),
            options.to,
            state=options.state,
            batch=options.batch,
            **transport_arguments(options),
        )


def _subscribe(options: argparse.Namespace) -> int:
    from construct_messages.feeds import subscribe
    from construct_messages.feeds.recording import RecordingState, record

    where = start(options)
    type = find_log(format_of_target(target(options.output), options.format), options.syntax)
    own = format_options(options)
    if options.state is not None and (type.format.binary or type.format in COLUMNS):
        raise UsageError(
            f"a {type.format.name} log cannot be continued",
            hint="leave out --state, or write a text format",
        )
    state, known = None, None
    if options.state is not None:
        state = RecordingState(options.state, options.url, can_be_cut=options.output != STANDARD)
        known = state.known
    if (
        options.follow
        and not options.quiet
        and known is None
        and not any(each is not None for each in where.values())
    ):
        _say_beginning(options.url, options.set)
    elements = subscribe(
        options.url,
        **(where if known is None else {"checkpoint": known.checkpoint}),
        follow=options.follow,
        via=options.via,
        contexts=contexts(options),
        origins=options.allow_origin,
        token=token_of(options),
        retries=options.retries,
        media_type=options.media_type,
        options=pairs("--set", options.set, "NAME=VALUE"),
        dead_letters=options.dead_letters,
    )
    in_the_way = options.output == STANDARD and sys.stdout.isatty()
    at = 0 if known is None else known.size or 0
    with (
        _opened(options, type, own, at) as log,
        progress(
            lambda: (log.message_count, log.size), quiet=options.quiet, in_the_way=in_the_way
        ) as step,
    ):
        recording = record(elements, log, state, step)
        asyncio.run(until_stopped(recording) if options.follow else recording)
        log.finish()
    return 0


def _say_beginning(url: str, options: Sequence[str]) -> None:
    """Writes where a follower begins, and how it gets earlier messages."""
    from construct_messages.feeds.table import kinds_for

    if all(kind.capabilities.replays for kind in kinds_for(url)):
        hint = "--after 0 begins with the first one"
    elif any(each.startswith("identifier=") for each in options):
        return  # with what the broker keeps for it
    else:
        hint = "--set identifier=NAME makes the broker keep what comes while nobody reads"
    print(f"begins with the next message; {hint}", file=sys.stderr)


@contextmanager
def _opened(
    options: argparse.Namespace, type: LogType, own: FormatOptions | None, at: int
) -> Iterator[OpenLog]:
    """Opens the output. A growing file has its name from the start; any other file gets it when it is complete."""
    from construct_messages.logs.writing import GrowingLog, OpenLog

    place = target(options.output)
    if isinstance(place, str) and (options.follow or options.state is not None):
        growing = GrowingLog(place, options.format, syntax=options.syntax, options=own)
        with growing.opened(at) as log:
            yield log
        return
    with log_file(place) as write:

        def write_out(data: bytes) -> None:
            write(data)
            sys.stdout.buffer.flush()

        encoder = encoder_for(*type, EncoderOptions(triple_terms=True, own=own))
        yield OpenLog(encoder, write_out if options.output == STANDARD else write)
