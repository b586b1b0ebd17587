"""An RDF/XML document as a file of N-Triples, for pyoxigraph to read. No file is opened here."""

from __future__ import annotations

from typing import Any, Final

from construct_messages.logs.rdfxml.parser import DocumentLimits, RdfXmlParser

_PIECE_BYTES: Final = 1 << 16


class NTriplesFile:
    """A file of N-Triples: the statements of a document, a line each, as they are read.

    Args:
        file: the document, a binary file; it stays open.
        base: the IRI that relative ones resolve against.
        limits: the limits of the document.
        lenient: see `RdfXmlParser`.

    >>> import io
    >>> document = b'<C xmlns="urn:" xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" r:about="urn:s"/>'
    >>> NTriplesFile(io.BytesIO(document)).read()
    b'<urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> .\\n'
    """

    def __init__(
        self,
        file: Any,
        base: str | None = None,
        limits: DocumentLimits | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self._file, self._parser = file, RdfXmlParser(base, limits, lenient=lenient)
        self._text, self._place, self._ended = (
            b"",
            0,
            False,
        )  # unread data begins at the position

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the document has declared so far."""
        return self._parser.prefixes

    def read(self, size: int = -1) -> bytes:
        """See `io.RawIOBase.read`.

        Raises:
            RdfXmlError: the document is malformed.
            LimitExceeded: the document exceeds a limit.
        """
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE_BYTES), b""))
        while self._place == len(self._text) and not self._ended:
            data = self._file.read(_PIECE_BYTES)
            self._ended = not data
            self._text, self._place = self._parser.feed(data) if data else self._parser.close(), 0
        start, self._place = self._place, min(self._place + size, len(self._text))
        return self._text[start : self._place]

    def located(self, error: SyntaxError) -> SyntaxError:
        """Translates a reader's error in the lines to the position in the document; see `RdfXmlParser.located`."""
        return self._parser.located(error)
