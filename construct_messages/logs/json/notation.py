"""The JSON-LD notation of terms by a context: keys, and the texts of names and values.

JSON-LD 1.1 API, section 6 (compaction), by PyLD: once for each property and kind of value, not for each term. IRIs are
shortened here. Contexts with features that are not compiled are left to PyLD as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information

from construct_messages.logs.json.framing import NotCompiled
from construct_messages.logs.json.nodes import (
    expanded_value,
    is_native,
    json_of,
    string,
    suffix_of,
)
from construct_messages.logs.jsonld.contexts import Processor
from construct_messages.logs.text_encoder import NoLayout, Texts
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.terms import Term, literal_parts

_CONTAINERS: Final = {"@set", "@list", "@language"}
_MARK: Final = "\1"  # a placeholder for a literal's text; JSON only contains it escaped

Kind: TypeAlias = Hashable
"""The kind of a value, which decides its key together with the property."""

NODE: Final = "@id"
ANONYMOUS: Final = "{}"


@dataclass(frozen=True, slots=True)
class Key:
    """The key of some values of a property."""

    name: str
    # the key as JSON, with the colon
    text: str
    # is_set, is_list, is_language: whether it has this container
    is_set: bool
    is_list: bool
    is_language: bool
    # the key in the language map
    language: str
    # before, after: the text around a value
    before: str
    after: str
    # the kind of text of a referenced node: `name` or `vocab`; None: the node is an object
    reference: str | None


class ContextNotation:
    """Writes terms by an active context."""

    def __init__(
        self,
        active: dict[str, Any],
        *,
        # whether literals other than numbers and booleans keep their datatypes; otherwise they are strings
        typed: bool = True,
        # whether numbers and booleans are JSON's
        natively: bool = True,
        # the properties that always have an array, in addition to those of the context
        arrays: Collection[Term] = (),
        # whether values without a language are in a language map only next to others
        maps_if_needed: bool = False,
    ) -> None:
        self.arrays, self.maps_if_needed = arrays, maps_if_needed
        self._active, self._typed, self._natively = active, typed, natively
        self._processor = Processor()
        self._inverse = self._processor._get_inverse_context(active)
        mappings = {name: mapping for name, mapping in active["mappings"].items() if mapping}
        if "previousContext" in active:
            raise NotCompiled
        for mapping in mappings.values():
            if (
                mapping.get("reverse")
                or "@context" in mapping
                or "@nest" in mapping
                or not set(mapping.get("@container", ())) <= _CONTAINERS
                or isinstance(mapping.get("@id"), list)
            ):
                raise NotCompiled
        self._prefixes = [
            (mapping["@id"], name)
            for name, mapping in mappings.items()
            if mapping.get("_prefix") and ":" not in name
        ]
        self._confusing = tuple(
            f"{name}:" for name, mapping in mappings.items() if mapping["_prefix"]
        )
        self._mappings = active["mappings"]
        self._vocab = active.get("@vocab")
        self._relative = active.get("@base") is not None
        self.to_terms = any(mapping.get("@type") == "@vocab" for mapping in mappings.values())
        self._keys: dict[tuple[Term, Kind], Key] = {}
        self._items: dict[Hashable, Key] = {}  # the keys of items of lists
        self.id, self.type, self.graph, self.list, self.none = (
            _json(self._alias(keyword)) for keyword in ("@id", "@type", "@graph", "@list", "@none")
        )
        self.types_are_set = "@set" in self._container(self._alias("@type"))

    # --- kinds of values and their keys -----------------------------------------------------------------------------

    def kind_of(self, term: Term) -> Kind:
        """Returns the kind of a literal."""
        suffix = suffix_of(term)
        if not self._natively or "^" not in suffix or not is_native(suffix[4:-1]):
            return suffix
        # a mark represents all literals of a kind, so its text is unknown
        return suffix, _is_mark(term) or self._native(term) is not None

    def kind_of_node(self, term: Term | None) -> Kind:
        """Returns the kind of a reference, or of a node without an identifier."""
        if term is None:
            return ANONYMOUS
        if self.to_terms and term[0] == "<" and term[1:-1] in self._inverse:
            return NODE, term
        return NODE

    def key(self, predicate: Term, kind: Kind, sample: Callable[[], Any]) -> Key:
        """Returns the key of values of a kind."""
        key = self._keys.get((predicate, kind))
        if key is None:
            key = self._keys[predicate, kind] = self._made(predicate, sample())
        return key

    def literal(self, predicate: Term, term: Term) -> tuple[Key, Hashable]:
        """Returns the key of a literal, and the kind of its text."""
        key = self.key(predicate, self.kind_of(term), lambda: self.sample_of(predicate, term))
        return key, self.literal_kind(term)

    def expanded(self, predicate: Term, term: Term) -> dict[str, Any]:
        """Returns a literal of a property as a value object."""
        return expanded_value(
            term,
            natively=self._natively,
            is_expected=lambda datatype: self._is_expected(predicate, datatype),
        )

    def _is_expected(self, predicate: Term, datatype: str) -> bool:
        entries = self._inverse.get(predicate[1:-1], {}).values()
        return any(datatype in entry["@type"] for entry in entries)

    def sample_of(self, predicate: Term, term: Term) -> dict[str, Any]:
        """Returns a value of the kind of a literal, in expanded form."""
        value = self.expanded(predicate, term)
        if not self._typed:
            value.pop("@type", None)
        value["@value"] = _MARK if isinstance(value["@value"], str) else 0
        return value

    def under(self, key: Key, predicate: Term, term: Term) -> Key:
        """Returns the notation of a literal in a list with a key."""
        found = key.name, "item", self.kind_of(term)
        if found not in self._items:
            self._items[found] = self._described(key.name, self.sample_of(predicate, term))
        return self._items[found]

    def under_node(self, key: Key) -> Key:
        """Returns the notation of a reference in a list with a key."""
        found = key.name, "item", NODE
        if found not in self._items:
            self._items[found] = self._described(key.name, {"@id": ""})
        return self._items[found]

    def literal_kind(self, term: Term) -> Hashable:
        """Returns the kind of the text of a literal."""
        kind = self.kind_of(term)
        return kind if isinstance(kind, tuple) else "string"

    def _made(self, predicate: Term, sample: Any) -> Key:
        return self._described(self._compact(predicate[1:-1], sample), sample)

    def _described(self, name: str, sample: Any) -> Key:
        containers = self._container(name)
        before = after = language = ""
        reference = None
        if isinstance(sample, dict) and "@value" in sample:
            compacted = self._processor._compact_value(self._active, name, sample, {})
            if "@language" in containers:
                compacted = sample["@value"]
                language = _json(sample.get("@language", None) or self._alias("@none"))
            if isinstance(compacted, dict):
                value = self._alias("@value")
                compacted = {**compacted, value: _MARK}
                before, after = _json(compacted).split(_json(_MARK))
        elif isinstance(sample, dict):
            type = (self._mappings.get(name) or {}).get("@type")
            reference = {"@id": "name", "@vocab": "vocab"}.get(str(type))
        return Key(
            name,
            f"{_json(name)}:",
            "@set" in containers,
            "@list" in containers,
            "@language" in containers,
            language,
            before,
            after,
            reference,
        )

    def _container(self, name: str) -> list[str]:
        return (self._mappings.get(name) or {}).get("@container") or []

    def _alias(self, keyword: str) -> str:
        return str(self._processor._compact_iri(self._active, keyword))

    def _compact(self, iri: str, sample: Any) -> str:
        try:
            return str(self._processor._compact_iri(self._active, iri, sample, vocab=True))
        except jsonld.JsonLdError as error:
            raise _confused(iri) from error

    # --- texts ------------------------------------------------------------------------------------------------------

    def texts_of(self, kind: Hashable) -> Texts:
        """Returns the texts of terms in a kind of place: `name`, `vocab`, `string`, or a kind of number."""
        if kind == "name":
            return Texts(lambda term: _json(self._name(term)))
        if kind == "vocab":
            return Texts(self._vocabulary_name)
        if kind == "string":
            return Texts(string)

        def number(term: Term) -> str:
            text = self._native(term)
            if text is None:
                raise NoLayout
            return text

        def no_number(term: Term) -> str:
            if self._native(term) is not None:
                raise NoLayout
            return string(term)

        assert isinstance(kind, tuple)
        return Texts(number if kind[1] else no_number)

    def _native(self, term: Term) -> str | None:
        text, datatype, _, _ = literal_parts(term)
        return json_of(text, datatype)

    def _name(self, term: Term) -> str:
        if term[0] == "_":
            return term
        iri = term[1:-1]
        if self._relative:
            try:
                return str(self._processor._compact_iri(self._active, iri, vocab=False, base=""))
            except jsonld.JsonLdError as error:
                raise _confused(iri) from error
        return self._shortened(iri)

    def _vocabulary_name(self, term: Term) -> str:
        if term[0] == "_":
            return _json(term)
        iri = term[1:-1]
        if iri in self._inverse:
            return _json(self._compact(iri, None))
        if self._vocab is not None and iri.startswith(self._vocab) and iri != self._vocab:
            suffix = iri[len(self._vocab) :]
            if suffix not in self._mappings:
                return _json(suffix)
        return _json(self._shortened(iri))

    def _shortened(self, iri: str) -> str:
        candidates = []
        for namespace, prefix in self._prefixes:
            if iri.startswith(namespace) and iri != namespace:
                name = f"{prefix}:{iri[len(namespace) :]}"
                if name not in self._mappings or (self._mappings[name] or {}).get("@id") == iri:
                    candidates.append(name)
        if candidates:
            return min(candidates, key=lambda name: (len(name), name))
        if self._confusing and iri.startswith(self._confusing):
            raise _confused(iri)
        return iri


def _is_mark(term: Term) -> bool:
    return term.startswith('"\0')


def _confused(iri: str) -> UnsupportedByFormat:
    return UnsupportedByFormat(
        f"<{iri}> reads like a compact IRI with a prefix of the context",
        hint="leave that prefix out of the context",
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
