"""Broken and hostile logs: only errors of ours come out, soon, and memory stays that of a message.

The fuzzer's long run is `make fuzz-logs`.
"""

from __future__ import annotations

import gc
import io
import itertools
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from construct_messages import read_log
from construct_messages.errors import LimitExceeded, LogError
from construct_messages.rdf.files.unpacking import COMPRESSIONS, opener
from construct_messages.rdf.formats import (
    FORMATS,
    N_QUADS,
    NDJSON_LD,
    RDFM,
    TRIG,
    TURTLE,
    YAML_LD,
    Format,
)
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import iri, literal
from tests.support.growth import assert_linear, bounded_cpu, cpu_seconds
from tests.support.logs import hostile
from tests.support.logs.fuzzer import check, inputs
from tests.support.logs.kinds import KINDS, Kind, read, reading, write
from tests.support.logs.seeds import seeds

pytestmark = pytest.mark.slow

MIB = 1 << 20
each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.extension)
each_delimiter = pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.syntax.version in ("", "1.2", "1.2-messages")], ids=str
)


def unannounced(format: Format) -> Kind:
    return Kind(format, format.own or RDFM)


# --- nearly right ---------------------------------------------------------------------------------------------------


@each_format
def test_seeds_are_valid(format: Format) -> None:
    for log in seeds(format):
        found = read([log], unannounced(format), announced=False)
        assert found.error is None, log
        assert found.messages


@each_format
def test_whatever_the_bytes_only_errors_of_ours_come_out(
    format: Format, pytestconfig: pytest.Config
) -> None:
    counts: Counter[bool] = Counter()
    most = pytestconfig.getoption("--inputs")
    for input in itertools.islice(inputs(format.extension, seed=1), most):
        found = check(input)
        counts[found.error is None] += 1
        counts[True] += bool(found.messages)
    assert min(counts.values()) >= 10, "both ends are met"


# --- deep -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", hostile.DEEP)
def test_depth(name: str) -> None:
    kind, deep = hostile.DEEP[name]
    outcomes = [str(read([deep(depth)], kind)) for depth in (20, 1000, 5000)]
    if "open " not in name and "definitions" not in name:
        assert outcomes[0].startswith("1 messages, NoneType")
    for outcome in outcomes:
        assert outcome.startswith(
            ("1 messages, NoneType", "0 messages, LogError", "0 messages, LimitExceeded")
        )


# --- long -----------------------------------------------------------------------------------------------------------


# pyoxigraph reads no term of more than 16 MiB in these
TOO_LONG = {TURTLE, TRIG}


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    """Fails where Python objects take more bytes at any time."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit, f"{peak / MIB:.1f} MiB, where {limit / MIB:.1f} are allowed"


@each_format
def test_a_literal_of_20_megabytes(format: Format) -> None:
    size = 20 * 10**6
    with memory_below(8 * size):
        found = read(hostile.long_literal(format, size), unannounced(format), announced=False)
        if format in TOO_LONG:
            assert isinstance(found.error, LimitExceeded)
            return
        ((quad,),) = found.messages
        assert len(quad.object) == size + len('""')


@each_format
def test_a_message_without_end_is_given_up_at_its_bound(format: Format) -> None:
    taken = 0

    def counted() -> Iterator[bytes]:
        nonlocal taken
        for chunk in hostile.endless(format):
            taken += len(chunk)
            yield chunk

    with memory_below(8 * MIB), pytest.raises(LimitExceeded, match="message 1"):
        list(reading(counted(), unannounced(format), announced=False, message_bytes=MIB))
    assert taken <= MIB + 2 * hostile.PIECE


# --- many -----------------------------------------------------------------------------------------------------------


@each_delimiter
def test_empty_messages(kind: Kind) -> None:
    count = 5000
    found = 0
    for message in reading(hostile.empty_messages(kind, count), kind):
        assert not len(message)
        found += 1
    assert found == count


@each_delimiter
def test_messages_of_every_length(kind: Kind) -> None:
    """What a parser has read ahead at the end of a message depends on how long the message was."""
    for length in range(700, 900):
        messages = [Message([Quad(*[iri("urn:s")] * 2, literal("x" * length))])] * 2
        assert read([write(messages, kind)], kind).messages == messages


def assert_read_in_linear_time(
    kind: Kind, make: Callable[[int], Iterable[bytes]], size: int
) -> None:
    def seconds(size: int) -> float:
        chunks = make(size)
        return cpu_seconds(lambda: deque(reading(chunks, kind, announced=False), maxlen=0))

    assert_linear(seconds, size, 8)


@each_format
def test_tiny_feeds_take_linear_time(format: Format) -> None:
    def in_threes(size: int) -> list[bytes]:
        log = b"".join(hostile.long_literal(format, size))
        return [log[place : place + 3] for place in range(0, len(log), 3)]

    assert_read_in_linear_time(unannounced(format), in_threes, 30_000)


@each_delimiter
def test_messages_take_linear_time(kind: Kind) -> None:
    assert_read_in_linear_time(
        kind,
        lambda count: hostile.empty_messages(kind, count),
        200 if kind.format is YAML_LD else 1000,
    )


@pytest.mark.parametrize("format", [TURTLE, TRIG], ids=lambda format: format.extension)
@pytest.mark.parametrize(
    "make",
    [
        hostile.redeclared,
        lambda count: hostile.many_prefixes(count, 1),
        # every declaration must not cost anything for every message
        lambda count: hostile.many_prefixes(count, count),
    ],
    ids=["a prefix again and again", "many prefixes", "many prefixes and messages"],
)
@pytest.mark.parametrize("chunk", [100, 1 << 20])
def test_prefixes_take_linear_time(
    format: Format, make: Callable[[int], bytes], chunk: int
) -> None:
    def chunks(count: int) -> list[bytes]:
        log = make(count)
        return [log[place : place + chunk] for place in range(0, len(log), chunk)]

    assert_read_in_linear_time(unannounced(format), chunks, 500)


def test_contexts_take_linear_time() -> None:
    assert_read_in_linear_time(
        unannounced(NDJSON_LD), lambda count: [hostile.many_contexts(count)], 20
    )


# --- much from little -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", hostile.BOMBS)
def test_bombs(name: str) -> None:
    format, log = hostile.BOMBS[name]
    with bounded_cpu(), memory_below(50 * MIB):
        found = read([log], unannounced(format), announced=False, message_bytes=10 * MIB)
    if name not in hostile.HARMLESS:
        assert isinstance(found.error, LogError | LimitExceeded), found.messages
        assert "root:" not in str(found.error)


@pytest.mark.parametrize("extension", COMPRESSIONS)
def test_what_unpacks_to_much_is_given_up_at_its_bound(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"log.nq{extension}"
    with opener(extension)(path, "wb") as packed:
        for chunk in itertools.islice(hostile.endless(N_QUADS), 200):
            packed.write(chunk)
    assert path.stat().st_size < MIB
    with (
        memory_below(80 * MIB),
        pytest.raises(LimitExceeded),
        read_log(path, message_bytes=MIB) as log,
    ):
        list(log)


def test_packed_within_packed_is_unpacked_once() -> None:
    inner = io.BytesIO()
    with opener(".gz")(inner, "wb") as packed:
        packed.write(hostile.STATEMENT)
    outer = io.BytesIO()
    with opener(".gz")(outer, "wb") as packed:
        packed.write(inner.getvalue())
    with pytest.raises(LogError), read_log(outer.getvalue(), format="nt") as log:
        list(log)
