"""Batches of solutions for an encoder that knows no short cut: instantiate each, and encode it.

The plain path beside the specialised ones, which must agree with it (tests/test_fast_path.py).
"""

from __future__ import annotations

from collections.abc import Callable

from construct_messages.logs.encoded import EncodedMessages
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Template


class ByMessage:
    """Encodes batches of solutions one message after the other.

    Args:
        encode: the encoder's own.
        template: what instantiates the solutions.

    >>> from construct_messages.template import Constant, Pattern, Variable
    >>> from construct_messages.terms import Term
    >>> template = Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Constant(Term('"o"'))),))
    >>> plain = ByMessage(lambda message: f"{len(message)} ".encode(), template)
    >>> bytes(plain.encode(Solutions.of([("<urn:a>",), ("",)]), 0))
    b'1 0 '
    """

    def __init__(self, encode: Callable[[Message], bytes], template: Template) -> None:
        self._encode, self._template = encode, template

    def encode(self, solutions: Solutions, first: int) -> EncodedMessages:
        """Encodes a batch; see `TemplateEncoder.encode`."""
        return EncodedMessages(
            [
                self._encode(Message(self._template.instantiate(solution, number)))
                for number, solution in enumerate(solutions, first)
            ]
        )
