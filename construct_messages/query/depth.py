"""Rejects queries that would overflow the stack of the embedded engine, which parses and plans by recursion.

An overflow ends the process. Nested brackets make a query deep, and so do many parts in a row: `a UNION b UNION c` is
read as `(a UNION b) UNION c` (SPARQL 1.2 Query, section 18.2.2).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from construct_messages.query.tokens import error, tokenize

MOST_NESTED: Final = 500
"""The most nested brackets, and the most `!` in a row."""

MOST_JOINED: Final = 4000
"""The most operators that join the parts of one group or expression; those that take more stack count twice."""

_OPENING: Final = frozenset(("{", "(", "[", "<<", "<<(", "{|"))
_CLOSING: Final = frozenset(("}", ")", "]", ">>", ")>>", "|}"))
_JOINING: Final = {
    "UNION": 1,
    "FILTER": 1,
    "OPTIONAL": 2,
    "MINUS": 2,
    "BIND": 2,
    "LATERAL": 2,
} | dict.fromkeys("|&+-*/", 1)
_HINT: Final = "nest less, or split the query into several"


@lru_cache(maxsize=16)  # a continuous query is evaluated again and again
def check_depth(text: str) -> None:
    """Checks that a query is neither nested nor joined more than the embedded engine can take.

    >>> check_depth("ASK { FILTER(" + 100 * "(" + "1" + 100 * ")" + ") }")
    >>> check_depth("ASK { FILTER(" + 1000 * "(" + "1" + 1000 * ")" + ") }")
    Traceback (most recent call last):
    construct_messages.rdf.errors.QueryError: line 1, column 511: the query nests more than 500 deep
      hint: nest less, or split the query into several
    """
    if len(text) <= MOST_NESTED:
        return
    joined, negations = [0], 0
    for kind, written, start in tokenize(text):
        negations = negations + 1 if written == "!" else 0
        if kind == "mark" and written in _OPENING:
            joined.append(0)
        elif kind == "mark" and written in _CLOSING:
            if len(joined) > 1:
                joined.pop()
        elif kind in ("other", "word"):
            joined[-1] += _JOINING.get(written.upper(), 0)
            if joined[-1] > MOST_JOINED:
                raise error(
                    text, start, f"the query joins more than {MOST_JOINED} parts in a row", _HINT
                )
        if len(joined) > MOST_NESTED or negations > MOST_NESTED:
            raise error(text, start, f"the query nests more than {MOST_NESTED} deep", _HINT)
