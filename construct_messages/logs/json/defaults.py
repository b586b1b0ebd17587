"""Documents without a frame: chooses their roots, the embedded nodes, and a context for their keys.

The roots are the subjects that are not objects; documents embed all nodes that these lead to. A key is the local name
of a predicate. Its value depends on the values in the message: IRIs are strings, and literals with a language make a
language map. Several values are an array; if the template can produce several, a single value is an array as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any, Final, TypeAlias

from construct_messages.logs.json.frames import Flags, NodeFrame
from construct_messages.logs.json.nodes import RDF_TYPE, Nodes, Value
from construct_messages.logs.json.values import suffix_of
from construct_messages.rdf.template import Blank, Constant, Slot, Template, Variable
from construct_messages.rdf.terms import Term

EVERYTHING: Final = NodeFrame(Flags(embed="@always"))
"""Embeds every node wherever it is an object, except in cycles."""

RESERVED: Final = ("id", "type")
_LOCAL: Final = re.compile(r"[^/#:@]+$")

Kinds: TypeAlias = tuple[bool, bool, bool, bool]
"""The kinds of values of a predicate: nodes, literals with a language, others, lists."""
Uses: TypeAlias = Mapping[Term, Kinds]


def roots_of(nodes: Nodes) -> list[Term]:
    """Returns the roots of documents: subjects that are not objects of others, then one node per cycle.

    >>> from construct_messages.logs.json.nodes import NodeProperties
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
