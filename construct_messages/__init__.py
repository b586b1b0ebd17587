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
    from construct_messages.columns.options import ColumnOptions
    from construct_messages.construct import QueryMessages, construct_messages
    from construct_messages.continuous.transform import transform
    from construct_messages.errors import (
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
    from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
    from construct_messages.logs.json import to_json
    from construct_messages.logs.json.options import JsonOptions
    from construct_messages.message import Message, Quad
    from construct_messages.options import Dataset, Grouping, Requests
    from construct_messages.query.rewrite import ConstructQuery, query_form
    from construct_messages.reading import LogReader, read_log
    from construct_messages.shapes import Shapes, Validation, ValidationReport, ValidationResult
    from construct_messages.sources import Source
    from construct_messages.sources.open import open_source
    from construct_messages.terms import Term, blank, iri, literal, to_python, triple
    from construct_messages.writing import awrite_log, write_log
    from construct_messages.writing.growing import GrowingLog

_ROOMS: Final = {
    "CannotFold": "errors",
    "CannotWrite": "errors",
    "ColumnError": "errors",
    "ColumnOptions": "columns.options",
    "Conflict": "errors",
    "ConstructMessagesError": "errors",
    "ConstructQuery": "query.rewrite",
    "Dataset": "options",
    "DoesNotConform": "errors",
    "Forbidden": "errors",
    "Gone": "errors",
    "GroupError": "errors",
    "Grouping": "options",
    "GrowingLog": "writing.growing",
    "IncompleteResult": "errors",
    "JellyOptions": "logs.jelly.options",
    "JsonOptions": "logs.json.options",
    "LimitExceeded": "errors",
    "LogError": "errors",
    "LogReader": "reading",
    "LogicalType": "logs.jelly.options",
    "Message": "message",
    "NotAcceptable": "errors",
    "NotConstruct": "errors",
    "NotFound": "errors",
    "PhysicalType": "logs.jelly.options",
    "Position": "errors",
    "ProtocolError": "errors",
    "Quad": "message",
    "QuadsError": "errors",
    "QueryError": "errors",
    "QueryMessages": "construct",
    "QueryWarning": "errors",
    "Requests": "options",
    "Shapes": "shapes",
    "ShapesError": "errors",
    "Source": "sources",
    "SourceError": "errors",
    "SourceTimeout": "errors",
    "SparkUnavailable": "errors",
    "StoreDamaged": "errors",
    "StoreError": "errors",
    "StoreFull": "errors",
    "StoreLocked": "errors",
    "Term": "terms",
    "TermError": "errors",
    "UnsupportedByFormat": "errors",
    "UnsupportedQuery": "errors",
    "UsageError": "errors",
    "Validation": "shapes",
    "ValidationReport": "shapes",
    "ValidationResult": "shapes",
    "ValueOutOfRange": "errors",
    "WrongType": "errors",
    "awrite_log": "writing",
    "blank": "terms",
    "construct_messages": "construct",
    "iri": "terms",
    "literal": "terms",
    "load_ipython_extension": "cli.notebook",
    "open_source": "sources.open",
    "query_form": "query.rewrite",
    "read_log": "reading",
    "to_json": "logs.json",
    "to_python": "terms",
    "transform": "continuous.transform",
    "triple": "terms",
    "write_log": "writing",
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
