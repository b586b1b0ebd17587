"""`rdf/files/unpacking.py`: what was packed comes out, in bounded pieces, and nothing that was cut passes for whole."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable, Iterator

import pytest
import zstandard

from construct_messages.rdf.files.unpacking import (
    COMPRESSIONS,
    MAGIC,
    PIECE_BYTES,
    UnpackedFile,
    Unpacker,
    packing_of,
    unpack_errors,
)

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
SKIPPED = (0x184D2A50).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"

by_packing = pytest.mark.parametrize("extension", PACKERS)
by_size = pytest.mark.parametrize("size", [1, 7, 1000, 1 << 30], ids=lambda size: f"by {size}")


def unpacked(extension: str, packed: bytes, size: int = 1 << 30) -> Iterator[bytes]:
    unpacker = Unpacker(extension)
    for start in range(0, len(packed), size):
        yield from unpacker.feed(packed[start : start + size])
    unpacker.close()


def test_every_packing_is_read_and_written() -> None:
    assert set(PACKERS) == set(COMPRESSIONS) == set(MAGIC.values())


@by_packing
@by_size
def test_members_one_after_the_other(extension: str, size: int) -> None:
    contents = [b"one\n", b"", b"x" * 3 * PIECE_BYTES, random.Random(0).randbytes(5000), b"end"]
    packed = b"".join(map(PACKERS[extension], contents))
    assert b"".join(unpacked(extension, packed, size)) == b"".join(contents)
    assert b"".join(unpacked(extension, packed + bytes(1000), size)) == b"".join(contents)


def test_frames_that_are_to_be_skipped() -> None:
    packed = SKIPPED + PACKERS[".zst"](b"a") + SKIPPED + PACKERS[".zst"](b"b")
    assert b"".join(unpacked(".zst", packed)) == b"ab"


@by_packing
@pytest.mark.parametrize("contents", [[b"content"], [b"content", b"second"]], ids=["one", "two"])
def test_cut_at_every_byte(extension: str, contents: list[bytes]) -> None:
    members = [PACKERS[extension](content) for content in contents]
    packed = b"".join(members)
    for end in range(len(packed)):
        if end == len(members[0]):  # nothing says that a second was to come
            continue
        unpacker = Unpacker(extension)
        assert b"".join(contents).startswith(b"".join(unpacker.feed(packed[:end])))
        with pytest.raises(EOFError):
            unpacker.close()


@by_packing
def test_damaged(extension: str) -> None:
    packed = bytearray(PACKERS[extension](bytes(range(256)) * 100))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(unpack_errors()):
        list(unpacked(extension, bytes(packed)))


@by_packing
def test_what_stands_behind_is_no_content(extension: str) -> None:
    with pytest.raises(unpack_errors()):
        list(
            unpacked(
                extension, PACKERS[extension](b"content") + b"something else that is not packed"
            )
        )


@by_packing
def test_a_bomb_comes_out_in_pieces(extension: str) -> None:
    packed = PACKERS[extension](bytes(20_000_000))
    sizes = list(map(len, unpacked(extension, packed)))
    assert sum(sizes) == 20_000_000
    assert max(sizes) <= PIECE_BYTES


@pytest.mark.parametrize(
    ("head", "packing"),
    [
        # not named by its bytes: gzip's tell the time
        *(
            pytest.param(packer(b"x"), extension, id=f"packed{extension}")
            for extension, packer in PACKERS.items()
        ),
        (b"", None),
        (b"B", None),
        (b"BZ", None),
        (b"\xfd7zX", None),
        (b"BASE", ""),
        (b"<", ""),
        (b"\x0a\x10", ""),
    ],
)
def test_packing_of(head: bytes, packing: str | None) -> None:
    assert packing_of(head) == packing
    if packing is not None:  # it is the same for all that begins so
        assert packing_of(head + b"more") == packing


@by_packing
def test_a_file(extension: str) -> None:
    packed = PACKERS[extension](b"one\n" * 50_000) + PACKERS[extension](b"two\n")
    raw = io.BytesIO(packed)
    file = io.BufferedReader(UnpackedFile(raw, extension))
    assert file.read(6) == b"one\non"
    assert file.read() == b"e\n" + b"one\n" * 49_998 + b"two\n"
    file.close()
    assert not raw.closed
    with pytest.raises(EOFError):
        UnpackedFile(io.BytesIO(packed[:-1]), extension).readall()
