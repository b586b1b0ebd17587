"""What waits in a store is forwarded once each, wherever the program ends."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest

from construct_messages import Message, Quad, blank, iri, literal, read_log, write_log
from construct_messages.errors import CannotWrite, SourceError, UsageError
from construct_messages.feeds import subscribe
from construct_messages.feeds.bridging import forward
from construct_messages.feeds.delivery import (
    FileTarget,
    OutputTarget,
    StreamTarget,
    Target,
)
from construct_messages.feeds.transport import Settings
from construct_messages.logs.writing import GrowingLog
from construct_messages.rdf.files import output
from construct_messages.rdf.formats import LOGS, LogType
from construct_messages.rdf.formats.lookup import find_log
from construct_messages.streams import StreamStore, open_store
from tests.support.http.streams import StreamsServer
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered

NQ = find_log("nq")
TEXTS = [type for type in LOGS if not type.format.binary]


def growing_log(path: Path, type: LogType = NQ) -> GrowingLog:
    return GrowingLog(path, type.format.extension, syntax=type.syntax.label or None)


def file_target(path: Path, type: LogType = NQ) -> FileTarget:
    return FileTarget(growing_log(path, type))


class Killed(BaseException):
    """The process ended here."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StreamStore]:
    with open_store(tmp_path / "waiting.db") as opened:
        opened.create("out")
        yield opened


async def forwarded(store: StreamStore, target: Target) -> int:
    async with aclosing(target):
        return await forward(store, "out", "watch", target)


@pytest.mark.parametrize("type", TEXTS, ids=lambda type: f"{type.format.name}-{type.syntax.label}")
async def test_a_log_is_continued(store: StreamStore, tmp_path: Path, type: LogType) -> None:
    """In every format that is a text; each part by a target of its own, as after a restart."""
    path = tmp_path / "log"
    sent = [
        numbered(1),
        Message(),
        Message([Quad(blank("x"), iri("urn:p"), literal("é\n"))]),
        numbered(4),
        Message(),
        Message([Quad(blank("y"), iri("urn:p"), literal("z"))]),
    ]
    for count, part in enumerate((sent[:1], sent[1:2], [], sent[2:5], sent[5:]), 1):
        store.append_all("out", part)
        assert await forwarded(store, file_target(path, type)) == len(part)
        read = list(
            read_log(path.read_bytes(), type.format.extension, syntax=type.syntax.label or None)
        )
        assert isomorphic(read, sent[: [1, 2, 2, 5, 6][count - 1]])
    assert list(store.read("out")) == [], "nothing waits"


def there(path: Path) -> list[Message]:
    return list(read_log(path, "nq", syntax="rdfm")) if path.exists() else []


@pytest.mark.parametrize("begun", [[], [numbered(0)]], ids=["new", "continued"])
@pytest.mark.parametrize("end", ["before it is sent", "behind it"])
@pytest.mark.parametrize("kind", ["file", "stream"])
async def test_once_each_wherever_it_ends(
    served: StreamsServer, tmp_path: Path, begun: list[Message], end: str, kind: str
) -> None:
    path, url = tmp_path / "log.nq", f"{served.url}/streams/a"

    def target() -> Target:
        return file_target(path) if kind == "file" else StreamTarget(url, Settings())

    class Ending:
        """Ends before or behind what it passes on."""

        def __init__(self) -> None:
            self._target = target()
            self.name, self.size = self._target.name, self._target.size
            self.open, self.aclose = self._target.open, self._target.aclose

        async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:
            if end == "behind it":
                await self._target.send(messages, key, at)
            raise Killed

    with open_store(tmp_path / "waiting.db") as store:
        store.create("out")
        store.append_all("out", begun)
        await forwarded(store, target())
        store.append_all("out", [numbered(1), numbered(2)])
        with pytest.raises(Killed):
            await forwarded(store, Ending())
    with open_store(tmp_path / "waiting.db") as store:
        store.append_all("out", [numbered(3)])
        assert await forwarded(store, target()) == 3
        assert await forwarded(store, target()) == 0
        assert list(store.read("out")) == []
    expected = [*begun, numbered(1), numbered(2), numbered(3)]
    if kind == "file":
        assert there(path) == expected
    else:
        assert [
            element.message async for element in subscribe(url, after=0, follow=False)
        ] == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("type", "begun"),
    [
        # a new log is a new file, in any syntax of its format
        *((type, []) for type in {type.format: type for type in TEXTS}.values()),
        *((type, [numbered(0)]) for type in TEXTS),
    ],
    ids=lambda it: str(len(it)) if isinstance(it, list) else f"{it.format.name}-{it.syntax.label}",
)
async def test_a_log_that_was_cut_is_continued(
    store: StreamStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    type: LogType,
    begun: list[Message],
) -> None:
    """Wherever a kill ended the write: started again, also without the state, nothing of half a page is left."""
    path = tmp_path / "log"
    sent = [numbered(1), Message(), Message([Quad(blank("x"), iri("urn:p"), literal("é\n"))])]
    store.append_all("out", begun)
    await forwarded(store, file_target(path, type))
    before = path.read_bytes() if begun else b""
    store.append_all("out", sent)
    end = 0

    whole: list[bytes] = []
    append = output.write_whole

    def killed(file: IO[bytes], data: bytes) -> None:
        if file.name.endswith(".appending"):  # the journal
            append(file, data)
            return
        whole.append(data)
        file.write(data[:end])
        raise Killed

    monkeypatch.setattr(output, "write_whole", killed)
    for end in (0, 1, *range(5, 10_000, 13)):
        with pytest.raises(Killed):
            await forwarded(store, file_target(path, type))
        assert path.read_bytes() == before + whole[0][:end]
        if end >= len(whole[0]):
            break
        assert file_target(path, type).size == len(before), (
            "another run goes on where the page began"
        )
        assert path.read_bytes() == before
    monkeypatch.setattr(output, "write_whole", append)
    assert await forwarded(store, file_target(path, type)) == len(sent)
    assert path.read_bytes() == before + whole[0]
    assert os.listdir(tmp_path).count("log") == 1
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
    read = list(
        read_log(path.read_bytes(), type.format.extension, syntax=type.syntax.label or None)
    )
    assert isomorphic(read, [*begun, *sent])


async def test_bytes_written_grow_with_the_log(
    store: StreamStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 26: a log was copied for each page that was appended to it."""
    path, written = tmp_path / "log.nq", 0
    append = output.write_whole

    def counted(file: IO[bytes], data: bytes) -> None:
        nonlocal written
        written += len(data) if file.name == str(path) else 0
        append(file, data)

    monkeypatch.setattr(output, "write_whole", counted)
    for page in range(20):
        store.append_all("out", [numbered(100 * page + number) for number in range(100)])
        assert await forwarded(store, file_target(path)) == 100
        assert written == path.stat().st_size
    assert there(path) == [numbered(number) for number in range(2000)]


async def test_a_log_that_is_not_as_it_was_left(store: StreamStore, tmp_path: Path) -> None:
    """It may be continued by others, and taken away, but not while it is unknown whether a message is in it."""
    path = tmp_path / "log.nq"
    store.append("out", numbered(1))
    await forwarded(store, file_target(path))
    path.unlink()
    store.append("out", numbered(2))
    await forwarded(store, file_target(path))
    assert there(path) == [numbered(2)]

    class Ending(FileTarget):
        async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:
            raise Killed(messages, key, at)

    store.append("out", numbered(3))
    with pytest.raises(Killed):
        await forwarded(store, Ending(growing_log(path)))
    whole = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="is shorter than it was"):
        await forwarded(store, file_target(path))
    path.write_bytes(whole + b"# of another program\n")
    with pytest.raises(UsageError, match=f"by another program after byte {len(whole)}"):
        await forwarded(store, file_target(path))
    path.write_bytes(whole)
    await forwarded(store, file_target(path))
    assert there(path) == [numbered(2), numbered(3)]


async def test_another_target_than_before(store: StreamStore, tmp_path: Path) -> None:
    """What was on its way to one log goes to the other, whose own messages stay."""
    one, other = tmp_path / "one.nq", tmp_path / "other.nq"
    write_log([numbered(0)], other)

    class Ending(FileTarget):
        async def send(self, messages: Sequence[Message], key: str, at: int | None) -> None:
            raise Killed(messages, key, at)

    store.append("out", numbered(1))
    with pytest.raises(Killed):
        await forwarded(store, Ending(growing_log(one)))
    await forwarded(store, file_target(other))
    assert there(other) == [numbered(0), numbered(1)]
    assert not one.exists()


async def test_a_server_that_cannot_be_reached(store: StreamStore, served: StreamsServer) -> None:
    store.append("out", numbered(1))
    with pytest.raises(SourceError, match="could not be reached"):
        await forwarded(store, StreamTarget("http://127.0.0.1:1/streams/a", Settings(retries=0)))
    with pytest.raises(SourceError, match="404"):
        await forwarded(store, StreamTarget(f"{served.url}/streams/b", Settings(retries=0)))
    assert (
        await forwarded(store, StreamTarget(f"{served.url}/streams/b", Settings(create=True))) == 1
    )


async def test_standard_output(store: StreamStore) -> None:
    file = BytesIO()
    target = OutputTarget(file, NQ)
    store.append_all("out", [numbered(1), Message()])
    await forwarded(store, target)
    store.append("out", numbered(2))
    await forwarded(store, target)
    assert list(read_log(file.getvalue(), "nq", syntax="rdfm")) == [
        numbered(1),
        Message(),
        numbered(2),
    ]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda folder: file_target(folder / "log.nq.gz", NQ), UsageError),
        (lambda folder: file_target(folder / "log.jelly", find_log("jelly")), UsageError),
        (
            lambda folder: forwarded_to(file_target(folder / "none" / "log.nq", NQ), folder),
            CannotWrite,
        ),
        (lambda folder: forwarded_to(file_target(folder, NQ), folder), CannotWrite),
    ],
    ids=["packed", "binary", "no folder", "a folder"],
)
async def test_refusals(
    tmp_path: Path, make: Callable[[Path], Awaitable[object]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await make(tmp_path)


async def forwarded_to(target: Target, folder: Path) -> None:
    with open_store(folder / "waiting.db") as store:
        store.create("out")
        store.append("out", numbered(1))
        await forwarded(store, target)
