"""The command `run`: writes the log of one query. `construct/messages.py` implements its options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyoxigraph as ox

from construct_messages.cli.arguments import (
    NO_PREFIXES,
    Commands,
    add_format,
    add_lenient,
    add_options,
    add_output,
    add_reports,
    add_transport,
    format_options,
    is_stream,
    made,
    option,
    refuse_log_options,
    refuse_stream_options,
    transport_arguments,
)
from construct_messages.cli.queries import (
    add_dataset,
    add_query,
    add_source,
    arguments,
    check_requests,
    query_text,
)
from construct_messages.cli.shapes import STATUS, add_shapes, status_of, validating
from construct_messages.cli.terminal import STANDARD, progress, target
from construct_messages.construct.messages import QueryMessages, construct_messages
from construct_messages.errors import UsageError
from construct_messages.logs.targets import format_of_target, log_file
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import Grouping, MessageOptions, Requests

if TYPE_CHECKING:
    from construct_messages.construct.shapes import Validation
    from construct_messages.sparql.sources.open import SourceLike

_KEPT: Final[list[QueryMessages]] = []
"""The messages of the last run, closed.

They refer to a store that takes long to free; the process does not wait for that (see `construct_messages.__main__`).
"""


# the options that `--help` shows
_COMMON: Final = (
    *("--query", "--source", "--bind", "--group-by", "--output", "--format", "--to", "--shapes"),
    *("--profile", "--page-size"),
)


def add(commands: Commands) -> None:
    """Adds the command."""
    run = commands.add_parser(
        "run",
        help="run a CONSTRUCT query and write a log",
        common=_COMMON,
        description="Run a CONSTRUCT query and write a log with one RDF Message per solution.",
        examples=[
            "construct-messages run query.rq --source data.ttl --output log.trig.gz",
            "construct-messages run query.rq --source https://dbpedia.org/sparql --profile virtuoso --page-size 10000",
            "construct-messages run query.rq --source store/ --group-by '?country' --format ttl | head",
            "construct-messages run query.rq --source data.ttl --format json --frame city.json | jq .name",
            "construct-messages run query.rq --source data.ttl --to nats://localhost/companies --create",
            "construct-messages run query.rq --source data.ttl --output log.nq --shapes shapes.ttl --on-invalid stop",
        ],
        epilog="Exit status: 0 complete, 1 log not written, 2 wrong usage, query or shapes, 3 source failed, "
        f"4 incomplete, {STATUS}",
    )
    run.set_defaults(command=_run)

    query = run.add_argument_group("query and source")
    add_query(query)
    add_source(query)
    add_dataset(query)
    option(query, "--select", "write the rewritten query instead of a log")
    option(
        query, "--explain", "write the plan of DuckDB for the query, and its SQL, instead of a log"
    )

    messages = run.add_argument_group("messages")
    add_options(messages, Grouping)
    add_options(messages, MessageOptions)

    log = run.add_argument_group("log")
    add_output(
        log,
        "FILE when the log is complete, compressed if it ends in .gz .bz2 .xz .zst; - for standard output",
    )
    add_format(log, "that of the extension of --output, else nq")
    option(log, "--no-prefixes", NO_PREFIXES)
    add_reports(log)

    stream = run.add_argument_group("stream")
    option(stream, "--to URL", "publish the messages to a stream, instead of writing a log")
    add_transport(stream)
    add_shapes(run)

    source = run.add_argument_group("requests to the source")
    add_options(source, Requests)
    add_lenient(source, "solutions")


def ask(
    query: str,
    source: SourceLike,
    options: argparse.Namespace,
    validation: Validation | None = None,
) -> QueryMessages:
    """The messages of a query, by the options for messages, the dataset and requests."""
    requests = made(Requests, options)
    check_requests(source, options)
    return construct_messages(
        query,
        source,
        lenient=options.lenient,
        requests=requests,
        validation=validation,
        **arguments(options),
    )


def _run(options: argparse.Namespace) -> int:
    # printing the SELECT needs no data
    source = ox.Store() if options.select and not options.source else options.source
    if source == [STANDARD]:
        if options.file == STANDARD:
            raise UsageError(
                "the query and the data cannot both come from standard input",
                hint="name a file for one of them, or write the query as --query",
            )
        source = sys.stdin.buffer
    with (
        validating(options, grows=options.to is not None) as validation,
        ask(query_text(options, "--source"), source, options, validation) as stream,
    ):
        _KEPT[:] = [stream]
        if options.select or options.explain:
            text = stream.select if options.select else stream.explain()
            with log_file(target(options.output)) as write:
                write(text.rstrip("\r\n").encode() + b"\n")
        elif options.to is not None:
            _publish(stream, options)
        else:
            _write(stream, options)
    if options.resume is not None:
        Path(options.resume).unlink(missing_ok=True)  # another run of the same query is to ask anew
    sys.stdout.buffer.flush()
    return status_of(validation, options)


def _publish(stream: QueryMessages, options: argparse.Namespace) -> None:
    import asyncio

    from construct_messages.feeds import publish

    if not is_stream(options.to):
        raise UsageError(f"--to {options.to} is not a URL", hint="write a log with --output")
    refuse_log_options(options, "output", "format", "syntax", "resume")
    with progress(lambda: (stream.message_count, 0), quiet=options.quiet) as step:

        async def watched() -> AsyncGenerator[Message]:
            async with stream:
                async for message in stream:
                    step()
                    yield message

        asyncio.run(publish(watched(), options.to, **transport_arguments(options)))


def _write(stream: QueryMessages, options: argparse.Namespace) -> None:
    refuse_stream_options(options, "a log is written")
    place, standard = target(options.output), options.output == STANDARD
    format = format_of_target(place, options.format)
    prefixes: dict[str, str] | None = {} if options.no_prefixes else None
    chunks = stream.serialize(
        format, options.syntax, prefixes=prefixes, options=format_options(options)
    )
    size = 0
    with (
        log_file(place) as write,
        progress(
            lambda: (stream.message_count, size),
            quiet=options.quiet,
            output=options.output,
        ) as step,
    ):
        for chunk in chunks:
            write(chunk)
            if standard:
                sys.stdout.buffer.flush()  # a reader gets each message as soon as possible
            size += len(chunk)
            step()
