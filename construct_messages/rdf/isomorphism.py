"""Pairs blank nodes of two datasets: isomorphism (RDF 1.2 Concepts, section 4.4), with bounded work.

Nodes are distinguished by the statements about them, about their neighbours, and so on (colour refinement). If several
nodes are still alike, one is picked and tried with each candidate, separately in every connected part, so that symmetry
costs little. (RDFC-1.0 must name nodes instead of pairing them: ten times the work for each further node of a clique.)
Quads are tuples of terms here, not of messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Final, TypeAlias

from construct_messages.errors import LimitExceeded
from construct_messages.rdf.terms import Term, map_blanks

QuadTerms: TypeAlias = tuple[Term | None, ...]

STEPS: Final = 2_000_000
"""The default maximal number of statements that are compared while nodes are tried: some seconds."""

_DEEPEST: Final = 150  # nested picks of nodes; each is two calls
_ROUNDS: Final = 8  # the distance around a node that is compared if there is no isomorphism

_Node: TypeAlias = int
# of a node: its quad and its position in it, up to the other blank nodes in it, as a number; and these
_Edge: TypeAlias = tuple[int, tuple[_Node, ...]]
_Signature: TypeAlias = tuple[tuple[int, ...], ...]


def match(
    some: Iterable[QuadTerms], others: Iterable[QuadTerms], *, steps: int = STEPS
) -> dict[Term, Term]:
    """Pairs the blank nodes of some quads with those of others. `some`, `others`: subject, predicate, object and graph
    (None: the default graph) of each quad. Returns blank nodes of `others` by those of `some`, without the
    surplus nodes of one side.

    If the two are isomorphic, renaming by the pairs converts one to the other. Otherwise, common connected parts are
    paired in this way, and the other nodes by the distance up to which the statements around them are the same.

    >>> p, label = Term("<urn:p>"), Term('"x"')
    >>> some = [(Term("_:a"), p, Term("_:b"), None), (Term("_:b"), p, label, None)]
    >>> others = [(Term("_:x"), p, label, None), (Term("_:y"), p, Term("_:x"), None)]
    >>> sorted(match(some, others).items())
    [('_:a', '_:y'), ('_:b', '_:x')]
    """
    search = _Search(steps)
    first, second = search.add(some), search.add(others)
    pairs = search.pair(first, second)
    left = [node for node in first if node not in pairs], sorted(set(second) - set(pairs.values()))
    pairs |= search.pair_by_likeness(*left)
    return {search.labels[node]: search.labels[other] for node, other in pairs.items()}


def rename(quads: Iterable[QuadTerms], names: Callable[[Term], Term]) -> list[QuadTerms]:
    """The quads with each blank node, at any depth, replaced by `names` of it.

    >>> rename([(Term("_:a"), Term("<urn:p>"), Term("_:a"), None)], {"_:a": Term("_:x")}.__getitem__)
    [('_:x', '<urn:p>', '_:x', None)]
    """
    return [tuple(term and map_blanks(term, names) for term in quad) for quad in quads]


class _Search:
    """Both sides as one graph over numbered blank nodes, each with a colour; nodes of one colour may be the same."""

    def __init__(self, steps: int) -> None:
        self._steps, self._left = steps, inf
        self.labels: list[Term] = []  # by node
        self._edges: list[list[_Edge]] = []  # by node
        self._colours: list[int] = []  # by node
        self._shapes: dict[object, int] = {}
        self._alone: list[int] = []  # the first colours: by the statements about one node only
        self._next_colour = 0

    def add(self, quads: Iterable[QuadTerms]) -> list[_Node]:
        """The nodes of one side, in order of first appearance."""
        nodes: dict[Term, _Node] = {}
        alone: list[list[int]] = []  # the quads of each node that has no other in them
        first = len(self.labels)
        met: list[_Node] = []

        def meet(label: Term) -> Term:
            node = nodes.get(label)
            if node is None:
                node = nodes[label] = first + len(nodes)
                self.labels.append(label)
                self._edges.append([])
                alone.append([])
            met.append(node)
            return Term("_:")

        for quad in quads:
            met.clear()
            (shape,) = rename([quad], meet)
            for node in set(met):
                others = tuple([other for other in met if other != node])
                edge = self._number((shape, tuple([other == node for other in met])))
                if others:
                    self._edges[node].append((edge, others))
                else:
                    alone[node - first].append(edge)
        self._colours += [self._number(tuple(sorted(edges))) for edges in alone]
        return list(nodes.values())

    def _number(self, shape: object) -> int:
        return self._shapes.setdefault(shape, len(self._shapes))

    def pair(self, first: Sequence[_Node], second: Sequence[_Node]) -> dict[_Node, _Node]:
        """Pairs the connected parts that both sides have."""
        everything = {*first, *second}
        self._alone, self._next_colour = list(self._colours), len(self._shapes)
        self._refine(everything, everything)
        self._left = self._steps  # refinement is fast; only trying may be slow
        pairs: dict[_Node, _Node] = {}
        self._pair_parts(first, second, pairs, depth=0)
        return pairs

    def _pair_parts(
        self, first: Iterable[_Node], second: Iterable[_Node], pairs: dict[_Node, _Node], depth: int
    ) -> bool:
        """Adds pairs for the parts that are the same; whether all are."""
        likes: defaultdict[tuple[int, ...], list[list[_Node]]] = defaultdict(list)
        for part in reversed(self._parts(second)):
            likes[self._colours_of(part)].append(part)
        whole = True
        for part in self._parts(first):
            candidates = likes[self._colours_of(part)]
            for index in reversed(
                range(len(candidates))
            ):  # so that the first comes first, and goes at no cost
                if self._pair_part(part, candidates[index], pairs, depth):
                    del candidates[index]
                    break
            else:
                whole = False
        return whole and not any(likes.values())

    def _pair_part(
        self, part: list[_Node], other: list[_Node], pairs: dict[_Node, _Node], depth: int
    ) -> bool:
        """Pairs two connected parts of the same colours, if they are the same; else adds nothing."""
        likes: defaultdict[int, tuple[list[_Node], list[_Node]]] = defaultdict(lambda: ([], []))
        for side, nodes in enumerate((part, other)):
            for node in nodes:
                likes[self._colours[node]][side].append(node)
        found = {ones[0]: others[0] for ones, others in likes.values() if len(ones) == 1}
        if len(found) < len(part):
            colours = {node: self._colours[node] for node in (*part, *other)}
            rest = [node for node in part if node not in found]
            paired = set(found.values())
            other_rest = [node for node in other if node not in paired]
            fewest = min(likes.values(), key=lambda like: len(like[0]))
            if not (
                self._pair_parts(rest, other_rest, found, depth)
                if found
                else self._try(part, other, fewest, found, depth)
            ):
                self._recolour(colours)
                return False
        pairs |= found
        return True

    def _try(
        self,
        part: list[_Node],
        other: list[_Node],
        likes: tuple[list[_Node], list[_Node]],
        pairs: dict[_Node, _Node],
        depth: int,
    ) -> bool:
        """Individualises one node: tries each node of the same colour as its partner until the rest can be paired."""
        if depth > _DEEPEST:
            raise self._too_much()
        scope = {*part, *other}
        colours = {node: self._colours[node] for node in scope}
        picked = likes[0][0]
        for like in likes[1]:
            self._colours[picked] = self._colours[like] = self._new_colour()
            self._refine(scope, self._around([picked, like], scope))
            found: dict[_Node, _Node] = {}
            if self._colours_of(part) == self._colours_of(other) and self._pair_part(
                part, other, found, depth + 1
            ):
                pairs |= found
                return True
            self._recolour(colours)
        return False

    def _colours_of(self, part: Iterable[_Node]) -> tuple[int, ...]:
        return tuple(sorted(self._colours[node] for node in part))

    def _parts(self, nodes: Iterable[_Node]) -> list[list[_Node]]:
        """The connected parts of a graph that has these nodes only."""
        nodes = list(nodes)
        left = set(nodes)
        parts = []
        for start in nodes:
            if start not in left:
                continue
            left.remove(start)
            part = [start]
            for node in part:  # which grows
                for _, others in self._edges[node]:
                    for other in others:
                        if other in left:
                            left.remove(other)
                            part.append(other)
            parts.append(part)
        return parts

    def pair_by_likeness(
        self, first: Sequence[_Node], second: Sequence[_Node]
    ) -> dict[_Node, _Node]:
        """Pairs nodes of parts that differ: those that are alike the farthest around first, then by order."""
        rounds = [[0] * len(self.labels), self._alone]
        for _ in range(_ROUNDS if first and second else 0):
            last = rounds[-1]
            colours = list(last)
            for node in (*first, *second):
                colours[node] = self._number((last[node], self._signature(node, last)))
            rounds.append(colours)
        pairs: dict[_Node, _Node] = {}
        paired: set[_Node] = set()
        for colours in reversed(rounds):
            waiting: defaultdict[int, list[_Node]] = defaultdict(list)
            for node in reversed(second):
                if node not in paired:
                    waiting[colours[node]].append(node)
            for node in first:
                if node not in pairs and waiting[colours[node]]:
                    pairs[node] = waiting[colours[node]].pop()
                    paired.add(pairs[node])
        return pairs

    def _too_much(self) -> LimitExceeded:
        return LimitExceeded(
            f"it takes more than {self._steps} steps to know which blank nodes may be the same",
            hint="compare messages with fewer blank nodes that look alike, or give the nodes IRIs",
        )

    # --- colours ---

    def _recolour(self, colours: Mapping[_Node, int]) -> None:
        for node, colour in colours.items():
            self._colours[node] = colour

    def _new_colour(self) -> int:
        self._next_colour += 1
        return self._next_colour

    def _signature(self, node: _Node, colours: Sequence[int]) -> _Signature:
        """Returns the statements about a node and others, up to the colours of the others."""
        self._left -= len(self._edges[node])
        return tuple(
            sorted(
                [
                    (edge, *[colours[other] for other in others])
                    for edge, others in self._edges[node]
                ]
            )
        )

    def _around(self, nodes: Iterable[_Node], scope: set[_Node]) -> set[_Node]:
        return {
            other for node in nodes for _, others in self._edges[node] for other in others
        } & scope

    def _refine(self, scope: set[_Node], changed: set[_Node]) -> None:
        """Assigns different colours to nodes of one colour with different statements, until there are none. `scope`:
        the nodes that may get another colour; no other has any of theirs. `changed`: nodes whose statements may now
        differ from those of other nodes with their colour.
        """
        likes: defaultdict[int, set[_Node]] = defaultdict(set)
        for node in scope:
            likes[self._colours[node]].add(node)
        while changed:
            touched: defaultdict[int, set[_Node]] = defaultdict(set)
            for node in changed:
                touched[self._colours[node]].add(node)
            moved: list[_Node] = []
            for colour, nodes in touched.items():
                if len(likes[colour]) > 1:
                    moved += self._split(likes, colour, nodes)
            if self._left < 0:
                raise self._too_much()
            changed = self._around(moved, scope)

    def _split(
        self, likes: defaultdict[int, set[_Node]], colour: int, touched: set[_Node]
    ) -> list[_Node]:
        """Splits the nodes of a colour, and returns those with a new one."""
        groups: defaultdict[_Signature, list[_Node]] = defaultdict(list)
        for node in touched:
            groups[self._signature(node, self._colours)].append(node)
        untouched = next((node for node in likes[colour] if node not in touched), None)
        if untouched is not None:
            staying = self._signature(untouched, self._colours)
        else:
            # the largest keeps the colour, so that less is touched in turn
            staying = max(groups, key=lambda signature: len(groups[signature]))
        moved: list[_Node] = []
        for signature, group in groups.items():
            if signature != staying:
                new = self._new_colour()
                for node in group:
                    self._colours[node] = new
                likes[colour].difference_update(group)
                likes[new].update(group)
                moved += group
        return moved
