"""How the time that something takes grows with its size: by the CPU of the thread, as other work shares the machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_MOST: Final = 240.0  # seconds for what takes a few, even on a slow machine, unless its time grows faster than its size
_ROUNDS: Final = 5
_LEAST: Final = 0.005  # seconds; what takes less says nothing


@contextmanager
def bounded_cpu() -> Iterator[None]:
    """Fails where a block takes minutes of CPU."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < _MOST


def cpu_seconds(run: Callable[[], object]) -> float:
    """What a call takes, without the garbage collector, whose time is that of all objects of all tests."""
    gc.disable()
    try:
        began = time.thread_time()
        run()
        return time.thread_time() - began
    finally:
        gc.enable()


def assert_linear(seconds: Callable[[int], float], size: int, times: int) -> None:
    """That `times` as much takes about `times` as long; where time goes with the square, it takes `times`² as long.

    The best of some rounds counts: other work takes the caches, and cores of a virtual machine.
    """
    assert any(
        seconds(times * size) < 4 * times * max(seconds(size), _LEAST) for _ in range(_ROUNDS)
    )
