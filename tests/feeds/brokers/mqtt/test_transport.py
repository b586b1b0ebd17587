"""Topics of Mosquitto: sessions that keep what is not read, acknowledgements, what is refused, and what comes again."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message, read_log
from construct_messages.errors import LimitExceeded, LogError, SourceError, UsageError
from construct_messages.feeds import Checkpoint, Subscription, publish, relay, subscribe
from construct_messages.feeds.bridging import BridgeStatus, feed
from construct_messages.feeds.opening import opened
from construct_messages.feeds.recording import RecordingState, record
from construct_messages.feeds.transport import Settings, Start
from construct_messages.logs import encoder_for
from construct_messages.logs.writing import OpenLog
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.streams import open_store
from tests.support.certificates import certificate_in
from tests.support.engines.broker_logs import log, same
from tests.support.engines.brokers import Mosquitto
from tests.support.engines.servers import free_port
from tests.support.http.feeds import first, numbers
from tests.support.places import ROOT
from tests.support.processes import run as run_command
from tests.support.processes import start as start_command
from tests.support.streams import numbered, written
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

SENT = [numbered(1), Message(), numbered(3), numbered(4), numbered(5)]
READER = {"identifier": "reader"}


@asynccontextmanager
async def reading(url: str, **options: Any) -> AsyncIterator[Subscription]:
    options = {"retries": 0, **options}
    async with aclosing(subscribe(url, **options)) as elements:
        await elements.start()
        yield elements


async def taken(elements: Subscription, count: int) -> list[Message]:
    async def take() -> list[Message]:
        return [(await anext(elements)).message for _ in range(count)]

    return await asyncio.wait_for(take(), 300)


async def stop(elements: Subscription) -> None:
    assert elements.checkpoint is not None
    await elements.acknowledge(elements.checkpoint)


async def refused(url: str, **options: Any) -> SourceError:
    with pytest.raises(SourceError) as raised:
        async with reading(url, **options) as elements:
            await anext(elements)
    assert raised.value.hint
    return raised.value


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_from_now_on(broker: Mosquitto) -> None:
    url = broker.url("a")
    await publish(SENT, url)
    async with reading(url) as elements:
        before = datetime.now(UTC)
        await publish(SENT, url)
        read = [await anext(elements) for _ in SENT]
        assert numbers(read) == [1, 2, 3, 4, 5]
        assert same([each.message for each in read], SENT)
        assert all(each.microseconds >= before.timestamp() * 1e6 - 1 for each in read)
        assert elements.checkpoint == Checkpoint(5)


async def test_a_session_keeps_what_comes_meanwhile(broker: Mosquitto) -> None:
    url = broker.url("a")
    async with reading(url, options=READER):
        pass
    await publish(SENT, url)
    async with reading(url, options=READER) as elements:
        assert same(await taken(elements, 2), SENT[:2])
        await stop(elements)
        await taken(elements, 1)  # which is not acknowledged
    async with reading(url, options=READER, checkpoint=Checkpoint(2)) as elements:
        read = [await anext(elements) for _ in range(3)]
        assert numbers(read) == [3, 4, 5]
        assert same([each.message for each in read], SENT[2:])
        await stop(elements)
    async with reading(url, options=READER, checkpoint=Checkpoint(5)) as elements:
        await publish([numbered(6)], url)
        assert same(await taken(elements, 1), [numbered(6)])


async def test_a_broker_that_is_restarted(broker: Mosquitto) -> None:
    """What was not acknowledged comes again, and is recognised by its key."""
    url = broker.url("a")
    async with reading(url, options=READER, retries=9) as elements:
        await publish(SENT, url)
        assert same(await taken(elements, 4), SENT[:4])
        await elements.acknowledge(Checkpoint(2))
        broker.restart()
        await publish([numbered(6)], url, retries=9)
        assert same(await taken(elements, 2), [SENT[4], numbered(6)])
        await stop(elements)


async def test_messages_that_are_sent_twice(broker: Mosquitto) -> None:
    url = broker.url("a")
    async with reading(url, options=READER) as elements:
        for _ in range(2):
            await publish(SENT, url, key="k", batch=2)
        await publish([numbered(6)], url)
        assert same(await taken(elements, 6), [*SENT, numbered(6)])
        await stop(elements)
    async with reading(url, options=READER) as elements:  # all are acknowledged, doubles too
        await publish([numbered(7)], url)
        assert same(await taken(elements, 1), [numbered(7)])


async def test_no_more_than_the_receive_maximum(
    broker: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    url = broker.url("a")
    async with reading(url, options={**READER, "receive_maximum": "3"}) as elements:
        await publish(SENT, url)
        assert same(await taken(elements, 3), SENT[:3])
        assert "sends no more until some of 3 messages are acknowledged" in caplog.text
        waiting = asyncio.ensure_future(anext(elements))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        await elements.acknowledge(Checkpoint(1))
        assert (await waiting).message == SENT[3]
    # without a session, asking for the next is enough
    async with reading(url, options={"receive_maximum": "3"}) as elements:
        await publish(log(50), url)
        assert same(await taken(elements, 50), log(50))


async def test_messages_that_the_broker_drops(tmp_path: Path) -> None:
    """A slow reader gets an error in their place, and the next one goes on after them."""
    with Mosquitto(tmp_path / "mosquitto", settings="max_queued_messages 10") as broker:
        url, options = broker.url("a"), {**READER, "receive_maximum": "3"}
        state, sent = tmp_path / "state", list(map(numbered, range(30)))
        async with reading(url, options=options) as elements:
            await publish(sent[:20], url, state=state)
            read = await taken(elements, 3)
            await stop(elements)
            read += await taken(elements, 3)
            await stop(elements)
            await publish(sent, url, state=state)

            async def go_on() -> None:
                while len(read) < 30:
                    read.extend(await taken(elements, 1))
                    await stop(elements)

            with pytest.raises(SourceError, match="did not come") as gap:
                await go_on()
            assert gap.value.status == 410
            assert "max_queued_messages" in str(gap.value.hint)
        assert len(read) < 20
        assert read == sent[: len(read)]


async def test_the_settings_of_the_page_keep_messages_at_a_linear_cost(tmp_path: Path) -> None:
    """Mosquitto wrote its whole database for each message: 570 MB for these, which take 0.6 MB."""
    page = (ROOT / "docs/reference/streams/mqtt.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    settings = block.replace("persistence true\n", "")  # which it has from the test
    sent = [numbered(n) for n in range(2000)]
    with Mosquitto(tmp_path / "broker", settings) as broker:
        async with reading(broker.url("rooms"), options=READER):
            pass
        started = time.monotonic()
        await publish(sent, broker.url("rooms"))
        written_bytes = int(re.findall(r"wchar: (\d+)", process_io(broker.pid))[0])
        seconds = time.monotonic() - started
        done = time.time_ns()
        await eventually(lambda: broker.saved() > done)
        saves = seconds + 2
        assert written_bytes < saves * (broker.place / "mosquitto.db").stat().st_size + 1_000_000
        broker.restart()
        async with reading(broker.url("rooms"), options=READER) as elements:
            assert await taken(elements, len(sent)) == sent


def process_io(pid: int) -> str:
    return Path(f"/proc/{pid}/io").read_text()


async def test_a_session_that_is_lost(broker: Mosquitto) -> None:
    url = broker.url("a")
    error = await refused(url, options=READER, checkpoint=Checkpoint(3))
    assert error.status == 410
    assert "has lost the session of reader" in str(error)
    async with reading(url, retries=9) as elements:
        broker.kill()
        (broker.place / "mosquitto.db").unlink()
        broker.start()
        with pytest.raises(SourceError, match="lost the session") as raised:
            await anext(elements)
    assert raised.value.status == 410


async def test_a_session_that_has_other_topics(broker: Mosquitto) -> None:
    async with reading(broker.url("a"), options=READER):
        pass
    async with reading(broker.url("rooms/%23"), options=READER) as elements:
        await publish(SENT[:2], broker.url("rooms/x"))
        assert same(await taken(elements, 2), SENT[:2])
        await publish(SENT, broker.url("a"))
        with pytest.raises(SourceError, match=r"also has messages of a, not only of rooms/#"):
            await anext(elements)


async def test_a_shared_subscription(broker: Mosquitto) -> None:
    shared, sent = broker.url("$share/group/rooms/%2B"), log(40)
    async with reading(shared) as one, reading(shared) as other:
        await publish(sent, broker.url("rooms/x"))
        read = await taken(one, 20) + await taken(other, 20)
    assert all(any(each.isomorphic(message) for each in read) for message in sent)


async def test_a_session_ends_with_a_reader_without_a_name(broker: Mosquitto) -> None:
    broker.settings = "sys_interval 1"
    broker.restart()
    url, counts = broker.url("a"), broker.url("$SYS/broker/clients/total")
    async with reading(url, options=READER):
        pass
    async with reading(url) as elements:
        await publish(SENT, url)
        await taken(elements, 5)
    # the broker counts the clients whose sessions it keeps: the named one, and the one that asks
    async with reading(
        counts, media_type="text/turtle", options={"retain_handling": "0"}
    ) as elements:
        with pytest.raises(LogError):  # a number is no Turtle
            await anext(elements)
    command = ["mosquitto_sub", "-p", str(broker.port), "-t", "$SYS/broker/clients/total"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    async for line in process.stdout:
        if line == b"2\n":
            break
    process.kill()
    await process.communicate()


CONNACK, SUBACK = b"\x20\x03\x00\x00\x00", b"\x90\x04\x00\x01\x00"


@pytest.mark.parametrize(
    ("answers", "expected", "hint"),
    [
        ([CONNACK, SUBACK + b"\x00"], "grants QoS 0", "allow QoS 1"),
        ([CONNACK, SUBACK + b"\x87"], "refuses to subscribe to a: Not authorized", "username"),
        (
            [b"\x20\x03\x00\x86\x00"],
            "refuses the connection: Bad user name or password",
            "username",
        ),
        (
            [CONNACK, SUBACK + b"\x01" + b"\xe0\x01\x8e"],
            "another client connected to .* as reader",
            "of its own",
        ),
    ],
)
async def test_refusals_of_other_brokers(answers: list[bytes], expected: str, hint: str) -> None:
    """A broker that answers as is written in MQTT 5.0, where Mosquitto does otherwise, or closes the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            for each in answers:
                await reader.read(1000)
                writer.write(each)
            await reader.read()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(answer, "127.0.0.1", port):
        error = await refused(f"mqtt://127.0.0.1:{port}/a", options=READER, idle_seconds=2)
    assert re.search(expected, str(error))
    assert hint in str(error)


async def test_a_broker_that_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # connections wait there
        url = f"mqtt://127.0.0.1:{server.getsockname()[1]}/a"
        error = await refused(url, idle_seconds=1)
    assert error.transient


@pytest.mark.parametrize(
    "where", [{"after": 0}, {"last": 3}, {"since": datetime(2026, 1, 1, tzinfo=UTC)}], ids=repr
)
async def test_what_no_broker_keeps(broker: Mosquitto, where: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="keeps no earlier messages"):
        await first(subscribe(broker.url("a"), **where), 1)


async def test_what_cannot_be_continued(broker: Mosquitto) -> None:
    with pytest.raises(UsageError, match="cannot be continued") as raised:
        await first(subscribe(broker.url("a"), checkpoint=Checkpoint(1)), 1)
    assert "identifier" in str(raised.value)
    with pytest.raises(UsageError, match="mqtt: does not end"):
        subscribe(broker.url("a"), follow=False)


async def test_a_state_needs_an_identifier(broker: Mosquitto, tmp_path: Path) -> None:
    """Otherwise what comes after a kill would be lost: it is refused before there is a state."""
    url, state, settings = broker.url("a"), tmp_path / "state", Settings(retries=0, idle_seconds=60)
    log = OpenLog(encoder_for(*find_log("nq")), lambda _: None)
    with open_store(tmp_path / "streams.db") as store:
        starts = (
            relay(url, tmp_path / "log.nq", follow=True, state=state),
            record(subscribe(url), log, RecordingState(state, url, can_be_cut=False)),
            feed(store, "a", "bridge", url, opened(url, settings), Start(last=0), BridgeStatus()),
        )
        for starting in starts:
            with pytest.raises(UsageError, match="cannot be continued") as raised:
                await starting
            assert "identifier=NAME" in str(raised.value)
        assert await store.asaved_state("bridge") == {}
    assert not state.exists()


@pytest.mark.parametrize(
    "url", ["mqtt://host", "mqtt:///a", "mqtt://host/a?b=c", "mqtt://host/a/#", "mqtt://host/%00"]
)
async def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError, match="is no URL of a topic"):
        await first(subscribe(url), 1)


async def test_options_that_are_none(broker: Mosquitto) -> None:
    for options in (
        {"client_id": "a"},
        {"receive_maximum": "many"},
        {"receive_maximum": "0"},
        {"retain_handling": "3"},
        {"username": "$NOT_SET"},
    ):
        with pytest.raises(UsageError, match="option"):
            await first(subscribe(broker.url("a"), options=options), 1)


@pytest.mark.process
async def test_the_command_line(broker: Mosquitto, tmp_path: Path) -> None:
    """`subscribe` acknowledges what its state includes, so that the next one goes on there."""
    url, output, state = broker.url("a"), tmp_path / "log.nq", tmp_path / "state"
    sent = log(60)
    arguments = [
        "subscribe",
        url,
        "--follow",
        "--set",
        "identifier=command",
        "--output",
        str(output),
    ]
    arguments += ["--set", "receive_maximum=7", "--state", str(state)]
    process = await start_command(*arguments)
    await eventually(lambda: " command " in broker.output() or "command 1 a" in broker.output())
    await publish(sent[:30], url)
    await eventually(lambda: written(state) == 30)
    process.terminate()
    await process.communicate()
    await publish(sent[30:], url)
    process = await start_command(*arguments)
    await eventually(lambda: written(state) == 60)
    process.terminate()
    await process.communicate()
    assert same(list(read_log(output)), sent)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"), [((), "--set identifier=NAME"), (("--set", "identifier=reader"), "")]
)
async def test_the_advice_of_the_command_line(
    broker: Mosquitto, options: tuple[str, ...], expected: str
) -> None:
    """It advised `--after 0`, which is refused here."""
    process = await start_command("subscribe", broker.url("a"), "--follow", *options)
    await eventually(lambda: "1 a" in broker.output())
    process.terminate()
    _, errors = await process.communicate()
    assert expected in errors.decode()
    assert ("begins with the next message" in errors.decode()) == bool(expected)
    assert "--after" not in errors.decode()


async def test_a_log(broker: Mosquitto, request: pytest.FixtureRequest) -> None:
    """Of few quads and many, of none, and of a megabyte; `make logs-brokers` has 20,000 messages."""
    sent = log(request.config.getoption("--messages"), large=10, bytes=990_000)
    broker.settings = "max_queued_messages 0"  # or it drops what the reader has not taken
    broker.saves = False  # its database grows with each
    broker.restart()
    async with reading(broker.url("a")) as elements:
        sending = asyncio.create_task(publish(sent, broker.url("a")))
        assert same([(await anext(elements)).message for _ in sent], sent)
        await sending


# --- writing ----------------------------------------------------------------------------------------------------------


async def test_messages_that_are_too_large(broker: Mosquitto) -> None:
    broker.settings = "max_packet_size 2000"
    broker.restart()
    url = broker.url("a")
    async with reading(url) as elements:
        with pytest.raises(LimitExceeded, match=r"message 2 of k-1 has 3\d{3} bytes.* takes 2000"):
            await publish([numbered(1), numbered(2, 3000)], url, key="k", retries=0)
        largest = numbered(3, 1720)
        await publish([largest], url)
        assert same(await taken(elements, 1), [largest]), "none of the other batch was sent"
        with pytest.raises(LimitExceeded):
            await publish([numbered(3, 2000)], url, key="k", retries=0)


async def test_a_topic_that_nobody_reads(
    broker: Mosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await publish([numbered(1), numbered(2)], broker.url("a"), batch=1)
    assert caplog.text.count("nobody subscribes") == 1


async def test_wildcards_take_no_messages(broker: Mosquitto) -> None:
    with pytest.raises(UsageError, match="wildcards"):
        await publish(SENT, broker.url("a/%23"))


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_a_broker_that_is_not_there(broker: Mosquitto) -> None:
    broker.kill()
    assert "check the URL" in str(await refused(broker.url("a")))
    with pytest.raises(SourceError, match="could not be reached"):
        await publish(SENT, broker.url("a"), retries=0)


ACCESS = """user writer
topic readwrite #
user reader
topic read a
"""


async def test_credentials(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("writer", "reader"):
        subprocess.run(  # noqa: ASYNC221 - it takes no time
            ["mosquitto_passwd", "-b", *([] if user == "reader" else ["-c"]), tmp_path / "users", user, "secret"],
            check=True,
        )  # fmt: skip
    (tmp_path / "access").write_text(ACCESS)
    broker.settings = (
        f"allow_anonymous false\npassword_file {tmp_path}/users\nacl_file {tmp_path}/access"
    )
    broker.restart()
    monkeypatch.setenv("PASSWORD", "secret")
    writer = {"username": "writer", "password": "$PASSWORD"}
    reader = {**writer, "username": "reader"}
    url = broker.url("a")
    async with reading(url, options=reader) as elements:
        await publish(SENT, url, options=writer)
        assert same(await taken(elements, 5), SENT)
    for wrong in ({}, {"username": "writer", "password": "x"}):
        error = await refused(url, options=wrong)
        assert "refuses the connection: Not authorized" in str(error)
        assert "username" in str(error)
    with pytest.raises(SourceError, match="refuses a message: Not authorized"):
        await publish(SENT, url, options=reader, retries=0)
    with pytest.raises(UsageError, match="holds credentials"):
        await first(subscribe(url.replace("//", "//writer:secret@")), 1)


@pytest.mark.process
async def test_tls_at_a_port_without(broker: Mosquitto) -> None:
    """Mosquitto closes the connection, which was tried for 62 s. In a process of its own, as below."""
    url = broker.url("a").replace("mqtt:", "mqtts:")
    status, _, errors = await asyncio.wait_for(run_command("subscribe", url, "--follow"), 50)
    assert status != 0
    assert "has no TLS at this port" in errors
    assert "write mqtt:" in errors


async def test_tls(broker: Mosquitto, tmp_path: Path) -> None:
    made = certificate_in(tmp_path)
    broker.settings = (
        f"listener {broker.port} 127.0.0.1\ncertfile {made.certificate}\nkeyfile {made.key}"
    )
    broker.restart()
    url, options = broker.url("a").replace("mqtt:", "mqtts:"), {"ca_certs": str(made.certificate)}
    async with reading(url, options=options) as elements:
        await publish(SENT, url, options=options)
        assert same(await taken(elements, 5), SENT)
    # in a process of its own: paho leaves the socket of a handshake that failed to the garbage collector
    status, _, errors = await run_command("subscribe", url, "--follow", "--retries", "0")
    assert status != 0
    assert "ca_certs" in errors
    with pytest.raises(UsageError, match="certificates cannot be read"):
        await first(subscribe(url, options={"ca_certs": str(tmp_path / "nothing")}), 1)
    # without TLS, at once and with nothing else: Mosquitto closes the connection, and aiomqtt waited for an answer
    plain = ("subscribe", broker.url("a"), "--follow")
    status, _, errors = await asyncio.wait_for(run_command(*plain), 50)
    assert status != 0
    assert [line for line in errors.splitlines() if "retry" in line or "socket" in line] == []
    assert "expects TLS at this port" in errors
    assert "write mqtts: instead of mqtt:" in errors
