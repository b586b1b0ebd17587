"""Converts batches of solutions to record batches of `logs/columns/`, over an assembly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from construct_messages.construct.assembly import Assembly
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.quads import MessageRows
from construct_messages.logs.columns.solutions import SolutionRows, other_solutions
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template


class QueryRows:
    """The rows of the solutions or messages of a query; without a layout in the options, those of solutions."""

    def __init__(
        self,
        assembly: Assembly,
        template: Template,
        options: ColumnOptions,
        origin: Mapping[str, str],
    ) -> None:
        self._assembly, self._template = assembly, template
        self._solutions: SolutionRows | None = None
        if options.layout in (None, "solutions"):
            if not assembly.is_plain:
                raise other_solutions()
            options = replace(options, layout="solutions")
            self._solutions = SolutionRows(template.variables, options, origin)
        else:
            self._messages = MessageRows(options, origin)

    def feed(self, solutions: Solutions) -> Iterator[Any]:
        """Returns the record batches that a batch of solutions completes."""
        if self._solutions is not None:
            yield from self._solutions.add(self._assembly.take(solutions))
        elif self._assembly.is_plain:
            first = self._assembly.message_count
            taken = self._assembly.take(solutions)
            yield from self._messages.add_solutions(self._template, taken, first)
        else:
            for message in self._assembly.feed(solutions):
                yield from self._messages.add(message)

    def finish(self) -> Iterator[Any]:
        """Returns the last record batches; only for a complete result."""
        if self._solutions is not None:
            yield from self._solutions.finish()
            return
        for message in self._assembly.finish():
            yield from self._messages.add(message)
        yield from self._messages.finish()
