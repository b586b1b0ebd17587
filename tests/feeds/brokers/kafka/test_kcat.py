"""kcat, a client of Kafka by others, on both sides: what it writes is read, and what is written it reads."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.feeds import publish, subscribe
from tests.support.engines.kafka import Kafka
from tests.support.engines.servers import Missing, program
from tests.support.places import absent

pytestmark = pytest.mark.slow

SENT = [
    Message([Quad(iri("urn:s"), iri("urn:p"), literal("é\t😀"))]),
    Message(
        [Quad(blank("b"), iri("urn:p"), blank("b")), Quad(blank("b"), iri("urn:q"), blank("c"))]
    ),
]


@pytest.fixture
def kcat() -> str:
    try:
        return program("kcat", "apt-get install kcat")
    except Missing as missing:
        absent(str(missing))


async def test_what_kcat_writes(kafka: Kafka, kcat: str) -> None:
    """A record for each line of its input, with the headers of its options; `-Z` makes tombstones of empty lines."""
    topic = kafka.topic()

    def write(data: str, *options: str) -> None:
        command = [kcat, "-P", "-b", kafka.address, "-t", topic, "-p", "0", *options]
        subprocess.run(command, input=data.encode(), check=True)

    turtle = ["-H", "content-type=text/turtle"]
    write("<urn:s> <urn:p> 1 .\n\n<urn:s> <urn:p> 2 .\n", *turtle)
    write("\n<urn:s> <urn:p> 3 .\n", "-Z", "-k", "key", *turtle)
    write('{"@id": "urn:s", "urn:p": 4}', "-H", "RDF-Message-Content-Type=application/ld+json")
    found = [element.message async for element in subscribe(kafka.url(topic), follow=False)]
    numbers = [str(n) for n in (1, 2, 3, 4)]
    assert [next(iter(each)).object.split('"')[1] for each in found if len(each)] == numbers


@pytest.mark.parametrize("key", [None, "k"])
async def test_what_kcat_reads(kafka: Kafka, kcat: str, key: str | None) -> None:
    topic = kafka.topic()
    await publish([*SENT, Message()], kafka.url(topic), media_type="application/n-triples", key=key)
    command = [kcat, "-C", "-e", "-q", "-b", kafka.address, "-t", topic, "-f", "%h|%s;"]
    done = await asyncio.to_thread(
        subprocess.run, command, check=True, capture_output=True, text=True
    )
    records = [each.split("|", 1) for each in done.stdout.split(";") if each]
    headers = "RDF-Message-Content-Type=application/n-triples,content-type=application/n-triples"
    assert [each[0] for each in records] == [headers] * 3
    assert records[0][1] == '<urn:s> <urn:p> "é\\t😀" .\n'
    assert records[2][1] == ""
