"""Stores for tests of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyoxigraph as ox

PEOPLE: Final = """
PREFIX ex: <http://example.org/>
ex:a ex:knows ex:b . ex:b ex:name "Bea"@en . ex:c ex:age 7 .
"""


def store_of(path: Path, turtle: str) -> Path:
    """Fills a store directory; gives its path."""
    store = ox.Store(path)
    store.bulk_load(turtle.encode(), format=ox.RdfFormat.TRIG)
    store.flush()
    return path
