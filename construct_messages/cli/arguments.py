"""What the commands' arguments have in common: the parser's way to report, and pairs of a name and a value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn, TypeAlias

from construct_messages.errors import UsageError


class Parser(argparse.ArgumentParser):
    """Reports a usage error as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        self.exit(2, f"error: {message}\nhint: see {self.prog} --help\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What a command adds itself to."""


def pairs(option: str, values: Sequence[str], shape: str) -> dict[str, str]:
    """The values of a repeated option that are written as `shape`, a name, a separator and the rest."""
    separator = "=" if "=" in shape else ":"
    pairs = {}
    for value in values:
        name, found, rest = value.partition(separator)
        if not found or not name.strip():
            raise UsageError(f"{option} {value!r} is not {shape}", hint=f"write {option} {shape}")
        pairs[name.strip()] = rest.strip()
    return pairs
