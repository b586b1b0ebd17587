r"""Reads documents of N-Triples and N-Quads, each with one message; those in canonical form are not parsed into terms.

The lines of such a document are those of its message, so checking them is sufficient. `decoder.py` reads all other
documents, and alone raises errors. A document is only used unchanged if the decoder would read the same statements, in
the same order and with the same labels.

RDF Messages, section 3 (documents); RDF 1.2 N-Triples, section 4 (the canonical form).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from construct_messages import compiled
from construct_messages.formats import N_QUADS, N_TRIPLES, Format
from construct_messages.labels import are_unique
from construct_messages.logs import DecoderOptions
from construct_messages.logs.lines.decoder import LinesDecoder
from construct_messages.logs.lines.statements import canonical_lines
from construct_messages.message import Message, of_lines


def read_n_quads(document: bytes, options: DecoderOptions) -> Iterator[Message]:
    r"""Returns the messages of a document of N-Quads; see `read_document`.

    >>> list(read_n_quads(b'<urn:s> <urn:p> "o" <urn:g> .\n', DecoderOptions()))
    [<Message of 1 quad: <urn:s> <urn:p> "o" <urn:g> .>]
    """
    return _read(N_QUADS, document, options)


def read_n_triples(document: bytes, options: DecoderOptions) -> Iterator[Message]:
    r"""Returns the messages of a document of N-Triples; see `read_document`.

    >>> list(read_n_triples(b'<urn:s> <urn:p> "o" .\n', DecoderOptions()))
    [<Message of 1 quad: <urn:s> <urn:p> "o" .>]
    """
    return _read(N_TRIPLES, document, options)


def _read(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    lines = as_it_is(format, document, options)
    if lines is None:
        return decoded(format, document, options)
    return iter((of_lines(lines),))  # not a generator, which would take longer than the rest


def decoded(format: Format, document: bytes, options: DecoderOptions) -> Iterator[Message]:
    """Returns the messages of a document in any form.

    Raises:
        LogError, LimitExceeded: see `read_document`.
    """
    decoder = LinesDecoder(format, None, options)
    yield from decoder.feed(document)
    yield from decoder.close()


def lines_of_n_quads(documents: Sequence[bytes], options: DecoderOptions) -> Sequence[bytes] | None:
    r"""Returns the lines of documents if all can be used unchanged; see `Format.document_lines`.

    >>> lines_of_n_quads([b'<urn:s> <urn:p> "o" .\n'], DecoderOptions())
    [b'<urn:s> <urn:p> "o" .\n']
    """
    return _lines_of(N_QUADS, documents, options)


def lines_of_n_triples(
    documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    """Returns the lines of N-Triples; as `lines_of_n_quads`.

    >>> lines_of_n_triples([b""], DecoderOptions())
    """
    return _lines_of(N_TRIPLES, documents, options)


def _lines_of(
    format: Format, documents: Sequence[bytes], options: DecoderOptions
) -> Sequence[bytes] | None:
    """Examines all documents together, with the same rules as `as_it_is`."""
    if max(map(len, documents), default=0) >= options.message_bytes:
        return None
    is_known = _are_canonical(documents, format.graphs) and _keep_labels(documents, options)
    return documents if is_known else None


def _are_canonical(documents: Sequence[bytes], graphs: bool) -> bool:
    """Returns whether each document consists of one or more distinct canonical statements, each with a final LF."""
    if compiled.wire is not None:
        return compiled.wire.are_canonical([*documents], graphs)
    if not all(document.endswith(b"\n") for document in documents):
        return False
    try:
        text = b"".join(documents).decode()
    except UnicodeDecodeError:
        return False
    return canonical_lines(text, graphs=graphs) and (
        _are_different(text.split("\n"))
        or all(_are_different(document.split(b"\n")) for document in documents)
    )


def _are_different(lines: list[str] | list[bytes]) -> bool:
    return len(set(lines)) == len(lines)


def _keep_labels(documents: Sequence[bytes], options: DecoderOptions) -> bool:
    """Returns whether a decoder keeps the labels of all blank nodes in documents of UTF-8."""
    # searching one character is ten times as fast
    texts = [each.decode() for each in documents if b"_" in each and b"_:" in each]
    return not texts or (options.shared_labels is not False and all(map(are_unique, texts)))


def as_it_is(format: Format, document: bytes, options: DecoderOptions) -> bytes | None:
    """Returns the lines of a document's only message; None: the document must be decoded."""
    if not 0 < len(document) < options.message_bytes:
        return None
    lines = document if document.endswith(b"\n") else document + b"\n"
    is_known = _are_canonical((lines,), format.graphs) and _keep_labels((lines,), options)
    return lines if is_known else None
