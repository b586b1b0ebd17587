"""Messages from solutions: the template as SQL, with grouping, distinct messages and skolemization.

SPARQL 1.2 Query, section 16.2 (CONSTRUCT). A message is one string: its quads as canonical N-Quads lines with line
breaks between them; an empty message is an empty string. The rules for quads that are left out of a message are
defined in `rdf/template.py` alone: `FORBIDDEN`, `live` and `coinciding` are used here, and the result must equal
`Template.instantiate`. This module does not use queries, and does not write logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql.functions import expr

from construct_messages.construct.assembly import Options
from construct_messages.query.algebra.nodes import Var
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.template import (
    FORBIDDEN,
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
    coinciding,
)
from construct_messages.spark.dialect import case, literal
from construct_messages.sparql.relational.relation import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


MESSAGE: Final = "message"
"""The column of messages."""

_NUMBER: Final = (
    "number"  # the column of a solution's own number, which grows along an ordered frame
)
_DIGITS: Final = f"CAST({_NUMBER} AS STRING)"
_NONE: Final = "'0'"  # instead of a number: blank nodes of the template compare by their slot
_FIRST: Final = f"min({_NUMBER}) AS {_NUMBER}"
_IDENTITY: Final = "identity"
_HERE: Final = "\0"  # the place of the number in a label
_BREAK: Final = literal("\n")
# a blank node in a triple term, whose only literal, if any, is its last term
_BLANKS: Final = literal(r'\G([^"]*? )_:([^ ]+)')


# --- solutions to messages --------------------------------------------------------------------------------------------


def relabelled(variables: Iterable[str], labels: Labels) -> list[str]:
    """Returns SQL of the variables' columns, with new labels for the blank nodes of the data, as for every source.

    Otherwise a label of the table might equal one of the template.
    """
    before = f"_:{labels.of_data}"
    return [
        f"{_relabelled(name, before, '')} AS {name}" for name in map(column, map(Var, variables))
    ]


def messages(
    solutions: DataFrame,
    template: Template,
    options: Options,
    *,
    ordered: bool,
    columns: Sequence[str] = ("*",),
) -> DataFrame:
    """Instantiates the template: a frame of one column, `message`.

    The solutions have a column for each of the template's variables; `columns` is SQL of them, for example from
    `relabelled`. If `ordered`, their order is that of the messages (of groups: of their first solutions).
    """
    # a separate column: inside another expression the number might not be computed for every solution
    frame = solutions.selectExpr(*columns, f"monotonically_increasing_id() AS {_NUMBER}")
    has_number = bool(options.grouping.by) or options.distinct or options.max_messages is not None
    if options.grouping.by:
        frame = _of_groups(frame, template, options)
    else:
        frame = frame.selectExpr(
            f"{message_sql(template, _DIGITS, skolemize=options.skolemize)} AS {MESSAGE}",
            *((f"{_identity(template)} AS {_IDENTITY}",) if options.distinct else ()),
            *((_NUMBER,) if has_number else ()),
        )
    if options.distinct:
        frame = frame.groupBy(_IDENTITY).agg(
            *map(expr, (f"min_by({MESSAGE}, {_NUMBER}) AS {MESSAGE}", _FIRST))
        )
    if options.skip_empty:
        frame = frame.filter(f"{MESSAGE} <> ''")
    # a shuffle loses the order, and so does a limit, which combines partitions as they finish
    if ordered and has_number:
        frame = frame.orderBy(_NUMBER)
    if options.max_messages is not None:
        frame = frame.limit(options.max_messages)
    return frame.select(MESSAGE) if has_number else frame


def _of_groups(numbered: DataFrame, template: Template, options: Options) -> DataFrame:
    """Returns a message for the solutions of each group, in their order."""
    keys = [column(Var(name)) for name in options.grouping.by]
    lines = _array(_lines(template, template.live, _DIGITS, options.skolemize))
    statements = f"flatten(transform(array_sort(collect_list(struct({_NUMBER}, lines))), solution -> solution.lines))"
    wanted = [f"concat_ws({_BREAK}, array_distinct({statements})) AS {MESSAGE}", _FIRST]
    columns = [*keys, _NUMBER, f"{lines} AS lines"]
    if options.distinct:
        # as for one solution, but the blank nodes of the template differ between the solutions of the group
        own = [pattern for pattern in template.live if any(map(_is_fresh, pattern))]
        ground = [pattern for pattern in template.live if pattern not in own]
        columns.append(f"{_array(_lines(template, ground, _NONE, None))} AS ground")
        columns.append(
            f"sha2(nullif({_set(_array(_lines(template, own, _NONE, None)))}, ''), 256) AS fresh"
        )
        everything = f"{_set('flatten(collect_list(ground))')}, array_sort(collect_list(fresh))"
        wanted.append(f"sha2(concat_ws({_BREAK}, {everything}), 256) AS {_IDENTITY}")
    return numbered.selectExpr(*columns).groupBy(*keys).agg(*map(expr, wanted))


def _identity(template: Template) -> str:
    """Returns SQL of a hash that is equal for messages that differ only in the template's blank nodes."""
    return f"sha2({_set(_array(_lines(template, template.live, _NONE, None)))}, 256)"


def _set(array: str) -> str:
    return f"concat_ws({_BREAK}, array_sort(array_distinct({array})))"


def _array(strings: Sequence[str]) -> str:
    return f"CAST(array({', '.join(strings)}) AS ARRAY<STRING>)"  # without elements it would be one of VOID


def _is_fresh(slot: Slot | None) -> bool:
    return any(map(_is_fresh, slot)) if isinstance(slot, Nested) else isinstance(slot, Blank)


# --- slots to SQL -----------------------------------------------------------------------------------------------------


def message_sql(template: Template, number: str, *, skolemize: str | None = None) -> str:
    """Returns the message of a solution as an SQL expression of type STRING, never NULL.

    `number` is SQL of digits that no other solution has, which makes blank nodes of the template fresh.

    >>> from construct_messages.rdf.terms import Term
    >>> template = Template(("x",), (Pattern(Blank(0), Constant(Term("<urn:p>")), Variable(0)),), Labels("x"))
    >>> print(message_sql(template, "n"))
    concat_ws(CAST(X'0A' AS STRING), concat('_:x_t', n, 'b0 <urn:p> ', v_x, ' .'))
    """
    lines = _lines(template, template.live, number, skolemize)
    if any(coinciding(template.live)):
        return f"concat_ws({_BREAK}, array_distinct({_array(lines)}))"
    return f"concat_ws({', '.join((_BREAK, *lines))})"


def _lines(
    template: Template, patterns: Sequence[Pattern], number: str, skolemize: str | None
) -> list[str]:
    """Returns SQL of the line of each pattern: NULL, as `concat` is, where a part is missing or illegal."""
    slots = _Slots(template, number, skolemize)
    return [f"concat({', '.join(_merged(slots.line(pattern)))})" for pattern in patterns]


class _Piece(NamedTuple):
    """A part of a line: text as it is, or an SQL expression."""

    is_text: bool
    content: str


def _merged(pieces: Iterator[_Piece]) -> Iterator[str]:
    """Yields the pieces as SQL, with neighbouring texts as one."""
    for is_text, run in groupby(pieces, key=itemgetter(0)):
        contents = [piece.content for piece in run]
        yield from [literal("".join(contents))] if is_text else contents


class _Slots:
    def __init__(self, template: Template, number: str, skolemize: str | None) -> None:
        self._template, self._number, self._skolemize = template, number, skolemize

    def line(self, pattern: Pattern) -> Iterator[_Piece]:
        for slot, position in zip(pattern, FORBIDDEN, strict=True):
            if slot is not None:
                yield from self._pieces(slot, position)
                yield _Piece(True, " ")
        yield _Piece(True, ".")

    def _pieces(self, slot: Slot, position: str) -> Iterator[_Piece]:
        match slot:
            case Constant(term):
                yield _Piece(True, term)
            case Variable(index):
                yield _Piece(
                    False, self._value(column(Var(self._template.variables[index])), position)
                )
            case Blank(index):
                before, after = self._template.labels.of_template(_HERE, index).split(_HERE)
                yield from (_Piece(True, before), _Piece(False, self._number), _Piece(True, after))
            case Nested():
                yield _Piece(True, "<<( ")
                for part, name in zip(slot, FORBIDDEN, strict=False):
                    yield from self._pieces(part, name)
                    yield _Piece(True, " ")
                yield _Piece(True, ")>>")

    def _value(self, name: str, position: str) -> str:
        value = name if self._skolemize is None else _relabelled(name, f"<{self._skolemize}", ">")
        illegal = " OR ".join(
            f"startswith({name}, {literal(start)})" for start in FORBIDDEN[position]
        )
        return f"if({illegal}, NULL, {value})" if illegal else value


def _relabelled(name: str, before: str, after: str) -> str:
    """Returns SQL of a column of terms: their blank nodes begin with `before` instead of `_:`, and end with `after`."""
    replacement = f"$1{before.replace('$', chr(92) + '$')}$2{after}"
    return case(
        (
            f"startswith({name}, '_:')",
            f"concat({literal(before)}, substring({name}, 3), {literal(after)})",
        ),
        (
            f"startswith({name}, '<<(')",
            f"regexp_replace({name}, {_BLANKS}, {literal(replacement)})",
        ),
        otherwise=name,
    )
