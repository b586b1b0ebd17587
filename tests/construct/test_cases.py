"""`construct.py`: one table of message cases through every kind of source."""

from __future__ import annotations

import asyncio

import pytest

from construct_messages import (
    Message,
    QueryMessages,
    construct_messages,
)
from tests.support.queries.message_cases import CASES, PREFIX
from tests.support.queries.options import arguments

# the source, its options, and the cases it cannot answer, with the reason
PATHS: list[tuple[str, dict[str, object]]] = [
    ("store", {}),
    ("file", {}),
    ("directory", {}),
    ("rdflib", {}),
    ("rdflib", {"timeout": 60}),
    ("dataset", {}),
    ("rdflib's client", {}),
    ("oxigraph", {}),
    ("oxigraph", {"results": "xml"}),
    ("oxigraph", {"results": "tsv", "profile": "oxigraph"}),
    ("oxigraph", {"method": "get"}),
    ("oxigraph", {"page_size": 1}),
    ("rdflib-endpoint", {}),
    ("rdflib-endpoint", {"page_size": 2}),
]


def path_id(path: tuple[str, dict[str, object]]) -> str:
    return " ".join([path[0], *(f"{name}={value}" for name, value in path[1].items())])


@pytest.mark.one_in(8)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("path", PATHS, ids=path_id)
@pytest.mark.parametrize(
    ("query", "options", "messages"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_one_case_every_path(
    query: str,
    options: dict[str, object],
    messages: list[list[str]],
    path: tuple[str, dict[str, object]],
    asynchronous: bool,
    sources: dict[str, object],
) -> None:
    def stream() -> QueryMessages:
        return construct_messages(
            PREFIX + query, sources[path[0]], label_prefix="x", **arguments(path[1] | options)
        )  # type: ignore[arg-type]

    async def collect() -> tuple[list[Message], bytes]:
        return [message async for message in stream()], b"".join(
            [chunk async for chunk in stream().aserialize()]
        )

    if asynchronous:
        found, log = asyncio.run(collect())
    else:
        found, log = list(stream()), b"".join(stream().serialize())
    assert [sorted(map(str, message)) for message in found] == [
        sorted(message) for message in messages
    ]
    # the fast path, where there is one, says the same
    parts = log.decode().split("# @message\n")
    assert parts.pop(0) == ""
    assert [sorted(part.splitlines()) for part in parts] == [
        sorted(message) for message in messages
    ]
