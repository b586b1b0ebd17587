"""Packed files as `rdf/files/output.py` writes them, with one bit changed: an error, or the same content."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.files.unpacking import COMPRESSIONS, Unpacker, unpack_errors
from construct_messages.server.http.sending import coder_for

by_packing = pytest.mark.parametrize("extension", COMPRESSIONS)

CONTENTS = {
    "lines": b"".join(b"<urn:s%d> <urn:p> %r .\n" % (n, "value") for n in range(40)),
    "random": random.Random(0).randbytes(300),
}
"""What a compression packs, and what it keeps as it is."""


def packed_by_us(extension: str, content: bytes, folder: Path) -> bytes:
    path = folder / f"log.nq{extension}"
    with atomic_file(path) as file:
        file.write(content)
    return path.read_bytes()


def unpacked(extension: str, packed: bytes) -> bytes | None:
    """None: an error."""
    unpacker = Unpacker(extension)
    try:
        content = b"".join(unpacker.feed(packed))
        unpacker.close()
    except unpack_errors():
        return None
    return content


def flipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The data with each of its bits changed, one at a time."""
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            yield f"bit {bit} of byte {place}", bytes(changed)


@pytest.mark.slow
@pytest.mark.one_in(2)
@by_packing
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("members", [1, 2], ids=["one member", "appended"])
def test_no_bit_changes_the_content(
    extension: str, content: bytes, members: int, tmp_path: Path
) -> None:
    """Also of a file that another was appended to, as `cat` does."""
    packed = packed_by_us(extension, content, tmp_path) * members
    assert unpacked(extension, packed) == content * members
    altered = [
        what
        for what, damaged in flipped(packed)
        if unpacked(extension, damaged) not in (None, content * members)
    ]
    assert altered == []


@by_packing
def test_every_cut_is_an_error(extension: str, tmp_path: Path) -> None:
    packed = packed_by_us(extension, CONTENTS["lines"], tmp_path)
    assert [
        end for end in range(len(packed)) if unpacked(extension, packed[:end]) is not None
    ] == []


def test_a_frame_of_zstandard_has_a_checksum(tmp_path: Path) -> None:
    """RFC 8878 leaves it to the writer; without one, half of the changed bits go unnoticed."""
    packed = packed_by_us(".zst", CONTENTS["lines"], tmp_path)
    assert zstandard.get_frame_parameters(packed).has_checksum
    plain = zstandard.compress(CONTENTS["random"])
    others = {unpacked(".zst", damaged) for _, damaged in flipped(plain)}
    assert len(others - {None, CONTENTS["random"]}) > 1000, "what others write cannot be checked"


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_no_bit_changes_a_body(coding: str) -> None:
    """What `curl` without `--compressed` keeps of an answer with a content coding."""
    coder, content = coder_for(coding), CONTENTS["lines"]
    body = coder.code(content[:500]) + coder.code(content[500:]) + coder.finish()
    extension = {"gzip": ".gz", "zstd": ".zst"}[coding]
    assert unpacked(extension, body) == content
    assert [
        what
        for what, damaged in flipped(body)
        if unpacked(extension, damaged) not in (None, content)
    ] == []


def test_gzip_of_others_is_checked() -> None:
    packed = gzip.compress(CONTENTS["random"], compresslevel=0, mtime=0)
    found = {unpacked(".gz", damaged) for _, damaged in flipped(packed)}
    assert found == {None, CONTENTS["random"]}
