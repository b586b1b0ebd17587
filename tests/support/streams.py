"""What tests of streams share: messages that tell themselves apart, and a store."""

from __future__ import annotations

import json
from pathlib import Path

from construct_messages import Message, Quad, iri, literal


def numbered(number: int, size: int = 1) -> Message:
    return Message([Quad(iri("urn:s"), iri("urn:number"), literal("x" * size + str(number)))])


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.microseconds = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.microseconds


def sequences(elements: object) -> list[int]:
    assert isinstance(elements, list)
    return [element.sequence for element in elements]


def written(state: Path) -> int:
    """The sequence that a subscriber's state tells."""
    return int(json.loads(state.read_text())["checkpoint"]["sequence"]) if state.exists() else 0
