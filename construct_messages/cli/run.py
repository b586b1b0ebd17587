"""The command `run`: one query's log. What its options mean is `construct.py`'s."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyoxigraph as ox

from construct_messages.assembly import DISTINCT_LIMIT, GROUP_LIMIT
from construct_messages.cli.arguments import Commands, pairs
from construct_messages.cli.progress import progress
from construct_messages.construct import MessageStream, construct_messages
from construct_messages.errors import UsageError
from construct_messages.formats import FORMATS, SYNTAXES
from construct_messages.sources.open import VARIABLE
from construct_messages.sources.patience import RETRIES
from construct_messages.writing import format_of_target, log_file


def add(commands: Commands) -> None:
    """Adds the command."""
    run = commands.add_parser(
        "run",
        help="write the message log of a query",
        description="Evaluate a CONSTRUCT query and write its solutions as a log of RDF Messages.",
        epilog="Exit status: 0 complete, 1 log not written, 2 bad usage or query, 3 source failed, 4 incomplete.",
        allow_abbrev=False,
    )
    run.set_defaults(command=_run)

    query = run.add_argument_group("query and source")
    query.add_argument(
        "file", metavar="QUERY-FILE", nargs="?", help="file of the CONSTRUCT query; - for standard input"
    )
    query.add_argument("--query", metavar="TEXT", help="the query itself, instead of QUERY-FILE")
    query.add_argument(
        "--source",
        metavar="SOURCE",
        nargs="+",
        action="extend",
        help=f"RDF files, a store directory or an endpoint URL; default: the environment variable {VARIABLE}",
    )
    query.add_argument("--default-graph", metavar="union|IRI", action="append", default=[], help="all graphs, or one")
    query.add_argument("--named-graph", metavar="IRI", action="append", default=[], help="a named graph of the dataset")
    query.add_argument("--bind", metavar="v=TERM", action="append", default=[], help="bind ?v to an N-Triples term")
    query.add_argument("--prefix", metavar="p=IRI", action="append", default=[], help="declare a prefix")
    query.add_argument("--base", metavar="IRI", help="resolve relative IRIs against this")
    query.add_argument("--select", action="store_true", help="print the rewritten query and stop")

    messages = run.add_argument_group("messages")
    messages.add_argument(
        "--group-by", metavar="?v", action="append", default=[], help="one message for solutions equal on ?v"
    )
    messages.add_argument(
        "--group-order", choices=["appearance", "sorted"], default="appearance", help="hold all groups, or sort by key"
    )
    messages.add_argument(
        "--group-limit",
        metavar="N",
        type=int,
        default=GROUP_LIMIT,
        help="hold at most N solutions; default: %(default)s",
    )
    messages.add_argument("--distinct", action="store_true", help="leave out messages equal to an earlier one")
    messages.add_argument(
        "--distinct-limit",
        metavar="N",
        type=int,
        default=DISTINCT_LIMIT,
        help="tell at most N messages apart; default: %(default)s",
    )
    messages.add_argument("--skip-empty", action="store_true", help="leave out empty messages")
    messages.add_argument("--skolemize", metavar="IRI", help="turn blank nodes of the data into IRIs under this one")
    messages.add_argument("--max-messages", metavar="N", type=int, help="end the log after N messages")

    log = run.add_argument_group("log")
    extensions = [format.extension for format in FORMATS]
    log.add_argument(
        "--format",
        metavar="|".join([*extensions, "MEDIA-TYPE"]),
        help="default: what the extension of --output says, else nq",
    )
    log.add_argument(
        "--messages",
        choices=[syntax.label for syntax in SYNTAXES],
        help="how messages are delimited, where the format does not; default: rdfm",
    )
    log.add_argument("--output", metavar="FILE", help="write FILE when the log is whole; .gz .bz2 .xz .zst are packed")
    log.add_argument("--quiet", action="store_true", help="no progress on a terminal")
    log.add_argument("--debug", action="store_true", help="show where in the program an error arose")

    source = run.add_argument_group("asking the source")
    source.add_argument("--page-size", metavar="N", type=int, help="ask for N solutions at a time")
    source.add_argument("--timeout", metavar="SECONDS", type=float, help="give up on the whole answer after this")
    source.add_argument(
        "--method", choices=["get", "post"], default="post", help="how to send the query to an endpoint"
    )
    source.add_argument("--header", metavar="K:V", action="append", default=[], help="send a request header")
    source.add_argument("--results", metavar="auto|json|xml|tsv", default="auto", help="the results format to ask for")
    source.add_argument("--profile", metavar="NAME", default="generic", help="what kind of endpoint it is")
    source.add_argument(
        "--retries", metavar="N", type=int, default=RETRIES, help="ask again N times where a failure may pass"
    )
    source.add_argument("--allow-stale", action="store_true", help="read a store directory that is being written")


def _run(options: argparse.Namespace) -> int:
    # the SELECT alone needs no data
    source = ox.Store() if options.select and not options.source else options.source
    with construct_messages(
        _query_text(options),
        source,
        group_by=options.group_by,
        group_order=options.group_order,
        group_limit=options.group_limit,
        distinct=options.distinct,
        distinct_limit=options.distinct_limit,
        skip_empty=options.skip_empty,
        skolemize=options.skolemize,
        bindings=pairs("--bind", options.bind, "v=TERM"),
        default_graph=options.default_graph,
        named_graphs=options.named_graph,
        prefixes=pairs("--prefix", options.prefix, "p=IRI"),
        base=options.base,
        page_size=options.page_size,
        max_messages=options.max_messages,
        timeout=options.timeout,
        method=options.method,
        headers=pairs("--header", options.header, "K:V"),
        results=options.results,
        profile=options.profile,
        retries=options.retries,
        allow_stale=options.allow_stale,
    ) as stream:
        if stamina := sys.modules.get("stamina"):
            stamina.instrumentation.set_on_retry_hooks(())  # its own report of a retry may go into the log
        if options.select:
            print(stream.select.rstrip("\r\n"), flush=True)
        else:
            _write(stream, options)
    return 0


def _write(stream: MessageStream, options: argparse.Namespace) -> None:
    target = options.output or sys.stdout.buffer
    chunks, size = stream.serialize(format_of_target(target, options.format), options.messages), 0
    in_the_way = not options.output and sys.stdout.isatty()
    with (
        log_file(target) as write,
        progress(lambda: (stream.messages, size), quiet=options.quiet, in_the_way=in_the_way) as step,
    ):
        for chunk in chunks:
            write(chunk)
            if not options.output:
                sys.stdout.buffer.flush()  # a reader gets each message as soon as there is one
            size += len(chunk)
            step()


def _query_text(options: argparse.Namespace) -> str:
    if (options.file is None) == (options.query is None):
        raise UsageError(
            "give one query: a QUERY-FILE, - or --query TEXT",
            hint="put QUERY-FILE before --source, which takes several",
        )
    if options.query is not None:
        return str(options.query)
    try:
        content = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the query {options.file}: {error.strerror}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the query {options.file} is not UTF-8 at byte {error.start}", hint="convert it to UTF-8"
        ) from error
