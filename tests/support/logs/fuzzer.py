"""Logs that are nearly right, and what must come of reading them: what the fuzz test and `make fuzz-logs` share.

Mutations of valid logs, from a seed, so that a finding can be had again. Whatever the bytes are, a decoder gives
messages and then ends, or ends with an error of ours that says where; the same for every chunking; in bounded time; and
what it gave can be written and read again.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from construct_messages.errors import LogError, Position, UnsupportedByFormat
from construct_messages.logs import MESSAGE_BYTES
from construct_messages.rdf.formats import JELLY, NDJSON_LD, RDFM, TRIG, TURTLE, YAML_LD, Format
from construct_messages.rdf.terms import Lenience, parse_term
from tests.support.logs.kinds import KINDS, Kind, Reading, cut, isomorphic, read, write
from tests.support.logs.seeds import seeds, tokens
from tests.support.logs.simple import read_simply

SECONDS: Final = 30.0
"""How much CPU reading one input may take; its few kilobytes take some milliseconds."""
_LONGEST: Final = 4096
_SMALL: Final = 150  # bytes of a message: some of the seeds' are larger
_BYTE_BY_BYTE: Final = 1000  # bytes of an input that is read so now and then
_COMPARED: Final = 30  # quads of a message: what is symmetric and large is costly to compare
_MADE_UP: Final = re.compile(r"_:[0-9a-f]{20,}")


@dataclass(frozen=True)
class Input:
    """One input, and how it is read."""

    data: bytes
    kind: Kind
    announced: bool
    message_bytes: int
    places: tuple[int, ...]

    def __str__(self) -> str:
        how = "announced" if self.announced else "not announced"
        return f"{self.kind} ({how}, message_bytes={self.message_bytes}, cut at {self.places}): {self.data!r}"


class Finding(Exception):
    """What a decoder must not do, with the input that it did it for."""

    def __init__(self, input: Input, what: str) -> None:
        super().__init__(f"{what}\n  {input}")
        self.what = what


def inputs(extension: str, seed: int) -> Iterator[Input]:
    """Inputs without end for a format, the same ones for the same seed."""
    chance = random.Random(f"{extension} {seed}")
    kinds = [kind for kind in KINDS if kind.format.extension == extension]
    mutator = _Mutator(chance, kinds[0].format)
    while True:
        data = mutator.next()
        yield Input(
            data,
            chance.choice(kinds),
            announced=chance.random() < 0.25,
            message_bytes=chance.choice((MESSAGE_BYTES, MESSAGE_BYTES, MESSAGE_BYTES, _SMALL)),
            places=tuple(_places(chance, len(data))),
        )


def _places(chance: random.Random, size: int) -> Iterable[int]:
    if size <= _BYTE_BY_BYTE and chance.random() < 0.1:
        return range(1, size)
    return sorted(chance.randrange(size + 1) for _ in range(chance.choice((1, 1, 2, 5))))


class _Mutator:
    """Makes logs of a format that are nearly right."""

    def __init__(self, chance: random.Random, format: Format) -> None:
        self._chance, self._seeds, self._tokens = chance, seeds(format), tokens(format)

    def next(self) -> bytes:
        mutations = (
            *(self._flip, self._insert, self._insert, self._overwrite, self._overwrite),
            *(self._replace, self._delete, self._repeat, self._splice, self._truncate),
        )
        data = self._chance.choice(self._seeds)
        for _ in range(self._chance.choice((1, 1, 1, 2, 3, 6))):
            data = self._chance.choice(mutations)(data)[:_LONGEST]
        return data

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        place = self._chance.randrange(len(data))
        return (
            data[:place] + bytes([data[place] ^ 1 << self._chance.randrange(8)]) + data[place + 1 :]
        )

    def _insert(self, data: bytes) -> bytes:
        place = self._place(data)
        return data[:place] + self._word() + data[place:]

    def _overwrite(self, data: bytes) -> bytes:
        place, word = self._place(data), self._word()
        return data[:place] + word + data[place + len(word) :]

    def _replace(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:start] + self._word() + data[end:]

    def _delete(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:start] + data[end:]

    def _repeat(self, data: bytes) -> bytes:
        start, end = self._span(data)
        return data[:end] + data[start:end] * self._chance.choice((1, 1, 2, 40)) + data[end:]

    def _splice(self, data: bytes) -> bytes:
        other, place = self._chance.choice(self._seeds), self._place(data)
        start, end = self._span(other)
        return data[:place] + self._chance.choice((other[start:end] + data[place:], other[start:]))

    def _truncate(self, data: bytes) -> bytes:
        return data[: self._place(data)]

    def _word(self) -> bytes:
        return self._chance.choice((self._chance.choice(self._tokens), self._chance.randbytes(2)))

    def _place(self, data: bytes) -> int:
        return self._chance.randrange(len(data) + 1)

    def _span(self, data: bytes) -> tuple[int, int]:
        start = self._place(data)
        return start, start + self._chance.choice((1, 2, 8, 40, 200))


def check(input: Input) -> Reading:
    """Reads an input in several ways.

    Raises:
        Finding: what it shows.
    """
    whole = _read(input, [input.data])
    _check_error(input, whole)
    leniently = _read(input, [input.data], partial(read, lenience=Lenience()))
    _check_error(input, leniently)
    if whole.error is None and input.kind.format not in (NDJSON_LD, YAML_LD):  # which drop terms
        _check_same(input, whole, leniently, "leniently")
    pieces = cut(input.data, input.places)
    _check_same(input, whole, _read(input, pieces), f"in {len(pieces)} chunks")
    if input.kind.format in (TURTLE, TRIG):
        _check_same(input, whole, _read(input, [input.data], read_simply), "by the parser alone")
    _check_messages(input, whole)
    return whole


def _read(input: Input, chunks: Sequence[bytes], reader: Callable[..., Reading] = read) -> Reading:
    started = time.thread_time()
    try:
        found = reader(
            chunks, input.kind, announced=input.announced, message_bytes=input.message_bytes
        )
    except Exception as error:
        raise Finding(input, f"{type(error).__name__} comes out: {error}") from error
    if time.thread_time() - started > SECONDS:
        raise Finding(input, f"takes more than {SECONDS} s")
    return found


def _check_error(input: Input, whole: Reading) -> None:
    error = whole.error
    said = str(error or "").replace("\n", "")
    if not said.isprintable():
        raise Finding(input, f"an error that cannot be printed: {said!r}")
    if "urn:uuid:" in said and b"urn:uuid:" not in input.data:
        raise Finding(input, f"an error about what is not in the log: {error}")
    if not isinstance(error, LogError):
        return
    if error.number != len(whole.messages) + 1:
        raise Finding(
            input,
            f"message {error.number} is wrong, behind {len(whole.messages)} good ones: {error}",
        )
    if input.kind.format is JELLY:
        return
    if error.position is None:
        raise Finding(input, f"no position: {error}")
    if not any(_is_within(error.position, lines) for lines in _lines(input.data)):
        raise Finding(input, f"a position outside: {error}")


def _lines(data: bytes) -> list[list[bytes]]:
    """The lines as N-Triples and Turtle count them, and as formats that have a message on each do."""
    return [data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), data.split(b"\n")]


def _is_within(position: Position, lines: Sequence[bytes]) -> bool:
    line, column = position
    # a parser may see the end of the log as the beginning of one more line
    return position == (len(lines) + 1, 1) or (
        1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1
    )


def _check_same(input: Input, whole: Reading, other: Reading, how: str) -> None:
    # under rdfm the labels that a parser makes up for anonymous nodes are random
    same = whole.messages == other.messages or isomorphic(whole.messages, other.messages)
    said, again = (_MADE_UP.sub("_:…", str(reading.error)) for reading in (whole, other))
    if not same or said != again:
        raise Finding(input, f"{how} {other}, but whole {whole}")


def _check_messages(input: Input, whole: Reading) -> None:
    messages = [message for message in whole.messages if len(message) <= _COMPARED]
    for term in {
        term for message in messages for quad in message for term in quad if term is not None
    }:
        if parse_term(term) != term:
            raise Finding(input, f"{term!r} is not canonical")
    # what was not announced may be of any syntax, and the richest keeps labels
    kind = input.kind if input.announced else Kind(input.kind.format, input.kind.format.own or RDFM)
    try:
        again = read([write(messages, kind)], kind)
    except UnsupportedByFormat as error:
        # readers of RDF/XML resolve IRIs, which pyoxigraph does not
        if "dot segments" in error.message:
            return
        raise Finding(input, f"what is read cannot be written: {error}") from error
    except Exception as error:
        raise Finding(
            input, f"what is read cannot be written: {type(error).__name__}: {error}"
        ) from error
    if again.error or not isomorphic(again.messages, messages):
        raise Finding(input, f"what is read is not read again: {messages}, then {again}")
