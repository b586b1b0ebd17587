"""Shapes graphs read from files: triples, and the lines that they are in.

Also defines the terms of SHACL that other modules need. `wellformed.py` checks whether a graph is SHACL.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyoxigraph as ox

from construct_messages.rdf.errors import Position, ShapesError, SourceError, UsageError
from construct_messages.rdf.terms import (
    RDF,
    Term,
    from_pyoxigraph,
    iri,
    is_blank,
    is_literal,
    literal_parts,
)
from construct_messages.sparql.sources.files import load_files

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
