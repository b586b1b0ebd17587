"""Tokenizes SPARQL query text; white space and comments are left out.

SPARQL 1.2 Query, section 19.8 (terminals), with the codepoint escapes of section 19.2 where names may hold them. Every
text can be tokenized: characters outside of the terminals become tokens of kind `other`, so that dialects pass through.
The time is linear in the length of any text. No grammar and no semantics here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from construct_messages.errors import Position, QueryError, TermError
from construct_messages.rdf.terms import PN_BASE, PN_CHARS, unescape
from construct_messages.rdf.terms.grammar import compiled

_CODEPOINT: Final = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
ESCAPE: Final = re.compile(_CODEPOINT)
"""A codepoint escape."""

_VARIABLE_CHARS: Final = PN_CHARS.replace("\\-", "")


def _dotted(first: str, more: str) -> str:
    """A name that may hold full stops, but not at its end."""
    return rf"(?:{first})(?:(?:{more})++|\.++(?={more}))*+"


_PREFIX: Final = _dotted(f"[{PN_BASE}]|{_CODEPOINT}", f"[{PN_CHARS}]|{_CODEPOINT}")
_PLX: Final = rf"%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?#@%]|{_CODEPOINT}"
_LOCAL: Final = _dotted(f"[{PN_BASE}_:0-9]|{_PLX}", f"[{PN_CHARS}:]|{_PLX}")
_LABEL: Final = _dotted(f"[{PN_BASE}_0-9]|{_CODEPOINT}", f"[{PN_CHARS}]|{_CODEPOINT}")

_LONG: Final = r"""(?P<{0}>\"{{3}}|'{{3}})(?:[^"'\\]++|\\.|(?!(?P={0}))["'])*+"""
_SHORT: Final = r"""(?P<{0}>["'])(?:[^"'\\\r\n]++|\\[^\r\n]|(?!(?P={0}))["'])*+"""

# Unclosed strings run to where they would have to end, and words are read in one piece as far as a prefix would go:
# tried again from inside, they would cost quadratic time.
_TOKEN: Final = rf"""(?xs)
      (?P<space>(?:[\x20\t\r\n]|\#[^\r\n]*+)++)
    | (?P<variable>[?$](?:[{_VARIABLE_CHARS}]|{_CODEPOINT})++)
    | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|{_CODEPOINT})*+>)
    | (?P<blank>_:{_LABEL})
    | (?P<pname>(?:{_PREFIX})?:(?:{_LOCAL})?)
    | (?P<words>{_PREFIX})
    | (?P<string>{_LONG.format("a")}(?P=a)|(?!\"{{3}}|'{{3}}){_SHORT.format("b")}(?P=b))
    | (?P<unclosed>{_LONG.format("c")}\\?\Z|{_SHORT.format("d")})
    | (?P<language>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[A-Za-z]++)?)
    | (?P<number>[+\-]?(?:[0-9]++(?:\.[0-9]*+)?[eE][+\-]?[0-9]++|\.[0-9]++[eE][+\-]?[0-9]++|[0-9]*+\.[0-9]++|[0-9]++))
    | (?P<mark><<\(|\)>>|<<|>>|\{{\||\|\}}|\^\^|[{{}}()\[\].,;~])
    | (?P<other>.)
    """
_TOKEN_AS_IT_IS: Final = _TOKEN.replace(f"|{_CODEPOINT}", "")
"""The same for texts without backslashes, which most are; it is compiled in half the time."""
_WORD: Final = rf"(?s)(?P<word>(?:[{_VARIABLE_CHARS}])++)|(?P<mark>\.)|(?P<other>.)"


class Token(NamedTuple):
    """A token and the offset of its first character."""

    # `variable`, `iri`, `blank`, `pname`, `word`, `string`, `language`, `number`, `mark` (punctuation of the template),
    # `unclosed` (a string without its end) or `other`
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """The word in upper case; the empty string for other tokens."""
        return self.text.upper() if self.kind == "word" else ""

    def is_mark(self, *marks: str) -> bool:
        """Whether it is one of these punctuation marks."""
        return self.kind == "mark" and self.text in marks


def tokenize(text: str) -> list[Token]:
    """The tokens of any text.

    >>> [(token.kind, token.text) for token in tokenize("ASK { ?s a <urn:C> # all\\n }")]
    [('word', 'ASK'), ('mark', '{'), ('variable', '?s'), ('word', 'a'), ('iri', '<urn:C>'), ('mark', '}')]
    """
    return list(_tokens(text))


class QueryText:
    """The text of a query or update, without byte order mark, whose tokens are read once, when they are first needed.

    >>> query = QueryText("ASK {}")
    >>> query.tokens is query.tokens, QueryText.of(query) is query
    (True, True)
    >>> QueryText("ASK{ ?s a 'a  b' } # all").compact
    "ASK { ?s a 'a  b' }"
    """

    def __init__(self, text: str) -> None:
        self.text = text.removeprefix("\ufeff")

    @classmethod
    def of(cls, text: "str | QueryText") -> "QueryText":
        """The same, or a new one of a `str`."""
        return text if isinstance(text, QueryText) else cls(text)

    @cached_property
    def tokens(self) -> Sequence[Token]:
        """See `tokenize`."""
        return tokenize(self.text)

    @property
    def compact(self) -> str:
        """The tokens with a space between them: the same for texts that only differ in white space and comments."""
        return " ".join(token.text for token in self.tokens)

    @cached_property
    def readings(self) -> "Sequence[QueryText]":
        """The text and, if it differs, the text after decoding codepoint escapes, which some engines do first."""
        decoded = ESCAPE.sub(_decode_codepoint, self.text)
        return (self,) if decoded == self.text else (self, QueryText(decoded))


def _decode_codepoint(escape: re.Match[str]) -> str:
    try:
        return unescape(escape.group())
    except TermError:
        return "\ufffd"  # a surrogate cannot be part of a keyword


def _tokens(text: str) -> Iterator[Token]:
    words = compiled(_WORD, text.isascii())
    tokens = compiled(_TOKEN if "\\" in text else _TOKEN_AS_IT_IS, text.isascii())
    for match in tokens.finditer(text):
        kind = match.lastgroup or "other"
        if kind == "words":
            for part in words.finditer(text, *match.span()):
                yield Token(part.lastgroup or "other", part.group(), part.start())
        elif kind != "space":
            yield Token(kind, match.group(), match.start())


def error(text: str, offset: int, message: str, hint: str | None = None) -> QueryError:
    """Returns the error with which a query is rejected, at a position in its text."""
    return QueryError(message, position=Position.at(text, offset), hint=hint)


def spliced(text: str, splices: Iterable[tuple[int, int, str]]) -> str:
    """The text with other pieces: each has the offsets of what it replaces. They do not overlap.

    >>> spliced("ASK {}", [(5, 5, "?s ?p ?o"), (0, 3, "SELECT *")])
    'SELECT * {?s ?p ?o}'
    """
    pieces, done = [], 0
    for start, end, new in sorted(splices):
        pieces += [text[done:start], new]
        done = end
    return "".join((*pieces, text[done:]))


def decoded(text: str, token: Token) -> str:
    """A name (`variable`, `pname`, `blank`) without codepoint escapes (section 19.2); escapes of `PN_LOCAL_ESC` stay.

    >>> decoded("", tokenize(r"?caf\\u00E9")[0])
    '?café'
    """
    if "\\" not in token.text:
        return token.text
    try:
        name = ESCAPE.sub(_unescaped, token.text)
    except TermError as problem:
        raise error(text, token.start, problem.message) from None
    if name != token.text and tokenize(name) != [Token(token.kind, name, 0)]:
        raise error(
            text, token.start, f"{token.text} escapes a character that is not allowed there"
        )
    return name


def _unescaped(escape: re.Match[str]) -> str:
    return unescape(escape.group())


def check_braces(text: str, tokens: Sequence[Token]) -> None:
    """Checks that each `{` has its `}`."""
    open_braces: list[Token] = []
    for token in tokens:
        if token.kind != "mark":
            continue
        if token.text == "{":
            open_braces.append(token)
        elif token.text == "}":
            if not open_braces:
                raise error(
                    text,
                    token.start,
                    "this } closes nothing",
                    "remove it, or add the { it belongs to",
                )
            open_braces.pop()
    if open_braces:
        raise error(
            text, open_braces[-1].start, "this { is never closed", "add the } it belongs to"
        )


def outer(tokens: Sequence[Token], start: int, end: int) -> Iterator[int]:
    """The indexes from `start` to before `end` of the tokens outside of brackets, and of the outermost brackets.

    >>> tokens = tokenize("ORDER BY DESC(?a) ?b")
    >>> [tokens[index].text for index in outer(tokens, 0, len(tokens))]
    ['ORDER', 'BY', 'DESC', '(', ')', '?b']
    """
    depth = 0
    for index in range(start, end):
        token = tokens[index]
        is_mark = token.kind == "mark"
        if is_mark and token.text in ("}", ")"):
            depth = max(0, depth - 1)
        if depth == 0:
            yield index
        if is_mark and token.text in ("{", "("):
            depth += 1
