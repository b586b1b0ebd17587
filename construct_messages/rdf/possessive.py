"""Possessive quantifiers of Python 3.11.0 to 3.11.4, which match groups wrongly: those of Debian 12, for one.

`(?:ab?c)*+` matches `a`, and `(["'])(?:[^"']|(?!\\1)["'])*+\\1` does not match `"a"` (issues 100061 and 106052 of
CPython): hardly any query could be read. As in Python 3.11.5, such a quantifier is compiled as the atomic group that it
stands for. This holds for all expressions that the process compiles later.
"""

from __future__ import annotations

import re
from typing import Any


def mend() -> None:
    """Mends `re.compile` of these versions; call it before an expression is compiled."""
    parser = re._parser  # type: ignore[attr-defined] # these versions are final, and so are their internals
    parse = parser.parse

    def mended(*arguments: Any, **options: Any) -> Any:
        return made_atomic(parse(*arguments, **options))

    parser.parse = mended


def made_atomic(part: Any) -> Any:
    """A part of a parsed expression, in which possessive quantifiers of groups are atomic groups now.

    Those of single characters are right, and are not changed.
    """
    parser, compiler = re._parser, re._compiler  # type: ignore[attr-defined]
    if isinstance(part, parser.SubPattern):
        for place, (operator, value) in enumerate(part.data):
            made_atomic(value)
            if operator is parser.POSSESSIVE_REPEAT and not compiler._simple(value[2]):
                repeated = parser.SubPattern(part.state, [(parser.MAX_REPEAT, value)])
                part.data[place] = parser.ATOMIC_GROUP, repeated
    elif isinstance(part, list | tuple):
        for each in part:
            made_atomic(each)
    return part
