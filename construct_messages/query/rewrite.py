"""`ConstructQuery`: a CONSTRUCT query as the SELECT that gives its solutions, and the template that makes messages.

SPARQL 1.2 Query, section 16.2 (CONSTRUCT) and section 19.8, [10] ConstructQuery. The text is spliced, never
regenerated: only the head changes, so dialects that no parser here knows reach the engine as they were written. The
template's own grammar is in `triples.py`; what else can be done to the SELECT is in `select.py` and `pages.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from construct_messages.arguments import checked
from construct_messages.errors import NotConstruct, Position, QueryError, UsageError
from construct_messages.query.prologue import (
    Prologue,
    given_base,
    given_prefixes,
    insert,
    usable_prefixes,
)
from construct_messages.query.scope import group_keys, in_scope, values_variables
from construct_messages.query.select import Select, unused
from construct_messages.query.tokens import (
    QueryText,
    Token,
    check_braces,
    closing,
    decoded,
    error,
    outer,
    tokenize,
)
from construct_messages.query.triples import read_triples
from construct_messages.query.written import Written
from construct_messages.template import Nested, Pattern, Slot, Template, Variable

_QUERIES: Final = ("CONSTRUCT", "SELECT", "ASK", "DESCRIBE")
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
_CLAUSES: Final = {"ORDER": 0, "LIMIT": 1, "OFFSET": 1, "VALUES": 2}
_SLICE: Final = ("LIMIT", "OFFSET")
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
    tokens = query.tokens
    for index in outer(tokens, 0, len(tokens)):
        keyword = tokens[index].keyword
        if keyword in _QUERIES:
            return index, keyword
        if keyword in _UPDATES:
            return index, "UPDATE"
    raise error(
        query.text, len(query.text), "there is no CONSTRUCT, nor any other form of query or update"
    )


@dataclass(frozen=True)
class ConstructQuery:
    """A parsed CONSTRUCT query: a SELECT and a template.

    Args:
        rewritten: the SELECT with the solutions of the query.
        template: turns each solution into a message; its variables are those of `rewritten`.
        prefixes: IRI by prefix (without colon): those that the text declares, those of the caller, and those of the
            server that the text uses.
        base: the base IRI at the template.

    >>> from construct_messages.labels import Labels
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

    @property
    def select(self) -> str:
        """The text of `rewritten`."""
        return str(self.rewritten)

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
    ) -> ConstructQuery:
        """Parses the template and rewrite the head. The rest of the text is not changed, except for a byte order mark.

        The variables of the template are projected in the order of their first appearance. With GROUP BY, only its keys
        can be projected; other variables of the template are unbound, so triples with them are left out.

        Args:
            query: its text.
            base: an absolute IRI; BASE in the text is resolved against it and overrides it.
            prefixes: IRI by prefix; those that the text uses but does not declare are declared in the SELECT.
            predefined: prefixes that the engine knows without declaration; only used for the template.
            group_by: additional variables (`?v`, `$v` or `v`) to project.

        Raises:
            NotConstruct: another form of query, or an update.
            QueryError: an invalid head or template, with its position; a `group_by` variable that no solution binds.
            UsageError: a malformed base, prefix or variable name.
        """
        read = QueryText.of(query)
        text, tokens = read.text, read.tokens
        head, form = _form(read)
        if form != "CONSTRUCT":
            raise NotConstruct(form, position=Position.at(text, tokens[head].start))
        check_braces(text, tokens)
        own, server = given_prefixes(prefixes), usable_prefixes(predefined)
        base = given_base(base)
        prologue = Prologue.read(text, tokens[:head], base=base, prefixes=server | own)
        parts = _Parts.of(text, tokens, head)
        mentioned, patterns = read_triples(text, tokens, parts.template, prologue)

        keys = group_keys(tokens[parts.modifiers : parts.order], tokens[parts.order : parts.slice])
        added = values_variables(tokens[parts.values :])
        groups = (parts.group, *parts.named) if group_by else ()
        bound = {*added}.union(*(in_scope(tokens, place) for place in groups))
        everywhere = {
            decoded(text, token)[1:]: None for token in tokens if token.kind == "variable"
        }
        variables = [name for name in mentioned if keys is None or name in keys or name in added]
        for name in (_variable_name(written) for written in group_by):
            if name not in everywhere:
                raise QueryError(
                    f"the query has no variable ?{name} to group by", hint=_choice(everywhere)
                )
            if keys is not None and name not in keys and name not in added:
                message = (
                    f"?{name} is no key of the query's own GROUP BY, so it has no single value"
                )
                raise QueryError(message, hint=_choice({*keys, *added}))
            if keys is None and name not in bound:
                raise QueryError(
                    f"no solution of the query binds ?{name}, so it groups nothing",
                    hint=_choice(bound),
                )
            if name not in variables:
                variables.append(name)
        # behind GROUP BY, only a sub-select lets what VALUES binds be projected
        apart = None if keys is None or set(variables) <= set(keys) else keys
        projection = " ".join(f"?{name}" for name in variables)
        if not variables:
            variables = [unused("solution", everywhere)]
            projection = f"(1 AS ?{variables[0]})"

        used = {decoded(text, token).partition(":")[0] for token in tokens if token.kind == "pname"}
        undeclared = {prefix: own[prefix] for prefix in own if prefix in used - prologue.declared}
        place, inserted = insert(tokens[:head], base, undeclared)
        beginning = text[:place] + inserted + text[place : tokens[head].start]
        return cls(
            rewritten=replace(
                parts.select(text, tokens, beginning, projection, tuple(variables)),
                keys=apart,
                written=Written.of(text, parts.inside_template(tokens), base, own),
            ),
            template=Template(tuple(variables), tuple(_renumbered(patterns, mentioned, variables))),
            prefixes={
                prefix: namespace
                for prefix, namespace in prologue.prefixes.items()
                if prefix in used or prefix in own or prefix in prologue.declared
            },
            base=prologue.base,
        )


@dataclass(frozen=True)
class _Parts:
    """The parts of a CONSTRUCT query, as indexes of their first tokens; an absent part is empty.

    Args:
        head: CONSTRUCT.
        behind: what stands behind the replaced head: behind the template, or in the short form behind CONSTRUCT.
        template: the `{` of the template.
        named: the `{` of each named sub-query, which is Blazegraph's.
        group: the `{` of the WHERE group; in the short form it is the template.
        modifiers: behind the `}` of the group.
        order: ORDER BY.
        slice: LIMIT or OFFSET, whichever is first.
        values: VALUES, or whatever else follows the slice.
    """

    head: int
    behind: int
    template: int
    named: tuple[int, ...]
    group: int
    modifiers: int
    order: int
    slice: int
    values: int

    @classmethod
    def of(cls, text: str, tokens: Sequence[Token], head: int) -> _Parts:
        """Finds them; what is unknown between them belongs to the part before it."""
        following = tokens[head + 1] if head + 1 < len(tokens) else None
        if following and following.is_mark("{"):
            template = head + 1
            behind = closing(tokens, template) + 1
            named, group = _where(text, tokens, behind)
        elif following and following.keyword in ("FROM", "WHERE"):
            behind = head + 1
            named, group = _where(text, tokens, behind)
            template = group
            if tokens[group - 1].keyword != "WHERE":
                message = "expected WHERE before the pattern of the short form"
                raise error(
                    text, tokens[group].start, message, "write CONSTRUCT FROM <...> WHERE { ... }"
                )
        else:
            found = f", found {following.text}" if following else ""
            place = following.start if following else len(text)
            raise error(text, place, f"expected {{ or WHERE behind CONSTRUCT{found}")
        if tokens[group + 1].is_mark("."):  # it would be legal behind a block of initial bindings
            raise error(text, tokens[group + 1].start, "expected a pattern, found .")
        modifiers = closing(tokens, group) + 1
        return cls(head, behind, template, named, group, modifiers, *_clauses(tokens, modifiers))

    def inside_template(self, tokens: Sequence[Token]) -> tuple[int, int] | None:
        """The offsets between the braces of the template; None: it is the WHERE group."""
        if self.template == self.group:
            return None
        return tokens[self.template].end, tokens[self.behind - 1].start

    def select(
        self,
        text: str,
        tokens: Sequence[Token],
        prologue: str,
        projection: str,
        variables: tuple[str, ...],
    ) -> Select:
        """The pieces; each begins right behind the last token of the one before, with its white space and comments."""
        ends = [
            tokens[index - 1].end
            for index in (self.behind, self.modifiers, self.order, self.slice, self.values)
        ]
        behind, modifiers, order, slice, values = ends
        breaks = "".join(_LINE_BREAK.findall(text, tokens[self.head].start, behind))
        space = _SPACE.match(text, behind)
        start = space.end() if space else behind
        group = tokens[self.group].start
        limit, offset = _read_slice(tokens[self.slice : self.values])
        return Select(
            prologue=prologue,
            head=f"SELECT {projection}{breaks + text[behind:start] or ' '}",
            variables=variables,
            dataset=text[start:group],
            group=text[group:modifiers],
            aggregation=text[modifiers:order],
            order=text[order:slice],
            slice=text[slice:values],
            limit=limit,
            offset=offset,
            values=text[values:],
        )


def _where(text: str, tokens: Sequence[Token], index: int) -> tuple[tuple[int, ...], int]:
    """The `{` of each named sub-query and that of the WHERE group.

    [14] DatasetClause* and [18] `WHERE`? GroupGraphPattern, and between them Blazegraph's `WITH { … } AS %name`: all
    that a template or CONSTRUCT may be followed by, since what is beside it would become part of a projection.
    """
    named: list[int] = []

    def expect(expected: str, ok: Callable[[Token], bool]) -> None:
        nonlocal index
        if index == len(tokens):
            raise error(text, len(text), "there is no WHERE group", "add WHERE { ... }")
        if not ok(tokens[index]):
            raise error(
                text, tokens[index].start, f"expected {expected}, found {tokens[index].text}"
            )
        index += 1

    def at(keyword: str) -> bool:
        return index < len(tokens) and tokens[index].keyword == keyword

    while at("FROM"):
        index += 2 if index + 1 < len(tokens) and tokens[index + 1].keyword == "NAMED" else 1
        expect("the IRI of a graph", lambda token: token.kind in ("iri", "pname"))
    while at("WITH"):
        index += 1
        expect("{ behind WITH", lambda token: token.is_mark("{"))
        named.append(index - 1)
        index = closing(tokens, index - 1) + 1
        expect("AS", lambda token: token.keyword == "AS")
        expect("the name of a sub-query, as in %name", lambda token: token.text == "%")
        expect("the name of a sub-query, as in %name", lambda token: token.kind == "word")
    if at("WHERE"):
        index += 1
        expect("{ behind WHERE", lambda token: token.is_mark("{"))
    else:
        expect("FROM, WHERE or {", lambda token: token.is_mark("{"))
    return tuple(named), index - 1


def _clauses(tokens: Sequence[Token], start: int) -> tuple[int, int, int]:
    """Returns the indexes of ORDER BY, of LIMIT or OFFSET, and of what follows."""
    begins = [len(tokens)] * 3
    reached = 0
    for index in outer(tokens, start, len(tokens)):
        clause = _CLAUSES.get(tokens[index].keyword, -1)
        if clause >= reached and begins[clause] == len(tokens):
            begins[clause] = index
            reached = clause
    slice = end = min(begins[1:])
    while end < begins[2] and tokens[end].keyword in _SLICE:
        following = (i for i in outer(tokens, end + 1, begins[2]) if tokens[i].keyword in _SLICE)
        end = end + 2 if _is_count(tokens[end + 1 : end + 2]) else next(following, begins[2])
    return min(begins), slice, end


def _is_count(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].kind == "number" and tokens[0].text.isdigit()


def _read_slice(tokens: Sequence[Token]) -> tuple[int | None, int]:
    counts = {
        # int() refuses thousands of digits; the first ones are more than any result has
        token.keyword: int(tokens[index + 1].text.lstrip("0")[:19] or "0")
        for index, token in enumerate(tokens)
        if token.keyword in _SLICE and _is_count(tokens[index + 1 : index + 2])
    }
    return counts.get("LIMIT"), counts.get("OFFSET", 0)


def _renumbered(
    patterns: Sequence[Pattern], names: Sequence[str], variables: Sequence[str]
) -> Iterator[Pattern]:
    """The patterns that need no other than these variables, by their indexes."""
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


def _variable_name(written: str) -> str:
    name = written[1:] if written[:1] in ("?", "$") else written
    if tokenize(f"?{name}") != [Token("variable", f"?{name}", 0)] or "\\" in name:
        raise UsageError(f"{written!r} is not a variable", hint="write it as in ?company")
    return name


def _choice(names: Collection[str]) -> str:
    listed = ", ".join(f"?{name}" for name in sorted(names))
    return f"use one of {listed}" if names else "there is none to use"
