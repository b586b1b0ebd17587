"""Documents of N-Quads for properties: good ones, and some that are joined, repeated, cut or damaged."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from construct_messages import Message, Quad, blank, iri, literal
from construct_messages.logs.lines.decoder import StatementLines
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import Wire
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import make_quads
from construct_messages.rdf.terms import has_blank, number
from construct_messages.rdf.terms.libraries import rows_in
from tests.support.places import absent
from tests.support.strategies import messages

LINE: Final = b'<urn:s> <urn:p> "o"@en .\n'

_UNIQUE: Final = Labels("bcdfghjkmnpq")  # as this package makes them, which readers keep

_BROKEN = (
    r'#|# @message\n|.|<|>|"|\|_:|_:b|MESSAGE\n|VERSION "1.2"\n|VERSION "1.2-messages"\n|@en'
    "|@en--ltr|^^|<<( | )>>|<urn:a b>|<r>"
).replace(r"\n", "\n")

_PIECES = st.sampled_from(
    [
        *(each.encode() for each in _BROKEN.split("|")),
        *(b"\n", b"\r\n", b"\r", b" ", b"\x00", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xe2\x80\xa8"),
        *(LINE, LINE.replace(b" .", b" <urn:g> ."), LINE.replace(b" .", b" . # a comment")),
    ]
)


_PLAIN = st.lists(
    st.builds(
        Quad,
        st.sampled_from([iri("urn:s"), blank("a"), iri("http://example.org/é")]),
        st.sampled_from([iri("urn:p"), iri("http://example.org/p#q")]),
        st.sampled_from(
            [*map(number, "12345"), literal("é", language="fr"), literal('"_:a"'), blank("a")]
        ),
        st.sampled_from([None, None, iri("urn:g"), blank("g")]),
    ),
    min_size=1,
).map(Message)
"""Messages that have triple terms and odd characters nowhere."""


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """The N-Quads of a message; sometimes with labels that are unique, joined, repeated, cut or damaged."""
    log = draw(messages() | st.lists(_PLAIN, min_size=1, max_size=2))
    if draw(st.sampled_from([True, True, False])):
        log = [message.map_blanks(_UNIQUE.in_log) for message in log]
    document = b"".join(message.lines for message in log[: draw(st.sampled_from([1, 1, 2]))])
    if draw(st.booleans()):
        return document
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(document)))
        end = draw(st.sampled_from([place, place, place + 1, len(document)]))
        document = document[:place] + draw(_PIECES | st.just(b"")) + document[end:]
    return document.replace(b"\n", draw(st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n"])))


def the_compiled_module() -> Wire:
    if compiled.wire is None:
        absent("the compiled module is absent: `python hatch_build.py` builds it by a C compiler")
    return compiled.wire


def taken(text: str, read: StatementLines) -> list[tuple[str, Quad]]:
    """The lines of a text that statements were read of, and these; asserts that all others are left in their places."""
    quads = list(make_quads(rows_in(read.terms)))
    assert len(read.others) == len(quads) + 1
    blanks = [place for place, term in enumerate(read.terms) if term and has_blank(term)]
    assert read.blanks == blanks
    found, end = [], 0
    for other, quad in zip(read.others, quads, strict=False):
        assert text.startswith(other, end)
        assert not other or other.endswith("\n"), "a statement begins a line"
        start = end + len(other)
        end = text.index("\n", start) + 1
        found.append((text[start : end - 1], quad))
    assert text[end:] == read.others[-1]
    return found
