"""Iteration that works once: blocking or not, and releasing the source, for query results and log readers.

The source of the messages does not matter here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
)
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from construct_messages.errors import UsageError

T = TypeVar("T")


class SingleUse(ABC, Generic[T]):
    """Messages, or solutions, to iterate lazily once, with `for` or `async for`. Reading them again is an error.

    It releases its source when it is exhausted, closed, left (as a context manager) or garbage collected; for the
    latter, its generators must not refer to it.
    """

    _again: ClassVar[str]
    """The function to call for the same items again, in an error."""
    _items: ClassVar[str] = "messages"
    """The name of the items, in an error."""

    def __init__(self) -> None:
        self._running: Generator[Any] | None = None
        self._arunning: AsyncGenerator[Any] | None = None
        self._iterating: Iterator[T] | None = None
        self._closed = False
        self._over = False  # exhausted, or failed

    @abstractmethod
    def _each(self) -> Generator[T]:
        """The items."""

    @abstractmethod
    def _aeach(self) -> AsyncGenerator[T]:
        """The items, for asyncio."""

    def _begin(self) -> None:
        if self._closed or self._running is not None or self._arunning is not None:
            raise self._refusal()

    def _refusal(self) -> UsageError:
        return UsageError(f"{self._items} can be read once", hint=f"call {self._again} again")

    def __iter__(self) -> Iterator[T]:
        if self._over:
            raise self._refusal()
        if self._iterating is None or self._closed:
            self._begin()  # for its error, if another iteration has begun
        return self

    def __next__(self) -> T:
        if self._over:
            raise StopIteration  # as the protocol has it
        if self._closed:
            raise self._refusal()
        if self._iterating is None:
            self._begin()
            self._iterating = self._running = self._each()
        try:
            return next(self._iterating)
        except BaseException:
            self._over = True
            raise

    def __aiter__(self) -> AsyncIterator[T]:
        self._begin()
        items = self._arunning = self._aeach()
        return items

    def first(self) -> T | None:
        """Returns the next one, and closes the rest; None at the end.

        Raises:
            ConstructMessagesError: the source fails before it.
        """
        with self:
            return next(iter(self), None)

    def close(self) -> None:
        """Cancels running work and releases the source."""
        self._closed = True
        if self._running is not None:
            self._running.close()

    async def aclose(self) -> None:
        """`close` for asyncio."""
        if self._arunning is not None:
            await self._arunning.aclose()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


async def each_of(items: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T]:
    """Yields the items of an iterable or async iterable, for asyncio."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
