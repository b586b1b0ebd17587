"""Elements as blocks of N-Quads lines, which SQLite puts together."""

from __future__ import annotations

import asyncio
import gc

import pytest

from construct_messages import Message, Quad, iri, literal
from construct_messages.errors import Gone, NotFound
from construct_messages.streams import Description, Retention, StreamStore
from tests.support.streams import numbered


async def blocks(store: StreamStore, after: int, last: int) -> list[tuple[int, int, bytes]]:
    return [
        (each.first, each.last, each.nquads) async for each in store.alines("a", after, last, "#\n")
    ]


def test_lines_are_those_of_the_elements_in_order(store: StreamStore) -> None:
    """With as many in a block as are read at a time, or as there is room for, and one that is larger by itself."""
    store.create("a")
    large = Message([Quad(iri("urn:s"), iri("urn:p"), literal("x" * (1 << 20)))])
    sent = [*map(numbered, range(1, 1302)), Message(), large, large, Message(), numbered(1306)]
    store.append_all("a", sent)
    found = asyncio.run(blocks(store, 100, 1306))
    assert [first for first, _, _ in found] == [101, *(last + 1 for _, last, _ in found[:-1])]
    assert found[0][1] == 1100
    assert found[-1][1] == 1306
    assert all(len(lines) < 1 << 20 or first == last for first, last, lines in found)
    assert b"#\n".join(lines for _, _, lines in found) == b"#\n".join(
        message.lines for message in sent[100:]
    )
    assert asyncio.run(blocks(store, 1306, 1306)) == []


@pytest.mark.parametrize(
    ("after", "last", "error"), [(0, 3, Gone), (2, 9, NotFound), (9, 12, NotFound)]
)
def test_no_lines_of_what_is_not_there(
    store: StreamStore, after: int, last: int, error: type[Exception]
) -> None:
    store.create("a", Description(retention=Retention(count=3)))
    store.append_all("a", map(numbered, range(1, 6)))
    with pytest.raises(error):
        asyncio.run(blocks(store, after, last))


@pytest.mark.slow
def test_lines_that_nobody_wants_any_more_are_left(
    store: StreamStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The next block is being read when the reader leaves, and comes to nothing, since retention took it."""
    store.create("a")
    store.append_all("a", map(numbered, range(1, 2001)))

    gc.collect()  # what earlier tests left behind may have something to say when it goes
    caplog.clear()

    async def leave() -> None:
        lines = store.alines("a", 0, 2000, "")
        assert (await anext(lines)).last == 1000
        store.trim("a", 2000)
        await lines.aclose()

    asyncio.run(leave())
    gc.collect()  # a failure that nobody asked for is logged when it goes
    assert not caplog.records
