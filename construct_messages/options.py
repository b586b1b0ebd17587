"""The options of queries, logs and windows, under one name; each is described where it is defined.

>>> from construct_messages.options import ColumnOptions, Grouping
>>> Grouping(["?company"]).by
('company',)
"""

from __future__ import annotations

from construct_messages.continuous.windows import Bounds, WindowOptions
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.logs.json.options import JsonOptions
from construct_messages.rdf.options import Dataset, Grouping, Requests

__all__ = [
    "Bounds",
    "ColumnOptions",
    "Dataset",
    "Grouping",
    "JellyOptions",
    "JsonOptions",
    "LogicalType",
    "PhysicalType",
    "Requests",
    "WindowOptions",
]
