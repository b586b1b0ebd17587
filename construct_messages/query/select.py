"""`Select`: the rewritten query as its verbatim pieces, so that a change replaces one piece and keeps the rest.

The pieces are those of SPARQL 1.2's SelectQuery (section 19.8, [7]) in their order; concatenated they are the text.
Nothing here reads query text: `rewrite.py` cuts the pieces, `pages.py` and the methods here put others in their place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Select:
    """A SELECT query in verbatim pieces; `str()` is its text.

    Args:
        prologue: everything before the keyword SELECT (BOM, DEFINE, BASE, PREFIX, comments).
        head: `SELECT ?a ?b` with the white space behind it.
        variables: the projected names in order, without `?`; never empty.
        dataset: what stands before the WHERE group: FROM clauses, Blazegraph's WITH, the keyword WHERE.
        group: the WHERE group, from `{` to `}`.
        aggregation: GROUP BY and HAVING.
        order: ORDER BY.
        slice: LIMIT and OFFSET, as written.
        limit: the value of LIMIT, None where there is none or it is no number.
        offset: the value of OFFSET, 0 where there is none.
        values: the trailing VALUES clause and whatever else follows.
    """

    prologue: str
    head: str
    variables: tuple[str, ...]
    dataset: str
    group: str
    aggregation: str = ""
    order: str = ""
    slice: str = ""
    limit: int | None = None
    offset: int = 0
    values: str = ""

    def __str__(self) -> str:
        return "".join(
            (
                self.prologue,
                self.head,
                self.dataset,
                self.group,
                self.aggregation,
                self.order,
                self.slice,
                self.values,
            )
        )
