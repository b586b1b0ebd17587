"""The base of the text encoders: Turtle, TriG, NDJSON-LD, YAML-LD and RDF/XML.

Each of them defines the text of a message and of its terms. This module rejects features that the format does not have,
adds the number of the message to errors, and writes batches of a template's solutions by `layout.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import ClassVar

from construct_messages.logs import TemplateEncoder
from construct_messages.logs.capabilities import CapabilityCheck
from construct_messages.logs.layout import (
    EncodedBatch,
    EncodedMessages,
    EncodedTexts,
    Layouts,
    NoLayout,
    Place,
    TextsByKind,
    is_laid_out,
    plain,
)
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message, of_distinct
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term

# --- plain encoder --------------------------------------------------------------------------------
# Encodes solutions by their messages. Specialised template encoders produce the same bytes (tests/test_fast_path.py and
# tests/logs/test_encoded.py).


class PlainTemplateEncoder:
    """A `TemplateEncoder` for any encoder and any template.

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
                self._encode(of_distinct(quads))
                for quads in self._template.instantiate_all(solutions.text, first)
            ]
        )


# --- text encoder ---------------------------------------------------------------------------------


class TextEncoder(ABC):
    """Writes messages as text."""

    def __init__(self, format: Format, syntax: Syntax) -> None:
        self.format, self.syntax = format, syntax
        self.capabilities = CapabilityCheck(format, syntax)

    def begin(self) -> None:
        """Counts messages from 1 again, for errors."""
        self.capabilities = CapabilityCheck(self.format, self.syntax)

    def start(self) -> bytes:
        """Returns the bytes before the first message: none by default."""
        return b""

    @abstractmethod
    def write(self, message: Message) -> str:
        """Writes one message with its delimiter, without declarations of the log; raises `UnsupportedByFormat`."""

    @abstractmethod
    def write_document(self, message: Message) -> str:
        """Writes one message as a separate document; see `Encoder.encode_document`."""

    def declare(self, texts: list[str]) -> None:  # noqa: B027 - most formats declare nothing here
        """Inserts the declarations of the log into the first of these messages, if they were not written yet."""

    def encode(self, message: Message) -> bytes:
        """Encodes one message with its delimiter."""
        texts = [self._checked(message, self.write)]
        self.declare(texts)
        return texts[0].encode()

    def encode_document(self, message: Message) -> bytes:
        """Encodes one message as a document; see `Encoder.encode_document`."""
        return self._checked(message, self.write_document).encode()

    def _checked(self, message: Message, write: Callable[[Message], str]) -> str:
        self.capabilities.check(message)
        try:
            return write(message)
        except UnsupportedByFormat as error:
            raise self.capabilities.refused(error) from None

    def finish(self) -> bytes:
        """Returns no bytes."""
        return b""

    def for_template(self, template: Template) -> TemplateEncoder:
        """Returns the encoder for batches of a template's solutions."""
        return PlainTemplateEncoder(self.encode, template)


class LayoutEncoder(TextEncoder):
    """Writes messages as text, and those of a template by layouts.

    The attributes of the class name the conditions that decide the positions of terms in a message; see `Layouts`.
    """

    literals: ClassVar[bool] = False
    predicates: ClassVar[Collection[Term] | None] = ()
    nodes: ClassVar[bool] = False
    deciding: Collection[Term] = ()

    def __init__(self, format: Format, syntax: Syntax, texts: TextsByKind) -> None:
        super().__init__(format, syntax)
        self.texts, self._place = texts, plain(texts)

    @abstractmethod
    def write_by(self, message: Message, place: Place) -> str:
        """Writes one message like `write`, its terms by `place` only; raises `NoLayout` if only `write` can."""

    def write(self, message: Message) -> str:
        """Writes one message with its own terms."""
        return self.write_by(message, self._place)

    def for_template(self, template: Template) -> TemplateEncoder:
        """Returns the encoder for batches of a template's solutions."""
        if not (self.capabilities.support_template(template) and is_laid_out(template)):
            return PlainTemplateEncoder(self.encode, template)
        return TemplateTexts(self, template)


class TemplateTexts:
    """Encodes batches of a template's solutions; byte for byte the same as `encode(Message(instantiate(…)))`."""

    def __init__(self, encoder: LayoutEncoder, template: Template) -> None:
        self._encoder, self._plain = encoder, PlainTemplateEncoder(encoder.encode, template)
        self._layouts = Layouts(
            template,
            encoder.write_by,
            encoder.texts,
            literals=encoder.literals,
            predicates=encoder.predicates,
            nodes=encoder.nodes,
            deciding=encoder.deciding,
        )

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes a batch; see `TemplateEncoder.encode`."""
        if not len(solutions) or not self._encoder.capabilities.support_columns(solutions):
            return self._plain.encode(solutions, first)
        try:
            texts = self._layouts.texts(solutions, first)
        except (NoLayout, UnsupportedByFormat):
            return self._plain.encode(solutions, first)
        self._encoder.capabilities.count(len(solutions))
        self._encoder.declare(texts)
        return EncodedTexts(texts)
