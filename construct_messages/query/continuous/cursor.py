"""Reads the clauses and patterns of continuous queries from tokens: the parser, with the names of windows and streams.

No grammar here.
"""

from __future__ import annotations

from collections.abc import Sequence

from construct_messages.query.continuous.values import is_relative
from construct_messages.query.prologue import Prologue
from construct_messages.query.syntax.parser import QueryParser
from construct_messages.query.tokens import Token
from construct_messages.rdf.terms import resolve


class Cursor(QueryParser):
    """Reads forward through tokens.

    Args:
        text: the query, for the position of errors.
        tokens: of the query.
        prologue: resolves the names in the query.
    """

    def __init__(self, text: str, tokens: Sequence[Token], prologue: Prologue) -> None:
        super().__init__(text, tokens)
        self.prologue = prologue

    def resolved(self, what: str, hint: str | None = None) -> str:
        """Takes a name: an IRI without brackets; a relative one stays as written where there is no base.

        Raises:
            Refused: there is no name.
            QueryError: it has an undeclared prefix.
        """
        node = self.iri(what, hint)
        return name_of(self.text, node.written, node.start, self.prologue)

    def bare_name(self, what: str, hint: str, *reserved: str) -> str:
        """Takes a name as `resolved` does, or a bare name, as in C-SPARQL and CQELS 2, which is a relative IRI.

        Args:
            what: the description of the expected name, for the error.
            hint: the hint of the error.
            reserved: keywords that are not names here.

        Raises:
            Refused: there is no name.
        """
        token = self.token
        if token.kind != "word" or token.keyword in reserved:
            return self.resolved(what, hint)
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
            Refused: there is neither.
        """
        if variable and self.token.kind == "variable":
            return f"?{self.next().text[1:]}"
        return self.bare_name("the IRI of a stream", hint, "ON", "STREAM", "WINDOW", "WHERE", "LOG")


def name_of(text: str, name: str, offset: int, prologue: Prologue) -> str:
    """The IRI of a name as written, without brackets.

    Names without an IRI are returned as written: relative IRIs without a base, and names with an undeclared empty
    prefix, which many published queries use for windows and streams.

    Raises:
        QueryError: another prefix is undeclared, or the result is not an IRI.

    >>> [name_of(name, name, 0, Prologue(None, {}, {}, frozenset())) for name in ("<in>", ":in")]
    ['in', ':in']
    """
    if name[0] == "<" and prologue.base is None and is_relative(name[1:-1]):
        return name[1:-1]
    if name[0] == ":" and "" not in prologue.prefixes and "" not in prologue.unusable:
        return name
    return prologue.iri(text, name, offset)[1:-1]
