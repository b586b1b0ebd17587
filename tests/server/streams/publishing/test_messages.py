"""The messages of requests, as they are read."""

from __future__ import annotations

import pytest

from construct_messages.errors import ProtocolError
from construct_messages.server.streams.publishing import read_messages

LINE = b"<urn:s> <urn:p> <urn:o> ."
JSON_LD = b'{"@id": "urn:s", "urn:p": {"@id": "urn:o"}}'
RDF_XML = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">
<rdf:Description rdf:about="urn:s"><u:p rdf:resource="urn:o"/></rdf:Description></rdf:RDF>"""


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/turtle", LINE),
        ("application/n-quads; messages=rdfm", b"# @message\n" + LINE + b"\n# @message\n"),
        ("application/ld+json", JSON_LD),
        ("application/rdf+xml", RDF_XML),
    ],
)
def test_what_was_read_is_not_checked_again(content_type: str, body: bytes) -> None:
    """A decoder gives nothing but RDF, and to check its terms once more took as long as to read them."""
    messages = read_messages(content_type, body, base="urn:x", message_bytes=1 << 20, most=10)
    assert {quad for message in messages for quad in map(str, message)} == {LINE.decode()}
    assert all(message.checked for message in messages)


@pytest.mark.parametrize(
    "content_type",
    ["application/ld+json", "application/json", 'application/ld+json; profile="a:b"'],
)
@pytest.mark.parametrize("body", [b"", b" \r\n\t", b"\xef\xbb\xbf"])
def test_an_empty_body_is_no_json(content_type: str, body: bytes) -> None:
    """Issue 26, 16: it was an empty message. RFC 8259, section 2: a JSON text is a value."""
    with pytest.raises(ProtocolError, match="is empty, which is no JSON") as refused:
        read_messages(content_type, body, base="urn:x", message_bytes=1 << 20, most=10)
    assert refused.value.status == 400
    (empty,) = read_messages(content_type, b"{}", base="urn:x", message_bytes=1 << 20, most=10)
    assert len(empty) == 0
