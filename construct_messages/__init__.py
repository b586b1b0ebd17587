"""One RDF Message per SPARQL CONSTRUCT solution.

Names are imported when they are first used: a program waits only for what it needs.

>>> from construct_messages import construct_messages
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from construct_messages._version import __version__ as __version__

if TYPE_CHECKING:
    from construct_messages.cli.notebook import load_ipython_extension as load_ipython_extension
    from construct_messages.construct.messages import QueryMessages, construct_messages
    from construct_messages.construct.select import QuerySolutions, select
    from construct_messages.construct.shapes import Shapes, Validation
    from construct_messages.continuous.transform import transform
    from construct_messages.continuous.watching import watch
    from construct_messages.errors import ConstructMessagesError
    from construct_messages.feeds.publication import publish
    from construct_messages.feeds.relaying import relay
    from construct_messages.feeds.subscription import subscribe
    from construct_messages.logs.json.documents import to_json
    from construct_messages.logs.reading import read_log
    from construct_messages.logs.writing import GrowingLog, awrite_log, write_log
    from construct_messages.query.rewrite import ConstructQuery
    from construct_messages.rdf.message import Message, Quad
    from construct_messages.rdf.options import Dataset, Grouping, Requests
    from construct_messages.rdf.terms import Term, blank, iri, literal, to_python, triple
    from construct_messages.sparql.sources import Source
    from construct_messages.sparql.sources.open import open_source
    from construct_messages.streams.store import open_store

if sys.version_info < (3, 11, 5):
    from construct_messages.rdf import possessive

    possessive.mend()

_ROOMS: Final = {
    "ConstructMessagesError": "errors",
    "ConstructQuery": "query.rewrite",
    "Dataset": "rdf.options",
    "Grouping": "rdf.options",
    "GrowingLog": "logs.writing",
    "Message": "rdf.message",
    "Quad": "rdf.message",
    "QueryMessages": "construct.messages",
    "QuerySolutions": "construct.select",
    "Requests": "rdf.options",
    "Shapes": "construct.shapes",
    "Source": "sparql.sources",
    "Term": "rdf.terms",
    "Validation": "construct.shapes",
    "awrite_log": "logs.writing",
    "blank": "rdf.terms",
    "construct_messages": "construct.messages",
    "iri": "rdf.terms",
    "literal": "rdf.terms",
    "load_ipython_extension": "cli.notebook",
    "open_source": "sparql.sources.open",
    "open_store": "streams.store",
    "publish": "feeds.publication",
    "read_log": "logs.reading",
    "relay": "feeds.relaying",
    "select": "construct.select",
    "subscribe": "feeds.subscription",
    "to_json": "logs.json.documents",
    "to_python": "rdf.terms",
    "transform": "continuous.transform",
    "triple": "rdf.terms",
    "watch": "continuous.watching",
    "write_log": "logs.writing",
}

__all__ = [
    "ConstructMessagesError",
    "ConstructQuery",
    "Dataset",
    "Grouping",
    "GrowingLog",
    "Message",
    "Quad",
    "QueryMessages",
    "QuerySolutions",
    "Requests",
    "Shapes",
    "Source",
    "Term",
    "Validation",
    "awrite_log",
    "blank",
    "construct_messages",
    "iri",
    "literal",
    "open_source",
    "open_store",
    "publish",
    "read_log",
    "relay",
    "select",
    "subscribe",
    "to_json",
    "to_python",
    "transform",
    "triple",
    "watch",
    "write_log",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(globals().keys() | _ROOMS.keys())
