"""Programs of other hands as clients: rdflib and SPARQLWrapper read the output, py-ldnlib sends and consumes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest
import rdflib
from SPARQLWrapper import JSONLD, N3, TURTLE, SPARQLWrapper

from construct_messages import Message, Quad, iri, literal
from construct_messages.feeds import subscribe
from tests.support.http.streams import StreamsServer
from tests.support.places import absent
from tests.support.streams import numbered

SENT = [numbered(1), Message(), numbered(3)]
STATED = {
    (rdflib.URIRef("urn:s"), rdflib.URIRef("urn:number"), rdflib.Literal(f"x{number}"))
    for number in (1, 3)
}


pytestmark = pytest.mark.filterwarnings(
    "ignore:ConjunctiveGraph is deprecated:DeprecationWarning"
)  # within rdflib


@pytest.mark.parametrize("format", ["turtle", "trig", "json-ld"])
async def test_rdflib_reads_the_output(served: StreamsServer, format: str) -> None:
    """As plain RDF, of which the empty message is no part."""
    await served.publish(SENT)

    def read() -> set[Any]:
        dataset = rdflib.Dataset().parse(f"{served.url}/streams/a/output?after=0", format=format)
        return {
            tuple(quad)[:3] for quad in dataset.quads() if quad[1] == rdflib.URIRef("urn:number")
        }

    assert await asyncio.to_thread(read) == STATED


@pytest.mark.parametrize("format", [TURTLE, N3, JSONLD])
async def test_sparqlwrapper_reads_the_output(served: StreamsServer, format: str) -> None:
    """The query that it sends is no question here: all there is comes, as it would from a CONSTRUCT."""
    await served.publish(SENT)

    def read() -> set[Any]:
        wrapper = SPARQLWrapper(f"{served.url}/streams/a/output")
        wrapper.addParameter("after", "0")
        wrapper.setQuery("CONSTRUCT WHERE { ?s ?p ?o }")
        wrapper.setReturnFormat(format)
        converted = wrapper.queryAndConvert()
        if isinstance(converted, bytes):  # as it leaves Turtle
            converted = rdflib.Graph().parse(data=converted, format="turtle")
        triples = (
            converted.quads()
            if isinstance(converted, rdflib.Dataset | rdflib.ConjunctiveGraph)
            else converted
        )
        return {tuple(triple)[:3] for triple in triples if triple[1] == rdflib.URIRef("urn:number")}

    assert await asyncio.to_thread(read) == STATED


async def test_rdf_xml_is_one_document(served: StreamsServer) -> None:
    """A log in RDF/XML has several, so that it is not given to who asks for one."""
    await served.publish(SENT)
    answer = await served.ask("GET", "/streams/a/output?after=0", Accept="application/rdf+xml")
    assert (answer.status, "text/turtle" in answer.json["offered"]) == (406, True)


LDNLIB = "CONSTRUCT_MESSAGES_LDNLIB"
SEND_AND_CONSUME = """
import json, sys
import ldnlib
import rdflib
stream = sys.argv[1]
sender, consumer = ldnlib.Sender(allow_localhost=True), ldnlib.Consumer()
inbox = sender.discover(stream)
sender.send(inbox, {"@context": "https://www.w3.org/ns/activitystreams", "id": "urn:n", "summary": "sent"})
sender.send(inbox, rdflib.Graph().add((rdflib.URIRef("urn:s"), rdflib.URIRef("urn:p"), rdflib.Literal("o"))))
found = consumer.notifications(consumer.discover(stream))
print(json.dumps([inbox, found, [consumer.notification(each) for each in found]]))
"""


@pytest.mark.engine
async def test_ldnlib_sends_and_consumes(served: StreamsServer) -> None:
    folder = Path(os.environ.get(LDNLIB, "nowhere"))
    if not (folder / "ldnlib").exists():
        absent(f"PyPI's py-ldnlib is absent: set {LDNLIB} to the folder that it is installed in")
    stream = f"{served.url}/streams/a"
    program = (sys.executable, "-c", SEND_AND_CONSUME, stream)
    process = await asyncio.create_subprocess_exec(
        *program, stdout=PIPE, env=os.environ | {"PYTHONPATH": str(folder)}
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    inbox, found, notifications = json.loads(output)
    assert (inbox, found) == (f"{stream}/inbox", [f"{stream}/output/1", f"{stream}/output/2"])
    assert [each["@id"] for each in notifications] == ["urn:n", "urn:s"]
    summary = Quad(
        iri("urn:n"), iri("https://www.w3.org/ns/activitystreams#summary"), literal("sent")
    )
    stated = Quad(iri("urn:s"), iri("urn:p"), literal("o"))
    elements = [element.message async for element in subscribe(stream, follow=False)]
    assert elements == [Message([summary]), Message([stated])]
