"""IRIs that readers of RDF/XML resolve into others: refused where they are resolved, written where they are not."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import encoder_for
from construct_messages.rdf.formats import RDF_XML
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Constant, Pattern, Template, Variable
from construct_messages.rdf.terms import Term, from_pyoxigraph, iri, literal
from tests.support.engines.servers import NODE
from tests.support.places import absent

assert RDF_XML.own is not None
OWN: Final = RDF_XML.own

RESOLVED: Final = {
    "http://e/./a/../b": "http://e/b",
    "http://e/a/./b": "http://e/a/b",
    "http://e/a/..": "http://e/",
    "http://e/.": "http://e/",
    "http://e//../a": "http://e/a",
    "http://e/a/../../..": "http://e/",
    "http://u@e:8/./?q#f": "http://u@e:8/?q#f",
    "http://[::1]/../a": "http://[::1]/a",
    "http://e/a;x=1/../b": "http://e/b",
    "http://e/é/../b": "http://e/b",
    "file:///a/../b": "file:///b",
    "mailto:a/../b": "mailto:a/b",
    "tag:e,2000:a/./b": "tag:e,2000:a/b",
}
"""By RFC 3986, section 5.2.2, where a reference with a scheme loses its dot segments too."""

KEPT: Final = (
    *(
        "http://e",
        "http://e/",
        "http://e/a/.b",
        "http://e/a..b",
        "http://e/a/...",
        "http://e//a",
        "http://e.",
    ),
    *(
        "http://e/a?x=/../b",
        "http://e/a#/../b",
        "http://e/?/./",
        "urn:a:../b",
        "http://e/%2E%2E/a",
        "x:",
    ),
)

PLACES: Final[dict[str, Callable[[str], Quad]]] = {
    "subject": lambda name: Quad(iri(name), iri("urn:x#p"), literal("o")),
    "object": lambda name: Quad(iri("urn:s"), iri("urn:x#p"), iri(name)),
    "datatype": lambda name: Quad(iri("urn:s"), iri("urn:x#p"), literal("o", datatype=name)),
}

PARSER: Final = """
const { RdfXmlParser } = require('rdfxml-streaming-parser');
const documents = JSON.parse(require('fs').readFileSync(0, 'utf8'));
Promise.all(documents.map((document) => new Promise((done, failed) => {
  const found = [];
  const parser = new RdfXmlParser({ baseIRI: 'http://base.example/a/b' });
  parser.on('data', (quad) => found.push([quad.subject.value, quad.predicate.value, quad.object.value,
    quad.object.termType === 'Literal' ? quad.object.datatype.value : null]));
  parser.on('error', failed);
  parser.on('end', () => done(found));
  parser.end(document);
}))).then((found) => console.log(JSON.stringify(found)));
"""


def document(quad: Quad) -> str:
    return encoder_for(RDF_XML, OWN).encode_document(Message([quad])).decode()


def terms(quad: Quad) -> list[str | None]:
    """The values of a triple and its datatype, as RDF/JS has them."""
    term = ox.parse(f"{quad}\n".encode(), format=ox.RdfFormat.N_TRIPLES)
    (parsed,) = term
    object = parsed.object
    datatype = object.datatype.value if isinstance(object, ox.Literal) else None
    return [parsed.subject.value, parsed.predicate.value, object.value, datatype]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", RESOLVED)
def test_what_becomes_another_iri_is_refused(name: str, place: str) -> None:
    quad = PLACES[place](name)
    with pytest.raises(
        UnsupportedByFormat, match="message 1: readers of RDF/XML resolve the dot segments of <"
    ):
        document(quad)
    with pytest.raises(UnsupportedByFormat, match="message 1: readers of RDF/XML resolve"):
        encoder_for(RDF_XML, OWN).encode(Message([quad]))


def test_a_variable_or_a_constant_of_a_template() -> None:
    for slot in (Variable(0), Constant(iri("http://e/./a"))):
        template = Template(
            ("x",), (Pattern(Constant(iri("urn:s")), Constant(iri("urn:x#p")), slot),)
        )
        encoder = encoder_for(RDF_XML, OWN).for_template(template)
        with pytest.raises(
            UnsupportedByFormat, match="message 2: readers" if slot == Variable(0) else "message 1"
        ):
            bytes(
                encoder.encode(Solutions.of([("<urn:a>",), ("<http://e/./a>",), ("<urn:b>",)]), 0)
            )


@pytest.mark.parametrize("name", RESOLVED)
def test_predicates_are_not_resolved(name: str) -> None:
    """The name of an element is appended to its namespace."""
    quad = Quad(iri("urn:s"), iri(f"{name}/p"), literal("o"))
    text = document(quad)
    (read,) = ox.parse(
        text.encode(), format=ox.RdfFormat.RDF_XML, base_iri="http://base.example/a/b"
    )
    assert from_pyoxigraph(read.predicate) == quad.predicate
    ((_, predicate, _),) = rdflib.Graph().parse(
        data=text, format="xml", publicID="http://base.example/a/b"
    )
    assert str(predicate) == f"{name}/p"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", KEPT)
def test_what_stays_is_written(name: str, place: str) -> None:
    quad = PLACES[place](name)
    (read,) = ox.parse(
        document(quad).encode(), format=ox.RdfFormat.RDF_XML, base_iri="http://base.example/a/b"
    )
    assert (
        Quad(*(Term(from_pyoxigraph(term)) for term in (read.subject, read.predicate, read.object)))
        == quad
    )
    graph = rdflib.Graph().parse(
        data=document(quad), format="xml", publicID="http://base.example/a/b"
    )
    ((subject, _, object),) = graph
    found = {"subject": subject, "object": object, "datatype": getattr(object, "datatype", None)}[
        place
    ]
    assert str(found) == name


def test_another_parser_reads_what_is_written() -> None:
    """npm's rdfxml-streaming-parser resolves as the specification says; Comunica has it."""
    node = Path(os.environ.get(NODE, "nowhere"))
    if not (node / "node_modules" / "rdfxml-streaming-parser").exists():
        absent(
            f"npm's rdfxml-streaming-parser is absent: set {NODE} to the folder that holds its node_modules"
        )

    def parsed(documents: list[str]) -> list[list[list[str | None]]]:
        done = subprocess.run(
            ["node", "-e", PARSER],
            input=json.dumps(documents).encode(),
            cwd=node,
            capture_output=True,
            check=True,
            timeout=120,
        )
        found: list[list[list[str | None]]] = json.loads(done.stdout)
        return found

    quads = [place(name) for place in PLACES.values() for name in KEPT]
    assert parsed([document(quad) for quad in quads]) == [[terms(quad)] for quad in quads]
    predicates = [Quad(iri("urn:s"), iri(f"{name}/p"), literal("o")) for name in RESOLVED]
    assert parsed([document(quad) for quad in predicates]) == [[terms(quad)] for quad in predicates]
    # and those that are refused it would read as others
    known = document(PLACES["subject"]("urn:known"))
    written = [known.replace("urn:known", name) for name in RESOLVED]
    assert [found[0][0] for found in parsed(written)] == list(RESOLVED.values())
