"""`logs/rdfxml/`: what documents say, beside what rdflib and pyoxigraph read, fed whole and byte by byte."""

from __future__ import annotations

import io
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.rdfxml import DocumentLimits, NTriplesFile, RdfXmlError, RdfXmlParser
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, from_rdflib

ITS = "http://www.w3.org/2005/11/its"
NAMESPACES = f'xmlns:rdf="{RDF}" xmlns:e="urn:e:" xmlns:its="{ITS}"'
XML_LITERAL = f"^^<{RDF}XMLLiteral>"


class Dribble(io.BytesIO):
    """A file that gives a byte at a time."""

    def read(self, _size: int | None = -1) -> bytes:
        return super().read(1)


def statements(
    document: bytes | str,
    base: str | None = "http://base/doc",
    limits: DocumentLimits | None = None,
) -> Message:
    if isinstance(document, str):
        document = document.encode()
    whole = NTriplesFile(io.BytesIO(document), base, limits).read()
    assert NTriplesFile(Dribble(document), base, limits).read() == whole
    return to_message(ox.parse(whole, format=ox.RdfFormat.N_TRIPLES))


def of(body: str, attributes: str = "") -> str:
    return f"<rdf:RDF {NAMESPACES}{attributes}><rdf:Description rdf:about='urn:s'>{body}</rdf:Description></rdf:RDF>"


def triples(*lines: str) -> Message:
    return to_message(ox.parse("\n".join(lines), format=ox.RdfFormat.N_TRIPLES))


# What pyoxigraph's own reader drops, refuses or changes (issue 26, 7), and its kind
SAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "an unknown parseType": (
        of("<e:p rdf:parseType='daml:collection'><e:x/></e:p>"),
        (f'<urn:s> <urn:e:p> "<e:x xmlns:e=\\"urn:e:\\"></e:x>"{XML_LITERAL} .',),
    ),
    "an empty parseType": (
        of("<e:p rdf:parseType=''>a</e:p>"),
        (f'<urn:s> <urn:e:p> "a"{XML_LITERAL} .',),
    ),
    "an empty XML literal": (
        of("<e:p rdf:parseType='Literal'/>"),
        (f'<urn:s> <urn:e:p> ""{XML_LITERAL} .',),
    ),
    "an XML literal declares what it uses": (
        of("<e:p rdf:parseType='Literal'>a<b xmlns='urn:b'>c</b></e:p>"),
        (f'<urn:s> <urn:e:p> "a<b xmlns=\\"urn:b\\">c</b>"{XML_LITERAL} .',),
    ),
    "a base direction from around": (
        of(
            "<e:p>x</e:p><e:p e:q='y'/>",
            " rdf:version='1.2' its:version='2.0' its:dir='rtl' xml:lang='ar'",
        ),
        (
            '<urn:s> <urn:e:p> "x"@ar--rtl .',
            "<urn:s> <urn:e:p> _:o .",
            '_:o <urn:e:q> "y"@ar--rtl .',
        ),
    ),
    "a base direction taken back": (
        of(
            "<e:p its:dir=''>x</e:p>",
            " rdf:version='1.2' its:version='2.0' its:dir='rtl' xml:lang='ar'",
        ),
        ('<urn:s> <urn:e:p> "x"@ar .',),
    ),
    "no language": (of("<e:p xml:lang=''>x</e:p>", " xml:lang='en'"), ('<urn:s> <urn:e:p> "x" .',)),
    "no language in a node": (
        f"<e:C {NAMESPACES} rdf:about='urn:s' xml:lang='en' e:p='x'><e:q><e:C xml:lang='' rdf:about='urn:t' e:p='x'/>"
        "</e:q></e:C>",
        (
            f"<urn:s> <{RDF}type> <urn:e:C> .",
            '<urn:s> <urn:e:p> "x"@en .',
            "<urn:s> <urn:e:q> <urn:t> .",
            f"<urn:t> <{RDF}type> <urn:e:C> .",
            '<urn:t> <urn:e:p> "x" .',
        ),
    ),
    "a comment amid text": (of("<e:p>a<!-- c -->b</e:p>"), ('<urn:s> <urn:e:p> "ab" .',)),
    "an instruction amid text": (of("<e:p>a<?i d?>b</e:p>"), ('<urn:s> <urn:e:p> "ab" .',)),
    "CDATA amid text": (of("<e:p>a<![CDATA[<b>]]>c</e:p>"), ('<urn:s> <urn:e:p> "a<b>c" .',)),
    "a comment beside a node": (
        of("<e:p><!-- c --><e:C rdf:about='urn:o'/><!-- d --> </e:p>"),
        ("<urn:s> <urn:e:p> <urn:o> .", f"<urn:o> <{RDF}type> <urn:e:C> ."),
    ),
    "a comment alone": (of("<e:p><!-- c --></e:p>"), ('<urn:s> <urn:e:p> "" .',)),
    "blanks alone": (of("<e:p> \n</e:p>"), ('<urn:s> <urn:e:p> " \\n" .',)),
    "a resource over two lines": (
        of("<e:p rdf:resource='urn:o'>\n</e:p>"),
        ("<urn:s> <urn:e:p> <urn:o> .",),
    ),
    "labels that are names of XML": (
        of("<e:p rdf:nodeID='a.'/><e:q rdf:nodeID='b0'/><e:q rdf:nodeID='a.'/><e:q><e:C/></e:q>"),
        (
            "<urn:s> <urn:e:p> _:a .",
            "<urn:s> <urn:e:q> _:a .",
            "<urn:s> <urn:e:q> _:b .",
            "<urn:s> <urn:e:q> _:c .",
            f"_:c <{RDF}type> <urn:e:C> .",
        ),
    ),
    "a namespace that looks like an attribute of XML": (
        f"<e:C {NAMESPACES} xmlns:x='xml:l' rdf:about='urn:s' x:ang='en'/>",
        (f"<urn:s> <{RDF}type> <urn:e:C> .", '<urn:s> <xml:lang> "en" .'),
    ),
    "where the schema is": (
        of(
            "<e:p>x</e:p>",
            ' xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:schemaLocation="urn:a a.xsd"',
        ),
        ('<urn:s> <urn:e:p> "x" .',),
    ),
    "bases in each other": (
        f"<rdf:RDF {NAMESPACES} xml:base='a/b#c'><rdf:Description rdf:ID='i' xml:base='../d/'><e:p rdf:resource='?q'/>"
        "</rdf:Description><e:C rdf:about=''/></rdf:RDF>",
        (
            "<http://base/d/#i> <urn:e:p> <http://base/d/?q> .",
            f"<http://base/a/b> <{RDF}type> <urn:e:C> .",
        ),
    ),
}


@pytest.mark.parametrize("case", SAYS)
def test_what_a_document_says(case: str) -> None:
    document, lines = SAYS[case]
    assert statements(document).isomorphic(triples(*lines))


REFUSED = {
    "rdf:bagID": (of("<e:p rdf:bagID='b'>x</e:p>"), "bagID was withdrawn"),
    "rdf:bagID of a node": (f"<e:C {NAMESPACES} rdf:bagID='b'/>", "bagID was withdrawn"),
    "rdf:aboutEach": (f"<e:C {NAMESPACES} rdf:aboutEach='b'/>", "aboutEach was withdrawn"),
    "rdf:li as an attribute": (f"<e:C {NAMESPACES} rdf:li='b'/>", "rdf:li is an element"),
    "an attribute of rdf:RDF": (of("", " e:x='y'"), "<urn:e:x>, which belongs to no node"),
    "an attribute in no namespace": (f"<e:C {NAMESPACES} x='y'/>", "x is in no namespace"),
    "an element in no namespace": (f"<e:C {NAMESPACES}><x/></e:C>", "x is in no namespace"),
    "two values": (
        of("<e:p rdf:resource='urn:a' rdf:nodeID='b'/>"),
        "rdf:resource and rdf:nodeID: a property has one",
    ),
    "a value and properties of a literal": (
        of("<e:p rdf:datatype='urn:d' e:q='x'/>"),
        "a property has one value",
    ),
    "a literal of XML with properties": (
        of("<e:p rdf:parseType='Literal' e:q='x'/>"),
        "a property has one value",
    ),
    "a second node": (of("<e:p><e:C/><e:C/></e:p>"), "a second node"),
    "text behind a node": (of("<e:p><e:C/>x</e:p>"), "the text 'x' beside a node"),
    "a node behind text": (of("<e:p>x<e:C/></e:p>"), "an element next to the text 'x'"),
    "a node of a datatype": (of("<e:p rdf:datatype='urn:d'><e:C/></e:p>"), "whose value is text"),
    "text in a collection": (
        of("<e:p rdf:parseType='Collection'>x</e:p>"),
        "'x' where elements stand",
    ),
    "content of a resource": (
        of("<e:p rdf:resource='urn:o'>x</e:p>"),
        "whose value is an attribute",
    ),
    "two names": (f"<e:C {NAMESPACES} rdf:about='urn:a' rdf:ID='b'/>", "a node has one name"),
    "a name that is none": (f"<e:C {NAMESPACES} rdf:ID='1'/>", "rdf:ID='1' is no name"),
    "a name twice": (
        f"<rdf:RDF {NAMESPACES}><e:C rdf:ID='a'/><e:C rdf:ID='a'/></rdf:RDF>",
        "occurs twice",
    ),
    "a language that is none": (of("<e:p xml:lang='en_US'>x</e:p>"), "'en_US' is no language tag"),
    "a direction that is none": (of("<e:p its:dir='up'/>", " rdf:version='1.2'"), "its:dir='up'"),
    "two triples": (
        of("<e:p rdf:parseType='Triple'><e:C e:p='x'/></e:p>", " rdf:version='1.2'"),
        "contains 2 triples instead of one",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    document, words = REFUSED[case]
    with pytest.raises(RdfXmlError) as refused:
        statements(document)
    assert words in str(refused.value)
    assert refused.value.lineno == 1
    assert refused.value.offset is not None
    assert document[refused.value.offset - 1] in "<x"  # a tag, or the text


def test_an_error_is_where_it_is() -> None:
    """Also one that the parser of N-Triples finds, within pieces and behind many of them."""
    lines = [
        f"<rdf:RDF {NAMESPACES}>",
        *["<e:C rdf:about='urn:s'/>"] * 20_000,
        "  <e:C e:p='\ufffd' xml:lang='e'/>",
    ]
    file: Any = NTriplesFile(io.BytesIO("\n".join([*lines, "</rdf:RDF>"]).encode()))
    with pytest.raises(SyntaxError) as found:
        list(ox.parse(file, format=ox.RdfFormat.N_TRIPLES))
    error = file.located(found.value)
    assert (error.lineno, error.offset) == (20_002, 3)
    assert "subtag" in str(error)


def test_triple_terms_without_a_version(caplog: pytest.LogCaptureFixture) -> None:
    """As the W3C's test has it, nothing; but not without a word."""
    assert statements(of("<e:p rdf:parseType='Triple'><e:C/></e:p>")) == Message()
    assert 'rdf:parseType="Triple" is ignored' in caplog.text


# --- other readers ---

TEXTS = st.text("ab<&>'\" \n\té", max_size=4)
REFERENCES = st.sampled_from(["urn:a", "b", "", "#c", "?d", "../e", "//h/f", "http://e/./g/../h"])
LANGUAGE = st.sampled_from(["", " xml:lang='en'", " xml:lang='de-AT'"])
BASE = st.sampled_from(["", "", " xml:base='http://other/x/y'", " xml:base='z/'"])
LABELS = st.sampled_from(["n1", "n2"])


def written(text: str) -> str:
    return "".join(char if char.isalnum() else f"&#{ord(char)};" for char in text)


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2) -> str:
    name = draw(st.sampled_from(["rdf:Description", "e:C", "rdf:Bag"]))
    identity = draw(
        st.one_of(
            st.just(""),
            REFERENCES.map(lambda iri: f" rdf:about='{iri}'"),
            LABELS.map(lambda label: f" rdf:nodeID='{label}'"),
        )
    )
    attributes = draw(
        st.dictionaries(st.sampled_from(["e:a", "e:b", "rdf:value"]), TEXTS, max_size=2)
    )
    if draw(st.booleans()):
        attributes["rdf:type"] = draw(REFERENCES)
    properties = draw(st.lists(property_elements(depth), max_size=3))
    said = "".join(
        f" {key}='{written(value) if key != 'rdf:type' else value}'"
        for key, value in attributes.items()
    )
    return f"<{name}{identity}{draw(LANGUAGE)}{draw(BASE)}{said}> {' '.join(properties)}\n</{name}>"


@st.composite
def property_elements(draw: st.DrawFn, depth: int) -> str:
    name = draw(st.sampled_from(["e:p", "e:q", "rdf:li", "rdf:_3"]))
    kinds = ["text", "typed", "resource", "node ID", "empty", "properties"]
    kind = draw(
        st.sampled_from([*kinds, "node", "parse Resource", "parse Collection"] if depth else kinds)
    )
    start = f"<{name}{draw(LANGUAGE)}{draw(BASE)}"
    end = f"</{name}>"
    if kind == "text":
        return f"{start}>{written(draw(TEXTS))}{end}"
    if kind == "typed":
        return f"{start} rdf:datatype='urn:d'>{written(draw(TEXTS))}{end}"
    if kind == "resource":
        return f"{start} rdf:resource='{draw(REFERENCES)}'/>"
    if kind == "node ID":
        return f"{start} rdf:nodeID='{draw(LABELS)}'/>"
    if kind == "empty":
        return f"{start}/>"
    if kind == "properties":
        return f"{start} e:a='{written(draw(TEXTS))}' e:b='x'/>"
    if kind == "node":
        return f"{start}>{draw(nodes(depth - 1))}{end}"
    if kind == "parse Resource":
        return (
            f"{start} "
            f"rdf:parseType='Resource'>{''.join(draw(st.lists(property_elements(depth - 1), max_size=2)))}{end}"
        )
    return f"{start} rdf:parseType='Collection'>{''.join(draw(st.lists(nodes(depth - 1), max_size=3)))}{end}"


DOCUMENTS = st.lists(nodes(), max_size=3).map(
    lambda found: f"<?xml version='1.0'?>\n<rdf:RDF {NAMESPACES}>{''.join(found)}</rdf:RDF>"
)


@pytest.mark.slow
@given(
    DOCUMENTS.filter(lambda document: "xml:base='z/'" not in document)
)  # pyoxigraph takes no relative base
def test_pyoxigraph_reads_the_same(document: str) -> None:
    theirs = to_message(ox.parse(document, format=ox.RdfFormat.RDF_XML, base_iri="http://base/doc"))
    assert statements(document).isomorphic(theirs)


@given(
    DOCUMENTS.filter(lambda document: "/./" not in document)
)  # rdflib removes dots from IRIs that are absolute
def test_rdflib_reads_the_same(document: str) -> None:
    graph = rdflib.Graph().parse(data=document, format="xml", publicID="http://base/doc")
    theirs = Message(Quad(*map(from_rdflib, triple)) for triple in graph)
    ours = Message(dict.fromkeys(statements(document)))
    assert ours.isomorphic(theirs)


# --- what files may have and logs may not: a DOCTYPE, other encodings ---


def doctype(declarations: str, body: str, external: str = "") -> str:
    return f"<!DOCTYPE rdf:RDF{external} [{declarations}]>\n{of(body)}"


def test_entities_of_the_document_are_expanded() -> None:
    document = doctype(
        f'<!ENTITY xsd "{XSD}"><!ENTITY e "é&#38;amp;">', "<e:p rdf:datatype='&xsd;token'>&e;</e:p>"
    )
    assert statements(document) == triples(f'<urn:s> <urn:e:p> "é&"^^<{XSD}token> .')


@pytest.mark.parametrize(
    "declaration", ["", '<?xml version="1.0"?>\n', "<?xml version='1.0' standalone='no'?>"]
)
@pytest.mark.parametrize("body", ["<e:p>a&nbsp;b</e:p>", "<e:p e:q='a&nbsp;b'/>"])
def test_an_entity_that_is_not_declared_is_an_error(declaration: str, body: str) -> None:
    """Also where an external DTD may declare it, so that XML would let it be skipped: no DTD is fetched."""
    for external in (
        "",
        ' SYSTEM "http://127.0.0.1:9/a.dtd"',
        ' PUBLIC "-//A//B" "file:///etc/passwd"',
    ):
        document = declaration + doctype("", body, external)
        with pytest.raises(RdfXmlError, match="undefined entity") as refused:
            statements(document)
        assert refused.value.lineno == document.count("\n") + 1
        text = document.splitlines()[-1]
        assert refused.value.offset is not None
        assert text[refused.value.offset - 1] in "<&"


def test_an_external_dtd_is_not_fetched_and_needs_not_be() -> None:
    document = doctype("", "<e:p>x</e:p>", ' SYSTEM "http://127.0.0.1:9/a.dtd"')
    assert statements(document) == triples('<urn:s> <urn:e:p> "x" .')
    with pytest.raises(RdfXmlError, match="external DTD"):
        statements(document.encode("utf-16"))


def test_a_parameter_entity_is_not_fetched_and_declares_nothing() -> None:
    """As documents of RSS 1.0 have one, of the entities of Latin 1."""
    latin = '<!ENTITY % l PUBLIC "-//W3C//ENTITIES Latin 1 for XHTML//EN" "http://127.0.0.1:9/l.ent"> %l;'
    assert statements(doctype(latin, "<e:p>x</e:p>")) == triples('<urn:s> <urn:e:p> "x" .')
    for body in ("<e:p>&eacute;</e:p>", "<e:p e:q='&eacute;'/>"):
        with pytest.raises(RdfXmlError, match="undefined entity"):
            statements(doctype(latin, body))


@pytest.mark.parametrize(
    "kind", ["SYSTEM 'file:///etc/passwd'", "PUBLIC '-//A' 'http://127.0.0.1:9/'"]
)
def test_an_external_entity_is_an_error(kind: str) -> None:
    with pytest.raises(RdfXmlError, match="nothing is ever fetched"):
        statements(doctype(f"<!ENTITY x {kind}>", "<e:p>a&x;b</e:p>"))


def test_entities_in_entities_are_bounded() -> None:
    laughs = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(30)
    )
    with pytest.raises(RdfXmlError, match="amplification"):
        statements(doctype(laughs, "<e:p>&a30;</e:p>"))
    with pytest.raises(RdfXmlError, match="amplification"):
        statements(doctype(f'<!ENTITY x "{"x" * 100_000}">', f"<e:p>{'&x;' * 10_000}</e:p>"))


def test_a_namespace_that_makes_much_is_bounded() -> None:
    for body in ("<l:p>x</l:p>" * 9000, f"<e:p rdf:parseType='Literal'>{'<l:p/>' * 9000}</e:p>"):
        document = of(body, f' xmlns:l="urn:{"l" * 100_000}"').encode()
        with pytest.raises(LimitExceeded, match=r"more than [0-9]+ characters as N-Quads"):
            NTriplesFile(io.BytesIO(document)).read()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "iso-8859-1", "windows-1252", "utf-16"])
def test_encodings(encoding: str) -> None:
    declared = (
        encoding
        if encoding not in ("utf-8-sig", "utf-16")
        else "utf-8"
        if "8" in encoding
        else "utf-16"
    )
    document = f"<?xml version='1.0' encoding='{declared}'?>\n{of('<e:p>é</e:p>')}".encode(encoding)
    assert statements(document) == triples('<urn:s> <urn:e:p> "é" .')


def test_a_document_that_is_cut_is_an_error() -> None:
    """At every byte; what stands before the cut is not taken for all of it."""
    document = of("<e:p>é</e:p><e:q rdf:parseType='Literal'><e:x/></e:q>").encode()
    for end in range(len(document)):
        parser = RdfXmlParser()
        parser.feed(document[:end])
        with pytest.raises(RdfXmlError):
            parser.close()
