"""`WrittenQuery`: the original text of a query that was rewritten to a SELECT.

An endpoint that rejects the SELECT names positions in the SELECT. They are translated to positions in the original
text.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_NO_LINE_BREAK: Final = re.compile(r"[^\r\n]")
# compiled when an endpoint rejects a query, which is rare
_PLACE: Final = (
    r"(?i)(?P<before>\b(?:line|at) )(?P<line>\d{1,9})(?P<between>, ?column |:)(?P<column>\d{1,9})"
)


class WrittenQuery(NamedTuple):
    """A CONSTRUCT query as its author wrote it."""

    # the query; its template is blank, because engines support fewer templates than this package
    text: str
    base: str | None = None  # the base IRI that its relative IRIs resolve against
    # IRI by prefix, of the prefixes that it uses but does not declare
    prefixes: Mapping[str, str] = {}
    where: tuple[int, int] | None = None  # the offsets of its WHERE group

    @classmethod
    def of(
        cls,
        text: str,
        template: tuple[int, int] | None,
        base: str | None,
        prefixes: Mapping[str, str],
        where: tuple[int, int] | None = None,
    ) -> "WrittenQuery":
        """Makes the query from these offsets of the inside of its template; None in the short form.

        >>> WrittenQuery.of("CONSTRUCT { ?s ?p ?o }\\nWHERE {}", (11, 21), None, {}).text
        'CONSTRUCT {          }\\nWHERE {}'
        """
        if template is not None:
            start, end = template
            text = text[:start] + _NO_LINE_BREAK.sub(" ", text[start:end]) + text[end:]
        return cls(text, base, prefixes, where)

    def translated(self, message: str, select: str) -> tuple[str, bool]:
        """Returns an endpoint's error with positions in this query, and whether all positions could be translated.

        Oxigraph writes a position as `1:20`, QLever as `line 1:20`, Jena, RDF4J, GraphDB and Blazegraph as `line 1,
        column 20`, and Virtuoso only the line, which has the same number in the SELECT.

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
        """The offset in this query of a character of the SELECT; None if only the SELECT has it."""
        if self.where is not None:
            start, end = self.where
            found = select.rfind(self.text[start:end])
            if 0 <= found <= offset <= found + end - start:
                return offset - found + start
        if self.text.endswith(select[offset:]):
            return len(self.text) - len(select) + offset
        return offset if self.text.startswith(select[:offset]) else None


def _offset(text: str, line: int, column: int) -> int | None:
    """The offset of a position; the column may be one more than the line has."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    start = sum(len(before) + 1 for before in lines[: line - 1])
    return start + min(max(column, 1) - 1, len(lines[line - 1]))


def _column(text: str, offset: int) -> int:
    return offset - text.rfind("\n", 0, offset)
