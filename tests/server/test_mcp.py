"""The server of the Model Context Protocol, asked by the protocol's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import pytest_asyncio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent, TextResourceContents

from construct_messages import construct_messages
from construct_messages.cli import main
from tests.support.commands import COMMAND, ENVIRONMENT
from tests.support.http.fault_server import FaultServer, response
from tests.support.places import ROOT

pytestmark = pytest.mark.process
of_one_loop = pytest.mark.asyncio(loop_scope="module")  # that of the client

MOST = 2000
COUNT = 120
WORKS = (
    "PREFIX : <urn:> CONSTRUCT { ?w :title ?t ; :by [ :name ?n ] } WHERE { ?w :title ?t ; :by ?n }"
)
# without ORDER BY, and messages from 100 bytes to more than a call may ask for
SIZES = "CONSTRUCT { ?s <urn:text> ?o } WHERE { ?s <urn:text> ?o }"
BY_NAME = "PREFIX : <urn:> CONSTRUCT { ?w :of ?n } WHERE { ?w :by ?n } ORDER BY ?n ?w"
COMPANIES = (ROOT / "queries" / "companies-by-country.rq").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mcp")
    lines = []
    for number in range(COUNT):
        work = f"<urn:w{number:03}>"
        lines.append(f'{work} <urn:title> "title {number} \\"é\\" \\n😀"@en .')
        lines.append(f'{work} <urn:by> "name {number % 7}" .')
        lines.append(f'{work} <urn:text> "{"ü" * (number * number // 13)}" .')
    (place / "works.nt").write_text("\n".join(lines), encoding="utf-8")
    (place / "companies.ttl").symlink_to(ROOT / "queries" / "data" / "companies.ttl")
    (place / "server.toml").write_text(
        f"""
        [endpoint]
        source = "companies.ttl"
        [[endpoint.examples]]
        name = "Companies by country"
        sentence = "The companies of each country."
        query = '''{COMPANIES}'''
        group_by = ["?country"]
        [[endpoint.examples]]
        name = "How many"
        query = "SELECT (COUNT(*) AS ?n) {{ ?s ?p ?o }}"
        [endpoints.works]
        source = "works.nt"
        examples = [
          {{ name = "Works", query = '{WORKS}' }},
          {{ name = "Sizes", query = '{SIZES}' }},
          {{ name = "By name", query = '{BY_NAME}', group_by = ["n"] }},
        ]
        """,
        encoding="utf-8",
    )
    return place


@asynccontextmanager
async def connected(
    settings: Path, *options: str, log: Path | None = None
) -> AsyncIterator[Client]:
    command, *arguments = COMMAND
    parameters = StdioServerParameters(
        command=command, args=[*arguments, "mcp", str(settings), *options], env=ENVIRONMENT
    )
    async with AsyncExitStack() as stack:
        errors = stack.enter_context((log or settings.with_suffix(".log")).open("w"))
        yield await stack.enter_async_context(Client(stdio_client(parameters, errlog=errors)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(place: Path) -> AsyncIterator[Client]:
    """One client for all tests; its tasks must end in the task that began them."""
    ready, done = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def hold() -> None:
        async with connected(place / "server.toml", "--max-bytes", str(MOST)) as client:
            ready.set_result(client)
            await done.wait()

    task = asyncio.create_task(hold())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    yield ready.result() if ready.done() else task.result()
    done.set()
    await task


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of an answer; its texts have the same."""
    result = await client.call_tool(name, arguments)
    texts = [each.text for each in result.content if isinstance(each, TextContent)]
    assert not result.is_error, texts
    content = dict(result.structured_content)
    assert [*content["messages"], content | {"messages": None}] == [
        *texts[:-1],
        json.loads(texts[-1]) | {"messages": None},
    ]
    return content


async def refused(client: Client, name: str, **arguments: Any) -> str:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    (text,) = result.content
    assert isinstance(text, TextContent)
    return text.text


def graph(document: str) -> frozenset[str]:
    """The triples of a document, its blank nodes with canonical labels."""
    read = ox.Dataset(ox.parse(document, ox.RdfFormat.TRIG))
    read.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return frozenset(map(str, read))


@of_one_loop
async def test_the_queries_are_tools_and_resources(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {
        "sparql-companies-by-country",
        "works-works",
        "works-sizes",
        "works-by-name",
    }
    tool = tools["sparql-companies-by-country"]
    assert tool.description is not None
    assert tool.description.startswith("The companies of each country.")
    assert tool.annotations is not None
    assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)
    bound = tool.input_schema["properties"]["bind"]["properties"]
    assert "country" in bound
    resources = (await client.list_resources()).resources
    assert {each.name for each in resources} == set(tools)
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "construct-messages:///{name}{?cursor}"


@of_one_loop
async def test_an_answer_has_its_source_and_query(client: Client) -> None:
    content = await called(client, "sparql-companies-by-country")
    assert content["complete"] is True
    assert content["source"] == "companies.ttl"
    assert content["query"].strip() == COMPANIES.strip()
    assert content["group_by"] == ["?country"]
    assert content["media_type"] == "text/turtle"
    source = str(ROOT / "queries" / "data" / "companies.ttl")
    expected = construct_messages(COMPANIES, source, group_by="?country")
    assert [graph(text) for text in content["messages"]] == [
        frozenset(f"{quad}" for quad in map(ox_quad, message)) for message in expected
    ]


def ox_quad(quad: Any) -> ox.Quad:
    (read,) = ox.parse(f"{quad.subject} {quad.predicate} {quad.object} .", ox.RdfFormat.N_QUADS)
    return read


@of_one_loop
async def test_no_message_is_cut_in_many_calls(
    client: Client, place: Path, pytestconfig: pytest.Config
) -> None:
    """Each walk through a result, with budgets and bindings by chance, has each message whole and once."""
    store = ox.Store()
    store.load(path=place / "works.nt")
    wholes = {
        name: {graph(document) for document in documents(query, store)}
        for name, query in (("works-works", WORKS), ("works-sizes", SIZES))
    }
    chance = random.Random(7)
    left, cut, large = pytestconfig.getoption("calls"), 0, 0
    while left > 0:
        name = chance.choice(list(wholes))
        seen: list[frozenset[str]] = []
        cursor = None
        while left > 0:
            left -= 1
            budget = chance.choice([1, 100, 300, 1000, MOST])
            arguments = {"max_bytes": budget} | ({"cursor": cursor} if cursor else {})
            result = await client.call_tool(name, arguments)
            if result.is_error:
                text = result.content[0].text
                assert "messages are not cut" in text
                size = int(text.split("has ")[1].split()[0])
                assert size > budget
                if size <= MOST:
                    continue
                large += 1
                cursor = text.rpartition("cursor=")[2]
                seen.append(frozenset([cursor]))
                continue
            content = result.structured_content
            assert sum(len(text.encode()) for text in content["messages"]) <= budget
            graphs = [graph(text) for text in content["messages"]]
            cut += sum(each not in wholes[name] for each in graphs)
            seen += graphs
            cursor = content.get("cursor")
            assert content["complete"] == (cursor is None)
            if cursor is None:
                assert len(seen) == len(set(seen)) == COUNT
                break
    assert cut == 0
    assert large


def documents(query: str, store: ox.Store) -> list[str]:
    messages = construct_messages(query, store)
    return ["".join(f"{quad}\n" for quad in message) for message in messages]


@of_one_loop
async def test_terms_are_bound(client: Client) -> None:
    content = await called(client, "works-by-name", bind={"n": '"name 3"'})
    (text,) = content["messages"]
    assert len(graph(text)) == len(range(3, COUNT, 7))
    assert content["bind"] == {"n": '"name 3"'}
    assert "x" in await refused(client, "works-by-name", bind={"n": "x"})
    assert "unexpected" in await refused(client, "works-by-name", bind={"z": "<urn:a>"})


@of_one_loop
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"max_bytes": 0}, "max_bytes: 0 is less than the minimum of 1"),
        ({"max_bytes": MOST + 1}, f"max_bytes: {MOST + 1} is greater than the maximum of {MOST}"),
        ({"max_bytes": "all"}, "max_bytes: 'all' is not of type 'integer'"),
        ({"limit": 3}, "'limit' was unexpected"),
        ({"cursor": "x"}, "cursor: x is not one of this answer"),
        ({"cursor": "3-0011223344556677"}, "the data have changed"),
        ({"cursor": "999-0011223344556677"}, "the data have changed"),
    ],
)
async def test_wrong_arguments_are_refused(
    client: Client, arguments: dict[str, Any], why: str
) -> None:
    assert why in await refused(client, "works-works", **arguments)


@of_one_loop
async def test_an_unknown_tool_or_resource_is_an_error_of_the_protocol(client: Client) -> None:
    with pytest.raises(MCPError, match="no tool nothing"):
        await client.call_tool("nothing", {})
    with pytest.raises(MCPError, match="no resource"):
        await client.read_resource("construct-messages:///nothing")


@of_one_loop
async def test_a_resource_goes_on_after_a_cursor(client: Client) -> None:
    uri, count = "construct-messages:///works-works", 0
    cursor = ""
    while True:
        contents = (await client.read_resource(uri + cursor)).contents
        *messages, about = [each for each in contents if isinstance(each, TextResourceContents)]
        assert {each.mime_type for each in messages} == {"text/turtle"}
        count += len(messages)
        cited = json.loads(about.text)
        assert cited["source"] == "works.nt"
        if cited["complete"]:
            break
        cursor = f"?cursor={cited['cursor']}"
    assert count == COUNT
    with pytest.raises(MCPError, match="unexpected"):
        await client.read_resource(f"{uri}?max_byte=3")


@of_one_loop
async def test_changed_data_and_a_failing_endpoint(tmp_path: Path) -> None:
    """A cursor of other data is refused, as is an answer that the endpoint cuts; its URL is cited without secrets."""

    def solutions(*names: str, end: str = "]}}") -> bytes:
        found = ",".join(f'{{"s":{{"type":"uri","value":"urn:{name}"}}}}' for name in names)
        return f'{{"head":{{"vars":["s"]}},"results":{{"bindings":[{found}{end}'.encode()

    answers = [
        solutions("a", "b"),
        solutions("a", "b"),
        solutions("c", "b"),
        solutions("a", end=""),
    ]
    kind = "application/sparql-results+json"
    with closing(FaultServer()) as server:
        server.play(*(response(each, kind) for each in answers))
        settings = tmp_path / "server.toml"
        settings.write_text(
            f"""
            [endpoint]
            source = "{server.url}?key=secret"
            retries = 0
            allow_private = true
            examples = [{{ name = "All", query = "CONSTRUCT {{ ?s a <urn:A> }} {{ ?s ?p ?o }}" }}]
            """
        )
        async with connected(settings) as client:
            first = await called(client, "all", max_bytes=30)
            assert first["source"] == server.url
            assert len(first["messages"]) == 1
            second = await called(client, "all", cursor=first["cursor"])
            assert (len(second["messages"]), second["complete"]) == (1, True)
            assert "the data have changed" in await refused(client, "all", cursor=first["cursor"])
            assert "error:" in await refused(client, "all")


def test_what_cannot_be_served(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(text: str, *options: str) -> str:
        settings = tmp_path / "server.toml"
        settings.write_text(f'[endpoint]\nsource = "{place / "works.nt"}"\n{text}')
        assert main(["mcp", str(settings), *options]) == 2
        return capsys.readouterr().err

    def example(name: str, query: str) -> str:
        return f"[[endpoint.examples]]\nname = '{name}'\nquery = '{query}'\n"

    assert "no CONSTRUCT query" in refused("")
    assert "no CONSTRUCT query" in refused(example("A", "ASK {}"))
    assert "the example 'A' of /sparql: line 1, column" in refused(example("A", "CONSTRUCT {"))
    service = "CONSTRUCT { ?s a ?o } WHERE { SERVICE <urn:x> { ?s a ?o } }"
    assert "the example 'S' of /sparql: " in refused(example("S", service))
    for other in ("a-B", "A b"):
        assert "would be the tool a-b" in refused(example("A b", WORKS) + example(other, WORKS))
    assert "is binary" in refused(example("A", WORKS), "--format", "jelly")
    assert "less than 1" in refused(example("A", WORKS), "--max-bytes", "0")


@pytest.mark.parametrize("end", [None, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_input_or_by_a_signal(place: Path, end: signal.Signals | None) -> None:
    process = subprocess.Popen(
        [*COMMAND, "mcp", str(place / "server.toml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    with process:
        assert process.stderr is not None
        assert process.stdin is not None
        while b"serving" not in process.stderr.readline():
            assert process.poll() is None
        if end is not None:
            process.send_signal(end)
        else:
            process.stdin.close()
        assert process.wait(timeout=120) == 0
        assert b"Traceback" not in process.stderr.read()
