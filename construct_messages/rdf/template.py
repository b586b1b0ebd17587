"""The template: converts a solution to a message.

SPARQL 1.2 Query, section 16.2 (CONSTRUCT): a triple that would hold an unbound variable or an illegal part is left
out, the rest stays; blank nodes of the template are fresh for each solution. `FORBIDDEN` (of `terms`) and
`Template.instantiate` are the only statement of these rules; `instantiate_all` and log writers, which work by column,
read `FORBIDDEN` and must agree with `instantiate` (tests/rdf/test_template.py, tests/test_fast_path.py). No query text
here, and no bytes.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement, islice, repeat
from typing import Final, NamedTuple, TypeAlias

from construct_messages.errors import UsageError
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad, make_quads
from construct_messages.rdf.terms import FORBIDDEN as FORBIDDEN
from construct_messages.rdf.terms import RDF, Term, iri, is_triple, literal, triple

# --- rows -----------------------------------------------------------------------------------------
# Rows as messages: a solution of SELECT in the vocabulary of SPARQL's own test suites.
#
# `http://www.w3.org/2001/sw/DataAccess/tests/result-set#`: each message is a result set of one solution, which names
# all its variables, so that those without a value are known, too. Templates of CONSTRUCT are in `template.py`.

RS: Final = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"

_TYPE: Final = iri(f"{RDF}type")
_RESULT_SET: Final = iri(f"{RS}ResultSet")
_RESULT_VARIABLE: Final = iri(f"{RS}resultVariable")
_SOLUTION: Final = iri(f"{RS}solution")
_BINDING: Final = iri(f"{RS}binding")
_VARIABLE: Final = iri(f"{RS}variable")
_VALUE: Final = iri(f"{RS}value")


def row_message(
    variables: Sequence[str], solution: Sequence[Term], labels: Labels, number: int | str
) -> Message:
    """Returns the message of one row.

    Args:
        variables: the projected names in order, without `?`.
        solution: a term for each of them; the empty string is unbound.
        labels: make the labels of the message's blank nodes.
        number: of the solution, or its replacement: rows with the same number share their blank nodes.

    Raises:
        UsageError: more or fewer terms than variables.

    >>> for quad in row_message(("s", "o"), (Term("<urn:a>"), Term("")), Labels("x"), 7):
    ...     print(str(quad).replace(RS, "rs:"))
    _:x_t7b0 <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <rs:ResultSet> .
    _:x_t7b0 <rs:resultVariable> "s" .
    _:x_t7b0 <rs:resultVariable> "o" .
    _:x_t7b0 <rs:solution> _:x_t7b1 .
    _:x_t7b1 <rs:binding> _:x_t7b2 .
    _:x_t7b2 <rs:variable> "s" .
    _:x_t7b2 <rs:value> <urn:a> .
    """
    if len(variables) != len(solution):
        raise UsageError(f"{len(solution)} terms are no row of {len(variables)} variables")
    return Message(_quads([literal(name) for name in variables], solution, labels, number))


def _quads(
    names: Sequence[Term], solution: Sequence[Term], labels: Labels, number: int | str
) -> Iterator[Quad]:
    result_set, row = labels.of_template(number, 0), labels.of_template(number, 1)
    yield Quad(result_set, _TYPE, _RESULT_SET)
    for name in names:
        yield Quad(result_set, _RESULT_VARIABLE, name)
    yield Quad(result_set, _SOLUTION, row)
    for index, (name, term) in enumerate(zip(names, solution, strict=True), 2):
        if term:
            binding = labels.of_template(number, index)
            yield Quad(row, _BINDING, binding)
            yield Quad(binding, _VARIABLE, name)
            yield Quad(binding, _VALUE, term)


# --- template -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant:
    """A slot that is the same term in every solution."""

    term: Term


@dataclass(frozen=True, slots=True)
class Variable:
    """A slot that takes the solution's value number `index` (of `Template.variables`)."""

    index: int


@dataclass(frozen=True, slots=True)
class Blank:
    """A slot that is the blank node number `index` of the template, fresh in each solution."""

    index: int


@dataclass(frozen=True, slots=True)
class Nested:
    """A slot that is a triple term with a variable or blank node in it, at any depth."""

    subject: Slot
    predicate: Slot
    object: Slot

    def __iter__(self) -> Iterator[Slot]:
        return iter((self.subject, self.predicate, self.object))


Slot: TypeAlias = Constant | Variable | Blank | Nested

_OPEN: Final = {Constant, Variable, Nested}
"""Kinds of slots that can hold the same term; a blank node of the template differs from all other terms."""


class Pattern(NamedTuple):
    """One triple of the template; `graph` is None for the default graph (GRAPH in a template is Jena's extension)."""

    subject: Slot
    predicate: Slot
    object: Slot
    graph: Slot | None = None


def legal(slot: Slot, position: str) -> bool:
    """Whether a slot can be legal in a position; for variables, this depends on the solution.

    >>> legal(Constant(Term('"x"')), "subject"), legal(Variable(0), "subject")
    (False, True)
    """
    match slot:
        case Constant(term):
            return not term.startswith(FORBIDDEN[position])
        case Variable():
            return True
        case Blank():
            return "_:" not in FORBIDDEN[position]
        case Nested():
            return "<<(" not in FORBIDDEN[position] and all(
                legal(part, name) for part, name in zip(slot, FORBIDDEN, strict=False)
            )


def may_coincide(a: Pattern, b: Pattern) -> bool:
    """Whether two patterns can produce the same quad in one solution.

    >>> s, p, q = Variable(0), Constant(Term("<urn:p>")), Constant(Term("<urn:q>"))
    >>> may_coincide(Pattern(s, p, s), Pattern(s, q, s)), may_coincide(Pattern(s, p, s), Pattern(s, p, Variable(1)))
    (False, True)
    """
    return all(
        x is y if x is None or y is None else _may_equal(x, y) for x, y in zip(a, b, strict=True)
    )


def _may_equal(a: Slot, b: Slot) -> bool:
    match a, b:
        case (Variable(), Blank()) | (Blank(), Variable()):
            return False  # data and template have different labels
        case (Variable(), _) | (_, Variable()):
            return True
        case (Nested(), Nested()):
            return all(_may_equal(x, y) for x, y in zip(a, b, strict=True))
        case (Constant(), Nested()) | (Nested(), Constant()):
            return True
    return a == b


def coinciding(patterns: Sequence[Pattern]) -> Iterator[tuple[int, int]]:
    """The pairs of patterns that can produce the same quad in one solution, by their indexes.

    Only patterns with equal constants and blank nodes in common positions are compared, so the time grows with the
    number of patterns, and not with that of their pairs.

    >>> s, p, q = Variable(0), Constant(Term("<urn:p>")), Constant(Term("<urn:q>"))
    >>> list(coinciding([Pattern(s, p, s), Pattern(s, q, s), Pattern(s, p, Variable(1))]))
    [(0, 2)]
    """
    shapes = defaultdict[tuple[type, ...], list[int]](list)
    for index, pattern in enumerate(patterns):
        shapes[tuple(map(type, pattern))].append(index)
    for shape, other in combinations_with_replacement(shapes, 2):
        if not all(a is b or {a, b} <= _OPEN for a, b in zip(shape, other, strict=True)):
            continue
        fixed = [
            place
            for place in range(4)
            if shape[place] is other[place] and shape[place] in (Constant, Blank)
        ]
        known = defaultdict[tuple[Slot | None, ...], list[int]](list)
        for index in shapes[shape]:
            known[tuple(patterns[index][place] for place in fixed)].append(index)
        for index in shapes[other]:
            for before in known.get(tuple(patterns[index][place] for place in fixed), ()):
                if (before < index or shape is not other) and may_coincide(
                    patterns[before], patterns[index]
                ):
                    yield min(before, index), max(before, index)


@dataclass(frozen=True)
class Template:
    """A compiled CONSTRUCT template.

    >>> t = Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Blank(0)),), Labels("x"))
    >>> [str(quad) for quad in t.instantiate((Term("<urn:a>"),), 0)]
    ['<urn:a> <urn:p> _:x_t0b0 .']
    >>> t.instantiate((Term('"a literal"'),), 1)
    []
    """

    # the names (without `?`) of the projected variables, in the order of a solution's values. It may hold more than
    # the patterns use (grouping variables)
    variables: tuple[str, ...]
    # the triples, in the order of the text
    patterns: tuple[Pattern, ...]
    # make those of its blank nodes; the data of the same stream has others of them
    labels: Labels = field(default_factory=Labels, compare=False, repr=False)

    @cached_property
    def compiled(self) -> Compiled:
        return Compiled(self)

    def labelled(self, labels: Labels) -> Template:
        """The same template with other labels for its blank nodes; nothing is compiled again."""
        self.compiled  # noqa: B018 - which the copy takes over
        template = copy.copy(self)
        object.__setattr__(template, "labels", labels)
        return template

    @property
    def live(self) -> tuple[Pattern, ...]:
        """The patterns that can be legal in some solution."""
        return tuple(
            pattern
            for pattern in self.patterns
            if all(
                slot is None or legal(slot, name)
                for slot, name in zip(pattern, FORBIDDEN, strict=True)
            )
        )

    @property
    def has_blanks(self) -> bool:
        """Whether the template contains blank nodes."""
        return self.compiled.blanks > 0

    @property
    def names_graphs(self) -> bool:
        """Whether a quad may have a named graph."""
        return any(pattern.graph is not None for pattern in self.live)

    @cached_property
    def is_regular(self) -> bool:
        """Whether a solution has a quad for each pattern, all different, wherever all terms are bound and allowed."""
        return bool(self.compiled.rows) and not self.compiled.nested and not self._may_coincide

    @property
    def has_triple_terms(self) -> bool:
        """Whether the template itself has a triple term; variables may have others in the solutions."""
        return any(
            isinstance(slot, Nested) or (isinstance(slot, Constant) and is_triple(slot.term))
            for _, _, slot, _ in self.live
        )

    def instantiate(self, solution: Sequence[Term], number: int) -> list[Quad]:
        """The quads of one solution, each once, in the order of the template. `solution`: a value per variable; the
        empty string is unbound. `number`: a number no other solution of the stream has; it makes blank nodes of the
        template fresh.
        """
        compiled = self.compiled
        terms = [*solution, *compiled.constants]
        terms += [self.labels.of_template(number, index) for index in range(compiled.blanks)]
        for s, p, o, _, checks in compiled.nested:
            subject, predicate, object = terms[s], terms[p], terms[o]
            if not (subject and predicate and object) or any(
                terms[i].startswith(bad) for i, bad in checks
            ):
                terms.append(Term(""))
            else:
                terms.append(triple(subject, predicate, object))
        quads: dict[Quad, None] = {}
        for s, p, o, g, checks in compiled.rows:
            subject, predicate, object = terms[s], terms[p], terms[o]
            graph = None if g is None else terms[g]
            if not (subject and predicate and object) or graph == "":
                continue
            for i, bad in checks:
                if terms[i].startswith(bad):
                    break
            else:
                quads[Quad(subject, predicate, object, graph)] = None
        return list(quads)

    def instantiate_all(
        self, columns: Sequence[list[Term]], first: int
    ) -> Iterator[tuple[Quad, ...]]:
        """Instantiates consecutive solutions: the same as `instantiate` for each, in less time. `columns`: a column per
        variable, at least one; the empty string is unbound.

        >>> t = Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Blank(0)),), Labels("x"))
        >>> for quads in t.instantiate_all([[Term("<urn:a>"), Term('"a literal"')]], 7):
        ...     print([str(quad) for quad in quads])
        ['<urn:a> <urn:p> _:x_t7b0 .']
        []
        """
        numbers = range(first, first + len(columns[0]))
        compiled = self.compiled
        if compiled.nested or not compiled.rows:
            return map(self._instantiate, zip(*columns, strict=True), numbers)
        slots: list[Iterable[Term]] = [*columns, *map(repeat, compiled.constants)]
        slots += [
            [self.labels.of_template(number, index) for number in numbers]
            for index in range(compiled.blanks)
        ]
        by_pattern = [
            make_quads(
                zip(
                    slots[s],
                    slots[p],
                    slots[o],
                    repeat(None) if g is None else slots[g],
                    strict=False,
                )
            )
            for s, p, o, g, _ in compiled.rows
        ]
        # constants have no end
        quads: Iterator[tuple[Quad, ...]] = islice(zip(*by_pattern, strict=False), len(numbers))
        if self._may_coincide:
            quads = map(tuple, map(dict.fromkeys, quads))
        gaps = self._gaps(columns)
        if not gaps:
            return quads
        return (
            self._instantiate(solution, number) if number - first in gaps else by_column
            for by_column, solution, number in zip(
                quads, zip(*columns, strict=True), numbers, strict=False
            )
        )

    def _instantiate(self, solution: Sequence[Term], number: int) -> tuple[Quad, ...]:
        return tuple(self.instantiate(solution, number))

    @cached_property
    def _may_coincide(self) -> bool:
        """Whether two quads of one solution may be the same."""
        return any(coinciding(self.live))

    def _gaps(self, columns: Sequence[list[Term]]) -> set[int]:
        """The places of solutions that lack a quad, because a term is unbound or not allowed there."""
        gaps = set[int]()
        rows = self.compiled.rows
        slots = {slot for row in rows for slot in row[:4] if slot is not None}
        for index in slots & set(range(len(self.variables))):
            if not all(columns[index]):
                gaps.update(place for place, term in enumerate(columns[index]) if not term)
        for index, bad in {check for row in rows for check in row.checks}:
            if any(map(str.startswith, columns[index], repeat(bad))):
                gaps.update(
                    place for place, term in enumerate(columns[index]) if term.startswith(bad)
                )
        return gaps


class _Row(NamedTuple):
    """A pattern as indexes; see `Compiled`."""

    subject: int
    predicate: int
    object: int
    graph: int | None
    checks: tuple[tuple[int, tuple[str, ...]], ...]


class Compiled:
    """The patterns of a template as indexes into the list [solution, constants, blanks, triple terms]. `template`:
    whose patterns that can be legal are compiled.
    """

    def __init__(self, template: Template) -> None:
        live = template.live
        slots = [slot for pattern in live for slot in pattern if slot is not None]
        flat = [part for slot in slots for part in _leaves(slot)]
        terms = dict.fromkeys(slot.term for slot in flat if isinstance(slot, Constant))
        self._constants = {term: index for index, term in enumerate(terms, len(template.variables))}
        # the terms of the template
        self.constants = tuple(terms)
        # how many blank nodes it has
        self.blanks = 1 + max((slot.index for slot in flat if isinstance(slot, Blank)), default=-1)
        self._first_blank = len(template.variables) + len(self.constants)
        self._nested: dict[Nested, int] = {}
        self._nested_rows: list[_Row] = []
        # the patterns; what a variable holds is left to check
        self.rows = tuple(self._row(pattern) for pattern in live)
        # its triple terms, inner ones first
        self.nested = tuple(self._nested_rows)

    def _row(self, slots: Pattern | Nested) -> _Row:
        indexes: list[int | None] = [None if slot is None else self._index(slot) for slot in slots]
        checks = tuple(
            (slot.index, FORBIDDEN[name])
            for slot, name in zip(slots, FORBIDDEN, strict=False)
            if isinstance(slot, Variable) and FORBIDDEN[name]
        )
        subject, predicate, object, graph = (*indexes, None)[:4]
        assert subject is not None
        assert predicate is not None
        assert object is not None
        return _Row(subject, predicate, object, graph, checks)

    def _index(self, slot: Slot) -> int:
        match slot:
            case Variable(index):
                return index
            case Constant(term):
                return self._constants[term]
            case Blank(index):
                return self._first_blank + index
            case Nested():
                if slot not in self._nested:
                    row = self._row(slot)  # inner triple terms come first
                    self._nested[slot] = self._first_blank + self.blanks + len(self._nested_rows)
                    self._nested_rows.append(row)
                return self._nested[slot]


def _leaves(slot: Slot) -> list[Slot]:
    return [leaf for part in slot for leaf in _leaves(part)] if isinstance(slot, Nested) else [slot]
