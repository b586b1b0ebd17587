"""The commands `serve`, with the progress of loading files, `mcp`, and `streams`, which checks a server's store."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from construct_messages.cli.arguments import Commands, add_reports, option, without_links
from construct_messages.cli.queries import add_source
from construct_messages.errors import NotFound, StoreError, UsageError
from construct_messages.rdf.options import REQUIRED, is_choice, options_of
from construct_messages.server.config import Config, EndpointSettings, StreamsSettings

if TYPE_CHECKING:
    from rich.progress import TaskID

# the settings that are flags of `serve`, too
_FLAGS: Final = {
    "endpoint.profile": "--profile NAME",
    "endpoint.page_size": "--page-size N",
    "endpoint.allow_private": "--allow-private",
    "streams.file": "--streams FILE",
    "streams.grpc": "--grpc HOST:PORT",
    "streams.grpc_certificate": "--grpc-certificate FILE",
    "streams.grpc_key": "--grpc-key FILE",
    "bind": "--bind HOST:PORT",
    "workers": "--workers N",
    "cors": "--cors ORIGIN...",
    "log_format": "--log-format",
    "log_level": "--log-level",
    "log_queries": "--log-queries",
    "page": "--no-page",
}
_TABLES: Final = {"endpoint": EndpointSettings, "streams": StreamsSettings, "": Config}


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
    _add_settings(endpoint, "endpoint")
    _add_settings(serve.add_argument_group("live streams at /streams"), "streams")
    server = serve.add_argument_group("server")
    _add_settings(server, "")
    add_reports(server, "do not show progress while files are loaded")
    _add_streams(commands)
    _add_mcp(commands)


def _add_settings(group: argparse._ActionsContainer, table: str) -> None:
    """Adds the flags of the settings in a table. They are texts without a default: the server reads all layers."""
    for key, usage in _FLAGS.items():
        above, _, name = key.rpartition(".")
        if above != table:
            continue
        each = options_of(_TABLES[table])[name]
        help = without_links(each.meaning)
        if bool in each.types:
            help = "serve no page for browsers" if name == "page" else help
            action = "store_false" if each.default else "store_true"
            option(group, usage, help, action=action, dest=name, default=None)
        else:
            default = each.default if each.default not in (REQUIRED, None, ()) else None
            choices = [get_args(kind) for kind in each.types if is_choice(kind)]
            usage += f" {'|'.join(choices[0])}" if choices and " " not in usage else ""
            more = {"nargs": "+"} if usage.endswith("...") else {}
            help += "" if default is None else f"; default: {default}"
            option(group, usage.removesuffix("..."), help, dest=name, type=str, **more)


def _add_streams(commands: Commands) -> None:
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


def _add_mcp(commands: Commands) -> None:
    mcp = commands.add_parser(
        "mcp",
        help="offer the queries of a settings file to AI agents",
        description="Offer the CONSTRUCT queries among the examples of a server's settings as tools and resources of "
        "the Model Context Protocol, over standard input and output. Answers have whole messages only.",
        examples=["construct-messages mcp server.toml --max-bytes 20000"],
        epilog="Exit status: 0 ended by the client or a signal, 2 wrong settings or queries, 3 source failed.",
    )
    mcp.set_defaults(command=_mcp)
    mcp.add_argument("settings", metavar="FILE", help="the settings, as of serve --config")
    option(mcp, "--max-bytes N [50000]", "largest size of the messages of an answer")
    option(mcp, "--format NAME", "format of messages; default: ttl, or trig for those with graphs")
    add_reports(mcp, quiet=None)


def _mcp(options: argparse.Namespace) -> int:
    if options.max_bytes < 1:
        raise UsageError(f"--max-bytes {options.max_bytes} is less than 1", hint="write 50000")
    try:
        from construct_messages.server.mcp import run  # requires an extra
    except ModuleNotFoundError as error:
        raise UsageError(
            f"this command needs {error.name}, which is not installed",
            hint="pip install 'construct-messages[mcp]'",
        ) from error
    return run(Path(options.settings), most=options.max_bytes, format=options.format)


def _check(options: argparse.Namespace) -> int:
    from construct_messages.streams.store import check_store

    try:
        streams, findings = check_store(Path(options.store))
    except (NotFound, StoreError) as error:
        raise UsageError(error.message, hint=error.hint) from error
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
        for key in ("endpoint.source", *_FLAGS)
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
