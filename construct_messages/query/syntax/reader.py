"""A position in the tokens of a query, from which clauses are read token by token.

SPARQL 1.2 Query, section 19.8. No grammar here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from construct_messages.query.syntax.nodes import IriNode, VariableNode
from construct_messages.query.tokens import Token, decoded, error

T = TypeVar("T")

MOST_NESTED: Final = 100
"""The most nested brackets that are read; each takes a few frames of the interpreter's stack."""


class Refused(Exception):
    """The text at a position is not SPARQL; it becomes a `QueryError`, or an `Unknown` in the tree."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.offset, self.hint = message, offset, hint


class Reader:
    """Reads forward through tokens.

    Args:
        text: of the query.
        tokens: all of its tokens.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = [*tokens, Token("end", "", len(text))]
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token; after the last one an empty one of kind `end`."""
        return self.tokens[self.index]

    @property
    def end(self) -> int:
        """The offset after the last token that was taken."""
        token = self.tokens[self.index - 1]
        return token.start + len(token.text)

    def next(self) -> Token:
        """Takes a token."""
        token = self.tokens[self.index]
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *marks: str) -> bool:
        """Whether the next token is one of these punctuation marks."""
        token = self.tokens[self.index]
        return token.kind == "mark" and token.text in marks

    def take(self, *keywords: str) -> str:
        """Takes a keyword if it is one of these, and returns it; else the empty string."""
        token = self.tokens[self.index]
        if token.kind == "word" and (keyword := token.text.upper()) in keywords:
            self.index += 1
            return keyword
        return ""

    def take_mark(self, mark: str) -> bool:
        """Takes a punctuation mark if it is this one."""
        token = self.tokens[self.index]
        if token.kind != "mark" or token.text != mark:
            return False
        self.index += 1
        return True

    def need(self, mark: str, where: str) -> None:
        """Takes a punctuation mark.

        Raises:
            Refused: another token is there.
        """
        if not self.take_mark(mark):
            raise self.expected(f"{mark} {where}")

    def require(self, keyword: str, hint: str | None = None) -> None:
        """Takes a keyword.

        Raises:
            Refused: another token is there.
        """
        if not self.take(keyword):
            raise self.expected(keyword, hint)

    def expected(self, what: str, hint: str | None = None) -> Refused:
        """The error that another token was expected at this position."""
        token = self.token
        found = f", found {token.text[:80]}" if token.text else ", and the query ends"
        if token.kind == "unclosed":
            found = ", found an unclosed string"
        return Refused(f"expected {what}{found}", token.start, hint)

    def deeper(self, what: str = "query", hint: str = "use fewer brackets") -> None:
        """Counts a nested bracket; the caller subtracts it from `depth` at its end.

        Raises:
            Refused: they are too many.
        """
        if self.depth >= MOST_NESTED:
            message = f"the {what} nests more than {MOST_NESTED} deep"
            raise Refused(message, self.token.start, hint)
        self.depth += 1

    # --- names ------------------------------------------------------------------------------------------------------

    def is_iri(self) -> bool:
        """Whether the next token is a name with or without prefix."""
        return self.tokens[self.index].kind in ("iri", "pname")

    def iri(self, what: str = "an IRI", hint: str | None = None) -> IriNode:
        """Takes a name.

        Raises:
            Refused: another token is there.
        """
        token = self.tokens[self.index]
        if token.kind not in ("iri", "pname"):
            raise self.expected(what, hint)
        self.index += 1
        return IriNode(token.start, token.start + len(token.text), token.text)

    def variable(self) -> VariableNode:
        """Takes a variable.

        Raises:
            Refused: another token is there.
            QueryError: its name has an illegal escape.
        """
        token = self.tokens[self.index]
        if token.kind != "variable":
            raise self.expected("a variable")
        self.index += 1
        name = decoded(self.text, token) if "\\" in token.text else token.text
        return VariableNode(token.start, token.start + len(token.text), name[1:])


def read(rule: Callable[[], T], text: str) -> T:
    """Returns the result of a rule of the grammar.

    Raises:
        QueryError: in place of `Refused`.
    """
    try:
        return rule()
    except Refused as problem:
        raise error(text, problem.offset, problem.message, problem.hint) from None
