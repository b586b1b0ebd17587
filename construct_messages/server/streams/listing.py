"""The list of a stream's elements, as a whole or by pages, in the negotiated serialization.

Linked Data Notifications, section 3.3.2: a GET of an inbox lists its notifications. Many clients read a single
document, so the answer is the whole list unless the request selects a page: by its URL, or by `Prefer:
max-member-count` (Linked Data Platform Paging, section 6.2). Pages begin at fixed sequences. The whole list is written
while it is sent. No store here.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

from construct_messages.rdf.errors import Gone, NotFound
from construct_messages.rdf.formats.documents import JSON_LD, RDF_XML, TRIG, TURTLE
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.vocabulary import CONTEXT, LDP
from construct_messages.rdf.wire import Property
from construct_messages.server.streams.addresses import StreamIris
from construct_messages.server.streams.rdf import serialize
from construct_messages.server.streams.resources import Document
from construct_messages.streams.element import State

LISTED: Final = 1000
"""The number of elements on a page."""

_MAX_MEMBERS: Final = re.compile(
    r"""(?:^|[;,\s])max-member-count\s*=\s*"?(\d{1,9})\b""", re.IGNORECASE
)


class ListPage(NamedTuple):
    """One page of the list.

    Args:
        sequences: the sequences of its elements, the oldest first.
        previous, following: sequences of elements on the pages before and after it; None: there is no such page.
        first, last: sequences of elements on the first page and on the last.
    """

    sequences: range
    previous: int | None
    following: int | None
    first: int
    last: int

    @classmethod
    def of(cls, state: State, sequence: int) -> ListPage:
        """Returns the page with an element.

        Raises:
            Gone: retention removed all of its elements.
            NotFound: none of its elements exists yet.

        >>> from construct_messages.streams.element import Description
        >>> ListPage.of(State("a", Description(), first=700, next=2501, bytes=0), 999)
        ListPage(sequences=range(700, 1001), previous=None, following=1001, first=700, last=2500)
        """
        start = max(0, sequence - 1) // LISTED * LISTED + 1
        first, last = state.first, max(state.last, state.first)
        if start > last:
            raise NotFound(
                f"{state.name} has no element {sequence}", hint=f"its last is {state.last}"
            )
        if start + LISTED <= first:
            raise Gone(
                f"element {sequence} of {state.name} was removed by retention",
                first=first,
                hint=f"list from {first} on",
            )
        sequences = range(max(start, first), min(start + LISTED, state.next))
        return cls(
            sequences,
            start - 1 if start > first else None,
            start + LISTED if start + LISTED < state.next else None,
            first,
            last,
        )

    @property
    def final(self) -> bool:
        """Whether the page does not change until retention: it is full, and retention has removed none of its
        elements.
        """
        return self.following is not None and len(self.sequences) == LISTED

    def links(self, iri: str) -> Iterator[tuple[str, str]]:
        """Returns the targets of its Link headers, each with its relation type.

        Args:
            iri: the IRI of the list.
        """
        yield f"{LDP}Page", "type"
        yield iri, "canonical"
        for sequence, relation in (
            (self.first, "first"),
            (self.previous, "prev"),
            (self.following, "next"),
            (self.last, "last"),
        ):
            if sequence is not None:
                yield page_iri(iri, sequence), relation


def page_iri(iri: str, sequence: int) -> str:
    """Returns the IRI of the page of a list with an element."""
    return f"{iri}?list={max(0, sequence - 1) // LISTED * LISTED + 1}"


def wants_pages(prefer: str, count: int) -> bool:
    """Returns whether a client prefers a page to a list of this many elements.

    >>> wants_pages('return=representation; max-member-count="1000"', 1001), wants_pages("", 1001)
    (True, False)
    """
    most = _MAX_MEMBERS.search(prefer)
    return most is not None and count > int(most[1])


def page_document(iris: StreamIris, iri: str, page: ListPage) -> Document:
    """Returns the content of one page.

    Args:
        iris: the IRIs of the stream.
        iri: the IRI of the list: the output or the inbox.
        page: the page.
    """
    here = {
        "@id": page_iri(iri, page.sequences.start),
        "@type": "ldp:Page",
        **_bounds(page.sequences),
    }
    document: Document = {**_head(iris, iri), "@included": [here]}
    document["contains"] = [iris.element(sequence) for sequence in page.sequences]
    for name, sequence in ((Property.NEXT, page.following), (Property.PREVIOUS, page.previous)):
        if sequence is not None:
            document[name] = page_iri(iri, sequence)
    return document


async def whole_list(
    iris: StreamIris, iri: str, state: State, media_type: str
) -> AsyncGenerator[bytes]:
    """Yields the list of all retained elements, written while it is sent.

    Args:
        iris: the IRIs of the stream.
        iri: the IRI of the list.
        state: the state of the stream.
        media_type: one of `rdf.OFFERED`.
    """
    sequences = range(state.first, state.next)
    head = {**_head(iris, iri), **_bounds(sequences)}
    parts = (
        [iris.element(sequence) for sequence in sequences[start : start + LISTED]]
        for start in range(0, len(sequences), LISTED)
    )
    _, before = serialize(head, media_type)
    if media_type == RDF_XML.media_type:
        start, end = before.rpartition(b"</rdf:RDF>")[::2]
        yield start + f'<rdf:Description rdf:about={quoteattr(iri)} xmlns:ldp="{LDP}">\n'.encode()
        for part in parts:
            yield "".join(
                f"<ldp:contains rdf:resource={quoteattr(each)}/>\n" for each in part
            ).encode()
        yield b"</rdf:Description>\n</rdf:RDF>" + end
    elif media_type in (JSON_LD.media_type, JSON):
        yield before.rstrip().removesuffix(b"}").rstrip() + b',\n "contains": ['
        between = "\n  "
        for part in parts:
            yield (between + ",\n  ".join(map(json.dumps, part))).encode()
            between = ",\n  "
        yield b"\n ]\n}"
    else:
        # a line is a statement in N-Triples, N-Quads, and Turtle and TriG, which declare the prefix
        contains = (
            "ldp:contains"
            if media_type in (TURTLE.media_type, TRIG.media_type)
            else f"<{LDP}contains>"
        )
        yield before
        for part in parts:
            yield "".join(f"<{iri}> {contains} <{each}> .\n" for each in part).encode()


def _head(iris: StreamIris, iri: str) -> Document:
    return {"@context": CONTEXT, "@id": iri, "@type": "ldp:Container", Property.STREAM: iris.stream}


def _bounds(sequences: range) -> Document:
    if not sequences:
        return {}
    return {Property.FIRST_SEQUENCE: sequences[0], Property.LAST_SEQUENCE: sequences[-1]}
