"""Messages of gRPC in pieces of any size, plain and compressed; what is malformed or too large."""

from __future__ import annotations

import gzip
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import ConstructMessagesError, LimitExceeded, SourceError
from construct_messages.net.grpc.framing import GZIP, IDENTITY, MessageReader, framed
from construct_messages.net.grpc.status import GrpcStatus, http_status_of, status_of


def reader(data: bytes, coding: str = GZIP, most: int = 1 << 20) -> MessageReader:
    left = bytearray(data)

    async def receive(size: int) -> bytes:
        taken = bytes(left[:size])
        del left[:size]
        return taken

    return MessageReader(receive, coding, most, "the client")


async def read(data: bytes, coding: str = GZIP, most: int = 1 << 20) -> list[bytes]:
    messages, found = reader(data, coding, most), []
    while (message := await messages.read()) is not None:
        found.append(message)
    return found


@given(st.lists(st.binary(max_size=400)), st.sampled_from((IDENTITY, GZIP)))
async def test_messages(messages: list[bytes], coding: str) -> None:
    assert await read(b"".join(framed(each, coding) for each in messages), coding) == messages


def packed(data: bytes) -> bytes:
    return struct.pack(">BI", 1, len(data)) + data


@pytest.mark.parametrize(
    ("data", "coding", "kind", "said"),
    [
        (framed(bytes(1001)), IDENTITY, LimitExceeded, "a message of 1001 bytes"),
        (struct.pack(">BI", 0, (1 << 32) - 1), IDENTITY, LimitExceeded, "4294967295 bytes"),
        (packed(gzip.compress(bytes(1 << 19))), GZIP, LimitExceeded, "compressed message"),
        (packed(gzip.compress(bytes(10))[:-1]), GZIP, SourceError, "not whole"),
        (packed(b"x" * 30), GZIP, SourceError, "no gzip"),
        (packed(b"x" * 30), "snappy", SourceError, "compressed with 'snappy'"),
        (packed(b"x" * 30), IDENTITY, SourceError, "compressed with 'identity'"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
async def test_refused(
    data: bytes, coding: str, kind: type[ConstructMessagesError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        await read(data, coding, 1000)


def test_statuses() -> None:
    """An error keeps its meaning from our server to our client."""
    for status in (400, 401, 403, 404, 409, 410, 413, 501, 503, 504):
        assert http_status_of(status_of(status)) == status
    assert status_of(422) is GrpcStatus.INVALID_ARGUMENT
    assert status_of(500) is GrpcStatus.INTERNAL
