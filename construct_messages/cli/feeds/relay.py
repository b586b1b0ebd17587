"""The command `relay`, from a stream or log to another one. `feeds/relaying.py` implements it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from construct_messages.cli.arguments import (
    Commands,
    add_reports,
    add_token,
    contexts,
    option,
    pairs,
    token_of,
)
from construct_messages.cli.feeds.options import add_reading, add_set, add_start, start
from construct_messages.cli.logs import Change, add_transform, transformation_of
from construct_messages.cli.progress import progress
from construct_messages.cli.shapes import STATUS, add_shapes, status_of, validating
from construct_messages.cli.standard import STANDARD, astandard_input, until_stopped
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.logs.reading import read_log

if TYPE_CHECKING:
    from construct_messages.construct.shapes import Validation


def add(commands: Commands) -> None:
    """Adds the command."""
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
    option(
        source,
        "--from URL|FILE",
        "a stream, as for subscribe; a log; - for standard input",
        dest="source",
        required=True,
    )
    add_start(relay)
    add_reading(source)
    add_token(source, "from-")
    add_set(source, "--from-set")
    option(
        source,
        "--from-media-type TYPE",
        "of the records of a broker that name none; the format of a log",
    )
    option(
        source, "--max-message-bytes N", "refuse larger messages", type=int, default=MESSAGE_BYTES
    )
    target = relay.add_argument_group("target")
    option(
        target,
        "--to URL|FILE",
        "a stream, as for publish; a log to append to; - for standard output",
        required=True,
    )
    option(target, "--create", "create the stream if it does not exist")
    add_token(target, "to-")
    add_set(target, "--to-set")
    option(target, "--to-media-type TYPE", "of the records that a broker gets; the format of a log")
    add_transform(relay)
    add_shapes(relay)
    option(relay, "--batch N", "write at most N messages at once", type=int, default=1000)
    option(
        relay,
        "--state FILE",
        "store in FILE the position and the messages in flight, to continue after a restart",
    )
    option(relay, "--retries N", "repeat a request up to N times in a row", type=int, default=10)
    add_reports(relay)


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
            **start(options),
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

    in_the_way = standard and sys.stdout.isatty()
    with progress(lambda: (count, 0), quiet=options.quiet, in_the_way=in_the_way) as step:
        asyncio.run(until_stopped(work()))


def _changes(options: argparse.Namespace, validation: Validation | None) -> Change | None:
    """The function from the messages of a batch to those to write: transformed, then validated; None: unchanged.

    Raises:
        UsageError: `--one-per-message` without `--transform`.
    """
    transformation = transformation_of(options)
    if transformation is None:
        return None if validation is None else validation.passed
    if validation is None:
        return transformation
    return lambda messages: validation.passed(transformation(messages))
