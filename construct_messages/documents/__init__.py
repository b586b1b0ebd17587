"""One message as one document, and back: the value of a record, a frame, an event or the body of a request.

RDF Messages, section 3: the same blank node label in two documents is two nodes. Each format's record in `formats`
names its codec, so that a new format needs nothing here. No I/O: no JSON-LD context is fetched.
"""

from __future__ import annotations

from construct_messages.documents.reader import DocumentReader, document_format
from construct_messages.documents.writer import DocumentWriter

__all__ = ["DocumentReader", "DocumentWriter", "document_format"]
