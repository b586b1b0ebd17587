"""Messages of the shapes that logs have: few quads or many, short values or long texts, one subject or several."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, iri, literal

_OSM: Final = "https://www.openstreetmap.org/"
_KEY: Final = f"{_OSM}wiki/Key:"
_GEO: Final = "http://www.opengis.net/ont/geosparql#"
_DBR: Final = "http://dbpedia.org/resource/"
_DBO: Final = "http://dbpedia.org/ontology/"
_YAGO: Final = "http://dbpedia.org/class/yago/"
_RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"

PREFIXES: Final = {
    "rdfs": _RDFS,
    "xsd": XSD,
    "geo": _GEO,
    "key": _KEY,
    "node": f"{_OSM}node/",
    "meta": f"{_OSM}meta/",
    "dbr": _DBR,
    "dbo": _DBO,
    "yago": _YAGO,
}

_TYPE: Final = iri(f"{RDF}type")
_KEYS: Final = [
    "name",
    "amenity",
    "street",
    "housenumber",
    "city",
    "opening_hours",
    "cuisine",
    "phone",
    "website",
    "wheelchair",
    "operator",
    "brand",
    "level",
    "seating",
    "smoking",
    "email",
    "postcode",
    "country",
    "ref",
    "source",
    "note",
    "height",
    "building",
    "layer",
    "surface",
    "lit",
]
_WORDS: Final = [
    "the",
    "of",
    "a",
    "is",
    "in",
    "historical",
    "city",
    "federal",
    "republic",
    "population",
    "located",
    "between",
    "river",
    "mountains",
    "capital",
    "government",
    "century",
    "established",
    "university",
    "northern",
    "region",
    "which",
    "was",
    "its",
    "first",
    "largest",
    "economy",
    "island",
    "archipelago",
    "département",
]
_LANGUAGES: Final = ("en", "de", "fr", "es", "nl", "pt", "ja")


def place(number: int, size: int, chance: random.Random) -> Message:
    """One node of a map with a value for each key: short texts, and predicates that come once."""
    node = iri(f"{_OSM}node/{100_000_000 + 17 * number}")
    quads = [*_place(node, chance)]
    for key in _KEYS[: size - len(quads)]:
        values = (
            "yes",
            str(chance.randrange(200)),
            f"Rue {chance.randrange(5000)}",
            f"Café № {number}",
        )
        quads.append(Quad(node, iri(_KEY + key), literal(chance.choice(values))))
    return Message(quads[:size])


def area(number: int, size: int, chance: random.Random) -> Message:
    """Several nodes of a map, of five quads each: predicates and values come again."""
    quads: list[Quad] = []
    while len(quads) < size:
        node = iri(f"{_OSM}node/{100_000_000 + 170 * number + len(quads)}")
        quads += _place(node, chance)
        amenity = chance.choice(("bench", "cafe", "school"))
        quads.append(Quad(node, iri(f"{_KEY}amenity"), literal(amenity)))
    return Message(quads[:size])


def _place(node: Term, chance: random.Random) -> Iterator[Quad]:
    yield Quad(node, _TYPE, iri(f"{_OSM}Node"))
    version = literal(str(chance.randrange(40)), datatype=f"{XSD}integer")
    yield Quad(node, iri(f"{_OSM}meta/version"), version)
    point = f"POINT({chance.uniform(-10, 20):.7f} {chance.uniform(40, 60):.7f})"
    yield Quad(node, iri(f"{_GEO}asWKT"), literal(point, datatype=f"{_GEO}wktLiteral"))
    when = f"20{chance.randrange(10, 26)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T12:30:00Z"
    yield Quad(node, iri(f"{_OSM}meta/timestamp"), literal(when, datatype=f"{XSD}dateTime"))


def resource(number: int, size: int, chance: random.Random) -> Message:
    """A resource as DBpedia has them: an abstract of 900 characters, comments in several languages, types, links."""

    def text(words: int) -> str:
        return " ".join(chance.choice(_WORDS) for _ in range(words)).capitalize() + "."

    name = f"{chance.choice(_WORDS).title()}_{chance.choice(_WORDS)}_({number})"
    subject = iri(_DBR + name)
    quads = [
        Quad(subject, _TYPE, iri(f"{_DBO}Settlement")),
        Quad(subject, iri(f"{_RDFS}label"), literal(name.replace("_", " "), language="en")),
        Quad(subject, iri(f"{_DBO}abstract"), literal(f'{text(80)} "{text(2)}"\n{text(40)}', language="en")),
        Quad(subject, iri(f"{_DBO}country"), iri(f"{_DBR}Country_{chance.randrange(200)}")),
        Quad(subject, iri(f"{_DBO}population"), literal(str(chance.randrange(10**7)), datatype=f"{XSD}integer")),
    ]  # fmt: skip
    while len(quads) < size:
        count = len(quads)
        link = iri(f"{_DBR}{chance.choice(_WORDS).title()}_{chance.randrange(10**6)}")
        kind = iri(f"{_YAGO}Wikicat{chance.choice(_WORDS).title()}{chance.randrange(10**4)}{count}")
        comment = literal(text(20), language=_LANGUAGES[count % 7])
        quads.append(
            (
                Quad(subject, iri(f"{_DBO}wikiPageWikiLink"), link),
                Quad(subject, _TYPE, kind),
                Quad(subject, iri(f"{_RDFS}comment"), comment),
            )[count % 3]
        )
    return Message(quads)


SHAPES: Final[dict[str, tuple[Callable[[int, int, random.Random], Message], int]]] = {
    "map, 5 quads": (place, 5),
    "map, 30 quads": (place, 30),
    "map, 30 quads of 6 nodes": (area, 30),
    "DBpedia, 5 quads": (resource, 5),
    "DBpedia, 30 quads": (resource, 30),
}
"""What makes a message, and of how many quads, by names."""


def messages(shape: str, quads: int, seed: int = 42) -> list[Message]:
    """Messages of a shape, so many that they have that many quads or nearly.

    >>> [len(message) for message in messages("map, 30 quads of 6 nodes", 90)]
    [30, 30, 30]
    """
    make, size = SHAPES[shape]
    chance = random.Random(seed)
    return [make(number, size, chance) for number in range(quads // size)]
