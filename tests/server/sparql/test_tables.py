"""A server over a table of quads: messages and answers as over the files, union graphs, and clients that leave."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import aiohttp
import pytest

pytest.importorskip("duckdb")

from construct_messages import construct_messages, read_log
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
