"""Regular expressions that are compiled on first use.

A start of the command line imports some fifty expressions and uses a few of them, and compiling one takes 0.1 to 3
milliseconds. Modules that such a start imports define theirs by `regex`; others use `re.compile`.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Returns an expression that is used like that of `re.compile`, and is compiled when it is first used.

    Args:
        text: the expression, which is not checked before.
        flags: see `re.compile`.

    >>> digits = regex("[0-9]+")
    >>> digits.findall("1 and 23"), digits.pattern
    (['1', '23'], '[0-9]+')
    """
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))


class _Regex:
    """Has the methods and attributes of the compiled expression, each from its first use on."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value
