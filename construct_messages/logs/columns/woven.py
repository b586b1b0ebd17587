"""The parts of quads as columns: of any quads, and of the solutions of a template, without its messages.

The quads of a solution follow each other: each column of a part is woven from those of the template's variables, blank
nodes and constants. The places of the parts in the columns are the same in every batch of a size, and are cached.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final

from construct_messages.logs.columns.arrow import arrow, joined
from construct_messages.logs.columns.characters import characters, term_array
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template

_OBJECT: Final = 2


def columns_of(terms: Sequence[Sequence[str | None]], raw: bool) -> list[Any]:
    """Returns the columns of quads, of their subjects, predicates, objects and graphs.

    Args:
        terms: one sequence for each part; None: the default graph.
        raw: whether terms are N-Triples; else objects have columns of datatypes and of languages, too.
    """
    pa = arrow()
    if raw:
        return [pa.array(column, pa.string()) for column in terms]
    return [
        column
        for position, part in enumerate(terms)
        for column in _parts(pa.array(part, pa.string()), raw, position)
    ]


def _parts(terms: Any, raw: bool, position: int) -> list[Any]:
    """The columns of an array of terms at one position of quads."""
    pa = arrow()
    if raw:
        return [terms]
    column = characters(terms)
    if position != _OBJECT:
        return [column.array]
    kind = column.kind
    if kind is not None and not column.array.null_count:
        return [
            column.array,
            *(
                pa.nulls(len(terms), pa.string()) if part is None else pa.repeat(part, len(terms))
                for part in (kind.datatype, kind.language)
            ),
        ]
    return [
        column.array,
        pa.array([each and each.datatype for each in column.kinds], pa.string()),
        pa.array([each and each.language for each in column.kinds], pa.string()),
    ]


class WovenColumns:
    """The columns of quads of batches of solutions.

    Args:
        template: of the solutions.
        raw: see `columns_of`.

    Attributes:
        template: of the solutions.
    """

    def __init__(self, template: Template, raw: bool) -> None:
        self.template, self._raw = template, raw
        self._variable = len(template.variables)
        self._constants = [
            term_array([constant.encode()]) for constant in template.compiled.constants
        ]
        self._positions = list(zip(*(row[:4] for row in template.compiled.rows), strict=True))
        self._count = 0
        # of a batch of `count` solutions: the solution of each quad, from 0; by position, places in the columns, and
        # columns of constants only
        self._rows: Any = None
        self._places: dict[int, Any] = {}
        self._fixed: dict[int, list[Any]] = {}

    def columns(self, batches: Sequence[Solutions], first: int) -> list[Any] | None:
        """Returns the columns of consecutive batches; None: some solution lacks a quad.

        Args:
            batches: their columns are the template's variables, and the template is regular.
            first: the number of solutions before them.
        """
        variables = self._variables(batches)
        if variables is None:
            return None
        count = sum(map(len, batches))
        if count != self._count:
            self._count, self._rows = count, rows_repeated(count, len(self.template.compiled.rows))
            self._places, self._fixed = {}, {}
        numbers = range(first, first + count)
        slots: list[Any] = [*variables, *self._constants]
        for index in range(self.template.compiled.blanks):
            labels = self.template.labels
            slots.append(
                term_array([labels.of_template(number, index).encode() for number in numbers])
            )
        return [
            column
            for position, indexes in enumerate(self._positions)
            for column in self._woven(slots, position, indexes)
        ]

    def _variables(self, batches: Sequence[Solutions]) -> list[Any] | None:
        """The terms of variables; None: one is unbound, or where RDF does not allow it."""
        compute = arrow("compute")
        rows = self.template.compiled.rows
        used = {slot for row in rows for slot in row[:4] if slot is not None}
        arrays = [
            term_array(list(chain.from_iterable(solutions.utf8[place] for solutions in batches)))
            if place in used
            else None
            for place in range(self._variable)
        ]
        if any(array is not None and array.null_count for array in arrays):
            return None
        checks = {check for row in rows for check in row.checks}
        if any(
            compute.any(compute.starts_with(arrays[index], beginning)).as_py()
            for index, beginnings in checks
            for beginning in beginnings
        ):
            return None
        return arrays

    def _woven(
        self, slots: Sequence[Any], position: int, indexes: Sequence[int | None]
    ) -> list[Any]:
        """The columns at one position.

        Args:
            slots: the terms that patterns name by index: one for each solution, or one for all.
            position: of the quad.
            indexes: of the patterns; None: the default graph.
        """
        if position in self._fixed:
            return self._fixed[position]
        pa = arrow()
        used = list(dict.fromkeys(index for index in indexes if index is not None))
        if not used:
            found = [pa.nulls(self._count * len(indexes), pa.string())]
        else:
            parts = [_parts(slots[index], self._raw, position) for index in used]
            places = self._places.get(position)
            if places is None:
                places = self._places[position] = self._placed(slots, used, indexes)
            found = [joined(column).take(places) for column in zip(*parts, strict=True)]
        if all(self._is_constant(index) for index in used):
            self._fixed[position] = found
        return found

    def _is_constant(self, index: int) -> bool:
        return 0 <= index - self._variable < len(self._constants)

    def _placed(
        self, slots: Sequence[Any], used: Sequence[int], indexes: Sequence[int | None]
    ) -> Any:
        """The place of each part in the columns that are used, one after the other."""
        pa, compute = arrow(), arrow("compute")
        ends = accumulate([len(slots[index]) for index in used], initial=0)
        starts = dict(zip(used, ends, strict=False))  # the last one starts nothing
        begins = [0 if index is None else starts[index] for index in indexes]
        steps = [0 if index is None or self._is_constant(index) else 1 for index in indexes]
        taken = compute.multiply(self._rows, _tiled(steps, self._count))
        taken = compute.add(taken, _tiled(begins, self._count))
        if None in indexes:
            named_graphs = pa.array([index is not None for index in indexes] * self._count)
            taken = compute.if_else(named_graphs, taken, None)
        return taken


def rows_repeated(count: int, width: int) -> Any:
    """Returns the numbers of rows from 0, each `width` times.

    >>> rows_repeated(2, 3).to_pylist()
    [0, 0, 0, 1, 1, 1]
    """
    pa, compute = arrow(), arrow("compute")
    places = compute.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count * width), start=-1)
    return compute.divide(places, width)


def _tiled(values: Sequence[int], count: int) -> Any:
    """All values, one after the other, `count` times."""
    pa = arrow()
    tiled = array("q", values) * count
    return pa.Array.from_buffers(pa.int64(), len(tiled), [None, pa.py_buffer(tiled)])
