"""Shared options of the commands that evaluate a query: its text, its dataset, its source, and the messages."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from construct_messages.cli.arguments import (
    add_options,
    add_table,
    flags_given,
    made,
    option,
    pairs,
)
from construct_messages.errors import UsageError
from construct_messages.rdf.options import (
    OF_DUCKDB,
    Dataset,
    Grouping,
    MessageOptions,
    Requests,
    options_of,
)
from construct_messages.sparql.client.urls import is_url
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


def add_dataset(group: argparse._ActionsContainer, **helps: str) -> None:
    """Adds the options for bindings, prefixes and datasets of a query."""
    add_options(group, Dataset, **helps)
    add_table(
        group,
        """
        --bind v=TERM*   bind ?v to an N-Triples term
        --prefix p=IRI*   declare a prefix
        --base IRI   resolve relative IRIs against this IRI
        """,
    )


def add_source(group: argparse._ArgumentGroup) -> None:
    """Adds the option for the source."""
    help = f"""RDF files, a store directory, an endpoint URL, or (of run) - for standard input; default: the environment
        variable {VARIABLE}"""
    option(group, "--source SOURCE", " ".join(help.split()), nargs="+", action="extend")


def check_requests(source: object, options: argparse.Namespace) -> None:
    """Refuses options that are only for endpoints, if the source is none."""
    source = source or os.environ.get(VARIABLE)
    if is_url(source[0] if isinstance(source, list) else source):
        return
    of_all = ("timeout", "strict", "allow_stale", "source_format", *OF_DUCKDB)
    if flags := flags_given(Requests, options, but=of_all):
        raise UsageError(
            f"only endpoints have {', '.join(flags)}, and the source is not the URL of one",
            hint=f"leave out {', '.join(flags)}, or begin the source with https:// or http://",
        )


def arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `Grouping`, `MessageOptions` and `add_dataset`, as `construct_messages` takes them."""
    if not options.group_by and (flags := flags_given(Grouping, options)):
        raise UsageError(
            f"only groups have {', '.join(flags)}, and there are none",
            hint="write --group-by ?v, or leave it out",
        )
    names = options_of(MessageOptions)
    return {
        "group_by": made(Grouping, options),
        **{name: getattr(options, name) for name in names if name in options},
        **dataset(options),
    }


def dataset(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_dataset` as `construct_messages` takes them."""
    return {
        "dataset": made(Dataset, options),
        "base": options.base,
        "bindings": pairs("--bind", options.bind, "v=TERM"),
        "prefixes": pairs("--prefix", options.prefix, "p=IRI", named=False),
    }


def query_text(options: argparse.Namespace, several: str) -> str:
    """The text of the query; `several` is an option with several values, which would include a file after it."""
    if (options.file is None) == (options.query is None):
        raise UsageError(
            "pass one query: a QUERY-FILE, - or --query TEXT",
            hint=f"put QUERY-FILE before {several}, which takes several values",
        )
    return str(options.query) if options.query is not None else read_query(options.file)


def read_query(file: str) -> str:
    """The text of a query in a file, or in standard input."""
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
