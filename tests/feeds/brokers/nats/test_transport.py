"""Streams of a NATS server: where reading begins and ends, what is missed, what is stored once, and what is refused."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nats.js import api
from nats.js.client import JetStreamContext

from construct_messages import Message
from construct_messages.errors import LimitExceeded, SourceError, UsageError
from construct_messages.feeds import Checkpoint, publish, subscribe
from construct_messages.feeds.brokers.records import RecordTransport
from construct_messages.feeds.opening import opened
from construct_messages.feeds.transport import Record, Settings
from tests.support.certificates import certificate_in
from tests.support.engines.broker_logs import log, same
from tests.support.engines.brokers import NatsServer
from tests.support.engines.servers import free_port
from tests.support.http.feeds import numbers
from tests.support.streams import numbered

SENT = [numbered(1), Message(), numbered(3), numbered(4), numbered(5)]


async def taken(url: str, **options: Any) -> list[int]:
    return [each.sequence async for each in subscribe(url, follow=False, retries=0, **options)]


async def refused(url: str, **options: Any) -> SourceError:
    with pytest.raises(SourceError) as raised:
        await taken(url, **options)
    assert raised.value.hint
    return raised.value


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"after": 0}, [1, 2, 3, 4, 5]),
        ({"after": 3}, [4, 5]),
        ({"after": 5}, []),
        ({"last": 2}, [4, 5]),
        ({"last": 9}, [1, 2, 3, 4, 5]),
        ({"last": 0}, []),
        ({"since": datetime(2020, 1, 1, tzinfo=UTC)}, [1, 2, 3, 4, 5]),
        ({"checkpoint": Checkpoint(2)}, [3, 4, 5]),
    ],
    ids=repr,
)
async def test_where_it_begins(
    server: NatsServer, where: dict[str, Any], expected: list[int]
) -> None:
    url = server.url("a")
    assert await publish(SENT, url, create=True) == 5
    assert await taken(url, **where) == expected


async def test_since_a_time(server: NatsServer) -> None:
    url = server.url("a")
    await publish(SENT[:2], url, create=True)
    elements = [each async for each in subscribe(url, follow=False)]
    await asyncio.sleep(0.002)
    between = datetime.now(UTC)
    await publish(SENT[2:], url)
    assert await taken(url, since=between) == [3, 4, 5]
    assert elements[-1].microseconds < between.timestamp() * 1e6  # stored by the server before


async def test_it_ends_where_it_began_to_read(server: NatsServer) -> None:
    url = server.url("a")
    await publish(SENT, url, create=True)
    async with aclosing(subscribe(url, follow=False)) as elements:
        await elements.start()
        await publish(SENT, url)
        assert numbers([each async for each in elements]) == [1, 2, 3, 4, 5]
        assert elements.checkpoint is not None
        assert await taken(url, checkpoint=elements.checkpoint) == [6, 7, 8, 9, 10]


async def test_following(server: NatsServer) -> None:
    url = server.url("a")
    await publish(SENT, url, create=True)
    async with aclosing(subscribe(url)) as elements:
        await elements.start()
        assert elements.checkpoint is not None
        assert elements.checkpoint.sequence == 5
        for count in range(3):
            await publish([numbered(count)], url)
            element = await anext(elements)
            assert (element.sequence, element.message) == (6 + count, numbered(count))


@pytest.mark.slow
async def test_pauses_of_the_reader_and_of_the_stream(server: NatsServer) -> None:
    """Requests for messages end after a time without any, and are sent again."""
    url = server.url("a")
    await publish([numbered(0)], url, create=True)
    async with aclosing(subscribe(url, after=0, idle_seconds=1)) as elements:
        await anext(elements)
        reading = asyncio.ensure_future(anext(elements))
        done, _ = await asyncio.wait([reading], timeout=3)
        assert not done, "heartbeats keep the connection"
        await publish([numbered(1)], url)
        assert (await reading).sequence == 2


async def test_one_subject(server: NatsServer, streams: JetStreamContext) -> None:
    await streams.add_stream(name="rooms", subjects=["rooms.>"])
    kitchen, bath = (server.url(f"rooms?subject=rooms.{room}") for room in ("kitchen", "bath"))
    for count in range(3):
        await publish([numbered(count)], kitchen)
        await publish([numbered(-count)], bath)
    assert await taken(server.url("rooms")) == [1, 2, 3, 4, 5, 6]
    assert await taken(kitchen) == [1, 3, 5]
    assert await taken(kitchen, after=1) == [3, 5]
    assert await taken(server.url("rooms?subject=rooms.*")) == [1, 2, 3, 4, 5, 6]
    assert await taken(server.url("rooms?subject=rooms.attic")) == []
    with pytest.raises(UsageError, match="one subject is not known"):
        await taken(kitchen, last=2)
    with pytest.raises(SourceError, match=r"several subjects: rooms\.>") as raised:
        await publish(SENT, server.url("rooms"), retries=0)
    assert "?subject=" in str(raised.value)


async def test_what_retention_removed(server: NatsServer, streams: JetStreamContext) -> None:
    await streams.add_stream(name="a", subjects=["a"], max_msgs=3)
    url = server.url("a")
    await publish(SENT, url)
    assert await taken(url) == [3, 4, 5]
    assert await taken(url, after=2) == [3, 4, 5]
    for where in ({"after": 1}, {"checkpoint": Checkpoint(1)}):
        error = await refused(url, **where)
        assert error.status == 410
        assert "element 2 is missing" in str(error)
    async with aclosing(subscribe(url, after=2, retries=0)) as elements:
        await anext(elements)
        server.kill()
        server.start()
        await publish(SENT, url, retries=5)
        with pytest.raises(SourceError, match="missing") as raised:
            async for _ in elements:
                pass
    assert raised.value.status == 410


async def test_what_was_deleted_one_by_one(server: NatsServer, streams: JetStreamContext) -> None:
    """This is no loss: who deletes one message means it."""
    url = server.url("a")
    await publish(SENT, url, create=True)
    await streams.delete_msg("a", 3)
    await streams.delete_msg("a", 5)
    assert await taken(url) == [1, 2, 4]
    assert await taken(url, after=2) == [4]


async def test_another_stream_of_its_name(server: NatsServer, streams: JetStreamContext) -> None:
    url = server.url("a")
    await publish(SENT, url, create=True)
    async with aclosing(subscribe(url, follow=False)) as elements:
        await anext(elements)
        checkpoint = elements.checkpoint
    await streams.delete_stream("a")
    await publish(SENT, url, create=True)
    error = await refused(url, checkpoint=checkpoint)
    assert error.status == 410
    assert "another stream" in str(error)
    assert "ends with element 5, and 9 was read before" in str(await refused(url, after=9))


async def test_a_stream_whose_messages_go_when_they_are_acknowledged(
    server: NatsServer, streams: JetStreamContext
) -> None:
    await streams.add_stream(name="a", subjects=["a"], retention=api.RetentionPolicy.WORK_QUEUE)
    assert "acknowledged" in str(await refused(server.url("a")))


@pytest.mark.slow
async def test_a_log(server: NatsServer, request: pytest.FixtureRequest) -> None:
    """Of few quads and many, of none, and of a megabyte; `make logs-brokers` has 20,000 messages."""
    sent = log(request.config.getoption("--messages"), large=10, bytes=990_000)
    await publish(sent, server.url("a"), create=True)
    elements = subscribe(server.url("a"), follow=False)
    assert same([element.message async for element in elements], sent)


# --- writing ----------------------------------------------------------------------------------------------------------


async def test_what_is_sent_twice_is_stored_once(
    server: NatsServer, streams: JetStreamContext
) -> None:
    url = server.url("a")
    sent = log(700)
    for _ in range(2):
        assert await publish(sent, url, create=True, key="k", batch=300) == 700
    assert same([each.message async for each in subscribe(url, follow=False)], sent)
    assert (await streams.stream_info("a")).config.storage == api.StorageType.FILE


async def test_what_the_newest_message_tells(server: NatsServer, streams: JetStreamContext) -> None:
    """A batch that was under way is not stored again, however long ago that was."""
    await streams.add_stream(name="a", subjects=["a"], duplicate_window=0.1)
    url = server.url("a")
    await publish(SENT, url, key="k")
    await asyncio.sleep(0.3)
    await publish(SENT, url, key="k")
    assert await taken(url) == [1, 2, 3, 4, 5]


async def test_headers(server: NatsServer, streams: JetStreamContext) -> None:
    """They are those that the library's own `publish` writes."""
    headers = {"a": "", "b-c": " ä: b ", "d": "a\r\nb: c\n\r\n", "Content-Type": "text/turtle"}
    url = server.url("a")
    record = Record(b"\r\n", "text/turtle", key="k\n1", headers=headers)
    async with opened(url, Settings(create=True), write=True) as transport:
        assert isinstance(transport, RecordTransport)
        await transport.send([record, record._replace(key="k2", headers={}), Record(b"")], "k")
        named = {**record.named, "Nats-Msg-Id": record.key, "Nats-Expected-Stream": "a"}
        named["Nats-Msg-Id"] += "0"  # stored once
        del named["content-type"]
        await streams.publish("a", record.value, headers=named)
        with pytest.raises(SourceError, match="no header with the name 'a b'"):
            await transport.send([record._replace(headers={"a b": ""})], "k")
    ours, second, empty, theirs = [await streams.get_msg("a", seq=seq) for seq in range(1, 5)]
    assert ours.data == theirs.data == record.value
    assert ours.headers is not None
    assert {**ours.headers, "Nats-Msg-Id": ours.headers["Nats-Msg-Id"] + "0"} == theirs.headers
    assert ours.headers["d"] == "a  b: c"
    assert (second.headers or {}).keys() == ours.headers.keys() - {"a", "b-c", "d"}
    assert (empty.data or b"", empty.headers) == (b"", {"Nats-Expected-Stream": "a"})


async def test_messages_that_are_too_large(server: NatsServer, streams: JetStreamContext) -> None:
    url = server.url("a")
    with pytest.raises(
        LimitExceeded, match=r"message 2 of k-1 has 1[0-9]{6} bytes.* 1048576"
    ) as raised:
        await publish([numbered(1), numbered(2, 1 << 20)], url, create=True, key="k", retries=0)
    assert "max_payload" in str(raised.value)
    assert await taken(url) == [], "none of the batch was sent"
    await streams.update_stream(name="a", subjects=["a"], max_msg_size=500)
    with pytest.raises(LimitExceeded, match="takes 500"):
        await publish([numbered(2, 400)], url, retries=0)
    # as large as can be
    await streams.update_stream(name="a", subjects=["a"], max_msg_size=-1)
    most = [numbered(1, (1 << 20) - 300)]
    await publish(most, url, key="k")
    assert same([each.message async for each in subscribe(url, follow=False)], most)


async def test_streams_that_take_no_messages(server: NatsServer, streams: JetStreamContext) -> None:
    await publish(SENT, server.url("a"), create=True)
    await streams.add_stream(name="copy", mirror=api.StreamSource(name="a"))
    with pytest.raises(SourceError, match="copy of others"):
        await publish(SENT, server.url("copy"), retries=0)
    with pytest.raises(SourceError, match="no stream takes messages of the subject b") as raised:
        await publish(SENT, server.url("a?subject=b"), retries=0)
    assert "?subject=" in str(raised.value)
    await publish(SENT, server.url("b"), create=True)
    with pytest.raises(SourceError, match="subject b is of another stream than a"):
        await publish(SENT, server.url("a?subject=b"), retries=0)
    await streams.add_stream(
        name="full", subjects=["full"], max_msgs=2, discard=api.DiscardPolicy.NEW
    )
    with pytest.raises(SourceError, match="refuses a message: maximum messages exceeded"):
        await publish(SENT, server.url("full"), retries=0)


@pytest.mark.parametrize(
    "url",
    ["nats://host/", "nats://host/a.b", "nats://host/a/b", "nats:///a", "nats://host/a?b=c",
     "nats://host/a?subject=", "nats://host/a?subject=a..b"],
)  # fmt: skip
async def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError, match="is no "):
        await taken(url)


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_had(server: NatsServer) -> None:
    error = await refused(server.url("a"))
    assert error.response_status == 404
    with pytest.raises(SourceError, match="has no stream a") as raised:
        await publish(SENT, server.url("a"), retries=0)
    assert "--create" in str(raised.value)
    server.kill()
    for awaitable in (taken(server.url("a")), publish(SENT, server.url("a"), retries=0)):
        with pytest.raises(SourceError, match="could not be reached") as raised:
            await awaitable
        assert "check the URL" in str(raised.value)


async def test_a_server_without_jetstream(server: NatsServer) -> None:
    server.kill()
    server.command = lambda: ["nats-server", "-p", str(server.port)]  # type: ignore[method-assign]
    server.start()
    assert "no JetStream" in str(await refused(server.url("a")))


USERS = """
authorization {
  users: [
    {user: writer, password: secret}
    {user: reader, password: secret, permissions: {subscribe: ">", publish: ["$JS.API.>"]}}
  ]
}
"""


async def test_credentials(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.settings = USERS
    server.restart()
    url, writer = server.url("a"), {"user": "writer", "password": "$PASSWORD"}
    monkeypatch.setenv("PASSWORD", "secret")
    await publish(SENT, url, create=True, options=writer)
    assert len(await taken(url, options={**writer, "user": "reader"})) == 5
    for wrong in ({}, {"user": "writer", "password": "x"}):
        error = await refused(url, options=wrong)
        assert "Authorization" in str(error)
        assert "user and password" in str(error)
    with pytest.raises(SourceError, match="permissions violation"):
        await publish(SENT, url, options={**writer, "user": "reader"}, retries=0)
    with pytest.raises(UsageError, match="no option username"):
        await taken(url, options={"username": "a"})
    with pytest.raises(UsageError, match="holds credentials"):
        await taken(url.replace("//", "//writer:secret@"))


async def test_credentials_in_files(server: NatsServer, tmp_path: Path) -> None:
    import nkeys

    seed = nkeys.encode_seed(b"7" * 32, nkeys.PREFIX_BYTE_USER)
    (tmp_path / "seed").write_bytes(seed)
    public = nkeys.from_seed(bytearray(seed)).public_key.decode()
    server.settings = f"authorization {{ users: [{{nkey: {public}}}] }}"
    server.restart()
    options = {"nkeys_seed": str(tmp_path / "seed")}
    await publish(SENT, server.url("a"), create=True, options=options)
    assert len(await taken(server.url("a"), options=options)) == 5
    (tmp_path / "no seed").write_text("x")
    for name in ("nothing", "no seed"):
        with pytest.raises(UsageError, match="credentials cannot be read"):
            await taken(server.url("a"), options={"nkeys_seed": str(tmp_path / name)})


@pytest.mark.parametrize("scheme", ["nats", "tls"])
async def test_tls(server: NatsServer, tmp_path: Path, scheme: str) -> None:
    made = certificate_in(tmp_path)
    files = f'cert_file: "{made.certificate}", key_file: "{made.key}"'
    server.settings = f"tls {{ {files} }}"
    server.restart()
    url = server.url("a").replace("nats:", f"{scheme}:")
    options = {"ca_certs": str(made.certificate)}
    await publish(SENT, url, create=True, options=options)
    assert len(await taken(url, options=options)) == 5
    assert "ca_certs" in str(await refused(url))
    with pytest.raises(UsageError, match="certificates cannot be read"):
        await taken(url, options={"ca_certs": str(tmp_path / "nothing")})


async def test_tls_ends_without_a_warning(
    server: NatsServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio wrote one at each end: "returning true from eof_received() has no effect when using ssl"."""
    made = certificate_in(tmp_path)
    server.settings = f'tls {{ cert_file: "{made.certificate}", key_file: "{made.key}" }}'
    server.restart()
    options = {"ca_certs": str(made.certificate)}
    await publish(SENT, server.url("a"), create=True, options=options)
    async with aclosing(subscribe(server.url("a"), after=0, options=options, retries=0)) as read:
        for _ in SENT:
            await anext(read)
        await asyncio.to_thread(server.kill)
        with pytest.raises(SourceError):
            await anext(read)
    assert [each.getMessage() for each in caplog.records] == []


@pytest.mark.parametrize("scheme", ["tls", "nats"])
async def test_credentials_are_not_sent_without_tls(tmp_path: Path, scheme: str) -> None:
    """A server, or somebody between, that offers no TLS got them, although TLS was asked for."""
    sent = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "a", "version": "2.9.10", "max_payload": 1000}\r\n')
        sent.extend(await reader.read())
        writer.close()

    options = {"user": "ann", "password": "secret"}
    if scheme == "nats":
        options["ca_certs"] = str(certificate_in(tmp_path).certificate)
    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await refused(f"{scheme}://127.0.0.1:{port}/a", options=options)
    assert "offers no TLS" in str(error)
    assert bytes(sent) == b""


async def test_a_server_that_is_silent() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(silent, "127.0.0.1", port):
        with pytest.raises(SourceError, match=r"could not be reached|silent"):
            await asyncio.wait_for(taken(f"nats://127.0.0.1:{port}/a", idle_seconds=1), 100)
