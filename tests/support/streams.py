"""What tests of streams share: messages that tell themselves apart, and a store."""

from __future__ import annotations

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
