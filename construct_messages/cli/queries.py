"""Shared options of the commands that evaluate a query: its text, its dataset, its source, and the messages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from construct_messages.cli.arguments import add_label_prefix, option, pairs
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.formats.results import READ
from construct_messages.rdf.options import RETRIES, Dataset, Grouping, Requests
from construct_messages.sparql.sources.open import VARIABLE


def add_query(group: argparse._ArgumentGroup) -> None:
    """Adds the options that select the query."""
    group.add_argument(
        "file",
        metavar="QUERY-FILE",
        nargs="?",
        help="the file of the CONSTRUCT query; - for standard input",
    )
    option(group, "--query TEXT", "the query itself, instead of QUERY-FILE")


def add_dataset(group: argparse._ActionsContainer, *, default_graph: str, help: str) -> None:
    """Adds the options for bindings, prefixes and datasets of a query.

    Args:
        default_graph: the values of `--default-graph`.
        help: their description.
    """
    option(group, f"--default-graph {default_graph}", help, repeatable=True)
    option(
        group,
        "--named-graph IRI",
        "a named graph of the dataset",
        dest="named_graphs",
        repeatable=True,
    )
    option(group, "--bind v=TERM", "bind ?v to an N-Triples term", repeatable=True)
    option(group, "--prefix p=IRI", "declare a prefix", repeatable=True)
    option(group, "--base IRI", "resolve relative IRIs against this IRI")


def add_source(group: argparse._ArgumentGroup) -> None:
    """Adds the option for the source."""
    option(
        group,
        "--source SOURCE",
        "RDF files, a store directory, an endpoint URL, or (of run) - for standard input; default: the environment "
        f"variable {VARIABLE}",
        nargs="+",
        action="extend",
    )


def add_asking(group: argparse._ActionsContainer) -> None:
    """Adds the options for requests to the source."""
    option(group, "--page-size N", "request N solutions at a time", type=int)
    option(group, "--page-key ?v", "request pages by the IRIs of ?v, not by OFFSET")
    option(group, "--timeout SECONDS", "stop if the whole answer takes longer", type=float)
    option(
        group,
        "--read-seconds SECONDS",
        "stop if an endpoint sends nothing for this long; inf: never; default: 600 of watch, else inf",
        type=float,
    )
    option(
        group,
        "--method",
        "the HTTP method for an endpoint",
        choices=["get", "post"],
        default="post",
    )
    option(group, "--header K:V", "send an additional request header", repeatable=True)
    option(
        group,
        f"--results {'|'.join(['auto', *READ])}",
        "the results format to request",
        default="auto",
    )
    option(group, "--profile NAME", "the kind of endpoint", default="generic")
    option(
        group, "--retries N", "repeat a request after temporary failures", type=int, default=RETRIES
    )
    option(
        group,
        "--source-format NAME",
        "the format of files; default: that of the extension; of standard input, detected from the first bytes",
    )
    option(group, "--allow-stale", "read a store directory while another process writes to it")


def requests(options: argparse.Namespace) -> Requests:
    """The options of `add_asking`, and `--strict` of some commands."""
    names = set(Requests.__match_args__) & vars(options).keys()
    return Requests(
        headers=pairs("--header", options.header, "K:V"),
        **{name: getattr(options, name) for name in names},
    )


def add_messages(group: argparse._ActionsContainer) -> None:
    """Adds the options for messages."""
    option(
        group, "--group-by ?v", "one message for all solutions with the same ?v", repeatable=True
    )
    option(
        group,
        "--group-order",
        "the order of groups: that of their first solutions, or that of the variables",
        choices=["appearance", "sorted"],
        default="appearance",
    )
    option(group, "--distinct", "leave out messages that equal an earlier one")
    option(group, "--skip-empty", "leave out empty messages")
    option(group, "--skolemize IRI", "replace blank nodes of the data by IRIs under this one")
    add_label_prefix(group)
    option(group, "--max-messages N", "end the log after N messages", type=int)


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options above as both `construct_messages` take them."""
    limit = {"limit": options.group_limit} if "group_limit" in options else {}
    names = ("distinct", "skip_empty", "skolemize", "label_prefix", "max_messages")
    return {
        "group_by": Grouping(options.group_by, order=options.group_order, **limit),
        **{name: getattr(options, name) for name in names},
        **dataset(options),
    }


def dataset(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_dataset` as `construct_messages` takes them."""
    return {
        "dataset": Dataset(options.default_graph, options.named_graphs),
        "base": options.base,
        "bindings": pairs("--bind", options.bind, "v=TERM"),
        "prefixes": pairs("--prefix", options.prefix, "p=IRI"),
    }


def query_text(options: argparse.Namespace, several: str) -> str:
    """The text of the query.

    Args:
        options: those of `add_query`.
        several: the option with several values, which would include a file after it.

    Raises:
        UsageError: no query, two queries, or one that cannot be read.
    """
    if (options.file is None) == (options.query is None):
        raise UsageError(
            "pass one query: a QUERY-FILE, - or --query TEXT",
            hint=f"put QUERY-FILE before {several}, which takes several values",
        )
    return str(options.query) if options.query is not None else read_query(options.file)


def read_query(file: str) -> str:
    """The text of a query in a file, or in standard input.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the query {file}: {error.strerror}") from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the query {file} is not UTF-8 at byte {error.start}", hint="convert it to UTF-8"
        ) from error
