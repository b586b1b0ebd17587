"""Braces among tokens."""

from collections.abc import Sequence

from construct_messages.query.tokens import Token


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the `}` that closes the `{` at index `opening`, among balanced braces."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += tokens[index].is_mark("{") - tokens[index].is_mark("}")
        if depth == 0:
            return index
    raise AssertionError("braces are balanced")
