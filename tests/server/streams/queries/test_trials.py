"""What is tried and not stored: a query over the newest elements, and a body that is only checked."""

from __future__ import annotations

import pytest

from construct_messages.rdf.wire import Header
from tests.support.http.streams import StreamsServer
from tests.support.registered import ECHO, RSP_QL, SPARQL
from tests.support.streams import numbered

LOG = "application/n-quads; version=1.2-messages"


async def test_a_query_is_tried_over_the_newest_elements(served: StreamsServer) -> None:
    said = await served.publish(map(numbered, range(1, 31)))
    assert said.status == 201, said.body
    for path, query, taken, lines in (
        (
            "/streams/a/query?preview=2",
            ECHO,
            "2",
            ['<urn:s> <urn:saw> "x29" .', '<urn:s> <urn:saw> "x30" .'],
        ),
        ("/streams?stream=a&from=first&preview=1", ECHO, "1", ['<urn:s> <urn:saw> "x30" .']),
        (
            "/streams?preview=2",
            RSP_QL,
            "2",
            [
                f'<{served.url}/streams/a/output/29> <urn:holds> "x29" .',
                f'<{served.url}/streams/a/output/30> <urn:holds> "x30" .',
            ],
        ),
        ("/streams/a/query?preview=1000", b"CONSTRUCT {} WHERE { FILTER(false) }", "30", []),
    ):
        answer = await served.ask("POST", path, query, SPARQL, Accept=LOG)
        assert answer.status == 200, answer.body
        assert answer.headers["Content-Type"] == LOG
        assert answer.headers[Header.TAKEN] == taken
        said = answer.body.decode().splitlines()
        assert sorted(line for line in said if line[0] == "<") == lines
    assert (await served.ask("GET", "/streams")).json["contains"] == [f"{served.url}/streams/a"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/streams/a/query?preview=0", ECHO, 400),
        ("/streams/a/query?preview=1001", ECHO, 400),
        ("/streams/a/query?preview=x", ECHO, 400),
        ("/streams/a/query?preview=1&operator=none", ECHO, 400),
        ("/streams/a/query?preview=1", b"CONSTRUCT { ?s } WHERE", 400),
        ("/streams/none/query?preview=1", ECHO, 404),
        ("/streams?preview=1", ECHO, 422),
    ],
)
async def test_a_trial_that_is_refused(
    served: StreamsServer, path: str, query: bytes, status: int
) -> None:
    answer = await served.ask("POST", path, query, SPARQL)
    assert answer.status == status, answer.body


async def test_a_body_is_checked(served: StreamsServer) -> None:
    await served.publish([numbered(1)])
    turtle = b"# @message\n<> <urn:p> 1 .\n# @message\n<> <urn:p> 2 .\n"
    answer = await served.ask(
        "POST", "/streams/a/input?check", turtle, "text/turtle; messages=rdfm", Accept=LOG
    )
    assert (answer.status, answer.headers[Header.INVALID]) == (200, "0")
    element = f"<{served.url}/streams/a/output/"
    subjects = [line.split()[0] for line in answer.body.decode().splitlines() if line[0] == "<"]
    assert subjects == [f"{element}2>", f"{element}3>"]
    refused = await served.ask("POST", "/streams/a/input?check", b"<> <urn:p> x .", "text/turtle")
    assert (refused.status, refused.json["line"]) == (422, 1)
    assert (await served.ask("GET", "/streams/a")).json["lastSequence"] == 1
