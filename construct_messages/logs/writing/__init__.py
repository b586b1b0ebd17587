"""Writing logs: `write_log` and `awrite_log`, from any iterable of messages to a file.

`logs/` encodes messages, and `rdf/files/output.py` writes files. RDF Messages, section 3.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Final

from construct_messages.logs import (
    Encoder,
    EncoderOptions,
    FormatOptions,
    check_options,
    encoder_for,
    options_for_writing,
)
from construct_messages.logs.checking import Checker
from construct_messages.logs.reading import LogReader
from construct_messages.logs.targets import LogTarget, format_of_target, log_file
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.rdf.message import Message
from construct_messages.rdf.single_use import each_of
from construct_messages.rdf.terms import Lenience

_CHUNK_BYTES: Final = 1 << 16


@checked
def write_log(
    messages: Iterable[Message],
    target: LogTarget,
    format: str | None = None,
    *,
    syntax: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    graphs: bool | None = None,
    options: FormatOptions | None = None,
    lenient: bool = False,
) -> int:
    """Writes messages as a log and returns their number.

    Args:
        messages: the messages. If it raises an error or contains a message that the format cannot represent, no file is
            written.
        target: a path, which appears when the log is complete and is compressed if it ends in `.gz`, `.bz2`, `.xz` or
            `.zst`; or a binary file, which stays open.
        format: a name, extension or media type, whose parameters determine the syntax; None: by the extension of the
            path or of the file's name, which must be known; N-Quads without an extension.
        syntax: the syntax: `"rdfm"`, `"1.2-messages"`, `"1.2-basic-messages"` or `"1.1-messages"`; None: `rdfm`, or
            the format's own delimiters.
        prefixes: for formats that have prefixes; None: if `messages` is a `LogReader`, those that the log has declared
            before its first message.
        graphs: whether messages may have named graphs, which Jelly announces at the start; None: they may, unless
            `messages` is a `LogReader` of a format without them.
        options: options of the format, such as `JellyOptions`. Defaults suit messages without triple terms; if
            `messages` is a `LogReader` of the same format, its options are the defaults.
        lenient: write malformed IRIs and language tags unchanged, if the format can represent them. Those of messages
            that were read leniently are always written.

    Raises:
        UsageError: an unknown format, extension or syntax, options of another format, or an object that is not a
            message.
        CannotWrite: the target cannot be written.
        TermError: a term that is not RDF, or is not allowed in its position, such as a literal as subject; names
            message and quad.
        UnsupportedByFormat: the format cannot represent a quad.

    >>> import io
    >>> from construct_messages.logs.reading import read_log
    >>> log = io.BytesIO()
    >>> write_log(read_log(b"PREFIX : <urn:> :s :p :o ."), log, "ttl", syntax="1.2-messages")
    1
    >>> print(log.getvalue().decode(), end="")
    VERSION "1.2-messages"
    PREFIX : <urn:>
    <BLANKLINE>
    :s :p :o .
    MESSAGE
    """
    log = _Log(messages, target, format, syntax, prefixes, graphs, options, lenient)
    with log_file(target) as write:
        for message in messages:
            write(log.encode(message))
        write(log.finish())
    return log.message_count


@checked
async def awrite_log(
    messages: Iterable[Message] | AsyncIterable[Message],
    target: LogTarget,
    format: str | None = None,
    *,
    syntax: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    graphs: bool | None = None,
    options: FormatOptions | None = None,
    lenient: bool = False,
) -> int:
    """Writes messages as a log and returns their number, for asyncio. See `write_log`.

    The messages may be an async iterable. The file is written in a thread.

    >>> import asyncio, io
    >>> log = io.BytesIO()
    >>> asyncio.run(awrite_log([Message(), Message()], log, "nq"))
    2
    >>> log.getvalue()
    b'# @message\\n# @message\\n'
    """
    log = _Log(messages, target, format, syntax, prefixes, graphs, options, lenient)
    with log_file(target) as write:
        held, size = [], 0
        async for message in each_of(messages):
            held.append(log.encode(message))
            size += len(held[-1])
            if size >= _CHUNK_BYTES:
                await _in_thread(write, b"".join(held))
                held, size = [], 0
        await _in_thread(write, b"".join([*held, log.finish()]))
    return log.message_count


class _Log:
    """Yields the bytes of a log, message by message; none before the first, so that an early error writes nothing."""

    def __init__(
        self,
        messages: object,
        target: LogTarget,
        format: str | None,
        syntax: str | None,
        prefixes: Mapping[str, str] | None,
        graphs: bool | None,
        options: FormatOptions | None,
        lenient: bool,
    ) -> None:
        self._format, self._syntax = find_log(format_of_target(target, format), syntax)
        check_options(self._format, options)
        self._messages, self._prefixes, self._graphs, self._options = (
            messages,
            prefixes,
            graphs,
            options,
        )
        self._lenience = Lenience() if lenient else None
        self._encoder: Encoder | None = None
        self.message_count = 0

    def encode(self, message: Message) -> bytes:
        self.message_count += 1
        start = b""
        if self._encoder is None:
            start = self._start().start()
        assert self._encoder is not None
        self._checker.check(message)
        return start + self._encoder.encode(message)

    def finish(self) -> bytes:
        if self._lenience is not None:
            self._lenience.report()
        if self._encoder is None:
            encoder = self._start()
            return encoder.start() + encoder.finish()
        return self._encoder.finish()

    def _start(self) -> Encoder:
        prefixes, graphs, options = self._prefixes, self._graphs, self._options
        origin: dict[str, str] = {}
        if isinstance(self._messages, LogReader):
            origin = {"source": self._messages.name} if self._messages.name else {}
            prefixes = dict(self._messages.prefixes) if prefixes is None else prefixes
            graphs = self._messages.names_graphs if graphs is None else graphs
            options = options_for_writing(
                self._format,
                options,
                self._messages.options,
                graphs=graphs,
                generalized=self._messages.generalized,
            )
        # the encoder checks the positions of terms
        self._checker = Checker(
            self._lenience, generalized=options is not None and options.is_generalized
        )
        encoding = EncoderOptions(prefixes, graphs=graphs is not False, own=options, origin=origin)
        self._encoder = encoder_for(self._format, self._syntax, encoding)
        return self._encoder


async def _in_thread(write: Callable[[bytes], object], data: bytes) -> None:
    writing = asyncio.ensure_future(asyncio.to_thread(write, data))
    try:
        await asyncio.shield(writing)
    finally:
        # a thread cannot be cancelled, and the file must not be closed under it
        await asyncio.wait([writing])
