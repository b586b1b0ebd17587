"""SPARQL results bytes in, batches of solutions out: incremental, strict, and without I/O."""

from __future__ import annotations

from typing import Protocol

from construct_messages.solutions import Solutions


class Decoder(Protocol):
    """One results document on its way in.

    Decoders are made as `XDecoder(variables, *, response=0, scope="d", lenience=None)`:

    - `variables`: the names, without `?`, of the columns to give, in that order. What the document has beyond them is
      ignored.
    - `response`: the number of the response, handed on in `Solutions.response`.
    - `scope`: goes in front of every blank node label (see `terms.blank`).
    - `lenience`: passes and counts malformed IRIs and language tags (see `terms.iri`); None: they are errors.
    """

    def feed(self, data: bytes) -> list[Solutions]:
        """Takes the next bytes, gives every solution that they complete.

        Raises:
            IncompleteResult: the bytes cannot be part of such a document.
        """
        ...

    def close(self) -> None:
        """Says that no more bytes come.

        Raises:
            IncompleteResult: the document is not whole, or something follows it.
        """
        ...


def excerpt(data: bytes) -> str:
    """The beginning of some bytes, as errors show it.

    >>> excerpt(b"!TIMEDOUT!")
    "'!TIMEDOUT!'"
    """
    text = data[:80].decode(errors="replace")
    return repr(f"{text}…" if len(data) > 80 else text)
