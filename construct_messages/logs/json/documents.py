"""Writes framed trees as JSON documents: of a log, of the solutions of a query, or of one message.

JSON-LD 1.1 API, section 6.1 (the compaction algorithm), steps 7 to 12, for the containers that `compiled.py` compiles.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from construct_messages.errors import UnsupportedByFormat, UsageError
from construct_messages.logs import EncoderOptions, TemplateEncoder
from construct_messages.logs.json.compiled import (
    ByPyLD,
    CompiledFrame,
    ContextNotation,
    Key,
    Kind,
    compiled,
    matches_types,
    notation_of,
)
from construct_messages.logs.json.framing import (
    RDF_TYPE,
    Default,
    Flags,
    Framing,
    Item,
    Items,
    NodeFrame,
    Nodes,
    Tree,
    Value,
    in_order,
    nodes_of,
    suffix_of,
)
from construct_messages.logs.json.options import JsonOptions
from construct_messages.logs.text_encoder import (
    LayoutEncoder,
    NoLayout,
    Place,
    PlainTemplateEncoder,
    Texts,
)
from construct_messages.rdf.formats import JSON_DOCUMENTS, Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import Blank, Constant, Slot, Template, Variable
from construct_messages.rdf.terms import Term

# --- defaults -------------------------------------------------------------------------------------
# Documents without a frame: chooses their roots, the embedded nodes, and a context for their keys.
#
# The roots are the subjects that are not objects; documents embed all nodes that these lead to. A key is the local
# name of a predicate. Its value depends on the values in the message: IRIs are strings, and literals with a language
# make a language map. Several values are an array; if the template can produce several, a single value is an array as
# well.

EVERYTHING: Final = NodeFrame(Flags(embed="@always"))
"""Embeds every node wherever it is an object, except in cycles."""

RESERVED: Final = ("id", "type")
_LOCAL: Final = re.compile(r"[^/#:@]+$")

Kinds: TypeAlias = tuple[bool, bool, bool, bool]
"""The kinds of values of a predicate: nodes, literals with a language, others, lists."""
Uses: TypeAlias = Mapping[Term, Kinds]


def roots_of(nodes: Nodes) -> list[Term]:
    """Returns the roots of documents: subjects that are not objects of others, then one node per cycle.

    >>> from construct_messages.logs.json.framing import NodeProperties
    >>> a, b = NodeProperties(properties={"<urn:p>": ["<urn:b>"]}), NodeProperties(properties={"<urn:p>": ['"x"']})
    >>> roots_of({"<urn:b>": b, "<urn:a>": a})
    ['<urn:a>']
    """
    subjects = [term for term, node in nodes.items() if node.properties or node.types]
    referred = {
        term
        for subject in subjects
        for values in nodes[subject].properties.values()
        for term in _nodes_in(values)
        if term != subject
    }
    roots = [subject for subject in subjects if subject not in referred]
    if len(roots) == 1 and len(subjects) == 1:
        return roots
    reached: set[Term] = set()
    _reach(nodes, roots, reached)
    for subject in subjects:
        if subject not in reached:
            roots.append(subject)
            _reach(nodes, [subject], reached)
    return roots


def _reach(nodes: Nodes, start: Iterable[Term], reached: set[Term]) -> None:
    ahead = list(start)
    while ahead:
        term = ahead.pop()
        if term not in reached:
            reached.add(term)
            for values in nodes[term].properties.values():
                ahead += _nodes_in(values)


def _nodes_in(values: Iterable[Value]) -> Iterable[Term]:
    for value in values:
        if isinstance(value, tuple):
            yield from _nodes_in(value)
        elif value[0] != '"':
            yield value


def uses_of(nodes: Nodes) -> Uses:
    """Returns the kinds of values of each predicate."""
    uses: dict[Term, Kinds] = {}
    for node in nodes.values():
        for predicate, values in node.properties.items():
            node_, tagged, other, listed = uses.get(predicate, (False, False, False, False))
            for value in values:
                if isinstance(value, tuple):
                    # several lists cannot be one array, nor can lists of lists
                    several = len(values) > 1 or any(isinstance(each, tuple) for each in value)
                    listed, other = True, other or several
                elif value[0] != '"':
                    node_ = True
                elif suffix_of(value)[1:2] == "@":
                    tagged = True
                else:
                    other = True
            uses[predicate] = node_, tagged, other, listed
    return uses


class KeyNames:
    """Assigns keys to predicates. `fixed`: the predicates of the template, whose keys do not depend on the message.
    `prefixes`: namespaces by prefix, for predicates with equal local names. `sets`: the predicates that always have an
    array, unless they have a language map.

    >>> names = KeyNames((), {"a": "urn:a/"}, ())
    >>> names.of([Term("<urn:a/x>"), Term("<urn:b/x>"), Term("<urn:b/y>"), Term("<urn:a/id>")])
    {'<urn:a/x>': 'a_x', '<urn:b/x>': 'urn:b/x', '<urn:b/y>': 'y', '<urn:a/id>': 'a_id'}
    """

    def __init__(
        self, fixed: Iterable[Term], prefixes: Mapping[str, str], sets: Collection[Term]
    ) -> None:
        self._prefixes = {
            namespace: prefix for prefix, namespace in prefixes.items() if prefix and namespace
        }
        self.sets = sets
        self._fixed: dict[Term, str] = {}
        self._fixed = self.of(fixed)

    def of(self, predicates: Iterable[Term]) -> dict[Term, str]:
        """Returns distinct keys of predicates."""
        names = dict(self._fixed)
        taken = {*RESERVED, *names.values()}
        for shorten in (self._local, self._prefixed):
            short = defaultdict[str, list[Term]](list)
            for predicate in predicates:
                if predicate not in names and (name := shorten(predicate)):
                    short[name].append(predicate)
            for name, terms in short.items():
                if len(terms) == 1 and name not in taken:
                    names[terms[0]] = name
            taken.update(names.values())
        return {term: names.get(term, term[1:-1]) for term in predicates}

    def _local(self, predicate: Term) -> str:
        match = _LOCAL.search(predicate[1:-1])
        return match[0] if match else ""

    def _prefixed(self, predicate: Term) -> str:
        local = self._local(predicate)
        prefix = self._prefixes.get(predicate[1 : -1 - len(local)])
        return f"{prefix}_{local}" if prefix and local else ""

    def context(self, uses: Uses) -> dict[str, Any]:
        """Returns the context for a message whose predicates have these kinds of values."""
        names = self.of(list(uses))
        types = {"@id": "@type"} | ({"@container": "@set"} if RDF_TYPE in self.sets else {})
        context: dict[str, Any] = {"id": "@id", "type": types if len(types) > 1 else "@type"}
        for predicate, (node, tagged, other, listed) in uses.items():
            definition: dict[str, Any] = {"@id": predicate[1:-1]}
            if listed and not (node or tagged or other):
                definition["@container"] = "@list"
            elif tagged and not (node or listed):
                definition["@container"] = "@language"
            elif node and not (tagged or other or listed):
                definition["@type"] = "@id"
            context[names[predicate]] = definition
        return context


def sets_of(template: Template, group_by: Set[str] | None) -> set[Term]:
    """Returns the predicates that may have several values in a message, by its template. `group_by`: the variables with
    the same values in all solutions of a message; None: each solution is a message.
    """

    def is_one(slot: Slot) -> bool:
        if isinstance(slot, Variable):
            return group_by is None or template.variables[slot.index] in group_by
        return isinstance(slot, Constant) or (isinstance(slot, Blank) and group_by is None)

    sets: set[Term] = set()
    met: set[tuple[Slot, Term]] = set()
    for subject, predicate, object, _ in template.live:
        if not isinstance(predicate, Constant):
            continue
        if (subject, predicate.term) in met or (is_one(subject) and not is_one(object)):
            sets.add(predicate.term)
        met.add((subject, predicate.term))
    return sets


def fixed_of(template: Template) -> list[Term]:
    """Returns the constant predicates of a template, except `rdf:type`."""
    predicates = {
        pattern.predicate.term: None
        for pattern in template.live
        if isinstance(pattern.predicate, Constant)
    }
    return [term for term in predicates if term != RDF_TYPE]


# --- encoder --------------------------------------------------------------------------------------
# The encoder of JSON documents: one per message, as lines or in one array.
#
# A frame (`framing.py`, `framing.py`) or the defaults (`documents.py`) decide the content of a document. With a
# template, a document is laid out once for all messages of the same shape, as in other formats (`text_encoder.py`), and
# only its values are filled in.

_MOST_NOTATIONS: Final = 256


class JsonEncoder(LayoutEncoder):
    """Writes messages as JSON documents. `options`: the format's own are `JsonOptions`; the prefixes, the template and
    its grouping are for the default documents.

    >>> from construct_messages.rdf.formats import JSON_DOCUMENTS
    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, literal, number
    >>> a, name, size = iri("urn:a"), iri("urn:x:name"), iri("urn:x:size")
    >>> message = Message([Quad(a, name, literal("A", language="en")), Quad(a, size, number("3"))])
    >>> JsonEncoder(JSON_DOCUMENTS, JSON_DOCUMENTS.own, EncoderOptions()).encode(message)
    b'{"id":"urn:a","name":{"en":"A"},"size":3}\\n'
    >>> frame = {"@context": {"n": "urn:x:name"}, "@explicit": True, "n": {}}
    >>> options = EncoderOptions(own=JsonOptions(frame=frame))
    >>> JsonEncoder(JSON_DOCUMENTS, JSON_DOCUMENTS.own, options).encode(message)
    b'{"@id":"urn:a","n":{"@language":"en","@value":"A"}}\\n'
    """

    literals = True
    predicates = None
    nodes = True

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        own = options.own or JsonOptions()
        if not isinstance(own, JsonOptions):
            raise UsageError(f"{own!r} are no options of {format.name}", hint="pass JsonOptions(…)")
        self._own = own
        self._written = _Texts()
        super().__init__(format, syntax, self._written)
        frame, context = own.frame or {}, own.context
        if set(frame) == {"@context"}:
            frame, context = {}, frame["@context"]
        self._framed: CompiledFrame | ByPyLD | None = None
        self._notation: ContextNotation | None = None
        if frame:
            self._framed = compiled(
                own, frame if context is None else {"@context": context, **frame}
            )
            if isinstance(self._framed, CompiledFrame) and matches_types(self._framed.frame):
                self.deciding = frozenset((RDF_TYPE,))
        elif context is not None:
            self._notation = notation_of(own, context, typed=True)
        self._by_uses: dict[Hashable, ContextNotation] = {}
        template = options.template
        self._names = KeyNames(
            () if template is None else fixed_of(template),
            options.prefixes or {},
            () if template is None else sets_of(template, options.group_by),
        )
        self._begun = False

    def start(self) -> bytes:
        """Returns the opening bracket of an array, or nothing."""
        return b"[" if self._own.array else b""

    def finish(self) -> bytes:
        """Returns the closing bracket of an array, or nothing."""
        return b"\n]\n" if self._own.array else b""

    def declare(self, texts: list[str]) -> None:
        """Leaves the comma out before the first document of an array."""
        if self._own.array and not self._begun and texts:
            self._begun = True
            texts[0] = texts[0].removeprefix(",")

    def write_by(self, message: Message, place: Place) -> str:
        """Encodes one document; raises `NoLayout` if it does not only depend on the kinds of terms."""
        return self._delimited(self._document(message, place, alone=False))

    def write(self, message: Message) -> str:
        """Encodes one document."""
        return self._delimited(self.write_document(message))

    def write_document(self, message: Message) -> str:
        if isinstance(self._framed, ByPyLD):
            return self._framed.document(message)
        return self._document(message, self._place, alone=True)

    def _delimited(self, document: str) -> str:
        return f",\n{document}" if self._own.array else f"{document}\n"

    def _document(self, message: Message, place: Place, *, alone: bool) -> str:
        nodes = nodes_of(message)
        if not alone and any(
            term[0] == "_" and not (node.properties or node.types) for term, node in nodes.items()
        ):
            raise NoLayout  # the number of its occurrences decides whether it has an identifier
        if isinstance(self._framed, CompiledFrame):
            if not alone and any(quad.graph is not None for quad in message):
                raise NoLayout  # the name of a graph is a node, too
            notation = self._framed.notation
            framing = Framing(nodes, notation.expanded)
            trees = framing.trees(sorted(nodes, key=in_order), self._framed.frame)
            if len(trees) > 1 and not alone:
                raise NoLayout  # they are sorted by their terms
        else:
            notation = self._notation or self._notation_for(uses_of(nodes))
            framing = Framing(nodes, notation.expanded, sort=False)
            trees = framing.trees(roots_of(nodes), EVERYTHING)
        return DocumentWriter(notation, lambda kind: place((notation, kind))).document(trees)

    def _notation_for(self, uses: Uses) -> ContextNotation:
        """Returns the notation for a message without a frame."""
        known = frozenset(uses.items())
        notation = self._by_uses.get(known)
        if notation is None:
            if len(self._by_uses) >= _MOST_NOTATIONS:
                self._by_uses.clear()
                self._written.clear()
            context = self._names.context(uses)
            notation = self._by_uses[known] = notation_of(
                self._own, context, typed=False, arrays=self._names.sets, maps_if_needed=True
            )
        return notation

    def for_template(self, template: Template) -> TemplateEncoder:
        framed = self._framed
        if isinstance(framed, ByPyLD) or (
            isinstance(framed, CompiledFrame) and not framed.is_laid_out
        ):
            return PlainTemplateEncoder(self.encode, template)
        return super().for_template(template)


class _Texts(dict[tuple[ContextNotation, Hashable], Texts]):
    def __missing__(self, key: tuple[ContextNotation, Hashable]) -> Texts:
        notation, kind = key
        texts = self[key] = notation.texts_of(kind)
        return texts


# --- documents ------------------------------------------------------------------------------------


class DocumentWriter:
    def __init__(self, notation: ContextNotation, place: Place) -> None:
        self._notation, self._place = notation, place

    def document(self, trees: Sequence[Tree]) -> str:
        """Returns the document of the nodes that match a frame: a single node, or all of them under `@graph`."""
        if len(trees) == 1:
            return self._node(trees[0])
        if not trees:
            return "{}"
        return f"{{{self._notation.graph}:[{','.join(map(self._node, trees))}]}}"

    def _node(self, tree: Tree) -> str:
        notation, place = self._notation, self._place
        entries = []
        if tree.id is not None:
            entries.append(f"{notation.id}:{place('name')(tree.id)}")
        if tree.types:
            types = list(map(place("vocab"), tree.types))
            if len(types) == 1 and not notation.types_are_set:
                entries.append(f"{notation.type}:{types[0]}")
            else:
                entries.append(f"{notation.type}:[{','.join(types)}]")
        for predicate, items in tree.properties:
            entries += self._property(predicate, items)
        return f"{{{','.join(entries)}}}"

    def _property(self, predicate: Term, items: Iterable[Item]) -> Iterable[str]:
        found: dict[str, tuple[Key, list[tuple[str, str]]]] = {}
        for item in items:
            key, text = self._item(predicate, item)
            if key.name in found:
                found[key.name][1].append((key.language, text))
            else:
                found[key.name] = key, [(key.language, text)]
        for key, texts in found.values():
            arrays = key.is_set or predicate in self._notation.arrays
            if key.is_language and not (
                self._notation.maps_if_needed
                and all(language == self._notation.none for language, _ in texts)
            ):
                yield f"{key.text}{_map(texts, is_set=key.is_set)}"
            elif key.is_list:
                if len(texts) > 1:
                    raise UnsupportedByFormat(
                        f"{predicate} has {len(texts)} lists, and {key.text[:-1]} holds one",
                        hint='leave "@container": "@list" out of the context',
                    )
                yield f"{key.text}{texts[0][1]}"
            elif len(texts) == 1 and not arrays:
                yield f"{key.text}{texts[0][1]}"
            else:
                yield f"{key.text}[{','.join(text for _, text in texts if text != 'null')}]"

    def _item(self, predicate: Term, item: Item) -> tuple[Key, str]:
        """Returns the key and the text of a value."""
        notation = self._notation
        if isinstance(item, str):
            key, kind = notation.literal(predicate, item)
            return key, f"{key.before}{self._place(kind)(item)}{key.after}"
        if isinstance(item, Tree):
            key = notation.key(predicate, notation.kind_of_node(item.id), lambda: _sample(item))
            return key, self._tree(key, item)
        if isinstance(item, Default):
            value = "@null" if item.value is None else item.value
            key = notation.key(predicate, ("default", value), lambda: value)
            return key, "null" if value == "@null" else msgspec.json.encode(value).decode()
        kinds, samples = self._kinds(predicate, item)
        key = notation.key(predicate, ("list", *kinds), lambda: {"@list": samples})
        array = f"[{','.join(self._within(predicate, key, each) for each in item.items)}]"
        return key, array if key.is_list else f"{{{notation.list}:{array}}}"

    def _kinds(self, predicate: Term, items: Items) -> tuple[list[Kind], list[object]]:
        kinds: dict[Kind, object] = {}
        for item in items.items:
            if isinstance(item, str):
                kinds[self._notation.kind_of(item)] = self._notation.sample_of(predicate, item)
            elif isinstance(item, Tree):
                kinds[self._notation.kind_of_node(item.id)] = _sample(item)
            elif isinstance(item, Items):
                inner, samples = self._kinds(predicate, item)
                kinds["list", *inner] = {"@list": samples}
        return list(kinds), list(kinds.values())

    def _within(self, predicate: Term, key: Key, item: Item) -> str:
        """Returns the text of an item of a list, under the key of the list."""
        notation = self._notation
        if isinstance(item, str):
            own = notation.under(key, predicate, item)
            return f"{own.before}{self._place(notation.literal_kind(item))(item)}{own.after}"
        if isinstance(item, Tree):
            return self._tree(notation.under_node(key), item)
        assert isinstance(item, Items)
        array = f"[{','.join(self._within(predicate, key, each) for each in item.items)}]"
        return array if key.is_list else f"{{{notation.list}:{array}}}"

    def _tree(self, key: Key, tree: Tree) -> str:
        if tree.id is not None and not tree.types and not tree.properties:
            if key.reference is not None:
                return self._place(key.reference)(tree.id)
            return f"{{{self._notation.id}:{self._place('name')(tree.id)}}}"
        return self._node(tree)


def _sample(tree: Tree) -> dict[str, str]:
    if tree.id is None:
        return {}
    return {"@id": tree.id[1:-1] if tree.id[0] == "<" else tree.id}


def _map(texts: Iterable[tuple[str, str]], *, is_set: bool) -> str:
    """Returns the text of a language map."""
    languages: dict[str, list[str]] = {}
    for language, text in texts:
        languages.setdefault(language, []).append(text)
    entries = (
        f"{language}:{found[0] if len(found) == 1 and not is_set else '[' + ','.join(found) + ']'}"
        for language, found in languages.items()
    )
    return f"{{{','.join(entries)}}}"


# --- one message -----------------------------------------------------------------------------------

_MOST_FRAMES: Final = 32


def to_json(
    message: Message,
    frame: Mapping[str, Any] | None = None,
    *,
    context: Any = None,
    contexts: Mapping[str, Any] | None = None,
    native: bool = True,
) -> dict[str, Any]:
    """Returns a message as a JSON document.

    Args:
        message: the message.
        frame: a JSON-LD frame, as parsed JSON, which decides what the document has; None: what is embedded of the
            subjects that are not objects, with local names of predicates as keys.
        context: a JSON-LD context, or its IRI, for a frame without one, or for documents without a frame.
        contexts: JSON-LD contexts by IRI, as parsed JSON; contexts are never fetched.
        native: whether numbers and booleans are those of JSON.

    Returns:
        The node that matches the frame; several are under `@graph`, and where there is none, it is empty. Contexts are
            omitted.

    Raises:
        UsageError: a frame or context that has no meaning.
        UnsupportedByFormat: a triple term, or an IRI that the context cannot write.

    >>> from construct_messages import Quad, iri, literal
    >>> message = Message([Quad(iri("urn:a"), iri("urn:x:size"), literal(3))])
    >>> to_json(message)
    {'id': 'urn:a', 'size': 3}
    >>> to_json(message, {"@context": {"large": "urn:x:size"}, "large": {}})
    {'@id': 'urn:a', 'large': 3}
    """
    try:
        # callers pass the same frame with every message
        key = msgspec.json.encode([frame, context, contexts, native])
    except (TypeError, ValueError) as error:
        raise UsageError(f"the frame or context is no JSON: {error}") from error
    encoder = _encoder(key)
    encoder.begin()
    encoded: dict[str, Any] = msgspec.json.decode(encoder.encode_document(message))
    return encoded


@lru_cache(_MOST_FRAMES)
def _encoder(key: bytes) -> JsonEncoder:
    frame, context, contexts, native = msgspec.json.decode(key)
    options = JsonOptions(frame, context, contexts or {}, native)
    assert JSON_DOCUMENTS.own is not None
    return JsonEncoder(JSON_DOCUMENTS, JSON_DOCUMENTS.own, EncoderOptions(own=options))
