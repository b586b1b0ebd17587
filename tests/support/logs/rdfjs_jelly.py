"""What npm's rdfjs-jelly 0.1.0 takes, rule by rule, as a reader of its own: nothing of `logs/jelly` is used.

Written after its sources (pietercolpaert/rdfjs-jelly on GitHub: `Decoder.ts`, `LookupDecoder.ts`, `MessageDecoder.ts`),
over the classes that `protoc` makes of rdf.proto, which pyjelly ships. The package itself is a peer in
`test_logs_peers.py` where it is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

from google.protobuf.proto import parse_length_prefixed
from pyjelly import jelly

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, blank, iri, literal

MOST_BYTES: Final = 64 << 20
TABLE: Final = range(4097)
NAME_TABLE: Final = range(8, 4097)
VERSIONS: Final = (1, 2)
PHYSICAL: Final = (1, 2, 3)
OF_TRIPLES: Final = (1, 3)  # last digits of the logical types of streams of triples


class Refused(Exception):
    """What it refuses, in its own words or nearly so."""


def read(data: bytes) -> list[Message]:
    """The messages of a log, as `Parser.parseMessages` gives them.

    Raises:
        Refused: it would not read the log.
    """
    reader = Reader()
    messages = [reader.message(frame) for frame in frames(data)]
    if reader.options is None:
        raise Refused("No Jelly stream options row was found")
    if reader.graph is not None:
        raise Refused("Jelly graph stream ended before graph_end")
    return messages


def frames(data: bytes) -> Iterator[Any]:
    """The frames of a stream, delimited or not, which the first three bytes tell."""
    if not data:
        raise Refused("Jelly input is empty")
    if len(data) >= 3 and (data[0] != 0x0A or (data[1] == 0x0A and data[2] != 0x0A)):
        file = BytesIO(data)
        while file.tell() < len(data):
            start = file.tell()
            frame = parse_length_prefixed(jelly.RdfStreamFrame, file)
            assert frame is not None
            if file.tell() - start > MOST_BYTES:
                raise Refused("Jelly message exceeds configured size limit")
            yield frame
    else:
        yield jelly.RdfStreamFrame.FromString(data)


class Table:
    """A lookup table."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.strings: dict[int, str] = {}
        self.assigned = self.used = 0

    def assign(self, number: int, value: str) -> None:
        number = number or self.assigned + 1
        if not 1 <= number <= self.size:
            raise Refused(f"Lookup entry index {number} is outside table size {self.size}")
        self.strings[number] = value
        self.assigned = number

    def at(self, number: int) -> str:
        if number not in self.strings:
            raise Refused(f"Lookup index {number} has not been assigned")
        self.used = number
        return self.strings[number]


class Reader:
    """Reads frames in order."""

    def __init__(self) -> None:
        self.options: Any = None
        self.repeated: dict[str, Term | None] = {}
        self.graph: list[Term | None] | None = None

    def message(self, frame: Any) -> Message:
        quads = []
        for row in frame.rows:
            kind = row.WhichOneof("row")
            if kind == "options":
                self.take_options(row.options)
                continue
            if self.options is None:
                raise Refused("Stream options must occur before all other Jelly rows")
            match kind:
                case "name":
                    self.names.assign(row.name.id, row.name.value)
                case "prefix":
                    self.prefixes.assign(row.prefix.id, row.prefix.value)
                case "datatype":
                    self.datatypes.assign(row.datatype.id, row.datatype.value)
                case "namespace":
                    if self.options.version < 2:
                        raise Refused("Namespace declarations require Jelly protocol version 2")
                    self.iri(row.namespace.value)
                case "triple":
                    quads.append(self.triple(row.triple))
                case "quad":
                    if self.options.physical_type != jelly.PHYSICAL_STREAM_TYPE_QUADS:
                        raise Refused("Quad row is invalid in this physical stream type")
                    terms = self.terms(row.quad)
                    quads.append(Quad(*terms, self.term(row.quad, "graph")))  # type: ignore[arg-type] # a graph is None
                case "graph_start":
                    if self.graph is not None:
                        raise Refused("Nested graph_start is invalid")
                    self.graph = [self.term(row.graph_start, "graph", repeats=False)]
                case "graph_end":
                    if self.graph is None:
                        raise Refused("graph_end occurred without an open graph")
                    self.graph = None
                case _:
                    raise Refused("Unsupported or empty Jelly row")
        return Message(quads)

    def take_options(self, options: Any) -> None:
        if self.options is not None:
            if options != self.options:
                raise Refused("Repeated Jelly stream options must be identical")
            return
        for is_refused, why in (
            (options.version not in VERSIONS, "Unsupported Jelly protocol version"),
            (options.rdf_star, "RDF-star Jelly streams are not supported"),
            (options.generalized_statements, "Generalized RDF Jelly streams are not supported"),
            (options.max_name_table_size not in NAME_TABLE, "Invalid name lookup size"),
            (
                options.max_prefix_table_size not in TABLE,
                "Jelly lookup size exceeds the supported maximum",
            ),
            (
                options.max_datatype_table_size not in TABLE,
                "Jelly lookup size exceeds the supported maximum",
            ),
            (options.physical_type not in PHYSICAL, "Invalid physical stream type"),
            (
                options.logical_type
                and (options.physical_type == 1) != (options.logical_type % 10 in OF_TRIPLES),
                "Physical stream type is incompatible with logical type",
            ),
        ):
            if is_refused:
                raise Refused(why)
        self.options = options
        self.names = Table(options.max_name_table_size)
        self.prefixes = Table(options.max_prefix_table_size)
        self.datatypes = Table(options.max_datatype_table_size)

    def triple(self, row: Any) -> Quad:
        graphs = self.options.physical_type == jelly.PHYSICAL_STREAM_TYPE_GRAPHS
        if not graphs and self.options.physical_type != jelly.PHYSICAL_STREAM_TYPE_TRIPLES:
            raise Refused("Triple row is invalid in this physical stream type")
        if graphs and self.graph is None:
            raise Refused("Triple row occurred outside a graph in a GRAPHS stream")
        return Quad(*self.terms(row), self.graph[0] if self.graph else None)

    def terms(self, row: Any) -> list[Term]:
        found = []
        for position, kinds in (("subject", "<_"), ("predicate", "<"), ("object", '<_"')):
            term = self.term(row, position)
            if term is None or term[0] not in kinds:
                raise Refused(f"Invalid RDF {position} term")
            found.append(term)
        return found

    def term(self, row: Any, position: str, *, repeats: bool = True) -> Term | None:
        field = row.WhichOneof(position)
        if field is None:
            if not repeats or position not in self.repeated:
                raise Refused(f"First Jelly statement must set its {position}")
            return self.repeated[position]
        value = getattr(row, field)
        match field.partition("_")[2]:
            case "iri":
                term: Term | None = self.iri(value)
            case "bnode":
                term = blank(value)
            case "literal":
                term = self.literal(value)
            case "default_graph":
                term = None
            case _:
                raise Refused("RDF-star quoted triple terms are not supported")
        if position == "graph" and term is not None and term[0] not in "<_":
            raise Refused("Invalid RDF graph term")
        if repeats:
            self.repeated[position] = term
        return term

    def iri(self, value: Any) -> Term:
        prefix = value.prefix_id or self.prefixes.used
        start = self.prefixes.at(prefix) if prefix else ""
        return iri(start + self.names.at(value.name_id or self.names.used + 1))

    def literal(self, value: Any) -> Term:
        match value.WhichOneof("literalKind"):
            case "langtag":
                return literal(value.lex, language=value.langtag)
            case "datatype":
                if not value.datatype:
                    raise Refused("Zero is not a valid datatype index")
                return literal(value.lex, datatype=self.datatypes.at(value.datatype))
        return literal(value.lex)
