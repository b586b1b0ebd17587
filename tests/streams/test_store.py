"""The store of streams: what is appended is there, once and in order, for whoever reads or comes later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from construct_messages import Message, Quad, Term, iri, literal, read_log
from construct_messages.errors import (
    Conflict,
    ConstructMessagesError,
    Gone,
    NotFound,
    TermError,
    UsageError,
)
from construct_messages.rdf.terms import XSD
from construct_messages.streams import Description, Retention, StreamStore, open_store
from construct_messages.streams.writer import Change, _resolve_all
from tests.support.strategies import messages
from tests.support.streams import Clock, numbered, sequences
from tests.support.waiting import SECONDS, wait_until


def test_elements_are_there_again(path: Path) -> None:
    before = datetime.now(UTC)
    with open_store(path) as store:
        store.create("a", Description("Numbers"))
        assert store.append("a", numbered(1)) == 1
        assert store.append_all("a", [numbered(2), Message(), numbered(4)]) == range(2, 5)
        assert store.append_all("a", []) == range(5, 5)
        assert store.append("a", numbered(5)) == 5
    with open_store(path) as store:
        elements = list(store.read("a"))
        assert [element.message for element in elements] == [
            numbered(1),
            numbered(2),
            Message(),
            numbered(4),
            numbered(5),
        ]
        assert sequences(elements) == [1, 2, 3, 4, 5]
        times = [element.time for element in elements]
        assert times == sorted(times)
        assert before - timedelta(microseconds=1) <= times[0] <= times[-1] <= datetime.now(UTC)
        assert store.state("a").description.label == "Numbers"
        assert store.append("a", numbered(6)) == 6
        assert sequences(store.latest("a", 2)) == [5, 6]
        assert sequences(store.latest("a", 20)) == [1, 2, 3, 4, 5, 6]
        assert store.get("a", 4).message == numbered(4)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda store: store.append("b", numbered(1)), NotFound),
        (lambda store: store.read("b").__next__(), NotFound),
        (lambda store: store.latest("b", 1), NotFound),
        (lambda store: store.state("b"), NotFound),
        (lambda store: store.delete("b"), NotFound),
        (lambda store: store.describe("b", Description()), NotFound),
        (lambda store: store.get("a", 0), NotFound),
        (lambda store: store.get("a", 4), NotFound),
        (lambda store: store.get("a", -1), NotFound),
        (lambda store: store.read("a", after=4).__next__(), NotFound),
        (lambda store: store.create("a"), Conflict),
        (lambda store: store.create(""), UsageError),
        (lambda store: store.create("a/b"), UsageError),
        (lambda store: store.create(".."), UsageError),
        (lambda store: store.create("é"), UsageError),
        (lambda store: store.create("x" * 129), UsageError),
        (
            lambda store: store.append("a", Message([Quad(Term("x"), iri("urn:p"), iri("urn:o"))])),
            TermError,
        ),
        (lambda store: store.append_all("a", [numbered(4), "no message"]), UsageError),
        (lambda store: store.sequence_at("a", datetime(2026, 1, 1)), UsageError),
    ],
)
def test_refused(
    store: StreamStore, act: Callable[[StreamStore], object], error: type[ConstructMessagesError]
) -> None:
    store.create("a")
    store.append_all("a", map(numbered, range(1, 4)))
    with pytest.raises(error) as raised:
        act(store)
    assert raised.value.hint
    # nothing is half done
    assert [(state.name, state.last) for state in store.streams()] == [("a", 3)]
    assert len(list(store.read("a"))) == 3


def test_a_refused_change_holds_up_no_other(store: StreamStore) -> None:
    store.create("a")

    async def all_at_once() -> list[Any]:
        calls = [
            store.aappend("a" if number % 3 else "b", numbered(number)) for number in range(300)
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(all_at_once())
    assert all(
        isinstance(result, int if number % 3 else NotFound) for number, result in enumerate(results)
    )
    assert sorted(result for result in results if isinstance(result, int)) == list(range(1, 201))
    assert [element.message for element in store.read("a")] == [
        numbered(n) for n in range(300) if n % 3
    ]


def test_one_wake_up_tells_all_that_a_commit_made(
    store: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where some are refused, and one no longer waits."""
    store.create("a")
    writer = store._writer
    assert writer is not None
    batches: list[int] = []
    commit = writer._commit

    def counted(waiting: Sequence[Any], *, every_stream: bool) -> None:
        batches.append(len(waiting))
        commit(waiting, every_stream=every_stream)

    monkeypatch.setattr(writer, "_commit", counted)
    hold, begun = Event(), Event()

    def holding(_: Any) -> None:
        begun.set()
        assert hold.wait(SECONDS)

    async def main() -> tuple[list[Any], list[Any]]:
        loop = asyncio.get_running_loop()
        blocking = loop.run_in_executor(None, writer.write, Change(holding))
        await loop.run_in_executor(None, begun.wait, SECONDS)
        appends = [
            asyncio.ensure_future(store.aappend("b" if n % 10 == 0 else "a", numbered(n)))
            for n in range(100)
        ]
        await asyncio.sleep(0)  # each has handed in its message
        appends[55].cancel()
        wakes: list[Any] = []
        call = loop.call_soon_threadsafe

        def noted(callback: Callable[..., Any], *given: Any, **options: Any) -> Any:
            wakes.append(callback)
            return call(callback, *given, **options)

        monkeypatch.setattr(loop, "call_soon_threadsafe", noted)
        hold.set()
        ends = await asyncio.gather(*appends, return_exceptions=True)
        resolved = [callback for callback in wakes if callback is _resolve_all]
        monkeypatch.undo()
        await blocking
        return ends, resolved

    ends, resolved = asyncio.run(main())
    assert len(resolved) == 1
    assert max(batches) == 99
    assert [type(end) for end in ends] == [
        asyncio.CancelledError if n == 55 else NotFound if n % 10 == 0 else int for n in range(100)
    ]
    assert (
        sequences(list(store.read("a")))
        == [end for end in ends if isinstance(end, int)]
        == [*range(1, 90)]
    )


def test_a_loop_that_was_closed_holds_up_nobody(store: StreamStore) -> None:
    """Whoever waited in it is gone; the others are told."""
    store.create("a")
    assert store._writer is not None
    hold = Event()
    loop = asyncio.new_event_loop()

    async def hand_in() -> None:
        assert store._writer is not None
        store._writer.awrite(Change(lambda _: hold.wait(SECONDS)))

    loop.run_until_complete(hand_in())
    loop.close()
    hold.set()
    assert store.append("a", numbered(1)) == 1


def test_a_key_appends_once(store: StreamStore) -> None:
    store.create("a")
    store.create("b")
    assert store.append("a", numbered(1), key="k") == 1
    assert store.append("a", numbered(2)) == 2
    assert store.append("a", numbered(1), key="k") == 1
    assert store.append("b", numbered(9), key="k") == 1, "a key is of one stream"
    assert store.append_all("a", [numbered(3), numbered(4)], key="log") == range(3, 5)
    assert store.append_all("a", [numbered(3), numbered(4)], key="log") == range(3, 5)
    for others in ([numbered(3)], [numbered(4), numbered(3)], []):
        with pytest.raises(Conflict, match="'log'"):
            store.append_all("a", others, key="log")
    assert store.state("a").last == 4


def test_labels_are_not_compared(store: StreamStore) -> None:
    """A decoder gives new ones each time that a log is read."""
    log = b"_:a <urn:p> _:b .\n_:b <urn:p> _:a .\n# @message\n_:a <urn:p> _:a ."
    store.create("a")
    assert store.append_all("a", read_log(log, "nt"), key="k") == range(1, 3)
    assert store.append_all("a", read_log(log, "nt"), key="k") == range(1, 3)
    with pytest.raises(Conflict):
        store.append_all(
            "a", read_log(log.replace(b"_:a <urn:p> _:a", b"_:a <urn:p> _:b"), "nt"), key="k"
        )


GENERATED = iri("http://www.w3.org/ns/prov#generatedAtTime")
TIME_OF = iri("urn:s")
TIME = literal("2016-05-01T11:04:59Z")


@pytest.mark.parametrize(
    ("quads", "said"),
    [
        (
            [
                Quad(iri("urn:g"), GENERATED, TIME),
                Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g")),
            ],
            str(TIME),
        ),
        (
            [
                Quad(
                    iri("urn:g"),
                    GENERATED,
                    literal("2016-05-01T11:04:59.5+02:00", datatype=f"{XSD}dateTime"),
                )
            ],
            "05-01T",
        ),
        ([Quad(iri("urn:g"), GENERATED, TIME), Quad(iri("urn:h"), GENERATED, TIME)], str(TIME)),
        (
            [
                Quad(iri("urn:g"), GENERATED, TIME),
                Quad(iri("urn:g"), GENERATED, literal("2017-05-01T11:04:59Z")),
            ],
            None,
        ),
        ([Quad(iri("urn:g"), GENERATED, TIME, iri("urn:g"))], None),
        ([Quad(iri("urn:g"), GENERATED, literal("2016-05-01T11:04:59"))], None),
        ([Quad(iri("urn:g"), GENERATED, literal("yesterday"))], None),
        ([Quad(iri("urn:g"), GENERATED, iri("urn:t"))], None),
        ([Quad(iri("urn:g"), iri("urn:p"), TIME)], None),
    ],
)
def test_when_a_message_was_made(store: StreamStore, quads: list[Quad], said: str | None) -> None:
    store.create("a")
    store.append("a", Message(quads))
    generated = store.get("a", 1).generated
    assert generated is said is None or (
        said and generated and (generated in said or said in generated)
    )


def test_a_key_is_known_for_a_day(path: Path) -> None:
    clock = Clock()
    with StreamStore(path, clock=clock) as store:
        store.create("a", Description(retention=Retention(count=1)))
        assert store.append("a", numbered(1), key="k") == 1
        store.append("a", numbered(2))
        clock.microseconds += 23 * 3600 * 1_000_000
        assert store.append("a", numbered(1), key="k") == 1, "though it is gone"


RETENTIONS: list[tuple[Retention, list[int]]] = [
    (Retention(), [1, 2, 3, 4, 5, 6]),
    (Retention(count=4), [3, 4, 5, 6]),
    (Retention(count=1), [6]),
    (Retention(count=100), [1, 2, 3, 4, 5, 6]),
    (Retention(seconds=25), [4, 5, 6]),
    (Retention(seconds=0.5), [6]),
    (Retention(bytes=150), [5, 6]),
    (Retention(bytes=1), []),
    (Retention(count=3, seconds=1000, bytes=100), [6]),
]


@pytest.mark.parametrize("late", [False, True], ids=["from the start", "later"])
@pytest.mark.parametrize(
    ("retention", "kept"), RETENTIONS, ids=[str(retention) for retention, _ in RETENTIONS]
)
def test_retention(path: Path, retention: Retention, kept: list[int], late: bool) -> None:
    clock = Clock()
    with StreamStore(path, clock=clock) as store:
        store.create("a", Description(retention=Retention() if late else retention))
        size = 0
        for number in range(1, 7):
            # never ahead of the last one: the writer takes what is too old at any moment
            clock.microseconds += 10_000_000
            store.append("a", numbered(number, size=40))
            size = store.state("a").bytes
        if late:
            assert sequences(list(store.read("a"))) == [1, 2, 3, 4, 5, 6]
            store.describe("a", Description(retention=retention))
        assert sequences(list(store.read("a"))) == kept
        state = store.state("a")
        assert (state.first, state.next) == (kept[0] if kept else 7, 7)
        assert state.bytes == sum(len(element.nquads) for element in store.read("a")) <= size
        for number in range(1, 7):
            if number in kept:
                assert store.get("a", number).message == numbered(number, size=40)
            else:
                with pytest.raises(Gone) as raised:
                    store.get("a", number)
                assert raised.value.first == state.first
        if kept != [1, 2, 3, 4, 5, 6]:
            with pytest.raises(Gone):
                list(store.read("a", after=0))
        assert store.append("a", numbered(7)) == 7, "numbers go on"


def test_what_became_too_old_goes_by_itself(path: Path) -> None:
    clock = Clock()
    with StreamStore(path, clock=clock) as store:
        store.create("a", Description(retention=Retention(seconds=5)))
        store.create("b")
        store.append("a", numbered(1))
        clock.microseconds += 6_000_000
        wait_until(lambda: store.state("a").first > 1)  # the writer looks once a second
        assert list(store.read("a")) == []


def test_by_time(path: Path) -> None:
    clock = Clock()
    start = clock.microseconds
    with StreamStore(path, clock=clock) as store:
        store.create("a")
        for number in range(1, 101):
            store.append("a", numbered(number))
            clock.microseconds += 1_000_000 if number % 10 == 0 else 0
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        for after, sequence in (
            (-5, 1),
            (0, 1),
            (0.5, 11),
            (1, 11),
            (9, 91),
            (9.1, 101),
            (100, 101),
        ):
            time = epoch + timedelta(microseconds=start) + timedelta(seconds=after)
            assert store.sequence_at("a", time) == sequence
        began = epoch + timedelta(microseconds=start)
        for seconds, period, counts in (
            (-2, 1, [0, 0, 10, 10]),
            (0, 2.5, [30, 20, 30, 20]),
            (8, 1, [10, 10, 0, 0]),
        ):
            since = began + timedelta(seconds=seconds)
            assert store.counts("a", since, timedelta(seconds=period), 4) == counts


def test_time_never_goes_back(path: Path) -> None:
    clock = Clock()
    with StreamStore(path, clock=clock) as store:
        store.create("a")
        store.append("a", numbered(1))
        clock.microseconds -= 3_600_000_000
        store.append("a", numbered(2))
        first, second = store.read("a")
        assert first.time == second.time
    with StreamStore(path, clock=clock) as store:
        store.append("a", numbered(3))
        assert len({element.time for element in store.read("a")}) == 1


def test_a_log_is_appended(store: StreamStore) -> None:
    first, second = b'_:b <urn:p> "\\u00e9\\n" <urn:g> .', b"_:b <urn:p> <urn:o> ."
    log = b'VERSION "1.2-messages"\n' + first + b"\nMESSAGE\nMESSAGE\n" + second + b"\nMESSAGE\n"
    store.create("a")
    sent = list(read_log(log, "nq"))
    assert store.append_all("a", read_log(log, "nq")) == range(1, 4)
    came = [element.message for element in store.read("a")]
    assert all(one.isomorphic(other) for one, other in zip(came, sent, strict=True))
    assert len(came[1]) == 0
    blank = {quad.subject for message in came for quad in message}
    assert len(blank) == 2, "each message has its own"


# --- against a model --------------------------------------------------------------------------------------------------


def test_times(path: Path) -> None:
    """When elements were committed, without their messages."""
    clock = Clock()
    with StreamStore(path, clock=clock) as store:
        store.create("a", Description(retention=Retention(count=2)))
        for _ in range(3):
            store.append("a", Message())
            clock.microseconds += 1
        begin = clock.microseconds - 3
        assert store.times("a", [3, 2]) == [begin + 2, begin + 1]
        with pytest.raises(Gone):
            store.times("a", [3, 1])
        with pytest.raises(NotFound):
            store.times("a", [4])


class Model(RuleBasedStateMachine):
    """The store beside lists in memory."""

    names = Bundle("names")

    @initialize()
    def open(self) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "streams.db"
        self.store = open_store(self.path)
        self.streams: dict[str, list[Message]] = {}
        self.first: dict[str, int] = {}
        self.keys: dict[tuple[str, str], tuple[list[Message], range]] = {}

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @rule(name=st.sampled_from("abc"), count=st.none() | st.integers(1, 5), target=names)
    def create(self, name: str, count: int | None) -> str:
        self.store.create(name, Description(retention=Retention(count=count)), exist_ok=True)
        if name not in self.streams:
            self.streams[name], self.first[name] = [], 1
        self.prune()
        return name

    def prune(self) -> None:
        for name, held in self.streams.items():
            count = self.store.state(name).description.retention.count
            if count is not None:
                self.first[name] = max(self.first[name], len(held) + 1 - count)

    @rule(name=names, appended=messages(), key=st.none() | st.sampled_from("kl"))
    def append(self, name: str, appended: list[Message], key: str | None) -> None:
        if name not in self.streams:
            with pytest.raises(NotFound):
                self.store.append_all(name, appended, key=key)
            return
        held = self.streams[name]
        expected = range(len(held) + 1, len(held) + 1 + len(appended))
        if key is not None and (name, key) in self.keys:
            before, expected = self.keys[name, key]
            if [list(message) for message in before] != [list(message) for message in appended]:
                with pytest.raises(Conflict):
                    self.store.append_all(name, appended, key=key)
                return
            assert self.store.append_all(name, appended, key=key) == expected
            return
        assert self.store.append_all(name, appended, key=key) == expected
        held.extend(appended)
        if key is not None:
            self.keys[name, key] = appended, expected
        self.prune()

    @rule(name=names)
    def delete(self, name: str) -> None:
        if name in self.streams:
            self.store.delete(name)
            del self.streams[name], self.first[name]
            self.keys = {key: value for key, value in self.keys.items() if key[0] != name}

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = open_store(self.path)

    @invariant()
    def what_is_read(self) -> None:
        if not hasattr(self, "streams"):
            return
        assert [state.name for state in self.store.streams()] == sorted(self.streams)
        for name, held in self.streams.items():
            first = self.first[name]
            elements = list(self.store.read(name))
            assert sequences(elements) == list(range(first, len(held) + 1))
            assert [element.message for element in elements] == held[first - 1 :]
            middle = (first + len(held)) // 2
            if middle >= first:
                assert sequences(list(self.store.read(name, after=middle))) == list(
                    range(middle + 1, len(held) + 1)
                )


@pytest.mark.slow
def test_like_lists_in_memory() -> None:
    run_state_machine_as_test(Model, settings=settings(max_examples=30, stateful_step_count=20))  # type: ignore[no-untyped-call]
