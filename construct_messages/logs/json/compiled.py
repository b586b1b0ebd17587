"""Reads a frame and its context once: compiles them, or leaves them to PyLD.

JSON-LD 1.1 API, sections 4.1 (context processing) and 5.1 (expansion), by PyLD. Contexts are not fetched.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information
from pyld.context_resolver import ContextResolver  # type: ignore[import-untyped] # nor has this

from construct_messages.errors import UnsupportedByFormat, UsageError
from construct_messages.logs.json.framing import (
    EMBEDS,
    NodeFrame,
    Nodes,
    NotCompiled,
    Value,
    compile_frame,
    expanded_value,
    graphs_of,
    is_native,
    json_of,
    string,
    suffix_of,
)
from construct_messages.logs.json.options import JsonOptions
from construct_messages.logs.jsonld.contexts import Contexts, Processor, reason_of
from construct_messages.logs.text_encoder import NoLayout, Texts
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term, is_literal, literal_parts

# --- notation -------------------------------------------------------------------------------------
# The JSON-LD notation of terms by a context: keys, and the texts of names and values.
#
# JSON-LD 1.1 API, section 6 (compaction), by PyLD: once for each property and kind of value, not for each term. IRIs
# are shortened here. Contexts with features that are not compiled are left to PyLD as a whole.

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


# --- fallback -------------------------------------------------------------------------------------
# Framing by PyLD, for frames and contexts with features that are not compiled.
#
# JSON-LD 1.1 Framing and API. tests/logs/json compare the compiled frames with this.


def expanded(
    message: Message,
    *,
    natively: bool = True,
    is_expected: Callable[[Term, str], bool] = lambda *_: False,
) -> list[dict[str, Any]]:
    """Returns a message as JSON-LD in expanded form. `is_expected`: whether a context has a term for a property and a
    datatype: then a number keeps its datatype, so that the term is found.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, number
    >>> expanded(Message([Quad(iri("urn:a"), iri("urn:p"), number("7"))]))
    [{'@id': 'urn:a', 'urn:p': [{'@value': 7}]}]
    """

    def value(predicate: Term, value: Value) -> Any:
        if isinstance(value, tuple):
            return {"@list": [one(predicate, each) for each in value]}
        return one(predicate, value)

    def one(predicate: Term, term: Value) -> Any:
        if isinstance(term, tuple):
            return {"@list": [one(predicate, each) for each in term]}
        if not is_literal(term):
            return {"@id": _name(term)}
        return expanded_value(
            term, natively=natively, is_expected=lambda datatype: is_expected(predicate, datatype)
        )

    def nodes(graph: Nodes) -> list[dict[str, Any]]:
        made = []
        for term, node in sorted(graph.items()):
            entries: dict[str, Any] = {"@id": _name(term)}
            if node.types:
                entries["@type"] = list(map(_name, node.types))
            for predicate, values in node.properties.items():
                entries[predicate[1:-1]] = [value(predicate, each) for each in values]
            if len(entries) > 1:
                made.append(entries)
        return made

    graphs = graphs_of(message)
    top = nodes(graphs.pop(None))
    by_id = {node["@id"]: node for node in top}
    for name, graph in graphs.items():
        assert name is not None
        if (id := _name(name)) not in by_id:
            by_id[id] = {"@id": id}
            top.append(by_id[id])
        by_id[id]["@graph"] = nodes(graph)
    return top


def _name(term: Term) -> str:
    return term[1:-1] if term[0] == "<" else term


class ByPyLD:
    def __init__(
        self,
        frame: Mapping[str, Any],
        # the options of PyLD, with a loader of contexts
        options: Mapping[str, Any],
        *,
        natively: bool,
        is_expected: Callable[[Term, str], bool],
    ) -> None:
        self._frame, self._options = frame, options
        self._natively, self._is_expected = natively, is_expected

    def document(self, message: Message) -> str:
        """Returns the document of a message, as JSON."""
        input = expanded(message, natively=self._natively, is_expected=self._is_expected)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                framed = Processor().frame(input, copy.deepcopy(self._frame), dict(self._options))
        except MemoryError:
            raise
        # PyLD raises arbitrary errors for values of an unexpected kind
        except Exception as error:
            reason = reason_of(error)
            raise UnsupportedByFormat(
                f"the frame cannot be applied: {reason.message}", hint=reason.hint
            ) from error
        framed.pop("@context", None)
        return msgspec.json.encode(framed).decode()


# --- compiled -------------------------------------------------------------------------------------

_BOOLEANS: Final = ("@explicit", "@omitDefault", "@requireAll")
_KEYWORDS: Final = frozenset(
    [
        "@context",
        "@id",
        "@type",
        "@value",
        "@language",
        "@direction",
        "@list",
        "@set",
        "@graph",
        "@included",
        "@reverse",
        "@index",
        "@nest",
        "@none",
        "@default",
        "@embed",
        "@explicit",
        "@omitDefault",
        "@requireAll",
        "@omitGraph",
        "@version",
        "@json",
    ]
)


@dataclass(frozen=True)
class CompiledFrame:
    """A compiled frame."""

    frame: NodeFrame
    # the notation of its context
    notation: ContextNotation
    # whether matching only depends on the kinds of terms, except for types, and not on the terms themselves
    is_laid_out: bool


def compiled(options: JsonOptions, frame: Mapping[str, Any]) -> CompiledFrame | ByPyLD:
    """Reads a frame."""
    _check(frame, "")
    pyld = _options(options)
    context = frame.get("@context", {})
    active = _guarded(lambda: _active(context, pyld), "the context of the frame")
    expanded = _guarded(
        lambda: Processor().expand(
            copy.deepcopy(dict(frame)), {**pyld, "isFrame": True, "keepFreeFloatingNodes": True}
        ),
        "the frame",
    )
    _check_terms(frame, active, "")
    try:
        if any(Processor()._expand_iri(active, key, vocab=True) == "@graph" for key in frame):
            raise NotCompiled
        found = compile_frame(expanded)
        notation = ContextNotation(active, natively=options.native)
    except NotCompiled:
        return by_pyld(options, frame)
    return CompiledFrame(found, notation, not notation.to_terms and _is_laid_out(found))


def is_compiled(options: JsonOptions) -> bool:
    """Returns whether the frame of options, and its context, are applied without PyLD."""
    frame, context = options.frame or {}, options.context
    if set(frame) == {"@context"}:
        frame, context = {}, frame["@context"]
    if frame:
        given = frame if context is None else {"@context": context, **frame}
        return isinstance(compiled(options, given), CompiledFrame)
    if context is not None:
        notation_of(options, context, typed=True)
    return True


def by_pyld(options: JsonOptions, frame: Mapping[str, Any]) -> ByPyLD:
    """Returns the well-formed frame for PyLD, which applies it to each message."""
    pyld = _options(options)
    inverse = Processor()._get_inverse_context(_active(frame.get("@context", {}), pyld))

    def is_expected(predicate: Term, datatype: str) -> bool:
        entries = inverse.get(predicate[1:-1], {}).values()
        return any(datatype in entry["@type"] for entry in entries)

    return ByPyLD(frame, pyld, natively=options.native, is_expected=is_expected)


def notation_of(
    options: JsonOptions,
    context: Any,
    *,
    typed: bool,
    arrays: Collection[Term] = (),
    maps_if_needed: bool = False,
) -> ContextNotation:
    """Returns the notation of a context for documents without a frame; see `ContextNotation`."""
    active = _guarded(lambda: _active(context, _options(options)), "the context")
    try:
        return ContextNotation(
            active,
            typed=typed,
            natively=options.native,
            arrays=arrays,
            maps_if_needed=maps_if_needed,
        )
    except NotCompiled:
        raise UsageError(
            "the context has scoped contexts, @nest, @reverse, or a container other than @set, @list and @language",
            hint='write a frame with it, such as {"@context": …, "@type": "City"}, which PyLD applies',
        ) from None


def _options(options: JsonOptions) -> dict[str, Any]:
    contexts = Contexts(options.contexts, None)
    return {
        "base": "",
        "documentLoader": contexts.load,
        "contextResolver": ContextResolver({}, contexts.load),
        "processingMode": "json-ld-1.1",
    }


def _active(context: Any, pyld: dict[str, Any]) -> Any:
    processor = Processor()
    initial = processor._get_initial_context(pyld)
    return processor.process_context(initial, copy.deepcopy(context), pyld)


def _guarded(read: Callable[[], Any], what: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return read()
    except MemoryError:
        raise
    # PyLD raises arbitrary errors for values of an unexpected kind
    except Exception as error:
        reason = reason_of(error)
        raise UsageError(f"{what} is malformed: {reason.message}", hint=reason.hint) from error


def _is_laid_out(frame: NodeFrame) -> bool:
    frames = [frame]
    while frames:
        each = frames.pop()
        if each.ids or (each.value is not None and any(value != {} for value in each.value[0])):
            return False
        frames += (inner for inner in (*each.properties.values(), each.items) if inner)
    return True


def matches_types(frame: NodeFrame) -> bool:
    """Returns whether a frame, or a nested one, selects nodes by certain types."""
    return bool(frame.types) or any(
        matches_types(inner) for inner in (*frame.properties.values(), frame.items) if inner
    )


# --- errors with a place ----------------------------------------------------------------------------------------------


def _check(frame: Any, place: str) -> None:
    """Rejects invalid values of keywords, with their place as a JSON pointer."""
    if isinstance(frame, list):
        for index, each in enumerate(frame):
            _check(each, f"{place}/{index}")
        return
    if not isinstance(frame, Mapping):
        return
    for key, value in frame.items():
        here = f"{place}/{key}"
        if key == "@context":
            continue
        flag = value[0] if isinstance(value, list) and len(value) == 1 else value
        if key == "@embed" and not (isinstance(flag, bool) or flag in EMBEDS):
            raise _refused(here, flag, f"choose one of {', '.join(EMBEDS)}")
        if key in _BOOLEANS and not (isinstance(flag, bool) or flag == "true"):
            raise _refused(here, flag, "write true or false")
        if key in ("@id", "@type"):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str) and each.startswith("_:"):
                    raise _refused(
                        here, each, "blank nodes have no names: write an IRI, or {} for any"
                    )
        if key.startswith("@") and key not in _KEYWORDS:
            raise UsageError(
                f"the frame has no meaning at {here}: {key} is no keyword of JSON-LD framing",
                hint="the flags of a frame are @embed, @explicit, @omitDefault, @requireAll and @default",
            )
        if key != "@default":
            _check(value, here)


def _refused(place: str, value: Any, hint: str) -> UsageError:
    return UsageError(f"the frame has {value!r} at {place}", hint=hint)


def _check_terms(frame: Any, active: Any, place: str) -> None:
    """Rejects keys that the context does not define; framing would omit them silently."""
    processor = Processor()
    for key, value in frame.items() if isinstance(frame, Mapping) else ():
        if key == "@context" or key.startswith("@"):
            continue
        mapping = active["mappings"].get(key)
        iri = processor._expand_iri(active, key, vocab=True)
        if (
            key not in active["mappings"]
            and (iri is None or not jsonld._is_absolute_iri(iri))
            and not str(iri).startswith("@")
        ):
            raise UsageError(
                f"the frame has no meaning at {place}/{key}: {key!r} is no term of its context",
                hint=f'define it: "@context": {{"{key}": "http://…"}}, or write the IRI',
            )
        if mapping and "@context" in mapping:
            continue  # the context defines other terms in it
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Mapping) and "@context" not in each:
                _check_terms(each, active, f"{place}/{key}")
