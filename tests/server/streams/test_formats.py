"""Every kind of log through POST and the store to every door: the same messages in the same order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from construct_messages import Message, read_log
from construct_messages.errors import UnsupportedByFormat
from construct_messages.feeds import subscribe
from construct_messages.logs import DecoderOptions, decoder_for
from construct_messages.rdf.formats import (
    FORMATS,
    N_QUADS,
    RDF_XML,
    RDFM,
    TRIG,
    YAML_LD,
    Format,
    content_type,
)
from construct_messages.rdf.wire import SUBPROTOCOLS
from tests.support.http.streams import StreamsServer, of_member, read, serving_streams, take
from tests.support.logs.kinds import KINDS, Kind, isomorphic, write
from tests.support.strategies import messages


def can_carry(kind: Kind, drawn: list[Message]) -> bool:
    try:
        write(drawn, kind)
    except UnsupportedByFormat:
        return False
    return True


async def doors(server: StreamsServer, sent: list[Message], kind: Kind) -> None:
    """Sends messages as one kind of log, and takes them from each door."""
    assert (await server.ask("PUT", "/streams/a")).status == 201
    if sent:
        answer = await server.ask(
            "POST", "/streams/a/input", write(sent, kind), content_type(*kind)
        )
        assert answer.status == 201, answer.body
    for out in KINDS:
        pulled = await server.ask("GET", "/streams/a/output", Accept=content_type(*out))
        if can_carry(out, sent):
            assert pulled.headers["Content-Type"] == content_type(*out)
            assert isomorphic(list(read_log(pulled.body, pulled.headers["Content-Type"])), sent), (
                out
            )
    if not sent:
        return
    for format in (N_QUADS, TRIG):
        page = await server.ask("GET", "/streams/a/ldes/1-1000", Accept=format.media_type)
        _, *members = read_log(page.body, content_type(format, RDFM))
        assert isomorphic([*map(of_member, members)], sent), format.name
    reader = subscribe(f"{server.url}/streams/a/ldes", follow=False)
    assert isomorphic([element.message async for element in reader], [*map(alone, sent)]), (
        "the reader of event streams"
    )
    for format in FORMATS:
        if format.binary or not can_carry(Kind(format, format.own or N_QUADS_KIND.syntax), sent):
            continue
        taken = await take(
            server, f"/streams/a/events?after=0&format={format.extension}", len(sent)
        )
        assert isomorphic([read(event.data, format) for event in taken], [*map(alone, sent)]), (
            format.name
        )
    for protocol, format in SUBPROTOCOLS.items():
        if can_carry(Kind(format, format.own or N_QUADS_KIND.syntax), sent):
            url = f"{server.url}/streams/a/socket?after=0"
            async with server.client.ws_connect(url, protocols=(protocol,)) as socket:
                frames = [(await socket.receive()).data for _ in sent]
            assert isomorphic([read(frame, format) for frame in frames], [*map(alone, sent)]), (
                protocol
            )


N_QUADS_KIND = next(kind for kind in KINDS if kind.format == N_QUADS)


def alone(message: Message) -> Message:
    """The message with labels of its own, as a document of one message has them."""
    decoder = decoder_for(N_QUADS, options=DecoderOptions())
    read = [*decoder.feed("".join(f"{quad}\n" for quad in message).encode()), *decoder.close()]
    return read[0] if read else Message()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.data())
def test_all_doors(kind: Kind, drawn: st.DataObject) -> None:
    sent = drawn.draw(messages())
    if not can_carry(kind, sent):
        sent = drawn.draw(
            messages(
                graphs=False,
                triple_terms=False,
                directions=False,
                any_text=False,
                any_predicate=False,
                dot_segments=False,
            )
        )

    async def main() -> None:
        with TemporaryDirectory() as folder:
            async with serving_streams(Path(folder) / "streams.db") as server, asyncio.timeout(60):
                await doors(server, sent, kind)

    asyncio.run(main())


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
async def test_a_format_by_its_name_is_that_of_its_media_type(
    served: StreamsServer, format: Format
) -> None:
    """Also one that only logs have, such as Jelly; documents of RDF/XML and YAML-LD are no sequences."""
    await served.ask("PUT", "/streams/a")
    await served.ask("POST", "/streams/a/input", b"<urn:s> <urn:p> 1 .", "text/turtle")
    by_name = await served.ask("GET", f"/streams/a/output?after=0&format={format.extension}")
    by_type = await served.ask("GET", "/streams/a/output?after=0", Accept=format.document_type)
    assert by_name.status == by_type.status == (406 if format in (RDF_XML, YAML_LD) else 200)
    assert by_name.headers["Content-Type"] == by_type.headers["Content-Type"]
    assert by_name.status == 406 or by_name.body == by_type.body
