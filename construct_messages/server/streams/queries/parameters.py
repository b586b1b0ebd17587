"""Parses requests to register a query: the text of the query and the parameters of the URL, as a registration.

LDN for RDF streams (registration of queries). No HTTP here; does not run queries.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, TypeAlias, TypeVar

from construct_messages.continuous.registered.query import Watched
from construct_messages.continuous.registered.registration import Registration
from construct_messages.continuous.windows import Bounds, Compared
from construct_messages.query.continuous.durations import duration
from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import ContinuousQuery, Operator, Report
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.service import check_services
from construct_messages.rdf.errors import ProtocolError, QueryError, UsageError
from construct_messages.server.streams.selection import sequence_parameter
from construct_messages.streams.store import StreamStore

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
    """A SPARQL endpoint of the server that queries may watch.

    Args:
        services: the endpoints that SERVICE may reach in them; see `check_services`.
    """

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

    Args:
        text: the query.
        parameters: the parameters of the URL, see docs/reference/continuous/registered.md.
        streams: the IRI of the stream list, with a final slash.
        bound: the stream at whose query endpoint the query is registered.
        store: the store of the streams.
        endpoints: the SPARQL endpoints, by path, that queries may watch or use as the data next to windows.
        maintain: whether solutions are maintained without the parameter `maintain`.

    Raises:
        QueryError: the text is not a continuous query.
        Forbidden: it has a SERVICE that is not allowed.
        ProtocolError: an unknown, repeated or invalid parameter.
        NotFound: the stream, or an element of it, does not exist.
        Gone: retention removed the first element.
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
            f"source={source or ''} is no endpoint of this server", status=422, hint=offered
        )
    return source


def _static(endpoint: str, endpoints: Mapping[str, WatchedEndpoint]) -> str:
    """Returns the endpoint with the data next to the windows."""
    local = [path for path, watched in endpoints.items() if watched.directory is not None]
    if endpoint not in local:
        offered = ", ".join(local) or "there is none"
        raise ProtocolError(
            f"static={endpoint} is no endpoint over files of this server", status=422, hint=offered
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
            raise ProtocolError(f"from={start[:40]} is no beginning", hint=hint) from None
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
        raise ProtocolError(f"skip_after={value[:40]} is no number of failures", hint=hint)
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
