"""Failures of a broker as errors of this package, with hints, and nothing else on standard error."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from construct_messages.errors import SourceError, UsageError
from construct_messages.feeds import publish, subscribe
from construct_messages.feeds.brokers.kafka.client import TopicUrl
from tests.support.commands import run
from tests.support.engines.kafka import PASSWORDS, Kafka
from tests.support.engines.kafka_records import Raw, produce
from tests.support.engines.servers import free_port
from tests.support.streams import numbered

pytestmark = pytest.mark.slow


def login(kafka: Kafka, user: str, **changes: str) -> dict[str, str]:
    """The options for the secured listener."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
        "ssl.ca.location": str(kafka.certificate),
    } | {name.replace("_", "."): value for name, value in changes.items()}


async def both(url: str, **options: Any) -> list[SourceError]:
    """The errors of reading and of writing."""
    errors = []
    with pytest.raises(SourceError) as refused:
        await anext(subscribe(url, follow=False, **options))
    errors.append(refused.value)
    with pytest.raises(SourceError) as refused:
        await publish([numbered(1)], url, **options)
    return [*errors, refused.value]


async def test_a_topic_that_does_not_exist(kafka: Kafka) -> None:
    for error in await both(kafka.url("none")):
        assert "Unknown topic" in error.message
        assert "--create" in (error.hint or "")
        assert not error.transient
    assert "none" not in kafka.admin.list_topics().topics, "to ask does not create it"


async def test_a_broker_that_cannot_be_reached() -> None:
    for error in await both(f"kafka://127.0.0.1:{free_port()}/a", retries=0):
        assert "cannot be reached" in error.message
        assert "refused" in error.message
        assert "security.protocol" in (error.hint or "")
        assert error.transient


async def test_a_listener_that_wants_tls(kafka: Kafka) -> None:
    for error in await both(f"kafka://{kafka.secured}/a", retries=0):
        assert "security.protocol" in (error.hint or "")


async def test_a_listener_without_tls(kafka: Kafka) -> None:
    """It closes the connection, which was tried for 57 s."""
    async with asyncio.timeout(100):
        for error in await both(kafka.url("a"), options=login(kafka, "admin")):
            assert "has no TLS at this port" in error.message
            assert "sasl_plaintext" in (error.hint or "")


async def test_a_certificate_that_is_not_trusted(kafka: Kafka) -> None:
    options = login(kafka, "admin", ssl_ca_location="")
    for error in await both(f"kafka://{kafka.secured}/a", options=options):
        assert "certificate" in error.message
        assert "ssl.ca.location" in (error.hint or "")


async def test_a_password_that_is_wrong(kafka: Kafka) -> None:
    """It is refused at once, and not shown."""
    options = login(kafka, "admin", sasl_password="hunter2")
    for error in await both(f"kafka://{kafka.secured}/a", options=options):
        assert "Invalid username or password" in error.message
        assert "sasl.password" in (error.hint or "")
        assert "hunter2" not in str(error)


async def test_a_user_who_may_not(kafka: Kafka) -> None:
    topic = kafka.topic()
    url = f"kafka://{kafka.secured}/{topic}"
    for error in await both(url, options=login(kafka, "guest")):
        assert "authorization failed" in error.message
        assert "allow the user" in (error.hint or "")


async def test_a_user_who_may_read_or_write_one_topic_and_nothing_else(kafka: Kafka) -> None:
    """Groups and transactional ids are needed by those who name them only."""
    topic = kafka.topic()
    url, options = f"kafka://{kafka.secured}/{topic}", login(kafka, "guest")
    kafka.allow("guest", topic)
    await publish([numbered(1)], url, options=options)
    assert [each.message async for each in subscribe(url, follow=False, options=options)] == [
        numbered(1)
    ]
    with pytest.raises(SourceError, match="Transactional Id authorization failed") as refused:
        await publish([numbered(2)], url, options=options, key="k")
    assert "without a state and a key" in (refused.value.hint or "")
    with pytest.raises(SourceError, match="Group authorization failed") as refused:
        await anext(subscribe(url, follow=False, options={**options, "group.id": "g"}))
    assert "group.id" in (refused.value.hint or "")


async def test_passwords_by_name(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORDS["admin"])
    topic = kafka.topic()
    options = login(kafka, "admin", sasl_password="$KAFKA_PASSWORD")
    url = f"kafka://{kafka.secured}/{topic}"
    for key in (None, "k"):
        assert await publish([numbered(1)], url, options=options, key=key) == 1


WRONG_URLS = {
    "kafka://localhost/": "no URL of a topic",
    "kafka://localhost": "no URL of a topic",
    "kafka:///a": "no URL of a topic",
    "kafka://localhost/a/b": "no URL of a topic",
    "kafka://localhost/a%20b": "no URL of a topic",
    "kafka://localhost:port/a": "no URL of a topic",
    "kafka://localhost/a?partition=1": "more than hosts and a topic",
    "kafka://ann:secret@localhost/a": "credentials",
}


@pytest.mark.parametrize("url", WRONG_URLS)
async def test_urls_that_are_wrong(url: str) -> None:
    with pytest.raises(UsageError, match=WRONG_URLS[url]):
        await publish([numbered(1)], url)


@pytest.mark.parametrize(
    ("url", "brokers"),
    [
        ("kafka://a/t", "a:9092"),
        ("kafka://a:1,b:2,c/t", "a:1,b:2,c:9092"),
        ("kafka://[::1]/t", "[::1]:9092"),
        ("kafka://[::1]:7/t", "[::1]:7"),
    ],
)
def test_brokers(url: str, brokers: str) -> None:
    assert TopicUrl.parse(url) == (brokers, "t")


OPTIONS = {
    "nothing.of.it": "nothing.of.it",
    "security.protocol": "security.protocol",
    "enable.auto.commit": "cannot be set",
    "acks": "cannot be set",
}


@pytest.mark.parametrize("name", OPTIONS)
async def test_options_that_are_wrong(name: str) -> None:
    with pytest.raises(UsageError, match=OPTIONS[name]):
        await publish([numbered(1)], "kafka://localhost/a", options={name: "x"})


def test_the_command_line(kafka: Kafka, tmp_path: Path) -> None:
    """A log, a topic and a log again; a state file; and one line of error where a topic is missing."""
    topic = kafka.topic()
    produce(kafka, topic, [Raw(b'{"@id": "urn:s", "urn:p": "x"}', [], b"k")])
    log, state = tmp_path / "log.nq", tmp_path / "state.json"
    command = ["subscribe", kafka.url(topic), "--state", str(state), "--output", str(log)]
    done = run(*command, "--media-type", "application/ld+json", "--after", "0")
    assert (done.status, done.errors) == (0, "")
    assert '<urn:s> <urn:p> "x" .' in log.read_text()
    assert json.loads(state.read_text())["checkpoint"]["place"] == {"offsets": ["0:1"]}
    other = kafka.topic()
    done = run("publish", str(log), "--to", kafka.url(other), "--set", "compression.type=gzip")
    assert done.status == 0, done.errors
    done = run("subscribe", kafka.url(other), "--after", "0", "--set", "group.id=readers")
    assert '<urn:s> <urn:p> "x" .' in done.log
    done = run("subscribe", kafka.url("none"))
    assert done.status != 0
    assert done.log == ""
    assert "rdkafka" not in done.errors
    assert done.errors.count("\n") <= 2
    assert "Unknown topic" in done.errors


def test_without_the_extra(tmp_path: Path) -> None:
    """A process that cannot import the library."""
    program = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from construct_messages.__main__ import program\n"
        "sys.argv = ['construct-messages', 'subscribe', 'kafka://localhost/a']\n"
        "program()\n"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "confluent_kafka, which is not installed" in done.stderr
    assert "pip install 'construct-messages[kafka]'" in done.stderr
