"""`parse_continuous`: the text of a continuous query taken apart into windows and SPARQL.

RSP-QL, C-SPARQL and CQELS by the shapes of their clauses, not by a choice of dialect. The text is spliced, as in
`rewrite.py`: clauses of streams become white space, patterns of windows become GRAPH patterns, and all other text keeps
its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from construct_messages.query.continuous.clauses import (
    OPERATORS,
    GraphClause,
    RegisterClause,
    WindowClause,
    read_from,
    read_registration,
)
from construct_messages.query.continuous.cursor import Cursor, name_of
from construct_messages.query.continuous.patterns import (
    Splice,
    check_number,
    read_form,
    read_needs,
    read_patterns,
    unused_name,
)
from construct_messages.query.continuous.values import (
    TIMESTAMP,
    ContinuousQuery,
    Needs,
    Operator,
    Window,
    is_relative,
    written,
)
from construct_messages.query.prologue import Prologue, check_base, insert
from construct_messages.query.syntax.nodes import ConstructForm, SelectForm
from construct_messages.query.syntax.reader import read
from construct_messages.query.tokens import QueryText, Token, check_braces, error, outer


def parse_continuous(text: str | QueryText, *, base: str | None = None) -> ContinuousQuery:
    """Reads a continuous query.

    A plain CONSTRUCT or SELECT is a continuous query without windows.

    Args:
        text: RSP-QL, C-SPARQL or CQELS, or SPARQL.
        base: an absolute IRI; the text's own BASE is resolved against it and overrides it.

    Raises:
        QueryError: another form of query, a clause of streams that none of the three languages has, or an undeclared
            window, with its position.
        UsageError: a malformed base.

    >>> query = parse_continuous('''REGISTER RSTREAM <urn:out> AS CONSTRUCT { ?s <urn:is> ?o }
    ... FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT15S STEP PT5S]
    ... WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }''')
    >>> query.output, query.operator, query.windows[0].range
    ('urn:out', <Operator.RSTREAM: 'RSTREAM'>, 15000000)
    >>> query.query.splitlines()[2]
    'WHERE { GRAPH  <urn:w> { ?s <urn:p> ?o } }'
    """
    base, query = check_base(base), QueryText.of(text)
    return read(lambda: _parse(query, base), query.text)


def _parse(query: QueryText, base: str | None) -> ContinuousQuery:
    source, tokens = query.text, query.tokens
    head = _head(query)
    check_braces(source, tokens)
    prologue = Prologue.read(source, tokens[:head], base=base, prefixes={})
    cursor = Cursor(source, tokens, prologue)
    registration, splices = _registration(cursor, head)
    clauses = _clauses(cursor)
    declared = {clause.name: clause.window for clause in clauses if clause.window is not None}
    form = read_form(source, _plain(tokens, head, clauses), prologue, declared)
    patterns = read_patterns(source, form, prologue, declared)
    default = tuple(clause.name for clause in clauses if clause.is_default(patterns.named))
    if default:
        assert isinstance(form, SelectForm | ConstructForm)
        projection = form.projection if isinstance(form, SelectForm) else None
        seen = read_needs(source, prologue, form.where, projection, form.clauses) | Needs.UNION
        for name in default:
            patterns.needs[name] |= seen
    if patterns.windows and _names_timestamp(query, prologue):
        for name in patterns.windows:
            patterns.needs[name] |= Needs.MEMBERS | Needs.CONTEXT
    graphs: dict[bool, list[str]] = {False: [], True: []}
    if patterns.windows:
        for graph in (
            clause.content for clause in clauses if isinstance(clause.content, GraphClause)
        ):
            known = name_of(source, graph.name.written, graph.name.start, prologue)
            graphs[graph.named].append(known)
        splices += patterns.splices
        splices += (
            _blank(source, tokens[clause.start].start, tokens[clause.end - 1].end)
            for clause in clauses
        )
    if base is not None and any(
        token.kind == "iri" and is_relative(token.text[1:-1]) for token in tokens
    ):
        place, declaration = insert(tokens[:head], base, {})
        splices.append(Splice(place, place, declaration))
    of_dialect = Operator.ISTREAM if patterns.streams or not patterns.windows else Operator.RSTREAM
    reports = (
        clause.content.specification.report
        for clause in clauses
        if isinstance(clause.content, WindowClause)
    )
    return ContinuousQuery(
        output=registration.output,
        operator=registration.operator or of_dialect,
        windows=tuple(patterns.windows.values()),
        query=_spliced(source, splices),
        needs=patterns.needs,
        default=default,
        default_graphs=tuple(graphs[False]),
        named_graphs=tuple(graphs[True]),
        every=registration.every,
        report=next(filter(None, reports), None),
    )


class _Clause(NamedTuple):
    """A FROM clause: the index of its FROM, the index after its end, the name of its window, if any, and its
    contents."""

    start: int
    end: int
    name: str
    content: GraphClause | WindowClause

    @property
    def window(self) -> Window | None:
        """The window that it declares."""
        if isinstance(self.content, GraphClause):
            return None
        return self.content.specification.window(self.name, self.content.stream)

    def is_default(self, named: Collection[str]) -> bool:
        """Whether it declares a window of the default graph; `named` are the windows that patterns name."""
        if isinstance(self.content, GraphClause):
            return False
        return self.content.merged or (self.content.implicit and self.name not in named)


def _head(query: QueryText) -> int:
    """The index of CONSTRUCT or SELECT."""
    tokens = query.tokens
    for index in outer(tokens, 0, len(tokens)):
        keyword = tokens[index].keyword
        if keyword in ("CONSTRUCT", "SELECT"):
            return index
        if keyword == "RETRIEVE":
            message = "RETRIEVE is not supported: streams are not looked for in a catalogue"
            hint = "name the stream: FROM NAMED WINDOW <window> ON <stream> [RANGE PT15S STEP PT5S]"
            raise error(query.text, tokens[index].start, message, hint)
        if keyword in ("ASK", "DESCRIBE"):
            message = f"expected CONSTRUCT or SELECT, found {tokens[index].text}"
            raise error(
                query.text,
                tokens[index].start,
                message,
                "write it as SELECT: each row becomes a message",
            )
    raise error(query.text, len(query.text), "there is no CONSTRUCT and no SELECT")


def _registration(cursor: Cursor, head: int) -> tuple[RegisterClause, list[Splice]]:
    """The contents of REGISTER, the operator after the form of the query, and the splices that remove both."""
    text, tokens = cursor.text, cursor.tokens
    registration, splices = RegisterClause(), []
    for index in outer(tokens, 0, head):
        if tokens[index].keyword == "REGISTER":
            cursor.index = index + 1
            registration = read_registration(cursor)
            splices.append(_blank(text, tokens[index].start, tokens[cursor.index - 1].end))
    if head + 1 < len(tokens) and tokens[head + 1].keyword in OPERATORS:
        written = tokens[head + 1]
        registration = replace(registration, operator=Operator(written.keyword))
        splices.append(_blank(text, written.start, written.end))
    return registration, splices


def _clauses(cursor: Cursor) -> list[_Clause]:
    """The FROM clauses anywhere outside of groups; Janus writes them before REGISTER."""
    tokens = cursor.tokens
    found: list[_Clause] = []
    windows: set[str] = set()
    for index in outer(tokens, 0, len(tokens)):
        if tokens[index].keyword != "FROM" or (found and index < found[-1].end):
            continue
        cursor.index = index + 1
        content = read_from(cursor)
        name = ""
        if isinstance(content, WindowClause):
            name = content.name or unused_name(windows)
            if name in windows:
                message = f"the window {written(name)} is declared twice"
                raise error(
                    cursor.text,
                    tokens[index].start,
                    message,
                    "use a different name for each window",
                )
            check_number(cursor.text, tokens[index].start, windows)
            windows.add(name)
        found.append(_Clause(index, cursor.index, name, content))
    return found


def _names_timestamp(query: QueryText, prologue: Prologue) -> bool:
    """Whether the query calls C-SPARQL's function `timestamp`."""
    names = (token for token in query.tokens if token.kind in ("iri", "pname"))
    return TIMESTAMP.removesuffix("timestamp") in query.text and any(
        name_of(query.text, name.text, name.start, prologue) == TIMESTAMP for name in names
    )


def _plain(tokens: Sequence[Token], head: int, clauses: Sequence[_Clause]) -> list[Token]:
    """The tokens from the form on without those of streams: an operator after the form, and FROM clauses."""
    operator = head + 1 < len(tokens) and tokens[head + 1].keyword in OPERATORS
    left_out = {place for clause in clauses for place in range(clause.start, clause.end)}
    left_out |= {head + 1} if operator else set()
    return [tokens[place] for place in range(head, len(tokens)) if place not in left_out]


def _blank(text: str, start: int, end: int) -> Splice:
    return Splice(start, end, "".join(char if char in "\r\n" else " " for char in text[start:end]))


def _spliced(text: str, splices: Sequence[Splice]) -> str:
    pieces, done = [], 0
    for splice in sorted(splices):
        pieces += [text[done : splice.start], splice.text]
        done = splice.end
    return "".join((*pieces, text[done:]))
