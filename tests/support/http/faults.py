"""What endpoints do to an answer, and what a client of a server in front of them must then see of a message log.

Each case is one way in which a real endpoint answers. What must become of it is said here, not found out: the log in
full (`COMPLETE`), an error instead of it (`refused`), or a connection that breaks within it (`breaks`).
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from construct_messages.rdf.terms import Term
from construct_messages.server.config import Limits
from tests.support.http.clients import BODIES, JSON_BODY, TABLE, VARIABLES
from tests.support.http.fault_server import (
    HOLD,
    JSON,
    PAUSE,
    RESET,
    STALL,
    TSV,
    XML,
    Act,
    Answering,
    Asked,
    Script,
    response,
)
from tests.support.results.documents import json_document, tsv_document, xml_document

QUERY: Final = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"


def log_of(table: list[tuple[Term, ...]]) -> bytes:
    """The log of `QUERY` over these solutions."""
    return "".join(f"# @message\n{s} <urn:q> {o} .\n" for s, o in table).encode()


LOG: Final = log_of(TABLE)
READ: Final = 3
"""How many solutions have been read, and their messages sent, when what `breaks` goes wrong."""

ENDPOINTS: Final[Mapping[str, dict[str, Any]]] = {
    "generic": {},
    "virtuoso": {"profile": "virtuoso"},
    "blazegraph": {"profile": "blazegraph"},
    "qlever": {"profile": "qlever"},
    "tsv": {"results": "tsv"},
    "impatient": {"read_seconds": 1.0},
    "brief": {"limits": Limits(seconds=1.0)},
    # where messages must have been sent before the time is over, to all clients, on a slow machine, too
    "impatient-paused": {"read_seconds": 10.0},
    "brief-paused": {"limits": Limits(seconds=10.0)},
}
"""Settings of an endpoint in front of the one that misbehaves."""


@dataclass(frozen=True)
class Outcome:
    """What a client must see."""

    kind: Literal["complete", "refused", "breaks"]
    status: int = 200
    """Where it is refused, or would break if the log were not held back."""
    words: str = ""
    """In the problem document."""
    reason: str = "incomplete"
    """In the server's log and metrics, where it breaks."""
    retry_after: str | None = None

    def seen(self, held: bool) -> str:
        """It in words, where the server sends the log as it comes or holds it back until it is whole."""
        match self.kind:
            case "complete":
                return "complete"
            case "breaks" if not held:
                return "broken"
        return f"refused with {self.status}"


@dataclass(frozen=True)
class Case:
    """One answer."""

    script: Script | Answering
    outcome: Outcome
    endpoint: str = "generic"
    log: bytes = field(default=LOG, repr=False)

    @property
    def is_held(self) -> bool:
        """Whether the endpoint waits for the first messages to be sent."""
        return not callable(self.script) and HOLD in self.script

    @property
    def served_by(self) -> str:
        """Which of `ENDPOINTS`."""
        return (
            paused
            if self.is_held and (paused := f"{self.endpoint}-paused") in ENDPOINTS
            else self.endpoint
        )


COMPLETE: Final = Outcome("complete")


def refused(words: str, status: int = 502, **options: Any) -> Outcome:
    return Outcome("refused", status, words, **options)


def breaks(words: str = "", status: int = 502, reason: str = "incomplete") -> Outcome:
    return Outcome("breaks", status, words, reason)


# --- how scripts are made ---


def paused(wire: bytes, *behind: bytes | Act) -> list[bytes | Act]:
    """The same, but that the server has sent on the first `READ` solutions before it gets the rest."""
    place = wire.index(f"label {READ}".encode())
    return [wire[:place], HOLD, wire[place:], *behind]


def followed(text: str, body: bytes = JSON_BODY, content_type: str = JSON) -> list[bytes | Act]:
    """The whole result, and something behind it, with a clean end."""
    return paused(response(body + text.encode(), content_type))


def instead_of(old: str, new: str | bytes, results: str = "json") -> list[bytes | Act]:
    """A body in which something is replaced."""
    body, content_type = BODIES[results]
    changed = body.replace(old.encode(), new if isinstance(new, bytes) else new.encode())
    assert changed != body
    return paused(response(changed, content_type))


def broken_off(text: str) -> list[bytes | Act]:
    """The result up to its eighth solution, and then something else, with a clean end."""
    place = JSON_BODY.index(b', {"s": {"type": "uri", "value": "urn:8"')
    return paused(response(JSON_BODY[:place] + text.encode(), chunk=10_000))


def error(status: str, text: str, content_type: str = "text/plain", **headers: str) -> list[bytes]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return [response(text.encode(), content_type, status=status, headers=given)]


def gzipped(change: Any, *, framing: str = "chunked") -> list[bytes | Act]:
    """A coded body: what decodes to the first solutions, and the rest as `change` makes it."""
    place = JSON_BODY.index(f"label {READ}".encode())
    compressor = zlib.compressobj(wbits=31)
    first = compressor.compress(JSON_BODY[:place]) + compressor.flush(zlib.Z_SYNC_FLUSH)
    coded = first + change(compressor.compress(JSON_BODY[place:]) + compressor.flush())
    wire = response(coded, headers={"Content-Encoding": "gzip"}, framing=framing, chunk=len(first))
    place = wire.index(first) + len(first)
    return [wire[:place], HOLD, wire[place:]]


def in_members(count: int) -> list[bytes]:
    """An answer in gzip of so many members, each a part of the body."""
    size = len(JSON_BODY) // count + 1
    parts = [
        gzip.compress(JSON_BODY[start : start + size]) for start in range(0, len(JSON_BODY), size)
    ]
    return [response(b"".join(parts), headers={"Content-Encoding": "gzip"}, chunk=50)]


def interim(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nLink: </style.css>; rel=preload\r\n\r\n".encode()


def reframed(old: bytes, new: bytes) -> list[bytes | Act]:
    """A chunked answer of 100 bytes a chunk, the last of which is framed in another way."""
    wire = response(JSON_BODY, chunk=100)
    place = wire.rindex(old)
    return paused(wire[:place] + new + wire[place + len(old) :])


def members(**changes: Any) -> bytes:
    """The JSON result with other members."""
    return json.dumps({**json.loads(JSON_BODY), **changes}).encode()


def turned(document: bytes) -> bytes:
    """The JSON result with the members of every object in the opposite order."""

    def turn(value: object) -> object:
        match value:
            case dict():
                return {name: turn(part) for name, part in reversed(value.items())}
            case list():
                return [turn(part) for part in value]
        return value

    return json.dumps(turn(json.loads(document))).encode()


def capped(behind: bytes) -> Answering:
    """An endpoint with a cap of as many solutions as there are, and what it says to somebody who asks for the next."""

    def answer(asked: Asked) -> bytes:
        is_probe = re.search(r"LIMIT 1 OFFSET 12$", asked.parameters["query"][0])
        return behind if is_probe else response(JSON_BODY, headers={"X-SPARQL-MaxRows": "12"})

    return answer


def reworded(old: str, new: str, results: str = "json") -> bytes:
    """A body in which something is replaced wherever it stands."""
    body, _ = BODIES[results]
    changed = body.replace(old.encode(), new.encode())
    assert changed != body
    return changed


def moved(asked: Asked) -> bytes:
    if asked.target == "/sparql":
        return response(b"", status="308 Permanent Redirect", headers={"Location": "/elsewhere"})
    return response(JSON_BODY)


def redirect(location: str, status: str = "302 Found") -> Script:
    return [response(b"", status=status, headers={"Location": location})]


# an excerpt of what came may be shown, a page may not
PAGE: Final = f"<!DOCTYPE html><html><head><title>{'Busy ' * 20}</title></head><body>a secret page</body></html>"
QLEVER: Final = "Tried to allocate 4 GB, but only 3 GB were available."
TRAILERS: Final = {
    "Oxigraph's cancellation": "The SPARQL operation has been cancelled",
    "Comunica's time-out": "!TIMEDOUT!",
    "Comunica's error": "!ERROR!",
    # as its ExportQueryExecutionTrees.cpp writes it; the end is the message of the exception
    "QLever's error": "\n !!!!>># An error has occurred while exporting the query result. Unfortunately due to "
    "limitations in the HTTP 1.1 protocol, there is no better way to report this than to append it to the incomplete "
    f"result. The error message was:\n{QLEVER}",
    "a page": PAGE,
}
STACK: Final = "java.util.concurrent.ExecutionException: java.util.concurrent.TimeoutException\n\tat java.base/Task"
ANYTIME: Final = {"X-SQL-State": "S1TAT", "X-SQL-Message": "Returning incomplete results"}
LONG: Final = "long" * 5000
TSV_LINES: Final = BODIES["tsv"][0].index(b"<urn:10>")
PARTS: Final = {
    "a part": {"partial": True},
    "a part in words": {"isPartial": "true"},
    "a part of a part": {"meta": {"results_truncated": True}},
    "a time that is over": {"timedOut": True},
    "more": {"hasMore": True},
    "no whole": {"complete": False},
    "a state": {"status": "INCOMPLETE"},
    "a warning": {"warnings": ["the result was truncated to 10,000 rows"]},
}
"""Members by which servers say that a result is a part."""
UNREACHED: Final = refused("could not be reached")

CASES: Final[Mapping[str, Case]] = {
    # --- whole, if in ways of its own ---
    **{
        f"{results}, framed by {framing}": Case(
            [response(*BODIES[results], framing=framing)], COMPLETE, endpoint
        )
        for results, endpoint in (("json", "generic"), ("xml", "generic"), ("tsv", "tsv"))
        for framing in ("chunked", "length", "close")
        if (results, framing) != ("tsv", "close")
    },
    "a byte at a time": Case([bytes([byte]) for byte in response(JSON_BODY)], COMPLETE),
    "a byte to a chunk": Case([response(JSON_BODY, chunk=1)], COMPLETE),
    "chunk extensions": Case(reframed(b"\r\n0\r\n", b"\r\n0;last=yes\r\n"), COMPLETE),
    "fields behind the last chunk": Case(
        reframed(b"\r\n0\r\n\r\n", b"\r\n0\r\nX-Time: 12\r\n\r\n"), COMPLETE
    ),
    "gzip": Case(gzipped(lambda rest: rest), COMPLETE),
    "results before head": Case([response(turned(JSON_BODY))], COMPLETE),
    "head without vars": Case([response(members(head={}))], COMPLETE),
    "further members": Case(
        [response(members(head={"link": [], "vars": ["s", "o"]}, metadata=[{}]))], COMPLETE
    ),
    "typed-literal": Case(instead_of('"literal"', '"typed-literal"'), COMPLETE),
    "white space behind": Case(followed("\r\n\n "), COMPLETE),
    "white space behind, cut": Case(
        [response(JSON_BODY + b"\n\n", framing="close")[:-1]], COMPLETE
    ),
    "no solution": Case([response(json_document(VARIABLES, []))], COMPLETE, log=b""),
    "application/json": Case([response(JSON_BODY, "application/json;charset=utf-8")], COMPLETE),
    "a cap that is not reached": Case(
        [response(JSON_BODY, headers={"X-SPARQL-MaxRows": "13"})], COMPLETE
    ),
    "a cap, and nothing behind it": Case(capped(response(json_document(VARIABLES, []))), COMPLETE),
    "redirected within the origin": Case(moved, COMPLETE),
    "13.17: a line break behind a Content-Length": Case(
        [response(JSON_BODY, framing="length") + b"\r\n"], COMPLETE
    ),
    **{
        f"13.23: {charset}": Case(
            [response(body, f"{content_type}; charset={charset}")], COMPLETE, endpoint
        )
        for charset in ("utf8", '"utf-8"', "UTF_8", "us-ascii")
        for (body, content_type), endpoint in ((BODIES["json"], "generic"), (BODIES["tsv"], "tsv"))
    },
    **{
        f"13.23: {status} before the answer": Case(
            [interim(status) * 3 + response(JSON_BODY)], COMPLETE
        )
        for status in ("100 Continue", "102 Processing", "103 Early Hints")
    },
    "13.23: gzip of two members": Case(in_members(2), COMPLETE),
    "13.23: gzip of many members": Case(in_members(50), COMPLETE),
    "13.23: HTTP/1.0 with chunks": Case(
        [response(JSON_BODY).replace(b"HTTP/1.1", b"HTTP/1.0", 1)], COMPLETE
    ),
    # --- errors behind 200, with a clean end ---
    **{
        f"{name} behind the result": Case(followed(text), breaks("after"))
        for name, text in TRAILERS.items()
    },
    **{
        f"{name} within the result": Case(broken_off(text), breaks("after"))
        for name, text in TRAILERS.items()
    },
    **{
        f"{name} behind {results}": Case(followed(text, *BODIES[results]), breaks(), endpoint)
        for results, endpoint in (("xml", "generic"), ("tsv", "tsv"))
        for name, text in TRAILERS.items()
    },
    **{
        f"QLever's reason {where}": Case(script, breaks(f" solutions: {QLEVER}"), endpoint)
        for where, script, endpoint in (
            ("within JSON", broken_off(TRAILERS["QLever's error"]), "generic"),
            ("behind JSON", followed(TRAILERS["QLever's error"]), "qlever"),
            ("behind TSV", followed(TRAILERS["QLever's error"], *BODIES["tsv"]), "tsv"),
            ("behind XML", followed(TRAILERS["QLever's error"], *BODIES["xml"]), "generic"),
        )
    },
    "QLever's time-out within the result": Case(
        broken_off(TRAILERS["QLever's error"].replace(QLEVER, "Operation timed out.")),
        breaks("Operation timed out.", 504),
        "qlever",
    ),
    "a trailer instead of the result": Case(
        [response(b"!TIMEDOUT!")], refused("expected a JSON object")
    ),
    "Blazegraph's stack trace": Case(
        broken_off(f', {{"s": {{"type": "uri", "value": "{STACK}'), breaks("after 8 whole")
    ),
    "a second result": Case(followed(JSON_BODY.decode()), breaks("is repeated")),
    "a member that comes twice": Case(
        paused(response(JSON_BODY[:-2] + b',"bindings":[{}]}}')), breaks("is repeated")
    ),
    "a control character in JSON": Case(instead_of("label 8", "label\b8"), breaks("after")),
    "a line break in JSON": Case(instead_of("label 8", "label\n8"), breaks("after")),
    "no UTF-8": Case(instead_of("label 8", b"label \xff"), breaks("after")),
    "a relative IRI": Case(instead_of("urn:8", "eight"), breaks("relative")),
    "a control character in XML": Case(instead_of("label 8", "label &#8;", "xml"), breaks("XML")),
    "an entity in XML": Case(instead_of("label 8", "&label;", "xml"), breaks("XML")),
    "a line of TSV that is too short": Case(
        instead_of('<urn:8>\t"label 8"@en', "<urn:8>", "tsv"), breaks(), "tsv"
    ),
    "a term that TSV has not": Case(instead_of('"label 8"@en', "label 8", "tsv"), breaks(), "tsv"),
    "no results": Case([response(b'{"head":{"vars":["s","o"]}}')], refused("no results.bindings")),
    "the result of an ASK": Case(
        [response(b'{"head":{},"boolean":true}')], refused("result of an ASK")
    ),
    "nothing at all": Case([response(b"")], refused("ends before its first solution")),
    # --- the answer to another query, or to none ---
    **{
        f"13.18: JSON for {name}": Case([response(body)], refused("is not for ?s ?o"))
        for name, body in {
            "other variables": reworded('"s"', '"a"'),
            "names with question marks": reworded('"s"', '"?s"'),
            "names in capitals": reworded('"s"', '"S"'),
            "names in quotes": reworded('"s"', r'"\"s\""'),
            "a variable less": members(head={"vars": ["s"]}),
            "no variable": members(head={"vars": []}),
            "other variables, without a solution": json_document(("a", "o"), []),
        }.items()
    },
    **{
        f"13.18: XML for {name}": Case([response(body, XML)], refused("is not for ?s ?o"))
        for name, body in {
            "other variables": reworded('name="s"', 'name="a"', "xml"),
            "names with question marks": reworded('name="s"', 'name="?s"', "xml"),
            "names in capitals": reworded('name="s"', 'name="S"', "xml"),
            "a variable less": reworded('<variable name="s"/>', "", "xml"),
        }.items()
    },
    **{
        f"13.18: TSV for {name}": Case([response(body, TSV)], refused("is not for ?s ?o"), "tsv")
        for name, body in {
            "other variables": reworded("?s\t", "?a\t", "tsv"),
            "names in quotes": reworded("?s\t", '"s"\t', "tsv"),
            "variables in quotes": reworded("?s\t", '"?s"\t', "tsv"),
            "names in capitals": reworded("?s\t", "?S\t", "tsv"),
            "a variable less": reworded("?s\t", "?o\t", "tsv"),
        }.items()
    },
    "13.18: a variable twice in TSV": Case(
        [response(b"?s\t?o\t?s\n<urn:a>\t1\t<urn:b>\n", TSV)], refused("in its header"), "tsv"
    ),
    "13.18: solutions for other variables, without a head": Case(
        [response(reworded('"s":', '"a":').replace(b'"vars": ["s", "o"]', b""))],
        refused("unknown field `a`"),
    ),
    "13.18: solutions for other variables than the head's": Case(
        [response(reworded('"s":', '"?s":'))], refused("unknown field `?s`")
    ),
    "13.18: another head behind the results": Case(
        paused(response(turned(members(head={"vars": ["a", "o"]})))), breaks("is not for ?s ?o")
    ),
    "13.18: bindings without names": Case(
        [response(reworded('binding name="s"', "binding", "xml"), XML)],
        refused("a binding without a name"),
    ),
    "13.18: bindings for other variables than the head's": Case(
        [response(reworded('binding name="s"', 'binding name="S"', "xml"), XML)],
        refused("a binding for 'S'"),
    ),
    "13.18: two bindings for a variable": Case(
        [response(reworded('binding name="o"', 'binding name="s"', "xml"), XML)],
        refused("two bindings for 's'"),
    ),
    "13.18: a second results element": Case(
        paused(response(reworded("</results>", "</results><results></results>", "xml"), XML)),
        breaks("second results"),
    ),
    **{
        f"13.18: {name}": Case([response(body)], refused("reports a failure"))
        for name, body in {
            "an error and no solutions": b'{"results":{"bindings":[]},"error":"out of memory"}',
            "an error before the solutions": b'{"error":{"code":7},' + JSON_BODY[1:],
            "an error in the head": members(head={"vars": ["s", "o"], "Errors": ["out of memory"]}),
        }.items()
    },
    "13.18: an error behind the solutions": Case(
        paused(response(JSON_BODY[:-1] + b',"exception":"out of memory"}')),
        breaks('exception: "out of memory'),
    ),
    "13.18: an error that is none": Case(
        [response(JSON_BODY[:-1] + b',"error":null,"errors":[]}')], COMPLETE
    ),
    "13.18: results that come twice": Case(
        paused(response(JSON_BODY[:-1] + b',"results":{"bindings":[]}}')),
        breaks("'results' is repeated"),
    ),
    "13.18: bindings that come twice": Case(
        paused(response(JSON_BODY[:-2] + b',"bindings":[]}}')), breaks("'bindings' is repeated")
    ),
    "13.18: bindings that come twice, escaped": Case(
        paused(response(JSON_BODY[:-2] + rb',"b\u0069ndings":[]}}')),
        breaks("'bindings' is repeated"),
    ),
    # --- what is no result that can be read ---
    **{
        f"13.22: XML in {encoding}": Case(
            [response(reworded("UTF-8", encoding, "xml"), XML)],
            refused("in its declared encoding"),
        )
        for encoding in ("gb2312", "UTF-32", "none", "hex", "idna")
    },
    "13.22: TSV with 1,000 nested triple terms": Case(
        [
            response(
                b"?s\t?o\n<urn:a>\t"
                + b"<<( <urn:a> <urn:b> " * 1000
                + b"1"
                + b" )>>" * 1000
                + b"\n",
                TSV,
            )
        ],
        refused("more than 100 triple terms"),
        "tsv",
    ),
    **{
        f"13.22: {results} with an empty IRI": Case(
            [response(document(VARIABLES, [(Term("<>"), TABLE[0][1])]), content_type)],
            refused("relative"),
            endpoint,
        )
        for results, document, content_type, endpoint in (
            ("JSON", json_document, JSON, "generic"),
            ("XML", xml_document, XML, "generic"),
            ("TSV", tsv_document, TSV, "tsv"),
        )
    },
    "13.22: an empty IRI behind others": Case(
        [response(json_document(VARIABLES, [*TABLE[:2], (Term("<>"), TABLE[0][1])]))],
        refused("relative"),
    ),
    # --- a part of the result ---
    "206": Case(
        [response(JSON_BODY, status="206 Partial Content", headers=ANYTIME)],
        refused("Returning incomplete"),
    ),
    "206 without a reason": Case(
        [response(JSON_BODY, status="206 Partial Content")], refused("a part of the result")
    ),
    "anytime results": Case(
        [response(JSON_BODY, headers=ANYTIME)], refused("Returning incomplete results")
    ),
    **{
        f"26.12: {name}": Case([response(JSON_BODY, headers=headers)], refused(words))
        for name, headers, words in (
            (
                "Content-Range",
                {"Content-Range": "bytes 0-99/2000"},
                "a part of the result only: Content-Range: bytes",
            ),
            (
                "Content-Range of items",
                {"Content-Range": "items 0-11/*"},
                "a part of the result only",
            ),
            (
                "Content-Range from another",
                {"Content-Range": "rows 12-23/24"},
                "a part of the result only",
            ),
            (
                "X-SQL-Message without a state",
                {"X-SQL-Message": ANYTIME["X-SQL-Message"]},
                "Returning incomplete",
            ),
        )
    },
    **{
        f"26.12: {name}, but whole": Case([response(JSON_BODY, headers=headers)], COMPLETE)
        for name, headers in (
            ("Content-Range", {"Content-Range": "items 0-11/12"}),
            ("X-SQL-Message", {"X-SQL-Message": "the query was completed"}),
        )
    },
    **{
        f"26.12: {name} before the solutions": Case(
            [response(b"{" + json.dumps(member)[1:-1].encode() + b"," + JSON_BODY[1:])],
            refused("is declared incomplete"),
        )
        for name, member in PARTS.items()
    },
    **{
        f"26.12: {name} behind the solutions": Case(
            paused(response(JSON_BODY[:-1] + b"," + json.dumps(member)[1:].encode())),
            breaks("is declared incomplete"),
        )
        for name, member in PARTS.items()
    },
    "26.12: a part in the results": Case(
        paused(response(JSON_BODY[:-2] + b',"truncated":true}}')),
        breaks("incomplete: truncated: true"),
    ),
    "26.12: members of a whole result": Case(
        [response(members(partial=False, complete=True, status="OK"))], COMPLETE
    ),
    "26.12: a part in XML": Case(
        [response(reworded("<results>", '<results truncated="true">', "xml"), XML)],
        refused("incomplete: truncated"),
    ),
    "26.12: a whole in XML": Case(
        [response(reworded("<results>", '<results partial="no">', "xml"), XML)], COMPLETE
    ),
    "a cap, and more behind it": Case(
        capped(response(json_document(VARIABLES, TABLE[:1]))),
        breaks("returns at most 12 solutions"),
    ),
    "a cap, and no telling": Case(
        capped(error("500 Oops", "Virtuoso 22023 Error SR353: Sorted TOP clause")[0]),
        breaks("returns at most 12"),
    ),
    "a cap that was not heeded": Case(
        [response(JSON_BODY, headers={"X-SPARQL-MaxRows": "11"})],
        breaks("returns at most 11 solutions, and 12 came"),
    ),
    # --- less, or other bytes than the framing promised ---
    **{
        f"{results} cut, framed by {framing}": Case(
            paused(response(*BODIES[results], framing=framing)[:-20]), breaks(), endpoint
        )
        for results, endpoint in (("json", "generic"), ("xml", "generic"), ("tsv", "tsv"))
        for framing in ("chunked", "length", "close")
        if (results, framing) != ("tsv", "close")
    },
    "TSV cut between two lines": Case(
        paused(
            response(BODIES["tsv"][0], TSV, framing="length")[: -len('<urn:11>\t"label 11"@en\n')]
        ),
        breaks(),
        "tsv",
    ),
    "26.12: TSV longer than its length, up to a line": Case(
        paused(response(*BODIES["tsv"], framing="length", length=TSV_LINES)), breaks(), "tsv"
    ),
    "26.12: TSV that goes on after its length": Case(
        paused(
            response(BODIES["tsv"][0][:TSV_LINES], TSV, framing="length"),
            PAUSE,
            BODIES["tsv"][0][TSV_LINES:],
        ),
        breaks("and sent more"),
        "tsv",
    ),
    "26.12: TSV that goes on, and a connection that stays": Case(
        paused(
            response(*BODIES["tsv"], framing="length", length=TSV_LINES, keep_alive=True), STALL
        ),
        breaks(),
        "tsv",
    ),
    "TSV without a length": Case(
        [response(*BODIES["tsv"], framing="close")], refused("without its length"), "tsv"
    ),
    "no last chunk": Case(paused(response(JSON_BODY)[:-5]), breaks("cut after")),
    "half the last chunk": Case(paused(response(JSON_BODY)[:-2]), breaks("cut after")),
    "a reset": Case(paused(response(JSON_BODY)[:-20], PAUSE, RESET), breaks("cut after")),
    "a reset behind the result": Case(
        paused(response(JSON_BODY)[:-5], PAUSE, RESET), breaks("cut after")
    ),
    "a reset, without a length": Case(
        paused(response(JSON_BODY, framing="close")[:-1], PAUSE, RESET), breaks("cut after")
    ),
    "too long a Content-Length": Case(
        paused(response(JSON_BODY, framing="length", length=2000)), breaks("after 12 solutions")
    ),
    "too short a Content-Length": Case(
        paused(response(JSON_BODY, framing="length", length=1000)), breaks()
    ),
    "no size of a chunk": Case(reframed(b"\r\n0\r\n", b"\r\nnone\r\n"), breaks()),
    "a negative size of a chunk": Case(reframed(b"\r\n0\r\n", b"\r\n-1\r\n"), breaks()),
    "too short a chunk": Case(reframed(b"\r\n0\r\n", b"0\r\n"), breaks()),
    "too long a chunk": Case(reframed(b"\r\n0\r\n", b"!\r\n0\r\n"), breaks()),
    "gzip, cut": Case(gzipped(lambda rest: rest[:-9], framing="close"), breaks("is truncated")),
    "gzip, cut with a clean end": Case(gzipped(lambda rest: rest[:-9]), breaks("is truncated")),
    "gzip, damaged": Case(
        gzipped(lambda rest: rest[:20] + b"\xff\xff\xff" + rest[23:]), breaks("is damaged")
    ),
    "gzip, with another checksum": Case(
        gzipped(lambda rest: rest[:-8] + bytes(8)), breaks("is damaged")
    ),
    "gzip, and something behind it": Case(
        gzipped(lambda rest: rest + b"!TIMEDOUT!"), breaks("is damaged")
    ),
    "not gzip": Case(
        [response(JSON_BODY, headers={"Content-Encoding": "gzip"})], refused("is damaged")
    ),
    "a coding nobody asked for": Case(
        [response(JSON_BODY, headers={"Content-Encoding": "br"})], refused("'br'")
    ),
    # http.client takes these for the last chunk
    **{
        f"13.23: TSV cut in the size {size!r} of a chunk": Case(
            paused(
                response(BODIES["tsv"][0], TSV, chunk=10_000).removesuffix(b"0\r\n\r\n")
                + size.encode()
            ),
            breaks(),
            "tsv",
        )
        for size in ("0", "0000", "0\r", "0000\r\n")
    },
    "13.23: a coding that is not chunked": Case(
        [response(*BODIES["tsv"], framing="close", headers={"Transfer-Encoding": "unchunked"})],
        refused(""),
        "tsv",
    ),
    "13.23: chunked within another coding": Case(
        [response(JSON_BODY, framing="close", headers={"Transfer-Encoding": "gzip, chunked"})],
        refused(""),
    ),
    "13.23: TSV of two lengths": Case(
        [response(*BODIES["tsv"], framing="length", length=19, headers={"content-length": "400"})],
        UNREACHED,
        "tsv",
    ),
    # --- nothing for too long ---
    "13.23: a head that drips": Case(
        [b"HTTP/1.1 200 OK\r\nX-Slow: ", *[PAUSE, b"."] * 60],
        refused("seconds in all", 504),
        "brief",
    ),
    "13.23: heads without an answer": Case(
        [interim("100 Continue"), *[PAUSE, interim("100 Continue")] * 60],
        refused("seconds in all", 504),
        "brief",
    ),
    "13.23: interim answers without end": Case(
        [interim("102 Processing"), *[PAUSE, interim("102 Processing")] * 60],
        refused("seconds in all", 504),
        "brief",
    ),
    "no answer in time": Case([STALL], refused("seconds between two bytes", 504), "impatient"),
    "half a head in time": Case(
        [response(JSON_BODY)[:20], STALL], refused("seconds between", 504), "impatient"
    ),
    "a stall before the first solution": Case(
        [response(JSON_BODY)[:150], STALL], refused("", 504), "impatient"
    ),
    "a stall": Case(
        paused(response(JSON_BODY)[:-20], STALL),
        breaks("seconds between", 504, "timeout"),
        "impatient",
    ),
    "a stall before the end": Case(
        paused(response(JSON_BODY)[:-5], STALL), breaks("", 504, "timeout"), "impatient"
    ),
    "a drip": Case(
        paused(response(JSON_BODY, framing="close")[:-2], *[PAUSE, b" "] * 200),
        breaks("seconds in all", 504, "timeout"),
        "brief",
    ),
    # --- refusals ---
    "400": Case(
        error("400 Bad Request", "Parse error: LIKE"),
        refused("refused the query: Parse error: LIKE", 400),
    ),
    "401": Case(
        error("401 Unauthorized", "who?", WWW_Authenticate="Basic realm=a"),
        refused("HTTP status 401"),
    ),
    "403": Case(error("403 Forbidden", "no"), refused("HTTP status 403")),
    "404": Case(error("404 Not Found", "no"), refused("HTTP status 404")),
    "414": Case(error("414 URI Too Long", "no"), refused("HTTP status 414", 413)),
    "204": Case(
        [response(b"", framing="length", status="204 No Content")], refused("HTTP status 204")
    ),
    "500": Case(error("500 Oops", "out of memory"), refused("HTTP status 500: out of memory")),
    "503": Case(
        error("503 Busy", "later", Retry_After="7"),
        refused("HTTP status 503", 503, retry_after="7"),
    ),
    "504": Case(error("504 Gateway Timeout", "slow"), refused("HTTP status 504", 504)),
    "429": Case(error("429 Too Many", "slow down"), refused("HTTP status 429: slow down", 429)),
    "429 for 24 hours": Case(
        error("429 Too Many", "banned", Retry_After="86400"),
        refused("banned", 429, retry_after="86400"),
    ),
    "Virtuoso's time-out": Case(
        error("500 Oops", "Virtuoso S1T00 Error SR171"), refused("S1T00", 504), "virtuoso"
    ),
    "Virtuoso's estimate": Case(
        error("500 Oops", "Virtuoso 42000 Error The estimated"), refused("42000"), "virtuoso"
    ),
    "Virtuoso's sort": Case(
        error("500 Oops", "Virtuoso 22023 Error SR353"), refused("SR353"), "virtuoso"
    ),
    "Blazegraph's time-out": Case(
        error("500 Oops", STACK), refused("TimeoutException", 504), "blazegraph"
    ),
    "QLever's time-out": Case(
        error("429 Too Many", '{"exception": "Operation timed out."}', "application/json"),
        refused("Operation timed out", 504),
        "qlever",
    ),
    "a refusal that is cut": Case(
        [error("500 Oops", "out of memory")[0][:-7], PAUSE], refused("HTTP status 500: out")
    ),
    # --- no answer to the query ---
    "a page with 200": Case(
        [response(PAGE.encode(), "text/html; charset=utf-8")], refused("answered with text/html")
    ),
    "a page as JSON": Case([response(PAGE.encode())], refused("expected a JSON object")),
    "a page with 500": Case(error("500 Oops", PAGE, "text/html"), refused("HTTP status 500")),
    "a page with 502": Case(
        error("502 Bad Gateway", PAGE, "text/html"), refused("HTTP status 502")
    ),
    "CSV": Case(
        [response(b"s,o\r\nurn:0,label\r\n", "text/csv")], refused("answered with text/csv")
    ),
    "TSV that nobody asked for": Case(
        [response(*BODIES["tsv"])], refused("answered with text/tab-separated-values")
    ),
    "bytes of no type": Case(
        [response(JSON_BODY, "application/octet-stream")], refused("application/octet-stream")
    ),
    "UTF-16": Case(
        [response(JSON_BODY.decode().encode("utf-16"), f"{JSON}; charset=utf-16")], COMPLETE
    ),
    "XML as JSON": Case([response(BODIES["xml"][0], JSON)], refused("expected a JSON object")),
    "JSON as XML": Case([response(JSON_BODY, XML)], refused("XML")),
    "redirected to another host": Case(
        redirect("http://other.example/sparql"), refused("which was not followed")
    ),
    "redirected to loopback": Case(
        redirect("http://127.0.0.1:1/"), refused("which was not followed")
    ),
    "redirected to a file": Case(redirect("file:///etc/passwd"), refused("which was not followed")),
    "redirected to another page": Case(
        redirect("/status", "303 See Other"), refused("which was not followed")
    ),
    "redirected for ever": Case(
        redirect("/sparql", "307 Temporary Redirect"), refused("redirected more than")
    ),
    "a closed connection": Case([b""], UNREACHED),
    "a reset connection": Case([RESET], UNREACHED),
    "half a head": Case([response(JSON_BODY)[:20]], UNREACHED),
    **{
        f"13.23: {name} of 20 KB": Case([answer], refused(""))
        for name, answer in {
            "a status line": LONG.encode() + b"\r\n\r\n",
            "a reason": response(b"", status=f"500 {LONG}"),
            "a header line": b"HTTP/1.1 200 OK\r\n" + LONG.encode() + b"\r\n\r\n",
            "a length": response(b"", framing="length", headers={"content-length": LONG}),
            "a media type": response(JSON_BODY, f"text/{LONG}"),
            "a charset": response(JSON_BODY, f"{JSON}; charset={LONG}"),
            "a content coding": response(JSON_BODY, headers={"Content-Encoding": LONG}),
            "a transfer coding": response(
                JSON_BODY, framing="close", headers={"Transfer-Encoding": LONG}
            ),
            "a location": response(
                b"", status="302 Found", headers={"Location": f"http://other.example/{LONG}"}
            ),
            "a location that is none": response(
                b"", status="302 Found", headers={"Location": f"http://[{LONG}"}
            ),
            "a message of Virtuoso's": response(
                b"", headers={"X-SQL-State": LONG, "X-SQL-Message": LONG}
            ),
            "an explanation": response(LONG.encode(), "text/plain", status="500 Oops"),
            "a text instead of JSON": response(LONG.encode()),
            "a text instead of XML": response(LONG.encode(), XML),
            "a member of JSON": response(
                json.dumps({LONG: 1, "results": {"bindings": []}, "error": LONG}).encode()
            ),
            "a variable of JSON": response(json_document((LONG,), [])),
            "a variable of XML": response(xml_document((LONG,), []), XML),
            "an IRI of JSON": response(
                json_document(VARIABLES, [(Term(f"<{LONG}>"), TABLE[0][1])])
            ),
            "an IRI of XML": response(
                xml_document(VARIABLES, [(Term(f"<{LONG}>"), TABLE[0][1])]), XML
            ),
            "an element of XML": response(f"<{LONG}/>".encode(), XML),
        }.items()
    },
    **{
        f"13.23: {name} of 20 KB in TSV": Case([response(body.encode(), TSV)], refused(""), "tsv")
        for name, body in {
            "a header": f"{LONG}\n",
            "an IRI": f"?s\t?o\n<{LONG}>\t1\n",
            "a term": f"?s\t?o\n{LONG}\t1\n",
            "a line": f"?s\t?o\n{LONG}\n",
            "a triple term": f"?s\t?o\n<<( {LONG} )>>\t1\n",
        }.items()
    },
    "another protocol": Case([b"SSH-2.0-x\r\n\r\n"], UNREACHED),
    "two framings": Case([response(JSON_BODY, headers={"Content-Length": "10"})], UNREACHED),
    "two lengths": Case(
        [response(JSON_BODY, framing="length", headers={"content-length": "10"})], UNREACHED
    ),
}
