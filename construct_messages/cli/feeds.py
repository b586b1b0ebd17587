"""The commands `publish`, `subscribe`, `register` and `relay`, over live streams."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from construct_messages.cli.arguments import (
    Commands,
    add_contexts,
    add_format,
    add_options,
    add_output,
    add_reports,
    add_set,
    add_table,
    add_token,
    add_transport,
    contexts,
    format_options,
    option,
    pairs,
    token_of,
    transport_arguments,
)
from construct_messages.cli.logs import (
    Change,
    add_input,
    add_transform,
    open_log,
    transformation_of,
    watched,
)
from construct_messages.cli.queries import add_query, query_text
from construct_messages.cli.shapes import STATUS, add_shapes, status_of, validating
from construct_messages.cli.terminal import (
    STANDARD,
    astandard_input,
    progress,
    target,
    until_stopped,
)
from construct_messages.errors import UsageError
from construct_messages.logs import EncoderOptions, FormatOptions, encoder_for
from construct_messages.logs.reading import LogReader, read_log
from construct_messages.logs.targets import format_of_target, log_file
from construct_messages.rdf.formats import COLUMNS, LogType
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import TransportOptions

if TYPE_CHECKING:
    from datetime import datetime

    from construct_messages.construct.shapes import Validation
    from construct_messages.logs.writing import OpenLog

# clients are imported where they are used: the help of all commands needs no HTTP client


def add(commands: Commands) -> None:
    """Adds the commands."""
    _add_publish(commands)
    _add_subscribe(commands)
    _add_register(commands)
    _add_relay(commands)


def _add_publish(commands: Commands) -> None:
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
    option(publish, "--batch N [1000]", "send at most N messages at once")
    add_transport(publish)
    _add_requests(publish, "the number of acknowledged messages, to continue after a restart")
    add_input(publish)
    add_shapes(publish)
    add_reports(publish)


def _add_subscribe(commands: Commands) -> None:
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
    _add_start(subscribe)
    _add_reading(subscribe)
    add_token(subscribe)
    add_set(subscribe, "--set")
    option(subscribe, "--media-type TYPE", "of records of a broker, or of events, that name none")
    add_output(subscribe, "FILE as messages arrive, instead of standard output")
    _add_requests(subscribe, "the last message that was written, to continue after a restart")
    log = subscribe.add_argument_group("output log")
    add_format(log, "that of the extension of FILE, else nq", has_contexts=True)
    add_reports(subscribe)


def _add_register(commands: Commands) -> None:
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
    help = "the stream that the query is over, or the list of streams"
    option(register, "--at URL", help, required=True)
    option(register, "--name NAME", "the name of the stream that it fills")
    help = "a parameter of the registration, such as from=first"
    option(register, "--set PARAMETER=VALUE*", help)
    add_token(register)
    add_reports(register, quiet=None)


def _add_requests(command: argparse.ArgumentParser, state: str) -> None:
    option(command, "--state FILE", f"store in FILE {state}")
    add_options(command, TransportOptions, "retries")


def _add_relay(commands: Commands) -> None:
    relay = commands.add_parser(
        "relay",
        help="write the messages of a stream to another stream",
        description="Write the messages of a stream or a log to another one, in order. None is lost; with --state, "
        "each is written once where both sides allow that.",
        examples=[
            "construct-messages relay --from http://127.0.0.1:8080/streams/companies --to kafka://localhost/companies "
            "--follow --after 0 --state companies.state",
            "construct-messages relay --from log.nq --to http://127.0.0.1:8080/streams/companies --create",
            "construct-messages relay --from http://127.0.0.1:8080/streams/companies --to -",
        ],
        epilog="Exit status: 0 complete, or stopped by Ctrl-C or SIGTERM, 1 log or state not written, 2 wrong usage, "
        "or a message that cannot be written, 3 malformed log, or a side refuses or is not reached, 4 beyond a limit, "
        f"{STATUS}",
    )
    relay.set_defaults(command=_relay)
    source = relay.add_argument_group("source")
    help = "a stream, as for subscribe; a log; - for standard input"
    option(source, "--from URL|FILE", help, dest="source", required=True)
    _add_start(relay)
    _add_reading(source)
    add_token(source, "from-")
    add_set(source, "--from-set")
    help = "of the records of a broker that name none; the format of a log"
    option(source, "--from-media-type TYPE", help)
    add_options(source, TransportOptions, "message_bytes")
    target = relay.add_argument_group("target")
    help = "a stream, as for publish; a log to append to; - for standard output"
    option(target, "--to URL|FILE", help, required=True)
    add_options(target, TransportOptions, "create")
    add_token(target, "to-")
    add_set(target, "--to-set")
    option(target, "--to-media-type TYPE", "of the records that a broker gets; the format of a log")
    add_transform(relay)
    add_shapes(relay)
    add_table(
        relay,
        """
        --batch N [1000]   write at most N messages at once
        --state FILE   store in FILE the position and the messages in flight, to continue after a restart
        """,
    )
    add_options(relay, TransportOptions, "retries")
    add_reports(relay)


def _add_start(command: argparse.ArgumentParser) -> None:
    """Adds the options for the start and the end of reading a stream."""
    add_table(
        command.add_mutually_exclusive_group(),
        """
        --last N   start with the N newest messages
        --after N   start after the message with this sequence; 0: with the first
        --since TIME   start with messages stored at this time or later, as in 2026-11-22T12:00:00Z
        """,
    )
    help = "wait for more messages, by default from the next one on; without --follow, end after the newest"
    option(command, "--follow", help)


def _start(options: argparse.Namespace) -> dict[str, Any]:
    """The positions of `_add_start`, of which at most one is not None."""
    since = None if options.since is None else _time(options.since)
    return {"last": options.last, "after": options.after, "since": since}


def _time(text: str) -> datetime:
    from datetime import datetime  # imported here because other commands do not need it

    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--since {text} is not a time", hint="write it as in 2026-11-22T12:00:00Z"
        ) from None
    if time.tzinfo is None:
        raise UsageError(
            f"--since {text} has no time zone", hint="write it as in 2026-11-22T12:00:00Z"
        )
    return time


def _add_reading(group: argparse._ActionsContainer) -> None:
    """Adds the options of an input stream, except for its token and the options of its transport."""
    from construct_messages.feeds.table import TRANSPORTS

    names = [kind.name for kind in TRANSPORTS]
    help = f"one of {', '.join(names)}; default: the first that the stream offers"
    option(group, "--via TRANSPORT", help, choices=names)
    help = "also read pages and notifications of this origin; default: that of URL"
    option(group, "--allow-origin ORIGIN*", help)
    add_contexts(group, "a JSON-LD context")
    help = "append records of a broker that are not messages to this file or topic, instead of stopping"
    option(group, "--dead-letters PLACE", help)


# --- the commands ---------------------------------------------------------------------------------


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

    async def stepping() -> AsyncGenerator[Message]:
        async with reader:
            async for message in reader:
                step()
                yield message

    with watched(options, reader) as step:
        await publish(
            stepping() if validation is None else validation.apassed(stepping()),
            options.to,
            state=options.state,
            batch=options.batch,
            **transport_arguments(options),
        )


def _subscribe(options: argparse.Namespace) -> int:
    from construct_messages.feeds import subscribe
    from construct_messages.feeds.recording import RecordingState, record

    where = _start(options)
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
    at = 0 if known is None else known.size or 0
    with ExitStack() as opened:
        log = opened.enter_context(_opened(options, type, own, at))

        def complete() -> None:
            log.finish()
            opened.close()  # the file has its name now

        with progress(
            lambda: (log.message_count, log.size), quiet=options.quiet, output=options.output
        ) as step:
            if _grows(options) or options.output == STANDARD:
                recording = record(elements, log, state, step)
                asyncio.run(until_stopped(recording) if options.follow else recording)
                log.finish()
            else:
                asyncio.run(record(elements, log, None, step, complete))
    return 0


def _grows(options: argparse.Namespace) -> bool:
    """Whether the output is a file that has its name from the start."""
    return options.output != STANDARD and (options.follow or options.state is not None)


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
    if isinstance(place, str) and _grows(options):
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


def _relay(options: argparse.Namespace) -> int:
    with validating(options, grows=True) as validation:
        _relayed(options, _changes(options, validation))
    return status_of(validation, options)


def _relayed(options: argparse.Namespace, change: Change | None) -> None:
    from construct_messages.feeds import relay

    known = contexts(options)
    source, count = options.source, 0
    if source == STANDARD:
        source = read_log(
            astandard_input(),
            options.from_media_type,
            contexts=known,
            message_bytes=options.max_message_bytes,
            keep_labels=True,
        )
    standard = options.to == STANDARD

    async def work() -> None:
        nonlocal count

        def arrived(messages: int) -> None:
            nonlocal count
            count = messages
            step()

        await relay(
            source,
            sys.stdout.buffer if standard else options.to,
            **_start(options),
            follow=options.follow,
            via=options.via,
            state=options.state,
            batch=options.batch,
            create=options.create,
            contexts=known,
            origins=options.allow_origin,
            dead_letters=options.dead_letters,
            source_token=token_of(options, "from-"),
            source_media_type=options.from_media_type,
            source_options=pairs("--from-set", options.from_set, "NAME=VALUE"),
            target_token=token_of(options, "to-"),
            target_media_type=options.to_media_type,
            target_options=pairs("--to-set", options.to_set, "NAME=VALUE"),
            message_bytes=options.max_message_bytes,
            retries=options.retries,
            transform=change,
            on_batch=arrived,
        )

    with progress(lambda: (count, 0), quiet=options.quiet, output=options.to) as step:
        asyncio.run(until_stopped(work()))


def _changes(options: argparse.Namespace, validation: Validation | None) -> Change | None:
    """The function from the messages of a batch to those to write: transformed, then validated; None: unchanged."""
    transformation = transformation_of(options)
    if transformation is None:
        return None if validation is None else validation.passed
    if validation is None:
        return transformation
    return lambda messages: validation.passed(transformation(messages))
