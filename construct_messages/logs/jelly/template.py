"""Writes batches of a template's solutions as Jelly frames, without creating messages.

Most rows of a frame repeat the subject and add a constant predicate, often a constant object too. The bytes of such a
row depend only on the table ids that the previous IRI makes unnecessary, so they are prepared. Prepared rows are valid
as long as the tables, which report changes, keep the referenced entries. Larger frames, and solutions that drop a
triple or produce one twice, are written by `Template.instantiate` and `FrameWriter.write`. Both ways produce the same
bytes (tests/logs/jelly/test_template.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from construct_messages.logs.encoded import EncodedMessages
from construct_messages.logs.jelly.columns import Batch, LiteralHeads, Literals, Part, spliced
from construct_messages.logs.jelly.frames import FrameWriter, Statement
from construct_messages.logs.jelly.tables import Table
from construct_messages.logs.jelly.tags import OBJECT, PREDICATE, SUBJECT, row
from construct_messages.logs.jelly.wire import delimited
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import (
    FORBIDDEN,
    Constant,
    Pattern,
    Slot,
    Template,
    Variable,
    coinciding,
)
from construct_messages.rdf.terms import Term, is_literal, is_triple


class TemplateFrames:
    """Encodes batches of solutions as delimited frames: the same bytes as `encode(Message(instantiate(…)))`.

    Args:
        writer: writes the frames of the stream.
        template: a template that `layout.is_laid_out` accepts.
    """

    def __init__(self, writer: FrameWriter, template: Template) -> None:
        self._writer, self._template = writer, template
        patterns = template.live
        self._layout = _Layout(template)
        self._prepared = _Prepared(writer, patterns, self._layout)
        self._twins = any(coinciding(patterns))
        self._checks = {
            (slot.index, FORBIDDEN[position])
            for pattern in patterns
            for slot, position in zip(pattern, FORBIDDEN, strict=True)
            if isinstance(slot, Variable)
        }

    def encode(self, solutions: Solutions, first: int) -> EncodedMessages:
        """Encodes a batch, one frame per solution; see `TemplateEncoder.encode`."""
        writer, prepared, layout = self._writer, self._prepared, self._layout
        batch = Batch(solutions)
        are_whole = all(batch.has_all(index, forbidden) for index, forbidden in self._checks)
        literals: list[Literals | None] = []
        entered = -1
        rows, steps = None, list[_Step]()
        out = []
        for number, solution in enumerate(solutions):
            if not (
                writer.is_open and prepared.holds() and (are_whole or self._is_whole(solution))
            ):
                out.append(self._encode_plainly(solution, first + number))
                continue
            terms = layout.terms(solution, first + number)
            if self._twins and layout.has_twins(terms):
                out.append(self._encode_plainly(solution, first + number))
                continue
            if entered < 0:  # now the writer has the entries of one message
                entered = writer.datatypes.entered
                literals = [
                    batch.literals(index, writer.suffixes) for index in range(len(solution))
                ]
            elif entered != writer.datatypes.entered:
                # the message may have replaced the entry of a datatype
                rows, literals = None, [None] * len(literals)
            if rows is not prepared.rows:
                rows = prepared.rows
                steps = layout.steps(rows, batch, literals)
            out.append(prepared.frame(terms, steps, number))
        return EncodedMessages(out)

    def _encode_plainly(self, solution: tuple[Term, ...], number: int) -> bytes:
        return delimited(self._writer.write(Message(self._template.instantiate(solution, number))))

    def _is_whole(self, solution: tuple[Term, ...]) -> bool:
        """Returns whether the message has every triple of the template."""
        return not any(
            not solution[index] or (forbidden and solution[index].startswith(forbidden))
            for index, forbidden in self._checks
        )


class _Layout:
    """Statements as indexes into the list of a solution's terms, the constants and the blank nodes."""

    def __init__(self, template: Template) -> None:
        compiled = template.compiled
        self._labels, self._variables = template.labels, len(template.variables)
        self._constants, self._blanks = compiled.constants, range(compiled.blanks)
        self.indexes = [row[:4] for row in compiled.rows]

    def terms(self, solution: tuple[Term, ...], number: int) -> list[Term]:
        """Returns the list of terms for one solution."""
        terms = [*solution, *self._constants]
        if self._blanks:
            terms += [self._labels.of_template(number, index) for index in self._blanks]
        return terms

    def steps(
        self, rows: Sequence[_IndexedRow], batch: Batch, literals: Sequence[Literals | None]
    ) -> list[_Step]:
        """Groups the rows of a batch's messages into steps; neighbouring rows of literals and constants are a run."""
        steps: list[_Step] = []
        for number, (indexes, prepared) in enumerate(rows):
            place = indexes[2]
            column = literals[place] if place < self._variables else None
            is_run = (
                prepared is not None
                and prepared.adds
                and (prepared.is_complete or column is not None)
            )
            follows = is_run and steps and steps[-1].is_run
            if not follows or self._may_repeat(rows[number - 1][0][2], place, batch):
                steps.append(_Step(len(batch), is_run))
            steps[-1].rows.append((indexes, prepared, column))
        return steps

    def _may_repeat(self, one: int, other: int, batch: Batch) -> bool:
        """Returns whether two objects of a message, each constant or of a column, are the same anywhere in a batch."""
        one, other = sorted((one, other))
        if one >= self._variables or one == other:
            return one == other
        if other >= self._variables:
            return batch.has(one, self._constants[other - self._variables])
        return batch.have_same(one, other)

    def has_twins(self, terms: Sequence[Term]) -> bool:
        """Returns whether two statements are the same."""
        return len({_statement(terms, indexes) for indexes in self.indexes}) < len(self.indexes)


_Indexes: TypeAlias = tuple[int, int, int, int | None]
_NO_INDEXES: Final[_Indexes] = (0, 0, 0, None)


def _statement(terms: Sequence[Term], indexes: _Indexes) -> Statement:
    s, p, o, g = indexes
    return terms[s], terms[p], terms[o], None if g is None else terms[g]


class _Row(NamedTuple):
    """A row with a constant predicate.

    `variants` are its bytes from the predicate up to the object, or to the end if that is constant, for each of the
    predicate's forms (see `Iri`). `end` is the last prefix and name after them. If `adds` is true, the row repeats the
    subject and the graph but not the predicate, so that these are all its bytes, including the head of a complete row.
    """

    prefix: int
    name: int
    variants: tuple[bytes, bytes, bytes, bytes]
    end: tuple[int, int]
    is_complete: bool
    adds: bool
    heads: dict[tuple[int, int], LiteralHeads]

    def heads_for(self, kind: bytes, variant: int, literals: Literals) -> LiteralHeads:
        """Returns the bytes before literals, in rows that add them."""
        rest = len(literals.kind)
        if (variant, rest) not in self.heads:
            self.heads[variant, rest] = LiteralHeads(kind, self.variants[variant], rest)
        return self.heads[variant, rest]


_IndexedRow: TypeAlias = tuple[_Indexes, _Row | None]


class _Step:
    """Consecutive rows of a batch's messages; those of a run are written for all messages together.

    The first bytes of a run depend on the previous IRI, which seldom varies: they are written for the first message.
    """

    __slots__ = ("_count", "_first", "_made", "_variant", "end", "is_run", "last", "rows")

    def __init__(self, count: int, is_run: bool) -> None:
        self._count, self.is_run = count, is_run
        self.rows: list[tuple[_Indexes, _Row | None, Literals | None]] = []
        self._variant, self._first = -1, 0
        self._made: list[bytes] = []
        self.last, self.end = _NO_INDEXES, (0, 0)

    def made(self, kind: bytes, prefix: int, name: int, number: int) -> bytes | None:
        """Returns the rows of a run in a message, after an IRI with these ids; None: the written ones begin
        differently.
        """
        row = self.rows[0][1]
        assert row is not None
        variant = (row.prefix == prefix) + 2 * (row.name == name + 1)
        if variant != self._variant:
            if self._variant >= 0:
                return None
            self._variant, self._first = variant, number
            self._make(kind, prefix, name)
        return self._made[number - self._first]

    def _make(self, kind: bytes, prefix: int, name: int) -> None:
        parts: list[Part] = []
        for indexes, prepared, literals in self.rows:
            assert prepared is not None
            variant = (prepared.prefix == prefix) + 2 * (prepared.name == name + 1)
            parts.append(
                prepared.variants[variant]
                if literals is None
                else (prepared.heads_for(kind, variant, literals), literals)
            )
            prefix, name = self.end = prepared.end
            self.last = indexes
        self._made = spliced(parts, self._first, self._count - self._first)


class _Prepared:
    """The prepared rows of a template, and their validity."""

    def __init__(self, writer: FrameWriter, patterns: Sequence[Pattern], layout: _Layout) -> None:
        self._writer, self._patterns, self._indexes = writer, patterns, layout.indexes
        prepared = [
            slot for pattern in patterns if _can_be_prepared(pattern) for slot in pattern[1:3]
        ]
        self._constants = {slot.term for slot in prepared if isinstance(slot, Constant)}
        # An entry is created at most once for each other term of a message, and then may have to skip the four that its
        # own statement needs.
        others = {slot for pattern in patterns for slot in pattern if slot is not None} - set(
            prepared
        )
        variables = {slot for slot in prepared if not isinstance(slot, Constant)}
        self._reserve = 5 * len(others | variables)
        self.rows: list[_IndexedRow] = []
        # the numbers of entries up to which the rows are valid
        self._limits: list[tuple[Table, int]] = []

    def holds(self) -> bool:
        """Returns whether prepared rows can write the next message; prepares them if they are out of date."""
        limits, writer = self._limits, self._writer
        # a writer that rejected a message has begun with new tables
        if limits and limits[0][0] is writer.names:
            for table, limit in limits:
                if table.entered > limit:
                    break
            else:
                return True
        self._limits = []
        iris = [writer.found(term) for term in self._constants if not is_literal(term)]
        suffixes = {term[term.rindex('"') + 1 :] for term in self._constants if is_literal(term)}
        if None in iris or not suffixes <= writer.suffixes.keys():
            return False
        found = [each for each in iris if each is not None]
        datatypes = [
            writer.datatypes.ids[suffix[3:-1]] for suffix in suffixes if suffix.startswith("^^")
        ]
        needed = [(writer.names, [each.name for each in found])]
        if writer.options.max_prefix_table_size:
            needed.append((writer.prefixes, [each.prefix for each in found]))
        if datatypes:
            needed.append((writer.datatypes, datatypes))
        limits = [
            (table, table.entered + table.spares(ids) - self._reserve) for table, ids in needed
        ]
        if any(table.entered > limit for table, limit in limits):
            return False
        self._limits = limits
        rows = [
            self._prepare(pattern, before is not None and _adds_predicate(before, pattern))
            if _can_be_prepared(pattern)
            else None
            for pattern, before in zip(self._patterns, [None, *self._patterns], strict=False)
        ]
        self.rows = list(zip(self._indexes, rows, strict=True))
        return True

    def _prepare(self, pattern: Pattern, adds: bool) -> _Row:
        writer = self._writer
        predicate = writer.found(_constant(pattern.predicate))
        assert predicate is not None  # `holds` has checked this
        end = predicate[:2]
        object = b""
        is_complete = isinstance(pattern.object, Constant)
        if is_complete:
            term = _constant(pattern.object)
            if is_literal(term):
                object = OBJECT.literal + writer.literal(term, (), [])
            else:
                found = writer.found(term)
                assert found is not None
                object = (
                    OBJECT.iri
                    + found.forms[(found.prefix == end[0]) + 2 * (found.name == end[1] + 1)]
                )
                end = found[:2]
        bodies = [PREDICATE.iri + form + object for form in predicate.forms]
        if is_complete and adds:
            bodies = [row(writer.kind, body) for body in bodies]
        full, same_prefix, next_name, neither = bodies
        return _Row(
            *predicate[:2], (full, same_prefix, next_name, neither), end, is_complete, adds, {}
        )

    def frame(self, terms: Sequence[Term], steps: Sequence[_Step], number: int) -> bytes:
        """Writes the frame of a message that has a statement for each pattern.

        Args:
            terms: the terms from the layout.
            steps: the steps of the solution's batch.
            number: the number of the solution in the batch.

        Raises:
            UnsupportedByFormat: as `FrameWriter.write`.
        """
        writer = self._writer
        writer.message_count += 1
        known, kind = writer.iris, writer.kind
        rows: list[bytes] = []
        last, last_object = None, writer.last[2]  # `last` has the indexes of the last statement
        try:
            for step in steps:
                if step.is_run and terms[step.rows[0][0][2]] != last_object:
                    made = step.made(kind, writer.prefix, writer.name, number)
                    if made is not None:
                        rows.append(made)
                        last, (writer.prefix, writer.name) = step.last, step.end
                        last_object = terms[last[2]]
                        continue
                for indexes, prepared, literals in step.rows:
                    object = terms[indexes[2]]
                    start: bytes | None = b""
                    if prepared is None or object == last_object or not prepared.adds:
                        if last is not None:
                            writer.last = _statement(terms, last)
                        statement = _statement(terms, indexes)
                        start = None
                        if prepared is not None and object != last_object:
                            start = self._start(statement, rows)
                        if start is None:
                            writer.statements((statement,), rows)
                    last, last_object = indexes, object
                    if start is None or prepared is None:
                        continue
                    own_prefix, own_name, variants, end, is_complete, adds, _ = prepared
                    body = variants[
                        (own_prefix == writer.prefix) + 2 * (own_name == writer.name + 1)
                    ]
                    writer.prefix, writer.name = end
                    if is_complete:
                        if adds:
                            rows.append(body)
                            continue
                    elif literals is not None:
                        body += OBJECT.literal + literals.value(number)
                    elif (found := known.get(object)) is not None:
                        body += writer.field(OBJECT.iri, found)
                    else:
                        body += writer.term(OBJECT, object, _statement(terms, indexes), rows)
                    rows.append(row(kind, start + body if start else body))
        except UnsupportedByFormat as error:
            raise writer.refused(error) from None
        if last is not None:
            writer.last = _statement(terms, last)
        return delimited(b"".join(rows))

    def _start(self, statement: Statement, rows: list[bytes]) -> bytes | None:
        """Returns the bytes before the predicate, in a row that does not only add one; None: the row cannot be
        prepared.
        """
        writer = self._writer
        subject, predicate, _, graph = statement
        last_subject, last_predicate, _, last_graph = writer.last
        if predicate == last_predicate or graph != last_graph:
            return None
        if subject == last_subject:
            return b""
        return writer.term(SUBJECT, subject, statement, rows)


def _can_be_prepared(pattern: Pattern) -> bool:
    """Returns whether the predicate is constant, and the object is not a constant that the writer may reject."""
    return isinstance(pattern.predicate, Constant) and not (
        isinstance(pattern.object, Constant) and is_triple(pattern.object.term)
    )


def _adds_predicate(before: Pattern, pattern: Pattern) -> bool:
    """Returns whether a row repeats the subject and the graph of the previous one, but not its predicate."""
    return (
        pattern.subject == before.subject
        and pattern.graph == before.graph
        and isinstance(before.predicate, Constant)
        and pattern.predicate != before.predicate
    )


def _constant(slot: Slot) -> Term:
    assert isinstance(slot, Constant)  # `_can_be_prepared` has checked this
    return slot.term
