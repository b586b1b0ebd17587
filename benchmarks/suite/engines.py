"""The endpoints of the suite, each over an N-Triples file on loopback: started, and ended whatever happens.

How an engine is told to behave as its public installations do is in `tests/support/engines/servers.py`.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from tests.support.engines.servers import Missing, NotStarted, oxigraph, virtuoso

ENGINES: Final = {"oxigraph": oxigraph, "virtuoso-dbpedia": virtuoso}
"""By the name in rows: Oxigraph's server, and Virtuoso with DBpedia's caps, timeouts and default graph."""

__all__ = ["ENGINES", "Missing", "NotStarted", "engine"]


@contextmanager
def engine(name: str, data: Path, place: Path) -> Iterator[str]:
    """The URL of an endpoint that has a file loaded, until the end of the block.

    Args:
        name: a key of `ENGINES`.
        data: N-Triples.
        place: an empty folder for all that the engine writes.

    Raises:
        Missing: the engine is not installed; says the command that installs it.
        NotStarted: it does not run, or has not loaded the data.
    """
    with _ended_by_sigterm(), ENGINES[name](data, place) as url:
        yield url


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Makes SIGTERM end this process by an exception, so that whatever it started is ended, too."""
    if threading.current_thread() is not threading.main_thread():  # which alone can set it
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
