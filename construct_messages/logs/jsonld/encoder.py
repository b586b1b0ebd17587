"""The NDJSON-LD encoder: one JSON-LD document a line, a line whose only key is `@context` for the active context.

RDF Messages for NDJSON-LD (https://w3c-cg.github.io/rsp/messages/). `encoder.py` converts messages to JSON-LD.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from construct_messages.logs import EncoderOptions
from construct_messages.logs.text_encoder import (
    LayoutEncoder,
    NoLayout,
    Place,
    Texts,
    TextsByKind,
    WriteTerm,
    plain,
)
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import (
    RDF,
    Term,
    is_blank,
    is_iri,
    is_literal,
    literal_parts,
)

# --- nodes ----------------------------------------------------------------------------------------
# Messages as the node objects of a JSON-LD document, with compact IRIs if there are prefixes.
#
# JSON-LD 1.1, section 9 (grammar). A message is `{}`, or its only node or named graph, or all of them under
# `@included`; it has the same meaning with and without an active context. Terms that were read leniently are written
# as they stand: a lenient reader has them again, and others drop them. The encoders of the two formats write JSON and
# YAML.

Properties: TypeAlias = Mapping[Term | None, list[Term]]
"""The objects of a node by predicate; None: its types, IRIs and blank nodes."""

RDF_TYPE: Final = Term(f"<{RDF}type>")
GEN_DELIMS: Final = (":", "/", "?", "#", "[", "]", "@")
"""The final characters of a namespace that can be declared by a string (JSON-LD 1.1 API, section 4.2.2, step
14.2.5).
"""

_PREFIX: Final = re.compile(r'(?!_$)[^@:/"\\\s]+')


class Ambiguous(NoLayout):
    """Raised for an IRI that begins like a prefix of the context, such as `urn:a` if `urn` is a prefix.

    Readers would interpret it as a compact IRI, so its message is written without the context.
    """


def context_of(prefixes: Mapping[str, str]) -> dict[str, Any]:
    """Returns the context that declares prefixes, without those that JSON-LD cannot declare.

    >>> context_of({"ex": "http://example.org/", "a": "http://example.org/a", "": "urn:x:"})
    {'ex': 'http://example.org/', 'a': {'@id': 'http://example.org/a', '@prefix': True}}
    """
    named = {
        prefix: namespace
        for prefix, namespace in prefixes.items()
        if _PREFIX.fullmatch(prefix) and is_iri(namespace)
    }
    # a namespace that begins like a prefix would be a compact IRI
    schemes = {namespace.partition(":")[0] for namespace in named.values()}
    return {
        prefix: namespace if namespace.endswith(GEN_DELIMS) else {"@id": namespace, "@prefix": True}
        for prefix, namespace in named.items()
        if prefix not in schemes
    }


def nodes_of(message: Message) -> dict[Term | None, dict[Term, dict[Term | None, list[Term]]]]:
    """Returns the nodes of a message by graph and subject, in order of first appearance."""
    graphs: dict[Term | None, dict[Term, dict[Term | None, list[Term]]]] = {}
    for subject, predicate, object, graph in message:
        key = None if predicate == RDF_TYPE and not is_literal(object) else predicate
        graphs.setdefault(graph, {}).setdefault(subject, {}).setdefault(key, []).append(object)
    return graphs


class Notation:
    """The JSON-LD notation of terms. `quote`: returns a string in the format, with its quotes.

    >>> from construct_messages.rdf.terms import iri, literal
    >>> notation = Notation({"ex": "http://example.org/"}, repr)
    >>> notation.names[iri("http://example.org/s")], notation.value(literal("x", language="en"))
    ("'ex:s'", {'@value': "'x'", '@language': "'en'"})
    """

    def __init__(self, namespaces: Mapping[str, str], quote: Callable[[str], str]) -> None:
        self._prefixes = {namespace: prefix for prefix, namespace in namespaces.items()}
        # if several namespaces match an IRI, the longest one shortens it most; a:// is not a compact IRI
        longest_first = sorted(self._prefixes, key=len, reverse=True)
        self._namespace = re.compile(
            f"({'|'.join(map(re.escape, longest_first))})(?!//)" if namespaces else "(?!)"
        )
        self._schemes = set(namespaces)
        self._quote = quote
        # the strings for IRIs and blank nodes
        self.names = Texts(
            lambda term: quote(term if is_blank(term) else self._compact(term[1:-1]))
        )
        # the prefixes in these strings
        self.used: set[str] = set()

    def value(self, term: Term) -> str | dict[str, str]:
        """Returns a term as a value: a string, or an object of strings."""
        if not is_literal(term):
            return {"@id": self.names[term]}
        text, datatype, language, direction = literal_parts(term)
        if language is not None:
            tagged = {"@value": self._quote(text), "@language": self._quote(language)}
            return tagged | {"@direction": self._quote(direction)} if direction else tagged
        if datatype is None:
            return self._quote(text)
        # a number is written as a string, because JSON numbers have no lexical form
        return {"@value": self._quote(text), "@type": self.names[Term(f"<{datatype}>")]}

    def _compact(self, iri: str) -> str:
        if found := self._namespace.match(iri):
            prefix = self._prefixes[found[1]]
            self.used.add(prefix)
            return f"{prefix}:{iri[found.end() :]}"
        scheme, _, rest = iri.partition(":")
        if scheme in self._schemes and not rest.startswith("//"):
            raise Ambiguous(iri)
        return iri


class NodesEncoder(LayoutEncoder):
    """Writes messages as JSON-LD documents, in JSON or YAML. `options`: their prefixes; those that JSON-LD cannot
    declare are not used.
    """

    literals = True
    predicates = (RDF_TYPE,)

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        prefixes = options.prefixes or {}
        self._context = context_of(prefixes)
        self._namespaces = {prefix: prefixes[prefix] for prefix in self._context}
        super().__init__(format, syntax, self.texts_of(Notation(self._namespaces, self.quote)))
        self._full = self.texts_of(Notation({}, self.quote))

    @staticmethod
    @abstractmethod
    def quote(text: str) -> str:
        """Returns a string with its quotes."""

    @abstractmethod
    def texts_of(self, notation: Notation) -> TextsByKind:
        """Returns the texts of terms for `document`."""

    @abstractmethod
    def document(self, message: Message, place: Place, head: str = "") -> str:
        """Returns a message as one object, with `@context` and its value as its first entry if there is a head."""

    @abstractmethod
    def head(self, context: Mapping[str, Any] | None) -> str:
        """Returns the entry for `document`."""

    @abstractmethod
    def delimited(self, document: str) -> str:
        """Returns a document in the form of a log."""

    def write_by(self, message: Message, place: Place) -> str:
        return self.delimited(self.document(message, place))

    def write(self, message: Message) -> str:
        """Returns one message for such readers, without the context if it would change an IRI."""
        try:
            return super().write(message)
        except Ambiguous:
            return self.delimited(self.document(message, plain(self._full), self.head(None)))

    def write_document(self, message: Message) -> str:
        if not self._namespaces:
            return self.document(message, plain(self._full))
        notation = Notation(self._namespaces, self.quote)
        try:
            # written once to find the prefixes
            self.document(message, plain(self.texts_of(notation)))
        except Ambiguous:
            return self.document(message, plain(self._full))
        context = {
            prefix: value for prefix, value in self._context.items() if prefix in notation.used
        }
        return self.document(
            message, plain(self.texts_of(notation)), self.head(context) if context else ""
        )


# --- encoder --------------------------------------------------------------------------------------


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
        return f'{{"@context":{_json(self._context)}}}\n'.encode() if self._context else b""

    @staticmethod
    def quote(text: str) -> str:
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
