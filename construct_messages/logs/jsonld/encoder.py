"""The NDJSON-LD encoder: one JSON-LD document a line, a line whose only key is `@context` for the active context.

RDF Messages for NDJSON-LD (https://w3c-cg.github.io/rsp/messages/). What a message looks like as JSON-LD is in
`nodes.py`, the encoder for templates in `template.py`.
"""

from __future__ import annotations

import msgspec

from construct_messages.formats import Format, Syntax
from construct_messages.logs import EncoderOptions
from construct_messages.logs.capabilities import Carrier
from construct_messages.logs.jsonld.nodes import MessageDocuments
from construct_messages.logs.jsonld.template import JsonLdTemplate
from construct_messages.message import Message
from construct_messages.template import Template


class JsonLdEncoder:
    """Writes messages as NDJSON-LD: a line each, which any reader of JSON-LD 1.1 reads by itself.

    Args:
        format, syntax: NDJSON-LD and its own.
        options: their prefixes are for the context that the log begins with; see `context_of`.

    >>> from construct_messages.formats import NDJSON_LD
    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri, literal
    >>> encoder = JsonLdEncoder(NDJSON_LD, NDJSON_LD.own, EncoderOptions({"ex": "http://example.org/"}))
    >>> message = Message([Quad(iri("http://example.org/s"), iri("http://example.org/p"), literal("a", language="en"))])
    >>> log = encoder.start() + encoder.encode(message) + encoder.encode(Message()) + encoder.finish()
    >>> print(log.decode(), end="")
    {"@context":{"ex":"http://example.org/"}}
    {"@id":"ex:s","ex:p":{"@value":"a","@language":"en"}}
    {}
    """

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        self._carrier = Carrier(format, syntax)
        self._documents = MessageDocuments(options.prefixes)

    def start(self) -> bytes:
        """What stands before the first message: the context, where there is one."""
        context = self._documents.context
        return msgspec.json.encode({"@context": context}) + b"\n" if context else b""

    def encode(self, message: Message) -> bytes:
        """One message and the end of its line.

        Raises:
            UnsupportedByFormat: a triple term, or a term that readers of JSON-LD would drop.
        """
        self._carrier.check(message)
        return msgspec.json.encode(self._documents.write(message)) + b"\n"

    def encode_document(self, message: Message) -> bytes:
        """One message as a document of JSON-LD on one line, without its end; see `Encoder.encode_document`.

        Raises:
            UnsupportedByFormat: as `encode`.
        """
        self._carrier.check(message)
        return msgspec.json.encode(self._documents.write_alone(message))

    def finish(self) -> bytes:
        """What stands after the last message: nothing."""
        return b""

    def for_template(self, template: Template) -> JsonLdTemplate:
        """The encoder specialised for a template: a batch of solutions in, bytes out."""
        return JsonLdTemplate(self.encode, self._carrier, self._documents, template)
