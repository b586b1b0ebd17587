"""Parses HTTP requests into operations of the SPARQL Protocol, and selects the parameters to forward to the source.

SPARQL 1.1 Protocol, section 2. Works on the parts of a request, without a web framework, and does not parse queries.
`http/body.py` decodes the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from construct_messages.errors import LimitExceeded, ProtocolError, TermError, shown
from construct_messages.rdf.formats.media_types import (
    FORM,
    MULTIPART_FORM,
    SPARQL_QUERY,
    SPARQL_UPDATE,
    read_media_type,
)
from construct_messages.rdf.options import Grouping
from construct_messages.rdf.terms import Lenient, iri
from construct_messages.server.config import Limits
from construct_messages.server.http.body import decoded, read_form, read_parts, read_query_string

_DIRECT: Final[Mapping[str, Literal["query", "update"]]] = {
    SPARQL_QUERY: "query",
    SPARQL_UPDATE: "update",
}
_DATASET: Final = {
    "query": ("default-graph-uri", "named-graph-uri"),
    "update": ("using-graph-uri", "using-named-graph-uri"),
}
_GRAPHS: Final = frozenset(name for names in _DATASET.values() for name in names)
_VARIABLE: Final = re.compile(r"\?\w+")
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,18}")

CUTTING: Final = ("timeout", "maxrows", "send", "limit", "offset")
"""Parameters with which engines answer a part of a result as if it were whole, in lower case."""

NOT_WITH_A_REWRITTEN_QUERY: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("format", "output", "out", "results", "action", "force-accept", "accept"),
        "names a format for the CONSTRUCT; the SELECT is asked for in one that can be read here",
    ),
    **dict.fromkeys(("callback", "stylesheet", "xslt-uri"), "wraps or transforms the answer"),
    **dict.fromkeys(
        ("messages", "group-by", "distinct", "max-messages", "page-size", "lenient", "frame"),
        "is for the proxy itself",
    ),
    **dict.fromkeys(
        CUTTING,
        "cuts the answer short, at Virtuoso, QLever or RDF4J with success; a log is whole or it is an error",
    ),
    **dict.fromkeys(
        ("debug", "signal_void", "signal_unconnected"),
        "makes errors of variables that may be unbound",
    ),
    **dict.fromkeys(
        ("explain", "find", "ini", "qtxt", "help", "nsdecl", "rdfinf", "cmd"),
        "asks for something else than solutions",
    ),
}
"""Parameters that are not sent with a rewritten query, in lower case, with the reason."""

FETCHING: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("should-sponge", "sponge"), "makes a Virtuoso load from the web what the query names"
    ),
    **dict.fromkeys(("query-uri", "xslt-uri"), "makes a Virtuoso fetch the query or a stylesheet"),
    **dict.fromkeys(
        ("get-login", "find", "class"),
        "becomes text of the query at a Virtuoso, without a check of this server",
    ),
    "define": "is a pragma",
}
"""Parameters that are forwarded only if fetching from the web is allowed, in lower case, with the reason."""

WRITING: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("save", "fname", "dav_refresh", "dav_overwrite"),
        "makes a Virtuoso store the answer in its own file system",
    ),
    **dict.fromkeys(
        ("query", "update"),
        "in another case is nothing here, and may be an operation to the source",
    ),
}
"""Parameters that are never forwarded, in lower case, with the reason."""

_PRAGMAS: Final = ("get:", "input:", "define ")


@dataclass(frozen=True)
class MessageParameters:
    """The options of a request for messages, named as on the command line.

    `max_messages` None: to the end of the result. `page_size` and `lenient` None: as the settings of the endpoint.
    """

    grouping: Grouping = Grouping()
    distinct: bool = False
    max_messages: int | None = None
    page_size: int | None = None
    lenient: Lenient | None = None


@dataclass(frozen=True)
class ProtocolRequest:
    """An operation of the SPARQL Protocol.

    The graphs are those of `default-graph-uri` and `named-graph-uri`, or of `using-graph-uri` and
    `using-named-graph-uri` for an update. `parameters` are all others: those of the URL before those of a form.
    """

    kind: Literal["query", "update", "description"]
    text: str | None
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    head: bool = False

    @property
    def message_options(self) -> MessageParameters:
        """The options of the messages.

        >>> ProtocolRequest("query", "", parameters=(("max-messages", "5"),)).message_options.max_messages
        5
        """
        for name, value in self.parameters:
            if name.lower() in CUTTING and value not in (
                "",
                "0",
            ):  # Virtuoso's form sends timeout=0
                raise ProtocolError(
                    f"{name}={shown(value)} would cut the log short, which must be whole",
                    hint="write LIMIT or OFFSET into the query, or ask for max-messages=N; "
                    "the settings of the server limit the time",
                )
        return MessageParameters(
            Grouping([name.strip() for name in self.values("group-by")]),
            self._switch("distinct") or False,
            self._number("max-messages", 0),
            self._number("page-size", 1),
            "skip" if self._one("lenient") == "skip" else self._switch("lenient"),
        )

    def value(self, name: str) -> str | None:
        """Returns the first value of a parameter, or None."""
        return next(iter(self.values(name)), None)

    def values(self, name: str) -> tuple[str, ...]:
        """Returns the values of a parameter, in order."""
        return tuple(value for known, value in self.parameters if known == name)

    def _switch(self, name: str) -> bool | None:
        """Returns the value of a parameter that is true or false; None: it is absent."""
        value = self._one(name)
        if value not in (None, "true", "false"):
            raise ProtocolError(
                f"{name}={shown(value)} is neither true nor false", hint=f"write {name}=true"
            )
        return None if value is None else value == "true"

    def _number(self, name: str, least: int) -> int | None:
        """Returns the value of a parameter that is a whole number; None: it is absent."""
        value = self._one(name)
        if value is None:
            return None
        if not _WHOLE_NUMBER.fullmatch(value) or int(value) < least:
            raise ProtocolError(
                f"{name}={shown(value)} is not a whole number of at least {least}",
                hint=f"write {name}=1000, or leave it out",
            )
        return int(value)

    def _one(self, name: str) -> str | None:
        values = self.values(name)
        if len(values) > 1:
            raise ProtocolError(f"{name} has {len(values)} values", hint="give it once")
        return next(iter(values), None)


def read_request(
    method: str, query_string: str, content_type: str | None, body: bytes, limits: Limits
) -> ProtocolRequest:
    """Parses a request.

    Another media type or charset is refused with 415, a query that is too long with 413, or 414 in the URL.

    Parameters of a form are added to those of the URL, so both may name graphs, but there is one query. A GET without
    parameters (except `format`) requests the service description. An empty graph IRI, which browsers send for an empty
    field of a form, is ignored. A POST without a body may have its query in the URL, and a form may be
    `multipart/form-data`, as clients of Virtuoso send it.

    >>> asked = read_request("GET", "query=ASK%7B%7D&default-graph-uri=urn:g&timeout=5", None, b"", Limits())
    >>> asked.kind, asked.text, asked.default_graphs, asked.parameters
    ('query', 'ASK{}', ('urn:g',), (('timeout', '5'),))
    >>> read_request("POST", "", "application/sparql-update", b"DROP ALL", Limits()).kind
    'update'
    """
    parameters = list(read_query_string(query_string))
    if method == "POST":
        parameters += _read_body(content_type, body)
    texts = [(name, value) for name, value in parameters if name in ("query", "update")]
    if not texts and method != "POST" and all(name == "format" for name, _ in parameters):
        return ProtocolRequest(
            "description", None, parameters=tuple(parameters), head=method == "HEAD"
        )
    name, text = _only(texts, method)
    if len(text) > limits.query_characters:
        raise LimitExceeded(
            f"the {name} has {len(text)} characters, and {limits.query_characters} are allowed",
            status=413 if method == "POST" else 414,
        )
    kind: Literal["query", "update"] = "update" if name == "update" else "query"
    for graph_name, value in parameters:
        # also those of the other kind of operation: sources write them into the text
        if graph_name in _GRAPHS and value:
            _check_graph(graph_name, value)
    default, named = _DATASET[kind]
    return ProtocolRequest(
        kind,
        text,
        tuple(value for name, value in parameters if name == default and value),
        tuple(value for name, value in parameters if name == named and value),
        tuple(
            (name, value)
            for name, value in parameters
            if name not in ("query", "update", default, named)
        ),
        method == "HEAD",
    )


def forwarded(
    parameters: Sequence[tuple[str, str]], *, rewritten: bool, sponge: bool
) -> tuple[tuple[str, str], ...]:
    """Returns the parameters to forward to the source. Names are case-insensitive.

    `rewritten`: a SELECT is sent instead of the CONSTRUCT of the client. `sponge`: requests may cause the source to
    fetch from the web.

    >>> forwarded([("infer", "true"), ("Format", "json"), ("should-sponge", "soft")], rewritten=True, sponge=False)
    (('infer', 'true'),)
    >>> forwarded([("format", "json"), ("timeout", "30000")], rewritten=False, sponge=False)
    (('format', 'json'), ('timeout', '30000'))
    """
    return tuple(
        (name, value)
        for name, value in parameters
        if not (rewritten and name.lower() in NOT_WITH_A_REWRITTEN_QUERY)
        and name.lower() not in WRITING
        and (sponge or not _may_fetch(name, value))
    )


def _may_fetch(name: str, value: str) -> bool:
    folded = name.lower()
    if folded in FETCHING or folded.startswith(_PRAGMAS):
        return True
    # Virtuoso writes these into the text of the query: the name of a variable within quotes, a format into a comment
    if name.startswith("?"):
        return not _VARIABLE.fullmatch(name)
    return folded in ("format", "output") and any(char < " " for char in value)


def _read_body(content_type: str | None, body: bytes) -> Iterable[tuple[str, str]]:
    """Returns the parameters in a body."""
    media_type, parameters = read_media_type(content_type or "") or ("", {})
    if media_type not in (FORM, MULTIPART_FORM, *_DIRECT):
        if not body:  # clients send an empty body with any type, or none
            return ()
        what = (
            f"Content-Type: {content_type} is not read here"
            if content_type
            else "the request has no Content-Type"
        )
        hint = f"send {FORM}, {MULTIPART_FORM} or {' or '.join(_DIRECT)}"
        raise ProtocolError(what, status=415, hint=hint)
    charset = parameters.get("charset", "utf-8")
    if charset not in ("utf-8", "utf8"):
        raise ProtocolError(f"charset={charset} is not read here", status=415, hint="send UTF-8")
    if media_type == FORM:
        return read_form(body)
    if media_type == MULTIPART_FORM:
        return read_parts(content_type or "", body)
    return [(_DIRECT[media_type], decoded(body, "the body"))]


def _only(texts: Sequence[tuple[str, str]], method: str) -> tuple[str, str]:
    if not texts:
        raise ProtocolError(
            "there is no query", hint="send it as the parameter query, or update for an update"
        )
    if len(texts) > 1:
        names = " and ".join(name for name, _ in texts[:2])
        raise ProtocolError(
            f"there is more than one operation: {names}", hint="send one query or one update"
        )
    if texts[0][0] == "update" and method != "POST":
        raise ProtocolError(f"an update came by {method}", hint="send updates by POST")
    return texts[0]


def _check_graph(name: str, value: str) -> None:
    try:
        iri(value)
    except TermError as error:
        raise ProtocolError(f"{name}: {error.message}", hint=error.hint) from None
