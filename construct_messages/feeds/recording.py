"""Writes the elements of a subscription to a log as they come, and keeps in a state file how far it is.

The state is written after the log is on disk, and names the size that the log had then. What the log has after it is
cut off when the log is continued, since the subscription brings it again (`writing/growing.py`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from construct_messages.feeds.state import Received, read_state, write_state
from construct_messages.feeds.subscription import Subscription
from construct_messages.streams.element import Element
from construct_messages.writing.growing import OpenLog

_SAVE_SECONDS: Final = 1.0
"""How long a message is in a log before the state includes it."""


class RecordingState:
    """The state file of one recording.

    Args:
        path: of the file.
        url: the stream; a state of another one is refused.
        can_be_cut: whether what the log has after its state can be cut off; if not, the state is written after each
            message.

    Attributes:
        known: what an earlier run left; None: there was none.

    Raises:
        UsageError: the file is no such state, or one of another stream.
    """

    def __init__(self, path: str | os.PathLike[str], url: str, *, can_be_cut: bool) -> None:
        self._path, self._url, self.can_be_cut = path, url, can_be_cut
        self.known = self._saved = read_state(path, Received, url)

    def save(self, log: OpenLog, elements: Subscription) -> None:
        """Writes how far a log is, after the log itself.

        Raises:
            CannotWrite: the state cannot be written.
        """
        if (checkpoint := elements.checkpoint) is None:
            return
        state = Received(self._url, checkpoint, log.size if self.can_be_cut else None)
        if state != self._saved:
            log.sync()
            write_state(self._path, state)
            self._saved = state


async def record(
    elements: Subscription,
    log: OpenLog,
    state: RecordingState | None = None,
    step: Callable[[], object] = lambda: None,
) -> None:
    """Writes elements to a log, until there are no more; also if it is cancelled, the state is that of the log.

    Args:
        elements: begins after the checkpoint of `state.known`.
        log: continues where `state.known` ends.
        state: where to keep how far it is, within a second; None: nowhere.
        step: called after each element.

    Raises:
        ConstructMessagesError: the subscription failed, or the log or the state cannot be written.
    """
    if state is None:
        async with aclosing(elements):
            async for element in elements:
                log.write(element.message)
                step()
        return
    task = asyncio.current_task()
    assert task is not None
    writer = _StateWriter(state, log, elements)

    def stop(_: object) -> None:  # saving failed
        task.cancel()

    saving: asyncio.Task[None] | None = None
    try:
        async with aclosing(elements):
            await elements.start()
            writer.save()
            saving = asyncio.create_task(writer.keep_saving())
            saving.add_done_callback(stop)
            async for element in elements:
                writer.write(element)
                step()
    except asyncio.CancelledError:
        if saving is None or not saving.done():
            raise
    finally:
        if saving is not None:
            saving.remove_done_callback(stop)
            saving.cancel()
            await asyncio.wait([saving])
        writer.save()  # also before an error: what was written stays
    if saving is not None and not saving.cancelled():
        saving.result()  # its error


class _StateWriter:
    """Keeps the state of a log while it is written."""

    def __init__(self, state: RecordingState, log: OpenLog, elements: Subscription) -> None:
        self._state, self._log, self._elements = state, log, elements
        self._changed = asyncio.Event()
        self._is_whole = True  # the last element was written

    def write(self, element: Element) -> None:
        self._is_whole = False
        self._log.write(element.message)
        self._is_whole = True
        if self._state.can_be_cut:
            self._changed.set()
        else:
            self.save()

    def save(self) -> None:
        if self._is_whole:
            self._changed.clear()
            self._state.save(self._log, self._elements)

    async def keep_saving(self) -> None:
        """Saves within a second of what is written, or later where saving itself takes long."""
        pause = _SAVE_SECONDS
        while True:
            await self._changed.wait()
            await asyncio.sleep(pause)
            started = time.monotonic()
            self.save()
            pause = max(_SAVE_SECONDS, 10 * (time.monotonic() - started))
