"""What delimits where: media types that announce no messages are plain documents; names and extensions say nothing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages import Message, Quad, read_log, write_log
from construct_messages.errors import LogError
from construct_messages.rdf.formats import FORMATS, N_QUADS, N_TRIPLES, TRIG, TURTLE, Format
from construct_messages.rdf.terms import from_pyoxigraph
from construct_messages.spark.logs.files import find
from construct_messages.spark.logs.options import ReadOptions
from construct_messages.spark.logs.source import partitions, texts_of
from tests.support.commands import run
from tests.support.http.streams import serving_streams
from tests.support.logs.kinds import single_bytes

DOCUMENT: Final = b"""# @message me on Mastodon
<urn:s> <urn:p> "1" . # @message the second comment
<urn:s> <urn:p> "2" .
#@message, and the third
<urn:t> <urn:p> "3" .
"""
"""A document of RDF 1.1 in each of the four formats, with comments that happen to begin so."""
ANNOUNCED: Final = (
    b'VERSION "1.2-messages"\n<urn:s> <urn:p> "1" .\nMESSAGE\n# '
    b'@message\n<urn:s> <urn:p> "2" .\nMESSAGE\n'
)
OF_STATEMENTS: Final = (N_TRIPLES, N_QUADS, TURTLE, TRIG)

by_format = pytest.mark.parametrize("format", OF_STATEMENTS, ids=lambda format: format.extension)


def by_others(format: Format) -> list[Message]:
    """The document as pyoxigraph and rdflib read it."""
    parsed = ox.parse(DOCUMENT, format=ox.RdfFormat.from_media_type(format.media_type))
    triples = [
        Quad(*map(from_pyoxigraph, (quad.subject, quad.predicate, quad.object))) for quad in parsed
    ]
    flat = rdflib.Dataset(default_union=True).parse(io.BytesIO(DOCUMENT), format=format.media_type)
    assert len(flat) == len(triples) == 3
    return [Message(triples)]


def sizes(data: bytes, format: str, syntax: str | None = None) -> list[int]:
    """The sizes of the messages, the same whole and byte by byte."""
    whole, pieces = (
        [len(message) for message in read_log(source, format, syntax=syntax)]
        for source in (data, single_bytes(data))
    )
    assert whole == pieces
    return whole


@pytest.mark.filterwarnings(
    "ignore:ConjunctiveGraph is deprecated"
)  # rdflib's own parser of TriG uses it
@by_format
@pytest.mark.parametrize("parameters", ["", "; version=1.2", "; charset=utf-8"])
def test_a_media_type_without_messages_is_a_plain_document(format: Format, parameters: str) -> None:
    """The first draft, section 3.1: a comment delimits where the media type says so."""
    for source in (DOCUMENT, single_bytes(DOCUMENT)):
        assert list(read_log(source, f"{format.media_type}{parameters}")) == by_others(format)


@by_format
def test_a_media_type_with_messages(format: Format) -> None:
    assert sizes(DOCUMENT, f"{format.media_type}; messages=rdfm") == [1, 1, 1]
    assert sizes(DOCUMENT, f"{format.media_type}; version=1.1; messages=rdfm") == [1, 1, 1]
    assert sizes(DOCUMENT, format.media_type, syntax="rdfm") == [1, 1, 1], "said beside it"
    assert sizes(DOCUMENT, f"{format.media_type}; version=1.2-messages") == [3]


@by_format
def test_a_document_may_announce_messages_itself(format: Format) -> None:
    """The current draft: in line or by media type."""
    for said in (format.media_type, format.extension):
        assert sizes(ANNOUNCED, said) == [1, 1]


@by_format
def test_a_name_or_an_extension_leaves_it_to_the_log(format: Format, tmp_path: Path) -> None:
    """Files have no media type, and most logs of the first draft are files."""
    path = tmp_path / f"log.{format.extension}"
    path.write_bytes(DOCUMENT)
    for said in (format.extension, format.name, f".{format.extension}"):
        assert sizes(DOCUMENT, said) == [1, 1, 1]
    assert [len(message) for message in read_log(path)] == [1, 1, 1]
    assert [len(message) for message in read_log(path, format.media_type)] == [3]
    assert [len(message) for message in read_log(DOCUMENT)] == [1, 1, 1], "from the first bytes"


@by_format
def test_a_delimiter_of_the_other_draft_is_an_error(format: Format) -> None:
    for said in (format.media_type, format.extension):
        with pytest.raises(LogError, match="MESSAGE"):
            list(
                read_log(
                    b"<urn:s> <urn:p> 1 .\nMESSAGE\n" if format in (TURTLE, TRIG) else b"MESSAGE\n",
                    said,
                )
            )


# --- the other doors ---


async def test_posted_documents_and_logs(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")

        async def stored(body: bytes, type: str) -> int:
            before = int((await server.ask("GET", "/streams/a")).json["lastSequence"])
            assert (await server.ask("POST", "/streams/a/input", body, type)).status == 201
            return int((await server.ask("GET", "/streams/a")).json["lastSequence"]) - before

        for format in OF_STATEMENTS:
            assert await stored(DOCUMENT, format.media_type) == 1
            assert await stored(DOCUMENT, f"{format.media_type}; charset=utf-8; version=1.2") == 1
            assert await stored(DOCUMENT, f"{format.media_type}; messages=rdfm") == 3
            assert await stored(ANNOUNCED, format.media_type) == 2
        elements = await server.ask("GET", "/streams/a/output?last=1000&format=nq&messages=rdfm")
        assert [len(each) for each in read_log(elements.body, "nq", syntax="rdfm")] == [
            3,
            3,
            1,
            1,
            1,
            1,
            1,
        ] * 4


async def test_frames_of_a_socket_are_documents(tmp_path: Path) -> None:
    async with serving_streams(tmp_path / "streams.db") as server:
        await server.ask("PUT", "/streams/a")
        for number, format in enumerate(OF_STATEMENTS, 1):
            url = f"{server.url}/streams/a/input"
            async with server.client.ws_connect(url, protocols=[format.subprotocol]) as socket:
                await socket.send_str(DOCUMENT.decode())
                await socket.receive_str()
            assert (await server.ask("GET", "/streams/a")).json["lastSequence"] == number


@pytest.mark.process
def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "plain.ttl").write_bytes(DOCUMENT)
    for options, count in (
        ((), 3),
        (("--input-format", "text/turtle"), 1),
        (("--input-syntax", "rdfm"), 3),
    ):
        assert run("cat", "--count", "plain.ttl", *options, cwd=tmp_path) == (0, f"{count}\n", "")
        assert run("cat", "--count", "-", *options, stdin=DOCUMENT) == (0, f"{count}\n", "")


@pytest.mark.parametrize("bytes_each", ["1000000", "30"], ids=["whole", "in parts"])
@by_format
def test_on_spark(format: Format, bytes_each: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{format.extension}"
    path.write_bytes(DOCUMENT)

    def lines(**said: str) -> list[int]:
        options = ReadOptions.of({"path": str(path), "maxpartitionbytes": bytes_each, **said})
        blocks = [block for part in partitions(find(str(path)), options) for block in part]
        return [text.count("\n") + 1 for block in blocks for text in texts_of(block, options)]

    assert lines() == [1, 1, 1]
    assert lines(format=format.media_type) == [3]
    assert lines(format=format.media_type, syntax="rdfm") == [1, 1, 1]
    path.write_bytes(ANNOUNCED)
    assert lines() == lines(format=format.media_type) == [1, 1]


@pytest.mark.parametrize(
    "format", [each for each in FORMATS if each.own], ids=lambda format: format.extension
)
def test_formats_that_delimit_messages_by_themselves(format: Format) -> None:
    log = io.BytesIO()
    write_log([Message(), *by_others(TURTLE)], log, format.extension)
    assert sizes(log.getvalue(), format.media_type) == [0, 3]


# --- whose labels are ---

OTHERS: Final = "".join(
    f'# @message\n_:b0 <urn:p> "{n}" .\n_:b0 <urn:q> _:b1 .\n' for n in range(4)
).encode()
"""A log of a program that begins its labels anew in each message, as a draft of December 2025 had them."""


def nodes(messages: list[Message]) -> list[set[str]]:
    return [
        {quad.subject for quad in message}
        | {quad.object for quad in message if quad.object[0] == "_"}
        for message in messages
    ]


@by_format
def test_labels_per_message(format: Format) -> None:
    for source in (OTHERS, single_bytes(OTHERS)):
        shared = nodes(list(read_log(source, format.extension)))
        assert len(set().union(*shared)) == 2, "the document's, as a plain parser reads them"
        own = nodes(list(read_log(source, format.extension, shared_labels=False)))
        assert [len(each) for each in own] == [2, 2, 2, 2]
        assert len(set().union(*own)) == 8
        kept = nodes(
            list(read_log(source, format.extension, shared_labels=False, keep_labels=True))
        )
        assert len(set().union(*kept)) == 8, "what is kept are labels of the whole log"


@pytest.mark.process
def test_labels_per_message_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "others.nt").write_bytes(OTHERS)
    command = ["convert", "others.nt", "-", "--format", "nq"]
    shared = run(*command, cwd=tmp_path).log
    own = run(*command, "--labels-per", "message", "--label-prefix", "x", cwd=tmp_path).log
    assert shared.count("_:b0") == 8
    assert [own.count(f"_:x_m{number}b0 ") for number in range(1, 6)] == [2, 2, 2, 2, 0]


@pytest.mark.parametrize("bytes_each", ["1000000", "30"], ids=["whole", "in parts"])
@by_format
def test_labels_per_message_on_spark(format: Format, bytes_each: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.{format.extension}"
    path.write_bytes(OTHERS)

    def read(**said: str) -> list[set[str]]:
        options = ReadOptions.of({"path": str(path), "maxpartitionbytes": bytes_each, **said})
        blocks = [block for part in partitions(find(str(path)), options) for block in part]
        texts = "".join(
            f"# @message\n{text}\n" for block in blocks for text in texts_of(block, options)
        )
        return nodes(list(read_log(texts.encode(), "nq", keep_labels=True)))

    assert len(set().union(*read())) == 2
    assert len(set().union(*read(sharedlabels="false"))) == 8
