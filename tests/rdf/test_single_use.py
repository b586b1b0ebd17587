"""`single_use.py`: whatever would read messages a second time is an error, never silence."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Final

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages, read_log, write_log
from construct_messages.errors import ConstructMessagesError, UsageError
from construct_messages.rdf.single_use import SingleUse

LOG: Final = b"# @message\n<urn:a> <urn:p> <urn:b> .\n# @message\n<urn:a> <urn:p> <urn:c> .\n"


def stream() -> SingleUse:
    store = ox.Store()
    store.load(LOG, format=ox.RdfFormat.N_QUADS)
    return construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", store)


MAKERS: Final[dict[str, Callable[[], SingleUse]]] = {
    "stream": stream,
    "reader": lambda: read_log(LOG),
}


async def through(messages: SingleUse) -> None:
    async for _ in messages:
        pass


async def leave(messages: SingleUse) -> None:
    async with messages:
        async for _ in messages:
            return


def begin_and_close(messages: SingleUse) -> None:
    next(messages)
    messages.close()


def fail(messages: SingleUse) -> None:
    def feed(messages: SingleUse) -> None:
        for _ in messages:
            raise ConstructMessagesError("enough")

    with pytest.raises(ConstructMessagesError, match="enough"), messages:
        feed(messages)


FIRST: Final[dict[str, Callable[[SingleUse], object]]] = {
    "exhausted": lambda messages: [*messages],
    "exhausted by next": lambda messages: [next(messages, None) for _ in range(3)],
    "closed": lambda messages: messages.close(),
    "begun and closed": begin_and_close,
    "left": fail,
    "written": lambda messages: write_log(messages, io.BytesIO()),
    "exhausted by async for": lambda messages: asyncio.run(through(messages)),
    "left by async for": lambda messages: asyncio.run(leave(messages)),
    "closed by asyncio": lambda messages: asyncio.run(messages.aclose()),
}
AGAIN: Final[dict[str, Callable[[SingleUse], object]]] = {
    "for": lambda messages: [message for message in messages],  # noqa: C416 - the loop that users write
    "list": list,
    "iter": iter,
    "write_log": lambda messages: write_log(messages, io.BytesIO()),
    "async for": lambda messages: asyncio.run(through(messages)),
}


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("maker", MAKERS)
def test_nothing_is_read_twice(maker: str, first: str, again: str) -> None:
    """Issue 13, 16."""
    messages = MAKERS[maker]()
    FIRST[first](messages)
    with pytest.raises(UsageError, match="read once"):
        AGAIN[again](messages)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_loop_may_go_on_where_another_stopped(maker: str) -> None:
    messages = MAKERS[maker]()
    for _ in messages:
        break
    assert len(list(messages)) == 1


@pytest.mark.parametrize("maker", MAKERS)
def test_next_ends_as_iterators_do_and_fails_behind_a_close(maker: str) -> None:
    messages = MAKERS[maker]()
    list(messages)
    assert [next(messages, None), next(messages, None)] == [None, None]
    messages = MAKERS[maker]()
    next(messages)
    messages.close()
    with pytest.raises(UsageError, match="read once"):
        next(messages)


@pytest.mark.parametrize("maker", MAKERS)
def test_the_first_message(maker: str) -> None:
    messages = MAKERS[maker]()
    first = messages.first()
    assert first is not None
    assert len(first) == 1
    with pytest.raises(UsageError, match="read once"):
        messages.first()
    assert read_log(b"").first() is None
