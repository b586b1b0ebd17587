"""Messages beyond one machine: CONSTRUCT over RDF dumps on Spark, by native plans.

Its modules import pyspark, so this package imports them when one of their names is first used.

>>> from construct_messages import spark
>>> spark.Hints.__module__
'construct_messages.query.optimizer.optimize'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from construct_messages.query.optimizer.optimize import Hints
    from construct_messages.spark.construct import Messages, construct_messages
    from construct_messages.spark.logs import register
    from construct_messages.spark.logs.records import from_rdfm, to_rdfm
    from construct_messages.spark.logs.source import with_sequence
    from construct_messages.spark.quads.loading import (
        append_quads,
        load_quads,
        read_quads,
        write_quads,
    )
    from construct_messages.spark.quads.table import QuadTable
    from construct_messages.spark.session import local_session, translated
    from construct_messages.spark.streaming import construct_stream
    from construct_messages.spark.tables.selection import select
    from construct_messages.spark.windows import construct_windows, dropped_messages

_ROOMS: Final = {
    "Hints": "query.optimizer.optimize",
    "Messages": "spark.construct",
    "QuadTable": "spark.quads.table",
    "append_quads": "spark.quads.loading",
    "construct_messages": "spark.construct",
    "construct_stream": "spark.streaming",
    "construct_windows": "spark.windows",
    "dropped_messages": "spark.windows",
    "from_rdfm": "spark.logs.records",
    "load_quads": "spark.quads.loading",
    "local_session": "spark.session",
    "read_quads": "spark.quads.loading",
    "register": "spark.logs",
    "select": "spark.tables.selection",
    "to_rdfm": "spark.logs.records",
    "translated": "spark.session",
    "with_sequence": "spark.logs.source",
    "write_quads": "spark.quads.loading",
}

__all__ = [
    "Hints",
    "Messages",
    "QuadTable",
    "append_quads",
    "construct_messages",
    "construct_stream",
    "construct_windows",
    "dropped_messages",
    "from_rdfm",
    "load_quads",
    "local_session",
    "read_quads",
    "register",
    "select",
    "to_rdfm",
    "translated",
    "with_sequence",
    "write_quads",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = _ROOMS[name]
    if room.startswith("spark.") and room != "spark.session":
        # an error with the install command, instead of an import that fails
        from construct_messages.spark.session import require

        require(java=False)
    return getattr(import_module(f"construct_messages.{room}"), name)
