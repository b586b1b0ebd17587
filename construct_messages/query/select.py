"""`Select`: the rewritten query as its verbatim pieces, so that a change replaces one piece and keeps the rest.

The pieces are those of SPARQL 1.2's SelectQuery (section 19.8, [7]) in their order; concatenated they are the text.
`rewrite.py` cuts the text into pieces; the methods and pages here replace some, and can be applied to each other's
results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from construct_messages.errors import UsageError
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import aggregates, assigned, reached, walk
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.rdf.terms import Term, has_blank, literal

# --- select ---------------------------------------------------------------------------------------

_TEXT_KEYS: Final = (
    *(f'COALESCE({function}(?{{0}}), "")' for function in ("STR", "DATATYPE", "LANG")),
    # not IF(isIRI(…) || isLITERAL(…), "", …), at which Ontop fails
    'COALESCE(IF(!isIRI(?{0}) && !isLITERAL(?{0}), ?{0}, ""), "")',
)


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT query in verbatim pieces; `str()` is its text."""

    prologue: str  # everything before the keyword SELECT (BOM, DEFINE, BASE, PREFIX, comments)
    head: str  # `SELECT ?a ?b` with the white space after it
    variables: tuple[str, ...]  # the projected names in order, without `?`; never empty
    # everything before the WHERE group: FROM clauses, Blazegraph's WITH, the keyword WHERE
    dataset: str
    group: str  # the WHERE group, from `{` to `}`
    aggregation: str = ""  # GROUP BY and HAVING
    order: str = ""
    slice: str = ""  # LIMIT and OFFSET, as written
    limit: int | None = None  # the value of LIMIT, None if there is none or it is not a number
    offset: int = 0  # the value of OFFSET, 0 if there is none
    values: str = ""  # the trailing VALUES clause and any text after it
    # the keys of GROUP BY if `values` binds a projected variable that is not a key; else None. The text then has the
    # groups in a sub-select, because only keys can be projected from a group (section 11.4)
    keys: tuple[str, ...] | None = None
    # the query that this was made from, for positions in errors; None if this query was not rewritten
    written: OriginalQuery | None = field(default=None, compare=False, repr=False)
    # its tree, if it is known; see `tree`
    parsed: Query | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.keys is not None:
            return str(self._groups_first(self.keys))
        return "".join(self._pieces)

    @property
    def _pieces(self) -> tuple[str, ...]:
        after = (self.aggregation, self.order, self.slice, self.values)
        return (self.prologue, self.head, self.dataset, self.group, *after)

    @property
    def tree(self) -> Query:
        """The SELECT as a tree, whose offsets are in the query that it was made from."""
        return self.parsed or parse("".join(self._pieces))

    @property
    def _form(self) -> syntax.SelectForm:
        form = self.tree.form
        assert isinstance(form, syntax.SelectForm)
        return form

    def bind(self, bindings: Mapping[str, Term]) -> Select:
        """Initial bindings: a VALUES block at the head of the WHERE group (section 10.2, VALUES).

        They join with the group like a VALUES block in the text: a sub-select that does not project the variable does
        not see them. A variable of the template that WHERE does not bind takes the value. If the group itself assigns
        the variable by BIND, the values are compared: the block is at the end of the group.

        >>> from construct_messages.rdf.terms import iri
        >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s a ?c }")
        >>> str(select.bind({"c": iri("urn:C")}))
        'SELECT ?s WHERE { VALUES (?c) { (<urn:C>) } ?s a ?c }'
        """
        if not bindings:
            return self
        tree, form = self.tree, self._form
        around = {*self.variables, *_variables(form.projection, form.dataset, form.clauses)}
        within = reached(form.where)
        mentioned = around | _variables(form.where)
        for name, term in bindings.items():
            if name not in mentioned:
                listed = ", ".join(f"?{known}" for known in sorted(mentioned))
                raise UsageError(
                    f"the query has no variable ?{name} to bind", hint=f"use one of {listed}"
                )
            if not term or has_blank(term):
                what = f"the blank node {term}" if term else "nothing"
                raise UsageError(
                    f"?{name} cannot be bound to {what}", hint="bind it to an IRI or a literal"
                )
            if name not in around and name not in within:
                raise UsageError(
                    f"?{name} cannot be bound: it is only in a sub-select that does not project it",
                    hint=f"project ?{name} there",
                )
        for name in _group_aliases(form.clauses) & bindings.keys():
            raise UsageError(
                f"?{name} cannot be bound: GROUP BY computes it", hint="compare it in HAVING"
            )
        later = assigned(form.where) & bindings.keys()
        first = _block({name: term for name, term in bindings.items() if name not in later})
        last = _block({name: term for name, term in bindings.items() if name in later})
        where = form.where
        inside = next(token for token in tree.source.tokens if token.start > where.start)
        if inside.keyword == "SELECT":
            group, elements = f"{{ {first} {self.group} }}", (*_read(first), where)
        else:
            group = f"{{{first and ' '}{first}{self.group[1:-1]}{last}{last and ' '}}}"
            elements = (*_read(first), *where.elements, *_read(last))
        bound = form._replace(where=where._replace(elements=elements))
        return replace(self, group=group, parsed=replace(tree, form=bound))

    def sorted_by(self, names: Sequence[str]) -> Select:
        """Sorts the solutions so that those with equal terms for these variables are next to each other.

        The whole query with its slice becomes a sub-select, so the order does not change which solutions are returned.
        The keys are texts, as engines differ in, and some fail by, how they compare values of several types. Only blank
        nodes and triple terms, which have no text, are compared as they are. COALESCE is there because some engines
        (such as rdflib) cannot sort by an error, like the language of an IRI.

        >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }", slice=" LIMIT 9").sorted_by(["s"])
        >>> select.group
        '{ { SELECT ?s WHERE { ?s ?p ?o } LIMIT 9 } }'
        >>> select.order.partition(" COALESCE(LANG")[0]
        ' ORDER BY COALESCE(STR(?s), "") COALESCE(DATATYPE(?s), "")'
        """
        for name in names:
            if name not in self.variables:
                raise UsageError(
                    f"the solutions cannot be sorted by ?{name}, which is not projected"
                )
        nested = self.nested()
        if not names:
            return nested
        order = " ORDER BY" + "".join(
            f" {key.format(name)}" for name in names for key in _TEXT_KEYS
        )
        if nested.parsed is None:
            return replace(nested, order=order)
        clauses = parse(f"SELECT*{{}}{order}").form.clauses
        form = nested._form._replace(clauses=clauses)
        return replace(nested, order=order, parsed=replace(nested.parsed, form=form))

    def nested(self) -> Select:
        """Moves everything after the dataset into a sub-select (section 12), so that clauses can be added.

        >>> str(Select("", "SELECT ?s ", ("s",), "", "{ ?s ?p ?o }", order=" ORDER BY ?p").nested())
        'SELECT ?s { { SELECT ?s WHERE { ?s ?p ?o } ORDER BY ?p } }'
        """
        if self.keys is not None:
            return self._groups_first(self.keys).nested()
        projection = self.head.rstrip()
        # the text may end with a comment, which must not include the braces
        end = "\n" if self.values.strip() else " "
        inner = "".join(
            (self.group, self.aggregation, self.order, self.slice, self.values.rstrip())
        )
        return Select(
            prologue=self.prologue,
            head=f"SELECT {' '.join(f'?{name}' for name in self.variables)}{self.head[len(projection) :]}",
            variables=self.variables,
            dataset=self.dataset,
            group=f"{{ {{ {projection} WHERE {inner.rstrip(' ')}{end}}} }}",
            written=self.written,
            # pages nest queries whose tree nobody asks for
            parsed=self.parsed and replace(self.parsed, form=self._outer),
        )

    @property
    def _outer(self) -> syntax.SelectForm:
        """A form around this one, without clauses."""
        form = self._form
        start, end = form.start, form.end
        inner = syntax.GroupPattern(start, end, (form._replace(dataset=()),))
        variables = tuple(syntax.VariableNode(start, end, name) for name in self.variables)
        where = syntax.GroupPattern(start, end, (inner,))
        return syntax.SelectForm(start, end, "", variables, form.dataset, where, ())

    def _groups_first(self, keys: Sequence[str]) -> Select:
        """The groups as a sub-select, with the aggregates of ORDER BY; VALUES joins with them (section 18.2.4.3)."""
        form, text = self._form, self.tree.text
        taken = _variables(form)
        start = done = form.where.end + len(self.aggregation)
        order, projected = "", [f"?{key}" for key in keys]
        for aggregate in aggregates(
            *(one for one in form.clauses if isinstance(one, syntax.OrderClause))
        ):
            name = unused("order", taken)
            taken.add(name)
            projected.append(f"({text[aggregate.start : aggregate.end]} AS ?{name})")
            order, done = f"{order}{text[done : aggregate.start]}?{name}", aggregate.end
        projection = " ".join(projected) or f"(1 AS ?{unused('group', taken)})"
        group = f"{{ {{ SELECT {projection} WHERE {self.group}{self.aggregation} }} }}"
        return replace(
            self, group=group, aggregation="", order=order + self.order[done - start :], keys=None
        )


def unused(name: str, taken: Collection[str]) -> str:
    """A name for a variable that is not taken: this name, or this name with a number."""
    return next(
        free for free in (name, *(f"{name}{n}" for n in range(len(taken) + 1))) if free not in taken
    )


def _variables(*nodes: Any) -> set[str]:
    return {node.name for node in walk(*nodes) if isinstance(node, syntax.VariableNode)}


def _group_aliases(clauses: Sequence[syntax.ClauseNode]) -> frozenset[str]:
    """The variables that GROUP BY itself assigns."""
    conditions = (
        one for each in clauses if isinstance(each, syntax.GroupClause) for one in each.conditions
    )
    return frozenset(one.variable.name for one in conditions if isinstance(one, syntax.AliasNode))


def _read(block: str) -> tuple[syntax.PatternNode, ...]:
    """The tree of a part of a group."""
    where = parse(f"SELECT*{{{block}}}").form.where
    return () if where is None else where.elements


def _block(bindings: Mapping[str, Term]) -> str:
    if not bindings:
        return ""
    return f"VALUES ({' '.join(f'?{name}' for name in bindings)}) {{ ({' '.join(bindings.values())}) }}"


# --- pages ----------------------------------------------------------------------------------------
# Windows over a SELECT: LIMIT and OFFSET by which a source that caps its results is read in pages.
#
# SPARQL 1.2 Query, section 15 (solution sequence modifiers): a page is only defined under an order, so every
# projected variable is a sort key. All pages of a result have the same form, since an engine may order two forms
# differently. The source decides when to page.

BY_TEXT: Final = ("STR(?{0})", "?{0}")
"""Sort keys of a variable, as format strings: its text, then its value, for engines that compare all values of a text.

By value alone, the order of terms of several types depends on the plan of some engines, and is no order in others.
"""

BY_TEXT_ONLY: Final = (
    *(f'COALESCE({name}(?{{0}}), "")' for name in ("STR", "DATATYPE", "LANG")),
    'COALESCE(IF(isBlank(?{0}), ?{0}, ""), "")',
)
"""Only texts and blank nodes: for engines that fail to compare some values, as most do."""


_KEY_TEXT: Final = 'COALESCE(IF(isIRI(?{0}), STR(?{0}), ""), "")'
# other functions with IRIs are those of an engine, which may return anything
_CASTS: Final = ("xsd:", "<http://www.w3.org/2001/xmlschema#")


def page(
    select: Select, limit: int, offset: int, *, wrap: bool = False, keys: Sequence[str] = BY_TEXT
) -> Select | None:
    """A window into the query's own result, which its own LIMIT and OFFSET bound.

    None: the query's own LIMIT ends before it. `wrap` puts the window around the ordered query, for engines that refuse
    ORDER BY with a large OFFSET. Terms that ORDER BY cannot tell apart may change places between two pages; SPARQL has
    no finer order. Values that are new in each evaluation, as those of UUID(), are no sort keys: they would make a new
    order for each page.

    >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }", slice=" LIMIT 15", limit=15)
    >>> str(page(select, 10, 10))
    'SELECT ?s WHERE { ?s ?p ?o } ORDER BY STR(?s) ?s LIMIT 5 OFFSET 10'
    >>> str(page(select, 10, 10, wrap=True))
    'SELECT ?s WHERE { { SELECT ?s WHERE { ?s ?p ?o } ORDER BY STR(?s) ?s } } LIMIT 5 OFFSET 10'
    >>> page(select, 10, 20) is None
    True
    """
    if limit < 1 or offset < 0:
        raise UsageError(f"there is no page of {limit} solutions at offset {offset}")
    _check_own(select)
    if select.limit is not None:
        limit = min(limit, select.limit - offset)
    if limit < 1:
        return None
    return _slice(_ordered(select, keys), limit, select.offset + offset, wrap=wrap)


def by_key(
    select: Select, key: str, limit: int, *, least: str | None = None, offset: int = 0
) -> Select:
    """The first solutions in the order of the texts of a key, starting at one of these texts.

    The text of an IRI is the IRI, and that of every other value, or none, is empty: these come first.

    >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }")
    >>> print(by_key(select, "s", 10, least="urn:a"))  # doctest: +NORMALIZE_WHITESPACE
    SELECT ?s WHERE { ?s ?p ?o FILTER(COALESCE(IF(isIRI(?s), STR(?s), ""), "") >= "urn:a") }
      ORDER BY COALESCE(IF(isIRI(?s), STR(?s), ""), "") LIMIT 10
    """
    if select.order or select.slice:
        clause = (select.order or select.slice).split()[0]
        raise UsageError(
            f"the query has {clause}, and pages by ?{key} have an order of their own",
            hint="remove one",
        )
    if key not in select.variables or key in volatile(select):
        listed = ", ".join(f"?{name}" for name in select.variables)
        raise UsageError(
            f"?{key} is no key of the solutions",
            hint=f"use one that is an IRI in each of them: {listed}",
        )
    part = from_key(select, key, least)
    window = f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
    return replace(
        part,
        order=f" ORDER BY {_KEY_TEXT.format(key)}",
        slice=window + _gap(part),
        limit=limit,
        offset=offset,
        parsed=None,
    )


def from_key(select: Select, key: str, least: str | None) -> Select:
    """The solutions whose key has this text, or a later one; None: all.

    The FILTER is within the group, where some engines evaluate less for it, unless another part of the query binds the
    variable, too.
    """
    if least is None:
        return select
    condition = f"FILTER({_KEY_TEXT.format(key)} >= {literal(least)}) }}"
    tree = select.tree
    elements = () if tree.form.where is None else tree.form.where.elements
    nested = select
    if (
        (select.aggregation or select.values.strip() or select.keys is not None)
        or any(isinstance(node, syntax.SelectForm | syntax.Unknown) for node in elements)
        or any(isinstance(node, syntax.AliasNode | syntax.Unknown) for node in _projected(tree))
    ):
        nested = select.nested()
    return replace(nested, group=f"{nested.group[:-1].rstrip(' ')} {condition}", parsed=None)


def _projected(tree: Query) -> tuple[Any, ...]:
    form = tree.form
    return (form.projection or ()) if isinstance(form, syntax.SelectForm) else ()


def paging_key(select: Select) -> str | None:
    """A variable by whose texts pages can follow each other: the first that is the subject of a triple; or None.

    A key has the same texts in each evaluation, so there is none where these may differ: where the query is random, or
    uses parts of other results (LIMIT, REDUCED, SAMPLE, GROUP_CONCAT), another endpoint, or a dialect. Variables that
    an expression computes are no keys. Groups (GROUP BY) have none, because Virtuoso 7 ignores LIMIT around them.

    >>> paging_key(Select("", "SELECT ?o ?s ", ("o", "s"), "WHERE ", "{ ?s ?p ?o }"))
    's'
    >>> paging_key(Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o FILTER(RAND() < 0.5) }")) is None
    True
    """
    tree = select.tree
    if select.aggregation or select.order or select.slice or select.keys is not None:
        return None
    nodes = list(walk(tree.form))
    if any(_may_differ(node, tree.text) for node in nodes):
        return None
    computed = {node.variable.name for node in nodes if isinstance(node, syntax.AliasNode)}
    subjects = {
        node.subject.name
        for node in nodes
        if isinstance(node, syntax.TripleNode) and isinstance(node.subject, syntax.VariableNode)
    }
    return next((name for name in select.variables if name in subjects - computed), None)


def _may_differ(node: Any, text: str) -> bool:
    """Whether solutions may differ between two evaluations over the same data because of this node."""
    match node:
        case syntax.Unknown() | syntax.ServicePattern() | syntax.SliceClause():
            return True
        case syntax.SelectForm(modifier=modifier):
            return modifier.upper() == "REDUCED"
        case syntax.AggregateNode(name=name):
            return name.upper() in ("SAMPLE", "GROUP_CONCAT")
        case syntax.CallNode(function=syntax.IriNode(written=name)):
            return not name.lower().startswith(_CASTS)
    return _is_volatile(node, text)


def beyond(select: Select, count: int, *, wrap: bool = False) -> Select:
    """The one solution after the first `count`, to test whether it exists; no order is added for this.

    >>> select = Select("", "SELECT ?s ", ("s",), "WHERE ", "{ ?s ?p ?o }", slice=" OFFSET 5", offset=5)
    >>> str(beyond(select, 10))
    'SELECT ?s WHERE { ?s ?p ?o } LIMIT 1 OFFSET 15'
    """
    _check_own(select)
    return _slice(select, 1, select.offset + count, wrap=wrap and bool(select.order))


def _ordered(select: Select, keys: Sequence[str]) -> Select:
    unordered = volatile(select)
    # some engines fail on a repeated key, which has no effect anyway
    given = {f"?{name}" for name in _plain_keys(select)}
    added = (key.format(name) for name in select.variables if name not in unordered for key in keys)
    ties = "".join(f" {key}" for key in added if key not in given)
    if not ties:
        return select
    return replace(select, order=f"{select.order or ' ORDER BY'}{ties}{_gap(select)}", parsed=None)


def _plain_keys(select: Select) -> set[str]:
    """The variables that are sort keys by themselves.

    >>> select = Select("", "SELECT * ", ("s",), "WHERE ", "{}", order=" ORDER BY ?a DESC(?b) (?c) STR(?d) (?e + 1)")
    >>> sorted(_plain_keys(select))
    ['a', 'b', 'c']
    """
    clauses = select.tree.form.clauses
    keys = (node.expression for node in walk(clauses) if isinstance(node, syntax.OrderCondition))
    return {key.name for key in keys if isinstance(key, syntax.VariableNode)}


def _slice(select: Select, limit: int, start: int, *, wrap: bool) -> Select:
    gap = _gap(select)
    whole = replace(select, slice="", limit=None, offset=0, parsed=None)
    if wrap:
        whole, gap = whole.nested(), ""
    return replace(whole, slice=f" LIMIT {limit} OFFSET {start}{gap}", limit=limit, offset=start)


def _gap(select: Select) -> str:
    return "" if select.values[:1].isspace() or not select.values else " "


def _check_own(select: Select) -> None:
    """Checks that adding or removing a clause does not turn an illegal query into a legal one."""
    tree = select.tree
    for clause in tree.form.clauses:
        if isinstance(clause, syntax.Unknown):
            raise tree.refusal(clause)


# --- volatile -------------------------------------------------------------------------------------
# Finds variables whose values differ in each evaluation of a query: NOW, RAND, UUID, STRUUID, BNODE.
#
# SPARQL 1.2 Query, section 17.4. Two requests for parts of one result cannot be compared by such variables, nor
# ordered. Queries are not changed here.

_FUNCTIONS: Final = frozenset(("NOW", "RAND", "UUID", "STRUUID", "BNODE"))
# Virtuoso's own
_NAMES: Final = frozenset(("bif:now", "bif:rnd", "bif:uuid", "bif:curdatetime"))
# in the text of a dialect
_MAY_CALL: Final = re.compile("|".join([*_FUNCTIONS, *_NAMES]), re.IGNORECASE)


def volatile(select: Select) -> frozenset[str]:
    """Returns the variables, at any depth, that are assigned an expression with one of these functions.

    A variable that is assigned an expression over such a variable is volatile, too. Aggregates are not among them:
    engines that evaluate them in the same order twice return the same value.

    >>> text = "{ ?s ?p ?o BIND(UUID() AS ?id) BIND(STR(?id) AS ?name) BIND(STR(?s) AS ?same) }"
    >>> sorted(volatile(Select("", "SELECT * ", ("s",), "WHERE ", text)))
    ['id', 'name']
    """
    tree = select.tree
    expressions: list[tuple[str, set[str]]] = []
    found: set[str] = set()
    for alias in walk(tree.form):
        if isinstance(alias, syntax.AliasNode):
            name, inside = alias.variable.name, list(walk(alias.expression))
            if any(_is_volatile(node, tree.text) for node in inside):
                found.add(name)
            used = {node.name for node in inside if isinstance(node, syntax.VariableNode)}
            expressions.append((name, used))
    while more := {name for name, used in expressions if name not in found and used & found}:
        found |= more
    return frozenset(found)


def _is_volatile(node: Any, text: str) -> bool:
    match node:
        case syntax.CallNode(function=str(keyword)):
            return keyword in _FUNCTIONS
        case syntax.CallNode(function=syntax.IriNode() as name):
            return name.written.lower() in _NAMES
        case syntax.Unknown(start, end):
            return _MAY_CALL.search(text, start, end) is not None
    return False


# --- written --------------------------------------------------------------------------------------
# `OriginalQuery`: the original text of a query that was rewritten to a SELECT.
#
# An endpoint that rejects the SELECT names positions in the SELECT. They are translated to positions in the original
# text.

# compiled when an endpoint rejects a query, which is rare
_PLACE: Final = (
    r"(?i)(?P<before>\b(?:line|at) )(?P<line>\d{1,9})(?P<between>, ?column |:)(?P<column>\d{1,9})"
)


class OriginalQuery(NamedTuple):
    """A CONSTRUCT query as its author wrote it."""

    # the query; its template is blank, because engines support fewer templates than this package
    text: str
    base: str | None = None  # the base IRI that its relative IRIs resolve against
    # IRI by prefix, of the prefixes that it uses but does not declare
    prefixes: Mapping[str, str] = {}
    where: tuple[int, int] | None = None  # the offsets of its WHERE group

    def translated(self, message: str, select: str) -> tuple[str, bool]:
        """Returns an endpoint's error with positions in this query, and whether all positions could be translated.

        Oxigraph writes a position as `1:20`, QLever as `line 1:20`, Jena, RDF4J, GraphDB and Blazegraph as `line 1,
        column 20`, and Virtuoso only the line, which has the same number in the SELECT.

        >>> text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }"
        >>> query = OriginalQuery(text, where=(29, 38))
        >>> query.translated("Encountered } at line 1, column 35.", "SELECT ?s ?p ?o WHERE { ?s ?p } LIMIT 9")
        ('Encountered } at line 1, column 35.', False)
        >>> query.translated("error at 1:31: expected [", "SELECT ?s ?p ?o WHERE { ?s ?p } LIMIT 9")
        ('error at 1:38: expected [', True)
        """
        known = True

        def translate(place: re.Match[str]) -> str:
            nonlocal known
            offset = _offset(select, int(place["line"]), int(place["column"]))
            there = None if offset is None else self._place(select, offset)
            if offset is None or there is None:
                known = False
                return place[0]
            line = self.text.count("\n", 0, there) + 1
            # some engines count columns from 0
            column = int(place["column"]) + _column(self.text, there) - _column(select, offset)
            return f"{place['before']}{line}{place['between']}{column}"

        return re.sub(_PLACE, translate, message), known

    def _place(self, select: str, offset: int) -> int | None:
        """The offset in this query of a character of the SELECT; None if only the SELECT has it."""
        if self.where is not None:
            start, end = self.where
            found = select.rfind(self.text[start:end])
            if 0 <= found <= offset <= found + end - start:
                return offset - found + start
        if self.text.endswith(select[offset:]):
            return len(self.text) - len(select) + offset
        return offset if self.text.startswith(select[:offset]) else None


def _offset(text: str, line: int, column: int) -> int | None:
    """The offset of a position; the column may be one more than the line has."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    start = sum(len(before) + 1 for before in lines[: line - 1])
    return start + min(max(column, 1) - 1, len(lines[line - 1]))


def _column(text: str, offset: int) -> int:
    return offset - text.rfind("\n", 0, offset)
