"""The command line: arguments, terminal output and exit statuses; what they mean is `construct.py`'s.

The log goes to standard output or to a file, everything else to standard error.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import pyoxigraph as ox

from construct_messages.assembly import DISTINCT_LIMIT, GROUP_LIMIT
from construct_messages.construct import MessageStream, construct_messages
from construct_messages.errors import (
    CannotCarry,
    ConstructMessagesError,
    IncompleteResult,
    QueryError,
    SourceError,
    TermError,
    UsageError,
)
from construct_messages.formats import FORMATS, RDFM, SYNTAXES, default_format
from construct_messages.output import atomic_file
from construct_messages.sources.open import VARIABLE
from construct_messages.sources.patience import RETRIES

if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.progress import TaskID

    _Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"

# The first class that fits; any other error of the package means that the log ended before the result did.
_EXIT_STATUS: Final[tuple[tuple[type[ConstructMessagesError], int], ...]] = (
    (UsageError, 2),
    (QueryError, 2),
    (TermError, 2),
    (CannotCarry, 2),
    (IncompleteResult, 4),
    (SourceError, 3),
    (ConstructMessagesError, 4),
)
# the flags of `serve` that are settings, by their keys
_FLAGS: Final = (
    *("bind", "workers", "log_format", "log_level", "log_queries"),
    *("endpoint.source", "endpoint.profile", "endpoint.page_size"),
)
_CANNOT_WRITE: Final = 1
_INTERRUPTED: Final = 130  # as shells report a program that SIGINT ended
_TERMINATED: Final = 143  # and SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status.

    Args:
        arguments: without the program's name; None: those of the process.
    """
    options = build_parser().parse_args(arguments)
    if arguments is None:
        # a service manager's stop must not leave a hidden half log behind: let it unwind like Ctrl-C
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        return int(options.command(options))
    except ConstructMessagesError as error:
        _report(error, debug=options.debug)
        return next(status for kind, status in _EXIT_STATUS if isinstance(error, kind))
    except OSError as error:
        # what is still buffered for standard output would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0  # the reader has seen enough
        _report(error, debug=options.debug)
        return _CANNOT_WRITE
    except KeyboardInterrupt:
        return _INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands and options."""
    parser = _Parser(
        prog="construct-messages",
        description="One RDF Message per SPARQL CONSTRUCT solution.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('construct-messages')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_serve(commands)
    return parser


def _add_run(commands: _Commands) -> None:
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
        default=RDFM.label,
        help="how messages are delimited; default: %(default)s",
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


def _add_serve(commands: _Commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve SPARQL endpoints that also give message logs",
        description="Serve a source as a SPARQL endpoint whose CONSTRUCT answers can be logs of RDF Messages.",
        epilog="Exit status: 0 stopped by SIGTERM or Ctrl-C, 1 cannot listen or keep running, 2 bad settings, "
        "3 source failed.",
        allow_abbrev=False,
    )
    serve.set_defaults(command=_serve)
    serve.add_argument("--config", metavar="FILE", help="TOML file with all settings; those named here win")
    serve.add_argument("--check-config", action="store_true", help="print the settings and stop")

    endpoint = serve.add_argument_group("the endpoint at /sparql")
    endpoint.add_argument(
        "--source",
        metavar="SOURCE",
        nargs="+",
        action="extend",
        help=f"an endpoint URL, RDF files or a store directory; default: the environment variable {VARIABLE}",
    )
    endpoint.add_argument("--profile", metavar="NAME", help="what kind of endpoint the URL is")
    endpoint.add_argument("--page-size", metavar="N", help="ask the URL for N solutions at a time")

    server = serve.add_argument_group("server")
    server.add_argument("--bind", metavar="HOST:PORT", help="where to listen; default: 127.0.0.1:8080")
    server.add_argument("--workers", metavar="N", help="server processes; default: 1")
    server.add_argument("--log-format", metavar="text|json", help="of the server's own log; default: text")
    server.add_argument("--log-level", metavar="LEVEL", help="debug, info (default), warning or error")
    server.add_argument("--log-queries", action="store_true", default=None, help="log the text of queries")
    server.add_argument("--quiet", action="store_true", help="no progress on a terminal while files are loaded")
    server.add_argument("--debug", action="store_true", help="show where in the program an error arose")


class _Parser(argparse.ArgumentParser):
    """Reports a usage error as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}\nhint: see {self.prog} --help\n")


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
        bindings=_pairs("--bind", options.bind, "v=TERM"),
        default_graph=options.default_graph,
        named_graphs=options.named_graph,
        prefixes=_pairs("--prefix", options.prefix, "p=IRI"),
        base=options.base,
        page_size=options.page_size,
        max_messages=options.max_messages,
        timeout=options.timeout,
        method=options.method,
        headers=_pairs("--header", options.header, "K:V"),
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
    format = default_format(options.output) if options.format is None else options.format
    chunks = stream.serialize(format, options.messages)
    with ExitStack() as stack:
        file = stack.enter_context(atomic_file(options.output)) if options.output else sys.stdout.buffer
        written = stack.enter_context(_progress(stream, options))
        for chunk in chunks:
            file.write(chunk)
            if not options.output:
                file.flush()  # a reader gets each message as soon as there is one
            written(len(chunk))


@contextmanager
def _progress(stream: MessageStream, options: argparse.Namespace) -> Iterator[Callable[[int], None]]:
    """What to call with the size of each chunk written; it shows on standard error, where that is a terminal."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    # imported only here: most runs are not watched, and each would wait for it
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import Progress, SpinnerColumn, TextColumn

    started, total = time.monotonic(), 0

    def state() -> str:
        rate = stream.messages / max(time.monotonic() - started, 1e-3)
        return f"{stream.messages:,} messages, {rate:,.0f} messages/s, {decimal(total)}"

    def written(size: int) -> None:
        nonlocal total
        total += size
        progress.update(task, description=state())

    console = Console(stderr=True, highlight=False)
    # on a terminal that shows the log itself, a moving line would get in its way
    in_the_way = not options.output and sys.stdout.isatty()
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True, disable=in_the_way
    ) as progress:
        task = progress.add_task(state())
        yield written
    console.print(state())


def _serve(options: argparse.Namespace) -> int:
    try:
        # imported only here: a run needs none of it, and it has an extra of its own
        from construct_messages.server.settings import load_config, shown
        from construct_messages.server.supervisor import run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs {error.name}, which is not installed", hint="pip install 'construct-messages[server]'"
        ) from error
    flags = {key: value for key in _FLAGS if (value := getattr(options, key.rpartition(".")[2])) is not None}
    config = load_config(None if options.config is None else Path(options.config), os.environ, flags)
    if options.check_config:
        print(shown(config), end="", flush=True)
        return 0
    return run(config, lambda: _loading(options))


@contextmanager
def _loading(options: argparse.Namespace) -> Iterator[Callable[[str, int, int], None] | None]:
    """What to call with an endpoint, the bytes of its files that are read, and all of them; None: nobody looks."""
    if options.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("loading {task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def read(name: str, count: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=count, visible=count < total)

        yield read


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


def _pairs(option: str, values: Sequence[str], shape: str) -> dict[str, str]:
    """The values of a repeated option that are written as `shape`, a name, a separator and the rest."""
    separator = "=" if "=" in shape else ":"
    pairs = {}
    for value in values:
        name, found, rest = value.partition(separator)
        if not found or not name.strip():
            raise UsageError(f"{option} {value!r} is not {shape}", hint=f"write {option} {shape}")
        pairs[name.strip()] = rest.strip()
    return pairs


def _report(error: Exception, *, debug: bool) -> None:
    if debug:
        traceback.print_exception(error)
        return
    # an engine's own words may run over several lines
    text, _, hint = str(error).partition("\n  hint: ")
    print("error:", " ".join(text.split()), file=sys.stderr)
    if hint:
        print("hint:", " ".join(hint.split()), file=sys.stderr)
