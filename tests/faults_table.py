"""What endpoints do to an answer, and what a client of a server in front of them must then see of a message log.

Each case is one way in which a real endpoint answers. What must become of it is said here, not found out: the log in
full (`COMPLETE`), an error instead of it (`refused`), or a connection that breaks within it (`breaks`).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from construct_messages.server.config import Limits
from construct_messages.terms import Term
from tests.clients import BODIES, JSON_BODY, TABLE, VARIABLES
from tests.fault_server import HOLD, JSON, PAUSE, RESET, STALL, TSV, XML, Act, Answering, Asked, Script, response
from tests.results_documents import json_document

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
    "impatient": {"read_seconds": 0.3},
    "brief": {"limits": Limits(seconds=2.5)},
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


def moved(asked: Asked) -> bytes:
    if asked.target == "/sparql":
        return response(b"", status="308 Permanent Redirect", headers={"Location": "/elsewhere"})
    return response(JSON_BODY)


def redirect(location: str, status: str = "302 Found") -> Script:
    return [response(b"", status=status, headers={"Location": location})]


# an excerpt of what came may be shown, a page may not
PAGE: Final = f"<!DOCTYPE html><html><head><title>{'Busy ' * 20}</title></head><body>a secret page</body></html>"
TRAILERS: Final = {
    "Oxigraph's cancellation": "The SPARQL operation has been cancelled",
    "Comunica's time-out": "!TIMEDOUT!",
    "Comunica's error": "!ERROR!",
    "QLever's error": "!!!!>># An error has occurred while exporting the query result",
    "a page": PAGE,
}
STACK: Final = "java.util.concurrent.ExecutionException: java.util.concurrent.TimeoutException\n\tat java.base/Task"
ANYTIME: Final = {"X-SQL-State": "S1TAT", "X-SQL-Message": "Returning incomplete results"}
UNREACHED: Final = refused("could not be reached")

CASES: Final[Mapping[str, Case]] = {
    # --- whole, if in ways of its own ---
    **{
        f"{results}, framed by {framing}": Case([response(*BODIES[results], framing=framing)], COMPLETE, endpoint)
        for results, endpoint in (("json", "generic"), ("xml", "generic"), ("tsv", "tsv"))
        for framing in ("chunked", "length", "close")
        if (results, framing) != ("tsv", "close")
    },
    "a byte at a time": Case([bytes([byte]) for byte in response(JSON_BODY)], COMPLETE),
    "a byte to a chunk": Case([response(JSON_BODY, chunk=1)], COMPLETE),
    "chunk extensions": Case(reframed(b"\r\n0\r\n", b"\r\n0;last=yes\r\n"), COMPLETE),
    "fields behind the last chunk": Case(reframed(b"\r\n0\r\n\r\n", b"\r\n0\r\nX-Time: 12\r\n\r\n"), COMPLETE),
    "gzip": Case(gzipped(lambda rest: rest), COMPLETE),
    "results before head": Case([response(turned(JSON_BODY))], COMPLETE),
    "head without vars": Case([response(members(head={}))], COMPLETE),
    "further members": Case([response(members(head={"link": [], "vars": ["s", "o"]}, metadata=[{}]))], COMPLETE),
    "typed-literal": Case(instead_of('"literal"', '"typed-literal"'), COMPLETE),
    "white space behind": Case(followed("\r\n\n "), COMPLETE),
    "white space behind, cut": Case([response(JSON_BODY + b"\n\n", framing="close")[:-1]], COMPLETE),
    "no solution": Case([response(json_document(VARIABLES, []))], COMPLETE, log=b""),
    "application/json": Case([response(JSON_BODY, "application/json;charset=utf-8")], COMPLETE),
    "a cap that is not reached": Case([response(JSON_BODY, headers={"X-SPARQL-MaxRows": "13"})], COMPLETE),
    "a cap, and nothing behind it": Case(capped(response(json_document(VARIABLES, []))), COMPLETE),
    "redirected within the origin": Case(moved, COMPLETE),
    # --- errors behind 200, with a clean end ---
    **{f"{name} behind the result": Case(followed(text), breaks("behind")) for name, text in TRAILERS.items()},
    **{f"{name} within the result": Case(broken_off(text), breaks("behind")) for name, text in TRAILERS.items()},
    **{
        f"{name} behind {results}": Case(followed(text, *BODIES[results]), breaks(), endpoint)
        for results, endpoint in (("xml", "generic"), ("tsv", "tsv"))
        for name, text in TRAILERS.items()
    },
    "a trailer instead of the result": Case([response(b"!TIMEDOUT!")], refused("expected a JSON object")),
    "Blazegraph's stack trace": Case(
        broken_off(f', {{"s": {{"type": "uri", "value": "{STACK}'), breaks("after 8 whole")
    ),
    "a second result": Case(followed(JSON_BODY.decode()), breaks("behind")),
    "a member that comes twice": Case(paused(response(JSON_BODY[:-2] + b',"bindings":[{}]}}')), breaks("behind")),
    "a control character in JSON": Case(instead_of("label 8", "label\b8"), breaks("behind")),
    "a line break in JSON": Case(instead_of("label 8", "label\n8"), breaks("behind")),
    "no UTF-8": Case(instead_of("label 8", b"label \xff"), breaks("behind")),
    "a relative IRI": Case(instead_of("urn:8", "eight"), breaks("relative")),
    "a control character in XML": Case(instead_of("label 8", "label &#8;", "xml"), breaks("XML")),
    "an entity in XML": Case(instead_of("label 8", "&label;", "xml"), breaks("XML")),
    "a line of TSV that is too short": Case(instead_of('<urn:8>\t"label 8"@en', "<urn:8>", "tsv"), breaks(), "tsv"),
    "a term that TSV has not": Case(instead_of('"label 8"@en', "label 8", "tsv"), breaks(), "tsv"),
    "no results": Case([response(b'{"head":{"vars":["s","o"]}}')], refused("no results.bindings")),
    "the result of an ASK": Case([response(b'{"head":{},"boolean":true}')], refused("result of an ASK")),
    "nothing at all": Case([response(b"")], refused("ends before its first solution")),
    # --- a part of the result ---
    "206": Case([response(JSON_BODY, status="206 Partial Content", headers=ANYTIME)], refused("Returning incomplete")),
    "206 without a reason": Case([response(JSON_BODY, status="206 Partial Content")], refused("a part of the result")),
    "anytime results": Case([response(JSON_BODY, headers=ANYTIME)], refused("Returning incomplete results")),
    "a cap, and more behind it": Case(
        capped(response(json_document(VARIABLES, TABLE[:1]))), breaks("gives at most 12 solutions")
    ),
    "a cap, and no telling": Case(
        capped(error("500 Oops", "Virtuoso 22023 Error SR353: Sorted TOP clause")[0]), breaks("gives at most 12")
    ),
    "a cap that was not heeded": Case(
        [response(JSON_BODY, headers={"X-SPARQL-MaxRows": "11"})], breaks("gives at most 11 solutions, and 12 came")
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
        paused(response(BODIES["tsv"][0], TSV, framing="length")[: -len('<urn:11>\t"label 11"@en\n')]), breaks(), "tsv"
    ),
    "TSV without a length": Case([response(*BODIES["tsv"], framing="close")], refused("how long it is"), "tsv"),
    "no last chunk": Case(paused(response(JSON_BODY)[:-5]), breaks("cut after")),
    "half the last chunk": Case(paused(response(JSON_BODY)[:-2]), breaks("cut after")),
    "a reset": Case(paused(response(JSON_BODY)[:-20], PAUSE, RESET), breaks("cut after")),
    "a reset behind the result": Case(paused(response(JSON_BODY)[:-5], PAUSE, RESET), breaks("cut after")),
    "a reset, without a length": Case(
        paused(response(JSON_BODY, framing="close")[:-1], PAUSE, RESET), breaks("cut after")
    ),
    "too long a Content-Length": Case(paused(response(JSON_BODY, framing="length", length=2000)), breaks("cut after")),
    "too short a Content-Length": Case(paused(response(JSON_BODY, framing="length", length=1000)), breaks()),
    "no size of a chunk": Case(reframed(b"\r\n0\r\n", b"\r\nnone\r\n"), breaks()),
    "a negative size of a chunk": Case(reframed(b"\r\n0\r\n", b"\r\n-1\r\n"), breaks()),
    "too short a chunk": Case(reframed(b"\r\n0\r\n", b"0\r\n"), breaks()),
    "too long a chunk": Case(reframed(b"\r\n0\r\n", b"!\r\n0\r\n"), breaks()),
    "gzip, cut": Case(gzipped(lambda rest: rest[:-9], framing="close"), breaks("ends before its end")),
    "gzip, cut with a clean end": Case(gzipped(lambda rest: rest[:-9]), breaks("ends before its end")),
    "gzip, damaged": Case(gzipped(lambda rest: rest[:20] + b"\xff\xff\xff" + rest[23:]), breaks("is damaged")),
    "gzip, with another checksum": Case(gzipped(lambda rest: rest[:-8] + bytes(8)), breaks("is damaged")),
    "gzip, and something behind it": Case(gzipped(lambda rest: rest + b"x"), breaks("follows the compressed result")),
    "not gzip": Case([response(JSON_BODY, headers={"Content-Encoding": "gzip"})], refused("is damaged")),
    "a coding nobody asked for": Case([response(JSON_BODY, headers={"Content-Encoding": "br"})], refused("'br'")),
    # --- nothing for too long ---
    "no answer in time": Case([STALL], refused("0.3 seconds between two bytes", 504), "impatient"),
    "half a head in time": Case([response(JSON_BODY)[:20], STALL], refused("0.3 seconds", 504), "impatient"),
    "a stall before the first solution": Case([response(JSON_BODY)[:150], STALL], refused("", 504), "impatient"),
    "a stall": Case(paused(response(JSON_BODY)[:-20], STALL), breaks("0.3 seconds", 504, "timeout"), "impatient"),
    "a stall before the end": Case(paused(response(JSON_BODY)[:-5], STALL), breaks("", 504, "timeout"), "impatient"),
    "a drip": Case(
        paused(response(JSON_BODY, framing="close")[:-2], *[PAUSE, b" "] * 40),
        breaks("2.5 seconds in all", 504, "timeout"),
        "brief",
    ),
    # --- refusals ---
    "400": Case(error("400 Bad Request", "Parse error: LIKE"), refused("refused the query: Parse error: LIKE", 400)),
    "401": Case(error("401 Unauthorized", "who?", WWW_Authenticate="Basic realm=a"), refused("HTTP status 401")),
    "403": Case(error("403 Forbidden", "no"), refused("HTTP status 403")),
    "404": Case(error("404 Not Found", "no"), refused("HTTP status 404")),
    "414": Case(error("414 URI Too Long", "no"), refused("HTTP status 414", 413)),
    "204": Case([response(b"", framing="length", status="204 No Content")], refused("HTTP status 204")),
    "500": Case(error("500 Oops", "out of memory"), refused("HTTP status 500: out of memory")),
    "503": Case(error("503 Busy", "later", Retry_After="7"), refused("HTTP status 503", 503, retry_after="7")),
    "504": Case(error("504 Gateway Timeout", "slow"), refused("HTTP status 504", 504)),
    "429": Case(error("429 Too Many", "slow down"), refused("HTTP status 429: slow down", 429)),
    "429 for 24 hours": Case(
        error("429 Too Many", "banned", Retry_After="86400"), refused("banned", 429, retry_after="86400")
    ),
    "Virtuoso's time-out": Case(error("500 Oops", "Virtuoso S1T00 Error SR171"), refused("S1T00", 504), "virtuoso"),
    "Virtuoso's estimate": Case(error("500 Oops", "Virtuoso 42000 Error The estimated"), refused("42000"), "virtuoso"),
    "Virtuoso's sort": Case(error("500 Oops", "Virtuoso 22023 Error SR353"), refused("SR353"), "virtuoso"),
    "Blazegraph's time-out": Case(error("500 Oops", STACK), refused("TimeoutException", 504), "blazegraph"),
    "QLever's time-out": Case(
        error("429 Too Many", '{"exception": "Operation timed out."}', "application/json"),
        refused("Operation timed out", 504),
        "qlever",
    ),
    "a refusal that is cut": Case([error("500 Oops", "out of memory")[0][:-7], PAUSE], refused("HTTP status 500: out")),
    # --- no answer to the query ---
    "a page with 200": Case([response(PAGE.encode(), "text/html; charset=utf-8")], refused("answered with text/html")),
    "a page as JSON": Case([response(PAGE.encode())], refused("expected a JSON object")),
    "a page with 500": Case(error("500 Oops", PAGE, "text/html"), refused("HTTP status 500")),
    "a page with 502": Case(error("502 Bad Gateway", PAGE, "text/html"), refused("HTTP status 502")),
    "CSV": Case([response(b"s,o\r\nurn:0,label\r\n", "text/csv")], refused("answered with text/csv")),
    "TSV that nobody asked for": Case([response(*BODIES["tsv"])], refused("answered with text/tab-separated-values")),
    "bytes of no type": Case([response(JSON_BODY, "application/octet-stream")], refused("application/octet-stream")),
    "UTF-16": Case([response(JSON_BODY.decode().encode("utf-16"), f"{JSON}; charset=utf-16")], refused("in utf-16")),
    "XML as JSON": Case([response(BODIES["xml"][0], JSON)], refused("expected a JSON object")),
    "JSON as XML": Case([response(JSON_BODY, XML)], refused("XML")),
    "redirected to another host": Case(redirect("http://other.example/sparql"), refused("which was not followed")),
    "redirected to loopback": Case(redirect("http://127.0.0.1:1/"), refused("which was not followed")),
    "redirected to a file": Case(redirect("file:///etc/passwd"), refused("which was not followed")),
    "redirected to another page": Case(redirect("/status", "303 See Other"), refused("which was not followed")),
    "redirected for ever": Case(redirect("/sparql", "307 Temporary Redirect"), refused("redirected more than")),
    "a closed connection": Case([b""], UNREACHED),
    "a reset connection": Case([RESET], UNREACHED),
    "half a head": Case([response(JSON_BODY)[:20]], UNREACHED),
    "another protocol": Case([b"SSH-2.0-x\r\n\r\n"], UNREACHED),
    "two framings": Case([response(JSON_BODY, headers={"Content-Length": "10"})], UNREACHED),
    "two lengths": Case([response(JSON_BODY, framing="length", headers={"content-length": "10"})], UNREACHED),
}
