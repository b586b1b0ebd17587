"""Other readers of JSON-LD make the same of the lines of a log."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.errors import UnsupportedByFormat
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, literal, parse_term
from tests.support.logs.cases.jsonld import LINES, LOGS, P, S, log, message, parse
from tests.support.logs.json_ld import by_jsonld_js, by_pyld, by_pyoxigraph
from tests.support.logs.kinds import isomorphic, read
from tests.support.strategies import messages

# --- peers --------------------------------------------------------------------------------------------------------

PEERS = {"PyLD": by_pyld, "pyoxigraph": by_pyoxigraph, "jsonld.js": by_jsonld_js}

DIRECTION = re.compile(r"--(?:ltr|rtl)$")
# JSON-LD 1.1 drops directions; both rewrite the digits of doubles; neither takes an IRI that holds white space for one
CHANGED = re.compile(rf"\^\^<{XSD}double>$")


def as_of_1_1(each: Message) -> Message:
    return Message(
        Quad(s, p, Term(DIRECTION.sub("", o)) if o.startswith('"') else o, g) for s, p, o, g in each
    )


def documents_of(text: str) -> list[Any]:
    """The documents that a log's lines are, by the rule of the specification."""
    found, context = [], None
    for line in text.split("\n")[:-1]:
        document = json.loads(line)
        if document.keys() == {"@context"}:
            context = document["@context"]
        else:
            found.append(document if context is None else {"@context": context, "@graph": document})
    return found


READABLE = {case: written for case, (written, _, _) in LOGS.items() if case != "literals"} | {
    "literals": [
        message(
            (S, P, literal("{ }", datatype=RDF + "JSON")),
            (S, P, literal("01.50", datatype=XSD + "decimal")),
            (S, P, literal("x", language="ar", direction="rtl")),
            (S, P, literal('"\\\n\t\u2028\x00\x7f')),
        )
    ]
}


@pytest.mark.parametrize("peer", PEERS)
def test_peers_read_each_line(peer: str) -> None:
    documents, expected = [], []
    for case, written in READABLE.items():
        for prefixes in (
            LOGS[case][1],
            {},
            {"ex": "http://example.org/", "a": "http://example.org/a"},
        ):
            documents += documents_of(log(written, prefixes))
            expected += written
    found = [parse(quads) for quads in PEERS[peer](documents)]
    if peer != "pyoxigraph":
        expected = [as_of_1_1(each) for each in expected]
    assert isomorphic(found, expected)


prefixes_ = st.dictionaries(
    st.sampled_from(["", "ex", "a", "e.x", "é-1", "urn", "http", "true", "@type", "_", "prefix"]),
    st.sampled_from(
        [
            "http://example.org/",
            "http://example.org/a",
            "http://example.org/a#",
            "urn:x:",
            "urn:",
            "ex:",
            XSD,
        ]
    ),
)


@settings(max_examples=60)
@given(messages(triple_terms=False), prefixes_)
def test_pyld_and_pyoxigraph_read_whatever_is_written(
    written: list[Message], prefixes: dict[str, str]
) -> None:
    try:
        documents = documents_of(log(written, prefixes))
    except UnsupportedByFormat:
        event("refused")
        return
    assert isomorphic([parse(quads) for quads in by_pyoxigraph(documents)], written)
    if not any(
        CHANGED.search(quad.object) or re.search(r"<[^>]*\s", str(quad))
        for each in written
        for quad in each
    ):
        event("read by PyLD")
        assert isomorphic(
            [parse(quads) for quads in by_pyld(documents)], [as_of_1_1(each) for each in written]
        )


def test_doubles_keep_their_digits_here_and_in_pyoxigraph_only() -> None:
    written = [message((S, P, literal("1.50", datatype=XSD + "double")))]
    documents = documents_of(log(written))
    assert read([log(written).encode()], LINES).messages == written
    assert isomorphic([parse(quads) for quads in by_pyoxigraph(documents)], written)
    canonical = [message((S, P, parse_term(f'"1.5E0"^^<{XSD}double>')))]
    assert [parse(quads) for quads in by_pyld(documents)] == canonical
    assert [parse(quads) for quads in by_jsonld_js(documents)] == canonical
