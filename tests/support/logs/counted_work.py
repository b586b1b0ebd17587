"""How much work reading a log takes, counted and not timed: steps, characters that patterns pass and terms have."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final
from unittest import mock

import construct_messages.logs
from construct_messages import read_log
from construct_messages.errors import LimitExceeded, LogError

_CHUNK: Final = 1 << 10


class Work:
    """What was counted."""

    def __init__(self) -> None:
        self.count = 0


class _Pattern:
    """A regular expression that counts how far it reads: to the end of its match, or of the text."""

    def __init__(self, pattern: re.Pattern[Any], work: Work) -> None:
        self._pattern, self._work = pattern, work

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._pattern, name)
        if not callable(method):
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            text = arguments[1 if name in ("sub", "subn") else 0]
            start = (
                arguments[1] if name not in ("sub", "subn", "split") and len(arguments) > 1 else 0
            )
            found = method(*arguments, **options)
            if name in ("match", "fullmatch"):
                self._work.count += 1 + (found.end() - start if found else 0)
            elif name == "search":
                self._work.count += (found.end() if found else len(text)) - start
            else:
                self._work.count += len(text) - start
            return found

        return call


def _modules() -> Iterator[Any]:
    for module in pkgutil.walk_packages(
        construct_messages.logs.__path__, "construct_messages.logs."
    ):
        yield importlib.import_module(module.name)


@contextmanager
def _patterns(work: Work) -> Iterator[None]:
    """All patterns that modules of logs hold by name, or in a table, count."""

    def counting(value: Any) -> Any:
        if isinstance(value, re.Pattern):
            return _Pattern(value, work)
        if isinstance(value, dict) and any(isinstance(each, re.Pattern) for each in value.values()):
            return {key: counting(each) for key, each in value.items()}
        return value

    patches = [
        mock.patch.object(module, name, counted)
        for module in _modules()
        for name, value in vars(module).items()
        if (counted := counting(value)) is not value
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def work_of(log: bytes, format: str) -> int:
    """The work of reading a log, in pieces of 1 KiB, to its end or an error."""
    work = Work()

    def step(_frame: FrameType, _event: str, _argument: object) -> Any:
        work.count += 1
        return step

    chunks = (log[start : start + _CHUNK] for start in range(0, len(log), _CHUNK))
    before = sys.gettrace(), sys.getprofile()
    with _patterns(work):
        sys.settrace(step)
        sys.setprofile(step)
        try:
            for message in read_log(chunks, format):
                work.count += sum(
                    len(term) for quad in message for term in quad if term is not None
                )
        except (LimitExceeded, LogError):
            pass
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])
    return work.count
