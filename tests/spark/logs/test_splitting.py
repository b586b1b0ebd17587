"""Ranges of N-Triples and N-Quads logs: wherever a log is cut, the same messages in the same order, without Spark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded, LogError
from construct_messages.logs import DecoderOptions
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, RDFM, Format, Syntax
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.spark.logs.source import announced_in, messages_of
from tests.support.logs.cases.lines import LIMITS, READ
from tests.support.logs.hostile import empty_messages, endless, long_literal
from tests.support.logs.kinds import KINDS, Kind, Reading, isomorphic, read, write
from tests.support.logs.seeds import seeds
from tests.support.strategies import messages

pytestmark = pytest.mark.slow

LINES = (N_TRIPLES, N_QUADS)
LABELS = Labels("x", keep=True)  # as `log_kinds.read` has them
each_format = pytest.mark.parametrize("format", LINES, ids=lambda format: format.extension)


def in_pieces(data: bytes, size: int | None) -> Iterator[bytes]:
    return (
        data[place : place + (size or len(data))]
        for place in range(0, len(data), size or len(data) or 1)
    )


def in_ranges(
    data: bytes,
    cuts: Iterable[int],
    label: str | None = None,
    format: Format = N_QUADS,
    *,
    pieces: int | None = None,
    **options: int,
) -> Reading:
    """Reads a log a range at a time, as many tasks would, in order; up to the first error."""
    found: list[Message] = []
    try:
        for start, end in itertools.pairwise([0, *cuts, len(data)]):
            syntax: Syntax | None = None if label is None else find_syntax(label)
            if start:
                syntax = syntax or announced_in(in_pieces(data, pieces), format, **options)
            chunks = in_pieces(data[max(start - 1, 0) :], pieces)
            for message in messages_of(
                chunks,
                start,
                end,
                format=format,
                syntax=syntax,
                options=DecoderOptions(labels=LABELS, **options),
            ):
                found.append(message)
    except (LogError, LimitExceeded) as error:
        return Reading(found, error)
    return Reading(found, None)


def all_cuts(size: int) -> Iterator[Sequence[int]]:
    """A log in two at every place, and in ranges of every size from a byte on."""
    for place in range(1, size):
        yield [place]
    for length in range(1, size):
        yield range(length, size, length)


def some_cuts(data: bytes) -> Iterator[Sequence[int]]:
    """A longer log in two about each line end and at some other places, and in ranges of some sizes."""
    ends = [match.start() for match in re.finditer(rb"[\r\n]", data)]
    places = {end + by for end in ends for by in range(-1, 4)} | set(range(1, len(data), 29))
    for place in sorted(places & set(range(1, len(data)))):
        yield [place]
    for length in (7, 31, 64, 200):
        yield range(length, len(data), length)


def assert_same(got: Reading, whole: Reading, *, labels: bool) -> None:
    assert type(got.error) is type(whole.error), f"{got}, not {whole}"
    assert isomorphic(got.messages, whole.messages), f"{got}, not {whole}"
    if labels:
        assert got.messages == whole.messages, "labels are kept"


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize("case", READ)
def test_cut_anywhere(case: str) -> None:
    data, label, _, _ = READ[case]
    data = as_bytes(data)
    whole = read([data], Kind(N_QUADS, find_syntax(label or "rdfm")), announced=label is not None)
    for cuts in all_cuts(len(data)):
        assert_same(in_ranges(data, cuts, label), whole, labels=False)


@each_format
def test_cut_anywhere_with_all_there_is(format: Format) -> None:
    for data in seeds(format):
        kind = Kind(format, RDFM)
        whole = read([data], kind, announced=False)
        assert whole.error is None
        for cuts in some_cuts(data):
            assert_same(in_ranges(data, cuts, format=format), whole, labels=b"VERSION" not in data)


@pytest.mark.parametrize("pieces", [1, 2, 3, 7], ids=str)
def test_pieces_of_any_size(pieces: int) -> None:
    # as a file system may give them: within a CRLF, a byte order mark and a character
    data = '\ufeff# é\r\n VERSION "1.2-messages" # é\r\nMESSAGE\r\r\n<urn:é> <urn:p> "€" .\r\n\rMESSAGE'.encode()
    whole = read([data], Kind(N_QUADS, RDFM), announced=False)
    for cuts in all_cuts(len(data)):
        assert_same(in_ranges(data, cuts, pieces=pieces), whole, labels=True)


@pytest.mark.parametrize("case", LIMITS)
def test_limits(case: str) -> None:
    text, limit, _, _ = LIMITS[case]
    data = text.encode("latin-1" if "é" in text else "utf-8")
    whole = read([data], Kind(N_QUADS, RDFM), announced=False, message_bytes=limit)
    # some of the cuts where there are many
    for cuts in itertools.islice(some_cuts(data), 0, None, 1 + len(data) // 50):
        assert_same(in_ranges(data, cuts, message_bytes=limit), whole, labels=False)


@given(
    data=st.data(),
    kind=st.sampled_from([kind for kind in KINDS if kind.format in LINES]),
    line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    announced=st.booleans(),
)
def test_any_messages(data: st.DataObject, kind: Kind, line_end: bytes, announced: bool) -> None:
    sent = data.draw(
        messages(
            graphs=kind.format.graphs,
            triple_terms=kind.syntax.triple_terms,
            directions=kind.syntax.directions,
        )
    )
    log = write(sent, kind).replace(b"\n", line_end)
    cuts = (
        sorted(data.draw(st.sets(st.integers(1, max(len(log) - 1, 1)), max_size=8)))
        if len(log) > 1
        else []
    )
    got = in_ranges(
        log, cuts, kind.syntax.label if announced else None, kind.format, pieces=data.draw(PIECES)
    )
    event(f"{min(len(sent), 3)} messages, {min(len(cuts), 3)} cuts")
    assert got.error is None
    assert isomorphic(got.messages, sent)
    if kind.keeps_labels:
        assert got.messages == sent


PIECES = st.sampled_from([None, 1, 5, 64])


@each_format
def test_hostile_logs(format: Format) -> None:
    for label in ("rdfm", "1.2-messages"):
        kind = Kind(format, find_syntax(label))
        data = b"".join(empty_messages(kind, 3000))
        assert (
            in_ranges(data, range(1000, len(data), 1000), format=format).messages
            == [Message()] * 3000
        )
    # a line that is longer than several ranges
    data = b"".join(long_literal(format, 200_000))
    (message,) = in_ranges(
        data, range(60_000, len(data), 60_000), format=format, pieces=1 << 14
    ).messages
    assert len(str(next(iter(message)))) > 200_000


@each_format
def test_a_message_without_end_is_an_error_wherever_it_is_cut(format: Format) -> None:
    data = b"".join(itertools.islice(endless(format), 20))
    for start in (0, 1, 100_000):
        chunks, taken = counted(data[max(start - 1, 0) :], 1 << 14)
        syntax = find_syntax("1.2-messages")
        owned = messages_of(
            chunks,
            start,
            len(data),
            format=format,
            syntax=syntax,
            options=DecoderOptions(message_bytes=50_000),
        )
        if start:
            # it has no line end, so that nothing begins in the range
            assert list(owned) == []
        else:
            with pytest.raises(LimitExceeded):
                list(owned)
            assert taken[0] < 70_000
    with pytest.raises(LimitExceeded):
        announced_in(in_pieces(data, 1 << 14), format, message_bytes=50_000)


# --- who owns what ---------------------------------------------------------------------------------------------------

A, B = "<urn:a> <urn:p> <urn:o> .\n", "<urn:b> <urn:p> <urn:o> .\n"
R, M, V = "# @message\n", "MESSAGE\n", 'VERSION "1.2-messages"\n'

OWNERS: dict[str, tuple[list[str], list[int]]] = {
    "a message is its delimiter's": ([f"{R}{A}{R}", f"{B}{R}"], [2, 1]),
    "however much of the delimiter is there": ([f"{R}{A}#", f" @message\n{B}{R}"], [2, 1]),
    "a line belongs to where it begins": ([f"{A[:-1]}", f" # @message\n{B}"], [2, 0]),
    "a line end is the line's": ([f"{R}{A[:-1]}", f"\n{R}{B}"], [1, 1]),
    "the first message needs no delimiter": ([A, f"{A}{R}{B}"], [1, 1]),
    "and may begin behind the first range": (["# nothing\n", f"{A}{R}{B}"], [1, 1]),
    "nothing is before the first delimiter": (["# nothing\n", f"{R}{B}"], [0, 1]),
    "a range without a delimiter has none": ([f"{R}{A}", f"{B}{A}", f"{B}{R}"], [1, 0, 1]),
    "MESSAGE is that of the next message": ([f"{V}{A}{M}{B}", f"{M}{A}", f"{M}{M}"], [2, 1, 1]),
    "unless none follows": ([f"{V}{A}", f"{M}# end\n"], [1, 0]),
    "an announcement may come late": (["# nothing\n", f"{V}{A}{M}", B], [1, 1, 0]),
}


@pytest.mark.parametrize("case", OWNERS)
def test_owners(case: str) -> None:
    ranges, expected = OWNERS[case]
    data = "".join(ranges).encode()
    ends = list(itertools.accumulate(map(len, ranges)))
    syntax = announced_in([data], N_QUADS)
    owned = [
        len(
            list(
                messages_of(
                    [data[max(start - 1, 0) :]],
                    start,
                    end,
                    format=N_QUADS,
                    syntax=syntax if start else None,
                )
            )
        )
        for start, end in itertools.pairwise([0, *ends])
    ]
    assert owned == expected


def counted(data: bytes, size: int) -> tuple[Iterator[bytes], list[int]]:
    """The data in pieces, and how many bytes of them were taken."""
    taken = [0]

    def pieces() -> Iterator[bytes]:
        for piece in in_pieces(data, size):
            taken[0] += len(piece)
            yield piece

    return pieces(), taken


def test_no_more_is_read_than_to_the_end_of_the_last_message() -> None:
    chunks, taken = counted((R + A).encode() * 1000, 100)
    assert len(list(messages_of(chunks, 0, 300, format=N_QUADS))) == 9
    assert taken == [400]


def test_no_more_is_read_of_a_message_without_end_than_the_range() -> None:
    chunks, taken = counted(A.encode() * 1000, 100)
    assert list(messages_of(chunks, 1, 300, format=N_QUADS)) == []
    assert taken == [400]


def test_no_more_is_read_to_find_an_announcement_than_to_the_first_statement() -> None:
    for head, expected in (
        (f"# c\n\n{A}", None),
        (f"\n{V}", find_syntax("1.2-messages")),
        (f"#c\n{R}", RDFM),
    ):
        chunks, taken = counted(head.encode() + A.encode() * 1000, 100)
        assert announced_in(chunks, N_QUADS) == expected
        assert taken == [100]


def test_errors_count_from_the_first_line_of_the_range() -> None:
    data = f"{R}{A}{R}{B}{R}x\n".encode()
    start = len(R + A) - 1
    with pytest.raises(LogError) as caught:
        list(messages_of([data[start - 1 :]], start, len(data), format=N_QUADS))
    # the rest of the message before is the first
    assert (caught.value.number, caught.value.position) == (3, (4, 1))
    assert str(caught.value).startswith("line 4, column 1: message 3:")
