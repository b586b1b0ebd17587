"""`ConstructQuery`: a CONSTRUCT query as a SELECT with its solutions, and the template that makes messages of them.
`parse_select` reads a query that is a SELECT already.

SPARQL 1.2 Query, section 16.2 (CONSTRUCT) and section 19.8, [10] ConstructQuery. The text is spliced, never
regenerated: only the head changes, so dialects that no parser here knows are sent to the engine as written.
Other changes to the SELECT are in `select.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from construct_messages.errors import NotConstruct, Position, QueryError, UsageError
from construct_messages.query.prologue import check_base, check_prefixes, insert, usable_prefixes
from construct_messages.query.select import OriginalQuery, Select, unused
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import group_keys, in_scope, values_variables, walk
from construct_messages.query.syntax.parser import CLAUSES, FORMS, Query, find_form, parse
from construct_messages.query.tokens import QueryText, Token, decoded, tokenize
from construct_messages.rdf.arguments import checked, warn
from construct_messages.rdf.options import Grouping
from construct_messages.rdf.template import (
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
    legal,
)
from construct_messages.rdf.terms import as_term, triple

# --- template patterns ----------------------------------------------------------------------------
# The triples of a template as patterns that a solution instantiates.
#
# SPARQL 1.2 Query, section 16.2.1 (templates with blank nodes). Everything legal is accepted, also triples that no
# message can hold (`Template` drops them). No text is read here.


def template_patterns(
    query: Query, template: syntax.GroupPattern
) -> tuple[tuple[str, ...], tuple[Pattern, ...]]:
    """Returns the variables of a template, by first appearance, and its triples.

    >>> from construct_messages.query.syntax.parser import parse
    >>> query = parse("CONSTRUCT { ?x a [] } {}")
    >>> template_patterns(query, query.form.template)[0]
    ('x',)
    """
    nodes = sorted(
        (
            node
            for node in walk(template)
            if isinstance(node, syntax.VariableNode | syntax.BlankNode)
        ),
        key=lambda node: node.start,
    )
    names = dict.fromkeys(node.name for node in nodes if isinstance(node, syntax.VariableNode))
    labels = dict.fromkeys(node.label for node in nodes if isinstance(node, syntax.BlankNode))
    slots = _Slots(
        query,
        {name: index for index, name in enumerate(names)},
        {label: index for index, label in enumerate(labels)},
    )
    return tuple(names), tuple(slots.patterns(template, None))


class _Slots:
    def __init__(self, query: Query, variables: dict[str, int], blanks: dict[str, int]) -> None:
        self._query, self._variables, self._blanks = query, variables, blanks

    def patterns(self, group: syntax.GroupPattern, graph: Slot | None) -> Iterator[Pattern]:
        for element in group.elements:
            match element:
                case syntax.TriplesBlock(_, _, triples):
                    yield from (self._pattern(triple, graph) for triple in triples)
                case syntax.GraphPattern(_, _, name, inside):
                    yield from self.patterns(inside, self._slot(name))
                case syntax.GroupPattern():
                    yield from self.patterns(element, None)

    def _pattern(self, triple: syntax.TripleNode, graph: Slot | None) -> Pattern:
        subject, predicate, object = triple.subject, triple.predicate, triple.object
        assert isinstance(
            predicate, syntax.VariableNode | syntax.IriNode
        )  # a template has no paths
        return Pattern(self._slot(subject), self._slot(predicate), self._slot(object), graph)

    def _slot(self, node: syntax.TermNode) -> Slot:
        match node:
            case syntax.VariableNode():
                return Variable(self._variables[node.name])
            case syntax.BlankNode():
                return Blank(self._blanks[node.label])
            case syntax.TripleTermNode(_, _, subject, predicate, object):
                nested = Nested(self._slot(subject), self._slot(predicate), self._slot(object))
                match nested:
                    case Nested(Constant(s), Constant(p), Constant(o)) if legal(nested, "object"):
                        return Constant(triple(s, p, o))
                return nested  # also of constants: the parts are checked for triples that are never legal
        return Constant(self._query.term(node))


# --- rewrite --------------------------------------------------------------------------------------

_UPDATES: Final = (
    "INSERT",
    "DELETE",
    "WITH",
    "LOAD",
    "CLEAR",
    "DROP",
    "CREATE",
    "ADD",
    "MOVE",
    "COPY",
)
_LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")
_SPACE: Final = re.compile(r"[\x20\t\r\n]*")


@checked
def query_form(text: str | QueryText) -> str:
    """Returns the form of a query or update: `"CONSTRUCT"`, `"SELECT"`, `"ASK"`, `"DESCRIBE"` or `"UPDATE"`.

    Only the prologue is parsed, so the rest of the text may be invalid.

    Raises:
        QueryError: the text has no such form.

    >>> query_form("PREFIX ask: <urn:x> # SELECT\\nCONSTRUCT WHERE { ?s ?p ?o }")
    'CONSTRUCT'
    """
    return _form(QueryText.of(text))[1]


def _form(query: QueryText) -> tuple[int, str]:
    index = find_form(query, _UPDATES)
    keyword = query.tokens[index].keyword
    return index, keyword if keyword in FORMS else "UPDATE"


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """A parsed CONSTRUCT query: a SELECT and a template.

    Args:
        rewritten: the SELECT with the solutions of the query.
        template: turns each solution into a message; its variables are those of `rewritten`.
        prefixes: IRI by prefix (without colon): declared in the text or by the caller, or predefined by the server and
            used in the text.
        base: the base IRI at the template.
        unbound: the variables of the template that no solution binds.

    >>> from construct_messages.rdf.labels import Labels
    >>> query = ConstructQuery.parse("CONSTRUCT { ?s <urn:p> [] } WHERE { ?s a <urn:C> } LIMIT 10")
    >>> query.select
    'SELECT ?s WHERE { ?s a <urn:C> } LIMIT 10'
    >>> [str(quad) for quad in query.template.labelled(Labels("x")).instantiate(["<urn:a>"], 0)]
    ['<urn:a> <urn:p> _:x_t0b0 .']
    """

    rewritten: Select
    template: Template
    prefixes: dict[str, str]
    base: str | None
    unbound: tuple[str, ...] = ()

    def warn_of_unbound(self, given: Iterable[str] = ()) -> None:
        """Warns of variables of the template that no solution binds, except those that are `given` (`QueryWarning`)."""
        names = [f"?{name}" for name in self.unbound if name not in set(given)]
        if names:
            warn(
                f"no solution binds {', '.join(names)} of the template, so its triples are left out"
            )

    @property
    def select(self) -> str:
        """The text of `rewritten`."""
        return str(self.rewritten)

    def select_for(self, bindings: Mapping[str, Any] | None, grouping: Grouping) -> Select:
        """`rewritten` with initial bindings, whose values are those of Python, and sorted for a sorted grouping."""
        select = self.rewritten
        if bindings:
            select = select.bind(
                {name.lstrip("?$"): as_term(value) for name, value in bindings.items()}
            )
        return select.sorted_by(grouping.by) if grouping.is_sorted else select

    @classmethod
    @checked
    def parse(
        cls,
        query: str | QueryText,
        *,
        base: str | None = None,
        prefixes: Mapping[str, str] | None = None,
        predefined: Mapping[str, str] | None = None,
        group_by: Sequence[str] = (),
        whole: bool = False,
    ) -> ConstructQuery:
        """Parses the template and rewrites the head. The rest of the text is unchanged, except for a byte order mark.

        The variables of the template are projected in the order of their first appearance. With GROUP BY, only its keys
        can be projected; other variables of the template are unbound, so triples with them are left out.

        Args:
            query: its text.
            base: an absolute IRI; BASE in the text is resolved against it and overrides it.
            prefixes: IRI by prefix; those used but not declared in the text are declared in the SELECT.
            predefined: prefixes that the engine predefines; only used for the template.
            group_by: additional variables (`?v`, `$v` or `v`) to project.
            whole: also project all other variables that solutions may bind; with GROUP BY, all keys.

        Raises:
            NotConstruct: another form of query, or an update.
            QueryError: an invalid head or template, with its position; a `group_by` variable that no solution binds.
            UsageError: a malformed base, prefix or variable name.
        """
        source = QueryText.of(query)
        text, tokens = source.text, source.tokens
        head, form = _form(source)
        if form != "CONSTRUCT":
            raise NotConstruct(form, position=Position.at(text, tokens[head].start))
        own, server, base = check_prefixes(prefixes), usable_prefixes(predefined), check_base(base)
        tree = parse(source, base=base, prefixes=server | own)
        construct, prologue = tree.form, tree.prologue
        assert isinstance(construct, syntax.ConstructForm)
        _refuse_full_stop(tree, construct)
        mentioned, patterns = template_patterns(tree, construct.template or construct.where)

        keys, added = group_keys(construct.clauses), values_variables(construct.clauses)
        bound = {*added, *in_scope(construct.dataset, construct.where)}
        everywhere = {
            decoded(text, token)[1:]: None for token in tokens if token.kind == "variable"
        }
        variables = [name for name in mentioned if keys is None or name in keys or name in added]
        for name in map(_variable_name, group_by):
            _check_key(name, everywhere, bound, None if keys is None else {*keys, *added})
            if name not in variables:
                variables.append(name)
        if whole:
            of_solutions = bound if keys is None else {*keys, *added}
            variables += sorted(of_solutions.difference(variables))
        # after GROUP BY, variables of VALUES can only be projected outside of a sub-select
        apart = None if keys is None or set(variables) <= set(keys) else keys
        projection = " ".join(f"?{name}" for name in variables)
        if not variables:
            variables = [unused("solution", everywhere)]
            projection = f"(1 AS ?{variables[0]})"

        used = {decoded(text, token).partition(":")[0] for token in tokens if token.kind == "pname"}
        undeclared = {prefix: own[prefix] for prefix in own if prefix in used - prologue.declared}
        place, inserted = insert(tokens[:head], base, undeclared)
        beginning = text[:place] + inserted + text[place : tokens[head].start]
        template = construct.template
        behind = template.end if template else construct.start + len("CONSTRUCT")
        return cls(
            rewritten=replace(
                _select(text, construct, behind, beginning, projection, tuple(variables)),
                keys=apart,
                parsed=replace(tree, form=_select_form(construct, variables, projection)),
                written=OriginalQuery(
                    _without_template(text, construct),
                    base,
                    own,
                    (construct.where.start, construct.where.end),
                ),
            ),
            template=Template(tuple(variables), tuple(_renumbered(patterns, mentioned, variables))),
            prefixes={
                prefix: namespace
                for prefix, namespace in prologue.prefixes.items()
                if prefix in used or prefix in own or prefix in prologue.declared
            },
            base=prologue.base,
            unbound=tuple(
                name
                for name in mentioned
                if name not in (bound if keys is None else {*keys, *added})
            ),
        )


def _check_key(
    name: str, everywhere: Collection[str], bound: Collection[str], keys: Collection[str] | None
) -> None:
    """Refuses a variable that cannot group; `keys` are those of the query's own GROUP BY."""
    if name not in everywhere:
        raise QueryError(f"the query has no variable ?{name} to group by", hint=_choice(everywhere))
    if keys is not None and name not in keys:
        message = f"?{name} is no key of the query's own GROUP BY, so it has no single value"
        raise QueryError(message, hint=_choice(keys))
    if keys is None and name not in bound:
        message = f"no solution of the query binds ?{name}, so it groups nothing"
        raise QueryError(message, hint=_choice(bound))


def _select_form(
    form: syntax.ConstructForm, variables: Sequence[str], projection: str
) -> syntax.SelectForm:
    """The SELECT with these variables as a tree, whose offsets are in the CONSTRUCT."""
    start, end = form.start, form.start + len("CONSTRUCT")
    names = tuple(syntax.VariableNode(start, end, name) for name in variables)
    projected: tuple[syntax.VariableNode | syntax.AliasNode, ...] = names
    if projection.startswith("("):
        projected = (syntax.AliasNode(start, end, syntax.NumberNode(start, end, "1"), names[0]),)
    return syntax.SelectForm(start, form.end, "", projected, form.dataset, form.where, form.clauses)


def _without_template(text: str, form: syntax.ConstructForm) -> str:
    """The query with blanks in the braces of its template, and the same positions."""
    if form.template is None:
        return text
    start, end = form.template.start + 1, form.template.end - 1
    return text[:start] + re.sub(r"[^\r\n]", " ", text[start:end]) + text[end:]


def _refuse_full_stop(tree: Query, form: syntax.ConstructForm) -> None:
    """Refuses a group that begins with a full stop, which would be legal after a block of initial bindings."""
    first = form.where.elements[0] if form.where.elements else None
    if isinstance(first, syntax.Unknown) and tree.text[first.start] == ".":
        raise tree.refusal(first)


def _select(
    text: str,
    form: syntax.ConstructForm | syntax.SelectForm,
    behind: int,
    prologue: str,
    projection: str,
    variables: tuple[str, ...],
) -> Select:
    """The pieces; each begins right after the last token of the previous one, with its white space and comments.

    `behind`: the offset after the template or the projection.
    """
    kept = len(_LINE_BREAK.findall(projection))
    breaks = "".join(_LINE_BREAK.findall(text, form.start, behind)[kept:])
    space = _SPACE.match(text, behind)
    start = space.end() if space else behind
    aggregation, order, slice, values = _pieces(text, form)
    counts = {
        # int() refuses thousands of digits; the first ones are more than any result has
        clause.keyword: int(clause.number.lstrip("0")[:19] or "0")
        for clause in form.clauses
        if isinstance(clause, syntax.SliceClause)
    }
    return Select(
        prologue=prologue,
        head=f"SELECT {projection}{breaks + text[behind:start] or ' '}",
        variables=variables,
        dataset=text[start : form.where.start],
        group=text[form.where.start : form.where.end],
        aggregation=aggregation,
        order=order,
        slice=slice,
        limit=counts.get("LIMIT"),
        offset=counts.get("OFFSET", 0),
        values=values,
    )


def _pieces(text: str, form: syntax.ConstructForm | syntax.SelectForm) -> Iterator[str]:
    """GROUP BY and HAVING, ORDER BY, LIMIT and OFFSET, and the rest; unknown text belongs to the piece before it."""
    done, clauses = form.where.end, list(form.clauses)
    for keywords in (("GROUP", "HAVING"), ("ORDER",), ("LIMIT", "OFFSET")):
        end = done
        while clauses and _belongs(text, clauses[0], keywords):
            end = clauses.pop(0).end
        yield text[done:end]
        done = end
    yield text[done:]


def _belongs(text: str, clause: syntax.ClauseNode, keywords: tuple[str, ...]) -> bool:
    written = text[clause.start : clause.end].upper()
    if written.startswith(keywords):
        return True
    is_slice = "LIMIT" in keywords
    return (
        isinstance(clause, syntax.Unknown)
        and not is_slice
        and not written.startswith(tuple(CLAUSES))
    )


def _renumbered(
    patterns: Sequence[Pattern], names: Sequence[str], variables: Sequence[str]
) -> Iterator[Pattern]:
    """The indexes of the patterns whose variables are all among these."""
    projected = {name: number for number, name in enumerate(variables)}
    index = {number: projected[name] for number, name in enumerate(names) if name in projected}

    def slot(old: Slot) -> Slot:
        match old:
            case Variable(number):
                return Variable(index[number])
            case Nested(subject, predicate, object):
                return Nested(slot(subject), slot(predicate), slot(object))
        return old

    for pattern in patterns:
        try:
            yield Pattern(*(part if part is None else slot(part) for part in pattern))  # type: ignore[arg-type] # only the graph is None
        except KeyError:
            continue  # it holds a variable that no solution binds


# --- select ---------------------------------------------------------------------------------------


def parse_select(
    query: str | QueryText,
    *,
    base: str | None = None,
    prefixes: Mapping[str, str] | None = None,
    predefined: Mapping[str, str] | None = None,
) -> Select:
    """Parses a SELECT query. `*` becomes its variables, in the order of the text; each variable is projected once.

    Args:
        query, base, prefixes, predefined: see `ConstructQuery.parse`.

    Raises:
        QueryError: another form of query, or an invalid head, with its position.
        UsageError: a malformed base or prefix.

    >>> select = parse_select("SELECT * WHERE { ?s ?p ?o } LIMIT 10")
    >>> select.variables, str(select)
    (('s', 'p', 'o'), 'SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 10')
    """
    source = QueryText.of(query)
    text, tokens = source.text, source.tokens
    head, form = _form(source)
    if form != "SELECT":
        raise QueryError(
            f"expected a SELECT query, got {form}",
            position=Position.at(text, tokens[head].start),
            hint="CONSTRUCT queries are for construct_messages()",
        )
    own, server, base = check_prefixes(prefixes), usable_prefixes(predefined), check_base(base)
    tree = parse(source, base=base, prefixes=server | own)
    select = tree.form
    assert isinstance(select, syntax.SelectForm)
    items = _projected(tree, select)
    projection = " ".join(written for written, _ in items.values())
    used = {decoded(text, token).partition(":")[0] for token in tokens if token.kind == "pname"}
    undeclared = {prefix: own[prefix] for prefix in own if prefix in used - tree.prologue.declared}
    place, inserted = insert(tokens[:head], base, undeclared)
    beginning = text[:place] + inserted + text[place : tokens[head].start]
    made = _select(
        text,
        select,
        _end_of_projection(tokens, select),
        beginning,
        f"{select.modifier} {projection}".lstrip(),
        tuple(items),
    )
    form_of_items = select._replace(projection=tuple(item for _, item in items.values()))
    return replace(
        made,
        parsed=replace(tree, form=form_of_items),
        written=OriginalQuery(text, base, own, (select.where.start, select.where.end)),
    )


def _end_of_projection(tokens: Sequence[Token], form: syntax.SelectForm) -> int:
    """Returns the offset after the last token before FROM, WHERE or the group."""
    start = form.dataset[0].start if form.dataset else form.where.start
    before = [token for token in tokens if form.start <= token.start < start]
    if before[-1].keyword == "WHERE":
        before.pop()
    return before[-1].end


def _projected(
    tree: Query, form: syntax.SelectForm
) -> dict[str, tuple[str, syntax.VariableNode | syntax.AliasNode]]:
    """Returns the projected variables by name, with their text and their nodes."""
    if form.projection is None:
        if (unknown := tree.unknown()) is not None:
            unknown.hint = "name the variables in place of *: this text may bind others"
            raise unknown
        names = dict.fromkeys((*in_scope(form.where), *values_variables(form.clauses)))
        if not names:
            raise tree.error(form, "SELECT * has no variables", "name one in the query")
        node = syntax.VariableNode(form.start, form.start + len("SELECT"), "")
        return {name: (f"?{name}", node._replace(name=name)) for name in names}
    found: dict[str, tuple[str, syntax.VariableNode | syntax.AliasNode]] = {}
    for item in form.projection:
        match item:
            case syntax.VariableNode(name=name):
                found.setdefault(name, (f"?{name}", item))
            case syntax.AliasNode(start, end, _, syntax.VariableNode(name=name)):
                if name in found:
                    raise tree.error(item, f"?{name} is in the projection already", "rename it")
                found[name] = tree.text[start:end], item
            case _:
                raise tree.refusal(item)
    return found


def _variable_name(written: str) -> str:
    name = written[1:] if written[:1] in ("?", "$") else written
    if tokenize(f"?{name}") != [Token("variable", f"?{name}", 0)] or "\\" in name:
        raise UsageError(f"{written!r} is not a variable", hint="write it as in ?company")
    return name


def _choice(names: Collection[str]) -> str:
    listed = ", ".join(f"?{name}" for name in sorted(names))
    return f"use one of {listed}" if names else "there is none to use"


# --- results --------------------------------------------------------------------------------------
# SELECT and ASK queries as a `Select` that a source can evaluate; an ASK has one solution or none.
#
# SPARQL 1.2 Query, section 19.8, [9] SelectClause, [12] AskQuery. The text is spliced, as in `rewrite.py`.


def read_results(
    query: str, *, base: str | None = None, prefixes: Mapping[str, str] | None = None
) -> Select:
    """Returns a SELECT or ASK query as the `Select` to evaluate.

    >>> str(read_results("SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }"))
    'SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }'
    >>> read_results("SELECT (MAX(?t) AS ?latest) { ?s <urn:modified> ?t }").variables
    ('latest',)
    >>> str(read_results("ASK { ?s ?p 1 }"))
    'SELECT (1 AS ?answer) { ?s ?p 1 }\\nLIMIT 1'
    """
    source = QueryText.of(query)
    text, tokens = source.text, source.tokens
    head, form = _form(source)
    if form == "SELECT":
        return parse_select(source, base=base, prefixes=prefixes)
    if form != "ASK":
        raise QueryError(
            "expected a SELECT or ASK query",
            position=Position.at(text, tokens[head].start),
            hint="its result is compared",
        )
    tree, start = parse(source), tokens[head].start
    own = check_prefixes(prefixes)
    used = {decoded(text, token).partition(":")[0] for token in tokens if token.kind == "pname"}
    undeclared = {prefix: own[prefix] for prefix in own if prefix in used - tree.prologue.declared}
    place, inserted = insert(tokens[:head], check_base(base), undeclared)
    prologue = text[:place] + inserted + text[place:start]
    rest = text[start + len("ASK") :].lstrip()
    return Select(
        prologue, "SELECT (1 AS ?answer) ", ("answer",), "", rest, slice="\nLIMIT 1", limit=1
    )
