"""What XML results hold, and what is no such document."""

from __future__ import annotations

import pytest

from construct_messages.errors import IncompleteResult
from construct_messages.sparql.results.xml import XmlDecoder

ROOT = '<sparql xmlns="http://www.w3.org/2005/sparql-results#">'
END = "</sparql>"


def decode(document: str | bytes) -> list[tuple[str, ...]]:
    decoder = XmlDecoder(("x",))
    data = document.encode() if isinstance(document, str) else document
    solutions = [solution for batch in decoder.feed(data) for solution in batch]
    return solutions + [solution for batch in decoder.close() for solution in batch]


def one(binding: str) -> str:
    return f'{ROOT}<results><result><binding name="x">{binding}</binding></result></results>{END}'


@pytest.mark.parametrize(
    ("document", "values"),
    [
        (one("<literal/>"), ['""']),
        (one("<literal> a\n<!-- b --><![CDATA[<c>]]></literal>"), ['" a\\n<c>"']),
        (one('\n <literal xml:lang="EN">&lt;&#233;&amp;</literal>\n'), ['"<é&"@en']),
        (one("<uri>http://x y/&lt;a&gt;</uri>"), ["<http://x%20y/%3Ca%3E>"]),
        (one("<bnode>nodeID://b1</bnode>"), ["_:D6e6f646549443a2f2f6231"]),
        (
            f'{ROOT}<head><link href="a"/><variable name="x"/></head><results ordered="true"><result/></results>{END}',
            [""],
        ),
        (f"{ROOT}<results/>{END}<!-- the end -->\n", []),
        ('<r:sparql xmlns:r="http://www.w3.org/2005/sparql-results#"><r:results/></r:sparql>', []),
        (
            f'<?xml version="1.0" encoding="ISO-8859-1"?>{one("<literal>é</literal>")}'.encode(
                "latin-1"
            ),
            ['"é"'],
        ),
    ],
)
def test_read(document: str | bytes, values: list[str]) -> None:
    assert decode(document) == [(value,) for value in values]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "no element found"),
        ("<html><body/></html>", "unexpected element 'html' in 'the document'"),
        ("<sparql><results/></sparql>", "unexpected element 'sparql' in 'the document'"),
        (f"<!DOCTYPE html>{ROOT}<results/>{END}", "it has a DOCTYPE"),
        (f'<!DOCTYPE x [<!ENTITY a "b">]>{one("<literal>&a;</literal>")}', "it has a DOCTYPE"),
        (f"{ROOT}<boolean>true</boolean>{END}", "got the result of an ASK"),
        (f"{ROOT}<head/>{END}", "has no results element"),
        (
            one("<literal>&#8;</literal>"),
            "after solution 0: reference to invalid character number",
        ),
        (one("<literal>\x08</literal>"), "not well-formed"),
        (one(""), "a binding of 0 terms"),
        (one("<uri>urn:a</uri><uri>urn:b</uri>"), "a binding of 2 terms"),
        (one("<thing/>"), "unexpected element 'thing' in 'binding'"),
        (one("text"), "unexpected text 'text' in 'binding'"),
        (one("<uri>a</uri>"), "solution 1 of the XML result: IRI <a> is relative"),
        (one("<triple><subject><uri>urn:a</uri></subject></triple>"), "a triple term of subject"),
        (one("<triple/>"), "a triple term of nothing"),
        (
            f"{ROOT}<results>The query was cancelled</results>{END}",
            "unexpected text 'The query was cancelled'",
        ),
        (f"{ROOT}<results/>{END}<results/>", "junk after document element"),
    ],
)
def test_refused(document: str, words: str) -> None:
    with pytest.raises(IncompleteResult, match=words):
        decode(document)
