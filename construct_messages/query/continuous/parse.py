"""`parse_continuous`: the text of a continuous query taken apart into windows and SPARQL.

RSP-QL, C-SPARQL and CQELS by the shapes of their clauses, not by a choice of dialect. The text is spliced, as in
`rewrite.py`: clauses of streams become white space, patterns of windows become GRAPH patterns, and all other text keeps
its place.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from construct_messages.errors import QueryError, TermError
from construct_messages.query.continuous.values import (
    CM,
    MEMBER,
    STATIC,
    TIMESTAMP,
    WINDOW_NAMES,
    WINDOWS_GRAPH,
    ContinuousQuery,
    CountWindow,
    Needs,
    Operator,
    Report,
    TimeWindow,
    Window,
    absolute,
    is_relative,
    read_duration,
    written,
)
from construct_messages.query.embedded import with_graph
from construct_messages.query.prologue import Prologue, check_base, insert
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import walk
from construct_messages.query.syntax.parser import QueryParser
from construct_messages.query.syntax.triples import read
from construct_messages.query.tokens import QueryText, Token, check_braces, error, outer, spliced
from construct_messages.rdf.terms import iri, resolve

# --- clauses --------------------------------------------------------------------------------------
# The clauses that a continuous query has before its WHERE group: REGISTER, and FROM with its windows.
#
# RSP-QL (`FROM NAMED WINDOW <w> ON <s> [RANGE PT15S STEP PT5S]`), C-SPARQL (`FROM STREAM <s> [RANGE 15s STEP 5s]`)
# and CQELS (`[RANGE 15s SLIDE 5s]`, `[NOW]`, `[ALL]`, `[TRIPLES 10]`). docs/reference/continuous/syntax.md describes
# them.


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
_FROM_HINT: Final = "write FROM NAMED WINDOW <window> ON <stream> [RANGE PT15S STEP PT5S]"
_DIGITS: Final = 18  # most digits in a number of messages


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
        or len(token.text) > _DIGITS
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

    name: syntax.IriNode  # as it is written
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
    stream = cursor.stream(_FROM_HINT, variable=True)
    found = found or read_specification(cursor)
    if cursor.token.keyword == "WITH":
        message = "WITH POLICY is not supported: all windows are read when one of them is evaluated"
        raise error(cursor.text, cursor.token.start, message, "leave it out")
    if name is None and cursor.take("AS"):
        name = _name(cursor)
    if name is None and named:
        raise cursor.expected("AS and the IRI of the window", _FROM_HINT)
    return WindowClause(name, stream, found, merged=not named)


def _name(cursor: Cursor) -> str:
    start = cursor.token
    return window_name(
        cursor.resolved("the IRI of the window", _FROM_HINT), cursor.text, start.start
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


# --- patterns -------------------------------------------------------------------------------------
# Rewrites the patterns of windows to GRAPH patterns: WINDOW, CQELS' STREAM, and GRAPH inside and outside of them.
#
# A replacement is as long as the text that it replaces wherever possible, so that positions in the result are
# positions in the text. docs/decisions/046 defines the meaning of the patterns. No clauses are read here.

CONTEXT: Final = frozenset(
    {"http://www.w3.org/ns/prov#generatedAtTime", f"{CM}sequence", f"{CM}stream", f"{CM}graph"}
)
"""The predicates of message context triples, without brackets."""

_DECLARE: Final = "add FROM NAMED WINDOW {} ON <stream> [RANGE PT15S STEP PT5S]"
_WINDOW_HINT: Final = "write WINDOW <window> { ... }"
_STREAM_HINT: Final = "write STREAM <stream> [RANGE 15s SLIDE 5s] { ... }"
_NAMES: Final = ("iri", "pname", "variable")
_MOST: Final = 100  # windows


Splice: TypeAlias = tuple[int, int, str]
"""The offsets of a piece of the text, and its replacement."""


@dataclass
class Patterns:
    """The patterns of a query after rewriting."""

    windows: dict[str, Window]  # by name, the declared windows and those of CQELS' patterns
    # in no order; to be ignored for a query without windows
    splices: list[Splice] = field(default_factory=list)
    # the graphs that the query can read of each window, by its name
    needs: dict[str, Needs] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)  # the windows that a pattern names
    streams: bool = False  # whether a pattern of CQELS declares a window
    graphs: bool = False  # whether there is a GRAPH outside of all windows
    # the reason why the engine would evaluate the query wrongly, if it has windows
    misread: QueryError | None = None


def read_form(
    text: str, tokens: Sequence[Token], prologue: Prologue, windows: Container[str]
) -> syntax.FormNode:
    """Reads the patterns of windows of a query whose clauses of streams have been removed."""
    return _WindowReader(text, tokens, prologue, windows).form()


def read_patterns(
    text: str, form: syntax.FormNode, prologue: Prologue, windows: Mapping[str, Window]
) -> Patterns:
    """Reads the patterns of a query."""
    patterns = Patterns(dict(windows), needs=dict.fromkeys(windows, Needs.NOTHING))
    _Reading(text, prologue, patterns).read(form)
    if patterns.windows and patterns.misread is not None:
        raise patterns.misread
    if patterns.graphs:
        patterns.needs = {window: needs | Needs.GRAPHS for window, needs in patterns.needs.items()}
    return patterns


def unused_name(windows: Collection[str]) -> str:
    """Returns a name for a window that has none in the text.

    >>> unused_name({"urn:construct-messages:window:1"})
    'urn:construct-messages:window:2'
    """
    return next(name for number in count(1) if (name := f"{WINDOW_NAMES}{number}") not in windows)


def check_number(text: str, offset: int, windows: Collection[str]) -> None:
    """Checks the number of windows before one is added: the rewritten patterns grow with it."""
    if len(windows) >= _MOST:
        raise error(
            text, offset, f"more than {_MOST} windows", "use the same window in several patterns"
        )


class _WindowReader(Cursor):
    """Reads groups with the patterns of windows."""

    begin = (*Cursor.begin, "WINDOW", "STREAM")

    def __init__(
        self, text: str, tokens: Sequence[Token], prologue: Prologue, windows: Container[str]
    ) -> None:
        super().__init__(text, tokens, prologue)
        self._declared = windows

    def element(self) -> syntax.PatternNode:
        # nothing else begins with these words, so an error in the rest is an error of the query
        match self.token.keyword:
            case "WINDOW":
                return read(self._window, self.text)
            case "STREAM":
                return read(self._stream, self.text)
        return super().element()

    def _window(self) -> syntax.WindowPattern:
        start = self.next().start
        if self.token.kind not in _NAMES:
            raise self.expected("the name of a window", _WINDOW_HINT)
        name = self.name("the name of a window")
        if not self.at("{"):
            raise self.expected(f"{{ after {self.text[name.start : name.end]}", _WINDOW_HINT)
        group = self.group()
        return syntax.WindowPattern(start, self.end, "WINDOW", name, "", None, group)

    def _stream(self) -> syntax.WindowPattern:
        start = self.next().start
        place = self.token.start
        stream = self.stream(_STREAM_HINT)
        name, window = window_name(stream, self.text, place), None
        if self.at("["):
            window = read_specification(self)
        elif name not in self._declared:  # by FROM STREAM
            raise self.expected("[ with the width of the window", _STREAM_HINT)
        if not self.at("{"):
            raise self.expected("{ after the window", _STREAM_HINT)
        group = self.group()
        return syntax.WindowPattern(start, self.end, "STREAM", None, stream, window, group)


class _Within(NamedTuple):
    """The context of a node: the window's name as GRAPH writes it, its names, and the name of the active graph."""

    window: str = ""
    windows: tuple[str, ...] = ()
    graph: str = ""


class _Reading:
    def __init__(self, text: str, prologue: Prologue, patterns: Patterns) -> None:
        self.text = text
        self.prologue = prologue
        self.patterns = patterns
        self.declared = frozenset(patterns.windows)

    def read(self, form: syntax.FormNode) -> None:
        left: list[tuple[Any, _Within]] = [(form, _Within())]
        while left:
            node, within = left.pop()
            match node:
                case syntax.WindowPattern(
                    keyword="WINDOW", name=syntax.VariableNode() | syntax.IriNode() as name
                ):
                    self.refuse_nested(node, within)
                    within = self.window(node, name)
                case syntax.WindowPattern():
                    self.refuse_nested(node, within)
                    within = self.stream(node)
                case syntax.GraphPattern(_, _, syntax.VariableNode() | syntax.IriNode()):
                    within = self.graph(node, within)
                case syntax.ServicePattern():
                    self.refuse_windows(node)
                    continue
                case syntax.SelectForm() if node is not form:
                    self.select(node, within)
            left += [(part, within) for part in reversed(node) if isinstance(part, tuple)]

    def window(
        self, node: syntax.WindowPattern, name: syntax.VariableNode | syntax.IriNode
    ) -> _Within:
        """`WINDOW <w> { … }`."""
        self.replace(node.start, node.start + len("WINDOW"), "GRAPH")
        written = self.text[name.start : name.end]
        if isinstance(name, syntax.VariableNode):
            if not self.declared:
                message = f"{written} has no window that it could be bound to"
                raise error(self.text, name.start, message, _DECLARE.format("<window>"))
            names = " ".join(iri(known) for known in self.declared)
            self.replace(node.start, node.start, f"VALUES {written} {{ {names} }} ")
            return self.within(node.group, written, sorted(self.declared))
        window = self.window_name(name)
        if window not in self.patterns.windows:
            raise self.undeclared(name)
        return self.named(node.group, name, window)

    def window_name(self, name: syntax.IriNode) -> str:
        known = name_of(self.text, name.written, name.start, self.prologue)
        return window_name(known, self.text, name.start)

    def named(self, group: syntax.GroupPattern, name: syntax.IriNode, window: str) -> _Within:
        written = name.written
        if window.startswith(WINDOW_NAMES) and window not in written:
            written = iri(window)
            self.replace(name.start, name.end, written)
        return self.within(group, written, [window])

    def stream(self, node: syntax.WindowPattern) -> _Within:
        """`STREAM <s> [RANGE 15s] { … }`."""
        name, windows = window_name(node.stream, self.text, node.start), self.patterns.windows
        if isinstance(node.window, Specification):
            same = (
                known
                for known, window in windows.items()
                if window == node.window.window(known, node.stream)
            )
            name = next(same, "") or unused_name(windows)
            check_number(self.text, node.start, windows.keys() - {name})
            windows[name] = node.window.window(name, node.stream)
            self.patterns.streams = True
        self.replace(node.start, node.group.start, f"GRAPH {iri(name)} ")
        return self.within(node.group, iri(name), [name])

    def graph(self, node: syntax.GraphPattern, within: _Within) -> _Within:
        """`GRAPH ?g { … }`."""
        name, written = node.name, self.text[node.name.start : node.name.end]
        if within.window:
            self.replace(node.start, node.start, f"{_membership(within.window, written)} ")
            for window in within.windows:
                self.patterns.needs[window] |= Needs.MEMBERS
        elif isinstance(name, syntax.VariableNode):
            self.replace(node.start, node.start, f"{_membership(iri(STATIC), written)} ")
            self.patterns.graphs = True
        elif (
            isinstance(name, syntax.IriNode)
            and self.declared
            and (window := self.window_name(name)) in self.declared
        ):  # C-SPARQL's FROM NAMED STREAM
            return self.named(node.group, name, window)
        else:
            self.patterns.graphs = True
        return within._replace(graph=written)

    def select(self, select: syntax.SelectForm, within: _Within) -> None:
        """A sub-select, in which the variable of GRAPH has to be in the scope of the engine."""
        if within.graph[:1] not in ("?", "$") or self.patterns.misread is not None:
            return
        try:
            for splice in with_graph(self.text, select, f"?{within.graph[1:]}"):
                self.replace(*splice)
        except QueryError as misread:
            self.patterns.misread = misread

    def refuse_windows(self, service: syntax.ServicePattern) -> None:
        """The group of SERVICE, which another engine evaluates."""
        for node in walk(service.group):
            if isinstance(node, syntax.WindowPattern):
                message = f"{node.keyword} cannot be used within SERVICE: another engine has no such window"
                raise error(self.text, node.start, message, "move it out of the SERVICE")

    def within(self, group: syntax.GroupPattern, name: str, windows: Sequence[str]) -> _Within:
        needs = read_needs(self.text, self.prologue, group)
        for window in windows:
            self.patterns.needs[window] = self.patterns.needs.get(window, Needs.NOTHING) | needs
        self.patterns.named.update(windows)
        return _Within(name, tuple(windows), name)

    def refuse_nested(self, node: syntax.WindowPattern, within: _Within) -> None:
        if within.window:
            name = within.window if len(within.windows) > 1 else written(within.windows[0])
            message = f"{node.keyword} cannot be used within the window {name}"
            hint = "write one pattern after the other"
            raise error(self.text, node.start, message, hint)

    def undeclared(self, name: syntax.IriNode) -> QueryError:
        hint = _DECLARE.format(name.written)
        if self.declared:
            hint += (
                f", or use one of {', '.join(written(known) for known in sorted(self.declared))}"
            )
        return error(self.text, name.start, f"the window {name.written} is not declared", hint)

    def replace(self, start: int, end: int, text: str) -> None:
        breaks = "".join(char if char in "\r\n" else "" for char in self.text[start:end])
        if not breaks:
            text = text.ljust(end - start)
        self.patterns.splices.append((start, end, text + breaks))


def _membership(window: str, member: str) -> str:
    return f"GRAPH {iri(WINDOWS_GRAPH)} {{ {window} {iri(MEMBER)} {member} }}"


def read_needs(text: str, prologue: Prologue, group: syntax.GroupPattern, *more: Any) -> Needs:
    """The graphs that a window's group and the nodes in `more` may read: all that they read, and possibly others."""
    needs = Needs.NOTHING
    if not all(isinstance(element, syntax.GraphPattern) for element in group.elements):
        needs |= Needs.UNION
    if any(_may_read_context(text, prologue, node) for node in walk(group, more)):
        needs |= Needs.CONTEXT
    return needs


def _may_read_context(text: str, prologue: Prologue, node: Any) -> bool:
    """Whether the triple may be a context triple, or its path may lead to one."""
    if not isinstance(node, syntax.TripleNode):
        return isinstance(node, syntax.Unknown)
    for part in walk(node.predicate):
        match part:
            case (
                syntax.VariableNode()
                | syntax.PathNegation()
                | syntax.PathRepetition(modifier="*" | "?")
            ):
                return True
            case syntax.IriNode(start, _, name) if name[0] in "<:" or ":" in name:
                try:
                    if name_of(text, name, start, prologue) in CONTEXT:
                        return True
                except QueryError:
                    return True
    return False


# --- parse ----------------------------------------------------------------------------------------


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
        assert isinstance(form, syntax.SelectForm | syntax.ConstructForm)
        projection = form.projection if isinstance(form, syntax.SelectForm) else None
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
        splices.append((place, place, declaration))
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
        query=spliced(source, splices),
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
    return (start, end, "".join(char if char in "\r\n" else " " for char in text[start:end]))
