"""The YAML-LD decoder: one JSON-LD document in YAML per message, each between `---` and `...` or the next `---`.

A line that begins with a marker is one, even in literals (YAML 1.2.2, section 9.1.2), so documents are found by line. A
truncated document in block style is often another valid document. Therefore, if one document of a log ends with `...`,
like all from our encoder, each later one must. The active context works as in NDJSON-LD. `jsonld/decoder.py`
interprets documents.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from construct_messages.errors import LimitExceeded, LogError, Position
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import decode_utf8, most_characters, too_long
from construct_messages.logs.jsonld.decoder import Documents
from construct_messages.logs.jsonld.json_text import DEPTH, double, integer, mask_halves
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message

# --- yaml text ------------------------------------------------------------------------------------
# Reads the YAML of a log: one document in the core schema, as the values of JSON.
#
# YAML 1.2.2, section 10.3 (core schema). YAML-LD 1.0 rejects tags of other schemas, keys that are not strings, and
# cyclic aliases. libyaml parses the events; its schema is that of YAML 1.1, in which `no` is false and `12:30` is
# 750, so this module creates the values. ruamel.yaml supports YAML 1.2, but converts strings to dates, and `0b1` and
# `1_0` to integers, does not limit aliases, and takes ten times as long. No keywords of JSON-LD here.

# line breaks for a reader of YAML 1.1, such as libyaml, and ordinary characters since 1.2
_OLD_BREAK: Final = re.compile("[\x85\u2028\u2029]")

_TAG: Final = "tag:yaml.org,2002:"
_STRING: Final = ("!", _TAG + "str")
_NULL: Final = re.compile(r"(?:null|Null|NULL|~)?")
_BOOLEAN: Final = re.compile(r"(true|True|TRUE)|false|False|FALSE")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o(?P<octal>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_NO_KEY: Final = object()

_LEAST: Final = 1 << 16
_TIMES: Final = 16


@dataclass
class _Node:
    """A value with the cost of its aliases; while it is open, `key` is the key of the next value."""

    value: Any
    size: int = 1
    height: int = 0
    key: Any = _NO_KEY


class YamlReader:
    """Reads the YAML documents of one log. `most`: the maximal number of characters that aliases may add to a document;
    they may add 16 times its length, and always 64 KiB.

    >>> YamlReader(1000).read("a: [no, 0o17, 1e3, &x {b: 12:30}, *x]", number=1, line=1)
    {'a': ['no', 15, 1000.0, {'b': '12:30'}, {'b': '12:30'}]}
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._number = self._line = 1

    def read(self, text: str, number: int, line: int) -> Any:
        """Parses a text. `line`: the line of the log at which the text begins, from 1."""
        self._number, self._line = number, line
        if old := _OLD_BREAK.search(text):
            position = Position.at(text, old.start())
            raise LogError(
                f"U+{ord(old.group()):04X} is in the document: it is a line break in YAML 1.1, but not in 1.2",
                number=number,
                position=Position(line + position.line - 1, position.column),
                hint=f'write it as "\\u{ord(old.group()):04X}", in double quotes',
            )
        try:
            return self._value(text)
        except yaml.MarkedYAMLError as error:
            raise self._error(f"no YAML: {error.problem}", error.problem_mark) from error
        except yaml.reader.ReaderError as error:
            position = Position.at(text, error.position)
            raise LogError(
                f"no YAML: {error.reason} (U+{error.character:04X})",
                number=number,
                position=Position(line + position.line - 1, position.column),
            ) from error

    def _error(self, message: str, mark: Any, hint: str | None = None) -> LogError:
        position = (
            Position(self._line + mark.line, mark.column + 1) if mark else Position(self._line, 1)
        )
        return LogError(message, number=self._number, position=position, hint=hint)

    def _value(self, text: str) -> Any:
        root = _Node([])
        open_nodes = [root]
        anchors: dict[str, _Node | None] = {}  # None: the node is not complete
        names: list[str | None] = [None]
        added, most = 0, min(self._most, max(_LEAST, _TIMES * len(text)))
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                self._check_tag(event)
                if len(open_nodes) > DEPTH:
                    raise self._too_deep(event)
                open_nodes.append(_Node([] if isinstance(event, yaml.SequenceStartEvent) else {}))
                names.append(event.anchor)
                if event.anchor:
                    anchors[event.anchor] = None
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                node, name = open_nodes.pop(), names.pop()
                node.height += 1
            elif isinstance(event, yaml.ScalarEvent):
                node, name = _Node(self._scalar(event), len(event.value) + 1), event.anchor
            elif isinstance(event, yaml.AliasEvent):
                name = None
                aliased = anchors.get(str(event.anchor), _NO_KEY)
                if not isinstance(aliased, _Node):
                    circle = aliased is None
                    problem = (
                        "is within the node that it is an alias of"
                        if circle
                        else "is an alias of nothing before it"
                    )
                    raise self._error(f"*{event.anchor} {problem}", event.start_mark)
                node = aliased
                added += node.size
                if added > most:
                    raise LimitExceeded(
                        f"aliases add more than {most} characters to message {self._number}",
                        hint="write out the nodes that they refer to",
                    )
                if len(open_nodes) + node.height > DEPTH + 1:
                    raise self._too_deep(event)
            else:
                continue
            if name:
                anchors[name] = node
            self._add(open_nodes[-1], node, event)
        if len(root.value) != 1:
            raise self._error(
                "the document is empty" if not root.value else "lines end with a bare CR", None
            )
        return root.value[0]

    def _add(self, parent: _Node, node: _Node, event: yaml.Event) -> None:
        parent.size += node.size
        parent.height = max(parent.height, node.height)
        if isinstance(parent.value, list):
            parent.value.append(node.value)
        elif parent.key is not _NO_KEY:
            parent.value[parent.key], parent.key = node.value, _NO_KEY
        elif not isinstance(node.value, str):
            raise self._error(
                "the key of a mapping is no string", event.start_mark, "put it into quotes"
            )
        elif node.value in parent.value:
            raise self._error(
                f'the key "{node.value}" occurs twice in one mapping',
                event.start_mark,
                "write the values of one key as a sequence",
            )
        else:
            parent.key = node.value

    def _check_tag(self, event: yaml.CollectionStartEvent) -> None:
        kind = "seq" if isinstance(event, yaml.SequenceStartEvent) else "map"
        if event.tag not in (None, "!", _TAG + kind):
            raise self._unknown_tag(event)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        tag, text = event.tag, event.value
        if tag in _STRING or (tag is None and not event.implicit[0]):
            return text
        kind = _kind(text)
        if tag is not None:
            asked = tag.removeprefix(_TAG)
            if asked not in ("null", "bool", "int", "float"):
                raise self._unknown_tag(event)
            if asked != kind and (asked, kind) != ("float", "int"):
                raise self._error(f'"{text[:40]}" is no !!{asked}', event.start_mark)
            kind = asked
        return self._convert(text, kind, event)

    def _convert(self, text: str, kind: str, event: yaml.ScalarEvent) -> Any:
        if kind == "str":
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if _NO_NUMBER.fullmatch(text):
            raise self._error(
                f"{text} is no JSON number", event.start_mark, "write it as a string with its @type"
            )
        try:
            if kind == "float":
                return double(text)
            digits, base = (
                (text[2:], 8)
                if text[1:2] == "o"
                else (text[2:], 16)
                if text[1:2] == "x"
                else (text, 10)
            )
            return integer(digits, base)
        except OverflowError as error:
            raise self._error(
                f"the number {text[:40]} is past the range of xsd:double",
                event.start_mark,
                "put it into quotes",
            ) from error

    def _unknown_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> LogError:
        return self._error(
            f"the tag {event.tag} is none of the core schema for such a value",
            event.start_mark,
            'leave it out, and write {"@value": …, "@type": …} for a datatype',
        )

    def _too_deep(self, event: yaml.Event) -> LogError:
        return self._error(
            f"nested more than {DEPTH} levels deep",
            event.start_mark,
            "give nodes an @id and write them apart",
        )


def _kind(text: str) -> str:
    """Returns the type of a plain scalar in the core schema."""
    if _NULL.fullmatch(text):
        return "null"
    if _BOOLEAN.fullmatch(text):
        return "bool"
    if _INTEGER.fullmatch(text):
        return "int"
    return "float" if _FLOAT.fullmatch(text) or _NO_NUMBER.fullmatch(text) else "str"


# --- decoder --------------------------------------------------------------------------------------

_MARKER: Final = re.compile(rb"(---|\.\.\.)(?:[ \t\r\n]|$)")
_MOST_DIRECTIVES: Final = 1 << 8  # each is compared with all previous ones
_NOTHING: Final = re.compile(rb"[ \t\r\n]*(?:#.*)?", re.DOTALL)


class YamlLdDecoder:
    """Reads a YAML-LD log; see `Decoder`.

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
