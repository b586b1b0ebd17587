"""The NDJSON-LD encoder: one JSON-LD document a line, a line whose only key is `@context` for the active context.

RDF Messages for NDJSON-LD (https://w3c-cg.github.io/rsp/messages/). `nodes.py` converts messages to JSON-LD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from construct_messages.logs.jsonld.nodes import NodesEncoder, Notation, Properties, nodes_of
from construct_messages.logs.layout import Place, Texts, TextsByKind, WriteTerm
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term


class JsonLdEncoder(NodesEncoder):
    """Writes messages as NDJSON-LD: one line each, which any reader of JSON-LD 1.1 can read separately. `options`:
    their prefixes are for the context that the log begins with; see `context_of`.

    >>> from construct_messages.rdf.formats import NDJSON_LD
    >>> from construct_messages.logs import EncoderOptions
    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, literal
    >>> encoder = JsonLdEncoder(NDJSON_LD, NDJSON_LD.own, EncoderOptions({"ex": "http://example.org/"}))
    >>> message = Message([Quad(iri("http://example.org/s"), iri("http://example.org/p"), literal("a", language="en"))])
    >>> log = encoder.start() + encoder.encode(message) + encoder.encode(Message()) + encoder.finish()
    >>> print(log.decode(), end="")
    {"@context":{"ex":"http://example.org/"}}
    {"@id":"ex:s","ex:p":{"@value":"a","@language":"en"}}
    {}
    """

    def start(self) -> bytes:
        """Returns the bytes before the first message: the context, if there is one."""
        return f'{{"@context":{_json(self._context)}}}\n'.encode() if self._context else b""

    @staticmethod
    def quote(text: str) -> str:
        """Returns a JSON string."""
        return _json(text)

    def texts_of(self, notation: Notation) -> TextsByKind:
        """Returns the texts of terms: as names and as values."""

        def value(term: Term) -> str:
            value = notation.value(term)
            return (
                value
                if isinstance(value, str)
                else f"{{{','.join(f'{_json(key)}:{value[key]}' for key in value)}}}"
            )

        return {"name": notation.names, "value": Texts(value)}

    def head(self, context: Mapping[str, Any] | None) -> str:
        """Returns the entry of a context."""
        return f'"@context":{_json(context)},'

    def document(self, message: Message, place: Place, head: str = "") -> str:
        """Returns a message as one object on one line."""
        name, value = place("name"), place("value")
        top: list[str] = []
        for graph, subjects in nodes_of(message).items():
            nodes = [
                _node(subject, properties, name, value) for subject, properties in subjects.items()
            ]
            if graph is None:
                top += nodes
            else:
                top.append(f'"@id":{name(graph)},"@graph":[{_objects(nodes)}]')
        if len(top) == 1:
            return f"{{{head}{top[0]}}}"
        return f'{{{head}"@included":[{_objects(top)}]}}' if top else "{}"

    def delimited(self, document: str) -> str:
        """Returns a document and the end of its line."""
        return f"{document}\n"


def _node(subject: Term, properties: Properties, name: WriteTerm, value: WriteTerm) -> str:
    """Returns the entries of a node."""
    entries = f'"@id":{name(subject)}'
    for predicate, objects in properties.items():
        key, write = ('"@type"', name) if predicate is None else (name(predicate), value)
        if len(objects) == 1:
            entries += f",{key}:{write(objects[0])}"
        else:
            entries += f",{key}:[{','.join(map(write, objects))}]"
    return entries


def _objects(nodes: Iterable[str]) -> str:
    """Returns objects by their entries, separated by commas."""
    return ",".join([f"{{{entries}}}" for entries in nodes])


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
