"""One RDF Message per SPARQL CONSTRUCT solution.

Names are imported when they are first used: a program waits only for what it needs.

>>> from construct_messages import construct_messages
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from construct_messages._version import __version__ as __version__

if TYPE_CHECKING:
    from construct_messages.cli.notebook import load_ipython_extension
    from construct_messages.construct.messages import QueryMessages, construct_messages
    from construct_messages.construct.shapes import (
        Shapes,
        Validation,
        ValidationReport,
        ValidationResult,
    )
    from construct_messages.continuous.transform import transform
    from construct_messages.logs.columns.options import ColumnOptions
    from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
    from construct_messages.logs.json.documents import to_json
    from construct_messages.logs.json.options import JsonOptions
    from construct_messages.logs.reading import LogReader, read_log
    from construct_messages.logs.writing import GrowingLog, awrite_log, write_log
    from construct_messages.query.rewrite import ConstructQuery, query_form
    from construct_messages.rdf.errors import (
        CannotFold,
        CannotWrite,
        ColumnError,
        Conflict,
        ConstructMessagesError,
        DoesNotConform,
        Forbidden,
        Gone,
        GroupError,
        IncompleteResult,
        LimitExceeded,
        LogError,
        NotAcceptable,
        NotConstruct,
        NotFound,
        Position,
        ProtocolError,
        QuadsError,
        QueryError,
        QueryWarning,
        ShapesError,
        SourceError,
        SourceTimeout,
        SparkUnavailable,
        StoreDamaged,
        StoreError,
        StoreFull,
        StoreLocked,
        TermError,
        UnsupportedByFormat,
        UnsupportedQuery,
        UsageError,
        ValueOutOfRange,
        WrongType,
    )
    from construct_messages.rdf.message import Message, Quad
    from construct_messages.rdf.options import Dataset, Grouping, Requests
    from construct_messages.rdf.terms import Term, blank, iri, literal, to_python, triple
    from construct_messages.sparql.sources import Source
    from construct_messages.sparql.sources.open import open_source

_ROOMS: Final = {
    "CannotFold": "rdf.errors",
    "CannotWrite": "rdf.errors",
    "ColumnError": "rdf.errors",
    "ColumnOptions": "logs.columns.options",
    "Conflict": "rdf.errors",
    "ConstructMessagesError": "rdf.errors",
    "ConstructQuery": "query.rewrite",
    "Dataset": "rdf.options",
    "DoesNotConform": "rdf.errors",
    "Forbidden": "rdf.errors",
    "Gone": "rdf.errors",
    "GroupError": "rdf.errors",
    "Grouping": "rdf.options",
    "GrowingLog": "logs.writing",
    "IncompleteResult": "rdf.errors",
    "JellyOptions": "logs.jelly.options",
    "JsonOptions": "logs.json.options",
    "LimitExceeded": "rdf.errors",
    "LogError": "rdf.errors",
    "LogReader": "logs.reading",
    "LogicalType": "logs.jelly.options",
    "Message": "rdf.message",
    "NotAcceptable": "rdf.errors",
    "NotConstruct": "rdf.errors",
    "NotFound": "rdf.errors",
    "PhysicalType": "logs.jelly.options",
    "Position": "rdf.errors",
    "ProtocolError": "rdf.errors",
    "Quad": "rdf.message",
    "QuadsError": "rdf.errors",
    "QueryError": "rdf.errors",
    "QueryMessages": "construct.messages",
    "QueryWarning": "rdf.errors",
    "Requests": "rdf.options",
    "Shapes": "construct.shapes",
    "ShapesError": "rdf.errors",
    "Source": "sparql.sources",
    "SourceError": "rdf.errors",
    "SourceTimeout": "rdf.errors",
    "SparkUnavailable": "rdf.errors",
    "StoreDamaged": "rdf.errors",
    "StoreError": "rdf.errors",
    "StoreFull": "rdf.errors",
    "StoreLocked": "rdf.errors",
    "Term": "rdf.terms",
    "TermError": "rdf.errors",
    "UnsupportedByFormat": "rdf.errors",
    "UnsupportedQuery": "rdf.errors",
    "UsageError": "rdf.errors",
    "Validation": "construct.shapes",
    "ValidationReport": "construct.shapes",
    "ValidationResult": "construct.shapes",
    "ValueOutOfRange": "rdf.errors",
    "WrongType": "rdf.errors",
    "awrite_log": "logs.writing",
    "blank": "rdf.terms",
    "construct_messages": "construct.messages",
    "iri": "rdf.terms",
    "literal": "rdf.terms",
    "load_ipython_extension": "cli.notebook",
    "open_source": "sparql.sources.open",
    "query_form": "query.rewrite",
    "read_log": "logs.reading",
    "to_json": "logs.json.documents",
    "to_python": "rdf.terms",
    "transform": "continuous.transform",
    "triple": "rdf.terms",
    "write_log": "logs.writing",
}

__all__ = [
    "CannotFold",
    "CannotWrite",
    "ColumnError",
    "ColumnOptions",
    "Conflict",
    "ConstructMessagesError",
    "ConstructQuery",
    "Dataset",
    "DoesNotConform",
    "Forbidden",
    "Gone",
    "GroupError",
    "Grouping",
    "GrowingLog",
    "IncompleteResult",
    "JellyOptions",
    "JsonOptions",
    "LimitExceeded",
    "LogError",
    "LogReader",
    "LogicalType",
    "Message",
    "NotAcceptable",
    "NotConstruct",
    "NotFound",
    "PhysicalType",
    "Position",
    "ProtocolError",
    "Quad",
    "QuadsError",
    "QueryError",
    "QueryMessages",
    "QueryWarning",
    "Requests",
    "Shapes",
    "ShapesError",
    "Source",
    "SourceError",
    "SourceTimeout",
    "SparkUnavailable",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "Term",
    "TermError",
    "UnsupportedByFormat",
    "UnsupportedQuery",
    "UsageError",
    "Validation",
    "ValidationReport",
    "ValidationResult",
    "ValueOutOfRange",
    "WrongType",
    "awrite_log",
    "blank",
    "construct_messages",
    "iri",
    "literal",
    "load_ipython_extension",
    "open_source",
    "query_form",
    "read_log",
    "to_json",
    "to_python",
    "transform",
    "triple",
    "write_log",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(globals().keys() | _ROOMS.keys())
