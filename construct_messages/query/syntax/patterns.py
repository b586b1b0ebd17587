"""Group graph patterns, read from tokens; text that is not SPARQL becomes an `Unknown`, and reading continues after it.

SPARQL 1.2 Query, section 19.8, [54] GroupGraphPattern and below. The variables, names and groups in unknown text are
read as well. Sub-selects and clauses after groups are read elsewhere. No token is read twice, except after an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.triples import MOST_NESTED, Refused, TriplesReader
from construct_messages.query.tokens import Token

# --- expressions ----------------------------------------------------------------------------------
# Expressions, read from tokens by precedence.
#
# SPARQL 1.2 Query, section 19.8, [121] Expression and below. Any word with arguments is a call; `checks.py` has the
# names of the functions. No patterns here, except for EXISTS.

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

    def group(self) -> syntax.GroupPattern:
        """GroupGraphPattern, for EXISTS."""
        raise NotImplementedError

    def expression(self, least: int = 1) -> syntax.ExpressionNode:
        """Expression, with operators of at least this precedence."""
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
            left = syntax.OperationNode(start, self.end, operator, operands)
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

    def _unary(self) -> syntax.ExpressionNode:
        signs = []
        while self.token.kind == "other" and self.token.text == "!":
            signs.append(self.next())
        if self.token.kind == "other" and self.token.text in ("+", "-"):
            signs.append(self.next())
        operand = self.primary()
        for sign in reversed(signs):
            operator = "!" if sign.text == "!" else f"u{sign.text}"
            operand = syntax.OperationNode(sign.start, self.end, operator, (operand,))
        return operand

    def primary(self) -> syntax.ExpressionNode:
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
            return syntax.CallNode(token.start, self.end, function, arguments, distinct)
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

    def _word(self, token: Token) -> syntax.ExpressionNode:
        keyword = token.keyword
        following = self.tokens[self.index + 1]
        if keyword == "EXISTS" or (keyword == "NOT" and following.keyword == "EXISTS"):
            self.index += 1 + (keyword == "NOT")
            group = self.group()
            return syntax.ExistsNode(token.start, self.end, keyword == "NOT", group)
        if not following.is_mark("("):
            if keyword in ("TRUE", "FALSE"):
                return self.term()
            raise self.expected("an expression")
        if keyword in AGGREGATES:
            return self._aggregate(token)
        self.index += 1
        distinct, arguments = self._arguments()
        return syntax.CallNode(token.start, self.end, keyword, arguments, distinct)

    def constraint(self) -> syntax.ExpressionNode:
        """Constraint: an expression in brackets, or a call."""
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

    def _arguments(self) -> tuple[bool, tuple[syntax.ExpressionNode, ...]]:
        """ArgList, from its bracket on, and whether it has DISTINCT."""
        self.deeper()
        self.need("(", "with a list of expressions")
        distinct = bool(self.take("DISTINCT"))
        found: list[syntax.ExpressionNode] = []
        if distinct or not self.at(")"):
            found.append(self.expression())
            while self.take_mark(","):
                found.append(self.expression())
        self.need(")", "at the end of the expressions")
        self.depth -= 1
        return distinct, tuple(found)

    def _aggregate(self, token: Token) -> syntax.ExpressionNode:
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
        return syntax.AggregateNode(
            token.start, self.end, token.keyword, distinct, argument, separator
        )


# --- patterns -------------------------------------------------------------------------------------

T = TypeVar("T")


class PatternReader(ExpressionReader):
    """Reads groups."""

    begin: tuple[str, ...]
    begin = ("OPTIONAL", "MINUS", "FILTER", "BIND", "GRAPH", "SERVICE", "VALUES")
    """The keywords with which elements of groups begin."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        super().__init__(text, tokens)
        self.triples = []
        # by the offset of its brace, with the index after it: an error makes tokens be read twice, but no group
        self._groups: dict[int, tuple[syntax.GroupPattern, int]] = {}

    def sub_select(self) -> syntax.SelectForm:
        """SubSelect."""
        raise NotImplementedError

    def group(self) -> syntax.GroupPattern:
        start = self.token.start
        if start in self._groups:
            group, self.index = self._groups[start]
            return group
        if not self.at("{"):
            raise self.expected("{")
        self.deeper()
        self.index += 1
        elements: list[syntax.PatternNode] = []
        if self.token.keyword == "SELECT":
            elements.append(self._or_unknown(self.sub_select))
        while not self.at("}"):
            if self.token.kind == "end":
                raise self.expected("}")
            if self.begins_triples():
                self._triples(elements)
            else:
                elements.append(self._or_unknown(self.element))
                self.take_mark(".")
        self.index += 1
        self.depth -= 1
        group = syntax.GroupPattern(start, self.end, tuple(elements))
        self._groups[start] = group, self.index
        return group

    def element(self) -> syntax.PatternNode:
        """One element of a group, other than triples."""
        token = self.token
        start = token.start
        match token.keyword:
            case "OPTIONAL":
                self.index += 1
                return syntax.OptionalPattern(start, *self._group())
            case "MINUS":
                self.index += 1
                return syntax.MinusPattern(start, *self._group())
            case "FILTER":
                self.index += 1
                condition = self._guarded(self.constraint)
                return syntax.FilterPattern(start, self.end, condition)
            case "BIND":
                self.index += 1
                return syntax.BindPattern(start, *self._bound())
            case "GRAPH":
                self.index += 1
                name = self.name("the name of a graph")
                group = self.group()
                return syntax.GraphPattern(start, self.end, name, group)
            case "SERVICE":
                self.index += 1
                silent = bool(self.take("SILENT"))
                name = self.name("the IRI of an endpoint")
                group = self.group()
                return syntax.ServicePattern(start, self.end, silent, name, group)
            case "VALUES":
                return self.values()
        if not self.at("{"):
            raise self.expected("a pattern")
        groups = [self.group()]
        while self.take("UNION"):
            groups.append(self.group())
        return (
            groups[0] if len(groups) == 1 else syntax.UnionPattern(start, self.end, tuple(groups))
        )

    def name(self, what: str) -> syntax.VariableNode | syntax.IriNode:
        if self.token.kind == "variable":
            return self.variable()
        return self.iri(what)

    def values(self) -> syntax.ValuesPattern:
        """InlineData and ValuesClause."""
        start = self.next().start
        one = self.token.kind == "variable"
        variables: list[syntax.VariableNode] = []
        if one:
            variables.append(self.variable())
        else:
            self.need("(", "or a variable after VALUES")
            while not self.take_mark(")"):
                variables.append(self.variable())
        self.need("{", "with the values")
        solutions: list[tuple[syntax.TermNode | None, ...]] = []
        while not self.take_mark("}"):
            if one:
                solutions.append((self._value(),))
                continue
            self.need("(", "with the values of a solution")
            solution = []
            while not self.take_mark(")"):
                solution.append(self._value())
            solutions.append(tuple(solution))
        return syntax.ValuesPattern(start, self.end, tuple(variables), tuple(solutions))

    def _value(self) -> syntax.TermNode | None:
        token = self.token
        if self.take("UNDEF"):
            return None
        if token.kind in ("variable", "blank") or self.at("[", "("):
            raise self.expected("an IRI, a literal or UNDEF")
        return self.term()

    def alias(self) -> syntax.AliasNode:
        """`(expression AS ?variable)`."""
        start, opening = self.token.start, self.index
        depth = self.depth
        try:
            self.deeper()
            self.need("(", "with an expression and AS")
            expression = self.expression()
            self.require("AS", "write it as in (expression AS ?variable)")
            variable = self.variable()
            self.need(")", "after the variable")
            self.depth -= 1
        except Refused as problem:
            self.depth = depth
            end = self._closing(opening, problem)
            named = self.tokens[end - 2].keyword == "AS" and self.tokens[end - 1].kind == "variable"
            if not named or opening + 1 >= end - 2:
                raise
            expression = self.unknown(opening + 1, end - 2, problem)
            self.index += 1
            variable = self.variable()
            self.index += 1
        return syntax.AliasNode(start, self.end, expression, variable)

    # --- unknown text -----------------------------------------------------------------------------------------------

    def _or_unknown(self, read: Callable[[], syntax.PatternNode]) -> syntax.PatternNode:
        """An element, or the unknown text up to the next one."""
        start, depth = self.index, self.depth
        try:
            return read()
        except Refused as problem:
            self.depth = depth
            return self.unknown(start, self._next_element(start), problem)

    def _guarded(self, read: Callable[[], T]) -> T | syntax.Unknown:
        """A condition, or the unknown text up to the end of its brackets."""
        start, depth = self.index, self.depth
        try:
            return read()
        except Refused as problem:
            self.depth = depth
            opening = start if self.tokens[start].is_mark("(") else start + 1
            # a brace ends the group: the text after it is not part of the condition
            if self.tokens[start].is_mark("{", "}") or not self.tokens[opening].is_mark("("):
                raise
            return self.unknown(start, self._closing(opening, problem) + 1, problem)

    def unknown(self, start: int, end: int, problem: Refused) -> syntax.Unknown:
        """The tokens from an index to before another one as an `Unknown`."""
        self.index = start
        parts: list[syntax.SyntaxNode] = []
        while self.index < end:
            token = self.token
            if token.kind == "variable":
                parts.append(self.variable())
            elif token.kind in ("iri", "pname"):
                parts.append(self.iri())
            elif token.is_mark("{") and self.depth < MOST_NESTED:
                parts.append(self.group())
            else:
                self.index += 1
        place = self.tokens[start].start
        return syntax.Unknown(
            place, max(place, self.end), problem.message, problem.offset, problem.hint, tuple(parts)
        )

    def _next_element(self, index: int) -> int:
        """The index of the next element of a group, or of its `}`; it is after `index`, except for the brace."""
        start, brackets = index, 0
        while True:
            token = self.tokens[index]
            if token.kind == "end" or token.is_mark("}"):
                return index
            if token.is_mark("(", "["):
                brackets += 1
            elif token.is_mark(")", "]"):
                brackets = max(0, brackets - 1)
            elif brackets == 0 and index > start and self._begins_element(token):
                return index
            index = self.after(index)

    def _begins_element(self, token: Token) -> bool:
        return token.keyword in self.begin or token.is_mark(".")

    def _closing(self, opening: int, problem: Refused) -> int:
        """The index of the `)` of a bracket."""
        index, brackets = opening, 0
        while True:
            token = self.tokens[index]
            if token.kind == "end" or token.is_mark("}"):
                raise problem
            brackets += token.is_mark("(") - token.is_mark(")")
            if brackets == 0:
                return index
            index = self.after(index)

    def after(self, index: int) -> int:
        """The index of the next token, after the whole of a group in braces."""
        return self._ends.get(index, index) + 1

    @cached_property
    def _ends(self) -> dict[int, int]:
        """The index of the `}` of each `{`."""
        ends: dict[int, int] = {}
        open_braces: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.is_mark("{"):
                open_braces.append(index)
            elif token.is_mark("}"):
                ends[open_braces.pop()] = index
        return ends

    def _triples(self, elements: list[syntax.PatternNode]) -> None:
        """TriplesBlock, and the unknown text after it."""
        around = self.triples
        self.triples = []
        start, statement, whole, depth = self.token.start, self.index, 0, self.depth
        problem = None
        try:
            while self.begins_triples():
                statement, whole = self.index, len(self.triples)
                self.statement()
                if not self.take_mark("."):
                    if self.begins_triples():
                        statement, whole = self.index, len(self.triples)
                        raise self.expected("a full stop or the end of the triples")
                    break
        except Refused as refused:
            problem = refused
            del self.triples[whole:]
        if self.triples:
            end = self.tokens[statement - 1].end if problem else self.end
            elements.append(syntax.TriplesBlock(start, end, tuple(self.triples)))
        self.triples = around
        if problem is not None:
            self.depth = depth
            elements.append(self.unknown(statement, self._next_element(statement), problem))
            self.take_mark(".")

    def _group(self) -> tuple[int, syntax.GroupPattern]:
        group = self.group()
        return self.end, group

    def _bound(self) -> tuple[int, syntax.AliasNode]:
        alias = self.alias()
        return self.end, alias
