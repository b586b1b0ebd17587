"""Long tables of terms of every kind, in a store of pyoxigraph, which selects and writes them itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple

import pyoxigraph as ox

ROWS: Final = 50_000
VARIABLES: Final = ("s", "a", "b", "c")

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_CLASS: Final = ox.NamedNode("urn:C")
_TEXTS: Final = (
    "plain",
    "",
    'with "quotes" and \\backslashes\\',
    "two\nlines and a\ttab",
    "naïve 日本語 😀",
    "},{",
    "<b>&amp;</b> ]]>",
    "42",
    "\x7f\x85\u2028\ufdd0",
)


def _typed(name: str, value: Callable[[int], object]) -> Callable[[int], ox.Literal]:
    datatype = ox.NamedNode(f"{_XSD}{name}")
    return lambda number: ox.Literal(str(value(number)), datatype=datatype)


def _text(number: int) -> str:
    return f"{_TEXTS[number % len(_TEXTS)]}{number if number % 5 else ''}"


def _triple(number: int) -> ox.Triple:
    predicate = ox.NamedNode("urn:p")
    inner = ox.Triple(ox.BlankNode(f"t{number}"), predicate, ox.Literal(_text(number)))
    outer = ox.Triple(ox.NamedNode(f"urn:t:{number}"), predicate, inner)
    return outer if number % 2 else inner


KINDS: Final[tuple[Callable[[int], ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple], ...]] = (
    lambda number: ox.NamedNode(f"http://example.org/{number}"),
    lambda number: ox.NamedNode(f"https://例え.example/Ünïcode/{number}?a=%20&b#{number}"),
    lambda number: ox.NamedNode(f"urn:isbn:{number}"),
    lambda number: ox.BlankNode(f"b{number}"),
    lambda number: ox.Literal(_text(number)),
    lambda number: ox.Literal(_text(number), language=("en", "de-AT", "zh-Hant")[number % 3]),
    lambda number: ox.Literal(_text(number), language="ar", direction=ox.BaseDirection.RTL),
    lambda number: ox.Literal(number - 20_000),
    _typed("decimal", lambda number: f"{number}.25"),
    lambda number: ox.Literal(number / 7),
    _typed("boolean", lambda number: "true" if number % 2 else "false"),
    _typed("dateTime", lambda number: f"2026-01-{1 + number % 28:02}T00:00:00.{1 + number}Z"),
    _typed("date", lambda number: f"no date {number}"),
    lambda number: ox.Literal(_text(number), datatype=ox.NamedNode(f"urn:type:{number % 40}")),
    _triple,
)
"""Each makes a term of a kind for any number."""


class _Column(NamedTuple):
    """How the values of a variable come about: the share that is unbound, how many differ, and their kinds."""

    unbound: float
    different: int
    kinds: list[int]

    @classmethod
    def at_random(cls, random: Random) -> _Column:
        return cls(
            random.choice((0, 0.001, 0.3, 0.5, 0.99)),
            random.choice((1, 20, 9_000, 30_000, ROWS)),
            random.sample(range(len(KINDS)), random.choice((1, 1, 2, len(KINDS)))),
        )

    def quads(self, name: str, random: Random) -> Iterator[ox.Quad]:
        predicate = ox.NamedNode(f"urn:{name}")
        for row in range(ROWS):
            if random.random() >= self.unbound:
                number = random.randrange(self.different)
                kind = KINDS[self.kinds[number % len(self.kinds)]]
                yield ox.Quad(ox.NamedNode(f"urn:row:{row}"), predicate, kind(number))


def table(seed: int) -> ox.Store:
    """A store with `ROWS` solutions of `QUERY`, always the same for a seed."""
    random, store = Random(seed), ox.Store()
    store.bulk_extend(
        ox.Quad(ox.NamedNode(f"urn:row:{row}"), ox.NamedNode("urn:is"), _CLASS)
        for row in range(ROWS)
    )
    for name in VARIABLES[1:]:
        store.bulk_extend(_Column.at_random(random).quads(name, random))
    return store


QUERY: Final = (
    "SELECT ?s ?a ?b ?c { ?s <urn:is> <urn:C> "
    + "".join(f"OPTIONAL {{ ?s <urn:{name}> ?{name} }} " for name in VARIABLES[1:])
    + "}"
)


def in_random_pieces(document: bytes, random: Random) -> Iterator[bytes]:
    """The document in pieces: mostly of the size of a network's, some of few bytes."""
    start = 0
    while start < len(document):
        end = start + random.choice((random.randrange(1, 9), random.randrange(1, 1 << 18)))
        yield document[start:end]
        start = end
