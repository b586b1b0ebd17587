"""The commands that read logs and write a log: `convert`, `cat`, `head`, `slice` and `tail`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from typing import Final

from construct_messages.cli.arguments import (
    Commands,
    add_output,
    add_reports,
    format_options,
    option,
)
from construct_messages.cli.logs import (
    add_input,
    add_output_log,
    add_transform,
    open_log,
    transformation_of,
    transformed,
    watched,
)
from construct_messages.cli.shapes import STATUS, add_shapes, status_of, validating
from construct_messages.cli.terminal import END_SIGNALS, STANDARD, target
from construct_messages.errors import CannotFold, LogError, UsageError
from construct_messages.logs import Encoder, EncoderOptions, encoder_for, options_for_writing
from construct_messages.logs.reading import LogReader
from construct_messages.logs.spaces import fold, unfold
from construct_messages.logs.targets import format_of_target
from construct_messages.logs.writing import passes_lines, write_log
from construct_messages.rdf.files.output import GrowingFile
from construct_messages.rdf.formats import N_QUADS, WRITTEN
from construct_messages.rdf.formats.lookup import find_format, find_log
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import iri
from construct_messages.sparql.client.urls import is_url

_STATUSES: Final = (
    "Exit status: 0 complete, 1 log not written, 2 bad usage or a message that cannot be written so, "
    "3 malformed log, 4 past a limit."
)


def add(commands: Commands) -> None:
    """Adds the commands."""
    _add_convert(commands)
    cat = commands.add_parser(
        "cat",
        help="join logs",
        description="Write the messages of several logs as one log. Blank nodes of different logs stay apart.",
        examples=["construct-messages cat monday.nq tuesday.trig --output both.jelly"],
        epilog=_STATUSES,
    )
    cat.set_defaults(command=_cat)
    cat.add_argument(
        "logs", metavar="LOG", nargs="+", help="the logs to read; - for standard input"
    )
    option(cat, "--count", "print the number of messages; without --output, instead of the log")

    head = commands.add_parser(
        "head",
        help="write the first messages of a log",
        description="Write the first messages of a log as a log. The rest is not read.",
        examples=["construct-messages head -n 3 log.jelly --format ttl"],
        epilog=_STATUSES,
    )
    head.set_defaults(command=_slice, first=1)
    _add_places(head)
    option(head, "-n, --count N [10]", "the number of messages")

    slice = commands.add_parser(
        "slice",
        help="write some messages of a log",
        description="Write a range of the messages of a log as a log. The rest is not read.",
        examples=["construct-messages slice log.nq --from 100 --count 10"],
        epilog=_STATUSES,
    )
    slice.set_defaults(command=_slice)
    _add_places(slice)
    option(slice, "--from N [1]", "the number of the first message, from 1", dest="first")
    option(slice, "-n, --count N", "the number of messages; default: all")

    tail = commands.add_parser(
        "tail",
        help="write the last messages of a log",
        description="Write the last messages of a log as a log; with --follow, also those that are appended to it.",
        examples=[
            "construct-messages tail -n 3 log.nq",
            "construct-messages tail --follow log.nq --format ttl",
        ],
        epilog=_STATUSES,
    )
    tail.set_defaults(command=_tail)
    _add_places(tail)
    option(tail, "-n, --count N [10]", "the number of messages")
    help = "wait for more messages, also of a file that takes the place of LOG; ends by Ctrl-C or SIGTERM"
    option(tail, "-F, --follow", help)
    for command in (cat, head, slice, tail):
        add_output(command, "FILE instead of standard output")
        add_input(command)
        add_output_log(command, "that of the extension of FILE, else that of the (first) input log")
        add_reports(command)


def _add_convert(commands: Commands) -> None:
    convert = commands.add_parser(
        "convert",
        help="write a log in another format or syntax",
        description="Read a log of RDF Messages and write its messages as another log.",
        examples=[
            "construct-messages convert log.nq.gz log.jelly",
            "construct-messages convert log.trig --format ttl --fold",
            "construct-messages convert log.nq results.nq --transform query.rq --one-per-message",
            "construct-messages convert log.nq good.nq --shapes shapes.ttl --on-invalid drop --invalid-to bad.nq",
        ],
        epilog=f"{_STATUSES.removesuffix('.')}, {STATUS}",
    )
    convert.set_defaults(command=_convert)
    _add_places(convert)
    add_output(
        convert,
        "FILE when the log is complete, compressed if it ends in .gz .bz2 .xz .zst; - for standard output",
    )
    spaces = convert.add_mutually_exclusive_group()
    option(spaces, "--fold", "write the named graphs of each message as triples")
    option(spaces, "--unfold", "turn folded triples into named graphs")
    option(convert, "--skolemize IRI", "replace all blank nodes by IRIs under this one")
    add_input(convert)
    add_output_log(convert, "that of the extension of FILE, else nq")
    add_transform(convert)
    add_shapes(convert)
    add_reports(convert)


def _add_places(command: argparse.ArgumentParser) -> None:
    """Adds the input and the output, in the order that all commands over one log have."""
    command.add_argument("log", metavar="LOG", help="the log to read; - for standard input")
    command.add_argument(
        "output",
        metavar="OUT",
        nargs="?",
        default=argparse.SUPPRESS,  # otherwise an absent OUT would replace the value of --output
        help="the same as --output",
    )


def _convert(options: argparse.Namespace) -> int:
    format = format_of_target(target(options.output), options.format)
    skolemize, prefix = options.skolemize, options.label_prefix
    if skolemize is not None:
        iri(skolemize)
    change = transformation_of(options)
    # an IRI means the same in all logs, so the labels that IRIs are made from must be unique
    with (
        validating(options) as validation,
        open_log(
            options.log, options, label_prefix=prefix, keep_labels=skolemize is None
        ) as reader,
    ):
        if passes_lines(*find_log(format, options.syntax)):
            reader.keep_lines()
        messages = _begun(reader)
        if change is not None:
            messages = transformed(change, messages)
        if skolemize is not None:
            messages = (message.skolemize(skolemize) for message in messages)
        if validation is not None:
            messages = validation.passed(messages)
        if options.fold or options.unfold:
            messages = _refolded(messages, Labels(prefix), unfolded=options.unfold)
        graphs = options.unfold or (reader.names_graphs and not options.fold) or change is not None
        _write([reader], messages, options, format, options.syntax, graphs=graphs)
    return status_of(validation, options)


def _cat(options: argparse.Namespace) -> int:
    format_of_target(target(options.output), options.format)
    prefix = None if options.label_prefix is None else Labels(options.label_prefix).prefix
    with ExitStack() as stack:
        readers = [
            stack.enter_context(
                open_log(
                    name, options, label_prefix=prefix and f"{prefix}{number}", keep_labels=False
                )
            )
            for number, name in enumerate(options.logs, 1)
        ]
        messages = _begun(chain.from_iterable(readers))
        if options.count and options.output == STANDARD:
            with watched(options, *readers) as step:
                for _ in messages:
                    step()
        else:
            format, label = _as_read(readers[0], options)
            graphs = any(reader.names_graphs for reader in readers)
            _write(readers, messages, options, format, label, graphs=graphs)
        if options.count:
            print(sum(reader.message_count for reader in readers), flush=True)
    return 0


def _slice(options: argparse.Namespace) -> int:
    if options.first < 1:
        raise UsageError(
            f"--from {options.first} is less than 1", hint="messages are counted from 1"
        )
    # a message that is not requested still determines the kind of log
    return _part(
        options,
        lambda reader: islice(_begun(islice(reader, options.first - 1, None)), options.count),
    )


def _tail(options: argparse.Namespace) -> int:
    if is_url(options.log):
        follow = " --follow" if options.follow else ""
        raise UsageError(
            f"{options.log} is a URL, and not a file",
            hint=f"construct-messages subscribe {options.log} --last {options.count}{follow}",
        )
    if options.follow and options.log != STANDARD:  # a pipe is read to its end in any case
        return _follow(options)
    return _part(options, lambda reader: deque(reader, maxlen=options.count))


def _part(options: argparse.Namespace, choose: Callable[[LogReader], Iterable[Message]]) -> int:
    if options.count is not None and options.count < 0:
        raise UsageError(f"--count {options.count} is less than 0")
    # an extension that is unknown is an error before all others
    format_of_target(target(options.output), options.format)
    with open_log(options.log, options, label_prefix=options.label_prefix) as reader:
        messages = choose(reader)
        format, label = _as_read(reader, options)
        _write([reader], messages, options, format, label, graphs=reader.names_graphs)
    return 0


def _follow(options: argparse.Namespace) -> int:
    """Writes the last messages at the current end of the log, and then each new one as soon as it is complete."""
    if options.count < 0:
        raise UsageError(f"--count {options.count} is less than 0")
    if options.output != STANDARD:
        raise UsageError(
            "--follow writes standard output", hint="leave out --output, and redirect it"
        )
    for number in END_SIGNALS:
        signal.signal(number, _interrupt)
    written = _Followed(options)
    with suppress(KeyboardInterrupt):
        while True:
            with open_log(
                GrowingFile(options.log, written.catch_up),
                options,
                label_prefix=options.label_prefix,
            ) as log:
                written.read(log)
            if not options.quiet:
                print(f"{options.log} was replaced or cut: its messages follow", file=sys.stderr)
    written.finish()
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


class _Followed:
    """The output log of input logs that grow."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._held = options, deque[Message](maxlen=options.count)
        self._encoder: Encoder | None = None
        self._log: LogReader | None = None
        self._live = False

    def read(self, log: LogReader) -> None:
        """Takes the messages of a log; all of them if it replaces another log."""
        self._log = log
        try:
            for message in log:
                if self._live:
                    self._write(message)
                else:
                    self._held.append(message)
        except LogError:
            self.catch_up()  # the messages before the error are complete
            raise
        self.catch_up()

    def catch_up(self) -> None:
        """Writes the messages that were held back, when the input has no more for now."""
        for message in self._held:
            self._write(message)
        self._held.clear()
        self._live = True
        sys.stdout.buffer.flush()

    def finish(self) -> None:
        """Writes the end of the log."""
        if self._encoder is not None:
            sys.stdout.buffer.write(self._encoder.finish())
            sys.stdout.buffer.flush()

    def _write(self, message: Message) -> None:
        sys.stdout.buffer.write((b"" if self._encoder else self._begin()) + self._encode(message))

    def _encode(self, message: Message) -> bytes:
        assert self._encoder is not None
        return self._encoder.encode(message)

    def _begin(self) -> bytes:
        """The bytes before the first message, which are enough to detect the format."""
        log, options = self._log, self._options
        assert log is not None
        name, label = _as_read(log, options)
        format, syntax = find_log(name, label)
        own = options_for_writing(
            format,
            format_options(options),
            log.options,
            graphs=log.names_graphs,
            generalized=log.generalized,
        )
        prefixes = {} if options.no_prefixes else dict(log.prefixes)
        encoding = EncoderOptions(prefixes, graphs=log.names_graphs, triple_terms=True, own=own)
        self._encoder = encoder_for(format, syntax, encoding)
        return self._encoder.start()


def _as_read(reader: LogReader, options: argparse.Namespace) -> tuple[str, str | None]:
    """The format and the syntax to write; by default those of a log whose first message has been read."""
    format = format_of_target(target(options.output), options.format, reader.format or N_QUADS)
    label: str | None = options.syntax
    if label is None and reader.syntax is not None and find_format(format, WRITTEN)[1] is None:
        label = reader.syntax.label or None
    return format, label


def _begun(messages: Iterable[Message]) -> Iterator[Message]:
    """The same messages, after reading the first one, which determines the format, the syntax and most prefixes."""
    rest = iter(messages)
    first = list(islice(rest, 1))
    return chain(first, rest) if first else iter(())  # a reader at its end is read once


def _refolded(messages: Iterable[Message], labels: Labels, *, unfolded: bool) -> Iterator[Message]:
    for number, message in enumerate(messages, 1):
        try:
            yield unfold(message) if unfolded else fold(message, number=number, labels=labels)
        except CannotFold as error:
            error.add_note(f"in message {number}")
            raise


def _write(
    readers: Sequence[LogReader],
    messages: Iterable[Message],
    options: argparse.Namespace,
    format: str,
    label: str | None,
    *,
    graphs: bool,
) -> None:
    standard, place = options.output == STANDARD, target(options.output)
    first = readers[0]
    own = options_for_writing(
        find_log(format)[0],
        format_options(options),
        first.options,
        graphs=graphs,
        generalized=first.generalized,
    )
    with watched(options, *readers, output=options.output) as step:
        write_log(
            _stepping(messages, step),
            place,
            format,
            syntax=label,
            prefixes={} if options.no_prefixes else dict(first.prefixes),
            graphs=graphs,
            options=own,
        )
    if standard:
        sys.stdout.buffer.flush()


def _stepping(messages: Iterable[Message], step: Callable[[], None]) -> Iterator[Message]:
    for message in messages:
        yield message
        step()
