"""`WrittenQuery`: a query as its author wrote it, for the SELECT that was made of it.

An engine that refuses the SELECT names places in that. Asked about the query as written it names those that the author
sees. Nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyoxigraph as ox

from construct_messages.query.full_names import names_in_full

_NO_LINE_BREAK: Final = re.compile(r"[^\r\n]")
# compiled when an endpoint refuses a query, which is seldom
_PLACE: Final = (
    r"(?i)(?P<before>\b(?:line|at) )(?P<line>\d{1,9})(?P<between>, ?column |:)(?P<column>\d{1,9})"
)


@dataclass(frozen=True)
class WrittenQuery:
    """A CONSTRUCT query to ask an engine about.

    Args:
        text: the query; the inside of its template is blank, because engines know less of templates than this package.
        base: the base IRI that its relative IRIs resolve against.
        prefixes: those that it uses without declaring them, by their names.
        where: the offsets of its WHERE group.
    """

    text: str
    base: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)
    where: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        text: str,
        template: tuple[int, int] | None,
        base: str | None,
        prefixes: Mapping[str, str],
        where: tuple[int, int] | None = None,
    ) -> WrittenQuery:
        """The query with these offsets of the inside of its template; None: in the short form there is none.

        >>> WrittenQuery.of("CONSTRUCT { ?s ?p ?o }\\nWHERE {}", (11, 21), None, {}).text
        'CONSTRUCT {          }\\nWHERE {}'
        """
        if template is not None:
            start, end = template
            text = text[:start] + _NO_LINE_BREAK.sub(" ", text[start:end]) + text[end:]
        return cls(text, base, prefixes, where)

    def refusal(self) -> SyntaxError | None:
        """Returns why the embedded engine refuses the query; None: it does not."""
        try:
            ox.Store().query(
                names_in_full(self.text), base_iri=self.base, prefixes=dict(self.prefixes)
            )
        except SyntaxError as error:
            return error
        except (OSError, RuntimeError, ValueError):
            pass  # it is legal, and cannot be planned
        return None

    def translated(self, message: str, select: str) -> tuple[str, bool]:
        """The refusal of an endpoint with the places of this query, and whether all places in it are such.

        Oxigraph names a place as `1:20`, QLever as `line 1:20`, Jena, RDF4J, GraphDB and Blazegraph as
        `line 1, column 20`, and Virtuoso only the line, which has the same number in the SELECT.

        Args:
            message: what the endpoint says.
            select: the text that it was asked.

        >>> text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }"
        >>> query = WrittenQuery.of(text, None, None, {}, (29, 38))
        >>> query.translated("Encountered } at line 1, column 35.", "SELECT ?s ?p ?o WHERE { ?s ?p } LIMIT 9")
        ('Encountered } at line 1, column 35.', False)
        >>> query.translated("error at 1:31: expected [", "SELECT ?s ?p ?o WHERE { ?s ?p } LIMIT 9")
        ('error at 1:38: expected [', True)
        """
        known = True

        def translate(place: re.Match[str]) -> str:
            nonlocal known
            offset = _offset(select, int(place["line"]), int(place["column"]))
            there = None if offset is None else self._place(select, offset)
            if offset is None or there is None:
                known = False
                return place[0]
            line = self.text.count("\n", 0, there) + 1
            # some engines count columns from 0
            column = int(place["column"]) + _column(self.text, there) - _column(select, offset)
            return f"{place['before']}{line}{place['between']}{column}"

        return re.sub(_PLACE, translate, message), known

    def _place(self, select: str, offset: int) -> int | None:
        """The offset in this query of a character of the SELECT; None: the SELECT alone has it."""
        if self.where is not None:
            start, end = self.where
            found = select.rfind(self.text[start:end])
            if 0 <= found <= offset <= found + end - start:
                return offset - found + start
        if self.text.endswith(select[offset:]):
            return len(self.text) - len(select) + offset
        return offset if self.text.startswith(select[:offset]) else None


def _offset(text: str, line: int, column: int) -> int | None:
    """The offset of a place; the column may be one more than the line has."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    start = sum(len(before) + 1 for before in lines[: line - 1])
    return start + min(max(column, 1) - 1, len(lines[line - 1]))


def _column(text: str, offset: int) -> int:
    return offset - text.rfind("\n", 0, offset)
