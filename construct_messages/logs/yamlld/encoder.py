"""The YAML-LD encoder: one JSON-LD document in YAML for each message, each between `---` and `...`.

RDF Messages names YAML documents separated by `---`; a `...` behind each says that it is whole without a next one.
What a message looks like as JSON-LD is in `jsonld/nodes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from construct_messages.formats import Format, Syntax
from construct_messages.logs import EncoderOptions
from construct_messages.logs.capabilities import Carrier
from construct_messages.logs.jsonld.nodes import MessageDocuments
from construct_messages.logs.plain_encoder import ByMessage
from construct_messages.message import Message
from construct_messages.template import Template


class YamlLdEncoder:
    """Writes messages as YAML-LD, in block style, every string in double quotes.

    Args:
        format, syntax: YAML-LD and its own.
        options: their prefixes are for the context that the log begins with; see `context_of`.

    >>> from construct_messages.formats import YAML_LD
    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri, literal
    >>> encoder = YamlLdEncoder(YAML_LD, YAML_LD.own, EncoderOptions({"ex": "http://example.org/"}))
    >>> message = Message([Quad(iri("http://example.org/s"), iri("http://example.org/p"), literal("a", language="en"))])
    >>> log = encoder.start() + encoder.encode(message) + encoder.encode(Message()) + encoder.finish()
    >>> print(log.decode(), end="")
    ---
    "@context":
      "ex": "http://example.org/"
    ...
    ---
    "@id": "ex:s"
    "ex:p":
      "@value": "a"
      "@language": "en"
    ...
    --- {}
    ...
    """

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        self._carrier = Carrier(format, syntax)
        self._documents = MessageDocuments(options.prefixes)

    def start(self) -> bytes:
        """What stands before the first message: the context, where there is one."""
        context = self._documents.context
        return _write({"@context": context}) if context else b""

    def encode(self, message: Message) -> bytes:
        """One message, between its markers.

        Raises:
            UnsupportedByFormat: a triple term, or a term that readers of JSON-LD would drop.
        """
        self._carrier.check(message)
        return _write(self._documents.write(message))

    def encode_document(self, message: Message) -> bytes:
        """One message as a document without markers; see `Encoder.encode_document`.

        Raises:
            UnsupportedByFormat: as `encode`.
        """
        self._carrier.check(message)
        return _write(self._documents.write_alone(message), markers=False)

    def finish(self) -> bytes:
        """What stands after the last message: nothing."""
        return b""

    def for_template(self, template: Template) -> ByMessage:
        """The encoder for batches of a template's solutions."""
        return ByMessage(self.encode, template)


class _Dumper(yaml.CSafeDumper):
    """In quotes, a string depends on the schema of no reader."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        """No value is written as an alias of another."""
        return True

    def represent_string(self, text: str) -> yaml.ScalarNode:
        """A string."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Dumper.add_representer(str, _Dumper.represent_string)


def _write(document: Mapping[str, Any], *, markers: bool = True) -> bytes:
    written: bytes = yaml.dump(
        document,
        Dumper=_Dumper,
        default_flow_style=False,
        explicit_start=markers,
        explicit_end=markers,
        sort_keys=False,
        allow_unicode=True,
        encoding="utf-8",
        width=1 << 30,
    )
    return written
