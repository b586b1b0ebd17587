"""What the commands that evaluate a query have in common: its text, what it is asked with, and what makes a message."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from construct_messages.cli.arguments import add_label_prefix, pairs
from construct_messages.errors import UsageError
from construct_messages.formats.results import READ
from construct_messages.sources.http.timeouts import RETRIES
from construct_messages.sources.open import VARIABLE


def add_query(group: argparse._ArgumentGroup) -> None:
    """Adds the options that say which query it is."""
    group.add_argument(
        "file", metavar="QUERY-FILE", nargs="?", help="the file of the CONSTRUCT query; - for standard input"
    )
    group.add_argument("--query", metavar="TEXT", help="the query itself, instead of QUERY-FILE")


def add_dataset(group: argparse._ArgumentGroup, *, default_graph: str, help: str) -> None:
    """Adds the options that say what a query is asked with.

    Args:
        default_graph: the values that `--default-graph` takes.
        help: what they mean.
    """
    group.add_argument("--default-graph", metavar=default_graph, action="append", default=[], help=help)
    group.add_argument(
        "--named-graph", metavar="IRI", action="append", default=[], help="a named graph of the dataset; repeatable"
    )
    group.add_argument(
        "--bind", metavar="v=TERM", action="append", default=[], help="bind ?v to an N-Triples term; repeatable"
    )
    group.add_argument("--prefix", metavar="p=IRI", action="append", default=[], help="declare a prefix; repeatable")
    group.add_argument("--base", metavar="IRI", help="resolve relative IRIs against this IRI")


def add_source(group: argparse._ArgumentGroup) -> None:
    """Adds the option that names the source."""
    group.add_argument(
        "--source",
        metavar="SOURCE",
        nargs="+",
        action="extend",
        help=f"RDF files, a store directory or an endpoint URL; default: the environment variable {VARIABLE}",
    )


def add_asking(group: argparse._ArgumentGroup) -> None:
    """Adds the options that say how the source is asked."""
    group.add_argument("--page-size", metavar="N", type=int, help="request N solutions at a time")
    group.add_argument("--timeout", metavar="SECONDS", type=float, help="stop if the whole answer takes longer")
    group.add_argument(
        "--method", choices=["get", "post"], default="post", help="the HTTP method for an endpoint; default: post"
    )
    group.add_argument(
        "--header", metavar="K:V", action="append", default=[], help="send an additional request header; repeatable"
    )
    group.add_argument(
        "--results", metavar="|".join(["auto", *READ]), default="auto", help="the results format to request"
    )
    group.add_argument("--profile", metavar="NAME", default="generic", help="the kind of endpoint; default: generic")
    group.add_argument(
        "--retries",
        metavar="N",
        type=int,
        default=RETRIES,
        help="repeat a request after temporary failures; default: %(default)s",
    )
    group.add_argument(
        "--allow-stale", action="store_true", help="read a store directory while another process writes to it"
    )


def asking(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_asking` as `construct_messages` takes them."""
    return {
        "page_size": options.page_size,
        "timeout": options.timeout,
        "method": options.method,
        "headers": pairs("--header", options.header, "K:V"),
        "results": options.results,
        "profile": options.profile,
        "retries": options.retries,
        "allow_stale": options.allow_stale,
    }


def add_messages(group: argparse._ArgumentGroup) -> None:
    """Adds the options that say what makes a message."""
    group.add_argument(
        "--group-by",
        metavar="?v",
        action="append",
        default=[],
        help="one message for all solutions with the same ?v; repeatable",
    )
    group.add_argument(
        "--group-order",
        choices=["appearance", "sorted"],
        default="appearance",
        help="the order of groups: that of their first solutions, or that of the variables",
    )
    group.add_argument("--distinct", action="store_true", help="leave out messages that equal an earlier one")
    group.add_argument("--skip-empty", action="store_true", help="leave out empty messages")
    group.add_argument("--skolemize", metavar="IRI", help="replace blank nodes of the data by IRIs under this one")
    add_label_prefix(group)
    group.add_argument("--max-messages", metavar="N", type=int, help="end the log after N messages")


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options above as both `construct_messages` take them."""
    return {
        "group_by": options.group_by,
        "group_order": options.group_order,
        "distinct": options.distinct,
        "skip_empty": options.skip_empty,
        "skolemize": options.skolemize,
        "label_prefix": options.label_prefix,
        "max_messages": options.max_messages,
        **dataset(options),
    }


def dataset(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_dataset` as `construct_messages` takes them."""
    return {
        "bindings": pairs("--bind", options.bind, "v=TERM"),
        "default_graph": options.default_graph,
        "named_graphs": options.named_graph,
        "prefixes": pairs("--prefix", options.prefix, "p=IRI"),
        "base": options.base,
    }


def query_text(options: argparse.Namespace, several: str) -> str:
    """The text of the query.

    Args:
        options: those of `add_query`.
        several: the option that takes several values, behind which a file would be taken for one of them.

    Raises:
        UsageError: no query, two, or one that cannot be read.
    """
    if (options.file is None) == (options.query is None):
        raise UsageError(
            "give one query: a QUERY-FILE, - or --query TEXT",
            hint=f"put QUERY-FILE before {several}, which takes several",
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
