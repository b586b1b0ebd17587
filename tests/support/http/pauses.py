"""What tests do to the pauses between two attempts at a request: none, or those of the package itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from construct_messages.sparql.client import retries

_OWN: Final = retries.pause


@contextmanager
def no_pauses() -> Iterator[None]:
    """The next attempt follows at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retries, "pause", lambda *_: 0.0)
        yield


@contextmanager
def own_pauses() -> Iterator[None]:
    """Inside `no_pauses`: as without it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retries, "pause", _OWN)
        yield


@contextmanager
def no_retries() -> Iterator[None]:
    """One attempt, whatever a source was told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retries.Attempts, "allows", lambda *_: False)
        yield
