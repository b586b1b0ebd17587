"""The YAML-LD decoder: one JSON-LD document in YAML per message, each between `---` and `...` or the next `---`.

A line that begins with a marker is one, even in literals (YAML 1.2.2, section 9.1.2), so documents are found by line. A
truncated document in block style is often another valid document. Therefore, if one document of a log ends with `...`,
like all from our encoder, each later one must. The active context works as in NDJSON-LD. `yaml_text.py` parses YAML,
and `jsonld/documents.py` interprets documents.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import Final

from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import most_characters
from construct_messages.logs.jsonld.documents import Documents
from construct_messages.logs.jsonld.json_text import mask_halves
from construct_messages.logs.line_buffer import decode_utf8, too_long
from construct_messages.logs.yamlld.yaml_text import YamlReader
from construct_messages.rdf.errors import LimitExceeded, LogError, Position
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

_MARKER: Final = re.compile(rb"(---|\.\.\.)(?:[ \t\r\n]|$)")
_MOST_DIRECTIVES: Final = 1 << 8  # each is compared with all previous ones
_NOTHING: Final = re.compile(rb"[ \t\r\n]*(?:#.*)?", re.DOTALL)


class YamlLdDecoder:
    """Reads a YAML-LD log; see `Decoder`.

    Args:
        syntax: YAML-LD's own.
        options: see `DecoderOptions`; contexts that are not in them are not loaded.

    >>> from construct_messages.rdf.formats import YAML_LD
    >>> decoder = YamlLdDecoder(YAML_LD, YAML_LD.own, DecoderOptions())
    >>> list(decoder.feed(b'---\\n"@id": urn:a\\nurn:b: c\\n---\\n{}\\n...\\n'))
    [<Message of 1 quad: <urn:a> <urn:b> "c" .>, <Message, empty>]
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
        self._yaml = YamlReader(options.message_bytes)
        self._messages = 0
        self._directives = 0
        self._size = 0  # the line of the text after the last document
        self._line = bytearray()
        self._line_number = 1
        self._document = bytearray()  # its lines so far, or its directives
        self._begun = False  # whether there is more than directives
        self._ends = False  # whether a document ended with an end marker
        self._document_line = 1

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes of the active contexts so far."""
        return self._documents.prefixes

    def feed(self, data: bytes) -> Iterator[Message]:
        """Returns the messages whose documents are complete now; see `Decoder.feed`."""
        start = 0
        while end := data.find(b"\n", start) + 1:
            self._hold(data[start:end])
            yield from self._take_line()
            start = end
        self._hold(data[start:])

    def close(self) -> Iterator[Message]:
        """Returns the message of a last document without a marker after it; see `Decoder.close`."""
        if self._line:
            yield from self._take_line()
        if self._document:
            yield from self._read(ends=False)

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._message_bytes:
            raise too_long(self._messages + 1, self._message_bytes)
        self._line += piece

    def _take_line(self) -> Iterator[Message]:
        line = bytes(self._line)
        if self._line_number == 1:
            line = line.removeprefix(BOM_UTF8)
        marker = _MARKER.match(line)
        ends = marker is not None and marker[1] == b"..."
        if marker and not ends and self._begun:
            yield from self._read(ends=False)
        nothing = _NOTHING.fullmatch(line) is not None
        if self._document or not (nothing or ends):
            if not self._document:
                self._document_line = self._line_number
            if line.startswith(b"%") and not self._begun:
                self._directives += 1
                if self._directives > _MOST_DIRECTIVES:
                    message = (
                        f"message {self._messages + 1} has more than {_MOST_DIRECTIVES} directives"
                    )
                    raise LimitExceeded(message, position=Position(self._line_number, 1))
            self._document += line
            self._begun = self._begun or not (nothing or line.startswith(b"%"))
        self._line.clear()
        self._line_number += 1
        if ends and self._begun:
            yield from self._read(ends=True)

    def _read(self, *, ends: bool) -> Iterator[Message]:
        """Returns the message of the document, which ends with or without an end marker."""
        number, line = self._messages + 1, self._document_line
        position = Position(line, 1)
        if self._ends and not ends and self._begun:
            raise LogError(
                "the document does not end with ..., as one before it does",
                number=number,
                position=position,
                hint="it was cut, so get the log again; or end each of its documents with ...",
            )
        text, mask = decode_utf8(self._document, number, line), ""
        if self._documents.lenient:
            text, mask = mask_halves(text, pairs=True)
        document = self._yaml.read(text, number, line)
        self._ends = ends
        if not isinstance(document, dict):
            raise LogError(
                "the document is empty" if document is None else "the document is no mapping",
                number=number,
                position=position,
                hint="write an empty message as {}",
            )
        most = most_characters(len(self._document), self._message_bytes)
        message = self._documents.read(document, number, position, most, mask)
        self._document.clear()
        self._size = len(self._line)  # the line of a marker that begins the next one
        self._begun = False
        self._directives = 0
        if message is not None:
            self._messages += 1
            yield message
