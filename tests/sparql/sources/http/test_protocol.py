"""The requests for an endpoint, beside those that SPARQLWrapper itself sends with the same options."""

from __future__ import annotations

import pytest
from SPARQLWrapper import BASIC, GET, JSON, POST, POSTDIRECTLY, URLENCODED, SPARQLWrapper

from construct_messages.errors import UsageError
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource
from tests.support.http.clients import JSON_BODY, SELECT, read
from tests.support.http.fault_server import FaultServer, response

pytestmark = pytest.mark.usefixtures("once")

OURS = {"accept", "accept-encoding", "connection", "content-length"}
"""Headers that the source decides: which results it reads, and how."""


@pytest.mark.parametrize("credentials", [None, ("me", "s:ü")], ids=["anybody", "me"])
@pytest.mark.parametrize("headers", [{}, {"x-key": "k", "USER-AGENT": "mine"}], ids=["", "headers"])
@pytest.mark.parametrize("sent", [(GET, URLENCODED), (POST, URLENCODED), (POST, POSTDIRECTLY)])
def test_requests_are_those_of_the_wrapper(
    server: FaultServer,
    client: str,
    sent: tuple[str, str],
    headers: dict[str, str],
    credentials: tuple[str, str] | None,
) -> None:
    wrapper = SPARQLWrapper(server.url, defaultGraph="urn:g0", returnFormat=JSON)
    wrapper.setMethod(sent[0])
    wrapper.setRequestMethod(sent[1])
    wrapper.setOnlyConneg(True)
    wrapper.addParameter("default-graph-uri", "urn:g/ä b")
    wrapper.addParameter("timeout", "1000")
    for name, value in headers.items():
        wrapper.addCustomHttpHeader(name, value)
    if credentials is not None:
        wrapper.setHTTPAuth(BASIC)
        wrapper.setCredentials(*credentials)
    wrapper.setQuery(str(SELECT))
    server.play(response(JSON_BODY))
    source = EndpointSource(Endpoint.of_wrapper(wrapper))
    wrapper.query().response.close()
    assert read(client, source, Request(SELECT))[1] is None
    theirs, ours = server.asked
    assert ours.method == theirs.method
    assert ours.parameters == theirs.parameters
    assert (ours.body == theirs.body) or sent[1] == URLENCODED  # a form's parameters are in order
    kept = [
        {name: value for name, value in asked.headers.items() if name not in OURS}
        for asked in (ours, theirs)
    ]
    assert kept[0] == kept[1]


def test_the_wrapper_is_read_once(server: FaultServer, client: str) -> None:
    wrapper = SPARQLWrapper(server.url)
    source = EndpointSource(Endpoint.of_wrapper(wrapper))
    wrapper.addParameter("timeout", "1")
    wrapper.addCustomHttpHeader("X-Key", "k")
    wrapper.setMethod(POST)
    server.play(response(JSON_BODY))
    assert read(client, source)[1] is None
    (asked,) = server.asked
    assert (asked.method, asked.parameters) == ("GET", {"query": [str(SELECT)]})
    assert "x-key" not in asked.headers


def test_a_wrapper_whose_url_is_malformed() -> None:
    with pytest.raises(UsageError, match="not one of http or https"):
        Endpoint.of_wrapper(SPARQLWrapper("ftp://example.org/"))
