"""Data that each message is validated with, such as a class hierarchy: selects the part that matters for a message.

The validation of a node reads only data that is reachable from it over the properties of the shapes. So only the static
data that is reachable from the message's nodes is passed to the library, or all of it if shapes have queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from construct_messages.construct.shapes.graph import RDFS, TYPE, ShapesGraph, Triple, local
from construct_messages.rdf.errors import ShapesError, SourceError
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import Term, from_pyoxigraph, is_literal, map_blanks
from construct_messages.sparql.sources.files import load_files

_SUBCLASS: Final = Term(f"<{RDFS}subClassOf>")
_COMPARED: Final = frozenset(
    {
        "equals",
        "disjoint",
        "lessThan",
        "lessThanOrEquals",
        "subsetOf",
        "uniqueValuesFor",
        "targetSubjectsOf",
        "targetObjectsOf",
    }
)
_IN_PATHS: Final = frozenset(
    {"path", "inversePath", "alternativePath", "zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"}
)
_LISTED: Final = frozenset(
    {
        "property",
        "node",
        "not",
        "qualifiedValueShape",
        "in",
        "languageIn",
        "and",
        "or",
        "xone",
        "class",
        "datatype",
        "nodeKind",
        "minCount",
        "maxCount",
        "minLength",
        "maxLength",
        "qualifiedMinCount",
        "qualifiedMaxCount",
        "uniqueLang",
        "qualifiedValueShapesDisjoint",
        "targetClass",
        "targetNode",
        "severity",
        "pattern",
        "flags",
        "message",
        "minInclusive",
        "maxInclusive",
        "minExclusive",
        "maxExclusive",
        "deactivated",
        "hasValue",
        "name",
        "description",
        "order",
        "group",
        "defaultValue",
    }
)
"""The terms that are evaluated with only the properties of the sets above; other terms require the whole data."""

_MOST: Final = 1 << 14  # nodes whose reachable lines are remembered


class StaticData:
    """Static data of a shapes graph.

    Args:
        triples: the data.
        graph: the shapes.

    Attributes:
        nodes: the subjects and objects of the data.
    """

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
        """Reads static data. Named graphs count as parts of one graph.

        Raises:
            UsageError: no such file, or its extension is not that of an RDF format.
            ShapesError: a file has a syntax error.
        """
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
