"""Content codings and kept connections, through both HTTP clients, in what other libraries write."""

from __future__ import annotations

import asyncio
import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Final

import pytest
import zstandard

from construct_messages.errors import IncompleteResult, SourceError
from construct_messages.sparql.sources import Operation, Request
from construct_messages.sparql.sources.http.endpoint import EndpointSource
from construct_messages.sparql.sources.http.upstream import Upstream
from tests.support.http.clients import BODIES, JSON_BODY, SELECT, TABLE, read
from tests.support.http.fault_server import (
    HOLD,
    JSON,
    PAUSE,
    RESET,
    TSV,
    Act,
    FaultServer,
    response,
)
from tests.support.results.documents import json_document

pytestmark = pytest.mark.usefixtures("once")


def deflated(data: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def halves(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :])


SKIPPED: Final = b"\x50\x2a\x4d\x18\x04\0\0\0note"  # RFC 8878, section 3.1.2
PACKED: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZip", gzip.compress),
    "gzip of two members": ("gzip", halves(gzip.compress)),
    "deflate": ("deflate", lambda data: deflated(data, 15)),
    "deflate with a window of 512 bytes": ("deflate", lambda data: deflated(data, 9)),
    "deflate without zlib": ("deflate", lambda data: deflated(data, -15)),
    "zstd": ("zstd", zstd),
    "zstd of two frames, and one to skip": ("zstd", lambda data: halves(zstd)(data) + SKIPPED),
}


@pytest.mark.parametrize("results", BODIES)
@pytest.mark.parametrize(("coding", "pack"), PACKED.values(), ids=PACKED)
def test_codings(
    server: FaultServer, client: str, results: str, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    body, content_type = BODIES[results]
    for chunk in (None, 1):
        server.play(
            response(pack(body), content_type, headers={"Content-Encoding": coding}, chunk=chunk)
        )
        assert read(client, EndpointSource(server.url, results=results)) == (TABLE, None)


@pytest.mark.parametrize("framing", ["chunked", "close"])
@pytest.mark.parametrize(("coding", "pack"), PACKED.values(), ids=PACKED)
def test_a_cut_coding(
    server: FaultServer, coding: str, pack: Callable[[bytes], bytes], framing: str
) -> None:
    """Also where the transfer ends cleanly: what cut it is a program before the endpoint."""
    packed = pack(JSON_BODY)
    whole = len(packed) - (len(SKIPPED) if packed.endswith(SKIPPED) else 0)
    for cut in random.Random(42).sample(range(1, whole), 12):
        body = packed[:cut]
        server.play(response(body, headers={"Content-Encoding": coding}, framing=framing))
        came, error = read("blocking", EndpointSource(server.url))
        assert isinstance(error, IncompleteResult), cut
        assert error.transient == (framing == "close") or came
        assert came == TABLE[: len(came)]


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_flushed_solution_comes_before_the_rest(
    server: FaultServer, client: str, coding: str
) -> None:
    packer: zlib._Compress | zstandard.ZstdCompressionObj
    if coding == "gzip":
        packer, flush = zlib.compressobj(wbits=31), zlib.Z_SYNC_FLUSH
    else:
        packer, flush = (
            zstandard.ZstdCompressor().compressobj(),
            zstandard.COMPRESSOBJ_FLUSH_BLOCK,
        )
    place = JSON_BODY.index(b"label 2")
    first = packer.compress(JSON_BODY[:place]) + packer.flush(flush)
    rest = packer.compress(JSON_BODY[place:]) + packer.flush()
    wire = response(first + rest, headers={"Content-Encoding": coding}, chunk=len(first))
    end = wire.index(first) + len(first)
    server.play([wire[:end], HOLD, wire[end:]])
    source, request = EndpointSource(server.url), Request(SELECT, timeout=120)

    async def gather() -> list[object]:
        came: list[object] = []
        async with aclosing(source.asolutions(request)) as batches:
            async for batch in batches:
                came.extend(batch)
                server.go_on.set()
        return came

    if client == "asyncio":
        assert asyncio.run(gather()) == TABLE
        return
    came: list[object] = []
    for batch in source.solutions(request):
        came.extend(batch)
        server.go_on.set()
    assert came == TABLE


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_few_bytes_take_bounded_memory(server: FaultServer, client: str, coding: str) -> None:
    long = JSON_BODY.replace(b"label 5", b"5" * (64 << 20))
    packed = gzip.compress(long) if coding == "gzip" else zstd(long)
    assert len(packed) < 1 << 17
    del long
    server.play(response(packed, headers={"Content-Encoding": coding}))
    tracemalloc.start()
    came, error = read(client, EndpointSource(server.url))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(error, IncompleteResult)
    assert "without one whole solution" in error.message
    assert came == TABLE[:5]
    assert peak < 40 << 20


def test_a_large_window_is_refused(server: FaultServer, client: str) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = packer.compress(JSON_BODY) + packer.flush()
    server.play(response(packed, headers={"Content-Encoding": "zstd"}))
    _, error = read(client, EndpointSource(server.url))
    assert isinstance(error, IncompleteResult)
    assert "declares Content-Encoding: zstd" in error.message


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_coding_that_is_not_declared(
    server: FaultServer, client: str, pack: Callable[[bytes], bytes]
) -> None:
    server.play(response(pack(JSON_BODY)))
    came, error = read(client, EndpointSource(server.url))
    assert isinstance(error, SourceError)
    assert "without Content-Encoding" in error.message
    assert came == []


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [
        ("gzip", gzip.compress(b"no memory"), "status 503: no memory"),
        ("gzip", b"no memory", "status 503"),
        ("br", b"no memory", "status 503"),
        ("gzip", b"", "status 503"),
    ],
    ids=["whole", "damaged", "unknown", "empty"],
)
def test_refusals_keep_their_status(
    server: FaultServer, client: str, coding: str, body: bytes, words: str
) -> None:
    server.play(
        response(body, "text/plain", status="503 Busy", headers={"Content-Encoding": coding})
    )
    _, error = read(client, EndpointSource(server.url))
    assert isinstance(error, SourceError)
    assert (error.response_status, error.transient) == (503, True)
    assert error.message.endswith(words)


# --- connections ---------------------------------------------------------------------------------


def page(start: int, end: int, framing: str = "chunked", results: str = "json") -> bytes:
    if results == "tsv":
        lines = BODIES["tsv"][0].splitlines(keepends=True)
        return response(
            b"".join([lines[0], *lines[start + 1 : end + 1]]), TSV, framing=framing, keep_alive=True
        )
    document = json_document(SELECT.variables, TABLE[start:end])
    return response(document, JSON, framing=framing, keep_alive=True)


PAGED: Final = Request(SELECT, page_size=6, timeout=120)


def pages(framing: str = "chunked", results: str = "json") -> list[bytes]:
    """The responses to `PAGED`: each page repeats the last three solutions; the last ones are probes."""
    parts = ((0, 6), (3, 9), (6, 12), (9, 12), (12, 12))
    return [page(*part, framing, results) for part in parts]


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("results", ["json", "tsv"])
def test_pages_take_one_connection(
    server: FaultServer, client: str, framing: str, results: str
) -> None:
    server.play(*pages(framing, results))
    assert read(client, EndpointSource(server.url, results=results), PAGED) == (TABLE, None)
    assert (len(server.asked), server.connections) == (5, 1)


@pytest.mark.parametrize("place", range(1, 5))
@pytest.mark.parametrize(
    "ending",
    [
        pytest.param([PAUSE], id="before the next request"),
        pytest.param(None, id="after the next request"),
        pytest.param([RESET], id="by a reset"),
    ],
)
def test_a_connection_that_the_endpoint_closes(
    server: FaultServer, client: str, place: int, ending: list[Act] | None
) -> None:
    """It is opened again, and that is no retry."""
    scripts: list[list[bytes | Act]] = [[answer] for answer in pages()]
    if ending == [PAUSE]:
        scripts[place - 1] += ending  # and the end
    else:
        scripts.insert(place, list(ending or [b""]))
    server.play(*scripts)
    assert read(client, EndpointSource(server.url, retries=0), PAGED) == (TABLE, None)
    assert server.connections == 2
    assert len(server.asked) == 5 + (ending != [PAUSE])
    texts = [asked.parameters["query"][0] for asked in server.asked]
    assert len(set(texts)) == 5


@pytest.mark.parametrize("answer", [b"", [RESET]], ids=["closed", "reset"])
def test_a_new_connection_that_is_closed_is_an_error(
    server: FaultServer, client: str, answer: bytes | list[bytes | Act]
) -> None:
    server.play(pages()[0], answer, answer, answer)
    came, error = read(client, EndpointSource(server.url, retries=0), PAGED)
    assert isinstance(error, SourceError)
    assert "could not be reached" in error.message
    assert (came, len(server.asked)) == (TABLE[:6], 3)


def test_half_a_head_is_an_error(server: FaultServer) -> None:
    server.play(pages()[0], b"HTTP/1.1 20", *pages()[1:])
    _, error = read("blocking", EndpointSource(server.url, retries=0), PAGED)
    assert isinstance(error, SourceError)
    assert len(server.asked) == 2


def test_queries_share_the_connection_of_their_source(server: FaultServer) -> None:
    whole = response(JSON_BODY, keep_alive=True)
    server.play(whole)
    with closing(EndpointSource(server.url)) as source:
        for _ in range(5):
            assert read("blocking", source) == (TABLE, None)
        assert (len(server.asked), server.connections) == (5, 1)
        for _ in range(2):  # the rest of an answer is not read
            batches = source.solutions(Request(SELECT))
            next(batches)
            batches.close()
    assert server.connections <= 2
    assert read("blocking", source) == (TABLE, None)


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_data_after_an_answer_is_no_beginning_of_the_next(
    server: FaultServer, framing: str
) -> None:
    forged = page(0, 0)
    first, *others = pages(framing)
    server.play(first + forged, *others)
    assert read("blocking", EndpointSource(server.url), PAGED) == (TABLE, None)
    assert server.connections == 2


async def test_only_what_changes_nothing_is_sent_again(
    server: FaultServer, upstream: Upstream
) -> None:
    whole = response(JSON_BODY, keep_alive=True)
    server.play(whole, b"", whole, b"", whole)
    for operation in (Operation("ASK {}"), Operation("ASK {}")):
        answer = await upstream.answer(operation)
        async with aclosing(answer.body) as body:
            assert b"".join([piece async for piece in body]) == JSON_BODY
    assert len(server.asked) == 3
    with pytest.raises(SourceError, match="could not be reached"):
        await upstream.answer(Operation("CLEAR ALL", update=True))
    assert len(server.asked) == 4


def test_a_forked_process_opens_its_own_connection(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play(response(JSON_BODY, keep_alive=True))
    with closing(EndpointSource(server.url)) as source:
        assert read("blocking", source) == (TABLE, None)
        with monkeypatch.context() as patched:
            patched.setattr("os.getpid", lambda: -1)
            assert read("blocking", source) == (TABLE, None)
        assert read("blocking", source) == (TABLE, None)
    assert [asked.connection for asked in server.asked] == [1, 2, 1]
