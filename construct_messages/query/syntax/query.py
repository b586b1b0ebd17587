"""`Query`: the syntax tree of a text, and the resolution of its names.

SPARQL 1.2 Query, section 4.1. Nothing here reads tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from construct_messages.query.prologue import Prologue
from construct_messages.query.syntax.nodes import (
    BooleanNode,
    FormNode,
    IriNode,
    LiteralNode,
    NumberNode,
    TripleTermNode,
    Unknown,
)
from construct_messages.query.syntax.tree import walk
from construct_messages.query.syntax.triples import NIL, TYPE
from construct_messages.query.tokens import QueryText, error
from construct_messages.rdf.errors import Position, QueryError, TermError, UnsupportedQuery
from construct_messages.rdf.terms import Term, boolean, literal, number, triple, unescape
from construct_messages.rdf.values import Value

S = TypeVar("S", bound=str)


class Query(Value):
    """A parsed query.

    Args:
        source: its text and tokens.
        prologue: the declarations that apply to it.
        form: the tree.
        before: unknown text before the form, such as pragmas.
    """

    source: QueryText
    prologue: Prologue
    form: FormNode
    before: tuple[Unknown, ...] = ()

    @property
    def text(self) -> str:
        """The text, which all offsets refer to."""
        return self.source.text

    def term(self, node: Any) -> Term:
        """The IRI, literal or ground triple term of a node.

        Raises:
            QueryError: an undeclared prefix, a relative IRI without base, an illegal character.

        >>> from construct_messages.query.syntax.parser import parse
        >>> query = parse("PREFIX ex: <urn:> ASK { ?s a ex:C ; ex:p 1 }")
        >>> [query.term(triple.predicate) for triple in query.form.where.elements[0].triples]
        ['<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>', '<urn:p>']
        """
        match node:
            case IriNode(written="a"):
                return TYPE
            case IriNode(start, end, written):
                if start == end or written is NIL:  # of a short notation
                    return Term(written)
                return self.prologue.iri(self.text, written, start)
            case NumberNode():
                return number(node.written)
            case BooleanNode():
                return boolean(node.written)
            case LiteralNode(start, end, _, language, datatype):
                value = self.string(node)
                if datatype is not None:
                    return self._legal(start, literal, value, datatype=self.term(datatype)[1:-1])
                if language is None:
                    return self._legal(start, literal, value)
                tag, _, direction = language.partition("--")
                place = end - len(language) - 1
                return self._legal(place, literal, value, language=tag, direction=direction or None)
            case TripleTermNode(_, _, subject, predicate, object):
                return triple(self.term(subject), self.term(predicate), self.term(object))
        raise self.error(node, "expected an IRI or a literal")

    def string(self, node: LiteralNode) -> str:
        """The characters of a literal.

        Raises:
            QueryError: an illegal escape.
        """
        quotes = 3 if node.quoted.startswith(('"""', "'''")) else 1
        return self._legal(node.start, unescape, node.quoted[quotes:-quotes])

    def error(self, node: Any, message: str, hint: str | None = None) -> QueryError:
        """The error with which the query is rejected because of a node, with its position."""
        return error(self.text, node.start, message, hint)

    def unsupported(
        self, node: Any, message: str, fragment: str | None = None, hint: str | None = None
    ) -> UnsupportedQuery:
        """The error for a legal node that is not supported; the fragment is its text by default."""
        return UnsupportedQuery(
            message,
            fragment=self.text[node.start : node.end] if fragment is None else fragment,
            position=Position.at(self.text, node.start),
            hint=hint,
        )

    def refusal(self, unknown: Unknown) -> QueryError:
        """The error of an `Unknown`."""
        return error(self.text, unknown.offset, unknown.message, unknown.hint)

    def unknown(self) -> QueryError | None:
        """The error of the first `Unknown`; None if the whole text matches the grammar of SPARQL."""
        found = (node for node in walk(self.before, self.form) if isinstance(node, Unknown))
        first = next(found, None)
        return None if first is None else self.refusal(first)

    def _legal(self, offset: int, make: Callable[..., S], *values: str, **options: str | None) -> S:
        try:
            return make(*values, **options)
        except TermError as problem:
            raise error(self.text, offset, problem.message, problem.hint) from None
