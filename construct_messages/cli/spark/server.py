"""The command `spark serve`: a Spark Connect server that keeps one session for many commands."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from construct_messages.cli.arguments import Commands, add_reports, option, pairs
from construct_messages.cli.report import warn
from construct_messages.rdf.errors import UsageError
from construct_messages.spark import kept
from construct_messages.spark.session import serve as serve_session


def add(steps: Commands) -> None:
    """Adds the command."""
    serve = steps.add_parser(
        "serve",
        help="keep a session for many queries",
        description="Start a Spark Connect server with the settings and the jar of this package. The commands of the "
        "same user on the same machine find it; others use it by --remote. It has no access control: whoever reaches "
        "its address may run any program.",
        examples=[
            "construct-messages spark serve --conf spark.driver.memory=4g",
            "construct-messages spark run query.rq --quads dump.nt --output log.nq",
        ],
        epilog="It runs until it gets SIGINT or SIGTERM. Exit status: 2 wrong usage, or no Spark; else that of Spark.",
    )
    serve.set_defaults(command=_serve)
    group = serve.add_argument_group("server")
    option(group, "--bind HOST:PORT", "the address to listen on", default="127.0.0.1:15002")
    option(group, "--master URL", "the Spark master", default="local[*]")
    option(group, "--conf NAME=VALUE", "a setting of the server", repeatable=True)
    option(group, "--no-class-archive", "do not use the archive of Java classes")
    add_reports(group, quiet=None)


def _serve(options: argparse.Namespace) -> int:
    host, found, port = options.bind.rpartition(":")
    if not found or not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise UsageError(
            f"--bind {options.bind!r} is not HOST:PORT", hint="write --bind 127.0.0.1:15002"
        )
    settings = pairs("--conf", options.conf, "NAME=VALUE")
    # the port is not known before the server listens
    if _is_local(options.master, settings) and port != "0":
        # clients on this machine use this address for a server that listens on all addresses
        address = "127.0.0.1" if host in ("0.0.0.0", "[::]") else host
        if not kept.record(kept.KeptSession.here(f"sc://{address}:{port}")):
            warn("another session is kept already: use --remote for this one")
    serve_session(
        options.master,
        settings,
        host=host,
        port=int(port),
        class_archive=not options.no_class_archive,
    )


def _is_local(master: str, settings: Mapping[str, str]) -> bool:
    """Whether paths mean the same for the server and for commands on this machine."""
    files = settings.get("spark.hadoop.fs.defaultFS", "file:")
    return master.startswith("local") and files.startswith("file:")
