"""The clauses that a continuous query has before its WHERE group: REGISTER, and FROM with its windows.

RSP-QL (`FROM NAMED WINDOW <w> ON <s> [RANGE PT15S STEP PT5S]`), C-SPARQL (`FROM STREAM <s> [RANGE 15s STEP 5s]`) and
CQELS (`[RANGE 15s SLIDE 5s]`, `[NOW]`, `[ALL]`, `[TRIPLES 10]`). docs/reference/continuous/syntax.md describes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from construct_messages.query.continuous.values import (
    WINDOW_NAMES,
    CountWindow,
    Operator,
    Report,
    TimeWindow,
    Window,
    absolute,
    is_relative,
    read_duration,
)
from construct_messages.query.prologue import Prologue
from construct_messages.query.syntax.nodes import IriNode
from construct_messages.query.syntax.parser import QueryParser
from construct_messages.query.tokens import Token, error
from construct_messages.rdf.errors import TermError
from construct_messages.rdf.terms import iri, resolve

# --- cursor ---------------------------------------------------------------------------------------
# Reads the clauses and patterns of continuous queries from tokens: the parser, with the names of windows and streams.
#
# No grammar here.


class Cursor(QueryParser):
    """Reads forward through tokens."""

    def __init__(self, text: str, tokens: Sequence[Token], prologue: Prologue) -> None:
        super().__init__(text, tokens)
        self.prologue = prologue

    def resolved(self, what: str, hint: str | None = None) -> str:
        """Takes a name: an IRI without brackets; a relative one stays as written where there is no base."""
        node = self.iri(what, hint)
        return name_of(self.text, node.written, node.start, self.prologue)

    def bare_name(self, what: str, hint: str, *reserved: str) -> str:
        """Takes a name as `resolved` does, or a bare name, as in C-SPARQL and CQELS 2, which is a relative IRI.

        `reserved` are keywords that are not names here.
        """
        token = self.token
        if token.kind != "word" or token.keyword in reserved:
            return self.resolved(what, hint)
        end = self.next().end
        while self.token.start == end and (
            self.token.kind == "word" or self.token.text in ("-", ".")
        ):
            end = self.next().end
        name, base = self.text[token.start : end], self.prologue.base
        return name if base is None else resolve(name, base)[1:-1]

    def stream(self, hint: str, *, variable: bool = False) -> str:
        """Takes the name of a stream; with `variable`, also a variable in its place, with its mark."""
        if variable and self.token.kind == "variable":
            return f"?{self.next().text[1:]}"
        return self.bare_name("the IRI of a stream", hint, "ON", "STREAM", "WINDOW", "WHERE", "LOG")


def name_of(text: str, name: str, offset: int, prologue: Prologue) -> str:
    """The IRI of a name as written, without brackets.

    Names without an IRI are returned as written: relative IRIs without a base, and names with an undeclared empty
    prefix, which many published queries use for windows and streams.

    >>> [name_of(name, name, 0, Prologue(None, {}, {}, frozenset())) for name in ("<in>", ":in")]
    ['in', ':in']
    """
    if name[0] == "<" and prologue.base is None and is_relative(name[1:-1]):
        return name[1:-1]
    if name[0] == ":" and "" not in prologue.prefixes and "" not in prologue.unusable:
        return name
    return prologue.iri(text, name, offset)[1:-1]


# --- clauses --------------------------------------------------------------------------------------

OPERATORS: Final = tuple(operator.value for operator in Operator)
_COUNTS: Final = ("TRIPLES", "TRIPLE", "ROWS", "ELEMENTS", "MESSAGES")
_STEP: Final = ("STEP", "SLIDE")
_REPORTS: Final = {report.value: report for report in Report} | {
    report.name: report for report in Report
}
_REGISTER_HINT: Final = "write REGISTER RSTREAM <output> AS CONSTRUCT ..."
_BRACKET_HINT: Final = "write it as in [RANGE PT15S STEP PT5S]"
_WINDOW_HINT: Final = "write FROM NAMED WINDOW <window> ON <stream> [RANGE PT15S STEP PT5S]"
_MOST: Final = 18  # most digits in a number of messages


@dataclass(frozen=True)
class RegisterClause:
    """The contents of REGISTER; all are None without such a clause."""

    output: str | None = None  # the name of the output
    operator: Operator | None = None  # ISTREAM, DSTREAM or RSTREAM, if the text has one
    every: int | None = None  # the microseconds of COMPUTED EVERY


def read_registration(cursor: Cursor) -> RegisterClause:
    """REGISTER … AS, after REGISTER."""
    found = cursor.take(*OPERATORS, "STREAM", "QUERY")
    if not found and cursor.token.kind not in ("iri", "pname"):
        raise cursor.expected(f"{', '.join(OPERATORS)}, STREAM or QUERY after REGISTER")
    output = cursor.bare_name(
        "a name for the output",
        "write REGISTER RSTREAM <output> AS CONSTRUCT ...",
        "AS",
        "COMPUTED",
        "FROM",
        "UNDER",
    )
    if cursor.token.keyword == "UNDER":
        message = "UNDER ENTAILMENT REGIME is not supported: patterns are matched as they are"
        raise error(cursor.text, cursor.token.start, message, "leave it out")
    if cursor.token.keyword == "FROM":
        message = "REGISTER with a file is not supported: a query reads streams"
        hint = "publish the file to a stream, or read it in Python, and name that stream in FROM NAMED WINDOW"
        raise error(cursor.text, cursor.token.start, message, hint)
    every = None
    if cursor.take("COMPUTED"):
        cursor.require("EVERY", "write COMPUTED EVERY 5s")
        every = read_duration(cursor)
    cursor.require("AS", _REGISTER_HINT)
    return RegisterClause(output, Operator(found) if found in OPERATORS else None, every)


@dataclass(frozen=True)
class Specification:
    """The contents of the brackets of a window."""

    range: int | None  # microseconds, or a number of messages; None for all
    step: int  # as `range`
    counted: bool = False  # whether they are numbers of messages
    report: Report | None = None  # the report policy

    def window(self, name: str, stream: str) -> Window:
        """The window of this specification over a stream."""
        if self.counted:
            assert self.range is not None
            return CountWindow(name, stream, self.range, self.step)
        return TimeWindow(name, stream, self.range, self.step)


def read_specification(cursor: Cursor) -> Specification:
    """`[RANGE … STEP …]` and its like."""
    if not cursor.take_mark("["):
        raise cursor.expected("[ with the width of the window", _BRACKET_HINT)
    if cursor.take("FROM"):
        cursor.require("NOW")
        found = _since_now(cursor)
    elif cursor.take("NOW"):
        found = _since_now(cursor) if cursor.token.text == "-" else Specification(0, _step(cursor))
    elif cursor.take("ALL"):
        found = Specification(None, _step(cursor))
    elif cursor.take("RANGE", "SLIDING", "SLIDE", "PAST", "TUMBLING"):
        found = _range(cursor, tumbling=cursor.tokens[cursor.index - 1].keyword == "TUMBLING")
    elif cursor.token.keyword in _COUNTS:
        found = _count(cursor)
    elif cursor.token.keyword in ("START", "OFFSET"):
        message = f"a window with {cursor.token.text} looks into the past of a stream, which is not supported"
        raise error(
            cursor.text,
            cursor.token.start,
            message,
            "pass the URL of the stream separately from the query",
        )
    else:
        raise cursor.expected("RANGE, NOW, ALL or TRIPLES", _BRACKET_HINT)
    report = _report(cursor)
    if cursor.take("TICK"):  # Kolibrie's; the report policy already determines it
        cursor.next()
    if not cursor.take_mark("]"):
        raise cursor.expected("]", _BRACKET_HINT)
    return Specification(found.range, found.step, found.counted, report)


def _range(cursor: Cursor, *, tumbling: bool) -> Specification:
    if cursor.token.keyword in _COUNTS:
        return _count(cursor)
    if cursor.take("UNBOUNDED"):
        return Specification(None, _step(cursor))
    width = read_duration(cursor)
    if tumbling or cursor.take("TUMBLING"):
        return Specification(width, width)
    return Specification(width, _step(cursor))


def _step(cursor: Cursor) -> int:
    cursor.take_mark(",")
    if not cursor.take(*_STEP):
        return 0
    return read_duration(cursor)


def _since_now(cursor: Cursor) -> Specification:
    """SPARQLStream's `[NOW - 10 S TO NOW - 0 S SLIDE 1 S]`, after the first NOW."""
    width = _ago(cursor)
    if cursor.take("TO"):
        ends = cursor.token
        cursor.require("NOW")
        if (
            not cursor.token.is_mark("]")
            and cursor.token.keyword not in _STEP
            and _ago(cursor, zero=True)
        ):
            raise error(
                cursor.text,
                ends.start,
                "a window that ends before now is not supported",
                _BRACKET_HINT,
            )
    return Specification(width, _step(cursor))


def _ago(cursor: Cursor, *, zero: bool = False) -> int:
    if cursor.token.text != "-":
        raise cursor.expected("- and a duration after NOW", _BRACKET_HINT)
    cursor.next()
    return read_duration(cursor, zero=zero)


def _count(cursor: Cursor) -> Specification:
    cursor.next()
    count = _number(cursor)
    if cursor.take("TUMBLING"):
        return Specification(count, count, counted=True)
    step = 1
    if cursor.take(*_STEP):
        cursor.take(*_COUNTS)
        step = _number(cursor)
    return Specification(count, step, counted=True)


def _number(cursor: Cursor) -> int:
    token = cursor.token
    if (
        token.kind != "number"
        or not token.text.isdigit()
        or len(token.text) > _MOST
        or not int(token.text)
    ):
        raise cursor.expected("a number of messages, from 1")
    cursor.next()
    return int(token.text)


def _report(cursor: Cursor) -> Report | None:
    if not cursor.take("REPORT"):
        return None
    report = _REPORTS.get(cursor.token.keyword)
    if report is None:
        raise cursor.expected(f"one of {', '.join(_REPORTS)}")
    cursor.next()
    return report


@dataclass(frozen=True)
class GraphClause:
    """A FROM clause that names a graph."""

    name: IriNode  # as it is written
    named: bool  # whether it is NAMED


@dataclass(frozen=True)
class WindowClause:
    """A FROM clause that declares a window."""

    name: str | None  # its IRI; None where it has none
    stream: str  # the name of the stream
    specification: Specification  # the contents of the brackets
    merged: bool = False  # whether it is part of the default graph
    # whether it is part of the default graph unless a pattern names it, as with FROM STREAM
    implicit: bool = False


def read_from(cursor: Cursor) -> GraphClause | WindowClause:
    """A FROM clause, after FROM."""
    named = bool(cursor.take("NAMED"))
    if cursor.take("WINDOW"):
        return _window(cursor, named=named)
    if cursor.take("STREAM"):
        start = cursor.token
        stream = cursor.stream("write FROM STREAM <stream> [RANGE 15s STEP 5s]")
        name = window_name(stream, cursor.text, start.start)
        return WindowClause(name, stream, read_specification(cursor), implicit=True)
    cursor.take("GRAPH")  # of drafts of RSP-QL
    return GraphClause(cursor.iri("the IRI of a graph, WINDOW or STREAM after FROM"), named)


def _window(cursor: Cursor, *, named: bool) -> WindowClause:
    """`FROM NAMED WINDOW <w> ON <s> [RANGE …]`, after WINDOW.

    Drafts of RSP-QL have the name last (`ON STREAM <s> [RANGE …] AS <w>`), parsers of RSP4J's the bracket first, and
    some queries leave out ON.
    """
    name = None
    if not cursor.token.is_mark("[") and cursor.token.keyword not in ("ON", "STREAM"):
        name = _name(cursor)
    found = read_specification(cursor) if cursor.token.is_mark("[") else None
    cursor.take("ON")
    cursor.take("STREAM")
    stream = cursor.stream(_WINDOW_HINT, variable=True)
    found = found or read_specification(cursor)
    if cursor.token.keyword == "WITH":
        message = "WITH POLICY is not supported: all windows are read when one of them is evaluated"
        raise error(cursor.text, cursor.token.start, message, "leave it out")
    if name is None and cursor.take("AS"):
        name = _name(cursor)
    if name is None and named:
        raise cursor.expected("AS and the IRI of the window", _WINDOW_HINT)
    return WindowClause(name, stream, found, merged=not named)


def _name(cursor: Cursor) -> str:
    start = cursor.token
    return window_name(
        cursor.resolved("the IRI of the window", _WINDOW_HINT), cursor.text, start.start
    )


def window_name(name: str, text: str, offset: int) -> str:
    """The IRI of a window; a relative IRI without a base becomes absolute, since it names a graph.

    >>> window_name("w1", "<w1>", 0)
    'urn:construct-messages:window:w1'
    """
    try:
        return iri(absolute(name, WINDOW_NAMES))[1:-1]
    except TermError as problem:
        raise error(text, offset, problem.message, problem.hint) from None
