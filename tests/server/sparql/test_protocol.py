"""Requests as operations: the three ways that say the same, and everything that is refused."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import LimitExceeded, ProtocolError
from construct_messages.server.config import Limits
from construct_messages.server.sparql.protocol import (
    FETCHING,
    NOT_WITH_A_REWRITTEN_QUERY,
    WRITING,
    ProtocolRequest,
    forwarded,
    read_request,
)

FORM, QUERY, UPDATE = (
    "application/x-www-form-urlencoded",
    "application/sparql-query",
    "application/sparql-update",
)
ASK, DROP = "ASK {}", "DROP ALL"
PARTS, END = "multipart/form-data; boundary=B", b"--B--\r\n"


def part(name: str, value: str, encoding: str = "utf-8") -> bytes:
    """A part of a form, with what begins it."""
    head = f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
    return head.encode() + value.encode(encoding) + b"\r\n"


READ: dict[str, tuple[tuple[str, str, str | None, bytes], ProtocolRequest]] = {
    "GET": (("GET", "query=ASK+%7B%7D", None, b""), ProtocolRequest("query", ASK)),
    "GET, not escaped": (("GET", "query=ASK {}", None, b""), ProtocolRequest("query", ASK)),
    "GET, UTF-8 as it is": (("GET", "query=é", None, b""), ProtocolRequest("query", "é")),
    "GET, UTF-8 as the wire gave it": (
        ("GET", "query=\udcc3\udca9", None, b""),
        ProtocolRequest("query", "é"),
    ),
    "GET with a body": (
        ("GET", "query=ASK+%7B%7D", "text/html", b"query=1"),
        ProtocolRequest("query", ASK),
    ),
    "HEAD": (("HEAD", "query=ASK+%7b%7d", None, b""), ProtocolRequest("query", ASK, head=True)),
    "empty query": (("GET", "query=", None, b""), ProtocolRequest("query", "")),
    "empty pairs": (("GET", "&&query=ASK+{}&", None, b""), ProtocolRequest("query", ASK)),
    "name without value": (
        ("GET", "query=ASK+{}&x", None, b""),
        ProtocolRequest("query", ASK, parameters=(("x", ""),)),
    ),
    "equals signs": (("GET", "query=a=b=c", None, b""), ProtocolRequest("query", "a=b=c")),
    "escaped name": (("GET", "qu%65ry=ASK+{}", None, b""), ProtocolRequest("query", ASK)),
    "form": (("POST", "", FORM, b"query=ASK+%7B%7D"), ProtocolRequest("query", ASK)),
    "form with charset": (
        ("POST", "", f'{FORM}; charset="UTF-8"', b"query=ASK+{}"),
        ProtocolRequest("query", ASK),
    ),
    "form in capitals": (
        ("POST", "", FORM.upper(), b"query=ASK+{}"),
        ProtocolRequest("query", ASK),
    ),
    "form, raw UTF-8": (("POST", "", FORM, "query=é".encode()), ProtocolRequest("query", "é")),
    "form, query in the URL": (("POST", "query=ASK+{}", FORM, b""), ProtocolRequest("query", ASK)),
    "form update": (("POST", "", FORM, b"update=DROP+ALL"), ProtocolRequest("update", DROP)),
    "direct": (("POST", "", QUERY, b"ASK {}"), ProtocolRequest("query", ASK)),
    "direct, nothing decoded": (("POST", "", QUERY, b"a+b%20"), ProtocolRequest("query", "a+b%20")),
    "direct, empty": (("POST", "", QUERY, b""), ProtocolRequest("query", "")),
    "direct update": (
        ("POST", "", f"{UPDATE};charset=utf-8", b"DROP ALL"),
        ProtocolRequest("update", DROP),
    ),
    "dataset": (
        (
            "GET",
            "default-graph-uri=urn:a&query=ASK+{}&named-graph-uri=urn:b&default-graph-uri=urn:c",
            None,
            b"",
        ),
        ProtocolRequest("query", ASK, ("urn:a", "urn:c"), ("urn:b",)),
    ),
    "dataset of URL and form": (
        ("POST", "default-graph-uri=urn:a", FORM, b"default-graph-uri=urn:b&query=ASK+{}"),
        ProtocolRequest("query", ASK, ("urn:a", "urn:b")),
    ),
    "dataset of a direct query": (
        (
            "POST",
            "default-graph-uri=urn:a&named-graph-uri=http%3A%2F%2Fe%2F%C3%A9",
            QUERY,
            b"ASK {}",
        ),
        ProtocolRequest("query", ASK, ("urn:a",), ("http://e/é",)),
    ),
    "dataset of an update": (
        (
            "POST",
            "using-graph-uri=urn:a&using-named-graph-uri=urn:b&default-graph-uri=urn:c",
            UPDATE,
            b"DROP ALL",
        ),
        ProtocolRequest("update", DROP, ("urn:a",), ("urn:b",), (("default-graph-uri", "urn:c"),)),
    ),
    "empty dataset": (
        ("GET", "default-graph-uri=&query=ASK+{}", None, b""),
        ProtocolRequest("query", ASK),
    ),
    "other parameters": (
        ("POST", "b=1&a=2", FORM, b"b=3&query=ASK+{}&Query=4"),
        ProtocolRequest(
            "query", ASK, parameters=(("b", "1"), ("a", "2"), ("b", "3"), ("Query", "4"))
        ),
    ),
    # what Virtuoso takes, and clients of its send (issue 13, 24)
    "query in the URL of a POST without a body": (
        ("POST", "query=ASK+{}", None, b""),
        ProtocolRequest("query", ASK),
    ),
    "update in the URL of a POST": (
        ("POST", "update=DROP+ALL", None, b""),
        ProtocolRequest("update", DROP),
    ),
    "form in parts": (
        (
            "POST",
            "",
            PARTS,
            part("query", ASK) + part("named-graph-uri", "urn:a") + part("x", "a\r\n--b\r\n") + END,
        ),
        ProtocolRequest("query", ASK, (), ("urn:a",), (("x", "a\r\n--b\r\n"),)),
    ),
    "form in parts, in other words": (
        (
            "POST",
            "a=1",
            'Multipart/Form-Data; charset=utf-8; boundary="--B c"',
            b"----B c\r\nContent-Type: text/plain;"
            b" charset=UTF-8\r\ncontent-disposition: form-data; filename=q.rq; name=query\r\n\r\n\xc3\xa9\r\n----B c--",
        ),
        ProtocolRequest("query", "é", parameters=(("a", "1"),)),
    ),
    "description": (("GET", "", None, b""), ProtocolRequest("description", None)),
    "description by HEAD": (
        ("HEAD", "", None, b""),
        ProtocolRequest("description", None, head=True),
    ),
    "description in a format": (
        ("GET", "format=text/turtle", None, b""),
        ProtocolRequest("description", None, parameters=(("format", "text/turtle"),)),
    ),
}


@pytest.mark.parametrize("case", READ)
def test_read(case: str) -> None:
    request, expected = READ[case]
    assert read_request(*request, Limits()) == expected


REFUSED: dict[str, tuple[tuple[str, str, str | None, bytes], int, str]] = {
    "no query": (("POST", "", FORM, b""), 400, "no query"),
    "no query, but others": (("GET", "qeury=ASK+{}", None, b""), 400, "no query"),
    "two queries": (("GET", "query=a&query=a", None, b""), 400, "query and query"),
    "two queries, URL and form": (("POST", "query=a", FORM, b"query=a"), 400, "query and query"),
    "two queries, URL and body": (("POST", "query=a", QUERY, b"a"), 400, "query and query"),
    "two updates": (("POST", "", FORM, b"update=a&update=a"), 400, "update and update"),
    "query and update": (("POST", "", FORM, b"query=a&update=a"), 400, "query and update"),
    "update and query by GET": (("GET", "update=a&query=a", None, b""), 400, "update and query"),
    "update by GET": (("GET", "update=a", None, b""), 400, "an update came by GET"),
    "update by HEAD": (("HEAD", "update=a", None, b""), 400, "an update came by HEAD"),
    "not UTF-8, URL": (
        ("GET", "query=a%E9b", None, b""),
        400,
        "'query' in the URL: byte 0xE9 at offset 1",
    ),
    "not UTF-8, raw URL": (("GET", "query=a\udce9", None, b""), 400, "byte 0xE9 at offset 1"),
    "not UTF-8, a surrogate": (("GET", "query=\ud800", None, b""), 400, "\\ud800"),
    "not UTF-8, form": (
        ("POST", "", FORM, b"x=1&query=\xff"),
        400,
        "'query' in the form: byte 0xFF at offset 0",
    ),
    "not UTF-8, name": (("POST", "", FORM, b"%FF=1"), 400, "a name in the form: byte 0xFF"),
    "not UTF-8, body": (
        ("POST", "", QUERY, "ASK {} # é".encode("latin-1")),
        400,
        "the body: byte 0xE9 at offset 9",
    ),
    "not UTF-8, UTF-16": (("POST", "", QUERY, ASK.encode("utf-16")), 400, "byte 0xFF at offset 0"),
    "no escape": (("GET", "query=100%", None, b""), 400, "'%' is no escape"),
    "half an escape": (("POST", "", FORM, b"query=%4"), 400, "'%4' is no escape"),
    "wrong escape": (("GET", "query=%zz", None, b""), 400, "'%zz' is no escape"),
    "relative graph": (
        ("GET", "query=a&default-graph-uri=g", None, b""),
        400,
        "default-graph-uri: IRI <g> is relative",
    ),
    "no IRI": (("GET", "query=a&named-graph-uri=urn:a%3E", None, b""), 400, "named-graph-uri: IRI"),
    "graph of an update": (
        ("GET", "query=a&using-graph-uri=urn:a%3E", None, b""),
        400,
        "using-graph-uri",
    ),
    "no type": (("POST", "", None, b"query=a"), 415, "no Content-Type"),
    "empty type": (("POST", "", "", b"query=a"), 415, "no Content-Type"),
    "nothing": (("POST", "", None, b""), 400, "no query"),
    "another type": (("POST", "", "text/plain", b"ASK {}"), 415, "text/plain"),
    "parts without a boundary": (
        ("POST", "", "multipart/form-data", part("query", ASK) + END),
        400,
        "no boundary",
    ),
    "parts with another boundary": (
        ("POST", "", PARTS, b"--C\r\n\r\nASK {}\r\n--C--"),
        400,
        "multipart/form-data",
    ),
    "parts, cut": (("POST", "", PARTS, part("query", ASK)), 400, "multipart/form-data"),
    "parts, none": (("POST", "", PARTS, END), 400, "no query"),
    "parts, empty": (("POST", "", PARTS, b""), 400, "multipart/form-data"),
    "parts, two queries": (
        ("POST", "query=a", PARTS, part("query", ASK) + END),
        400,
        "query and query",
    ),
    "parts, without a name": (("POST", "", PARTS, part("", ASK) + END), 400, "has no name"),
    "parts, not UTF-8": (
        ("POST", "", PARTS, part("query", "é", "latin-1") + END),
        400,
        "byte 0xE9 at offset 0",
    ),
    "parts, another charset": (
        (
            "POST",
            "",
            PARTS,
            part("query", ASK).replace(
                b"\r\n\r\n", b"\r\nContent-Type: a/b; charset=utf-16\r\n\r\n"
            )
            + END,
        ),
        415,
        "charset=utf-16",
    ),
    "parts, too many": (
        ("POST", "", PARTS, part("x", "") * 1001 + END),
        400,
        "multipart/form-data",
    ),
    "malformed type": (("POST", "", "form", b"query=a"), 415, "form"),
    "another charset": (("POST", "", f"{FORM}; charset=latin1", b"query=a"), 415, "charset=latin1"),
    "another charset, direct": (
        ("POST", "", f"{QUERY}; charset=UTF-16", b""),
        415,
        "charset=utf-16",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    request, status, message = REFUSED[case]
    with pytest.raises(ProtocolError) as refused:
        read_request(*request, Limits())
    assert refused.value.status == status
    assert message in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("method", "content_type", "status"),
    [("GET", None, 414), ("POST", FORM, 413), ("POST", QUERY, 413)],
)
def test_long_queries(method: str, content_type: str | None, status: int) -> None:
    def ask(text: str) -> ProtocolRequest:
        body = {None: b"", FORM: f"query={text}".encode(), QUERY: text.encode()}[content_type]
        return read_request(
            method,
            f"query={text}" if method == "GET" else "",
            content_type,
            body,
            Limits(query_characters=9),
        )

    assert ask("é" * 9).text == "é" * 9
    with pytest.raises(LimitExceeded, match="10 characters, and 9 are allowed") as refused:
        ask("é" * 10)
    assert refused.value.status == status


def test_values() -> None:
    request = ProtocolRequest("query", ASK, parameters=(("a", "1"), ("b", "2"), ("a", "3")))
    assert (request.value("a"), request.values("a")) == ("1", ("1", "3"))
    assert (request.value("A"), request.values("A")) == (None, ())


FORWARDED = {
    "plain": ([("format", "json"), ("timeout", "1"), ("x", "y"), ("x", "y")], False, False, 4),
    "rewritten": (
        [("Format", "json"), ("TIMEOUT", "1"), ("messages", "rdfm"), ("group-by", "?a")],
        True,
        True,
        0,
    ),
    "unknown ones": ([("infer", "true"), ("x", "format")], True, False, 2),
    "sponge": (
        [("should-sponge", "soft"), ("Sponge", "1"), ("query-uri", "http://e/")],
        False,
        False,
        0,
    ),
    "sponge, allowed": ([("should-sponge", "soft"), ("sponge", "1")], True, True, 2),
    "pragmas": (
        [
            ("get:soft", "soft"),
            ("input:grab-all", "yes"),
            ("define", "get:soft"),
            ("define get:x", ""),
        ],
        False,
        False,
        0,
    ),
    "pragmas, allowed": ([("get:soft", "soft"), ("define", "x")], False, True, 2),
    "saving": ([("save", "tmpstatic"), ("fname", "x"), ("dav_refresh", "1")], False, True, 0),
    "query parameters": ([("?name", "1"), ("?näme_1", "x")], True, False, 2),
    "text in query parameters": (
        [('?x" define get:soft "soft', "1"), ("?", "1"), ("?a b", "1")],
        False,
        False,
        0,
    ),
    "text in a format": (
        [("format", 'x\ndefine get:soft "soft"'), ("output", "x\r")],
        False,
        False,
        0,
    ),
    "stylesheet": ([("xslt-uri", "http://e/")], True, True, 0),
}


@pytest.mark.parametrize("case", FORWARDED)
def test_forwarded(case: str) -> None:
    parameters, rewritten, sponge, count = FORWARDED[case]
    assert forwarded(parameters, rewritten=rewritten, sponge=sponge) == tuple(parameters)[:count]


@pytest.mark.parametrize(
    "table",
    [NOT_WITH_A_REWRITTEN_QUERY, FETCHING, WRITING],
    ids=["rewritten", "fetching", "writing"],
)
def test_reasons(table: dict[str, str]) -> None:
    assert all(name == name.lower() and reason for name, reason in table.items())


# --- what holds for every request ---

TEXTS = st.text(st.characters(codec="utf-8"))
GRAPHS = st.lists(st.sampled_from(["urn:a", "http://e/é?x=1&y=%20#f", "urn:b"]), max_size=3)
OTHERS = st.lists(
    st.tuples(TEXTS, TEXTS).filter(
        lambda pair: (
            not pair[0].endswith("graph-uri") and pair[0] not in ("query", "update") and any(pair)
        )
    ),
    max_size=3,
)


@given(st.sampled_from(["query", "update"]), TEXTS, GRAPHS, GRAPHS, OTHERS)
def test_three_ways(
    kind: str, text: str, default: list[str], named: list[str], others: list[tuple[str, str]]
) -> None:
    names = [f"{'default-' if kind == 'query' else 'using-'}graph-uri"]
    names.append("named-graph-uri" if kind == "query" else "using-named-graph-uri")
    dataset = [(names[0], graph) for graph in default] + [(names[1], graph) for graph in named]
    rest = [*dataset, *others]
    limits = Limits(query_characters=max(len(text), 1))
    form = urlencode([(kind, text), *rest])
    ways = [
        read_request("POST", "", FORM, form.encode(), limits),
        read_request(
            "POST",
            urlencode(rest, quote_via=quote),
            f"application/sparql-{kind}",
            text.encode(),
            limits,
        ),
        read_request("POST", urlencode(rest), FORM, f"{kind}={quote_plus(text)}".encode(), limits),
    ]
    if kind == "query":
        ways.append(read_request("GET", form, None, b"", limits))
    expected = ProtocolRequest(kind, text, tuple(default), tuple(named), tuple(others))  # type: ignore[arg-type]
    assert all(way == expected for way in ways)


@given(
    st.sampled_from(["GET", "HEAD", "POST", "PUT", ""]),
    st.text(alphabet="querypdat=&%+4zé\udce9 ") | st.text(st.characters(exclude_categories=())),
    st.sampled_from([None, "", FORM, PARTS, QUERY, UPDATE, f"{FORM};charset=utf-8"]) | st.text(),
    st.binary()
    | st.builds(lambda text: part("query", text) + END, st.text())
    | st.builds(bytes.__add__, st.just(b"query="), st.binary()),
)
def test_any_request(method: str, query_string: str, content_type: str | None, body: bytes) -> None:
    with suppress(ProtocolError, LimitExceeded):
        request = read_request(method, query_string, content_type, body, Limits(query_characters=8))
        assert (request.text is None) == (request.kind == "description")
        assert len(request.text or "") <= 8
        assert set(forwarded(request.parameters, rewritten=True, sponge=False)) <= set(
            request.parameters
        )
