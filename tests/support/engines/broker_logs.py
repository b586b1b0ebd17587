"""Logs for brokers: messages of 0, 5 and 30 quads, and some of a megabyte, with blank nodes shared within a message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.rdf.terms import Term


def log(count: int, *, large: int = 0, bytes: int = 1_000_000) -> list[Message]:
    """Messages that tell themselves apart, unless they are empty.

    Args:
        count: how many.
        large: how many of them are large, at equal distances.
        bytes: how large those are, nearly.
    """
    every = count // large if large else count + 1
    return [
        _message(number, bytes if number % every == every // 2 else 0) for number in range(count)
    ]


def _message(number: int, size: int) -> Message:
    if number % 10 == 3 and not size:
        return Message()
    node, other = blank("b0"), blank("b1")
    quads = [
        Quad(iri(f"http://example.org/observation/{number}"), iri("urn:p"), node),
        Quad(node, iri("urn:next"), other),
        Quad(other, iri("urn:value"), literal(f"{number}é\n" + "x" * size)),
        Quad(node, iri("urn:same"), node, iri("urn:g")),
        Quad(other, iri("urn:in"), node, blank("g")),
    ]
    if number % 10 == 7:
        quads += [Quad(node, iri(f"urn:q{n}"), literal(f"{number}-{n}")) for n in range(25)]
    return Message(quads)


def same(read: Sequence[Message], sent: Sequence[Message]) -> bool:
    """Whether messages are those that were sent, in their order, each up to the labels of its blank nodes."""
    return len(read) == len(sent) and all(
        one.isomorphic(other) for one, other in zip(read, sent, strict=True)
    )


def differences(read: Sequence[Message], sent: Sequence[Message]) -> dict[str, int]:
    """How many messages were sent, and how many are lost or doubled, whatever their order and labels."""
    found, wanted = Counter(map(_unlabelled, read)), Counter(map(_unlabelled, sent))
    return {
        "messages": len(sent),
        "lost": (wanted - found).total(),
        "doubled": (found - wanted).total(),
    }


def _unlabelled(message: Message) -> bytes:
    lines = message.map_blanks(lambda _: Term("_:b")).lines.split(b"\n")
    return b"\n".join(sorted(lines))


def undoubled(read: Sequence[Message], sent: Sequence[Message]) -> bool:
    """Whether messages are those that were sent, in order, if some that follow each other came again.

    At-least-once: after a failure, what was sent before may come again, in order.
    """
    position = 0
    for message in read:
        if position < len(sent) and message.isomorphic(sent[position]):
            position += 1
            continue
        again = next((n for n in range(position - 1, -1, -1) if message.isomorphic(sent[n])), None)
        if again is None:
            return False
        position = again + 1
    return position == len(sent)
