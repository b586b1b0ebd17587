"""`parse_continuous`: the text of a continuous query taken apart into windows and SPARQL.

RSP-QL, C-SPARQL and CQELS by the shapes of their clauses, not by a choice of dialect. The text is spliced, as
`rewrite.py` does: clauses of streams become white space, patterns of windows become GRAPH patterns, and everything else
is the user's text, at its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from construct_messages.query.continuous.clauses import OPERATORS, Dataset, Registration, read_from, read_registration
from construct_messages.query.continuous.cursor import Cursor, is_relative
from construct_messages.query.continuous.patterns import Splice, read_needs, read_patterns, unused_name
from construct_messages.query.continuous.values import ContinuousQuery, Needs, Operator, Window
from construct_messages.query.prologue import Prologue, given_base, insert
from construct_messages.query.tokens import QueryText, Token, check_braces, closing, error, outer


def parse_continuous(text: str | QueryText, *, base: str | None = None) -> ContinuousQuery:
    """Reads a continuous query.

    A plain CONSTRUCT or SELECT is one without windows.

    Args:
        text: RSP-QL, C-SPARQL or CQELS, or SPARQL.
        base: an absolute IRI; the text's own BASE is resolved against it and overrides it.

    Raises:
        QueryError: another form of query, a clause of streams that is none of the three's, or a window that is not
            declared, with its place.
        UsageError: a malformed base.

    >>> query = parse_continuous('''REGISTER RSTREAM <urn:out> AS CONSTRUCT { ?s <urn:is> ?o }
    ... FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT15S STEP PT5S]
    ... WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }''')
    >>> query.output, query.operator, query.windows[0].range
    ('urn:out', <Operator.RSTREAM: 'RSTREAM'>, 15000000)
    >>> query.query.splitlines()[2]
    'WHERE { GRAPH  <urn:w> { ?s <urn:p> ?o } }'
    """
    read = QueryText.of(text)
    base = given_base(base)
    source, tokens = read.text, read.tokens
    head = _head(read)
    check_braces(source, tokens)
    prologue = Prologue.read(source, tokens[:head], base=base, prefixes={})
    splices: list[Splice] = []
    registration = Registration()
    places = list(outer(tokens, 0, len(tokens)))
    cursor = Cursor(source, tokens, 0, prologue)
    for index in places:
        if index < head and tokens[index].keyword == "REGISTER":
            cursor.index = index + 1
            registration = read_registration(cursor)
            splices.append(_blank(source, tokens[index].start, tokens[cursor.index - 1].end))
    operator = registration.operator
    if head + 1 < len(tokens) and tokens[head + 1].keyword in OPERATORS:
        written = tokens[head + 1]
        operator = Operator(written.keyword)
        splices.append(_blank(source, written.start, written.end))
    clauses: list[_Clause] = []
    windows: dict[str, Window] = {}
    for index in places:
        if tokens[index].keyword != "FROM" or (clauses and index < clauses[-1].end):
            continue
        cursor.index = index + 1
        clause = read_from(cursor)
        name = clause.name or unused_name(windows)
        clauses.append(_Clause(index, cursor.index, name, clause))
        if clause.stream is not None and clause.specification is not None:
            if name in windows:
                message = f"the window <{name}> is declared twice"
                raise error(source, tokens[index].start, message, "give the windows different names")
            windows[name] = clause.specification.window(name, clause.stream)
    where = max((_behind_template(tokens, head), *(clause.end for clause in clauses)))
    patterns = read_patterns(source, tokens, where, prologue, windows)
    default: tuple[str, ...] = ()
    static: list[_Clause] = []
    if patterns.windows:
        splices += patterns.splices
        splices += (_blank(source, tokens[clause.start].start, tokens[clause.end - 1].end) for clause in clauses)
        default = tuple(
            clause.name
            for clause in clauses
            if clause.says.stream is not None
            and (clause.says.merged or (clause.says.implicit and clause.name not in patterns.named))
        )
        static = [clause for clause in clauses if clause.says.stream is None]
    if default:
        seen = read_needs(source, tokens, where, len(tokens) - 1, prologue) | Needs.UNION
        for name in default:
            patterns.needs[name] |= seen
    if base is not None and any(token.kind == "iri" and is_relative(token.text[1:-1]) for token in tokens):
        place, declaration = insert(tokens[:head], base, {})
        splices.append(Splice(place, place, declaration))
    if operator is None:
        operator = Operator.ISTREAM if patterns.streams or not patterns.windows else Operator.RSTREAM
    specifications = [clause.says.specification for clause in clauses if clause.says.specification is not None]
    return ContinuousQuery(
        output=registration.output,
        operator=operator,
        windows=tuple(patterns.windows.values()),
        query=_spliced(source, splices),
        needs=patterns.needs,
        default=default,
        default_graphs=tuple(clause.name for clause in static if clause.says.merged),
        named_graphs=tuple(clause.name for clause in static if not clause.says.merged),
        every=registration.every,
        report=next((found.report for found in specifications if found.report is not None), None),
    )


class _Clause(NamedTuple):
    """A FROM clause: the index of its FROM, that behind its end, its name and what it says."""

    start: int
    end: int
    name: str
    says: Dataset


def _head(read: QueryText) -> int:
    """The index of CONSTRUCT or SELECT."""
    tokens = read.tokens
    for index in outer(tokens, 0, len(tokens)):
        keyword = tokens[index].keyword
        if keyword in ("CONSTRUCT", "SELECT"):
            return index
        if keyword in ("ASK", "DESCRIBE"):
            message = f"expected CONSTRUCT or SELECT, found {tokens[index].text}"
            raise error(read.text, tokens[index].start, message, "write it as SELECT: each row becomes a message")
    raise error(read.text, len(read.text), "there is no CONSTRUCT and no SELECT")


def _behind_template(tokens: Sequence[Token], head: int) -> int:
    """The index behind CONSTRUCT and its template, or behind SELECT."""
    index = head + 1
    if index < len(tokens) and tokens[index].keyword in OPERATORS:
        index += 1
    if tokens[head].keyword == "CONSTRUCT" and index < len(tokens) and tokens[index].is_mark("{"):
        return closing(tokens, index) + 1
    return index


def _blank(text: str, start: int, end: int) -> Splice:
    return Splice(start, end, "".join(char if char in "\r\n" else " " for char in text[start:end]))


def _spliced(text: str, splices: Sequence[Splice]) -> str:
    pieces, done = [], 0
    for splice in sorted(splices):
        pieces += [text[done : splice.start], splice.text]
        done = splice.end
    return "".join((*pieces, text[done:]))
