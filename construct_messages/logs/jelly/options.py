"""The options of a Jelly stream: the kind of its statements, allowed terms, and sizes of its lookup tables.

Jelly 1.1, "Stream options" and "Stream types" (RdfStreamOptions of rdf.proto), and "Delimited variant of Jelly". Names
are those of the specification. This module does not read or write statements.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from enum import IntEnum
from typing import Any, Final

from construct_messages.errors import UsageError
from construct_messages.logs import BOOLEANS, FormatOptions
from construct_messages.logs.jelly.wire import Malformed, delimited, integer, text, varint
from construct_messages.logs.jelly.wire import fields as fields_of


class PhysicalType(IntEnum):
    """The kind of statements of a stream: triples, quads, or triples between the boundaries of graphs.

    >>> PhysicalType(2).name
    'QUADS'
    """

    TRIPLES = 1
    QUADS = 2
    GRAPHS = 3


class LogicalType(IntEnum):
    """The elements of a stream (RDF-STaX). In all but the flat types, each frame has a meaning.

    >>> LogicalType.SUBJECT_GRAPHS.value
    13
    """

    UNSPECIFIED = 0
    FLAT_TRIPLES = 1
    FLAT_QUADS = 2
    GRAPHS = 3
    DATASETS = 4
    SUBJECT_GRAPHS = 13
    NAMED_GRAPHS = 14
    TIMESTAMPED_NAMED_GRAPHS = 114


# graphs and subject graphs are streams of triples, datasets of quads; the last digit is the base type
_OF_TRIPLES: Final = (LogicalType.FLAT_TRIPLES, LogicalType.GRAPHS)
_FLAT: Final = (LogicalType.FLAT_TRIPLES, LogicalType.FLAT_QUADS)

LARGEST_TABLE: Final = 4096
"""The maximal size of a table, in entries."""
SMALLEST_NAME_TABLE: Final = 8
SMALLEST_PREFIX_TABLE: Final = 4
"""The minimal size of a prefix table for writing. A quad has four IRIs: a smaller table could lose a prefix between
its entry and its use.
"""
VERSION: Final = 2
"""The newest supported version of the protocol: 1 is Jelly 1.0, 2 is Jelly 1.1."""
_NAMESPACES: Final = 2
"""The first version that has namespace declarations."""

_TABLES: Final = ("names", "prefixes", "datatypes")
_SIZES: Final = {
    9: "max_name_table_size",
    10: "max_prefix_table_size",
    11: "max_datatype_table_size",
}
_NUMBERS: Final = {
    2: "physical_type",
    3: "generalized_statements",
    4: "rdf_star",
    **_SIZES,
    14: "logical_type",
    15: "version",
}
_TYPES: Final = {
    "physical_type": PhysicalType,
    "logical_type": LogicalType,
    "rdf_star": bool,
    "version": int,
}
"""The types of the options that may be None."""
_OF_NUMBERS: Final = {**_TYPES, "generalized_statements": bool}
"""The types of a stream's options that are not `int`."""


@dataclass(frozen=True)
class JellyOptions(FormatOptions):
    """The options of a Jelly stream, of a log that was read or to write a log.

    An option that is None is chosen when a log is written, and is never None in the options of a log that was read.

    Args:
        physical_type: the kind of statements; None: triples if the query's template, or the log that is converted, has
            no named graphs, else quads.
        logical_type: the elements; None: graphs for triples, else datasets. In a flat stream frames have no meaning,
            and a blank node label is one node in the whole stream.
        rdf_star: whether triple terms (quoted triples) are allowed; None: if the query's template has one, or the Jelly
            log that is converted allows them. If not, a message with a triple term is rejected.
        generalized_statements: whether terms are allowed in positions that RDF does not allow.
        max_name_table_size: the size of the name table, from 8 to 4096.
        max_prefix_table_size: the size of the prefix table, 0 (none) to 4096; 1 to 3 can be read, but not written.
        max_datatype_table_size: the size of the datatype table, 0 (none) to 4096.
        stream_name: the producer's name of the stream.
        version: the version of the protocol, 1 or 2; None: 1, or 2 with namespace declarations.
        namespace_declarations: whether the log declares prefixes.
        delimited: whether each frame follows its length; if not, the stream is a single frame.

    Raises:
        UsageError: an invalid size or version, or types that contradict each other.

    >>> JellyOptions(logical_type=LogicalType.FLAT_QUADS, rdf_star=True).for_writing().physical_type.name
    'QUADS'
    >>> options = JellyOptions.of({"logical-type": "flat-quads", "rdf_star": "true", "max-name-table-size": "128"})
    >>> options.logical_type.name, options.rdf_star, options.max_name_table_size
    ('FLAT_QUADS', True, 128)
    """

    _SHOWN = "Jelly"

    physical_type: PhysicalType | None = None
    logical_type: LogicalType | None = None
    rdf_star: bool | None = None
    generalized_statements: bool = False
    max_name_table_size: int = 4000
    max_prefix_table_size: int = 150
    max_datatype_table_size: int = 32
    stream_name: str = ""
    version: int | None = None
    namespace_declarations: bool = False
    delimited: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            expected = _TYPES.get(field.name, type(field.default))
            if not (type(value) is expected or (value is None and field.default is None)):
                raise UsageError(
                    f"{field.name}={value!r} is no {expected.__name__}",
                    hint="JellyOptions.of takes options as texts",
                )
        if self.max_name_table_size < SMALLEST_NAME_TABLE:
            raise UsageError(
                f"max_name_table_size={self.max_name_table_size}, where Jelly has {SMALLEST_NAME_TABLE} and more"
            )
        for name in _SIZES.values():
            size = getattr(self, name)
            if not 0 <= size <= LARGEST_TABLE:
                raise UsageError(f"{name}={size}, where a table has 0 to {LARGEST_TABLE} entries")
        if self.version is not None and not 1 <= self.version <= VERSION:
            raise UsageError(f"version {self.version} of Jelly, where 1 to {VERSION} are known")
        if self.physical_type is not None and self.logical_type:
            triples = self.physical_type is PhysicalType.TRIPLES
            if triples != (self.logical_type % 10 in _OF_TRIPLES):
                raise UsageError(
                    f"a stream of logical type {self.logical_type.name} cannot have the physical type "
                    f"{self.physical_type.name}",
                    hint="leave one of them out",
                )

    @property
    def names_graphs(self) -> bool:
        """Whether messages may have named graphs."""
        return self.physical_type is not PhysicalType.TRIPLES

    @property
    def is_generalized(self) -> bool:
        """Whether terms are allowed in positions that RDF does not allow, such as quoted triples as subjects."""
        return self.generalized_statements or bool(self.rdf_star)

    @property
    def is_flat(self) -> bool:
        """Whether frames have no meaning, so that a blank node label is one node in the whole stream."""
        return self.logical_type in _FLAT

    def for_writing(
        self,
        source: JellyOptions | None = None,
        *,
        graphs: bool = True,
        triple_terms: bool = False,
        generalized: bool = True,
    ) -> JellyOptions:
        """Returns the options for writing a log: None is replaced according to the properties of its messages.

        Args:
            source: the options of the Jelly log that is converted: its types are kept as far as `graphs` allows, and
                its triple terms and generalized statements stay allowed.
            graphs: whether messages may have named graphs.
            triple_terms: whether messages are known to have triple terms.
            generalized: whether messages may be generalized if those of the source may.

        Raises:
            UsageError: a prefix table or version that cannot be written.

        >>> options = JellyOptions().for_writing(graphs=False)
        >>> options.physical_type.name, options.logical_type.name, options.rdf_star, options.version
        ('TRIPLES', 'GRAPHS', False, 1)
        >>> source = JellyOptions(PhysicalType.TRIPLES, LogicalType.FLAT_TRIPLES)
        >>> JellyOptions().for_writing(source, graphs=True).logical_type.name
        'FLAT_QUADS'
        """
        if 0 < self.max_prefix_table_size < SMALLEST_PREFIX_TABLE:
            raise UsageError(
                f"max_prefix_table_size={self.max_prefix_table_size}: a quad may need {SMALLEST_PREFIX_TABLE} prefixes "
                "at once, and pyjelly reads smaller tables wrongly",
                hint=f"choose 0 for none, or {SMALLEST_PREFIX_TABLE} and more",
            )
        if self.namespace_declarations and (self.version or _NAMESPACES) < _NAMESPACES:
            raise UsageError(
                f"version {self.version} of Jelly has no namespace declarations",
                hint="leave the version out",
            )
        physical, logical = self.physical_type, self.logical_type
        if source is not None and physical is None and logical is None:
            if (source.physical_type is PhysicalType.TRIPLES) != graphs:
                physical, logical = source.physical_type, source.logical_type
            elif source.is_flat:
                logical = LogicalType.FLAT_QUADS if graphs else LogicalType.FLAT_TRIPLES
        if physical is None:
            triples = logical % 10 in _OF_TRIPLES if logical else not graphs
            physical = PhysicalType.TRIPLES if triples else PhysicalType.QUADS
        if logical is None:
            logical = (
                LogicalType.GRAPHS if physical is PhysicalType.TRIPLES else LogicalType.DATASETS
            )
        rdf_star = self.rdf_star
        if rdf_star is None:
            rdf_star = triple_terms or bool(source and source.rdf_star)
        version = self.version or (_NAMESPACES if self.namespace_declarations else 1)
        return replace(
            self,
            physical_type=physical,
            logical_type=logical,
            rdf_star=rdf_star,
            generalized_statements=self.generalized_statements
            or (generalized and source is not None and source.generalized_statements),
            version=version,
        )

    # --- texts ------------------------------------------------------------------------------------------------------

    @classmethod
    def _value(cls, name: str, value: Any) -> Any:
        """Returns the value of an option from its text, or unchanged."""
        if name in ("physical_type", "logical_type"):
            types: type[IntEnum] = PhysicalType if name == "physical_type" else LogicalType
            written = str(value).replace("-", "_").upper()
            if written in types.__members__:
                return types[written]
            known = ", ".join(member.lower().replace("_", "-") for member in types.__members__)
            raise UsageError(f"{name}={value} is unknown", hint=f"choose among {known}")
        if name == "stream_name":
            return str(value)
        if name in _SIZES.values() or name == "version":
            if isinstance(value, bool) or not str(value).isdecimal():
                raise UsageError(f"{name}={value} is no number", hint=f"write it as {name}=1")
            return int(str(value))
        if str(value).lower() not in BOOLEANS:
            raise UsageError(f"{name}={value} is neither true nor false", hint="write one of them")
        return BOOLEANS[str(value).lower()]

    def as_dict(self) -> dict[str, Any]:
        """Returns the options by name, for JSON; types are names.

        >>> JellyOptions.of(JellyOptions(rdf_star=True).as_dict()) == JellyOptions(rdf_star=True)
        True
        """
        return {
            name: value.name if isinstance(value, IntEnum) else value
            for name, value in asdict(self).items()
            if value is not None
        }

    def in_words(self) -> str:
        """Returns a line that describes the options to people.

        >>> JellyOptions(rdf_star=True).for_writing().in_words()
        'logical type DATASETS, physical type QUADS, version 1, tables of 4,000 names / 150 prefixes / 32 datatypes, \
rdf-star'
        """
        sizes = (self.max_name_table_size, self.max_prefix_table_size, self.max_datatype_table_size)
        tables = " / ".join(f"{size:,} {what}" for size, what in zip(sizes, _TABLES, strict=True))
        types = {"logical": self.logical_type, "physical": self.physical_type}
        allowed = {
            "rdf-star": self.rdf_star,
            "generalized statements": self.generalized_statements,
            "not delimited": not self.delimited,
            f"name {self.stream_name!r}": self.stream_name,
        }
        words = (
            *(f"{kind} type {type.name}" for kind, type in types.items() if type is not None),
            f"version {self.version}",
            f"tables of {tables}",
            *(word for word, is_so in allowed.items() if is_so),
        )
        return ", ".join(words)

    # --- bytes ------------------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """Returns the bytes of an RdfStreamOptions message; options with default values are omitted."""
        name = b"\x0a" + delimited(self.stream_name.encode()) if self.stream_name else b""
        numbers = ((number, int(getattr(self, field) or 0)) for number, field in _NUMBERS.items())
        return name + b"".join(
            varint(number << 3) + varint(value) for number, value in numbers if value
        )

    @classmethod
    def decode(cls, data: bytes) -> JellyOptions:
        """Parses the bytes of an RdfStreamOptions message.

        Raises:
            Malformed: the bytes are not such a message, or options are not supported.
        """
        numbers = dict.fromkeys(_NUMBERS.values(), 0)
        stream_name = ""
        for number, value in fields_of(data):
            if number == 1:
                stream_name = text(value, "the stream's name")
            elif number in _NUMBERS:
                numbers[_NUMBERS[number]] = integer(value, f"option {_NUMBERS[number]}")
        try:
            values: dict[str, Any] = {
                name: _OF_NUMBERS.get(name, int)(value) for name, value in numbers.items()
            }
            return cls(**values, stream_name=stream_name)
        except UsageError as error:
            raise Malformed(error.message) from None
        except ValueError:
            raise Malformed(
                f"stream types {numbers['physical_type']} (physical) and {numbers['logical_type']} (logical)"
            ) from None
