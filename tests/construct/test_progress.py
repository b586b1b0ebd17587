"""The progress of a query, as its caller is told of it."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from construct_messages import Grouping, construct_messages

QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o } ORDER BY ?o"
COUNT = 3000


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    lines = "\n".join(f'<urn:{number % 10}> <urn:p> "{number:05}" .' for number in range(COUNT))
    store.load(lines.encode(), format=ox.RdfFormat.N_TRIPLES)
    return store


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, COUNT),
        ({"max_messages": 7}, 7),
        ({"max_messages": 0}, 0),
        ({"group_by": "?s"}, 10),
        ({"group_by": Grouping("?s", order="sorted")}, 10),
        ({"distinct": True}, COUNT),
        ({"skolemize": "urn:x:"}, COUNT),
    ],
)
async def test_each_message_is_counted_once(
    store: ox.Store, options: dict[str, object], expected: int
) -> None:
    told: list[int] = []
    messages = construct_messages(QUERY, store, progress=told.append, **options)  # type: ignore[arg-type] # options
    for number, _ in enumerate(messages, 1):
        assert sum(told) == number
    assert sum(told) == expected
    for format in ("nq", "ttl", "json"):
        told.clear()
        log = construct_messages(QUERY, store, progress=told.append, **options)  # type: ignore[arg-type] # options
        assert b"".join(log.serialize(format)) or not expected
        assert (sum(told), log.message_count) == (expected, expected)
    told.clear()
    log = construct_messages(QUERY, store, progress=told.append, **options)  # type: ignore[arg-type] # options
    assert [chunk async for chunk in log.aserialize("nq")] or not expected
    assert sum(told) == expected
    assert 0 not in told


def test_a_log_is_told_of_by_the_batch(store: ox.Store) -> None:
    told: list[int] = []
    b"".join(construct_messages(QUERY, store, progress=told.append).serialize("nq"))
    assert len(told) < COUNT / 10


def test_an_error_of_the_caller_ends_the_query(store: ox.Store) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(construct_messages(QUERY, store, progress=stop))
