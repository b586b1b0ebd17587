"""`parse`: the syntax tree of a query, by recursive descent over its tokens.

SPARQL 1.2 Query, section 19.8, [2] Query: SPARQL 1.1 and 1.2, and any dialect. The head and the template of a CONSTRUCT
must be legal, because the package evaluates them. The engine evaluates the rest, so text that is not SPARQL becomes an
`Unknown` there. `checks.py` rejects queries with `Unknown` nodes, and queries that break rules beyond the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

from construct_messages.errors import Position, QueryError, TermError, UnsupportedQuery
from construct_messages.query.prologue import Prologue
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import walk
from construct_messages.query.syntax.patterns import PatternReader
from construct_messages.query.syntax.triples import NIL, TYPE, Refused, read
from construct_messages.query.tokens import QueryText, Token, check_braces, error, outer
from construct_messages.rdf.terms import Term, boolean, literal, number, triple, unescape

# --- query ----------------------------------------------------------------------------------------
# `Query`: the syntax tree of a text, and the resolution of its names.
#
# SPARQL 1.2 Query, section 4.1. Nothing here reads tokens.

S = TypeVar("S", bound=str)


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    source: QueryText
    prologue: Prologue  # the declarations that apply to it
    form: syntax.FormNode
    before: tuple[syntax.Unknown, ...] = ()  # unknown text before the form, such as pragmas

    @property
    def text(self) -> str:
        """The text, which all offsets refer to."""
        return self.source.text

    def term(self, node: Any) -> Term:
        """The IRI, literal or ground triple term of a node.

        >>> from construct_messages.query.syntax.parser import parse
        >>> query = parse("PREFIX ex: <urn:> ASK { ?s a ex:C ; ex:p 1 }")
        >>> [query.term(triple.predicate) for triple in query.form.where.elements[0].triples]
        ['<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>', '<urn:p>']
        """
        match node:
            case syntax.IriNode(written="a"):
                return TYPE
            case syntax.IriNode(start, end, written):
                if start == end or written is NIL:  # of a short notation
                    return Term(written)
                return self.prologue.iri(self.text, written, start)
            case syntax.NumberNode():
                return number(node.written)
            case syntax.BooleanNode():
                return boolean(node.written)
            case syntax.LiteralNode(start, end, _, language, datatype):
                value = self.string(node)
                if datatype is not None:
                    return self._legal(start, literal, value, datatype=self.term(datatype)[1:-1])
                if language is None:
                    return self._legal(start, literal, value)
                tag, _, direction = language.partition("--")
                place = end - len(language) - 1
                return self._legal(place, literal, value, language=tag, direction=direction or None)
            case syntax.TripleTermNode(_, _, subject, predicate, object):
                return triple(self.term(subject), self.term(predicate), self.term(object))
        raise self.error(node, "expected an IRI or a literal")

    def string(self, node: syntax.LiteralNode) -> str:
        """The characters of a literal."""
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

    def refusal(self, unknown: syntax.Unknown) -> QueryError:
        """The error of an `Unknown`."""
        return error(self.text, unknown.offset, unknown.message, unknown.hint)

    def unknown(self) -> QueryError | None:
        """The error of the first `Unknown`; None if the whole text matches the grammar of SPARQL."""
        found = (node for node in walk(self.before, self.form) if isinstance(node, syntax.Unknown))
        first = next(found, None)
        return None if first is None else self.refusal(first)

    def _legal(self, offset: int, make: Callable[..., S], *values: str, **options: str | None) -> S:
        try:
            return make(*values, **options)
        except TermError as problem:
            raise error(self.text, offset, problem.message, problem.hint) from None


# --- parser ---------------------------------------------------------------------------------------

T = TypeVar("T")

FORMS: Final = ("CONSTRUCT", "SELECT", "ASK", "DESCRIBE")
DECLARATIONS: Final = ("BASE", "PREFIX", "VERSION")
CLAUSES: Final = {"GROUP": 0, "HAVING": 1, "ORDER": 2, "LIMIT": 3, "OFFSET": 3, "VALUES": 4}
"""The keywords of the clauses after WHERE, and their order."""


class _Rest(NamedTuple):
    """A form after its projection."""

    end: int
    dataset: tuple[syntax.FromClause | syntax.Unknown, ...]
    where: syntax.GroupPattern
    clauses: tuple[syntax.ClauseNode, ...]


class QueryParser(PatternReader):
    """Reads a query, starting at its form."""

    def form(self) -> syntax.FormNode:
        """The form and everything after it."""
        match self.token.keyword:
            case "CONSTRUCT":
                return self._construct()
            case "SELECT":
                return self._select(is_query=True)
            case "ASK":
                start = self.next().start
                return syntax.AskForm(start, *self._after_projection())
            case "DESCRIBE":
                return self._describe()
        raise self.expected("CONSTRUCT, SELECT, ASK or DESCRIBE")

    def sub_select(self) -> syntax.SelectForm:
        form = self._select(is_query=False)
        if not self.at("}"):
            raise self.expected("the end of the sub-select")
        return form

    # --- forms ------------------------------------------------------------------------------------------------------

    def _select(self, *, is_query: bool) -> syntax.SelectForm:
        start = self.next().start
        modifier = self.take("DISTINCT", "REDUCED")
        everything = self.token.text == "*"
        self.index += everything
        items: list[syntax.VariableNode | syntax.AliasNode | syntax.Unknown] = []
        while not self._ends_projection():
            items.append(self._projected(everything))
        if not (everything or items):
            raise self.expected("a variable, an expression or *")
        projection = None if everything and not items else tuple(items)
        if is_query:
            end, dataset, where, clauses = self._after_projection()
        else:
            dataset = ()
            self.take("WHERE")
            where = self.group()
            clauses = self.clauses()
            end = self.end
        return syntax.SelectForm(start, end, modifier, projection, dataset, where, clauses)

    def _projected(
        self, everything: bool
    ) -> syntax.VariableNode | syntax.AliasNode | syntax.Unknown:
        first, depth = self.index, self.depth
        try:
            if everything:
                raise self.expected("FROM, WHERE or {")
            return self.variable() if self.token.kind == "variable" else self.alias()
        except Refused as problem:
            self.depth, self.index = depth, first + 1
            while not (self._ends_projection() or self.token.kind == "variable"):
                self.index += 1
            return self.unknown(first, self.index, problem)

    def _ends_projection(self) -> bool:
        token = self.token
        return token.kind == "end" or token.keyword in ("FROM", "WHERE") or self.at("{", "}")

    def _construct(self) -> syntax.ConstructForm:
        start = self.next().start
        template = None
        if self.at("{"):
            template = self._template()
        elif self.token.keyword not in ("FROM", "WHERE"):
            raise self.expected("{ or WHERE after CONSTRUCT")
        dataset = self.dataset()
        named = self.token.keyword == "WHERE"
        if template is not None:
            where = self._where()
        else:
            if not named and self.at("{"):
                hint = "write CONSTRUCT FROM <...> WHERE { ... }"
                raise Refused(
                    "expected WHERE before the pattern of the short form", self.token.start, hint
                )
            where = self._where(self._template)
        clauses = self.clauses()
        return syntax.ConstructForm(start, self.end, template, dataset, where, clauses)

    def _describe(self) -> syntax.DescribeForm:
        start = self.next().start
        targets: list[syntax.VariableNode | syntax.IriNode] = []
        everything = self.token.text == "*"
        self.index += everything
        while not everything and (self.token.kind == "variable" or self.is_iri()):
            targets.append(self.name("the resource to describe"))
        if not (everything or targets):
            raise self.expected("a variable, an IRI or * after DESCRIBE")
        dataset = self.dataset()
        where = self._where() if self.token.keyword == "WHERE" or self.at("{") else None
        clauses = self.clauses()
        return syntax.DescribeForm(
            start, self.end, None if everything else tuple(targets), dataset, where, clauses
        )

    def _after_projection(self) -> _Rest:
        dataset = self.dataset()
        where = self._where()
        clauses = self.clauses()
        return _Rest(self.end, dataset, where, clauses)

    # --- template, dataset and WHERE --------------------------------------------------------------------------------

    def _template(self) -> syntax.GroupPattern:
        """ConstructTemplate, with Apache Jena's extensions `GRAPH name { … }` and `{ … }`, as in Update's Quads."""
        start = self.next().start
        self.is_template = True
        elements: list[syntax.PatternNode] = []
        self._template_triples(elements)
        while not self.at("}"):
            place, name = self.token.start, None
            if self.take("GRAPH"):
                name = self.graph_name()
                if not self.at("{"):
                    raise self.expected("{ after the name of the graph")
            elif not self.at("{"):
                raise self.unexpected("a full stop or the end of the template")
            opening = self.next().start
            inside: list[syntax.PatternNode] = []
            self._template_triples(inside)
            self.need("}", "or a full stop")
            group = syntax.GroupPattern(opening, self.end, tuple(inside))
            elements.append(
                group if name is None else syntax.GraphPattern(place, self.end, name, group)
            )
            self.take_mark(".")
            self._template_triples(elements)
        self.index += 1
        self.is_template = False
        return syntax.GroupPattern(start, self.end, tuple(elements))

    def _template_triples(self, elements: list[syntax.PatternNode]) -> None:
        start, self.triples = self.token.start, []
        while not (self.at("{", "}") or self.token.keyword == "GRAPH"):
            self.statement()
            if not self.take_mark("."):
                break
        if self.triples:
            elements.append(syntax.TriplesBlock(start, self.end, tuple(self.triples)))

    def dataset(self) -> tuple[syntax.FromClause | syntax.Unknown, ...]:
        """[14] DatasetClause, and before WHERE also Blazegraph's `WITH { … } AS %name`."""
        found: list[syntax.FromClause | syntax.Unknown] = []
        while self.token.keyword == "FROM":
            found.append(self.from_clause())
        while self.token.keyword == "WITH":
            start, first = self.token.start, self.index
            self.index += 1
            if not self.at("{"):
                raise self.expected("{ after WITH")
            self.group()
            self.require("AS")
            for is_name in (self.token.text == "%", self.tokens[self.index + 1].kind == "word"):
                if not is_name:
                    raise self.expected("the name of a sub-query, as in %name")
                self.index += 1
            problem = Refused("WITH is Blazegraph's: SPARQL has no named sub-queries", start)
            found.append(self.unknown(first, self.index, problem))
        return tuple(found)

    def from_clause(self) -> syntax.FromClause | syntax.Unknown:
        """A DatasetClause."""
        start = self.next().start
        named = bool(self.take("NAMED"))
        self._not_at_end()
        name = self.iri("the IRI of a graph")
        return syntax.FromClause(start, self.end, named, name)

    def _where(self, read: Callable[[], syntax.GroupPattern] | None = None) -> syntax.GroupPattern:
        """WhereClause."""
        has_word = self.take("WHERE")
        if not self.at("{"):
            self._not_at_end()
            raise self.expected("{ after WHERE" if has_word else "FROM, WHERE or {")
        return (read or self.group)()

    def _not_at_end(self) -> None:
        if self.token.kind == "end":
            raise Refused("there is no WHERE group", self.token.start, "add WHERE { ... }")

    # --- clauses ----------------------------------------------------------------------------------------------------

    def clauses(self) -> tuple[syntax.ClauseNode, ...]:
        """SolutionModifier and ValuesClause, up to the end of the query or sub-select."""
        found: list[syntax.ClauseNode] = []
        reached: list[str] = []
        while self.token.kind != "end" and not self.at("}"):
            first, keyword, depth = self.index, self.token.keyword, self.depth
            try:
                if keyword not in CLAUSES:
                    raise self.expected("a clause or the end of the query")
                is_late = reached and CLAUSES[keyword] < max(CLAUSES[before] for before in reached)
                if is_late or keyword in reached:
                    raise Refused(f"{keyword} is not allowed after {reached[-1]}", self.token.start)
                found.append(self._clause(keyword))
                reached.append(keyword)
            except Refused as problem:
                self.depth = depth
                found.append(self.unknown(first, self._next_clause(first), problem))
        return tuple(found)

    def _next_clause(self, first: int) -> int:
        """The index of the next clause, or of the end."""
        index, brackets = first, 0
        while True:
            token = self.tokens[index]
            if token.kind == "end" or token.is_mark("}"):
                return index
            brackets = max(0, brackets + token.is_mark("(") - token.is_mark(")"))
            if index > first and brackets == 0 and token.keyword in CLAUSES:
                return index
            index = self.after(index)

    def _clause(self, keyword: str) -> syntax.ClauseNode:
        if keyword == "VALUES":
            return self.values()
        start = self.next().start
        if keyword in ("LIMIT", "OFFSET"):
            token = self.token
            if token.kind != "number" or not token.text.isdigit():
                raise self.expected(f"a number after {keyword}")
            self.index += 1
            return syntax.SliceClause(start, self.end, keyword, token.text)
        if keyword == "HAVING":
            conditions = self._several(self._condition, "a condition after HAVING")
            return syntax.HavingClause(start, self.end, conditions)
        self.require("BY")
        if keyword == "GROUP":
            keys = self._several(
                lambda: self._guarded(self._group_condition), "a key after GROUP BY"
            )
            return syntax.GroupClause(start, self.end, keys)
        sorts = self._several(self._order_condition, "a key after ORDER BY")
        return syntax.OrderClause(start, self.end, sorts)

    def _several(self, read: Callable[[], T], what: str) -> tuple[T, ...]:
        """One condition or more."""
        found = []
        while self._begins_condition():
            found.append(read())
        if not found:
            raise self.expected(what)
        return tuple(found)

    def _begins_condition(self) -> bool:
        token = self.token
        if token.kind in ("variable", "iri", "pname") or self.at("("):
            return True
        return token.kind == "word" and token.keyword not in CLAUSES

    def _condition(self) -> syntax.ExpressionNode:
        return self._guarded(self.constraint)

    def _group_condition(self) -> syntax.ExpressionNode | syntax.AliasNode:
        if self.token.kind == "variable":
            return self.variable()
        if not self.at("("):
            return self.constraint()
        start = self.token.start
        self.deeper()
        self.index += 1
        expression = self.expression()
        variable = self.variable() if self.take("AS") else None
        self.need(")", "at the end of the expression")
        self.depth -= 1
        if variable is None:
            return expression
        return syntax.AliasNode(start, self.end, expression, variable)

    def _order_condition(self) -> syntax.OrderCondition:
        start = self.token.start
        order = self.take("ASC", "DESC")
        if order and not self.at("("):
            raise self.expected(f"( after {order}")
        is_variable = self.token.kind == "variable"
        expression = self.variable() if is_variable else self._condition()
        return syntax.OrderCondition(start, self.end, expression, order == "DESC")


def parse(
    query: str | QueryText, *, base: str | None = None, prefixes: Mapping[str, str] | None = None
) -> Query:
    """Reads a query. Text that is not SPARQL is an `Unknown` in the tree; an illegal head or template is an error
    (`QueryError`).

    >>> form = parse("SELECT ?s { ?s <urn:p> 01 }").form
    >>> form.projection[0].name, form.where.elements[0].triples[0].object.written
    ('s', '01')
    """
    source = QueryText.of(query)
    text, tokens = source.text, source.tokens
    head = find_form(source)
    check_braces(text, tokens)
    prologue = Prologue.read(text, tokens[:head], base=base, prefixes=prefixes or {})
    parser = QueryParser(text, tokens)
    before = _before(parser, head)
    parser.index = head
    return Query(source, prologue, read(parser.form, text), before)


def find_form(source: QueryText, others: Sequence[str] = ()) -> int:
    """The index of the keyword of the form, or of one of the other keywords."""
    tokens = source.tokens
    for index in outer(tokens, 0, len(tokens)):
        if tokens[index].keyword in FORMS or tokens[index].keyword in others:
            return index
    update = " or update" if others else ""
    message = f"there is no CONSTRUCT, nor any other form of query{update}"
    for index in outer(tokens, 0, len(tokens)):
        token = tokens[index]
        if token.kind == "word" and (likely := _likely(token.text, (*FORMS, *others))):
            raise error(source.text, token.start, message, f"did you mean {likely}?")
    raise error(source.text, len(source.text), message)


def _likely(word: str, keywords: Sequence[str]) -> str | None:
    """The keyword that a misspelt word may have been meant as."""
    from difflib import get_close_matches  # imported here because most queries are right

    return next(iter(get_close_matches(word.upper(), keywords, n=1, cutoff=0.75)), None)


def _before(parser: QueryParser, head: int) -> tuple[syntax.Unknown, ...]:
    """The tokens before the form that are not declarations."""
    found = []
    while parser.index < head:
        first = parser.index
        kinds = [token.kind for token in parser.tokens[first + 1 : min(first + 3, head)]]
        match parser.token.keyword, kinds:
            case "BASE", ["iri", *_]:
                parser.index += 2
            case "VERSION", ["string", *_] if _is_version(parser.tokens[first + 1]):
                parser.index += 2
            case "PREFIX", ["pname", "iri"] if _is_prefix(parser.tokens[first + 1]):
                parser.index += 3
            case _:
                problem = parser.expected("a declaration or the form of the query")
                end = first + 1
                while end < head and parser.tokens[end].keyword not in DECLARATIONS:
                    end += 1
                found.append(parser.unknown(first, end, problem))
    return tuple(found)


def _is_version(token: Token) -> bool:
    """Whether the string has single quotation marks and legal escapes."""
    try:
        unescape(token.text)
    except TermError:
        return False
    return token.text[1:3] not in ('""', "''")


def _is_prefix(token: Token) -> bool:
    return token.text.find(":") == len(token.text) - 1
