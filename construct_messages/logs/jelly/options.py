"""The options that open a Jelly stream: what it consists of, and how large its lookup tables may grow.

Jelly 1.1, "Stream options" and "Stream types" (RdfStreamOptions of rdf.proto). Nothing is decoded with them here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from construct_messages.errors import UsageError
from construct_messages.logs.jelly.wire import Malformed, delimited, fields, integer, text, varint


class Physical(IntEnum):
    """What the statements of a stream are: triples, quads, or triples between the bounds of graphs."""

    TRIPLES = 1
    QUADS = 2
    GRAPHS = 3


class Logical(IntEnum):
    """What a stream is a sequence of (RDF-STaX); all but the flat ones give each frame a meaning of its own."""

    UNSPECIFIED = 0
    FLAT_TRIPLES = 1
    FLAT_QUADS = 2
    GRAPHS = 3
    DATASETS = 4
    SUBJECT_GRAPHS = 13
    NAMED_GRAPHS = 14
    TIMESTAMPED_NAMED_GRAPHS = 114


# graphs and subject graphs are streams of triples, datasets of quads; the last digit is the base type
_OF_TRIPLES: Final = (Logical.FLAT_TRIPLES, Logical.GRAPHS)

LARGEST_TABLE: Final = 4096
"""How many entries a table may be asked to have."""
SMALLEST_NAME_TABLE: Final = 8
VERSION: Final = 2
"""The newest version of the protocol that is read: 1 is Jelly 1.0, 2 is Jelly 1.1."""

_SIZES: Final = {9: "names", 10: "prefixes", 11: "datatypes"}
_NUMBERS: Final = {2: "physical", 3: "generalized", 4: "rdf_star", **_SIZES, 14: "logical", 15: "version"}


@dataclass(frozen=True)
class StreamOptions:
    """The options of a stream.

    Args:
        physical: what its statements are.
        logical: what it is a sequence of.
        generalized: whether terms may stand where RDF has no place for them.
        rdf_star: whether there may be quoted triples.
        names, prefixes, datatypes: how many entries the tables may have; 0 (not for names): there is none.
        version: of the protocol.
        stream_name: what the producer calls it.

    Raises:
        UsageError: a size out of bounds, a version that does not exist, or types that contradict each other.

    >>> options = StreamOptions(Physical.QUADS, Logical.DATASETS)
    >>> StreamOptions.read(options.encode()) == options
    True
    """

    physical: Physical
    logical: Logical
    generalized: bool = False
    rdf_star: bool = True
    names: int = 4000
    prefixes: int = 150
    datatypes: int = 32
    version: int = 1
    stream_name: str = ""

    def __post_init__(self) -> None:
        if self.names < SMALLEST_NAME_TABLE:
            raise UsageError(f"a name table of {self.names}, where Jelly has {SMALLEST_NAME_TABLE} and more")
        for field in _SIZES.values():
            size = getattr(self, field)
            if size > LARGEST_TABLE:
                raise UsageError(f"a table of {size} {field}, where at most {LARGEST_TABLE} are held")
        if not 1 <= self.version <= VERSION:
            raise UsageError(f"version {self.version} of Jelly, where 1 to {VERSION} are known")
        triples = self.physical is Physical.TRIPLES
        if self.logical and triples != (self.logical % 10 in _OF_TRIPLES):
            raise UsageError(f"a stream of {self.logical.name} cannot consist of {self.physical.name}")

    def encode(self) -> bytes:
        """The options as the bytes of an RdfStreamOptions; what has its default is left out."""
        name = b"\x0a" + delimited(self.stream_name.encode()) if self.stream_name else b""
        numbers = ((number, int(getattr(self, field))) for number, field in _NUMBERS.items())
        return name + b"".join(varint(number << 3) + varint(value) for number, value in numbers if value)

    @classmethod
    def read(cls, data: bytes) -> StreamOptions:
        """The options in the bytes of an RdfStreamOptions.

        Raises:
            Malformed: no such message, or options that cannot be kept to.
        """
        numbers = dict.fromkeys(_NUMBERS.values(), 0)
        stream_name = ""
        for number, value in fields(data):
            if number == 1:
                stream_name = text(value, "the stream's name")
            elif number in _NUMBERS:
                numbers[_NUMBERS[number]] = integer(value, f"option {_NUMBERS[number]}")
        try:
            return cls(
                Physical(numbers["physical"]),
                Logical(numbers["logical"]),
                generalized=bool(numbers["generalized"]),
                rdf_star=bool(numbers["rdf_star"]),
                names=numbers["names"],
                prefixes=numbers["prefixes"],
                datatypes=numbers["datatypes"],
                version=numbers["version"],
                stream_name=stream_name,
            )
        except UsageError as error:
            raise Malformed(error.message) from None
        except ValueError:
            raise Malformed(
                f"stream types {numbers['physical']} (physical) and {numbers['logical']} (logical)"
            ) from None
