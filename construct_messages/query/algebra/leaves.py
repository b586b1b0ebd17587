"""The leaves of a syntax tree in the algebra: variables, terms, and hidden variables for blank nodes.

SPARQL 1.1 Query, section 4. The terms that SPARQL 1.2 adds are rejected by name. No patterns and no expressions here.
"""

from __future__ import annotations

from typing import Final

from construct_messages.query.algebra.nodes import Var, VarOrTerm
from construct_messages.query.syntax.nodes import (
    BlankNode,
    LiteralNode,
    SyntaxNode,
    TermNode,
    TripleTermNode,
    VariableNode,
)
from construct_messages.query.syntax.query import Query
from construct_messages.rdf.errors import UnsupportedQuery
from construct_messages.rdf.terms import Term

HINT_1_1: Final = "write the query in SPARQL 1.1"


class Leaves:
    """Translates the leaves of one query.

    Args:
        query: its prologue resolves the names.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self._blanks: dict[str, Var] = {}

    def position(self, node: TermNode) -> VarOrTerm:
        """Returns the variable or term of a triple pattern; a blank node is a hidden variable, one for each label."""
        match node:
            case VariableNode():
                return self.variable(node)
            case BlankNode(label=label):
                return self._blanks.setdefault(label, Var(f".b{len(self._blanks)}"))
            case _:
                return self.term(node)

    def variable(self, node: VariableNode) -> Var:
        """Returns the variable of a node."""
        return Var(node.name)

    def term(self, node: TermNode) -> Term:
        """Returns an IRI or literal.

        Raises:
            QueryError: see `Query.term`.
            UnsupportedQuery: a triple term, or a literal with a base direction.
        """
        if isinstance(node, TripleTermNode) or (
            isinstance(node, LiteralNode) and "--" in (node.language or "")
        ):
            message = "triple terms and base directions belong to SPARQL 1.2, which is not supported in WHERE"
            raise self.query.unsupported(node, message, hint=HINT_1_1)
        return self.query.term(node)

    def unknown(self, node: SyntaxNode) -> UnsupportedQuery:
        """Returns the error for a part of the query that SPARQL 1.1 does not have."""
        return self.query.unsupported(node, "this is not part of SPARQL 1.1", hint=HINT_1_1)
