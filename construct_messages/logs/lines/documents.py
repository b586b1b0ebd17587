r"""Documents of N-Triples and N-Quads, each of which is one message: those in canonical form are not taken apart.

The lines of such a document are those of its message, so that to check them is enough: `decoder.py` reads the others,
and alone decides what is an error. A document is taken as it is only where the decoder reads the same statements, in
the same order and with the same labels.

RDF Messages, section 3 (documents); RDF 1.2 N-Triples, section 4 (the canonical form).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from construct_messages.formats import N_QUADS, N_TRIPLES, Format
from construct_messages.labels import are_unique
from construct_messages.logs import DecoderOptions
from construct_messages.logs.lines.decoder import LinesDecoder
from construct_messages.logs.lines.statements import are_canonical
from construct_messages.message import Message, of_lines


def read_n_quads(document: bytes, options: DecoderOptions) -> Iterator[Message]:
    r"""The messages of a document of N-Quads; see `read_document`.

    >>> list(read_n_quads(b'<urn:s> <urn:p> "o" <urn:g> .\n', DecoderOptions()))
    [<Message of 1 quad: <urn:s> <urn:p> "o" <urn:g> .>]
    """
    return _read(N_QUADS, document, options)


def read_n_triples(document: bytes, options: DecoderOptions) -> Iterator[Message]:
    r"""The messages of a document of N-Triples; see `read_document`.

    >>> list(read_n_triples(b'<urn:s> <urn:p> "o" .\n', DecoderOptions()))
    [<Message of 1 quad: <urn:s> <urn:p> "o" .>]
    """
    return _read(N_TRIPLES, document, options)


def _read(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    lines = as_it_is(format, document, options)
    if lines is None:
        return decoded(format, document, options)
    return iter((of_lines(lines),))  # no generator, which would take longer than the rest


def decoded(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """The messages of a document in any form.

    Raises:
        LogError, LimitExceeded: see `read_document`.
    """
    decoder = LinesDecoder(format, None, options)
    yield from decoder.feed(document)
    yield from decoder.close()


def lines_of_n_quads(documents: Sequence[bytes], options: DecoderOptions) -> Sequence[bytes] | None:
    r"""The lines of documents that can all be taken as they are; see `Format.document_lines`.

    >>> lines_of_n_quads([b'<urn:s> <urn:p> "o" .\n'], DecoderOptions())
    [b'<urn:s> <urn:p> "o" .\n']
    """
    return _lines_of(N_QUADS, documents, options)


def lines_of_n_triples(
    documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    """As `lines_of_n_quads`.

    >>> lines_of_n_triples([b""], DecoderOptions())
    """
    return _lines_of(N_TRIPLES, documents, options)


def _lines_of(
    format: Format, documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    """Looks at all of them at once, with the same rules as `as_it_is`."""
    if max(map(len, documents), default=0) >= options.message_bytes:
        return None
    is_known = are_canonical(documents, format.graphs) and _keep_labels(documents, options)
    return documents if is_known else None


def _keep_labels(documents: Sequence[bytes], options: DecoderOptions) -> bool:
    """Whether a decoder keeps the labels of all blank nodes in documents of UTF-8."""
    # one character is found in a tenth of the time
    texts = [each.decode() for each in documents if b"_" in each and b"_:" in each]
    return not texts or (options.shared_labels is not False and all(map(are_unique, texts)))


def as_it_is(format: Format, document: bytes, options: DecoderOptions) -> bytes | None:
    """The lines of the one message that a document is; None: it has to be decoded."""
    if not 0 < len(document) < options.message_bytes:
        return None
    lines = document if document.endswith(b"\n") else document + b"\n"
    is_known = are_canonical((lines,), format.graphs) and _keep_labels((lines,), options)
    return lines if is_known else None
