"""`logs/rdfxml/productions.py`: lxml's exclusive canonical XML is the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from construct_messages.logs import DecoderOptions
from construct_messages.logs.rdfxml.decoder import read_document
from construct_messages.rdf.formats import RDF_XML
from construct_messages.rdf.terms import RDF, literal_parts

DECLARED = (
    'xmlns:a="urn:a" xmlns:b="urn:a" xmlns:c="urn:c" xmlns:unused="urn:unused" xmlns="urn:default"'
)


def found(content: str) -> str:
    """What the reader makes of an XML literal."""
    document = (
        f'<r:RDF xmlns:r="{RDF}" {DECLARED}><r:Description r:about="urn:s">'
        f'<c:p r:parseType="Literal">{content}</c:p></r:Description></r:RDF>'
    )
    ((quad,),) = read_document(RDF_XML, document.encode(), DecoderOptions())
    value, datatype, _, _ = literal_parts(quad.object)
    assert datatype == f"{RDF}XMLLiteral"
    return value


def expected(content: str) -> str:
    """What lxml makes of it, in an element whose start tag declares nothing that the content uses."""
    root = etree.fromstring(
        f'<around:it xmlns:around="urn:around" {DECLARED}>{content}</around:it>'
    )
    canonical = etree.tostring(root, method="c14n", exclusive=True, with_comments=True).decode()
    start, end = '<around:it xmlns:around="urn:around">', "</around:it>"
    assert canonical.startswith(start)
    return canonical.removeprefix(start).removesuffix(end)


CASES = {
    "nothing": "",
    "text": "a &lt; b &amp; c &gt; d &#13;",
    "an empty element": "<a:x/>",
    "two prefixes of one namespace": "<a:x><b:x/><a:x b:y='1' a:z='2'/></a:x>",
    "the default namespace, and none": '<x><y xmlns=""/><y xmlns="urn:y"><z/></y></x>',
    "siblings": "<a:x/><c:x/><a:x/>",
    "a prefix declared anew": '<a:x xmlns:a="urn:other"><a:y/></a:x><a:x/>',
    "attributes in order": "<a:x z='1' y='2' c:a='3' a:b='4' xml:lang='de'/>",
    "attributes escaped": '<a:x y="&lt;&quot;&#9;&#10;&#13;&amp;>\'"/>',
    "comments, instructions and CDATA": "<!-- a --><a:x><?p  q ?><!----><![CDATA[<&>]]></a:x><?p?>",
    "unused declarations": '<a:x xmlns:d="urn:d"><d:y/></a:x>',
    "line ends": "\r\n<a:x\ty='a\r\nb'\r>\r</a:x>\n",
}


@pytest.mark.parametrize("case", CASES)
def test_a_literal_is_canonical(case: str) -> None:
    assert found(CASES[case]) == expected(CASES[case])


NAMES = st.sampled_from(["a:x", "b:x", "c:y", "z"])
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        [
            "a:m",
            "c:n",
            "o",
            "xml:space",
            "xmlns:a='urn:n' p",
            "xmlns='urn:o' q",
            "xmlns:e='urn:e' e:f",
        ]
    ),
    st.text("<&>\"'\t\r\n é\U0001f600", max_size=3),
    max_size=2,
)
TEXT = st.text("<&>\r\n é", max_size=4)


def written(text: str) -> str:
    """A text as XML, whether in a tag or between tags."""
    return "".join(char if char in " é" else f"&#{ord(char)};" for char in text)


def element(name: str, attributes: dict[str, str], content: list[str]) -> str:
    tag = "".join(f" {key}='{written(value)}'" for key, value in attributes.items())
    return f"<{name}{tag}>{''.join(content)}</{name}>"


CONTENT = st.recursive(
    TEXT.map(written) | st.sampled_from(["<!--c-->", "<?p i?>", "<![CDATA[<]]>"]),
    lambda inner: st.builds(element, NAMES, ATTRIBUTES, st.lists(inner, max_size=3)),
    max_leaves=8,
)


@given(st.lists(CONTENT, max_size=3).map("".join))
def test_any_literal_is_canonical(content: str) -> None:
    assert found(content) == expected(content)
