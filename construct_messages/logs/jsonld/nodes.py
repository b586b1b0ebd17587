"""Messages as the node objects of a JSON-LD document, with compact IRIs where prefixes are given.

JSON-LD 1.1, section 9 (grammar). A message is `{}`, or its one node or named graph, or all of them under `@included`,
which means the same whether or not a context is active before it. What any reader would drop or read as something
else is refused. Neither JSON nor YAML is written here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from construct_messages.errors import UnsupportedByFormat
from construct_messages.message import Message
from construct_messages.terms import RDF, Term, is_blank, is_iri, is_language, is_literal, literal_parts

Node: TypeAlias = dict[str, Any]
Value: TypeAlias = str | dict[str, str]

RDF_TYPE: Final = Term(f"<{RDF}type>")
GEN_DELIMS: Final = (":", "/", "?", "#", "[", "]", "@")
"""What a namespace ends with to be declared in one word (JSON-LD 1.1 API, section 4.2.2, step 14.2.5)."""

_PREFIX: Final = re.compile(r'(?!_$)[^@:/"\\\s]+')
# terms to remember, and the length of those worth it
_MOST: Final = 1 << 15
_LONGEST: Final = 256


class Ambiguous(Exception):
    """An IRI that begins like a prefix of the context, and would be read as a compact IRI: such as `urn:a` where `urn`
    is a prefix. What holds it is written without the context; no caller of this package meets this."""


def context_of(prefixes: Mapping[str, str]) -> dict[str, Any]:
    """The context that declares prefixes; those that JSON-LD has no way to declare are left out.

    >>> context_of({"ex": "http://example.org/", "a": "http://example.org/a", "": "urn:x:"})
    {'ex': 'http://example.org/', 'a': {'@id': 'http://example.org/a', '@prefix': True}}
    """
    named = {
        prefix: namespace for prefix, namespace in prefixes.items() if _PREFIX.fullmatch(prefix) and is_iri(namespace)
    }
    # a namespace that begins like a prefix would be a compact IRI
    schemes = {namespace.partition(":")[0] for namespace in named.values()}
    return {
        prefix: namespace if namespace.endswith(GEN_DELIMS) else {"@id": namespace, "@prefix": True}
        for prefix, namespace in named.items()
        if prefix not in schemes
    }


class MessageDocuments:
    """Makes the messages of one log to JSON-LD documents.

    Args:
        prefixes: namespace IRIs by prefix; those that JSON-LD cannot declare shorten nothing.

    Attributes:
        context: what is to be active before the documents; empty: nothing is.
        compact: the documents' nodes, as a rule.
        messages: how many came so far.

    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri
    >>> documents = MessageDocuments({"ex": "http://example.org/"})
    >>> s, p = iri("http://example.org/s"), iri("http://example.org/p")
    >>> documents.write(Message([Quad(s, p, iri("ex:ample"))]))
    {'@context': None, '@id': 'http://example.org/s', 'http://example.org/p': {'@id': 'ex:ample'}}
    """

    def __init__(self, prefixes: Mapping[str, str] | None) -> None:
        self.context = context_of(prefixes or {})
        self._namespaces = {name: (prefixes or {})[name] for name in self.context}
        self.compact, self._full = Nodes(self._namespaces), Nodes({})
        self.message_count = 0

    def write(self, message: Message) -> Node:
        """A message as one object.

        Raises:
            UnsupportedByFormat: a term that readers of JSON-LD would drop.
        """
        self.message_count += 1
        try:
            try:
                return self.compact.document(message)
            except Ambiguous:
                return {"@context": None} | self._full.document(message)
        except UnsupportedByFormat as error:
            raise self._refused(error) from None

    def write_alone(self, message: Message) -> Node:
        """A message as one object that needs no active context: it has one of its own, of the prefixes it uses.

        Raises:
            UnsupportedByFormat: as `write`.
        """
        self.message_count += 1
        try:
            try:
                nodes = Nodes(self._namespaces)
                node = nodes.document(message)
            except Ambiguous:
                return self._full.document(message)
        except UnsupportedByFormat as error:
            raise self._refused(error) from None
        context = {prefix: declared for prefix, declared in self.context.items() if prefix in nodes.names.used}
        return {"@context": context} | node if context else node

    def _refused(self, error: UnsupportedByFormat) -> UnsupportedByFormat:
        return UnsupportedByFormat(f"message {self.message_count}: {error.message}", hint=error.hint)


class Nodes:
    """Messages as node objects.

    Args:
        namespaces: IRIs by prefix, such as the context declares.

    Attributes:
        names: what JSON-LD writes for an IRI or blank node where such a thing stands.
        values: what it writes for a term as a value.

    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri, literal
    >>> nodes = Nodes({"ex": "http://example.org/"})
    >>> s, p = iri("http://example.org/s"), iri("http://example.org/p")
    >>> nodes.document(Message([Quad(s, p, s), Quad(s, p, literal("x", language="en"))]))
    {'@id': 'ex:s', 'ex:p': [{'@id': 'ex:s'}, {'@value': 'x', '@language': 'en'}]}
    """

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        self.names = Names(namespaces)
        self.values = Values(self.names)

    def document(self, message: Message) -> Node:
        """A message as one object.

        Raises:
            UnsupportedByFormat: a term that JSON-LD has no syntax for.
            Ambiguous: the context would change an IRI.
        """
        names, values = self.names, self.values
        graphs: dict[Term | None, dict[Term, dict[str, list[Any]]]] = {}
        for subject, predicate, object, graph in message:
            properties = graphs.setdefault(graph, {}).setdefault(subject, {})
            if predicate == RDF_TYPE and not is_literal(object):
                properties.setdefault("@type", []).append(names[object])
            else:
                properties.setdefault(names[predicate], []).append(values[object])
        top: list[Node] = []
        for graph, subjects in graphs.items():
            nodes = [
                {"@id": names[subject]} | {name: alone(items) for name, items in properties.items()}
                for subject, properties in subjects.items()
            ]
            if graph is None:
                top += nodes
            else:
                top.append({"@id": names[graph], "@graph": nodes})
        return top[0] if len(top) == 1 else {"@included": top} if top else {}


def alone(items: list[Any]) -> Any:
    """What an array of one means in JSON-LD: the one."""
    return items[0] if len(items) == 1 else items


class Names(dict[Term, str]):
    """IRIs and blank nodes as JSON-LD writes them, remembered for the terms met lately.

    Attributes:
        used: the prefixes that any of them has begun with.

    Raises:
        UnsupportedByFormat: readers would drop the IRI.
        Ambiguous: see there.
    """

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        self._prefixes = {namespace: prefix for prefix, namespace in namespaces.items()}
        # of two namespaces that both begin an IRI, the longer one shortens it more; a:// is no compact IRI
        longest_first = sorted(self._prefixes, key=len, reverse=True)
        self._namespace = re.compile(f"({'|'.join(map(re.escape, longest_first))})(?!//)" if namespaces else "(?!)")
        self._schemes = set(namespaces)
        self.used: set[str] = set()

    def __missing__(self, term: Term) -> str:
        name = str(term) if is_blank(term) else self._of_iri(term[1:-1])
        remember(self, term, name)
        return name

    def _of_iri(self, iri: str) -> str:
        if not is_iri(iri):
            raise UnsupportedByFormat(
                f"readers of JSON-LD drop <{iri}>, which is no IRI by RFC 3987",
                hint="percent-encode what no IRI may hold, or write N-Quads",
            )
        if found := self._namespace.match(iri):
            prefix = self._prefixes[found[1]]
            self.used.add(prefix)
            return f"{prefix}:{iri[found.end() :]}"
        scheme, _, rest = iri.partition(":")
        if scheme in self._schemes and not rest.startswith("//"):
            raise Ambiguous(iri)
        return iri


_UNTAGGED: Final = (f"{RDF}langString", f"{RDF}dirLangString")


class Values(dict[Term, Value]):
    """Terms as JSON-LD writes them as values, remembered for the terms met lately.

    Raises:
        UnsupportedByFormat: readers would drop the value, or read another one.
        Ambiguous: see there.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    def __missing__(self, term: Term) -> Value:
        value = self._literal(term) if is_literal(term) else {"@id": self._names[term]}
        remember(self, term, value)
        return value

    def _literal(self, term: Term) -> Value:
        text, datatype, language, direction = literal_parts(term)
        if language is not None:
            if not is_language(language):
                raise UnsupportedByFormat(
                    f"readers of JSON-LD drop {term}, whose language tag is none by BCP 47",
                    hint="correct the tag, or write N-Quads",
                )
            tagged = {"@value": text, "@language": language}
            return tagged | {"@direction": direction} if direction else tagged
        if datatype is None:
            return text
        if datatype in _UNTAGGED:
            raise UnsupportedByFormat(f"{term} is of a datatype for literals with a language, and has none")
        # a number is written as a string: a JSON number has no lexical form
        return {"@value": text, "@type": self._names[Term(f"<{datatype}>")]}


def remember(texts: dict[Term, Any], term: Term, text: object) -> None:
    """Keeps what was made of a term, within bounds."""
    if len(term) <= _LONGEST:
        if len(texts) >= _MOST:
            texts.clear()
        texts[term] = text
