"""Shapes: each message is validated by itself against a shapes graph (SHACL).

`graph.py` reads shapes files with their line numbers, `graph.py` rejects those that are not SHACL, `engine.py` is
the only module that calls the validating library, and has the data that messages are validated with, `report.py` has
results, and `validation.py` handles messages that do not conform. No HTTP and no arguments here.

SHACL (https://www.w3.org/TR/shacl/), sections 2 to 5.
"""

from construct_messages.construct.shapes.engine import Shapes
from construct_messages.construct.shapes.report import (
    ValidationReport,
    ValidationResult,
    dead_letter,
    without_report,
)
from construct_messages.construct.shapes.validation import OnInvalid, Validation

__all__ = [
    "OnInvalid",
    "Shapes",
    "Validation",
    "ValidationReport",
    "ValidationResult",
    "dead_letter",
    "without_report",
]
