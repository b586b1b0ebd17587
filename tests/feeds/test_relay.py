"""Relays between streams, log files and outputs: what arrives, wherever a run ends, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from construct_messages import (
    Message,
    Quad,
    blank,
    iri,
    literal,
    read_log,
    transform,
    write_log,
)
from construct_messages.errors import LogError, SourceError, UsageError
from construct_messages.feeds import publish, relay, subscribe
from construct_messages.feeds.delivery import ENDS, Guarantee, batches, guarantee
from construct_messages.feeds.http.log import LogTransport
from construct_messages.feeds.state import Checkpoint, Sent
from construct_messages.feeds.table import TRANSPORTS, TransportKind
from construct_messages.logs.writing import GrowingLog
from tests.support.http.streams import StreamsServer
from tests.support.logs.kinds import isomorphic
from tests.support.places import ROOT
from tests.support.streams import numbered
from tests.support.waiting import eventually

PAGE = ROOT / "docs" / "reference" / "streams" / "relay.md"

NODE = Message([Quad(blank("x"), iri("urn:p"), literal("é\r\n"), iri("urn:g"))])
SENT = [numbered(1), Message(), NODE, NODE, numbered(5, size=300_000), Message(), numbered(7)]


class Killed(BaseException):
    """The process ended here."""


async def there(place: str) -> list[Message]:
    """The messages of a stream or a log."""
    if "://" in place:
        return [element.message async for element in subscribe(place, follow=False)]
    return list(read_log(place))


async def put(place: str, messages: Sequence[Message]) -> None:
    """Appends messages to a stream or a log."""
    if "://" in place:
        await publish(messages, place, create=True)
    else:
        GrowingLog(place).append(messages)


@pytest.fixture(params=["stream", "log"])
def source(request: pytest.FixtureRequest, served: StreamsServer, tmp_path: Path) -> str:
    return f"{served.url}/streams/from" if request.param == "stream" else str(tmp_path / "from.nq")


@pytest.fixture(params=["stream", "log"])
def target(request: pytest.FixtureRequest, served: StreamsServer, tmp_path: Path) -> str:
    return f"{served.url}/streams/to" if request.param == "stream" else str(tmp_path / "to.trig")


def created(target: str) -> dict[str, bool]:
    return {"create": True} if "://" in target else {}


# --- what arrives -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3, 1000])
async def test_all_pairs(source: str, target: str, batch: int, tmp_path: Path) -> None:
    """In order, with nodes that messages share; a state file is continued from."""
    await put(source, SENT[:4])
    state = tmp_path / "state"
    options: dict[str, Any] = {"batch": batch, "state": state, **created(target)}
    assert await relay(source, target, **options) == 4
    assert isomorphic(await there(target), SENT[:4])
    await put(source, SENT[4:])
    for _ in range(2):
        assert await relay(source, target, **options) == len(SENT)
    arrived = await there(target)
    assert isomorphic(arrived, SENT)
    first, second = (next(iter(message)).subject for message in arrived[2:4])
    assert first == second
    assert not msgspec.json.decode(state.read_bytes(), type=Sent).in_flight


@pytest.mark.parametrize("format", ["nq", "trig", "ndjsonld", "jelly"])
async def test_outputs(served: StreamsServer, format: str) -> None:
    url = f"{served.url}/streams/from"
    await put(url, SENT)
    file = BytesIO()
    assert await relay(url, file, target_media_type=format) == len(SENT)
    assert isomorphic(list(read_log(file.getvalue(), format)), SENT)
    log = read_log(file.getvalue(), format)
    again = BytesIO()
    assert await relay(log, again) == len(SENT)
    assert isomorphic(list(read_log(again.getvalue(), "nq")), SENT)


async def test_a_log_without_messages(tmp_path: Path) -> None:
    write_log([], tmp_path / "from.nq")
    file = BytesIO()
    assert await relay(tmp_path / "from.nq", file, target_media_type="jelly") == 0
    assert list(read_log(file.getvalue(), "jelly")) == []


@pytest.mark.parametrize("via", ["sse", "websocket", "pull", "ldes"])
async def test_following(served: StreamsServer, tmp_path: Path, via: str) -> None:
    """Messages are written as they come, and a stop loses none."""
    url, path, state = f"{served.url}/streams/from", tmp_path / "to.nq", tmp_path / "state"
    await put(url, SENT[:2])
    options: dict[str, Any] = {
        "follow": True,
        "after": 0,
        "via": via,
        "state": state,
        "poll_seconds": 0.01,
    }
    for count in (2, 4, 7):
        relaying = asyncio.ensure_future(relay(url, path, **options))
        await put(url, SENT[len(await there(url)) : count])
        await eventually(partial(has, path, count))
        relaying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await relaying
    assert isomorphic(await there(str(path)), SENT)


def has(path: Path, count: int) -> bool:
    """Whether a log has as many messages; it may end within one."""
    with suppress(LogError, UsageError):
        return len(list(read_log(path, "nq", syntax="rdfm"))) == count
    return False


@pytest.mark.parametrize(
    ("where", "expected"), [({"last": 2}, [5, 6]), ({"after": 4}, [4, 5, 6]), ({}, range(7))]
)
async def test_where_it_starts(
    served: StreamsServer, tmp_path: Path, where: dict[str, Any], expected: Sequence[int]
) -> None:
    url = f"{served.url}/streams/from"
    await put(url, SENT)
    await relay(url, tmp_path / "to.nq", **where)
    assert isomorphic(await there(str(tmp_path / "to.nq")), [SENT[place] for place in expected])


# --- wherever it ends -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("end", ["before it is written", "after it is written"])
async def test_once_each_wherever_it_ends(
    source: str, target: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch in flight is written again under its key, with the labels and the size that it had."""
    await put(source, SENT)
    state = tmp_path / "state"
    options: dict[str, Any] = {"state": state, **created(target)}
    room: type = LogTransport if "://" in target else GrowingLog
    name = "write" if "://" in target else "append"
    original = getattr(room, name)
    left = 2  # calls until the end

    def ending() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    async def write(self: LogTransport, batch: Sequence[Message], key: str) -> None:
        ended = ending()
        if not ended or end.startswith("after"):
            await original(self, batch, key)
        if ended:
            raise Killed

    def append(self: GrowingLog, messages: Sequence[Message], *, at: int | None = None) -> int:
        ended = ending()
        size = original(self, messages, at=at) if not ended or end.startswith("after") else 0
        if ended:
            raise Killed
        return int(size)

    monkeypatch.setattr(room, name, write if name == "write" else append)
    with pytest.raises(Killed):
        await relay(source, target, batch=2, **options)
    monkeypatch.setattr(room, name, original)
    kept = msgspec.json.decode(state.read_bytes(), type=Sent)
    assert (kept.acknowledged, len(kept.in_flight)) == (4, 2)
    assert kept.position is not None
    assert kept.position.sequence == 6
    assert await relay(source, target, **options) == len(SENT)
    assert isomorphic(await there(target), SENT)


async def test_what_stands_before_an_error_is_written(tmp_path: Path) -> None:
    source = tmp_path / "from.nt"
    source.write_bytes(b"# @message\n<urn:s> <urn:p> <urn:o> .\n# @message\n<urn:s> <urn:p>")
    with pytest.raises(LogError, match="message 2"):
        await relay(source, tmp_path / "to.nq", state=tmp_path / "state")
    assert len(await there(str(tmp_path / "to.nq"))) == 1
    source.write_bytes(
        b"# @message\n<urn:s> <urn:p> <urn:o> .\n# @message\n<urn:s> <urn:p> <urn:o> ."
    )
    assert await relay(source, tmp_path / "to.nq", state=tmp_path / "state") == 2


async def test_a_batch_is_finished_when_the_relay_is_cancelled(
    served: StreamsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it need not be written again, which not every target recognises."""
    url = f"{served.url}/streams/to"
    write_log(SENT, tmp_path / "from.nq")
    original, begun = LogTransport.write, asyncio.Event()

    async def write(self: LogTransport, batch: Sequence[Message], key: str) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        await original(self, batch, key)

    monkeypatch.setattr(LogTransport, "write", write)
    options: dict[str, Any] = {"state": tmp_path / "state", "create": True, "batch": 3}
    relaying = asyncio.ensure_future(relay(tmp_path / "from.nq", url, **options))
    await begun.wait()
    relaying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await relaying
    kept = msgspec.json.decode((tmp_path / "state").read_bytes(), type=Sent)
    assert (kept.acknowledged, kept.in_flight) == (3, ())


async def test_a_log_without_what_was_written_is_not_continued(source: str, tmp_path: Path) -> None:
    """An older copy was restored, or the log was removed: continuing would leave a hole."""
    target, state = tmp_path / "to.nq", tmp_path / "state"
    await put(source, SENT[:1])
    await relay(source, target, state=state)
    older = target.read_bytes()
    await put(source, SENT[1:3])
    await relay(source, target, state=state)
    whole = target.read_bytes()
    await put(source, SENT[3:])
    for restored in (older, b"", None):
        target.unlink()
        if restored is not None:
            target.write_bytes(restored)
        with pytest.raises(UsageError, match="is shorter than it was"):
            await relay(source, target, state=state)
        assert (target.read_bytes() if target.exists() else None) == restored
        target.touch()
    target.write_bytes(whole)
    assert await relay(source, target, state=state) == len(SENT)
    assert isomorphic(await there(str(target)), SENT)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda folder: relay(folder / "a.nq", folder / "a.nq"), "is what is read"),
        (lambda folder: relay(folder / "a.nq", folder / "hard.nq"), "is what is read"),
        (lambda folder: relay(folder / "link.nq", folder / "a.nq"), "is what is read"),
        (lambda folder: relay(read_log(folder / "a.nq"), folder / "hard.nq"), "is what is read"),
        (
            lambda folder: relay(folder / "a.nq", folder / "b", state=folder / "c" / ".." / "b"),
            "is what is read",
        ),
        (lambda _: relay("nats://host/a", "nats://host/a"), "is what is read"),
        (lambda folder: relay("ftp://example.org/a", folder / "a.nq"), "malformed"),
        (lambda folder: relay(folder / "a.nq", "ftp://example.org/a"), "malformed"),
        (lambda folder: relay(folder / "a.nq", folder / "b.jelly"), "cannot be continued"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", batch=0), "less than 1"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", via="sse"), "via is for a stream"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", create=True), "create is for a st"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", follow=True), "is a log, and ends"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", last=1), "no known number"),
        (lambda folder: relay(folder / "none.nq", folder / "b.nq"), "No such file"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", after=1, last=1), "go together"),
        (lambda folder: relay(folder / "a.nq", folder / "b.nq", after=9), "has 7 messages"),
    ],
)
async def test_refusals(tmp_path: Path, call: Callable[[Path], Awaitable[int]], match: str) -> None:
    write_log(SENT, tmp_path / "a.nq")
    (tmp_path / "hard.nq").hardlink_to(tmp_path / "a.nq")
    (tmp_path / "link.nq").symlink_to("a.nq")
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=match):
        await call(tmp_path)
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def test_states_of_others(served: StreamsServer, tmp_path: Path) -> None:
    write_log(SENT, tmp_path / "a.nq")
    state, url = tmp_path / "state", f"{served.url}/streams/a"
    await relay(tmp_path / "a.nq", url, state=state)
    with pytest.raises(UsageError, match=r"the state is of .*/streams/a, and not of .*b\.nq"):
        await relay(tmp_path / "a.nq", tmp_path / "b.nq", state=state)
    write_log(SENT, tmp_path / "b.nq")
    with pytest.raises(UsageError, match=r"the state is of .*a\.nq, and not of .*b\.nq"):
        await relay(tmp_path / "b.nq", url, state=state)
    with pytest.raises(UsageError, match="and not of a publisher"):
        await publish(SENT, url, state=state)
    write_log(SENT[:3], tmp_path / "a.nq")
    with pytest.raises(UsageError, match="has 3 messages, and 7 were read before"):
        await relay(tmp_path / "a.nq", url, state=state)


async def test_sides_that_cannot_be_reached(served: StreamsServer, tmp_path: Path) -> None:
    write_log(SENT, tmp_path / "a.nq")
    with pytest.raises(SourceError, match="404"):
        await relay(tmp_path / "a.nq", f"{served.url}/streams/none")
    with pytest.raises(SourceError, match="404"):
        await relay(f"{served.url}/streams/none", tmp_path / "b.nq")
    with pytest.raises(SourceError, match="could not be reached"):
        await relay("http://127.0.0.1:1/a", tmp_path / "b.nq", retries=0)


# --- batches ----------------------------------------------------------------------------------------------------------


async def test_what_waits_is_one_batch() -> None:
    """The position is that after the last item of the batch; nothing is read beyond the next batch."""
    read = 0

    async def items() -> AsyncGenerator[int]:
        nonlocal read
        for number in range(1, 8):
            read = number
            yield number

    taken = []
    position = lambda: Checkpoint(read)  # noqa: E731 # as short as it is
    async with aclosing(batches(items(), position, lambda _: 1, 3)) as gathered:
        async for batch in gathered:
            if batch is not None:
                taken.append((batch.items, batch.position))
                assert read <= batch.items[-1] + 3
    assert taken == [
        ([1, 2, 3], Checkpoint(3)),
        ([4, 5, 6], Checkpoint(6)),
        ([7], Checkpoint(7)),
    ]


async def test_a_batch_is_handed_over_before_the_next_one_is_read() -> None:
    """Its delivery, a task of its own, begins when at most one more item has been read."""
    read, begun = 0, list[int]()

    async def items() -> AsyncGenerator[int]:
        nonlocal read
        for number in range(1, 10):
            read = number
            yield number

    async def deliver() -> None:
        begun.append(read)

    async with (
        asyncio.TaskGroup() as tasks,
        aclosing(batches(items(), lambda: Checkpoint(read), lambda _: 1, 3)) as gathered,
    ):
        async for batch in gathered:
            if batch is not None:
                tasks.create_task(deliver())
    assert len(begun) == 3
    assert all(at <= last + 1 for at, last in zip(begun, (3, 6, 9), strict=True)), begun


# --- the table --------------------------------------------------------------------------------------------------------


def documented() -> str:
    """The table of the documentation, of sources by targets."""
    targets = [name for name, can in ENDS.items() if can.writes]
    rows = [f"| from \\ to | {' | '.join(targets)} |", "|---" * (len(targets) + 1) + "|"]
    for source, can in ENDS.items():
        cells = [guarantee(can, ENDS[target]).value for target in targets]
        rows.append(f"| {source} | {' | '.join(cells)} |")
    return "\n".join(rows)


def test_the_documentation_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- pairs -->\n\n{documented()}\n\n<!-- /pairs -->"
    assert wanted in page, f"write into {PAGE.name}:\n{wanted}"


@pytest.mark.parametrize("kind", TRANSPORTS, ids=lambda kind: kind.name)
def test_what_is_guaranteed(kind: TransportKind) -> None:
    can = kind.capabilities
    log = ENDS["log file"]
    assert guarantee(can, log) is (
        Guarantee.EXACTLY_ONCE if can.replays else Guarantee.AT_LEAST_ONCE
    )
    expected = Guarantee.EXACTLY_ONCE if can.keyed else Guarantee.AT_LEAST_ONCE
    assert guarantee(log, can) is (expected if can.writes else Guarantee.NONE)


async def test_a_query_over_each_message(served: StreamsServer, tmp_path: Path) -> None:
    """Its results are what is written, and what is in flight; messages without results are passed over."""
    url = f"{served.url}/streams/from"
    await put(url, SENT)
    query = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s ?p ?o FILTER(STRLEN(STR(?o)) < 100) }"
    results = partial(transform, query)
    options: dict[str, Any] = {"state": tmp_path / "state", "transform": results, "batch": 1}
    for _ in range(2):
        assert await relay(url, tmp_path / "to.nq", **options) == len(list(results(SENT))) > 1
        assert isomorphic(await there(str(tmp_path / "to.nq")), list(results(SENT)))
    kept = msgspec.json.decode((tmp_path / "state").read_bytes(), type=Sent)
    assert kept.position is not None
    assert kept.position.sequence == len(SENT)
