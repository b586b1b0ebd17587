"""A place among the tokens of a query, from which clauses are read one token after the other.

No grammar here: what may stand where is said by who reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from construct_messages.errors import QueryError
from construct_messages.query.continuous.values import is_relative
from construct_messages.query.prologue import Prologue
from construct_messages.query.tokens import Token, error
from construct_messages.terms import resolve


class Cursor:
    """Reads forward through tokens.

    Args:
        text: the query, for the position of errors.
        tokens: all of its tokens.
        index: where to begin.
        prologue: what the names in it mean.
    """

    def __init__(self, text: str, tokens: Sequence[Token], index: int, prologue: Prologue) -> None:
        self.text = text
        self.tokens = tokens
        self.index = index
        self.prologue = prologue

    @property
    def token(self) -> Token:
        """The token that is next; at the end an empty one."""
        return (
            self.tokens[self.index]
            if self.index < len(self.tokens)
            else Token("mark", "", len(self.text))
        )

    def next(self) -> Token:
        """Takes a token."""
        token = self.token
        self.index += 1
        return token

    def take(self, *keywords: str) -> str:
        """Takes a keyword if it is one of these; the empty string if it is none."""
        keyword = self.token.keyword
        if keyword in keywords:
            self.index += 1
            return keyword
        return ""

    def take_mark(self, mark: str) -> bool:
        """Takes a punctuation mark if it is this one."""
        found = self.token.is_mark(mark)
        self.index += found
        return found

    def expected(self, what: str, hint: str | None = None) -> QueryError:
        """The error that something else stands at this place."""
        found = f", found {self.token.text[:80]}" if self.token.text else ", and the query ends"
        return error(self.text, self.token.start, f"expected {what}{found}", hint)

    def require(self, keyword: str, hint: str | None = None) -> None:
        """Takes a keyword.

        Raises:
            QueryError: something else stands there.
        """
        if not self.take(keyword):
            raise self.expected(keyword, hint)

    def iri(self, what: str, hint: str | None = None) -> str:
        """Takes a name: an IRI without brackets; a relative one stays as written where there is no base.

        Raises:
            QueryError: no name stands there, or one with an undeclared prefix.
        """
        token = self.token
        if token.kind not in ("iri", "pname"):
            raise self.expected(what, hint)
        self.index += 1
        return name_of(self.text, token, self.prologue)

    def name(self, what: str, hint: str, *reserved: str) -> str:
        """Takes a name as `iri` does, or a bare one, as C-SPARQL and CQELS 2 have them; it is a relative IRI.

        Args:
            what: what is expected.
            hint: how to write it.
            reserved: keywords that are no names here.

        Raises:
            QueryError: no name stands there.
        """
        token = self.token
        if token.kind != "word" or token.keyword in reserved:
            return self.iri(what, hint)
        end = self.next().end
        while self.token.start == end and (
            self.token.kind == "word" or self.token.text in ("-", ".")
        ):
            end = self.next().end
        name, base = self.text[token.start : end], self.prologue.base
        return name if base is None else resolve(name, base)[1:-1]

    def stream(self, hint: str, *, variable: bool = False) -> str:
        """Takes the name of a stream; with `variable`, also a variable in its place, with its mark.

        Raises:
            QueryError: neither stands there.
        """
        if variable and self.token.kind == "variable":
            return f"?{self.next().text[1:]}"
        return self.name("the IRI of a stream", hint, "ON", "STREAM", "WINDOW", "WHERE", "LOG")


def name_of(text: str, token: Token, prologue: Prologue) -> str:
    """The IRI of an `iri` or `pname` token, without brackets.

    Names stay as written that have no IRI: relative ones without base, and those of the empty prefix where nobody
    declares it, as many published queries have them for windows and streams.

    Raises:
        QueryError: another prefix that is not declared, or no IRI.

    >>> from construct_messages.query.tokens import tokenize
    >>> [name_of(name, tokenize(name)[0], Prologue(None, {}, {}, frozenset())) for name in ("<in>", ":in")]
    ['in', ':in']
    """
    if token.kind == "iri" and prologue.base is None and is_relative(token.text[1:-1]):
        return token.text[1:-1]
    if token.text.startswith(":") and "" not in prologue.prefixes and "" not in prologue.unusable:
        return token.text
    return prologue.iri(text, token.text, token.start)[1:-1]
