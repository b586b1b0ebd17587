"""A server of the Model Context Protocol (https://modelcontextprotocol.io) over standard input and output: the examples
of the settings that are CONSTRUCT queries are its tools and resources.

An answer has whole messages until a budget of bytes is used. If more follow, it has `complete: false` and a cursor: the
position after its last message, with a digest of all up to there. A call with the cursor asks the source again, and
goes on only if the result is the same up to that position. Nothing is kept between calls, nothing is written to a
source, and the limits are those of the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import parse_qs, urlsplit

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from construct_messages._version import __version__
from construct_messages.construct.messages import QueryMessages
from construct_messages.errors import (
    ConstructMessagesError,
    LimitExceeded,
    ProtocolError,
    QueryWarning,
    UsageError,
    shown,
)
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.formats import RDFM, TRIG, TURTLE, LogType
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import JSON
from construct_messages.rdf.message import Message
from construct_messages.rdf.options import UNION, Grouping
from construct_messages.rdf.terms import Lenience
from construct_messages.server.config import Config, EndpointSettings, ExampleSettings
from construct_messages.server.http.request_log import RequestLog
from construct_messages.server.http.sending import check_text
from construct_messages.server.runtime.checks import bounded
from construct_messages.server.runtime.process import THREAD_NAMES, THREADS
from construct_messages.server.runtime.settings import load_config
from construct_messages.server.runtime.supervisor import load_stores
from construct_messages.server.sparql.backend import open_backend
from construct_messages.server.sparql.endpoint import admission_of, check_operation, path_of
from construct_messages.server.sparql.messages import (
    ResultDocuments,
    ResultPosition,
    document_encoder,
    document_labels,
    messages_of,
)
from construct_messages.server.sparql.protocol import MessageParameters
from construct_messages.sparql.sources import Backend, Request
from construct_messages.sparql.sources.http.profiles import Profile
from construct_messages.sparql.sources.open import name_of_source

if TYPE_CHECKING:
    from anyio import AsyncFile

_SCHEME: Final = "construct-messages"  # of the URIs of resources, which only this server reads
_CURSOR: Final = "cursor"
_NAME_CHARACTERS: Final = 64  # some clients refuse longer names of tools
_AT_ONCE: Final = 128
"""The number of messages that are read before other calls have their turn."""
_INSTRUCTIONS: Final = (
    "Each tool runs one CONSTRUCT query, and returns its results as RDF, one document for each result. Results are "
    "never cut: an answer ends before the first one for which max_bytes does not suffice. If complete is false, call "
    "the tool again with the cursor to get the following ones. Cite the source and the query of an answer."
)


# --- queries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NamedQuery:
    """A CONSTRUCT query of the settings; `name` is that of its tool, `variables` are those that a call may bind."""

    name: str
    path: str
    example: ExampleSettings
    settings: EndpointSettings
    query: ConstructQuery
    variables: Sequence[str]
    type: LogType

    @property
    def description(self) -> str:
        """A description for people and models."""
        what = (self.example.sentence or self.example.name).rstrip(".")
        return f"{what}. Whole results from {self.source}, as {self.type.format.name}."

    @property
    def source(self) -> str:
        """The source to cite: the URL of an endpoint, or the names of files."""
        source = self.settings.source
        if self.settings.is_remote:
            return name_of_source(source[0])["source"]
        return " ".join(Path(file).name for file in source)


def named_queries(config: Config, format: str | None = None) -> Iterator[NamedQuery]:
    """Yields the CONSTRUCT queries of the settings. Messages are in the format, by default Turtle, or TriG for those
    with named graphs.

    Raises:
        UsageError: a query cannot be read or is not allowed, or two have the same name.
    """
    known: set[str] = set()
    several = sum(bool(settings.examples) for settings in config.endpoints.values()) > 1
    for endpoint, settings in config.endpoints.items():
        for number, example in enumerate(settings.examples, 1):
            place = f"the example {example.name!r} of {path_of(endpoint)}"
            try:
                made = _named_query(endpoint, settings, example, format)
            except ConstructMessagesError as error:
                raise UsageError(f"{place}: {error}") from error
            if made is None:
                continue
            slug = _slug(example.name) or f"query-{number}"
            name = f"{_slug(endpoint) or 'sparql'}-{slug}" if several else slug
            name = name[:_NAME_CHARACTERS]
            if name in known:
                hint = "choose names that differ in their first letters or digits of ASCII"
                raise UsageError(f"{place} would be the tool {name}, as another one is", hint=hint)
            known.add(name)
            yield replace(made, name=name)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _named_query(
    endpoint: str, settings: EndpointSettings, example: ExampleSettings, format: str | None
) -> NamedQuery | None:
    text = QueryText(example.query)
    if (form := query_form(text)) != "CONSTRUCT":
        return None
    check_operation(settings, "query", form, text)

    parse = partial(
        ConstructQuery.parse,
        text,
        prefixes=settings.prefixes,
        predefined=Profile.named(settings.profile).prefixes if settings.is_remote else None,
        group_by=example.group_by,
    )
    query = parse()
    named = TRIG if query.template.names_graphs else TURTLE
    found, syntax = (named, None) if format is None else find_format(format)
    check_text(found)
    syntax = syntax or found.own or RDFM
    variables = parse(whole=True).rewritten.variables
    return NamedQuery(
        "", path_of(endpoint), example, settings, query, variables, LogType(found, syntax)
    )


# --- answers --------------------------------------------------------------------------------------


Answer: TypeAlias = tuple[Sequence[str], int, str | None]
"""Whole messages as documents, their size, and the position after them: None at the end of the result."""


async def read_answer(
    messages: QueryMessages,
    encode: Callable[[Message], bytes],
    after: ResultPosition | None,
    *,
    budget: int,
    most: int,
    message_bytes: int | None,
) -> Answer:
    """Reads whole messages after a position until a budget of bytes is used; `most` is the largest one."""
    documents = ResultDocuments(encode, after, message_bytes)
    texts: list[str] = []
    size, last = 0, after
    async with messages:
        async for message in messages:
            if messages.message_count % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if (found := documents.next(message)) is None:
                continue
            document, position = found
            if size + len(document) > budget:
                if not texts:
                    raise _too_small(len(document), budget, most, position)
                return texts, size, str(last)
            texts.append(document.decode())
            size, last = size + len(document), position
    documents.end()
    return texts, size, None


def _too_small(size: int, budget: int, most: int, after: ResultPosition) -> LimitExceeded:
    ask = f"call with max_bytes={size}" if size <= most else "start the server with --max-bytes"
    return LimitExceeded(
        f"the next message has {size} bytes, and max_bytes is {budget}; messages are not cut",
        hint=f"{ask}, or leave this message out by cursor={after}",
    )


class Queries:
    """Answers calls of named queries, within the limits of their endpoints."""

    def __init__(
        self,
        queries: Sequence[NamedQuery],
        backends: Mapping[str, Backend],
        request_log: RequestLog,
        *,
        most: int,
    ) -> None:
        self.by_name = {query.name: query for query in queries}
        self._backends, self._request_log, self._most = backends, request_log, most
        self._admissions = {query.path: admission_of(query.settings) for query in queries}

    async def answer(self, named: NamedQuery, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the structured content of an answer, and logs the call."""
        log = self._request_log.log
        try:
            self._check(named, arguments)
            async with self._admissions[named.path].enter():
                documents, size, cursor = await self._ask(named, arguments)
        except ConstructMessagesError as error:
            log("warning", "call", query=named.name, failed=type(error).__name__)
            raise
        log("info", "call", query=named.name, messages=len(documents), bytes=size)
        content = {
            "messages": documents,
            "complete": cursor is None,
            _CURSOR: cursor,
            "media_type": named.type.format.document_type,
            "source": named.source,
            "query": named.example.query,
            "group_by": list(named.example.group_by),
            "bind": arguments.get("bind"),
        }
        return {name: value for name, value in content.items() if name in _REQUIRED or value}

    def _check(self, named: NamedQuery, arguments: Mapping[str, Any]) -> None:
        for error in Draft202012Validator(input_schema(named, self._most)).iter_errors(arguments):
            place = error.json_path.removeprefix("$.").replace("$", "the arguments")
            raise ProtocolError(f"{place}: {shown(error.message)}", hint="see the input schema")

    async def _ask(self, named: NamedQuery, arguments: Mapping[str, Any]) -> Answer:
        settings, grouping = named.settings, Grouping(named.example.group_by)
        cursor, budget = arguments.get(_CURSOR), arguments.get("max_bytes", self._most)
        request = Request(
            named.query.select_for(arguments.get("bind"), grouping),
            (UNION,) if settings.union_default_graph else (),
            page_size=settings.page_size,
            timeout=settings.limits.seconds,
            lenience=Lenience.of(settings.lenient, base=named.query.base),
            labels=document_labels(),
        )
        asked, backend = MessageParameters(grouping), self._backends[named.path]
        return await read_answer(
            messages_of(settings, backend, named.query, request, asked),
            document_encoder(named.type, named.query, named.example.group_by),
            ResultPosition.of(cursor, _CURSOR) if cursor else None,
            budget=budget,
            most=self._most,
            message_bytes=settings.limits.message_bytes,
        )


# --- the protocol ---------------------------------------------------------------------------------

_REQUIRED: Final = ["messages", "complete", "media_type", "source", "query"]
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "messages": {**_TEXTS, "description": "the results, each a whole RDF document"},
        "complete": {"type": "boolean", "description": "whether no result follows"},
        _CURSOR: {**_TEXT, "description": "where to go on, if it is not complete"},
        "media_type": {**_TEXT, "description": "that of each document"},
        "source": _TEXT,
        "query": _TEXT,
        "group_by": _TEXTS,
        "bind": {"type": "object", "additionalProperties": _TEXT},
    },
    "required": _REQUIRED,
}


def input_schema(named: NamedQuery, most: int) -> dict[str, Any]:
    """Returns the schema of the arguments of a call."""
    terms = """<https://example.org/a>, "text", "text"@en, "5"^^<http://www.w3.org/2001/XMLSchema#integer>"""
    properties = {
        _CURSOR: {**_TEXT, "description": "that of an earlier answer, to get what follows"},
        "max_bytes": {
            "type": "integer",
            "minimum": 1,
            "maximum": most,
            "default": most,
            "description": "size of all results; each is whole",
        },
        "bind": {
            "type": "object",
            "properties": dict.fromkeys(named.variables, _TEXT),
            "additionalProperties": False,
            "description": f"values of variables of the query, in N-Triples: {terms}",
        },
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def tool_of(named: NamedQuery, most: int) -> types.Tool:
    """Returns the description of the tool of a query."""
    return types.Tool(
        name=named.name,
        title=named.example.name,
        description=named.description,
        input_schema=input_schema(named, most),
        output_schema=_OUTPUT,
        annotations=types.ToolAnnotations(
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=named.settings.is_remote,
        ),
    )


def make_server(queries: Queries, *, most: int) -> Server[Any]:
    """Returns the server of the protocol; `most` is the largest budget of a call."""
    by_name = queries.by_name
    by_uri = {f"{_SCHEME}:///{name}": named for name, named in by_name.items()}

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool_of(named, most) for named in by_name.values()])

    async def call_tool(_: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        if (named := by_name.get(call.name)) is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {shown(call.name)}")
        try:
            content = await queries.answer(named, call.arguments or {})
        except ConstructMessagesError as error:
            refusal = types.TextContent(text=f"error: {error}")
            return types.CallToolResult(content=[refusal], is_error=True)
        texts: list[types.ContentBlock] = [
            types.TextContent(text=text) for text in (*content["messages"], _citation(content))
        ]
        return types.CallToolResult(content=texts, structured_content=content)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=uri,
                    name=named.name,
                    title=named.example.name,
                    description=named.description,
                    mime_type=named.type.format.document_type,
                )
                for uri, named in by_uri.items()
            ]
        )

    async def list_templates(_: Any, __: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{_SCHEME}:///{{name}}{{?{_CURSOR}}}",
            name="results",
            description="The results of a query after the cursor of an earlier answer.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(_: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        parts = urlsplit(asked.uri)
        if (named := by_uri.get(asked.uri.partition("?")[0])) is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {shown(asked.uri)}")
        arguments = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        try:
            content = await queries.answer(named, arguments)
        except ConstructMessagesError as error:
            kind = types.INVALID_PARAMS if error.status < 500 else types.INTERNAL_ERROR
            raise MCPError(kind, str(error)) from error
        texts = [(content["media_type"], text) for text in content["messages"]]
        return types.ReadResourceResult(
            contents=[
                types.TextResourceContents(uri=asked.uri, mime_type=media_type, text=text)
                for media_type, text in (*texts, (JSON, _citation(content)))
            ]
        )

    return Server(
        _SCHEME,
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
    )


def _citation(content: Mapping[str, Any]) -> str:
    """All but the messages, for clients that do not read structured content."""
    about = {name: value for name, value in content.items() if name != "messages"}
    return json.dumps(about, ensure_ascii=False)


# --- its life -------------------------------------------------------------------------------------


class _Lines:
    """The lines of standard input. A thread of the library would wait for the next one before the process ends."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(1)
        loop = asyncio.get_running_loop()
        Thread(target=self._read, args=(loop,), daemon=True).start()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line = b"\n"
        while line:
            line = sys.stdin.buffer.readline()
            with suppress(RuntimeError):  # the loop has ended
                asyncio.run_coroutine_threadsafe(self._lines.put(line), loop).result()

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._lines.get():
            yield line.decode(errors="replace")


def run(settings: Path, *, most: int, format: str | None = None) -> int:
    """Serves the queries of a settings file until its input ends, SIGTERM or SIGINT; returns the exit status.

    Raises:
        UsageError: the settings are wrong, or have no CONSTRUCT query.
        SourceError: files cannot be loaded.
    """
    warnings.simplefilter("ignore", QueryWarning)  # their readers are no terminal
    config = load_config(settings, os.environ, {})
    queries = list(named_queries(config, format))
    if not queries:
        raise UsageError(
            f"{settings} has no CONSTRUCT query among its examples",
            hint="add [[endpoint.examples]] with a name and a query",
        )
    paths = {query.path for query in queries}
    endpoints = {name: each for name, each in config.endpoints.items() if path_of(name) in paths}
    config = bounded(replace(config, endpoints=endpoints))
    request_log = RequestLog(config)
    request_log.capture_logging()
    with tempfile.TemporaryDirectory(prefix="construct-messages-") as place:
        directories = load_stores(config, Path(place))
        with suppress(asyncio.CancelledError):  # by a signal
            asyncio.run(_serve(config, directories, queries, request_log, most))
    return 0


async def _serve(
    config: Config,
    directories: Mapping[str, Path],
    queries: Sequence[NamedQuery],
    request_log: RequestLog,
    most: int,
) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(THREADS, THREAD_NAMES))
        backends = {}
        for name, settings in config.endpoints.items():
            backend = open_backend(settings, executor, directories.get(name))
            backends[path_of(name)] = backend
            stack.push_async_callback(backend.aclose)
            await backend.start()
        server = make_server(Queries(queries, backends, request_log, most=most), most=most)
        stdin = cast("AsyncFile[str]", _Lines())
        reading, writing = await stack.enter_async_context(stdio_server(stdin))
        request_log.log("info", "serving", queries=" ".join(query.name for query in queries))
        await server.run(reading, writing, server.create_initialization_options())
