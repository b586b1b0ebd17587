r"""SPARQL 1.1 Query Results TSV (https://www.w3.org/TR/sparql11-results-csv-tsv/), for engines known to conform.

TSV is the fast format: its fields are terms almost as in N-Triples, so a column is checked by one regular expression
and kept unchanged. Terms that are not canonical are parsed one by one by `terms.parse_term`. A TSV document that was
truncated between two lines looks complete: only the HTTP framing reveals this (`sparql/sources/http/response.py`).
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.errors import IncompleteResult, TermError, shown
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import XSD, Lenience, Term, nesting, parse_term
from construct_messages.rdf.terms.grammar import (
    CANONICAL_ASCII_IRI,
    CANONICAL_ASCII_LITERAL,
    CANONICAL_IRI,
    CANONICAL_LITERAL,
    OTHER_CHARS,
    SUB_DELIMS,
    UNRESERVED,
    USUAL_LANGUAGE,
    compiled,
)
from construct_messages.sparql.results import (
    DEEPEST,
    OPAQUE,
    accepted,
    check_head,
    checked_iri,
    excerpt,
)

_SAMPLE: Final = 64  # the number of fields by which repetition is detected

# Columns are matched as one text, with a line feed before each field. A field is a term in canonical form, or empty.
_CANONICAL: Final = rf"(?:\n(?:{CANONICAL_IRI}|{CANONICAL_LITERAL}|))*+"
_CANONICAL_ASCII: Final = re.compile(
    rf"(?:\n(?:{CANONICAL_ASCII_IRI}|{CANONICAL_ASCII_LITERAL}|))*+".encode("ascii")
)
_ASCII: Final = bytes(range(0x80))
_IN_IRI: Final = bytes(
    code for code in _ASCII if chr(code).isalnum() or chr(code) in f"{UNRESERVED}{SUB_DELIMS}/?#%"
)
_OTHER_CHARS: Final = f"[{OTHER_CHARS}]*+"
_LETTERS: Final = bytes(range(0x80, 0xED))
"""The bytes of most of these characters, those before U+D000, in UTF-8."""
_CONTROLS: Final = re.compile(b"\xc2[\x80-\x9f]")
"""The characters of these bytes that are not allowed."""
_USUAL_END: Final = re.compile(
    rf'"(?:@{USUAL_LANGUAGE}|\^\^<{XSD}(?!string>)[A-Za-z]+>)?'.encode("ascii")
)
"""The end of most canonical literals; the whole expression takes ten times as long to compile."""
_IN_STRING: Final = bytes(code for code in range(0x100) if code >= 0x20 and code not in b'"\\\x7f')
_NO_CHARACTERS: Final = ("\ufffe".encode(), "\uffff".encode())
# these exclude text of the other characters that is not an IRI
_ODD_HOST: Final = re.compile(rb"://[A-Za-z0-9\-._~]*+[^A-Za-z0-9\-._~/?#>]")
_TWO_FRAGMENTS: Final = re.compile(b"#[^>#]*+#")
_NO_ENCODING: Final = re.compile(b"%(?![0-9A-Fa-f]{2})")
_OPAQUE: Final = f"\n{OPAQUE}".encode()
_BLANK: Final = re.compile(rb"(?:\n_:[A-Za-z0-9]++)*+")
_ABBREVIATED: Final = tuple(
    (re.compile(rb"(?:\n(?:%b))*+" % lexical), b'"^^<%b%b>' % (XSD.encode(), datatype))
    for lexical, datatype in (
        (rb"[+\-]?[0-9]++", b"integer"),
        (rb"[+\-]?[0-9]*+\.[0-9]++", b"decimal"),
        (rb"[+\-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+\-]?[0-9]++", b"double"),
        (rb"true|false", b"boolean"),
    )
)


class TsvDecoder:
    """See `Decoder`. Columns have UTF-8 bytes.

    >>> decoder = TsvDecoder(("x", "n"))
    >>> [list(batch) for batch in decoder.feed(b'?x\\t?n\\n<urn:a>\\t42\\n_:b\\t\\n<urn')]
    [[('<urn:a>', '"42"^^<http://www.w3.org/2001/XMLSchema#integer>'), ('_:db', '')]]
    >>> decoder.close()
    Traceback (most recent call last):
    construct_messages.errors.IncompleteResult: the TSV result ends inside line 4: '<urn'
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        *,
        response: int = 0,
        scope: str = "d",
        lenience: Lenience | None = None,
    ) -> None:
        self._variables = variables
        self._response = response
        self._scope, self._lenience = scope, lenience
        self._terms = _Terms(scope, lenience)
        self._indexes: list[int] | None = None  # the columns of the variables, after the header
        self._width = 0
        self._line = 1  # the number of the next line
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> list[Solutions]:
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest.append(data)
            return []
        block = b"".join((*self._rest, data[:end]))
        self._rest = [data[end:]]
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if self._indexes is None:
            header, _, block = block.partition(b"\n")
            self._read_header(header)
        return [self._read_lines(block)] if block else []

    def close(self) -> list[Solutions]:
        """See `Decoder.close`; `feed` has returned all solutions."""
        if rest := b"".join(self._rest):
            raise IncompleteResult(f"the TSV result ends inside line {self._line}: {excerpt(rest)}")
        if self._indexes is None:
            raise IncompleteResult("the TSV result is empty: it has no header line")
        return []

    def _read_header(self, line: bytes) -> None:
        text = line.removeprefix(b"\xef\xbb\xbf").decode(errors="backslashreplace")
        # some engines omit the question marks
        names = [name.removeprefix("?") for name in text.split("\t")]
        places = {name: index for index, name in enumerate(names)}
        check_head("TSV", places, self._variables)
        if len(places) < len(names):
            raise IncompleteResult(
                f"the TSV result repeats a variable in its header: {excerpt(line)}"
            )
        self._indexes = [places[variable] for variable in self._variables]
        self._width = len(names)
        self._line = 2

    def _read_lines(self, block: bytes) -> Solutions:
        assert self._indexes is not None
        # a line feed as an additional field after each line reveals lines with missing fields
        fields = block.replace(b"\n", b"\t\n\t").split(b"\t")
        fields.pop()
        step = self._width + 1
        ends = fields[self._width :: step]
        if len(fields) != step * len(ends) or ends.count(b"\n") != len(ends):
            raise self._uneven(block)
        columns = [self._canonical(fields[index::step]) for index in self._indexes]
        self._line += len(ends)
        return Solutions(columns, response=self._response)

    def _canonical(self, column: list[bytes]) -> list[bytes]:
        sample = column[:_SAMPLE]
        fields = column
        if len(set(sample)) < len(sample):  # repeated fields are parsed once
            fields = list(set(column))
        terms = self._in_bulk(fields)
        if terms is None:
            return self._one_by_one(column)
        if terms is fields:
            return column
        return (
            terms
            if fields is column
            else list(map(dict(zip(fields, terms, strict=True)).__getitem__, column))
        )

    def _in_bulk(self, fields: list[bytes]) -> list[bytes] | None:
        """The terms of fields of the same kind (`fields` itself if they are canonical); else None."""
        text = b"\n" + b"\n".join(fields)
        if _is_web_iris(text, len(fields)) or _is_literals(text, len(fields)):
            return fields
        if _BLANK.fullmatch(text):
            return text.replace(b"_:", b"_:" + self._scope.encode())[1:].split(b"\n")
        for lexical, end in _ABBREVIATED:
            if lexical.fullmatch(text):
                return (b'"' + (end + b'\n"').join(fields) + end).split(b"\n")
        return fields if _OPAQUE not in text and _is_canonical(text) else None

    def _one_by_one(self, column: list[bytes]) -> list[bytes]:
        terms: list[bytes] = []
        try:
            terms.extend(map(self._terms.__getitem__, column))
        except TermError as error:
            raise IncompleteResult(
                f"line {self._line + len(terms)} of the TSV result: {shown(error.message)}",
                hint=error.hint,
            ) from error
        return terms

    def _uneven(self, block: bytes) -> IncompleteResult:
        counts = enumerate((line.count(b"\t") + 1 for line in block.split(b"\n")), self._line)
        number, count = next((number, count) for number, count in counts if count != self._width)
        line = block.split(b"\n")[number - self._line]
        return IncompleteResult(
            f"line {number} of the TSV result has {count} of {self._width} fields: {excerpt(line)}"
        )


class _Terms(dict[bytes, bytes]):
    """Canonical terms by field, for columns of mixed kinds; repeated fields are parsed once."""

    _LIMIT = 10_000

    def __init__(self, scope: str, lenience: Lenience | None) -> None:
        super().__init__()
        self._scope, self._lenience = scope, lenience

    def __missing__(self, field: bytes) -> bytes:
        if not field:  # unbound
            self[field] = field
            return field
        passed = self._lenience and self._lenience.passed
        term = accepted(self._lenience, self._read, field).encode()
        if len(self) > self._LIMIT:
            self.clear()
        if self._lenience is None or self._lenience.passed == passed:  # each accepted term counts
            self[field] = term
        return term

    def _read(self, field: bytes) -> Term:
        if field.count(b"<<(") > DEEPEST and nesting(field.decode(errors="replace")) > DEEPEST:
            raise TermError(f"more than {DEEPEST} triple terms are nested")
        try:
            return checked_iri(parse_term(field.decode(), self._scope, self._lenience))
        except UnicodeDecodeError as error:
            raise TermError(f"{excerpt(field)} is not UTF-8") from error


def _are_other_chars(text: bytes) -> bool:
    if not text.translate(None, _LETTERS) and not _CONTROLS.search(text):
        return True
    return compiled(_OTHER_CHARS, False).fullmatch(text.decode()) is not None


def _is_web_iris(text: bytes, count: int) -> bool:
    # equivalent to _CANONICAL for most columns, in a third of the time
    if not text.startswith((b"\n<http://", b"\n<https://")) or not text.endswith(b">"):
        return False
    joints = text.count(b">\n<http://")
    if joints < count - 1 and joints + text.count(b">\n<https://") < count - 1:
        return False
    rest = text.translate(None, _IN_IRI)
    if not text.isascii():
        others = rest.translate(None, _ASCII)
        if not (_is_utf8(text) and _are_other_chars(others)):
            return False
        rest = rest.translate(None, others)
    return (
        # each has one colon, after the scheme, or else a host without user and port
        (
            rest == b"\n<:>" * count
            or (rest.translate(None, b":@") == b"\n<>" * count and not _ODD_HOST.search(text))
        )
        and not (b"#" in text and _TWO_FRAGMENTS.search(text))
        and not (b"%" in text and _NO_ENCODING.search(text))
    )


def _is_literals(text: bytes, count: int) -> bool:
    # the same for literals of one language or datatype without escapes
    end = text[text.rfind(b'"') :]
    return (
        text.startswith(b'\n"')
        and text.translate(None, _IN_STRING) == b'\n""' * count
        and text.count(end + b'\n"') == count - 1
        and (_USUAL_END.fullmatch(end) is not None or _is_canonical(b'\n"' + end))
        and (
            text.isascii() or (_is_utf8(text) and not any(code in text for code in _NO_CHARACTERS))
        )
    )


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_canonical(text: bytes) -> bool:
    if text.isascii():
        return _CANONICAL_ASCII.fullmatch(text) is not None
    try:
        return compiled(_CANONICAL, False).fullmatch(text.decode()) is not None
    except UnicodeDecodeError:
        return False  # term by term, to find the line of the error
