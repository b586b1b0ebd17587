"""The commands `serve`, with the progress of loading files, and `streams`, which checks the store of a server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from construct_messages.cli.arguments import Commands, add_reports, option
from construct_messages.cli.queries import add_source
from construct_messages.rdf.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import TaskID

# the flags of `serve` that are settings, by their keys
_FLAGS: Final = (
    *("bind", "workers", "cors", "log_format", "log_level", "log_queries", "page"),
    *("streams.file", "streams.grpc", "streams.grpc_certificate", "streams.grpc_key"),
    *("endpoint.source", "endpoint.profile", "endpoint.page_size", "endpoint.allow_private"),
)


def add(commands: Commands) -> None:
    """Adds the command."""
    serve = commands.add_parser(
        "serve",
        help="serve SPARQL endpoints that also return message logs",
        description="Serve a source as a SPARQL endpoint that can answer CONSTRUCT queries with logs of RDF Messages.",
        examples=[
            "construct-messages serve --source https://dbpedia.org/sparql --profile virtuoso --page-size 10000",
            "construct-messages serve --source data.ttl --streams streams.db --bind 127.0.0.1:8080",
            "construct-messages serve --config server.toml --check-config",
        ],
        epilog="Exit status: 0 stopped by SIGTERM or Ctrl-C, 1 cannot listen or keep running, 2 wrong settings, "
        "3 source failed.",
    )
    serve.set_defaults(command=_serve)
    option(serve, "--config FILE", "a TOML file with settings; options override it")
    option(serve, "--check-config", "print the resulting settings and exit")

    endpoint = serve.add_argument_group("the endpoint at /sparql")
    add_source(endpoint)
    option(endpoint, "--profile NAME", "the kind of endpoint at the URL")
    option(endpoint, "--page-size N", "request N solutions at a time from the URL")
    option(
        endpoint,
        "--allow-private",
        "allow the URL's host name to resolve to a private address, as names of containers do",
        action="store_true",
        default=None,
    )

    streams = serve.add_argument_group("live streams at /streams")
    option(
        streams, "--streams FILE", "the store of streams; created if it does not exist", dest="file"
    )
    option(streams, "--grpc HOST:PORT", "also serve the streams by Jelly's gRPC service")
    option(streams, "--grpc-certificate FILE", "the certificate of that service, in PEM, for TLS")
    option(streams, "--grpc-key FILE", "the key of that certificate, in PEM")

    server = serve.add_argument_group("server")
    option(server, "--bind HOST:PORT", "the address to listen on; default: 127.0.0.1:8080")
    option(server, "--workers N", "the number of server processes; default: 1")
    option(
        server,
        "--cors ORIGIN...",
        "other origins whose scripts may read answers, as https://example.org, or '*' for all; default: none",
        nargs="+",
    )
    option(server, "--log-format text|json", "the format of the server's log; default: text")
    option(server, "--log-level LEVEL", "debug, info (default), warning or error")
    option(server, "--log-queries", "log the text of queries", action="store_true", default=None)
    option(
        server,
        "--no-page",
        "serve no page for browsers",
        dest="page",
        action="store_false",
        default=None,
    )
    add_reports(server, "do not show progress while files are loaded")

    streams_command = commands.add_parser(
        "streams",
        help="check a store of live streams",
        description="Work with the store of live streams that a server has.",
        examples=["construct-messages streams check streams.db"],
    )
    steps = streams_command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = steps.add_parser(
        "check",
        help="check the file and each element",
        description="Check the file of a store, and read each element. Nothing is changed; a server may be running.",
        examples=["construct-messages streams check streams.db"],
        epilog="Exit status: 0 whole, 1 damaged, 2 no such file, or no store.",
    )
    check.set_defaults(command=_check, trouble=2)
    check.add_argument("store", metavar="FILE", help="the store, as of serve --streams")
    add_reports(check, quiet=None)


def _check(options: argparse.Namespace) -> int:
    from construct_messages.streams.store import check_store

    streams, findings = check_store(Path(options.store))
    for finding in findings:
        print(finding)
    for state in streams:
        kept = (
            f"elements {state.first} to {state.last}" if state.first < state.next else "no element"
        )
        print(f"{state.name}: {kept}")
    if not findings:
        print(f"{options.store} is whole")
        return 0
    print(
        f"{options.store} is damaged: restore a backup, or see docs/reference/streams/store.md for what can be saved"
    )
    return 1


def _serve(options: argparse.Namespace) -> int:
    try:
        # imported here: other commands do not need it, and it requires an extra
        from construct_messages.server.runtime.settings import as_toml, load_config
        from construct_messages.server.runtime.supervisor import run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the server needs {error.name}, which is not installed",
            hint="pip install 'construct-messages[server]'",
        ) from error
    flags = {
        key: value
        for key in _FLAGS
        if (value := getattr(options, key.rpartition(".")[2])) is not None
    }
    config = load_config(
        None if options.config is None else Path(options.config), os.environ, flags
    )
    if options.check_config:
        print(as_toml(config), end="", flush=True)
        return 0
    return run(config, lambda: _loading(options))


@contextmanager
def _loading(options: argparse.Namespace) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yields a function of an endpoint, the number of bytes read and their total; None without a terminal."""
    if options.quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("loading {task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def read(name: str, count: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=count, visible=count < total)

        yield read
