"""Blank nodes over the pages of an endpoint: one node or two, and who is warned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from construct_messages import Message, construct_messages, read_log
from construct_messages.errors import SourceError
from construct_messages.rdf.options import Requests
from tests.support.queries.message_cases import PREFIX
from tests.support.queries.options import arguments

# --- blank nodes over pages ------------------------------------------------------------------------------------------

BLANKS = "@prefix ex: <http://example.org/> .\n" + "\n".join(
    f"ex:{name} ex:at _:b{number // 4} ." for number, name in enumerate("abcdefghijkl")
)
BLANKS_QUERY = PREFIX + "CONSTRUCT { ?s ex:at ?node } WHERE { ?s ex:at ?node } ORDER BY ?s"
TORN = "one node may have become several"


@pytest.fixture(scope="session")
def blanks_server(
    tmp_path_factory: pytest.TempPathFactory, oxigraph_server: Callable[[Path], str]
) -> str:
    """Twelve solutions over three blank nodes."""
    path = tmp_path_factory.mktemp("blanks") / "blanks.ttl"
    path.write_text(BLANKS)
    return oxigraph_server(path)


@pytest.mark.parametrize("how", ["for", "async for", "serialize"])
@pytest.mark.parametrize(
    ("options", "nodes", "warned"),
    [
        ({}, 3, False),
        ({"page_size": 5, "profile": "oxigraph"}, 3, False),
        ({"page_size": 12}, 3, False),
        ({"page_size": 5}, 5, True),
        ({"page_size": 5, "max_messages": 5}, 2, False),
    ],
    ids=lambda value: str(value),
)
def test_blank_nodes_over_pages(
    blanks_server: str,
    options: dict[str, object],
    nodes: int,
    warned: bool,
    how: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue 13, 4: labels are stable where the engine is known for it; otherwise it is said, or an error."""

    def read(**more: object) -> list[Message]:
        stream = construct_messages(BLANKS_QUERY, blanks_server, **arguments(options | more))  # type: ignore[arg-type]
        if how == "serialize":
            return list(read_log(b"".join(stream.serialize("nq")), "nq"))

        async def collect() -> list[Message]:
            return [message async for message in stream]

        return asyncio.run(collect()) if how == "async for" else list(stream)

    messages = read()
    assert len(messages) == options.get("max_messages", 12)
    assert len({quad.object for message in messages for quad in message}) == nodes
    said = [record.getMessage() for record in caplog.records if TORN in record.getMessage()]
    assert len(said) == warned
    if warned:
        with pytest.raises(SourceError, match=TORN):
            read(strict=True)
    else:
        assert len(read(strict=True)) == len(messages)


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
def test_blank_nodes_over_pages_of_a_served_endpoint(
    strict: bool, blanks_server: str, proxy: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    # held back until it is whole, so that an error has a status
    url = proxy(blanks_server, page_size=5, strict=strict, buffer_bytes=1 << 20)
    asked = f"{url}?{urlencode({'query': BLANKS_QUERY, 'format': 'nq', 'messages': 'rdfm'})}"
    if strict:
        with pytest.raises(HTTPError) as refused:
            urlopen(asked)
        assert TORN in refused.value.read().decode()
        return
    with urlopen(asked) as answer:
        assert answer.read().count(b"# @message\n") == 12
    assert [record.levelname for record in caplog.records if TORN in record.getMessage()] == [
        "WARNING"
    ]


def test_pages_without_blank_nodes_are_no_reason_to_warn(
    data_file: Path, oxigraph_server: Callable[[Path], str]
) -> None:
    query = PREFIX + "CONSTRUCT { ?c ex:text ?t } WHERE { ?c ex:location ?l BIND('_:b0' AS ?t) }"
    assert (
        len(
            list(
                construct_messages(
                    query, oxigraph_server(data_file), requests=Requests(page_size=1, strict=True)
                )
            )
        )
        == 4
    )


@pytest.mark.parametrize("engine", ["oxigraph", pytest.param("virtuoso", marks=pytest.mark.slow)])
def test_labels_are_stable_where_the_profile_says_so(
    engine: str, serve_with: Callable[[str, Path], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("stable") / "blanks.ttl"
    path.write_text(BLANKS)
    url, at = serve_with(engine, path), "<http://example.org/at>"
    query = f"CONSTRUCT {{ ?s {at} ?node }} WHERE {{ ?s {at} ?node }} ORDER BY ?s"
    whole, paged = (
        [
            *construct_messages(
                query,
                url,
                requests=Requests(profile=engine, page_size=size, strict=True),
                label_prefix="x",
            )
        ]
        for size in (None, 4)
    )
    assert len(whole) == 12
    assert whole == paged
