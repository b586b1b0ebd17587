"""Writes the elements of a subscription to a log, and stores the position in a state file.

The state is written after the log is stored durably, with the size of the log. When the log is continued, content after
this size is cut off, because the subscription yields it again (`logs/writing.py`).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

from construct_messages.errors import ConstructMessagesError
from construct_messages.feeds.state import Checkpoint, Received, read_state, write_state
from construct_messages.feeds.subscription import Subscription
from construct_messages.logs.writing import OpenLog
from construct_messages.streams.element import Element
from construct_messages.streams.publication import received_message

_SAVE_SECONDS: Final = 1.0  # the maximal time before the state includes a message of the log

_SAVE_ELEMENTS: Final = 500
"""The maximal number of such messages: a broker may send no more before they are acknowledged."""


class RecordingState:
    """The state file of one recording; `known` is the state of an earlier run.

    `can_be_cut`: content after the state's size can be cut off the log; if not, the state is written after each
    message. Raises `UsageError` for a file of another stream.
    """

    def __init__(self, path: str | os.PathLike[str], url: str, *, can_be_cut: bool) -> None:
        self._path, self._url, self.can_be_cut = path, url, can_be_cut
        self.known = self._saved = read_state(path, Received, url)

    def save(self, log: OpenLog, elements: Subscription) -> None:
        """Writes the position of a log, after the log itself."""
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
    complete: Callable[[], object] | None = None,
) -> None:
    """Writes elements to a log, until there are no more; the state matches the log also after cancellation.

    The elements are those after the checkpoint of `state.known`, and the log continues at its size. Elements are
    acknowledged to the other side when the state includes them, within a second, or, without a state, when they are
    on disk. `step` is called after each element. `complete` is for a log that is there only when it is complete, and
    has no state: it is called at the end, and only then all elements are acknowledged.
    """
    async with aclosing(elements):
        await elements.start()
        if state is not None:
            elements.check_resumable()
        writer = _StateWriter(state, log, elements, complete)
        await _record(elements, writer, step)


async def _record(elements: Subscription, writer: _StateWriter, step: Callable[[], object]) -> None:
    task = asyncio.current_task()
    assert task is not None

    def stop(_: object) -> None:  # writing or saving failed
        task.cancel()

    keeping: list[asyncio.Task[None]] = []
    try:
        async with writer.acknowledging():
            writer.save()
            for work in writer.work():
                keeping.append(asyncio.create_task(work))
                keeping[-1].add_done_callback(stop)
            async for element in elements:
                writer.write(element)
                step()
                if writer.saves_each:
                    await writer.acknowledge()
    except asyncio.CancelledError:
        if not any(each.done() for each in keeping):
            raise
    finally:
        for each in keeping:
            each.remove_done_callback(stop)
            each.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        # also before an error: written elements stay
        writer.flush()
        writer.save()
    for each in keeping:
        if not each.cancelled():
            each.result()  # raises its error


class _StateWriter:
    """Stores the state of a log while it is written, and acknowledges the saved elements."""

    def __init__(
        self,
        state: RecordingState | None,
        log: OpenLog,
        elements: Subscription,
        complete: Callable[[], object] | None,
    ) -> None:
        self._state, self._log, self._elements = state, log, elements
        self._complete = complete
        self.saves_each = state is not None and not state.can_be_cut
        self._held, self._changed, self._many = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._count = 0  # since the last time
        self._is_whole = True  # the log has, or holds, the last element and all before it
        self._saved: Checkpoint | None = None
        self._acknowledged: Checkpoint | None = None
        self._acknowledging = asyncio.Lock()  # the end waits for what `keep_saving` has begun

    def write(self, element: Element) -> None:
        self._is_whole = False
        self._log.hold(received_message(element))
        self._is_whole = True
        if self.saves_each:
            self.save()
            return
        self._held.set()
        self._changed.set()
        self._count += 1
        if self._count >= _SAVE_ELEMENTS:
            self._many.set()

    def flush(self) -> None:
        is_whole, self._is_whole = self._is_whole, False
        self._log.flush()
        self._is_whole = is_whole

    def save(self) -> None:
        if self._is_whole:
            self.flush()
            self._changed.clear()
            self._many.clear()
            self._count = 0
            if self._state is not None:
                self._state.save(self._log, self._elements)
            elif self._elements.acknowledges:
                self._log.sync()
            self._saved = self._elements.checkpoint

    async def acknowledge(self) -> None:
        async with self._acknowledging:
            saved = self._saved
            if saved is not None and saved != self._acknowledged:
                await self._elements.acknowledge(saved)
                self._acknowledged = saved

    @asynccontextmanager
    async def acknowledging(self) -> AsyncGenerator[None]:
        """Saves and acknowledges the elements written within the block at its end, unless the other side failed."""
        try:
            yield
        except ConstructMessagesError:
            raise
        except BaseException:
            if self._complete is None:
                await self._finish()
            raise
        await self._finish()

    async def _finish(self) -> None:
        self.save()
        if self._complete is not None:
            self._complete()
        await self.acknowledge()

    def work(self) -> list[Coroutine[object, object, None]]:
        """What is done while elements come."""
        if self._complete is not None:
            return [self.keep_flushing()]
        return [self.keep_flushing(), self.keep_saving()]

    async def keep_flushing(self) -> None:
        """Writes the elements that came together, before the next ones are awaited."""
        while True:
            await self._held.wait()
            self._held.clear()
            self.flush()

    async def keep_saving(self) -> None:
        """Saves within a second after a write, or later if saving itself takes long."""
        pause = _SAVE_SECONDS
        while True:
            await self._changed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._many.wait()
            if not self._is_whole:
                return  # writing failed, which ends the recording
            started = time.monotonic()
            self.save()
            await self.acknowledge()
            pause = max(_SAVE_SECONDS, 10 * (time.monotonic() - started))
