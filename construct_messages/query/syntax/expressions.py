"""Expressions, read from tokens by precedence.

SPARQL 1.2 Query, section 19.8, [121] Expression and below. Any word with arguments is a call; `checks.py` has the names
of the functions. No patterns here, except for EXISTS.
"""

from __future__ import annotations

from typing import Final

from construct_messages.query.syntax.nodes import (
    AggregateNode,
    CallNode,
    ExistsNode,
    ExpressionNode,
    GroupPattern,
    OperationNode,
)
from construct_messages.query.syntax.reader import Refused
from construct_messages.query.syntax.triples import TriplesReader
from construct_messages.query.tokens import Token

AGGREGATES: Final = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_BINDS: Final = {
    **{"||": 1, "&&": 2, "IN": 3, "NOT IN": 3, "+": 4, "-": 4, "*": 5, "/": 5},
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">="), 3),
}
_RELATION: Final = 3
_DOUBLED: Final = ("||", "&&", "!=", "<=", ">=")
_CHAINED: Final = ("||", "&&")


class ExpressionReader(TriplesReader):
    """Reads expressions."""

    def group(self) -> GroupPattern:
        """GroupGraphPattern, for EXISTS."""
        raise NotImplementedError

    def expression(self, least: int = 1) -> ExpressionNode:
        """Expression, with operators of at least this precedence.

        Raises:
            Refused: at the first token that is not allowed there.
        """
        start = self.token.start
        left = self._unary()
        most = 9
        while True:
            operator, length = self._operator()
            level = _BINDS.get(operator, 0)
            if not least <= level <= most:
                return left
            if length == 0:  # the sign of a number
                token = self.token
                self.tokens[self.index] = Token("number", token.text[1:], token.start + 1)
            self.index += length
            if operator in ("IN", "NOT IN"):
                operands = (left, *self._arguments()[1])
            elif operator in _CHAINED:
                chain = [left, self.expression(level + 1)]
                while self._operator()[0] == operator:
                    self.index += 2
                    chain.append(self.expression(level + 1))
                operands = tuple(chain)
            else:
                operands = (left, self.expression(level + 1))
            left = OperationNode(start, self.end, operator, operands)
            if level == _RELATION:  # a = b = c is no expression
                most = _RELATION - 1

    def _operator(self) -> tuple[str, int]:
        """The next binary operator, and its number of tokens; the empty string if there is none."""
        token = self.tokens[self.index]
        if token.kind == "other":
            following = self.tokens[self.index + 1]
            double = token.text + following.text
            if double in _DOUBLED and following.start == token.start + 1:
                return double, 2
            return token.text, 1
        if token.kind == "word":
            if token.keyword == "NOT":
                return ("NOT IN", 2) if self.tokens[self.index + 1].keyword == "IN" else ("", 0)
            return (token.keyword, 1) if token.keyword == "IN" else ("", 0)
        if token.kind == "number" and token.text[0] in "+-":
            return token.text[0], 0
        return "", 0

    def _unary(self) -> ExpressionNode:
        signs = []
        while self.token.kind == "other" and self.token.text == "!":
            signs.append(self.next())
        if self.token.kind == "other" and self.token.text in ("+", "-"):
            signs.append(self.next())
        operand = self.primary()
        for sign in reversed(signs):
            operator = "!" if sign.text == "!" else f"u{sign.text}"
            operand = OperationNode(sign.start, self.end, operator, (operand,))
        return operand

    def primary(self) -> ExpressionNode:
        """PrimaryExpression.

        Raises:
            Refused: at the first token that is not allowed there.
        """
        token = self.tokens[self.index]
        kind = token.kind
        if kind == "variable":
            return self.variable()
        if kind in ("string", "number"):
            return self.term()
        if kind in ("iri", "pname"):
            function = self.iri()
            if not self.at("("):
                return function
            distinct, arguments = self._arguments()
            return CallNode(token.start, self.end, function, arguments, distinct)
        if kind == "word":
            return self._word(token)
        if self.at("("):
            self.deeper()
            self.index += 1
            inside = self.expression()
            self.need(")", "at the end of the expression")
            self.depth -= 1
            return inside
        if self.at("<<("):
            return self.triple_term()
        raise self.expected("an expression")

    def _word(self, token: Token) -> ExpressionNode:
        keyword = token.keyword
        following = self.tokens[self.index + 1]
        if keyword == "EXISTS" or (keyword == "NOT" and following.keyword == "EXISTS"):
            self.index += 1 + (keyword == "NOT")
            group = self.group()
            return ExistsNode(token.start, self.end, keyword == "NOT", group)
        if not following.is_mark("("):
            if keyword in ("TRUE", "FALSE"):
                return self.term()
            raise self.expected("an expression")
        if keyword in AGGREGATES:
            return self._aggregate(token)
        self.index += 1
        distinct, arguments = self._arguments()
        return CallNode(token.start, self.end, keyword, arguments, distinct)

    def constraint(self) -> ExpressionNode:
        """Constraint: an expression in brackets, or a call.

        Raises:
            Refused: another expression, or none.
        """
        token = self.tokens[self.index]
        opens = self.at("(") or (
            token.kind in ("iri", "pname", "word")
            and (
                self.tokens[self.index + 1].is_mark("(")
                or token.keyword == "EXISTS"
                or (token.keyword == "NOT" and self.tokens[self.index + 1].keyword == "EXISTS")
            )
        )
        if not opens:
            raise self.expected("an expression in brackets or a call")
        return self.primary()

    def _arguments(self) -> tuple[bool, tuple[ExpressionNode, ...]]:
        """ArgList, from its bracket on, and whether it has DISTINCT."""
        self.deeper()
        self.need("(", "with a list of expressions")
        distinct = bool(self.take("DISTINCT"))
        found: list[ExpressionNode] = []
        if distinct or not self.at(")"):
            found.append(self.expression())
            while self.take_mark(","):
                found.append(self.expression())
        self.need(")", "at the end of the expressions")
        self.depth -= 1
        return distinct, tuple(found)

    def _aggregate(self, token: Token) -> ExpressionNode:
        self.deeper()
        self.index += 2
        distinct = bool(self.take("DISTINCT"))
        argument = separator = None
        if token.keyword == "COUNT" and self.token.text == "*":
            self.index += 1
        else:
            argument = self.expression()
        if token.keyword == "GROUP_CONCAT" and self.take_mark(";"):
            self.require("SEPARATOR")
            if self.next().text != "=" or self.token.kind != "string":
                raise Refused("expected = and a string after SEPARATOR", self.token.start)
            separator = self.literal()
        self.need(")", "at the end of the aggregate")
        self.depth -= 1
        return AggregateNode(token.start, self.end, token.keyword, distinct, argument, separator)
