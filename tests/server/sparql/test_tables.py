"""A server over a table of quads: messages and answers as over the files, union graphs, descriptions, and clients that
leave.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest

pytest.importorskip("duckdb")

from construct_messages import Message, construct_messages, read_log
from construct_messages.server.config import EndpointSettings
from construct_messages.sparql.relational.quads import load
from tests.support.http.serving import UNHURRIED, serving
from tests.support.places import ROOT
from tests.support.waiting import eventually

DATA = ROOT / "queries" / "data" / "companies.ttl"
QUERY = "CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p ?o FILTER(STRLEN(STR(?o)) < 30 && !isBlank(?s) && !isBlank(?o)) }"
# the values of five variables, which are evaluated for each combination
STUCK = (
    "{ ?s ?p ?o . ?a ?q ?b . ?c ?r ?d . ?e ?t ?f . ?g ?u ?h "
    "FILTER(CONCAT(STR(?o), STR(?b), STR(?d), STR(?f), STR(?h)) = '') }"
)


async def test_messages_and_clients_that_leave(tmp_path: Path) -> None:
    load([DATA], tmp_path / "t")
    wanted = Counter(message.lines for message in construct_messages(QUERY, DATA))
    endpoints = {
        "": EndpointSettings(
            source=(str(tmp_path / "t"),), evaluators=1, union_default_graph=True, limits=UNHURRIED
        )
    }
    async with serving(endpoints=endpoints) as served, aiohttp.ClientSession() as client:
        for format in ("nq", "jelly"):
            parameters = {"query": QUERY, "messages": "rdfm", "format": format}
            async with client.get(served.sparql, params=parameters) as answer:
                (tmp_path / f"log.{format}").write_bytes(await answer.read())
            found = Counter(message.lines for message in read_log(tmp_path / f"log.{format}"))
            assert found == wanted

        hasty = aiohttp.ClientTimeout(total=1)
        with pytest.raises(TimeoutError):
            await client.get(served.sparql, params={"query": f"SELECT * {STUCK}"}, timeout=hasty)
        # the only process is free again, and answers
        async with client.get(served.sparql, params={"query": "ASK { ?s ?p ?o }"}) as answer:
            assert (await answer.json(content_type=None))["boolean"]
        await eventually(lambda: "client-left" in served.request_log.getvalue())


DESCRIBED = [
    "DESCRIBE <http://dbpedia.org/resource/Ghent>",
    "DESCRIBE ?s { ?s ?p ?o FILTER(isLiteral(?o)) }",
    "DESCRIBE * { ?s <urn:p> ?o }",
    "DESCRIBE ?s <urn:b> { ?s <urn:q> ?o } ORDER BY DESC(?s) LIMIT 1",
    "DESCRIBE <urn:a> { ?s <urn:nowhere> ?o }",
    "DESCRIBE ?o FROM <urn:g> { ?s <urn:p> ?o }",
    "DESCRIBE ?g { GRAPH ?g { ?s ?p ?o } }",
    "DESCRIBE <urn:nowhere>",
]
GRAPHS = """\
<urn:a> <urn:p> _:b1 . _:b1 <urn:p> _:b2 . _:b2 <urn:p> _:b1 . _:b2 <urn:q> "end" . <urn:b> <urn:q> <urn:a> .
<urn:c> <urn:q> "literal" . <urn:g> <urn:q> 1 . _:alone <urn:q> <urn:b> .
<urn:g> { <urn:a> <urn:p> <urn:b> . <urn:b> <urn:p> "in g" }
"""


async def test_descriptions_are_those_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "a.trig").write_text(GRAPHS)
    load([tmp_path / "a.trig"], tmp_path / "t")
    store = ox.Store(str(tmp_path / "store"))
    store.load(path=tmp_path / "a.trig")
    del store
    endpoints = {
        f"{name}{'-union' if union else ''}": EndpointSettings(
            source=(str(tmp_path / name),),
            evaluators=1,
            union_default_graph=union,
            limits=UNHURRIED,
        )
        for union in (False, True)
        for name in ("t", "store")
    }
    async with serving(endpoints=endpoints) as served, aiohttp.ClientSession() as client:
        for query, kind in product(DESCRIBED, ("", "-union")):
            found = []
            for name in (f"t{kind}", f"store{kind}"):
                url = f"{served.url}/{name}/sparql"
                accept = {"Accept": "application/n-triples"}
                async with client.get(url, params={"query": query}, headers=accept) as answer:
                    assert answer.status == 200, await answer.text()
                    triples = ox.parse(await answer.read(), ox.RdfFormat.N_TRIPLES)
                    found.append(Message.from_pyoxigraph(triples))
            assert found[0].isomorphic(found[1]), (query, kind, found)
