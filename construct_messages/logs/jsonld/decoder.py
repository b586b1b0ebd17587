"""The NDJSON-LD decoder: one JSON-LD document a line, a line whose only key is `@context` for the active context.

RDF Messages for NDJSON-LD (https://w3c-cg.github.io/rsp/messages/). `documents.py` interprets documents.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import Final

from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import most_characters
from construct_messages.logs.jsonld.documents import Documents
from construct_messages.logs.jsonld.json_text import JsonReader, mask_halves
from construct_messages.logs.line_buffer import WholeLines, decode_utf8
from construct_messages.rdf.errors import LogError, Position
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

_ONE_A_LINE: Final = (
    "write each message as one JSON-LD document on one line, as `jq --compact-output .` does"
)


class JsonLdDecoder:
    """Reads an NDJSON-LD log; see `Decoder`.

    >>> from construct_messages.rdf.formats import NDJSON_LD
    >>> decoder = JsonLdDecoder(NDJSON_LD, NDJSON_LD.own, DecoderOptions())
    >>> list(decoder.feed(b'{"@context": {"ex": "http://example.org/"}}\\n{"@id": "ex:a", "ex:b": ["c"]}'))
    []
    >>> list(decoder.feed(b"\\n{}\\n")), decoder.prefixes
    ([<Message of 1 quad: <http://example.org/a> <http://example.org/b> "c" .>, <Message, empty>], \
{'ex': 'http://example.org/'})
    """

    options: Final = None

    def __init__(self, _format: Format, syntax: Syntax | None, options: DecoderOptions) -> None:
        self.syntax, self._message_bytes = syntax, options.message_bytes
        self._documents = Documents(
            options.base,
            options.contexts,
            options.labels or Labels(),
            options.lenience,
            options.context,
        )
        self._json, self._lines = JsonReader(), WholeLines(options.message_bytes)
        self._may_join = options.documents

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the active contexts so far."""
        return self._documents.prefixes

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages whose lines are complete now; see `Decoder.feed`."""
        for line in self._lines.feed(data):
            yield from self._read(line)

    def close(self) -> Iterator[Message]:
        """Returns the message of a last line without an end, or of the whole document; see `Decoder.close`."""
        for line in self._lines.close():
            yield from self._read(line)

    def read_whole(self, document: bytes) -> Iterator[Message]:
        """Returns the message of a document, which may have any number of lines."""
        self._lines.joined = True
        yield from self.feed(document)
        yield from self.close()

    def _read(self, line: bytes) -> Iterator[Message]:
        number, position = self._lines.number, Position(self._lines.line, 1)
        joined = self._lines.joined
        joins = self._may_join and self._lines.line == 1 and not joined
        text, mask = decode_utf8(line, number, self._lines.line), ""
        if self._documents.lenient:
            text, mask = mask_halves(text)
        if not text.strip(" \t\r\n"):
            if joins:
                self._lines.join(line)
                return
            hint = "leave blank lines out, and write an empty message as {}"
            raise LogError("the line is blank", number=number, position=position, hint=hint)
        try:
            document = self._json.read(text, number, self._lines.line)
        except LogError as error:
            goes_on = self._goes_on(text, error)
            if joins and goes_on:
                self._lines.join(line)
                return
            if error.hint is None and (goes_on or (joined and self._may_join)):
                error.hint = _ONE_A_LINE
            raise
        if isinstance(document, list) and joins:  # only a document, and no log, begins so
            self._lines.join(line)
            return
        if isinstance(document, list) and joined:
            document = {"@included": document}
        if not isinstance(document, dict):
            raise LogError(
                f"the line is no JSON object: {text[:40]}",
                number=number,
                position=position,
                hint='write several nodes as {"@included": […]}',
            )
        message = self._documents.read(
            document, number, position, most_characters(len(line), self._message_bytes), mask
        )
        if message is not None:
            self._lines.number += 1
            yield message

    @staticmethod
    def _goes_on(text: str, error: LogError) -> bool:
        """Returns whether the line is the beginning of a document over several lines."""
        return error.position is not None and error.position.column > len(text.rstrip())


def read_document(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """Returns the message of a JSON-LD document, which may have any number of lines."""
    if not document.removeprefix(BOM_UTF8).strip():
        raise LogError(
            "the document is empty, which is no JSON",
            number=1,
            hint="send {} for a message without a statement",
        )
    decoder = JsonLdDecoder(format, format.own, options)
    yield from decoder.read_whole(document)
