"""The command `watch`: sends new solutions of a query to a stream, a log file or standard output."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from construct_messages.cli.arguments import (
    Commands,
    add_format,
    add_options,
    add_reports,
    add_table,
    add_transport,
    made,
    option,
    target_of,
)
from construct_messages.cli.queries import (
    add_dataset,
    add_query,
    add_source,
    dataset,
    query_text,
)
from construct_messages.cli.terminal import STANDARD, until_stopped, warn
from construct_messages.errors import QueryError, SourceError, UsageError
from construct_messages.query.continuous.values import duration
from construct_messages.rdf.options import MessageOptions, Requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from construct_messages.continuous import Watch
    from construct_messages.feeds.delivery import Target
    from construct_messages.streams import StreamStore

# `continuous` and `feeds` are imported where they are used: other commands would take longer to start

_SECOND: Final = 1_000_000  # microseconds


def add(commands: Commands) -> None:
    """Adds the command."""
    watch = commands.add_parser(
        "watch",
        help="send new solutions of a query",
        description="Evaluate a CONSTRUCT query repeatedly, and send each new solution as a message. "
        "An evaluation that fails or is incomplete sends nothing and is repeated.",
        examples=[
            "construct-messages watch query.rq --source https://example.org/sparql --every 5m --to new.trig",
            "construct-messages watch query.rq --source data.ttl --once --state seen.state",
        ],
        epilog="Exit status: 0 stopped by Ctrl-C or SIGTERM, or complete with --once, 1 log not written, 2 wrong usage "
        "or query, 3 the source or the stream refuses or cannot be reached, 4 an incomplete answer, or a state "
        "that cannot be used.",
    )
    watch.set_defaults(command=_watch)
    query = watch.add_argument_group("query and source")
    add_query(query)
    add_source(query)
    add_dataset(query)

    what = watch.add_argument_group("messages")
    add_table(
        what,
        """
        --every TIME [60s]   the time between evaluations, as in 60s, 5m or PT1H
        --once   evaluate once and exit
        --operator {istream,dstream,rstream} [istream]   send new solutions, removed ones, or all of each evaluation
        --change-query TEXT   a SELECT or ASK: evaluate only if its result has changed
        --skip-first   do not send the solutions of the first evaluation
        --state FILE   store the state in FILE, to continue after a restart
        """,
    )
    add_options(what, MessageOptions, "skip_empty", "skolemize")

    to = watch.add_argument_group("target")
    help = "a stream, or a log to append to; default: - for standard output"
    option(to, "--to URL|FILE", help, default=STANDARD)
    add_transport(to)
    add_format(to, "that of the extension of FILE, else nq")
    add_reports(to, "do not report failures that are retried")
    add_options(
        watch.add_argument_group("requests to the source"), Requests, but=["strict", "resume"]
    )


def _watch(options: argparse.Namespace) -> int:
    from construct_messages.continuous import Watch
    from construct_messages.continuous.watching import NAME, as_operator, state_store

    every, text = _seconds(options.every), query_text(options, "--source")
    to = target_of(options)
    with state_store(options.state) as store:
        watching = Watch(
            text,
            options.source,
            store=store,
            stream=NAME,
            owner=NAME,
            operator=as_operator(options.operator),
            change_query=options.change_query,
            skip_first=options.skip_first,
            skip_empty=options.skip_empty,
            skolemize=options.skolemize,
            requests=made(Requests, options),
            **dataset(options),
        )
        report = (lambda _: None) if options.quiet else warn
        following = (
            _once(watching, store, to)
            if options.once
            else _follow(watching, every, store, to, report)
        )
        asyncio.run(following if options.once else until_stopped(following))
    return 0


async def _once(watching: Watch, store: StreamStore, to: Target) -> None:
    from construct_messages.continuous.watching import NAME
    from construct_messages.feeds.bridging import forward

    async with aclosing(to):
        await watching.evaluate()
        await forward(store, NAME, NAME, to)


async def _follow(
    watching: Watch, every: float, store: StreamStore, to: Target, report: Callable[[str], None]
) -> None:
    from construct_messages.continuous.watching import NAME
    from construct_messages.feeds.bridging import forward

    async with aclosing(to):
        async for evaluation in watching.evaluations(every):
            if evaluation.error is not None:
                report(f"the evaluation failed and is retried: {evaluation.error}")
            try:
                await forward(store, NAME, NAME, to)
            except SourceError as error:
                if not error.transient:
                    raise
                report(f"the messages wait: {error}")


def _seconds(text: str) -> float:
    try:
        microseconds = duration(text)
    except QueryError as error:
        raise UsageError(f"--every {text} is not a duration", hint=error.hint) from None
    return microseconds / _SECOND
