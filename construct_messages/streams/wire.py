"""Names that a server of streams and its clients must agree on, each written once.

Names only: no HTTP here. docs/reference/streams/http.md describes what they are for.
"""

from __future__ import annotations

from typing import Final

AFTER: Final = "RDF-Stream-After"
"""The response header with the sequence before the first element of an answer, whose elements have no gap."""

LAST: Final = "RDF-Stream-Last"
"""The response header with the sequence of the last element of an answer, by which its reader knows that all came."""

IDENTITY: Final = "RDF-Stream-Id"
"""The response header that distinguishes a stream from another one that had its name before, or will have it."""
