"""Reads the response to a SELECT. Both HTTP clients feed it the bytes.

Decides by status and headers whether the response can be a whole result (SPARQL 1.1 Protocol, sections 2.1.5 to 2.1.7;
RFC 9110), decodes the body, and compares it with the announced length. All responses except whole results are errors.
Opens no socket.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from construct_messages.errors import IncompleteResult, SourceError, SourceTimeout, shown
from construct_messages.query.select import Select
from construct_messages.rdf.files.unpacking import Unpacker, packing_of, unpack_errors
from construct_messages.rdf.formats.results import JSON, READ, ResultsFormat, find_results
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Lenience
from construct_messages.sparql.client.responses import (
    OK,
    BodyFraming,
    Header,
    content_type,
    date,
    rejected,
    seconds,
)
from construct_messages.sparql.results import (
    NewDecoder,
    ResultsDecoder,
    announces_partial_result,
    decoder_of,
)
from construct_messages.sparql.sources import Condition, Validators
from construct_messages.sparql.sources.http.profiles import (
    PROFILES,
    Profile,
    cannot_sort,
    fitting_profile,
)

# --- partial --------------------------------------------------------------------------------------
# Detects partial responses by their status and headers (RFC 9110; Virtuoso's own headers), and reads engines' errors.
#
# `sparql/results/__init__.py` checks the result itself.

_RANGE: Final = re.compile(r"[!-~]+ ([0-9]{1,20})-([0-9]{1,20})/([0-9]{1,20})")


def partial_reason(status: int, header: Callable[[str], str | None]) -> str | None:
    """Returns the header that marks a response as partial; the empty string for the status alone; else None.

    Partial responses have status 206, a `Content-Range` of less than the whole (RFC 9110, section 14.4), or Virtuoso's
    header for a result that ran out of time.

    >>> partial_reason(200, {"X-SQL-Message": "Returning incomplete results"}.get)
    'Returning incomplete results'
    >>> partial_reason(200, {"Content-Range": "bytes 0-99/100"}.get)
    """
    state, message, range = (
        header("X-SQL-State"),
        header("X-SQL-Message") or "",
        header("Content-Range"),
    )
    if status == 206 or (
        status in OK and (state or (message and announces_partial_result(message)))
    ):
        return message or state or ""
    if status in OK and range is not None and not _is_whole(range):
        return f"Content-Range: {range}"
    return None


def _is_whole(content_range: str) -> bool:
    match = _RANGE.fullmatch(content_range.strip())
    return match is not None and int(match[1]) == 0 and int(match[2]) + 1 == int(match[3])


# what engines append to a result that they cannot finish: QLever; Blazegraph, with the query
_TAILS: Final = re.compile(r"!!!!>># An error has occurred|SPARQL-QUERY: queryStr=")
_QLEVER: Final = "The error message was:"
# of Java's exceptions, each within the one before: the last one has the reason
_WRAPPERS: Final = re.compile(
    r"(?:SPARQL-QUERY: queryStr=)?\s*(?:[\w.$]+(?:Exception|Error): (?=[\w.$]+(?:Exception|Error)\b))*"
)


def explained_at(body: str) -> int | None:
    """Returns the place in the end of a body where an engine begins to say why the result ends there, or None.

    >>> explained_at('{"results": {"bindings": [ !!!!>># An error has occurred while exporting the query result.')
    27
    """
    found = _TAILS.search(body)
    return None if found is None else found.start()


def reason_of(error: str) -> str:
    r"""Returns what a user needs of an engine's error: no frames of a stack, and no exceptions around another one.

    >>> reason_of("java.util.ExecutionException: a.b.QueryTimeoutException: Query deadline is expired.\n\tat a.b.C")
    'a.b.QueryTimeoutException: Query deadline is expired.'
    """
    reason = error.partition(_QLEVER)[2] or error
    reason = reason.partition("\n\tat ")[0]
    match = _WRAPPERS.match(reason)
    assert match is not None  # it can be empty
    return reason[match.end() :].strip() or error


# --- reader ---------------------------------------------------------------------------------------

_DETAIL_BYTES: Final = 4096  # of an error, in addition to the query that it may repeat
_WORK: Final = 1 << 20  # see `ResponseReader.pieces`
_SMALLEST: Final = 16  # bytes of a piece
_USUAL: Final = 4  # variables; more of them take noticeable time
_CODED: Final = 1 << 12  # bytes that are decompressed at once: the rest is copied for each piece
# of one solution, or of the text around all; a few of them compress very well
_SOLUTION_BYTES: Final = 8 << 20
_WINDOW_LOG: Final = 23  # of zstd, 8 MiB: RFC 9659, section 3
_DIGITS: Final = 20  # a number with more is not a number of solutions


class ResponseReader:
    """Reads one response. Raises `SourceError` if it is not a result, and `IncompleteResult` if it is not known to be
    whole.

    `limit` is the number of requested solutions; `response` the number of a page, for `Solutions`; `scope` that of
    blank node labels; `undeclared` the first undeclared prefix of the query, a possible reason for an error;
    `client_authenticates` whether the credentials are those of a client of this server, which learns of their
    rejection. `held` counts the bytes since the last whole solution, `cap` is the row limit that the endpoint
    announces.
    """

    def __init__(
        self,
        status: int,
        header: Header,
        variables: tuple[str, ...],
        *,
        limit: int | None = None,
        asked: tuple[str, ...],
        url: str,
        response: int = 0,
        scope: str = "d",
        profile: Profile | None = None,
        client_authenticates: bool = False,
        undeclared: str | None = None,
        select: Select | None = None,
        lenience: Lenience | None = None,
        condition: Condition | None = None,
    ) -> None:
        self._status = status
        self._undeclared = undeclared
        self._select = select
        self._header = header
        self._variables = variables
        self._limit = limit
        self._url = url
        self._profile = profile or Profile()
        self._client_authenticates = client_authenticates
        self._received = 0
        self._framing = framing = BodyFraming.of(header)
        if framing.coding not in ("identity", "chunked"):
            raise SourceError(
                f"{url} sent transfer coding {shown(framing.coding)!r}, which was not requested"
            )
        self._promised = framing.length
        self._body = _Body(url, header("Content-Encoding"), is_error=status not in OK)
        self._text: _Text | None = None
        self._detail = b""  # of an error
        self._detail_size = _DETAIL_BYTES + (0 if select is None else len(str(select).encode()))
        self._explained_size = 0
        self._failure: IncompleteResult | None = None  # the engine explains it after the solutions
        self._decoder: ResultsDecoder | None = None
        self._rest: list[Solutions] | None = (
            None  # after the end of the body: solutions that only the end completes
        )
        self._unchanged = status == 304 and condition is not None and bool(condition.headers)
        self.count = 0
        self.held = 0
        self.cap = _cap(header)
        if (reason := partial_reason(status, header)) is not None:
            raise IncompleteResult(
                f"{url} sent a part of the result only" + (f": {shown(reason)}" if reason else ""),
                hint=_LESS,
            )
        if condition is not None:
            condition.received, condition.unchanged = _validators(header), self._unchanged
        if status in OK:
            self._decoder = self._decoder_class(asked)(
                variables, response=response, scope=scope, lenience=lenience
            )

    def pieces(self, data: bytes, work: int = _WORK) -> Iterator[bytes]:
        """Decodes the content coding of the next bytes of the body, and yields them in pieces for `feed`.

        A piece has at most `work` bytes, and less for many variables, each of which takes time in every solution,
        however short it is.
        """
        self._received += len(data)
        if self._promised is not None and (excess := self._received - self._promised) > 0:
            if data[-excess:].strip(b"\r\n"):
                raise self.exceeded()
            data, self._received = data[:-excess], self._promised
        pieces = self._body.decode(
            data, max(_SMALLEST, min(work, work * _USUAL // len(self._variables)))
        )
        return pieces if self._text is None else map(self._text.decode, pieces)

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        """Decodes the next of the `pieces` and yields the solutions that it completes."""
        if self._decoder is None:
            self._detail += piece
            if len(self._detail) >= self._detail_size:
                raise self._refusal()
            return
        self._detail = (self._detail + piece[-self._detail_size :])[-self._detail_size :]
        if self._failure is not None:
            self._explained_size += len(piece)
            if self._explained_size >= self._detail_size:
                raise self._explained(self._failure)
            return
        self.held += len(piece)
        try:
            batches = self._decoder.feed(piece) if self._rest is None else self._rest
        except IncompleteResult as error:
            if explained_at(self._detail.decode(errors="replace")) is None:
                raise self._named(error) from None
            self._failure, self._explained_size = error, len(piece)
            return
        for batch in batches:
            self.count += len(batch)
            self.held = 0
            if self._limit is not None and self.count > self._limit:
                raise IncompleteResult(
                    f"{self._url} sent more solutions than LIMIT {self._limit} allows: it does not obey LIMIT"
                )
            yield batch
        if self.held > _SOLUTION_BYTES:
            raise IncompleteResult(
                f"{self._url} sent {self.held} bytes without one whole solution in them"
            )

    def rest(self) -> list[Solutions]:
        """Returns the solutions that only the end of the body completes; to be called after it, before `close`."""
        if self._unchanged or self._decoder is None:
            return []
        if self._failure is not None:
            raise self._explained(self._failure)
        if self._promised is not None and self._received != self._promised:
            raise IncompleteResult(
                f"{self._url} announced {self._promised} bytes and sent {self._received}, after {self.count} solutions",
                transient=True,
            )
        if not self._received:
            raise IncompleteResult(
                f"{self._url} answered with status {self._status} and nothing: it ends before its first solution",
                hint=_ORDER if self._profile == PROFILES["rdf4j"] else f"{_ORDER}{_OF_RDF4J}",
                transient=not self._framing.is_delimited,
            )
        self._body.close(transient=not self._framing.is_delimited)
        last = [] if self._text is None else list(self.feed(self._text.close()))
        try:
            self._rest = self._decoder.close()
        except IncompleteResult as error:
            failure = self._explained(error)
            # the connection may have been interrupted
            failure.transient = failure.transient or not (
                self._framing.is_delimited or isinstance(failure, SourceTimeout)
            )
            raise failure from None
        return [*last, *self.feed(b"")]  # subclasses extend it

    def close(self) -> None:
        """Processes the end of the body, after the `rest`."""
        if self._unchanged:
            return
        if self._decoder is None:
            raise self._refusal()
        if self._rest is None and self.rest():
            raise RuntimeError("the rest of the solutions was not read")

    def exceeded(self) -> IncompleteResult:
        """Returns the error for a body that is longer than announced."""
        return IncompleteResult(
            f"{self._url} announced {self._promised} bytes and sent more, after {self.count} solutions"
        )

    def cut(self, reason: object) -> SourceError:
        """Returns the error for a body that the HTTP client could not read to its end."""
        if self._decoder is None:
            return self._refusal()
        if self._failure is not None:
            return self._explained(self._failure)
        return IncompleteResult(
            f"the result of {self._url} was cut after {self.count} solutions: {reason}",
            transient=True,
        )

    def add_hint(self, error: SourceError) -> None:
        """Adds to the hint of an error how the engine that it shows can be asked."""
        text = f"{error.message} {self._header('Server') or ''} {self._detail.decode(errors='replace')}"
        hints = [] if error.hint is None else [error.hint]
        if cannot_sort(text):
            hints = [_ORDER]
        name = fitting_profile(text)
        if name is not None and self._profile != PROFILES[name]:
            hints.append(f'of this engine, give profile="{name}"')
        error.hint = "; ".join(hints) or None

    def _without_query(self, text: str) -> str:
        # Blazegraph repeats the query first
        return text if self._select is None else text.replace(str(self._select), "")

    def _named(self, error: IncompleteResult) -> IncompleteResult:
        return IncompleteResult(
            f"{error.message} (from {self._url})", hint=error.hint, transient=error.transient
        )

    def _explained(self, failure: IncompleteResult) -> SourceError:
        """The error for a damaged result, by what the engine wrote into it."""
        text = self._without_query(self._detail.decode(errors="replace"))
        start = explained_at(text)
        if start is None:
            return self._named(failure)
        message = (
            f"{self._url} failed after {self.count} solutions: {shown(reason_of(text[start:]))}"
        )
        if any(word in text[start:] for word in self._profile.timeouts):
            return SourceTimeout(message, hint=_LESS, response_status=self._status)
        return IncompleteResult(message, hint=failure.hint)

    def _decoder_class(self, asked: tuple[str, ...]) -> NewDecoder:
        declared = content_type(self._header)
        media_type = declared.get_content_type()
        charset = declared.get_content_charset("")
        found = find_results(media_type)
        if found and found.decoder and (found.tells_end or found in (READ[name] for name in asked)):
            codec = _codec(charset or "utf-8")
            if codec is None and not found.declares_encoding:
                raise SourceError(
                    f"{self._url} sent {media_type} in {shown(charset)}, which cannot be read",
                    hint='the endpoint should send UTF-8; or ask for another format, such as results="xml"',
                )
            if codec and ((found.declares_encoding and charset) or codec not in _UTF8):
                self._text = _Text(self._url, found, codec)
            if not found.tells_end and not self._framing.is_delimited:
                raise IncompleteResult(
                    f"{self._url} sent {found.name} without its length, so the end could be missing",
                    hint="ask for JSON results",
                )
            return decoder_of(found)
        raise SourceError(
            f"{self._url} answered with {shown(media_type)}, not with SPARQL results in {' or '.join(asked)}",
            hint='ask for JSON results: results="json"'
            if "tsv" in asked
            else "give the URL of the SPARQL endpoint itself, not that of its query form",
        )

    def _refusal(self) -> SourceError:
        text = self._without_query(self._detail.decode(errors="replace"))
        hint = _HINTS.get(self._status)
        if self._status == 400 and self._select is not None and self._select.written is not None:
            text, known = self._select.written.translated(text, str(self._select))
            hint = None if known else _OTHER_PLACES
        detail = shown(reason_of(text))
        # never an HTML page, which is for browsers
        reason = f": {detail}" if detail and not detail.startswith("<") else ""
        retry_after = seconds(self._header("Retry-After"))
        if self._status == 400 and self._undeclared is not None:
            hint = f"add PREFIX {self._undeclared}: <...> or give it as an option, if the endpoint does not know it"
        if retry_after is not None:
            hint = f"try again in {retry_after:.0f} seconds"
        outcome = (
            "refused the query"
            if self._status == 400
            else f"answered with HTTP status {self._status}"
        )
        message = f"{self._url} {outcome}{reason}"
        # the error for the query itself may quote it, and so have any words
        if self._status != 400 and any(word in text for word in self._profile.timeouts):
            return SourceTimeout(message, hint=_LESS, response_status=self._status)
        answer = answer_status(self._status, client_authenticates=self._client_authenticates)
        return rejected(message, self._status, self._header, hint=hint, answer=answer)


# The statuses of a server in front of an endpoint, by the endpoint's status. Errors of the query are the client's. If
# the endpoint is missing, requires credentials or fails, that is the server's error, so the others are 502 (RFC 9110,
# 15.6.3).
_ANSWERS: Final[Mapping[int, int]] = {
    400: 400,
    408: 504,
    413: 413,
    414: 413,
    422: 400,
    425: 503,
    429: 429,
    431: 413,
    503: 503,
    504: 504,
}


def answer_status(status: int, *, client_authenticates: bool) -> int:
    """Returns the status of a server in front of the endpoint for a status of the endpoint.

    >>> [answer_status(status, client_authenticates=False) for status in (400, 401, 404, 500, 503)]
    [400, 502, 502, 502, 503]
    """
    # 401 would need the endpoint's challenge
    return 403 if client_authenticates and status in (401, 403) else _ANSWERS.get(status, 502)


_LESS: Final = "ask for less, or give the endpoint more time"
_ORDER: Final = "if the query has ORDER BY, order by texts, such as STR(?o): not all engines can compare all values"
_OF_RDF4J: Final = '; of RDF4J, which answers so if it cannot sort, give profile="rdf4j"'
_CREDENTIALS: Final = (
    "set CONSTRUCT_MESSAGES_USER and CONSTRUCT_MESSAGES_PASSWORD, or "
    "CONSTRUCT_MESSAGES_TOKEN, in the environment"
)
_OTHER_PLACES: Final = (
    "positions in this message are those in the SELECT that the query was rewritten to"
)
_HINTS: Final[Mapping[int, str]] = {
    401: _CREDENTIALS,
    403: _CREDENTIALS,
    404: "check the URL of the endpoint",
    405: "try the other method, get or post",
    414: "use the method post: the query is too long for a URL",
}


# the codings (RFC 9110, section 8.4.1), and how `Unpacker` names them
_CODINGS: Final = {"gzip": ".gz", "x-gzip": ".gz", "deflate": "deflate", "zstd": ".zst"}
ASKED_CODINGS: Final = ("gzip", "zstd")
"""The content codings that are asked for; `deflate`, which servers understand in two ways, is only read."""


class _Body:
    """Decodes the content coding (RFC 9110, section 8.4.1), in pieces of limited size.

    `is_error`: whether it is the body of an error, of which only what can be decoded is wanted.
    """

    def __init__(self, url: str, declared: str | None, *, is_error: bool) -> None:
        self._url, self._coding = url, (declared or "identity").strip().lower()
        self._is_error, self._is_begun = is_error, False
        self._unpacker: Unpacker | None = None
        if self._coding in _CODINGS:
            self._unpacker = Unpacker(_CODINGS[self._coding], _WINDOW_LOG)
        elif self._coding != "identity" and not is_error:
            raise SourceError(
                f"{url} sent content coding {shown(self._coding)!r}, which was not requested"
            )

    def decode(self, data: bytes, size: int) -> Iterator[bytes]:
        """Yields the decoded bytes, in pieces of this size."""
        if self._unpacker is None:
            if self._coding != "identity":
                return
            if not self._is_begun and packing_of(data):  # no result begins like this
                raise SourceError(
                    f"{self._url} sent a compressed result without Content-Encoding", hint=_PLAIN
                )
            self._is_begun = self._is_begun or bool(data)
            yield from (data[start : start + size] for start in range(0, len(data), size))
            return
        for start in range(0, len(data), _CODED):
            try:
                yield from self._unpacker.feed(data[start : start + _CODED], size)
            except unpack_errors() as error:
                if self._is_error:
                    return
                raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> SourceError:
        return IncompleteResult(
            f"{self._url} declares Content-Encoding: {self._coding}, and the compressed result is damaged: "
            f"{shown(str(error))}",
            hint=_PLAIN,
        )

    def close(self, *, transient: bool) -> None:
        """Checks that the body is complete. `transient`: whether a connection that was interrupted looks the same."""
        try:
            if self._unpacker is not None:
                self._unpacker.close()
        except EOFError as error:
            raise IncompleteResult(
                f"the compressed result of {self._url} is truncated", transient=transient
            ) from error


_PLAIN: Final = 'ask without compression: headers={"Accept-Encoding": "identity"}'

_UTF8: Final = ("utf-8", "ascii")
_WIDE: Final = ("utf-16", "utf-32")
# with what ISO 2022, HZ and UTF-7 begin other characters by
_ASCII: Final = bytes(range(0x20, 0x7F)) + b"\x1b$B\x1b$)C\x0e~{+AGE-"
_DECLARATION: Final = re.compile(
    rb"""(?:\xef\xbb\xbf)?<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._\-]*)["']"""
)
_DECLARATION_BYTES: Final = 200


def _codec(charset: str) -> str | None:
    """Returns the name of Python's codec of a charset; None: there is none, or ASCII means something else in it."""
    try:
        name = codecs.lookup(charset).name
        is_ascii = name.startswith(_WIDE) or _ASCII.decode(charset) == _ASCII.decode()
        return name if is_ascii else None
    except (LookupError, ValueError):  # unknown, or not of text
        return None


class _Text:
    """Turns the text of a result in a declared charset into UTF-8, in which the decoders read.

    Servers add charsets that are not true. The first character that is not ASCII shows whether the text is UTF-8: JSON
    is read as such, whatever its charset (RFC 8259, section 8.1), and in other formats the contradiction is an error.
    An XML document may declare its encoding, by which the parser reads it.
    """

    def __init__(self, url: str, format: ResultsFormat, codec: str) -> None:
        self._url, self._format, self._codec = url, format, codec
        self._is_xml = format.declares_encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self._declared: str | None = None  # by an XML declaration
        self._begins = True
        self._is_known = False  # whether it is UTF-8
        self._held = b""

    def decode(self, data: bytes) -> bytes:
        """Returns the next bytes in UTF-8, or unchanged if the parser of XML reads the encoding."""
        data, self._held = self._held + data, b""
        if self._begins and not self._has_begun(data):
            self._held = data
            return b""
        if not self._is_known:
            self._recognize(data)
        if not self._is_known:  # so far all is ASCII, but perhaps for the beginning of a character
            end = len(data.rstrip(bytes(range(0x80, 0x100))))
            data, self._held = data[:end], data[end:]
        return data if self._decoder is None else self._decoded(data)

    def _has_begun(self, data: bytes) -> bool:
        """Whether the beginning shows the encoding that the document declares, if any."""
        if (
            self._is_xml
            and b">" not in data[:_DECLARATION_BYTES]
            and len(data) < _DECLARATION_BYTES
        ):
            return False
        if len(data) < len(codecs.BOM_UTF32):
            return False
        self._begins = False
        is_wide = b"\0" in data[:4] or data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if self._is_xml:
            if match := _DECLARATION.match(data):
                self._declared = _codec(match[1].decode())
            # the parser reads these without our help
            self._is_known = is_wide or self._declared in (*_UTF8, self._codec)
        elif is_wide and self._codec.startswith(_WIDE):
            self._is_known, self._decoder = True, codecs.getincrementaldecoder(self._codec)()
        return True

    def _recognize(self, data: bytes) -> None:
        """Finds out by the first character that is not ASCII whether this is UTF-8."""
        try:
            text, _ = codecs.utf_8_decode(data, "strict", False)
            self._is_known = is_utf8 = not text.isascii()
        except UnicodeDecodeError as error:
            self._is_known, is_utf8 = True, not data[: error.start].isascii()
        if not self._is_known or (is_utf8 and self._format is JSON):
            return
        declared = {self._declared or self._codec, self._codec}.difference(_UTF8)
        if len(declared) > (0 if is_utf8 else 1):
            raise SourceError(
                f"{self._url} sent {self._format.name} that is {'UTF-8, and ' if is_utf8 else ''}"
                f"declared to be in {' and in '.join(sorted(declared))}",
                hint='ask for JSON results: results="json"',
            )
        if declared and self._declared is None:
            self._decoder = codecs.getincrementaldecoder(self._codec)()

    def _decoded(self, data: bytes, *, is_last: bool = False) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decode(data, is_last).encode()
        except ValueError as error:
            raise IncompleteResult(
                f"{self._url} sent text that is not in {self._codec}, as it declares: {error}"
            ) from error

    def close(self) -> bytes:
        """Ends the text, and returns its last bytes: of a short one, or of an incomplete character."""
        return self._held if self._decoder is None else self._decoded(b"", is_last=True)


def _cap(header: Header) -> int | None:
    value = (header("X-SPARQL-MaxRows") or "").strip()
    return (
        (int(value) or None)
        if value.isascii() and value.isdigit() and len(value) < _DIGITS
        else None
    )


def _validators(header: Header) -> Validators:
    modified, sent = date(header("Last-Modified")), date(header("Date"))
    # a second change could have the same recent Last-Modified (RFC 9110, section 8.8.2.2)
    is_strong = modified is not None and sent is not None and (sent - modified).total_seconds() >= 1
    return Validators(header("ETag"), header("Last-Modified") if is_strong else None)
