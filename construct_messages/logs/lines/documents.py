r"""Reads documents of N-Triples and N-Quads, each with one message; those in canonical form are not parsed into terms.

The lines of such a document are those of its message, so checking them is sufficient. `decoder.py` reads all other
documents, and alone raises errors. A document is only used unchanged if the decoder would read the same statements, in
the same order and with the same labels.

RDF Messages, section 3 (documents); RDF 1.2 N-Triples, section 4 (the canonical form).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from construct_messages.logs import DecoderOptions
from construct_messages.logs.lines.decoder import LinesDecoder
from construct_messages.logs.lines.statements import count_canonical
from construct_messages.rdf.formats import Format
from construct_messages.rdf.labels import are_unique, may_have_labels
from construct_messages.rdf.message import Message, of_lines


def read_document(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    r"""Returns the messages of a document; see `Format.document_reader`.

    >>> from construct_messages.rdf.formats import N_QUADS
    >>> list(read_document(N_QUADS, b'<urn:s> <urn:p> "o" <urn:g> .\n', DecoderOptions()))
    [<Message of 1 quad: <urn:s> <urn:p> "o" <urn:g> .>]
    """
    with_end = document if document.endswith(b"\n") else document + b"\n"
    lines = document_lines(format, (with_end,), options) if document else None
    if lines is None:
        return decoded(format, document, options)
    return iter((of_lines(lines[0]),))  # not a generator, which would take longer than the rest


def decoded(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """Returns the messages of a document in any form."""
    decoder = LinesDecoder(format, None, options)
    yield from decoder.feed(document)
    yield from decoder.close()


def document_lines(
    format: Format, documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    r"""Returns the lines of documents if all can be used unchanged; see `Format.document_lines`.

    >>> from construct_messages.rdf.formats import N_TRIPLES
    >>> document_lines(N_TRIPLES, [b'<urn:s> <urn:p> "o" .\n'], DecoderOptions())
    [b'<urn:s> <urn:p> "o" .\n']
    """
    if max(map(len, documents), default=0) >= options.message_bytes:
        return None
    if count_canonical(documents, format.graphs) is None or not _keep_labels(documents, options):
        return None
    return documents


def _keep_labels(documents: Sequence[bytes], options: DecoderOptions) -> bool:
    """Returns whether a decoder keeps the labels of all blank nodes in documents of UTF-8."""
    texts = [each.decode() for each in documents if may_have_labels(each)]
    return not texts or (options.shared_labels is not False and all(map(are_unique, texts)))
