"""Validates one message against shapes: the only module that calls the library `shacl`.

It passes all of the W3C's tests of SHACL Core, twenty times as fast as pySHACL. In addition to the library, this module
keeps the labels of the message's blank nodes, finds the position of a shape in its file, and makes reports of failures.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence, Set
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from construct_messages.construct.shapes.graph import (
    NIL,
    RDFS,
    SH,
    SHAPE_NAMING,
    TYPE,
    ShapesGraph,
    Triple,
    check_graph,
    local,
    refused,
    sh,
    shown,
)
from construct_messages.construct.shapes.report import ValidationReport, ValidationResult
from construct_messages.errors import ShapesError, SourceError, UsageError
from construct_messages.logs.from_pyoxigraph import DEEPEST
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import (
    Term,
    from_pyoxigraph,
    is_blank,
    is_literal,
    literal,
    literal_parts,
    map_blanks,
    nesting,
    parse_term,
)
from construct_messages.sparql.sources.files import load_files

if TYPE_CHECKING:
    import shacl


# --- static ---------------------------------------------------------------------------------------
# Data that each message is validated with, such as a class hierarchy: selects the part that matters for a message.
#
# The validation of a node reads only data that is reachable from it over the properties of the shapes. So only the
# static data that is reachable from the message's nodes is passed to the library, or all of it if shapes have
# queries.

_SUBCLASS: Final = Term(f"<{RDFS}subClassOf>")
_COMPARED: Final = frozenset(
    (
        *("equals", "disjoint", "lessThan", "lessThanOrEquals", "subsetOf"),
        *("uniqueValuesFor", "targetSubjectsOf", "targetObjectsOf"),
    )
)
_IN_PATHS: Final = frozenset(
    {"path", "inversePath", "alternativePath", "zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"}
)
_LISTED: Final = frozenset(
    (
        *("property", "node", "not", "qualifiedValueShape", "in", "languageIn", "and", "or"),
        *("xone", "class", "datatype", "nodeKind", "minCount", "maxCount", "minLength"),
        *("maxLength", "qualifiedMinCount", "qualifiedMaxCount", "uniqueLang"),
        *("qualifiedValueShapesDisjoint", "targetClass", "targetNode", "severity", "pattern"),
        *("flags", "message", "minInclusive", "maxInclusive", "minExclusive", "maxExclusive"),
        *("deactivated", "hasValue", "name", "description", "order", "group", "defaultValue"),
    )
)
"""The terms that are evaluated with only the properties of the sets above; other terms require the whole data."""

_MOST: Final = 1 << 14  # nodes whose reachable lines are remembered


class StaticData:
    """Static data of a shapes graph."""

    def __init__(self, triples: Iterable[Triple], graph: ShapesGraph) -> None:
        used, backward, whole = _read_by(graph)
        self.nodes: set[Term] = set()
        self._lines: list[str] = []
        self._of: dict[Term, list[int]] = defaultdict(list)
        self._next: dict[Term, list[Term]] = defaultdict(list)
        for subject, predicate, object in triples:
            self.nodes.update((subject, object))
            if used is not None and predicate not in used:
                continue
            self._lines.append(f"{subject} {predicate} {object} .\n")
            self._of[subject].append(len(self._lines) - 1)
            if not is_literal(object):
                self._next[subject].append(object)
            if backward:
                self._of[object].append(len(self._lines) - 1)
                self._next[object].append(subject)
        self._text = "".join(self._lines) if whole else None
        self._known: dict[Term, frozenset[int]] = {}

    @classmethod
    def read(cls, paths: Sequence[Path], graph: ShapesGraph) -> StaticData:
        """Reads static data. Named graphs count as parts of one graph."""
        try:
            store = load_files(paths)
        except SourceError as error:
            raise ShapesError(error.message, hint=error.hint) from error
        labels = Labels()

        def renamed(blank: Term) -> Term:
            return Term(f"_:{labels.of_data}{blank[2:]}")

        return cls(
            (
                (
                    map_blanks(from_pyoxigraph(quad.subject), renamed),
                    from_pyoxigraph(quad.predicate),
                    map_blanks(from_pyoxigraph(quad.object), renamed),
                )
                for quad in store
            ),
            graph,
        )

    def lines(self, nodes: Collection[Term]) -> str:
        """Returns the N-Triples lines that the validation of some nodes can read."""
        if self._text is not None:
            return self._text
        found: set[int] = set()
        for node in nodes:
            if node in self._next or node in self._of:
                found |= self._reachable(node)
        return "".join([self._lines[number] for number in sorted(found)])

    def _reachable(self, node: Term) -> frozenset[int]:
        known = self._known.get(node)
        if known is not None:
            return known
        lines: set[int] = set()
        waiting, seen = [node], {node}
        while waiting:
            each = waiting.pop()
            lines.update(self._of.get(each, ()))
            for reached in self._next.get(each, ()):
                if reached not in seen:
                    seen.add(reached)
                    waiting.append(reached)
        if len(self._known) >= _MOST:
            self._known.clear()
        found = self._known[node] = frozenset(lines)
        return found


def _read_by(graph: ShapesGraph) -> tuple[set[Term] | None, bool, bool]:
    """Returns the properties that shapes read (None: all), whether also backward, and whether they need all data."""
    used: set[Term] | None = {TYPE, _SUBCLASS}
    backward = whole = False
    for _, predicate, object in graph:
        name = local(predicate)
        if name is None:
            # a parameter of a component that is defined here, or a term that is not part of the shape
            continue
        if name == "closed":
            used = None
        elif name in _COMPARED or name in _IN_PATHS:
            backward = backward or name in ("inversePath", "targetObjectsOf")
            if used is not None:
                used.update(graph.members(object) or [object])
        elif name not in _LISTED and name != "ignoredProperties":
            whole = True
        if name == "path" and used is not None:
            for _, _, inner in graph.subtree(object):
                used.add(inner)
    return (None if whole else used), backward, whole


# --- engine ---------------------------------------------------------------------------------------

_LABEL: Final = Term("<urn:x-construct-messages:label>")
_MARKER: Final = "<urn:x-construct-messages:marker>"
_MARKS: Final = "<urn:x-construct-messages:labels>"
# a result for each node that has a label, with the label as its value
_LABELS: Final = (
    f"{_MARKER} {TYPE} {sh('NodeShape')} .\n{_MARKER} {sh('targetSubjectsOf')} {_LABEL} .\n"
    f"{_MARKER} {sh('property')} {_MARKS} .\n{_MARKS} {sh('path')} {_LABEL} .\n"
    f"{_MARKS} {sh('in')} {NIL} .\n"
)
_BLANK: Final = re.compile(r'"(?:[^"\\]|\\.)*"|<(?![<(])[^>]*>|(_:[\w.·-]*[\w·-])')
_MILD: Final = frozenset({f"{SH}Warning", f"{SH}Info", f"{SH}Debug", f"{SH}Trace"})
_INSTALL: Final = "pip install 'construct-messages[shapes]'"


class Shapes:
    """Shapes that each message is validated against. A message's graphs are validated as one graph.

    Args:
        paths: a shapes file, or several that make up one graph: Turtle, N-Triples, JSON-LD, RDF/XML and so on.
        data: files with data that each message is validated with, such as a class hierarchy. Nodes that are only in
            this data are not validated themselves.
        allow_warnings: whether a message conforms despite results of the severities `sh:Warning`, `sh:Info`, `sh:Debug`
            and `sh:Trace`.

    Raises:
        UsageError: a file that does not exist or is not RDF, or the library is not installed.
        ShapesError: the shapes are not valid: the error has the file, the position, the shape and the fix.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from construct_messages import Quad, iri, literal
    >>> turtle = '''
    ... @prefix sh: <http://www.w3.org/ns/shacl#> .
    ... <urn:Sensors> sh:targetSubjectsOf <urn:celsius> ;
    ...   sh:property [ sh:path <urn:celsius> ; sh:maxInclusive 60 ] .
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "shapes.ttl").write_text(turtle)
    ...     shapes = Shapes(Path(folder, "shapes.ttl"))
    >>> report = shapes.validate(Message([Quad(iri("urn:s1"), iri("urn:celsius"), literal(99))]))
    >>> report.conforms, report.results[0].constraint, report.results[0].value
    (False, 'sh:maxInclusive 60', '"99"^^<http://www.w3.org/2001/XMLSchema#integer>')
    """

    @checked
    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        allow_warnings: bool = False,
    ) -> None:
        if find_spec("shacl") is None:
            raise UsageError("shapes need the library shacl", hint=_INSTALL)
        files = _paths(paths)
        if not files:
            raise UsageError("there is no shapes file", hint="name at least one")
        self._graph = graph = ShapesGraph.read(files)
        check_graph(graph)
        lines, self._blank_shapes = graph.skolemized()
        self._shapes: shacl.Shapes = _compiled(graph, lines)
        data_files = _paths(data)
        self._static = StaticData.read(data_files, graph) if data_files else None
        self._allow_warnings = allow_warnings

    @checked
    def validate(self, message: Message, *, number: int | None = None) -> ValidationReport:
        """Validates one message.

        Args:
            message: its graphs are validated as one graph.
            number: the number of the message in its log, for the report.
        """
        lines = [f"{s} {p} {o} .\n" for s, p, o, _ in message.statements]
        text = "".join(lines)
        if "<<(" in text and any(nesting(line) > DEEPEST for line in lines):
            return _failed(f"more than {DEEPEST} nested triple terms", number)
        if self._static is not None:
            text += self._static.lines(_nodes(message))
        try:
            report = self._report(text)
        except ValueError as error:
            return _failed(_reason(error), number)
        if report.conforms and not len(report):
            return ValidationReport(True, number=number)
        return self._read(message, text, report.results, number)

    def _report(self, text: str) -> shacl.Report:
        try:
            return self._shapes.validate_text(text, "ntriples", allow_warnings=self._allow_warnings)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # a defect of the library
                raise
            raise ValueError(f"the library failed: {error}") from error

    def _read(
        self, message: Message, text: str, found: Iterable[shacl.Result], number: int | None
    ) -> ValidationReport:
        """The report of the library's results for a message."""
        found = list(found)
        labels: dict[str, Term] = {}
        if any("_:" in f"{each.focus_node}{each.value}" for each in found):
            labels = self._labels(text)

        def own(term: str) -> Term:
            return map_blanks(parse_term(term), lambda blank: labels.get(blank, blank))

        static: Set[Term] = set() if self._static is None else self._static.nodes
        nodes = _nodes(message)
        results = sorted(
            (
                self._result(each, own)
                for each in found
                if (focus := own(each.focus_node)) in nodes or focus not in static
            ),
            key=lambda result: (
                result.focus_node,
                result.path or "",
                result.constraint,
                result.value or "",
            ),
        )
        conforms = all(
            self._allow_warnings and result.severity[1:-1] in _MILD for result in results
        )
        return ValidationReport(conforms, tuple(results), number=number)

    def _result(self, found: shacl.Result, own: Any) -> ValidationResult:
        graph, source = self._graph, None
        if found.source_shape is not None:
            named = Term(found.source_shape)
            source = self._blank_shapes.get(named, named)
        component = Term(f"<{found.component_iri}>")
        path_node: Term | None = None
        path_triples: tuple[Triple, ...] = ()
        if found.path is not None:
            declared = None if source is None else graph.object(source, sh("path"))
            if re.fullmatch(r"<[^<>]*>", found.path):
                path_node = Term(found.path)
            elif declared is not None:
                path_node, path_triples = declared, tuple(graph.subtree(declared))
        place = None if source is None else graph.line(source)
        return ValidationResult(
            focus_node=own(found.focus_node),
            path=found.path,
            value=None if found.value is None else own(found.value),
            component=component,
            constraint=self._constraint(source, found.component),
            severity=Term(f"<{found.severity_iri}>"),
            messages=tuple(self._message(source, text) for text in found.messages),
            shape=None if source is None else graph.named(source),
            source_shape=source if source is not None and source.startswith("<") else None,
            place=None
            if place is None
            else place.file
            if place.line is None
            else f"{place.file}:{place.line}",
            path_node=path_node,
            path_triples=path_triples,
        )

    def _constraint(self, source: Term | None, component: str) -> str:
        """The constraint of a component, as written in the shape."""
        name = component.removesuffix("ConstraintComponent")
        name = name[:1].lower() + name[1:] if name != "SPARQL" else "sparql"
        values = [] if source is None else self._graph.objects.get(source, {}).get(sh(name), [])
        texts = [self._shown(value) for value in values]
        return " ".join((f"sh:{name}" if values else component, ", ".join(texts))).strip()

    def _shown(self, value: Term) -> str:
        members = None if is_literal(value) else self._graph.members(value)
        if members:
            return f"({' '.join(map(self._shown, members))})"
        return "[…]" if value.startswith("_:") else shown(value)

    def _message(self, source: Term | None, text: str) -> Term:
        """A message of the library, with its language in the shape."""
        for term in self._messages.get(source, ()) if source else ():
            if literal_parts(term)[0] == text:
                return term
        return literal(text)

    @cached_property
    def _messages(self) -> dict[Term, list[Term]]:
        return {
            subject: properties[sh("message")]
            for subject, properties in self._graph.objects.items()
            if sh("message") in properties
        }

    def _labels(self, text: str) -> dict[str, Term]:
        """The blank nodes of the message by the library's labels.

        The library numbers blank nodes in the order of reading, so the message is read again, followed by the label of
        each.
        """
        blanks = dict.fromkeys(match[1] for match in _BLANK.finditer(text) if match[1])
        lines = "".join(f'{blank} {_LABEL} "{blank}" .\n' for blank in blanks)
        return {
            found.focus_node: Term(found.value[1:-1])
            for found in self._report(text + lines).results
            if found.source_shape == _MARKS and found.value
        }


def _paths(paths: Any) -> list[Path]:
    return [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]


def _nodes(message: Message) -> set[Term]:
    nodes = {subject for subject, _, _, _ in message.statements}
    return nodes.union(object for _, _, object, _ in message.statements)


def _failed(reason: str, number: int | None) -> ValidationReport:
    return ValidationReport(False, failure=reason, number=number)


def _reason(error: ValueError) -> str:
    text = re.sub(r"http://example\.org/(?:data|shapes): ", "", str(error))
    return " ".join(text.removeprefix("invalid shapes graph: ").split())


def _compiled(graph: ShapesGraph, lines: list[str]) -> shacl.Shapes:
    """Compiles shapes. An error is at the triple without which the library has another error, or none."""
    import shacl

    def compiled(without: int | None = None) -> shacl.Shapes:
        kept = [line for number, line in enumerate(lines) if number != without]
        return shacl.Shapes.from_text("".join([*kept, _LABELS]), "ntriples")

    try:
        return compiled()
    except ValueError as error:
        reason = _reason(error)
        for number, triple in enumerate(graph):
            name = local(triple[1])
            if name is None or name in SHAPE_NAMING or name.startswith("target"):
                continue  # without it, the library would ignore the constraint
            try:
                compiled(number)
            except ValueError as other:
                if _reason(other) == reason:
                    continue
            raise refused(
                graph,
                triple,
                f"{shown(triple[1])} {'[…]' if is_blank(triple[2]) else shown(triple[2])}: {reason}",
                "correct this constraint",
            ) from error
        raise ShapesError(
            f"{', '.join(graph.files)}: {reason}", hint="correct the shapes"
        ) from error
