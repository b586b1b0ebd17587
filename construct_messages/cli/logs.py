"""Shared parts of the commands that read and write logs: their options, and opening a log."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import TypeAlias

from construct_messages.cli.arguments import (
    LABELS,
    LOG_FORMATS,
    NO_PREFIXES,
    add_contexts,
    add_format,
    add_lenient,
    add_options,
    add_table,
    contexts,
    option,
)
from construct_messages.cli.terminal import STANDARD, progress, standard_input
from construct_messages.errors import UsageError
from construct_messages.logs.reading import LogReader, read_log
from construct_messages.rdf.files.output import GrowingFile
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import MessageOptions, TransportOptions

Change: TypeAlias = Callable[[list[Message]], Iterable[Message]]
"""Returns the messages to write for some messages."""


def add_input(command: argparse.ArgumentParser) -> None:
    """Adds the options of a command that reads logs."""
    group = command.add_argument_group("input log")
    help = "the format; default: that of the extension, else detected from the first bytes"
    option(group, f"--input-format {LOG_FORMATS}", help)
    help = "the syntax that delimits messages; default: that of the log"
    option(group, "--input-syntax", help, choices=LABELS)
    add_lenient(group, "statements")
    option(group, "--base IRI", "resolve relative IRIs against this IRI")
    add_contexts(group, "a JSON-LD context that the log or the frame names")
    add_table(
        group,
        """
        --labels-per {log,message}   the scope of a blank node label: the log, or each message; default: that of the
            format and the syntax
        --generalized   accept terms of a Jelly log in positions that RDF does not allow
        --jelly-conformance   read a Jelly log as the tests of the Jelly project require
        """,
    )
    add_options(group, TransportOptions, "message_bytes")


def add_output_log(command: argparse.ArgumentParser, default: str) -> None:
    """Adds the options of a command that writes a log."""
    group = command.add_argument_group("output log")
    add_format(group, default, has_contexts=True)
    option(group, "--no-prefixes", NO_PREFIXES)
    add_options(group, MessageOptions, "label_prefix")


def open_log(
    name: str | GrowingFile,
    options: argparse.Namespace,
    *,
    label_prefix: str | None = None,
    keep_labels: bool = True,
    standard: Callable[[], Iterator[bytes] | AsyncIterator[bytes]] = standard_input,
) -> LogReader:
    """The log of a name, or of standard input, with the options of `add_input`.

    The file itself, instead of its name, grows. Labels of a single log may stay unchanged (`keep_labels`).
    """
    return read_log(
        standard() if name == STANDARD else name,
        options.input_format,
        syntax=options.input_syntax,
        base=options.base,
        contexts=contexts(options),
        message_bytes=options.max_message_bytes,
        generalized=options.generalized or options.jelly_conformance,
        label_prefix=label_prefix,
        keep_labels=keep_labels,
        shared_labels=_shared_labels(options),
        lenient=options.lenient,
    )


def _shared_labels(options: argparse.Namespace) -> bool | None:
    """The option `shared_labels` of `read_log`; the command decides whether labels are kept."""
    if options.labels_per is None:
        return True if options.jelly_conformance else None
    if options.jelly_conformance:
        raise UsageError(
            "--jelly-conformance sets the scope of labels", hint="leave --labels-per out"
        )
    return bool(options.labels_per == "log")


def watched(
    options: argparse.Namespace, *readers: LogReader, output: str | None = None
) -> AbstractContextManager[Callable[[], None]]:
    """The progress of reading logs; see `progress`."""

    def counts() -> tuple[int, int]:
        return sum(reader.message_count for reader in readers), sum(
            reader.bytes_read for reader in readers
        )

    return progress(counts, quiet=options.quiet, output=output)


def add_transform(group: argparse._ActionsContainer) -> None:
    """Adds the options of a query over each message."""
    add_table(
        group,
        """
        --transform QUERY-FILE   write a message for each solution of this CONSTRUCT over each message, instead of the
            message
        --one-per-message   with --transform: write one message for each message, with the triples of all solutions; it
            may be empty
        """,
    )


def transformation_of(options: argparse.Namespace) -> Change | None:
    """Returns the transformation of `add_transform`; None: messages stay unchanged."""
    if options.transform is None:
        if options.one_per_message:
            raise UsageError("--one-per-message needs --transform", hint="name a file with a query")
        return None
    from construct_messages.cli.queries import read_query
    from construct_messages.continuous.transform import Transformation

    query = Transformation(read_query(options.transform), one_per_message=options.one_per_message)
    return lambda messages: query.batch([message.lines for message in messages])


def transformed(change: Change, messages: Iterable[Message]) -> Iterator[Message]:
    """Yields the transformed messages, a thousand at a time."""
    rest = iter(messages)
    while batch := list(islice(rest, 1000)):
        yield from change(batch)
