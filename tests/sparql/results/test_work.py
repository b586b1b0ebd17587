"""What decoding results costs: counted in bytes looked at and in steps taken, never in seconds.

Whatever comes, and in pieces of whatever size, twice as much of it costs twice as much.
"""

from __future__ import annotations

import gzip
import json
import pkgutil
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final
from xml.parsers import expat

import msgspec
import pytest

import construct_messages.rdf.terms
import construct_messages.sparql.results
from construct_messages.errors import SourceError
from construct_messages.sparql.sources.http import response
from tests.support.http.fault_server import JSON, TSV, XML
from tests.support.results.documents import json_document, tsv_document, xml_document
from tests.support.results.kinds import KINDS, Results

pytestmark = pytest.mark.slow

AT_MOST: Final = 2.3
"""How much more may be counted for twice as much."""


@dataclass
class Work:
    """What was counted."""

    looked_at: int = 0  # bytes or characters
    steps: int = 0  # calls

    def look(self, size: int) -> None:
        self.looked_at += size


class Pattern:
    """A pattern that counts what it looks at."""

    def __init__(self, pattern: re.Pattern[Any], work: Work) -> None:
        self._pattern, self._work = pattern, work

    def _find(self, name: str, text: Any, start: int = 0, end: int = sys.maxsize) -> Any:
        found = getattr(self._pattern, name)(text, start, end)
        self._work.look(
            (min(end, len(text)) if found is None else found.end()) - min(start, len(text))
        )
        return found

    def match(self, *arguments: Any) -> Any:
        return self._find("match", *arguments)

    def fullmatch(self, *arguments: Any) -> Any:
        return self._find("fullmatch", *arguments)

    def search(self, *arguments: Any) -> Any:
        return self._find("search", *arguments)

    def finditer(self, text: Any, start: int = 0, end: int = sys.maxsize) -> Iterator[Any]:
        for found in self._pattern.finditer(text, start, end):
            self._work.look(found.end() - start)
            start = found.end()
            yield found
        self._work.look(min(end, len(text)) - start)

    def sub(self, replacement: Any, text: Any) -> Any:
        self._work.look(len(text))
        return self._pattern.sub(replacement, text)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Counts from now on what patterns, msgspec, expat and zlib look at."""
    work = Work()
    for package in (construct_messages.sparql.results, construct_messages.rdf.terms):
        found = [
            import_module(f"{package.__name__}.{module.name}")
            for module in pkgutil.iter_modules(package.__path__)
        ]
        for module in found:
            for name, value in list(vars(module).items()):
                if isinstance(value, re.Pattern | type(re.compile(""))):
                    monkeypatch.setattr(module, name, Pattern(value, work))

    class Decoder:
        def __init__(self, *arguments: Any) -> None:
            self._decoder = decoder(*arguments)

        def decode(self, data: Any) -> Any:
            work.look(len(data))
            return self._decoder.decode(data)

    class Parser:
        def __init__(self, **options: Any) -> None:
            vars(self).update(parser=create(**options), fed=0)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.parser, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self.parser, name, value)

        def Parse(self, data: bytes, last: bool) -> int:
            # from the beginning of what was not whole
            vars(self)["fed"] += len(data)
            work.look(self.fed - max(0, self.parser.CurrentByteIndex))
            return int(self.parser.Parse(data, last))

    class Inflater:
        def __init__(self, **options: Any) -> None:
            self._inflater = inflater(**options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inflater, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            out: bytes = self._inflater.decompress(data, most)
            work.look(len(data) + len(out))
            return out

    decoder, create, inflater, decode = (
        msgspec.json.Decoder,
        expat.ParserCreate,
        zlib.decompressobj,
        json.loads,
    )

    def counted(data: Any, **options: Any) -> Any:
        work.look(len(data))
        return decode(data, **options)

    monkeypatch.setattr(msgspec.json, "Decoder", Decoder)
    monkeypatch.setattr(json, "loads", counted)
    monkeypatch.setattr(expat, "ParserCreate", Parser)
    monkeypatch.setattr(zlib, "decompressobj", Inflater)
    return work


def cost(results: Results, work: Work, chunk: int, coding: str = "identity") -> tuple[int, int]:
    """What reading a response counts, up to its end or to an error; in bytes and calls."""
    headers = {
        "content-type": {"json": JSON, "xml": XML, "tsv": TSV}[results.format],
        "content-encoding": coding,
        "content-length": str(len(results.document)),
    }
    variables = results.variables
    reader = response.ResponseReader(
        200, lambda name: headers.get(name.lower()), variables, asked=("tsv",), url="u"
    )
    work.looked_at = work.steps = 0

    def count(*_: object) -> None:
        work.steps += 1

    sys.setprofile(count)
    try:
        for start in range(0, len(results.document), chunk):
            for piece in reader.pieces(results.document[start : start + chunk], 1 << 14):
                for _ in reader.feed(piece):
                    pass
        reader.rest()
        reader.close()
    except SourceError:
        pass
    finally:
        sys.setprofile(None)
    return work.looked_at, work.steps


@pytest.mark.one_in(6)
@pytest.mark.parametrize("chunk", [1, 1000, 1 << 16])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_twice_as_much_costs_twice_as_much(
    work: Work, kind: Callable[[int], Results], chunk: int
) -> None:
    """Issue 13, 20."""
    size = {1: 1 << 12, 1000: 1 << 15}.get(chunk, 1 << 16)
    once, twice = (cost(kind(times * size), work, chunk) for times in (1, 2))
    for before, after in zip(once, twice, strict=True):
        assert after <= AT_MOST * before + 1000


@pytest.mark.parametrize("members", [1, 100])
def test_twice_as_much_of_gzip(work: Work, members: int) -> None:
    """Issue 13, 20."""

    def packed(size: int) -> Results:
        results = KINDS["JSON: empty solutions"](size)
        step = len(results.document) // members + 1
        parts = [
            results.document[start : start + step]
            for start in range(0, len(results.document), step)
        ]
        return results._replace(document=b"".join(map(gzip.compress, parts)))

    once, twice = (cost(packed(times << 18), work, 1 << 16, "gzip") for times in (1, 2))
    for before, after in zip(once, twice, strict=True):
        assert after <= AT_MOST * before + 1000


def test_what_is_counted(work: Work) -> None:
    """Whole documents are looked at, some bytes more than once."""
    table = [(f"<urn:{number}>",) for number in range(100)]
    for format, document in (("json", json_document), ("xml", xml_document), ("tsv", tsv_document)):
        results = Results(format, document(("s",), table), ("s",))  # type: ignore[operator] # of any terms
        looked_at, steps = cost(results, work, 100)
        assert len(results.document) // 2 <= looked_at <= 8 * len(results.document)
        assert steps > 100
