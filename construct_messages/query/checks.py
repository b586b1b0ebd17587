"""Rejects queries that are not SPARQL, with a position: by the grammar, and by its notes.

SPARQL 1.2 Query, section 19.8 (notes of the grammar), section 18.2.1 (scope), section 11.4 (projection of groups) and
section 17.4 (functions). Whether an engine supports a query is not checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from construct_messages.errors import Position, QueryError
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import aggregates, group_keys, in_scope, walk
from construct_messages.query.syntax.parser import Query
from construct_messages.query.tokens import ESCAPE

# --- refusals -------------------------------------------------------------------------------------
# Errors of pyoxigraph's parser. This package's own `check` finds nearly all of them first, with better messages.

REWRITTEN: Final = "lines are those of your query; on the line of CONSTRUCT, columns are those of the rewritten SELECT"
"""The hint about an engine's own position in a query that it refuses."""

# the place of an error in a message of pyoxigraph
_AT: Final = re.compile(r"(?:error )?at (\d+):(\d+)(?:-\d+:\d+)?: ", re.IGNORECASE)


def refusal(error: SyntaxError, refused: str, hint: str | None) -> QueryError:
    """The error for what only pyoxigraph's parser refuses, such as an IRI with an illegal port.

    >>> import pyoxigraph as ox
    >>> try:
    ...     ox.Store().query("SELECT * { ?s <http://a:b/> ?o }")
    ... except SyntaxError as error:
    ...     print(refusal(error, "the query is not SPARQL", None))
    line 1, column 28: the query is not SPARQL: expected IRI parsing failed
    """
    place = _AT.search(str(error))
    return QueryError(
        f"{refused}: {_AT.sub('', str(error), 1)}",
        position=Position(int(place[1]), int(place[2])) if place else None,
        hint=hint,
    )


# --- checks ---------------------------------------------------------------------------------------

_MANY: Final = 1 << 30
FUNCTIONS: Final = {
    **dict.fromkeys(("RAND", "NOW", "UUID", "STRUUID"), (0, 0)),
    "BNODE": (0, 1),
    **dict.fromkeys(("STR", "LANG", "LANGDIR", "DATATYPE", "BOUND", "IRI", "URI", "ABS"), (1, 1)),
    **dict.fromkeys(("CEIL", "FLOOR", "ROUND", "STRLEN", "UCASE", "LCASE", "YEAR"), (1, 1)),
    **dict.fromkeys(("MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ"), (1, 1)),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512", "ENCODE_FOR_URI"), (1, 1)),
    **dict.fromkeys(("ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "ISTRIPLE"), (1, 1)),
    **dict.fromkeys(("SUBJECT", "PREDICATE", "OBJECT", "HASLANG", "HASLANGDIR"), (1, 1)),
    **dict.fromkeys(("LANGMATCHES", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE"), (2, 2)),
    **dict.fromkeys(("STRAFTER", "STRLANG", "STRDT", "SAMETERM"), (2, 2)),
    **dict.fromkeys(("REGEX", "SUBSTR"), (2, 3)),
    "REPLACE": (3, 4),
    **dict.fromkeys(("IF", "TRIPLE", "STRLANGDIR"), (3, 3)),
    **dict.fromkeys(("CONCAT", "COALESCE"), (0, _MANY)),
}
"""The least and the largest number of arguments of each function of SPARQL 1.2, by its keyword in upper case."""


def check(query: Query) -> None:
    """Checks that a text is SPARQL 1.2.

    >>> from construct_messages.query.syntax.parser import parse
    >>> check(parse("SELECT ?s { ?s ?p ?o } GROUP BY ?s"))
    >>> check(parse("SELECT ?s { ?s ?p ?o BIND(1 AS ?o) }"))
    Traceback (most recent call last):
    construct_messages.errors.QueryError: line 1, column 32: ?o is bound already
      hint: name another variable after AS
    """
    problem = query.unknown()
    if problem is not None:
        raise problem
    _Checks(query).check()


class _Checks:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._blocks: dict[str, int] = {}  # the basic graph pattern of each blank node label
        self._block = 0

    def check(self) -> None:
        form = self._query.form
        template = None
        if isinstance(form, syntax.ConstructForm):
            template = form.template
            self._template(form.where if template is None else template)
        self._level(form)
        for node in walk(form):
            match node:
                case syntax.IriNode() if ESCAPE.search(node.written) and node.written[0] != "<":
                    message = "a prefixed name has no codepoint escapes"  # of SPARQL 1.1
                    raise self._error(node, message, "write the character, or the IRI in <...>")
                case syntax.IriNode() | syntax.LiteralNode():
                    self._query.term(node)
                case syntax.VariableNode() | syntax.TripleNode():
                    pass
                case syntax.GroupPattern() if node is template:
                    pass
                case syntax.GroupPattern():
                    self._group(node)
                case syntax.SelectForm() if node is not form:
                    self._level(node)
                case syntax.ValuesPattern():
                    self._values(node)
                case syntax.CallNode():
                    self._call(node)
                case syntax.AggregateNode():
                    self._refuse_aggregates(node.argument, "in another aggregate")
                    separator = node.separator
                    if separator is not None and (separator.language or separator.datatype):
                        raise self._error(separator, "a plain string is needed here")
                case syntax.FilterPattern():
                    self._refuse_aggregates(node.condition, "in FILTER")
                case syntax.OperationNode():
                    self._triple_terms(node.operands)
                case syntax.AliasNode():
                    self._triple_terms((node.expression,))

    def _error(self, node: Any, message: str, hint: str | None = None) -> QueryError:
        return self._query.error(node, message, hint)

    def _template(self, template: syntax.GroupPattern) -> None:
        for element in template.elements:
            if not isinstance(element, syntax.TriplesBlock):
                raise self._error(element, "graphs in a template are of Apache Jena, not of SPARQL")

    # --- groups -----------------------------------------------------------------------------------------------------

    def _group(self, group: syntax.GroupPattern) -> None:
        """Checks the variables that BIND assigns to, and that blank nodes stay in their basic graph pattern."""
        bound: dict[str, None] = {}
        is_new = True
        for element in group.elements:
            if isinstance(element, syntax.TriplesBlock):
                self._block += is_new
                self._labels(element)
            is_new = (
                is_new
                if isinstance(element, syntax.FilterPattern)
                else not isinstance(element, syntax.TriplesBlock)
            )
            if isinstance(element, syntax.BindPattern):
                self._refuse_aggregates(element.alias.expression, "in BIND")
                self._refuse_bound(element.alias.variable, bound)
            bound |= in_scope(element)

    def _labels(self, block: syntax.TriplesBlock) -> None:
        for node in walk(block):
            if not isinstance(node, syntax.BlankNode):
                continue
            if self._blocks.setdefault(node.label, self._block) != self._block:
                message = "the same blank node label is in two basic graph patterns"
                raise self._error(node, message, "use a variable instead")

    def _refuse_bound(self, variable: syntax.VariableNode, bound: dict[str, None]) -> None:
        if variable.name in bound:
            hint = "name another variable after AS"
            raise self._error(variable, f"?{variable.name} is bound already", hint)

    def _values(self, values: syntax.ValuesPattern) -> None:
        names = [variable.name for variable in values.variables]
        for index, variable in enumerate(values.variables):
            if variable.name in names[:index]:
                raise self._error(variable, f"?{variable.name} is in VALUES twice")
        for solution in values.solutions:
            if len(solution) != len(names):
                place = next(filter(None, solution), values)
                message = f"VALUES has {len(solution)} values for {len(names)} variables"
                raise self._error(place, message)
            self._triple_terms(solution)
        for node in walk(values.solutions):
            if isinstance(node, syntax.VariableNode):
                raise self._error(node, "VALUES has no variables in its terms")

    # --- expressions ------------------------------------------------------------------------------------------------

    def _call(self, call: syntax.CallNode) -> None:
        self._triple_terms(call.arguments)
        if isinstance(call.function, syntax.IriNode):
            return
        if call.function not in FUNCTIONS:
            raise self._error(call, f"there is no function {call.function}")
        least, most = FUNCTIONS[call.function]
        count = len(call.arguments)
        if not least <= count <= most or call.distinct:
            takes = f"{least}" if least == most else f"{least} to {most}"
            raise self._error(call, f"{call.function} takes {takes} arguments, found {count}")
        if call.function == "BOUND" and not isinstance(call.arguments[0], syntax.VariableNode):
            raise self._error(call.arguments[0], "BOUND takes a variable")

    def _refuse_aggregates(self, expression: Any, where: str) -> None:
        found = next(aggregates(expression), None) if expression is not None else None
        if found is not None:
            hint = "aggregate in SELECT, HAVING or ORDER BY"
            raise self._error(found, f"{found.name} is not allowed here, {where}", hint)

    def _triple_terms(self, parts: Iterable[Any]) -> None:
        """The triple terms of an expression, or of VALUES: they are values, not patterns."""
        for term in parts:
            if not isinstance(term, syntax.TripleTermNode):
                continue
            if not isinstance(term.subject, syntax.IriNode | syntax.VariableNode):
                raise self._error(term.subject, "expected an IRI as the subject of a triple term")
            if isinstance(term.object, syntax.BlankNode):
                raise self._error(term.object, "expected a term: an expression has no blank nodes")
            self._triple_terms((term.object,))

    # --- a query or sub-select --------------------------------------------------------------------------------------

    def _level(self, form: Any) -> None:
        """Checks the projection and the grouping of solutions."""
        inside = in_scope(form.where) if form.where is not None else {}
        keys = group_keys(form.clauses)
        if not keys and next(aggregates(*form.clauses), None) is None:
            # HAVING without aggregates filters the solutions as they are
            groups = any(isinstance(clause, syntax.GroupClause) for clause in form.clauses)
            keys = keys if groups else None
        self._keys(form.clauses, inside)
        if not isinstance(form, syntax.SelectForm):
            return
        items = form.projection
        if items is None:
            if keys is not None:
                raise self._error(
                    form, "SELECT * has no meaning with GROUP BY", "name the variables"
                )
            return
        grouped = keys is not None or any(next(aggregates(item), None) for item in items)
        visible: dict[str, None] = dict.fromkeys(keys or ()) if grouped else inside
        visible |= in_scope(
            *(each for each in form.clauses if isinstance(each, syntax.ValuesPattern))
        )
        projected: dict[str, None] = {}
        for item in items:
            if isinstance(item, syntax.VariableNode):
                if grouped:
                    self._refuse_ungrouped(item, visible)
                projected[item.name] = None
            elif isinstance(item, syntax.AliasNode):
                if grouped:
                    for variable in _outside_aggregates(item.expression):
                        self._refuse_ungrouped(variable, visible | projected)
                self._refuse_bound(item.variable, (visible if grouped else inside) | projected)
                projected[item.variable.name] = None

    def _keys(self, clauses: Sequence[syntax.ClauseNode], inside: dict[str, None]) -> None:
        for clause in clauses:
            if isinstance(clause, syntax.GroupClause):
                self._refuse_aggregates(clause, "in GROUP BY")
                for condition in clause.conditions:
                    if isinstance(condition, syntax.AliasNode):
                        self._refuse_bound(condition.variable, inside)

    def _refuse_ungrouped(self, variable: syntax.VariableNode, visible: dict[str, None]) -> None:
        if variable.name not in visible:
            name = f"?{variable.name}"
            raise self._error(
                variable,
                f"{name} is neither a key of GROUP BY nor an aggregate",
                f"write SAMPLE({name}), or GROUP BY it",
            )


def _outside_aggregates(expression: Any) -> Iterator[syntax.VariableNode]:
    """The variables of an expression that are not in an aggregate or a group."""
    inside = walk(expression, closed=(syntax.AggregateNode, syntax.GroupPattern))
    return (node for node in inside if isinstance(node, syntax.VariableNode))
