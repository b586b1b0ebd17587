"""Publishing over a WebSocket: a frame is a message, answered when it is on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import aiohttp
import pytest

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.logs.documents import document_writer
from construct_messages.rdf.formats import FORMATS, N_QUADS, TURTLE, Format
from construct_messages.server.config import StreamsSettings
from construct_messages.server.streams.publishing import ACCEPTED
from tests.support.http.serving import serving
from tests.support.http.streams import StreamsServer, serving_streams
from tests.support.logs.kinds import KINDS, write
from tests.support.streams import numbered

PATH = "/streams/a/input"


def frame(message: Message, format: Format = N_QUADS) -> bytes:
    return document_writer(format)(message)


def text(message: Message) -> str:
    return message.lines.decode().strip()


async def send(
    socket: aiohttp.ClientWebSocketResponse, data: bytes, format: Format = N_QUADS
) -> None:
    await (socket.send_bytes(data) if format.binary else socket.send_str(data.decode()))


async def published(served: StreamsServer) -> list[str]:
    """The messages of the stream, in N-Quads."""
    answer = await served.ask(
        "GET", "/streams/a/output?after=0", Accept="application/n-quads; messages=rdfm"
    )
    return [lines.strip() for lines in answer.body.decode().split("# @message\n")[1:]]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
async def test_a_frame_is_a_message(served: StreamsServer, format: Format) -> None:
    sent = [
        numbered(1),
        Message(),
        Message([Quad(iri("urn:s"), iri("urn:p"), literal("a\nb # @message \u2028"))]),
    ]
    async with served.client.ws_connect(
        served.url + PATH, protocols=(format.subprotocol,)
    ) as socket:
        assert socket.protocol == format.subprotocol
        for message in sent:
            await send(socket, frame(message, format), format)
        answers = [json.loads((await socket.receive()).data) for _ in sent]
    element = f"{served.url}/streams/a/output/"
    assert answers == [
        {"first": f"{element}{n}", "last": f"{element}{n}", "elements": 1} for n in (1, 2, 3)
    ]
    assert await published(served) == [text(message) for message in sent]


async def test_answers_come_in_order_without_waiting_for_each(served: StreamsServer) -> None:
    total = 500
    async with served.client.ws_connect(served.url + PATH) as socket:
        for number in range(1, total + 1):
            await send(socket, frame(numbered(number)))
        answers = [json.loads((await socket.receive()).data)["first"] for _ in range(total)]
    assert [int(answer.rpartition("/")[2]) for answer in answers] == list(range(1, total + 1))
    assert await published(served) == [text(numbered(number)) for number in range(1, total + 1)]


async def test_a_client_that_stops_to_mask_its_frames(served: StreamsServer) -> None:
    """RFC 6455, section 5.1."""
    async with served.client.ws_connect(served.url + PATH) as socket:
        for size in (100, 1_000, 100_000):
            await send(socket, frame(numbered(size, size)))
            assert (await socket.receive()).type is aiohttp.WSMsgType.TEXT
        socket._writer.use_mask = False
        await send(socket, frame(numbered(4)))
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == aiohttp.WSCloseCode.PROTOCOL_ERROR
    assert len(await published(served)) == 3


async def test_a_label_in_two_frames_is_two_nodes(served: StreamsServer) -> None:
    message = Message([Quad(blank("b"), iri("urn:p"), blank("b"))])
    async with served.client.ws_connect(served.url + PATH) as socket:
        for _ in range(2):
            await send(socket, frame(message))
            await socket.receive()
    first, second = ({line.split()[0], line.split()[2]} for line in await published(served))
    assert len(first) == len(second) == 1
    assert first != second


@pytest.mark.parametrize(
    ("refused", "format", "code", "reason"),
    [
        ("<urn:s> <urn:p> .", N_QUADS, 4422, "line 1"),
        ("<urn:s> <urn:p> <urn:o> <urn:g> .", TURTLE, 4422, "line 1"),
        (
            "VERSION '1.2-messages'\nMESSAGE\n<urn:s> <urn:p> 1 .\nMESSAGE",
            TURTLE,
            4422,
            "one message",
        ),
    ],
    ids=["half a statement", "another format", "a log"],
)
async def test_a_refused_frame_ends_the_socket(
    served: StreamsServer, refused: str, format: Format, code: int, reason: str
) -> None:
    """What came before it is stored and answered; what comes behind it is not stored."""
    async with served.client.ws_connect(
        served.url + PATH, protocols=(format.subprotocol,)
    ) as socket:
        await send(socket, frame(numbered(1), format))
        await socket.send_str(refused)
        await send(socket, frame(numbered(2), format))
        assert json.loads((await socket.receive()).data)["elements"] == 1
        closed = await socket.receive()
    assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, code)
    assert reason in closed.extra
    assert await published(served) == [text(numbered(1))]


async def test_a_frame_that_is_too_large(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", message_bytes=1000) as server:
        await server.ask("PUT", "/streams/a")
        async with server.client.ws_connect(server.url + PATH) as socket:
            await send(socket, frame(numbered(1)))
            await socket.receive()
            await send(socket, frame(numbered(1, size=2000)))
            closed = await socket.receive()
            assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1009)
        assert await published(server) == [text(numbered(1))]


async def test_no_room_for_a_frame(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db", bodies_bytes=1000) as server:
        await server.ask("PUT", "/streams/a")
        async with server.client.ws_connect(server.url + PATH) as socket:
            await send(socket, frame(numbered(1, size=2000)))
            assert (await socket.receive()).data == 4503
        async with server.client.ws_connect(server.url + PATH) as socket:
            for number in range(1, 20):  # one after the other there is room for many
                await send(socket, frame(numbered(number)))
                await socket.receive()
        assert len(await published(server)) == 19


async def test_who_may_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_TOKEN", "secret")
    async with serving_streams(tmp_path / "streams.db", publish="STREAM_TOKEN") as server:
        token = {"Authorization": "Bearer secret"}
        await server.ask("PUT", "/streams/a", **token)
        for headers, path, status in (({}, PATH, 401), (token, "/streams/b/input", 404)):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await server.client.ws_connect(server.url + path, headers=headers)
            assert refused.value.status == status
        async with server.client.ws_connect(server.url + PATH, headers=token) as socket:
            await send(socket, frame(numbered(1)))
            assert json.loads((await socket.receive()).data)["elements"] == 1


async def test_the_input_stays_write_only(served: StreamsServer) -> None:
    answer = await served.ask("GET", PATH)
    assert (answer.status, answer.headers["Allow"]) == (405, "OPTIONS, POST")


async def test_deleting_the_stream_ends_the_socket(served: StreamsServer) -> None:
    async with served.client.ws_connect(served.url + PATH) as socket:
        await served.ask("DELETE", "/streams/a")
        await send(socket, frame(numbered(1)))
        assert (await socket.receive()).data == 4404


async def test_the_end_of_the_server(tmp_path: Path) -> None:
    """What was sent until then is answered or was never stored, and the close says that the server goes."""
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        socket = await server.client.ws_connect(server.url + PATH)
        await send(socket, frame(numbered(1)))
        assert (await socket.receive()).type is aiohttp.WSMsgType.TEXT
        await server.streams.stop()
        closed = await socket.receive()
        assert (closed.type, closed.data, closed.extra) == (
            aiohttp.WSMsgType.CLOSE,
            1001,
            "the server stops",
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", [PATH, "/streams/a/socket"])
@pytest.mark.parametrize(
    ("cors", "origin", "welcome"),
    [
        (("*",), "https://elsewhere.example", True),
        (("https://app.example",), "https://app.example", True),
        (("https://app.example",), "https://elsewhere.example", False),
        ((), "null", False),
        ((), "http://{host}", True),
        ((), None, True),
    ],
    ids=["all", "named", "another", "no origin of its own", "the server's own", "no browser"],
)
async def test_pages_of_other_origins(
    tmp_path: Path, path: str, cors: Iterable[str], origin: str | None, welcome: bool
) -> None:
    """Browsers ask nobody before they open a WebSocket, so the server has to look."""
    streams = StreamsSettings(file=str(tmp_path / "streams.db"), publish="allow")
    async with (
        serving(endpoints={}, settings={"streams": streams, "cors": tuple(cors)}) as served,
        aiohttp.ClientSession() as client,
    ):
        async with client.put(f"{served.url}/streams/a") as made:
            assert made.status == 201
        headers = (
            {}
            if origin is None
            else {"Origin": origin.format(host=served.url.removeprefix("http://"))}
        )
        if welcome:
            async with client.ws_connect(served.url + path, headers=headers):
                pass
        else:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(served.url + path, headers=headers)
            assert refused.value.status == 403


@pytest.mark.parametrize("type", ACCEPTED)
async def test_what_accept_post_names_is_taken(served: StreamsServer, type: str) -> None:
    """A document or a log of one message, of each media type."""
    (format,) = (
        format for format in FORMATS if type in (*format.media_types, *format.document_types)
    )
    body = frame(numbered(1), format)
    if type not in format.document_types:
        body = write([numbered(1)], next(kind for kind in KINDS if kind.format == format))
    answer = await served.ask("POST", PATH, body, type)
    assert (answer.status, answer.json["elements"]) == (201, 1)
    assert await published(served) == [text(numbered(1))]
