"""`rdf/files/output.py`: a file is whole or not there."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from construct_messages.errors import CannotWrite
from construct_messages.rdf.files.output import atomic_file

UNPACKERS: dict[str, Callable[[bytes], bytes]] = {
    "log.nq": lambda data: data,
    "log.nq.gz": gzip.decompress,
    "log.nq.bz2": bz2.decompress,
    "log.nq.xz": lzma.decompress,
    "log.nq.zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("name", UNPACKERS)
def test_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with atomic_file(path) as file:
        file.write(b"one\n")
        assert not path.exists()
        file.write(b"two\n")
    assert UNPACKERS[name](path.read_bytes()) == b"one\ntwo\n"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", UNPACKERS)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_not_there(name: str, error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"before")
    with pytest.raises(error), atomic_file(path) as file:  # noqa: PT012 - the block must end by the error
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == [name]


def test_interrupted_while_it_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = os.open

    def interrupted(*arguments: object, **keywords: object) -> int:
        os.close(create(*arguments, **keywords))  # type: ignore[arg-type] # as os.open was called
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "log.nq"):
        pass
    assert os.listdir(tmp_path) == []


def test_mode_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "real", tmp_path / "link"
    umask = os.umask(0o027)
    try:
        with atomic_file(path) as file:
            file.write(b"1")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    link.symlink_to(path)
    with atomic_file(link) as file:
        file.write(b"2")
    assert link.is_symlink()
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="is a directory"), atomic_file(tmp_path):
        pass
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("absent/log", "loop", "x" * 300, "x" * 250):
        with pytest.raises(CannotWrite, match="cannot write"), atomic_file(tmp_path / name):
            pass
    with atomic_file("/dev/null") as file:
        file.write(b"gone")
    assert not Path("/dev/null").is_file()
