"""`Select`: the rewritten query as its verbatim pieces, so that a change replaces one piece and keeps the rest.

The pieces are those of SPARQL 1.2's SelectQuery (section 19.8, [7]) in their order; concatenated they are the text.
`rewrite.py` cuts the text into pieces; `pages.py` and the methods here replace some. Only variables are read from the
text here. The methods can be applied to each other's results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from construct_messages.query.scope import aggregates, assigned, reached
from construct_messages.query.syntax.nodes import (
    AliasNode,
    ClauseNode,
    GroupClause,
    GroupPattern,
    OrderClause,
    PatternNode,
    SelectForm,
    VariableNode,
    walk,
)
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.query.written import WrittenQuery
from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.terms import Term, has_blank

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
    written: WrittenQuery | None = field(default=None, compare=False, repr=False)
    # its tree, if it is known; see `tree`
    parsed: Query | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.keys is not None:
            return str(self._groups_first(self.keys))
        return "".join(self._pieces)

    @property
    def _pieces(self) -> tuple[str, ...]:
        return (self.prologue, self.head, self.dataset, self.group, self.behind)

    @property
    def behind(self) -> str:
        """Everything after the WHERE group."""
        return "".join((self.aggregation, self.order, self.slice, self.values))

    @property
    def tree(self) -> Query:
        """The SELECT as a tree, whose offsets are in the query that it was made from."""
        return self.parsed or parse("".join(self._pieces))

    @property
    def _form(self) -> SelectForm:
        form = self.tree.form
        assert isinstance(form, SelectForm)
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
        clauses = parse(f"SELECT*{{}}{order}").form.clauses
        form = nested._form._replace(clauses=clauses)
        return replace(nested, order=order, parsed=replace(nested.tree, form=form))

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
            parsed=replace(self.tree, form=self._outer),
        )

    @property
    def _outer(self) -> SelectForm:
        """A form around this one, without clauses."""
        form = self._form
        start, end = form.start, form.end
        inner = GroupPattern(start, end, (form._replace(dataset=()),))
        variables = tuple(VariableNode(start, end, name) for name in self.variables)
        where = GroupPattern(start, end, (inner,))
        return SelectForm(start, end, "", variables, form.dataset, where, ())

    def _groups_first(self, keys: Sequence[str]) -> Select:
        """The groups as a sub-select, with the aggregates of ORDER BY; VALUES joins with them (section 18.2.4.3)."""
        form, text = self._form, self.tree.text
        taken = _variables(form)
        start = done = form.where.end + len(self.aggregation)
        order, projected = "", [f"?{key}" for key in keys]
        for aggregate in aggregates(*(one for one in form.clauses if isinstance(one, OrderClause))):
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
    return {node.name for node in walk(*nodes) if isinstance(node, VariableNode)}


def _group_aliases(clauses: Sequence[ClauseNode]) -> frozenset[str]:
    """The variables that GROUP BY itself assigns."""
    conditions = (
        one for each in clauses if isinstance(each, GroupClause) for one in each.conditions
    )
    return frozenset(one.variable.name for one in conditions if isinstance(one, AliasNode))


def _read(block: str) -> tuple[PatternNode, ...]:
    """The tree of a part of a group."""
    where = parse(f"SELECT*{{{block}}}").form.where
    return () if where is None else where.elements


def _block(bindings: Mapping[str, Term]) -> str:
    if not bindings:
        return ""
    return f"VALUES ({' '.join(f'?{name}' for name in bindings)}) {{ ({' '.join(bindings.values())}) }}"
