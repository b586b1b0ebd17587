"""Shapes graphs read from files: triples, and the lines that they are in.

Also defines the terms of SHACL that other modules need, and checks whether a graph is SHACL.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

import pyoxigraph as ox

from construct_messages.errors import Position, ShapesError, SourceError, UsageError
from construct_messages.rdf.terms import (
    RDF,
    XSD,
    Term,
    from_pyoxigraph,
    iri,
    is_blank,
    is_literal,
    literal_parts,
)
from construct_messages.sparql.sources.files import load_files

# --- graph ----------------------------------------------------------------------------------------

SH: Final = "http://www.w3.org/ns/shacl#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
TYPE: Final = Term(f"<{RDF}type>")
FIRST: Final = Term(f"<{RDF}first>")
REST: Final = Term(f"<{RDF}rest>")
NIL: Final = Term(f"<{RDF}nil>")

Triple = tuple[Term, Term, Term]

_BY_LINE: Final = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".trig": ox.RdfFormat.TRIG,
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".nq": ox.RdfFormat.N_QUADS,
}
"""The formats that have lines, by the extension of files."""

_LIST_SHAPES: Final = frozenset({"and", "or", "xone"})
_SHAPE_OBJECTS: Final = frozenset(
    (
        *("property", "node", "not", "qualifiedValueShape", "memberShape", "someValue"),
        *("reifierShape", "targetWhere"),
    )
)
_AHEAD: Final = 8  # lines
SHAPE_NAMING: Final = _SHAPE_OBJECTS | _LIST_SHAPES
"""The local names of the properties whose values are shapes, or lists of them."""

_SKOLEM: Final = "urn:x-construct-messages:shape:"


def sh(name: str) -> Term:
    """Returns a term of SHACL.

    >>> sh("path")
    '<http://www.w3.org/ns/shacl#path>'
    """
    return Term(f"<{SH}{name}>")


class TriplePlace(NamedTuple):
    """The position of a triple."""

    file: str  # the name of the file
    line: int | None  # counted from 1; None: the format has no lines


class ShapesGraph:
    """The triples of shapes files."""

    def __init__(
        self,
        triples: Iterable[tuple[Triple, TriplePlace]],
        texts: dict[str, list[str]],
        files: list[str],
    ) -> None:
        self._places: dict[Triple, TriplePlace] = {}
        self._texts, self.files = texts, files
        self.objects: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
        for triple, place in triples:
            if triple not in self._places:
                subject, predicate, object = triple
                self._places[triple] = place
                self.objects[subject][predicate].append(object)
        self._parents = {
            object: (subject, predicate)
            for subject, predicate, object in self._places
            if is_blank(object)
        }

    @classmethod
    def read(cls, paths: Sequence[Path]) -> ShapesGraph:
        """Reads shapes files. Named graphs count as parts of one graph."""
        texts: dict[str, list[str]] = {}
        triples: list[tuple[Triple, TriplePlace]] = []
        for path in paths:
            if (format := _BY_LINE.get(path.suffix.lower())) is None:
                try:
                    store = load_files([path])
                except SourceError as error:
                    raise ShapesError(error.message, hint=error.hint) from error
                triples += [(_terms(quad), TriplePlace(str(path), None)) for quad in store]
                continue
            try:
                text = path.read_bytes()
            except OSError as error:
                raise UsageError(f"cannot read the shapes {path}: {error.strerror}") from error
            texts[str(path)] = [line.decode(errors="replace") for line in text.splitlines()]
            triples += _with_lines(path, text, format)
        return cls(triples, texts, list(map(str, paths)))

    def __iter__(self) -> Iterator[Triple]:
        return iter(self._places)

    def object(self, subject: Term, predicate: Term) -> Term | None:
        """Returns the first object of a subject and a predicate, or None."""
        found = self.objects[subject][predicate] if subject in self.objects else []
        return found[0] if found else None

    def members(self, node: Term) -> list[Term] | None:
        """Returns the members of a list; None if it is not a list."""
        found: list[Term] = []
        known: set[Term] = set()
        while node != NIL:
            first, rest = self.object(node, FIRST), self.object(node, REST)
            if first is None or rest is None or node in known:
                return None
            known.add(node)
            found.append(first)
            node = rest
        return found

    def position(self, triple: Triple) -> tuple[str, Position | None]:
        """Returns the file and the position of a triple: the position of its predicate, or its line."""
        place = self._places[triple]
        if place.line is None:
            return place.file, None
        name = "a" if triple[1] == TYPE else re.split(r"[#/:]", triple[1].strip("<>"))[-1]
        written = re.compile(rf"(?:<[^<>\s]*[#/:]|[\w.-]*:|(?<![\w:])(?=a\b)){re.escape(name)}\b")
        lines = self._texts[place.file]
        # the parser reads ahead: the predicate is in this line, or some lines before it
        for number in range(place.line, max(0, place.line - _AHEAD), -1):
            if (found := written.search(lines[number - 1])) is not None:
                return place.file, Position(number, found.start() + 1)
        return place.file, Position(place.line, 1)

    def line(self, node: Term) -> TriplePlace | None:
        """Returns the position of the first triple of a subject; None if it is not a subject."""
        for predicate, objects in self.objects.get(node, {}).items():
            file, position = self.position((node, predicate, objects[0]))
            return TriplePlace(file, None if position is None else position.line)
        return None

    def above(self, node: Term) -> list[Term]:
        """Returns a node and, if it is blank, the nodes that it is part of, up to the nearest IRI."""
        found = [node]
        while is_blank(node) and node in self._parents:
            node = self._parents[node][0]
            if node in found:
                break
            found.append(node)
        return found

    def named(self, node: Term) -> Term | None:
        """Returns the node if it is an IRI, or the nearest IRI that it is part of, or None."""
        last = self.above(node)[-1]
        return None if is_blank(last) else last

    def subtree(self, node: Term) -> list[Triple]:
        """Returns the triples of a blank node and of the blank nodes below it, such as those of a path."""
        found: list[Triple] = []
        waiting, known = [node], {node}
        while waiting:
            subject = waiting.pop()
            for predicate, objects in self.objects.get(subject, {}).items():
                for object in objects:
                    found.append((subject, predicate, object))
                    if is_blank(object) and object not in known:
                        known.add(object)
                        waiting.append(object)
        return found

    def shapes(self) -> set[Term]:
        """Returns the nodes that are used as shapes: with a target, a type or a shape, or named by another shape."""
        found = {
            subject
            for subject, properties in self.objects.items()
            if {sh("NodeShape"), sh("PropertyShape")} & set(properties.get(TYPE, ()))
            or any(predicate.startswith(f"<{SH}target") for predicate in properties)
        }
        for subject, predicate, object in self:
            name = local(predicate)
            if name in SHAPE_NAMING:
                found.add(subject)
            if name in _SHAPE_OBJECTS:
                found.update(self.members(object) or [object])
            elif name in _LIST_SHAPES:
                found.update(self.members(object) or ())
        return {node for node in found if not is_literal(node)}

    def skolemized(self) -> tuple[list[str], dict[Term, Term]]:
        """Returns the lines of the graph as N-Triples in which blank shapes are IRIs, and the shapes by these IRIs.

        SHACL does not distinguish shapes by the kind of their node. Blank nodes of paths and lists are kept.
        """
        names = {
            node: iri(f"{_SKOLEM}{number}")
            for number, node in enumerate(sorted(filter(is_blank, self.shapes())))
        }
        lines = [
            f"{names.get(subject, subject)} {predicate} {names.get(object, object)} .\n"
            for subject, predicate, object in self
        ]
        return lines, {name: node for node, name in names.items()}


def local(predicate: Term) -> str | None:
    """Returns the local name of a term of SHACL; None for other terms."""
    return predicate[len(SH) + 1 : -1] if predicate.startswith(f"<{SH}") else None


def shown(term: Term) -> str:
    """Returns a term in its usual short form.

    >>> shown(sh("minCount")), shown(Term('"3"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    ('sh:minCount', '3')
    """
    for prefix, namespace in _PREFIXES.items():
        if term.startswith(f"<{namespace}"):
            return f"{prefix}:{term[len(namespace) + 1 : -1]}"
    if is_literal(term):
        lexical, datatype, _, _ = literal_parts(term)
        if datatype is not None and datatype.endswith(("#integer", "#decimal", "#boolean")):
            return lexical
    return term


_PREFIXES: Final = {"sh": SH, "xsd": "http://www.w3.org/2001/XMLSchema#", "rdf": RDF, "rdfs": RDFS}


class _Lines:
    """Bytes that a parser reads line by line, to find the line in which a triple ends."""

    def __init__(self, text: bytes) -> None:
        self._lines = text.splitlines(keepends=True)
        self.count = 0

    def read(self, _size: int = -1) -> bytes:
        if self.count >= len(self._lines):
            return b""
        self.count += 1
        return self._lines[self.count - 1]


def _with_lines(
    path: Path, text: bytes, format: ox.RdfFormat
) -> Iterator[tuple[Triple, TriplePlace]]:
    lines = _Lines(text.removeprefix(b"\xef\xbb\xbf"))
    base = path.absolute().as_uri()
    try:
        for quad in ox.parse(lines, format=format, base_iri=base, rename_blank_nodes=True):  # type: ignore[arg-type] # it has what a parser calls
            yield _terms(quad), TriplePlace(str(path), lines.count)
    except SyntaxError as error:
        place = None if error.lineno is None else Position(error.lineno, error.offset or 1)
        reason = re.sub(r"^Parser error at line .*?: ", "", str(error.msg))
        raise ShapesError(
            f"{path} is not {format.name}: {reason}",
            position=place,
            hint="correct the file, or check its extension",
        ) from error


def _terms(quad: ox.Quad | ox.Triple) -> Triple:
    return (
        from_pyoxigraph(quad.subject),
        from_pyoxigraph(quad.predicate),
        from_pyoxigraph(quad.object),
    )


# --- wellformed -----------------------------------------------------------------------------------
# Rejects shapes graphs that are not well-formed, with the position and the fix, before any message is read.
#
# SHACL, appendix A (syntax rules), and errors that a processor would silently ignore: misspelt properties of SHACL,
# shapes that are not defined, and graphs without a target. The library checks patterns and queries.


def _is_iri(term: Term) -> bool:
    return term.startswith("<") and not term.startswith("<<")


def _is_node(term: Term) -> bool:
    return _is_iri(term) or is_blank(term)


def _is_count(term: Term) -> bool:
    return is_literal(term) and term.endswith(f"^^<{XSD}integer>") and term[1] in "+0123456789"


def _is_boolean(term: Term) -> bool:
    return is_literal(term) and term.endswith(f"^^<{XSD}boolean>") and term[1] in "tf01"


def _is_string(term: Term) -> bool:
    return is_literal(term) and literal_parts(term)[1:3] == (None, None)


def _is_text(term: Term) -> bool:
    return is_literal(term) and literal_parts(term)[1] in (None, f"{RDFS}langString")


_COUNT: Final = ("a whole number from 0, such as 1", _is_count)
_BOOLEAN: Final = ("true or false", _is_boolean)
_IRI: Final = ("an IRI", _is_iri)
_NODE: Final = ("an IRI or a blank node", _is_node)
_STRING: Final = ('a string, such as "^[a-z]+$"', _is_string)
_TEXT: Final = ('a text, such as "the name is missing"@en', _is_text)
_LITERAL: Final = ("a literal, such as 0", is_literal)
_ANY: Final[tuple[str, Callable[[Term], bool]]] = ("anything", lambda _: True)

_KINDS: Final[Mapping[str, tuple[str, Callable[[Term], bool]]]] = {
    "qualifiedMinCount qualifiedMaxCount": _COUNT,
    "uniqueLang qualifiedValueShapesDisjoint uniqueMembers singleLine reificationRequired": _BOOLEAN,
    "targetClass targetSubjectsOf targetObjectsOf severity rootClass": _IRI,
    "property node not qualifiedValueShape memberShape someValue reifierShape and or xone class": _NODE,
    "ignoredProperties path datatype": _NODE,
    "alternativePath inversePath zeroOrMorePath oneOrMorePath zeroOrOnePath": _NODE,
    "pattern flags": _STRING,
    "message": _TEXT,
    "minInclusive maxInclusive minExclusive maxExclusive": _LITERAL,
    # the library checks these
    "minCount maxCount minLength maxLength minListLength maxListLength in languageIn": _ANY,
    "equals disjoint lessThan lessThanOrEquals": _ANY,
    "closed deactivated nodeKind hasValue targetNode target targetWhere subsetOf uniqueValuesFor entailment": _ANY,
    "sparql select ask prefixes declare prefix namespace parameter optional labelTemplate": _ANY,
    "validator nodeValidator propertyValidator expression nodeByExpression": _ANY,
    "nodes this filterShape union intersection exists if then else count distinct limit offset orderBy desc": _ANY,
    "min max sum concat sparqlExpr shape": _ANY,
    # not used in validation
    "name description order group defaultValue values rule condition subject predicate object construct": _ANY,
    "shapesGraph suggestedShapesGraph detail conformanceDisallows returnType": _ANY,
    "annotationProperty annotationValue annotationVarName resultAnnotation": _ANY,
    "editor viewer unit codeIdentifier agentInstruction intent": _ANY,
}
_VALUES: Final = {name: kind for names, kind in _KINDS.items() for name in names.split()}
"""The properties of SHACL: the description of their values, and a check."""

_UNSUPPORTED: Final = frozenset({"js", "jsLibrary", "jsLibraryURL", "jsFunctionName"})
_ONCE: Final = frozenset(
    (
        *("minCount", "maxCount", "minLength", "maxLength", "datatype", "nodeKind"),
        *("pattern", "flags", "closed", "uniqueLang", "languageIn", "in", "path"),
        *("minInclusive", "maxInclusive", "minExclusive", "maxExclusive", "deactivated"),
        *("severity", "qualifiedMinCount", "qualifiedMaxCount", "ignoredProperties"),
    )
)
# the library checks the other lists
_LISTS: Final = frozenset({"and", "or", "xone", "ignoredProperties"})
_ON_PATHS: Final = frozenset(
    {"minCount", "maxCount", "uniqueLang", "lessThan", "lessThanOrEquals", "qualifiedValueShape"}
)
_PATHS: Final = (
    "inversePath",
    "alternativePath",
    "zeroOrMorePath",
    "oneOrMorePath",
    "zeroOrOnePath",
)


def check_graph(graph: ShapesGraph) -> None:
    """Rejects a shapes graph that is not well-formed, or has no target."""
    shapes = graph.shapes()
    for triple in graph:
        name = local(triple[1])
        if name is not None and not shapes.isdisjoint(graph.above(triple[0])):
            _check_value(graph, triple, name)
    for node in shapes:
        _check_shape(graph, node)
    if not any(_has_target(graph, node) for node in shapes):
        raise ShapesError(
            f"{', '.join(graph.files)}: no shape has a target, so nothing would be checked",
            hint="add sh:targetClass, sh:targetNode, sh:targetSubjectsOf or sh:targetObjectsOf to a shape",
        )


def refused(graph: ShapesGraph, triple: Triple, reason: str, hint: str) -> ShapesError:
    """Returns the error of a triple: its file, its position and the shape that it is part of."""
    file, position = graph.position(triple)
    name = graph.named(triple[0])
    shape = "" if name is None else f"shape {name}: "
    return ShapesError(f"{file}: {shape}{reason}", position=position, hint=hint)


def _check_value(graph: ShapesGraph, triple: Triple, name: str) -> None:
    subject, predicate, object = triple
    if name in _UNSUPPORTED:
        raise refused(
            graph,
            triple,
            f"sh:{name} is not supported",
            "write the constraint with sh:sparql, or leave it out",
        )
    if name not in _VALUES:
        close = get_close_matches(name, _VALUES, 1, 0.7)
        raise refused(
            graph,
            triple,
            f"sh:{name} is not a known property of SHACL",
            f"write sh:{close[0]}" if close else "see the properties in the reference of shapes",
        )
    wanted, fits = _VALUES[name]
    if name in ("closed", "deactivated") and not is_blank(object) and object != sh("ByTypes"):
        wanted, fits = _BOOLEAN
    if not fits(object):
        raise refused(graph, triple, f"sh:{name} is {shown(object)}", f"write {wanted}")
    values = graph.objects[subject][predicate]
    if name in _ONCE and len(values) > 1:
        raise refused(
            graph,
            (subject, predicate, values[1]),
            f"it has {len(values)} values of sh:{name}: {', '.join(map(shown, values))}",
            "keep one; write alternatives with sh:or",
        )
    if name in _LISTS and graph.members(object) is None:
        raise refused(
            graph,
            triple,
            f"sh:{name} is not a list",
            f"write the values in parentheses: sh:{name} (…)",
        )
    if name in ("property", "node", "not", "qualifiedValueShape"):
        _check_defined(graph, triple, object)
    if name == "property" and sh("path") not in graph.objects[object]:
        raise refused(graph, triple, "a property shape has no sh:path", "add sh:path to it")
    for member in graph.members(object) or () if name in ("and", "or", "xone") else ():
        _check_defined(graph, triple, member)
    if name == "path":
        _check_path(graph, triple, object)


def _check_defined(graph: ShapesGraph, triple: Triple, shape: Term) -> None:
    if not _is_node(shape):
        raise refused(
            graph,
            triple,
            f"{shown(shape)} is not a shape",
            "name a shape by its IRI, or write it in […]",
        )
    if shape not in graph.objects and _is_iri(shape):
        raise refused(
            graph,
            triple,
            f"the shape {shape} is not defined",
            "correct its name, or pass the file that defines it as another --shapes",
        )


def _check_shape(graph: ShapesGraph, node: Term) -> None:
    properties = graph.objects.get(node, {})
    is_property = sh("PropertyShape") in properties.get(TYPE, ())
    has_path = sh("path") in properties
    for name in _ON_PATHS if not has_path else ():
        for object in properties.get(sh(name), ()):
            raise refused(
                graph,
                (node, sh(name), object),
                f"sh:{name} needs an sh:path in the same shape",
                "write it in sh:property [ sh:path …; … ]",
            )
    if is_property and not has_path:
        raise refused(
            graph,
            (node, TYPE, sh("PropertyShape")),
            "the property shape has no sh:path",
            "add sh:path",
        )
    if has_path and sh("NodeShape") in properties.get(TYPE, ()):
        raise refused(
            graph,
            (node, TYPE, sh("NodeShape")),
            "a node shape has no sh:path",
            "type it sh:PropertyShape",
        )


def _check_path(graph: ShapesGraph, triple: Triple, path: Term) -> None:
    """Refuses the paths that the library reads as others: an empty list, and a node with several kinds of path."""
    count = sum(len(graph.objects[path][sh(name)]) for name in _PATHS) if is_blank(path) else 1
    if path == NIL or count > 1:
        hint = "write a property, (first second), [ sh:inversePath … ], [ sh:alternativePath (…) ] or the like"
        found = "an empty list" if path == NIL else f"{count} paths in one node"
        raise refused(graph, triple, f"sh:path is {found}", hint)


def _has_target(graph: ShapesGraph, node: Term) -> bool:
    properties = graph.objects.get(node, {})
    types = properties.get(TYPE, ())
    is_class = any(
        kind in (f"<{RDFS}Class>", "<http://www.w3.org/2002/07/owl#Class>", sh("ShapeClass"))
        for kind in types
    )
    return is_class or any(
        (local(predicate) or "").startswith("target") for predicate in properties
    )
