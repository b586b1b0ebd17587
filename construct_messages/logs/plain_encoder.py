"""Encodes batches of solutions one by one: instantiates the template, and encodes the message.

This is the plain path for the specialised template encoders, which must produce the same bytes (tests/test_fast_path.py
and tests/logs/test_encoded.py).
"""

from __future__ import annotations

from collections.abc import Callable

from construct_messages.logs.encoded import EncodedMessages
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template


class PlainTemplateEncoder:
    """A `TemplateEncoder` for any encoder and any template.

    Args:
        encode: encodes one message of the log.
        template: creates a message from each solution.

    >>> from construct_messages.rdf.template import Constant, Pattern, Variable
    >>> from construct_messages.rdf.terms import Term
    >>> template = Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Constant(Term('"o"'))),))
    >>> plain = PlainTemplateEncoder(lambda message: f"{len(message)} ".encode(), template)
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
