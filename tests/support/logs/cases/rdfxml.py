"""RDF/XML logs as data: messages, the documents that they become, and names that XML has or has not."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import strategies as st

from construct_messages.rdf.formats import RDF_XML
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, XSD, Term, from_rdflib, iri, literal
from tests.support.logs.kinds import Kind, single_bytes, write
from tests.support.strategies import IRIS, LITERALS, TEXT, is_resolved

KIND = Kind(RDF_XML, RDF_XML.own)
PREFIXES = {"ex": "http://example.org/", "exa": "http://example.org/a", "": "urn:x:", "xsd": XSD}
EX = ' xmlns:ex="http://example.org/"'
EMPTY = f'<rdf:RDF xmlns:rdf="{RDF}"/>\n'


def ex(local: str) -> Term:
    return iri(f"http://example.org/{local}")


S, P, O = map(ex, "spo")  # noqa: E741 - the usual letter for an object


def message(*quads: tuple[Term, ...]) -> Message:
    return Message(Quad(*quad) for quad in quads)


Split = Callable[[bytes], list[bytes]]


def document(body: str, namespaces: str = "") -> str:
    return f'<rdf:RDF xmlns:rdf="{RDF}"{namespaces}>{body}</rdf:RDF>\n'


def described(
    body: str, namespaces: str = EX, about: str = 'rdf:about="http://example.org/s"'
) -> str:
    return document(f"<rdf:Description {about}>{body}</rdf:Description>", namespaces)


def log(*messages: Message, prefixes: dict[str, str] | None = PREFIXES) -> bytes:
    return write(messages, KIND, prefixes)


SPLIT = pytest.mark.parametrize(
    "split", [lambda log: [log], single_bytes], ids=["whole", "byte by byte"]
)

LOGS = {
    "no message": ([], ""),
    "an empty one": ([Message()], EMPTY),
    "one": ([message((S, P, O))], described('<ex:p rdf:resource="http://example.org/o"/>')),
    "empty ones": (
        [Message(), message((S, P, O)), Message(), Message()],
        EMPTY + described('<ex:p rdf:resource="http://example.org/o"/>') + EMPTY + EMPTY,
    ),
    "a subject at a time": (
        [message((S, P, O), (O, P, S), (S, iri(RDF + "type"), O))],
        document(
            '<rdf:Description rdf:about="http://example.org/s"><ex:p rdf:resource="http://example.org/o"/>'
            '<rdf:type rdf:resource="http://example.org/o"/></rdf:Description>'
            '<rdf:Description rdf:about="http://example.org/o"><ex:p rdf:resource="http://example.org/s"/>'
            "</rdf:Description>",
            EX,
        ),
    ),
    "labels that are names in XML, and others": (
        [
            message((Term("_:d1.2"), P, Term("_:0")), (Term("_:0"), P, Term("_:d1.2"))),
            message((S, P, Term("_:x-30"))),
        ],
        document(
            '<rdf:Description rdf:nodeID="d1.2"><ex:p rdf:nodeID="x-30"/></rdf:Description>'
            '<rdf:Description rdf:nodeID="x-30"><ex:p rdf:nodeID="d1.2"/></rdf:Description>',
            EX,
        )
        + described('<ex:p rdf:nodeID="x-782d3330"/>'),
    ),
    "each declares the prefixes it uses": (
        [
            message((S, iri("urn:x:p"), O), (S, iri("urn:y:p"), O), (S, iri("urn:z:p"), O)),
            message((S, ex("ab"), O)),
        ],
        described(
            '<p rdf:resource="http://example.org/o"/><ns2:p rdf:resource="http://example.org/o"/>'
            '<ns3:p rdf:resource="http://example.org/o"/>',
            ' xmlns="urn:x:" xmlns:ns2="urn:y:" xmlns:ns3="urn:z:"',
        )
        + described(
            '<exa:b rdf:resource="http://example.org/o"/>', ' xmlns:exa="http://example.org/a"'
        ),
    ),
}


def rdflib_agrees(written: Message) -> bool:
    """Whether rdflib reads the same graph from RDF/XML as from N-Triples; it rewrites some literals in both."""
    graphs = [rdflib.Graph().parse(data=log(written), format="xml"), rdflib.Graph()]
    graphs[1].parse(data="".join(f"{quad}\n" for quad in written), format="nt")
    one, other = (Message(Quad(*map(from_rdflib, triple)) for triple in graph) for graph in graphs)
    return one.isomorphic(other)


# A predicate, and the name of its element with the namespace
NAMES = {
    "http://example.org/p": "ex:p http://example.org/",
    "http://example.org/": None,
    "http://example.org/abc": "exa:bc http://example.org/a",
    "http://example.org/a": "ex:a http://example.org/",
    "http://example.org/a1": "ex:a1 http://example.org/",
    "http://example.org/p/q": "ns1:q http://example.org/p/",
    "http://example.org/1p": "ns1:p http://example.org/1",
    "http://example.org/p-1.x_y": "ex:p-1.x_y http://example.org/",
    "http://example.org/Zürich": "ex:Zürich http://example.org/",
    "http://example.org/日本": "ex:日本 http://example.org/",
    "http://example.org/a\u0301": "ex:a\u0301 http://example.org/",
    # names of the fifth edition of XML, which expat does not know
    "http://example.org/\U00010400x": "ns1:x http://example.org/\U00010400",
    "http://example.org/\U00010400": None,
    "http://example.org/1": None,
    "http://example.org/p?q=1&r=s": "ns1:s http://example.org/p?q=1&r=",
    "urn:x:p": "p urn:x:",
    "urn:x:p:q": "ns1:q urn:x:p:",
    "a:b": "ns1:b a:",
    "a:": None,
    "http://www.w3.org/XML/1998/namespacelang": "ns1:namespacelang http://www.w3.org/XML/1998/",
    "http://www.w3.org/XML/1998/namespace/p": "ns1:p http://www.w3.org/XML/1998/namespace/",
    "http://www.w3.org/2000/xmlns/p": None,
    "http://www.w3.org/2000/xmlns/pq": "ns1:q http://www.w3.org/2000/xmlns/p",
    f"{RDF}type": f"rdf:type {RDF}",
    f"{RDF}_1": f"rdf:_1 {RDF}",
    f"{RDF}value": f"rdf:value {RDF}",
    f"{RDF}li": None,
    f"{RDF}Description": None,
    f"{RDF}aboutEach": None,
    f"{RDF}nodeID": None,
}


blanks = st.sampled_from([Term(f"_:{label}") for label in ("b0", "b1", "0", "d1.2", "B-1")])


def is_valid(value: str) -> bool:
    """Whether RFC 3987 knows such an IRI; what it does not, pyoxigraph refuses."""
    try:
        ox.NamedNode(value)
    except ValueError:
        return False
    return True


predicates = st.one_of(
    st.sampled_from([iri(name) for name, element in NAMES.items() if element]),
    st.text("ab1.-_%é/#?()~!;=&", min_size=1, max_size=8)
    .map(lambda text: f"http://example.org/{text}a")
    .filter(is_valid)
    .map(iri),
)


def is_carried(term: Term) -> bool:
    return not term.endswith(("--ltr", "--rtl")) and not re.search(
        r"\\u|\\[bf]|[\ufffe\uffff]", term
    )


nodes = IRIS.filter(is_resolved)
plain_literals = st.one_of(LITERALS, TEXT.map(literal)).filter(is_carried)
messages = st.lists(
    st.builds(
        Quad, nodes | blanks, predicates, st.one_of(nodes, blanks, plain_literals), st.none()
    ),
    max_size=6,
).map(Message)
prefixes = st.dictionaries(
    st.sampled_from(["", "ex", "ns", "ns1", "xml", "rdf", "é"]),
    st.sampled_from(["http://example.org/", "http://example.org/a", "urn:x:", RDF]),
)
