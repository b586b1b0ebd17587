"""Writes documents: each message alone, in any format. RDF Messages, section 3."""

from __future__ import annotations

from construct_messages.formats import RDFM, Format
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.message import Message


class DocumentWriter:
    """Writes documents of one format, which depend on their messages alone.

    Args:
        format: of the documents.

    >>> from construct_messages.formats import TURTLE
    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri
    >>> DocumentWriter(TURTLE).write(Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"))]))
    b'<urn:s> <urn:p> <urn:o> .\\n'
    """

    def __init__(self, format: Format) -> None:
        self.format = format
        self._encoder = encoder_for(format, format.own or RDFM, EncoderOptions(triple_terms=True))

    def write(self, message: Message) -> bytes:
        """Returns a document; see `Encoder.encode_document`.

        Raises:
            UnsupportedByFormat: the format cannot carry the message.
        """
        return self._encoder.encode_document(message)
