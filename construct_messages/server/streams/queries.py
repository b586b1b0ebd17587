"""Registers, pauses, resumes and removes queries of clients over HTTP; their outputs are streams.

LDN for RDF streams (registration of queries): a text as `application/sparql-query`, or the RDF of its prototype.
`continuous/registered/` runs queries.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Final, TypeAlias, TypeVar

from aiohttp import web

from construct_messages.continuous.registered.process import preview
from construct_messages.continuous.registered.query import Watched
from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.registered.registry import Registry
from construct_messages.continuous.windows import Bounds, Compared
from construct_messages.errors import LimitExceeded, ProtocolError, QueryError, UsageError
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import ContinuousQuery, Operator, Report, duration
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.service import check_services
from construct_messages.rdf.formats.media_types import (
    JSON,
    MERGE_PATCH,
    SPARQL_QUERY,
    read_media_type,
)
from construct_messages.rdf.wire import Header
from construct_messages.server.http.body import read_query_string
from construct_messages.server.http.endpoint import Admission, Measure
from construct_messages.server.streams.requests import record_of, sequence_parameter, unstored
from construct_messages.server.streams.served import ServedStreams
from construct_messages.streams.element import Description
from construct_messages.streams.store import StreamStore, is_name

# --- parameters -----------------------------------------------------------------------------------
# Parses requests to register a query: the text of the query and the parameters of the URL, as a registration.
#
# LDN for RDF streams (registration of queries). No HTTP here; does not run queries.

E = TypeVar("E", bound=Enum)
Read: TypeAlias = tuple[Registration, str | None]
"""A registration, and the name of its output in the query."""

_OF_WINDOWS: Final = (
    "time",
    "lateness",
    "max_ahead",
    "bounds",
    "report",
    "compare",
    "idle",
    "maintain",
    "static",
)
PARAMETERS: Final = ("stream", "from", "operator", *_OF_WINDOWS, "every", "source", "skip_after")
_MAX_AHEAD: Final = "1d"
_MOST_TRIES: Final = 100
_LAST_PART: Final = re.compile(r"[^/#:]*\Z")


@dataclass(frozen=True)
class WatchedEndpoint(Watched):
    """A SPARQL endpoint of the server that queries may watch. SERVICE may reach `services` in it; see
    `check_services`."""

    services: str | frozenset[str] = "deny"


def read_registration(
    text: str,
    parameters: Iterable[tuple[str, str]],
    *,
    streams: str,
    bound: str | None,
    store: StreamStore,
    endpoints: Mapping[str, WatchedEndpoint],
    maintain: bool,
) -> Read:
    """Returns the requested registration, and the name of its output in the query.

    `parameters` are those of the URL, see docs/reference/continuous/registered.md. `streams` is the IRI of the stream
    list, with a final slash, and `bound` the stream at whose query endpoint the query is registered. `endpoints` are
    the SPARQL endpoints, by path, that queries may watch or use as the data next to windows. `maintain` decides without
    that parameter.
    """
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in PARAMETERS:
            raise ProtocolError(
                f"there is no parameter {name[:40]!r}", hint=f"there are {', '.join(PARAMETERS)}"
            )
        if name in given:
            raise ProtocolError(f"the parameter {name} occurs twice")
        given[name] = value
    query = parse_continuous(text, base=streams)
    every = _duration("every", given["every"]) if "every" in given else query.every
    inputs = _inputs(query, given.get("stream", bound), streams)
    source = None
    if not query.windows and not inputs:
        source = _source(given, every, endpoints)
        ConstructQuery.parse(
            query.query, base=streams
        )  # raises an error for SELECT, whose rows cannot be watched
        if "skip_after" in given:
            raise ProtocolError(
                "skip_after is for streams, and the query reads none", hint="leave it out"
            )
    elif "source" in given:
        raise ProtocolError("the query reads streams, and no source", hint="leave source out")
    if not query.windows and any(name in given for name in _OF_WINDOWS):
        raise ProtocolError(f"{', '.join(_OF_WINDOWS)} are for windows, and the query has none")
    # only a watching query may use SERVICE, with the permissions of its endpoint
    check_services(query.query, "deny" if source is None else endpoints[source].services)
    operator = (
        _one_of(Operator, "operator", given["operator"].upper()) if "operator" in given else None
    )
    if (
        inputs
        and not query.windows
        and Operator(operator or query.operator) is not Operator.ISTREAM
    ):
        raise ProtocolError(
            "a query that sees each message alone has no operator but ISTREAM",
            hint="give it windows, or leave it out",
        )
    registration = Registration(
        text=text,
        streams=streams,
        inputs=inputs,
        after={
            name: _after(store, name, given.get("from", "now")) for name in set(inputs.values())
        },
        source=source,
        static=_static(given["static"], endpoints) if "static" in given else None,
        every=every,
        operator=operator,
        time=given.get("time", "arrival"),
        lateness=_duration("lateness", given["lateness"], zero=True) if "lateness" in given else 0,
        max_ahead=_duration("max_ahead", given.get("max_ahead", _MAX_AHEAD), zero=True),
        skip_after=_tries(given["skip_after"]) if "skip_after" in given else None,
        bounds=_one_of(Bounds, "bounds", given.get("bounds", Bounds.OPEN_CLOSED.value)),
        compare=_one_of(Compared, "compare", given.get("compare", Compared.SOLUTIONS.value)),
        idle=_duration("idle", given["idle"]) if "idle" in given else None,
        maintain=_truth("maintain", given["maintain"]) if "maintain" in given else maintain,
        report=_one_of(Report, "report", given["report"].upper()) if "report" in given else None,
    )
    if query.windows:
        registration.options().policy_of(query)  # for its errors
    return registration, None if query.output is None else _output(query.output, streams)


def _truth(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise ProtocolError(f"{name}={value[:40]} is unknown", hint=f"{name} is true or false")
    return value == "true"


def _inputs(query: ContinuousQuery, bound: str | None, streams: str) -> dict[str, str]:
    """Returns the names of the streams that the query reads, by their IRIs in the query."""
    if bound is not None:
        bound = bound.removeprefix(streams)
    iris = dict.fromkeys(window.stream for window in query.windows)
    if bound is not None and len(iris) <= 1:
        return dict.fromkeys(iris or [f"{streams}{bound}"], bound)
    for iri in iris:
        if iri.startswith("?"):
            raise ProtocolError(
                f"the query does not name the stream {iri} is",
                status=422,
                hint="register it at the query endpoint of a stream, or give stream=NAME",
            )
        if not iri.startswith(streams):
            raise ProtocolError(
                f"the query reads the stream <{iri}>, which is not of this server",
                status=422,
                hint=f"name one of <{streams}…>, or register a query over one stream at its query endpoint",
            )
    return {iri: iri.removeprefix(streams) for iri in iris}


def _source(given: dict[str, str], every: int | None, endpoints: Collection[str]) -> str:
    """Returns the endpoint that a query without streams watches."""
    if every is None:
        raise ProtocolError(
            "the query reads no stream",
            status=422,
            hint="name one by stream=NAME or by windows; to watch a SPARQL endpoint of this server, give every=PT60S",
        )
    if "from" in given:
        raise ProtocolError("from is for streams, and the query reads none", hint="leave it out")
    source = given.get("source") or (next(iter(endpoints)) if len(endpoints) == 1 else None)
    if source not in endpoints or source is None:
        offered = ", ".join(endpoints) or "there is none"
        raise ProtocolError(
            f"source={source or ''} is not an endpoint of this server", status=422, hint=offered
        )
    return source


def _static(endpoint: str, endpoints: Mapping[str, WatchedEndpoint]) -> str:
    """Returns the endpoint with the data next to the windows."""
    local = [path for path, watched in endpoints.items() if watched.directory is not None]
    if endpoint not in local:
        offered = ", ".join(local) or "there is none"
        raise ProtocolError(
            f"static={endpoint} is not an endpoint over files of this server",
            status=422,
            hint=offered,
        )
    return endpoint


def _after(store: StreamStore, name: str, start: str) -> int:
    """Returns the sequence after which a stream is read."""
    state = store.state(name)
    if start == "now":
        return state.last
    if start == "first":
        return state.first - 1
    if start.isdigit():
        after = sequence_parameter("from", start) - 1
    else:
        try:
            # an unescaped + of the zone was decoded as a space
            after = store.sequence_at(name, datetime.fromisoformat(start.replace(" ", "+"))) - 1
        except (ValueError, UsageError):
            hint = "write from=now, from=first, from=17 or from=2026-11-22T12:00:00Z"
            raise ProtocolError(f"from={start[:40]} is not a beginning", hint=hint) from None
    store.check_position(name, after)
    return after


def _duration(name: str, value: str, *, zero: bool = False) -> int:
    try:
        return duration(value, zero=zero)
    except QueryError as error:
        raise ProtocolError(
            f"{name}={value[:40]} is no duration", hint=f"write it as in {name}=PT15S"
        ) from error


def _tries(value: str) -> int:
    """Returns the number of failures with an element after which it is left out."""
    if not (
        value.isascii() and value.isdigit() and len(value) < 4 and 1 <= int(value) <= _MOST_TRIES
    ):
        hint = f"write a number from 1 to {_MOST_TRIES}, as in skip_after=3"
        raise ProtocolError(f"skip_after={value[:40]} is not a number of failures", hint=hint)
    return int(value)


def _one_of(kind: type[E], name: str, value: str) -> str:
    try:
        return str(kind(value).value)
    except ValueError:
        offered = ", ".join(str(one.value) for one in kind)
        raise ProtocolError(
            f"{name}={value[:40]} is unknown", hint=f"choose one of {offered}"
        ) from None


def _output(iri: str, streams: str) -> str:
    """Returns the name of an output: the path below the stream list, or the last part of another IRI."""
    found = _LAST_PART.search(iri.removeprefix(streams))
    return found[0] if found else ""


# --- view -----------------------------------------------------------------------------------------

PREVIEW: Final = "preview"
"""The parameter for a preview of a query: the number of elements to evaluate."""

PATCHES: Final = (MERGE_PATCH, JSON)

_PREVIEWS: Final = 2  # concurrent processes, in addition to those of registered queries
_PREVIEW_ELEMENTS: Final = 1000
_PREVIEW_MESSAGES: Final = 100
_PREVIEW_SECONDS: Final = 10.0


_GAUGES: Final[Mapping[str, tuple[str, Callable[[Registry], float]]]] = {
    "running": ("Registered queries that run.", lambda all: all.count("running")),
    "paused": ("Registered queries that are paused.", lambda all: all.count("paused")),
    "failed": ("Registered queries paused by an error.", lambda all: all.count("failed")),
    "lag": ("Elements that running queries have not read yet.", Registry.lag),
    "restarts": (
        "How often processes of queries were started again after a failure.",
        lambda all: sum(query.restarts for query in all.queries()),
    ),
    "memory_bytes": (
        "Memory of the processes of all queries.",
        lambda all: sum(query.memory_bytes for query in all.queries()),
    ),
    "largest_bytes": (
        "Memory of the largest of these processes.",
        lambda all: max((query.memory_bytes for query in all.queries()), default=0),
    ),
    "evaluations": (
        "Evaluations over streams since the server started.",
        lambda all: sum(query.evaluations for query in all.queries()),
    ),
    "evaluation_seconds": (
        "What these evaluations took together.",
        lambda all: sum(query.seconds for query in all.queries()),
    ),
    "slowest_seconds": (
        "What the slowest of these evaluations took.",
        lambda all: max((query.slowest for query in all.queries()), default=0.0),
    ),
}


class QueriesView:
    """The registered queries of one endpoint of streams.

    `watched` are the SPARQL endpoints that queries may watch, by path.
    """

    def __init__(self, served: ServedStreams, watched: Mapping[str, WatchedEndpoint]) -> None:
        self._served, self._watched = served, watched
        self._settings, self._store, self._iris_of = served.settings, served.store, served.iris
        self.registry = registry = served.registry
        self._previews = Admission(_PREVIEWS)
        self.gauges = {
            f"queries_{name}": Measure(help, partial(ask, registry))
            for name, (help, ask) in _GAUGES.items()
        }

    async def register(
        self,
        request: web.Request,
        text: str,
        *,
        description: Description | None = None,
        bound: str | None = None,
    ) -> web.Response:
        """Registers a query."""
        record = record_of(request)
        record.action = "register"
        settings = self._settings
        parameters = read_query_string(request.rel_url.raw_query_string)
        registration, output = await self._read(request, text, bound, list(parameters))
        # no await from here until the registry has counted the query
        if len(self.registry) >= settings.queries:
            raise LimitExceeded(
                f"there are {len(self.registry)} queries, and no more are allowed", status=507
            )
        if len(self._store.streams()) >= settings.streams:
            raise LimitExceeded(
                f"there are {settings.streams} streams, and no more are allowed", status=507
            )
        given = description or Description()
        names = (output, request.headers.get("Slug"), given.label)
        name = next((name for name in names if name and is_name(name)), os.urandom(8).hex())
        record.stream = name
        await self.registry.register(
            name, registration, replace(given, label=given.label or name, publish="deny")
        )
        return web.Response(status=201, headers={"Location": self._iris_of(request, name).stream})

    async def preview(
        self, request: web.Request, text: str, elements: str, *, bound: str | None = None
    ) -> web.Response:
        """Answers with the messages of a query for the newest elements; registers nothing. Its URL may have the
        parameters of a registration.
        """
        record_of(request).action = "preview"
        count = sequence_parameter(PREVIEW, elements)
        if not 0 < count <= _PREVIEW_ELEMENTS:
            raise ProtocolError(
                f"{PREVIEW}={count} is not a number of elements",
                hint=f"write 1 to {_PREVIEW_ELEMENTS:,}",
            )
        parameters = read_query_string(request.rel_url.raw_query_string)
        rest = [each for each in parameters if each[0] != PREVIEW]
        registration, _ = await self._read(request, text, bound, rest)
        if registration.source is not None:
            raise ProtocolError(
                "only queries over streams have a preview",
                status=422,
                hint="run the query at its endpoint",
            )
        static = None
        if registration.static is not None:
            static = str(self._watched[registration.static].directory)
        limits = self._served.query_limits
        async with self._previews.enter():
            messages, taken = await preview(
                self._store,
                registration,
                replace(limits, seconds=min(limits.seconds, _PREVIEW_SECONDS)),
                static=static,
                elements=count,
                messages=_PREVIEW_MESSAGES,
                seconds=_PREVIEW_SECONDS,
            )
        return await unstored(request, messages, {Header.TAKEN: str(taken)})

    async def _read(
        self,
        request: web.Request,
        text: str,
        bound: str | None,
        parameters: Sequence[tuple[str, str]],
    ) -> Read:
        """Returns the requested registration."""
        most = self._settings.query_characters
        if len(text) > most:
            raise LimitExceeded(
                f"the query has {len(text)} characters, where {most} are allowed",
                hint="send a shorter one",
            )
        return await self._served.in_thread(
            partial(
                read_registration,
                text,
                parameters,
                streams=self._iris_of(request, "").stream,
                bound=bound,
                store=self._store,
                endpoints=self._watched,
                maintain=self._settings.query_maintain,
            )
        )

    def description(self, request: web.Request, name: str) -> dict[str, object]:
        """Returns the part of a stream's description about its query; empty if there is none."""
        query = self.registry.get(name)
        if query is None:
            return {}
        registration = query.registration
        described: dict[str, object] = {
            "@type": ["rsp:Stream", "rsp:OutputStream"],
            "queryText": registration.text,
            "inputs": [self._iris_of(request, each).stream for each in query.positions],
            "status": registration.status,
            "taken": query.taken,
            "given": query.given,
            "lag": query.lag,
        }
        if registration.source is not None:
            described["inputs"] = [
                f"{self._iris_of(request, '').stream.removesuffix('/streams/')}{registration.source}"
            ]
        if query.dropped:
            described["dropped"] = sum(query.dropped.values())
            described |= {
                f"dropped{reason.title()}": count for reason, count in query.dropped.items()
            }
        if registration.source is None:
            described["evaluations"] = query.evaluations
            described["evaluationSeconds"] = round(query.seconds, 6)
            described["slowestSeconds"] = round(query.slowest, 6)
            described["memoryBytes"] = query.memory_bytes
            described["restarts"] = query.restarts
            if query.plan:
                described["plan"] = query.plan
        if query.error is not None:
            described["error"] = query.error
        return described

    async def patch(self, request: web.Request, name: str, body: bytes) -> web.Response:
        """Pauses or resumes a query: `{"status": "paused"}` or `{"status": "running"}`."""
        content_type = request.headers.get("Content-Type", "")
        if (read_media_type(content_type) or ("", {}))[0] not in PATCHES:
            refused = f"{content_type or 'a body without type'} is not a patch here"
            raise ProtocolError(refused, status=415, hint=f"send {JSON}")
        try:
            status = json.loads(body)["status"]
        except (ValueError, TypeError, KeyError):
            status = None
        if status not in ("paused", "running"):
            raise ProtocolError(
                "only the status can be changed", status=422, hint='send {"status": "paused"}'
            )
        record_of(request).action = "pause" if status == "paused" else "resume"
        await (self.registry.pause(name) if status == "paused" else self.registry.resume(name))
        return web.Response(status=204)


def is_query(content_type: str | None) -> bool:
    """Returns whether a body is the text of a query.

    >>> is_query("application/sparql-query; charset=utf-8"), is_query(None)
    (True, False)
    """
    return (read_media_type(content_type or "") or ("", {}))[0] == SPARQL_QUERY


def check_query(content_type: str | None) -> None:
    """Checks that a body is the text of a query."""
    if not is_query(content_type):
        refused = f"{content_type or 'a body without type'} is not a query here"
        raise ProtocolError(refused, status=415, hint=f"send {SPARQL_QUERY}")
