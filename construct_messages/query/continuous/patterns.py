"""The patterns of windows as GRAPH patterns: WINDOW, CQELS' STREAM, and GRAPH within and beside them.

What is put into the text is as long as what it takes the place of wherever it can be, so that places in the result are
places in the text. What a pattern means is said in docs/decisions/046. Nothing is declared here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from construct_messages.errors import QueryError
from construct_messages.query.continuous.clauses import read_specification, window_name
from construct_messages.query.continuous.cursor import Cursor, name_of
from construct_messages.query.continuous.values import (
    CM,
    MEMBER,
    STATIC,
    WINDOW_NAMES,
    WINDOWS_GRAPH,
    Needs,
    Window,
    written,
)
from construct_messages.query.prologue import Prologue
from construct_messages.query.tokens import Token, closing, error
from construct_messages.terms import iri

CONTEXT: Final = frozenset(
    {"http://www.w3.org/ns/prov#generatedAtTime", f"{CM}sequence", f"{CM}stream", f"{CM}graph"}
)
"""The predicates of message context triples, without brackets."""

_DECLARE: Final = "add FROM NAMED WINDOW {} ON <stream> [RANGE PT15S STEP PT5S]"
_WINDOW_HINT: Final = "write WINDOW <window> { ... }"
_STREAM_HINT: Final = "write STREAM <stream> [RANGE 15s SLIDE 5s] { ... }"
_NAMES: Final = ("iri", "pname", "variable")
_TERMS: Final = ("variable", "iri", "pname", "blank", "string", "number")
_BEGIN: Final = ("[", "(", "<<", "<<(")
_END: Final = ("]", ")", ">>", ")>>")
_BEFORE_PREDICATE: Final = (";", "[", "{|")
_MOST: Final = 100  # windows
_PATHS: Final = ("!", "*", "?")


class Splice(NamedTuple):
    """A piece of the text and what takes its place."""

    start: int
    end: int
    text: str


@dataclass
class Patterns:
    """The patterns of a query after rewriting.

    Args:
        splices: in no order; of a query without windows to be left out.
        windows: by name: those that were declared, and those of CQELS' patterns.
        needs: by the window's name.
        named: the windows that a pattern names.
        streams: whether a pattern of CQELS declares a window.
        graphs: whether GRAPH stands outside of all windows.
        misread: why the engine would evaluate the query wrongly, if it has windows.
    """

    windows: dict[str, Window]
    splices: list[Splice] = field(default_factory=list)
    needs: dict[str, Needs] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    streams: bool = False
    graphs: bool = False
    misread: QueryError | None = None


def read_patterns(
    text: str,
    tokens: Sequence[Token],
    start: int,
    prologue: Prologue,
    windows: Mapping[str, Window],
) -> Patterns:
    """Reads the patterns of a WHERE group and of what is behind it.

    Args:
        text: the query.
        tokens: all of its tokens, with balanced braces.
        start: the index of the first of them to be read.
        prologue: what the names mean.
        windows: those that are declared, by name.

    Raises:
        QueryError: a window that is not declared, a pattern of a window within another or within SERVICE, what is no
            such pattern, and a sub-select that the engine would not evaluate within its graph.
    """
    reading = _Reading(
        text, tokens, prologue, Patterns(dict(windows), needs=dict.fromkeys(windows, Needs.NOTHING))
    )
    reading.read(start)
    patterns = reading.patterns
    if patterns.windows and patterns.misread is not None:
        raise patterns.misread
    if patterns.graphs:
        patterns.needs = {window: needs | Needs.GRAPHS for window, needs in patterns.needs.items()}
    return patterns


def unused_name(windows: Collection[str]) -> str:
    """A name for a window that the text gives none.

    >>> unused_name({"urn:construct-messages:window:1"})
    'urn:construct-messages:window:2'
    """
    return next(name for number in count(1) if (name := f"{WINDOW_NAMES}{number}") not in windows)


def check_number(text: str, token: Token, windows: Collection[str]) -> None:
    """Makes sure that a query may have one more window: what patterns become grows with their number.

    Args:
        text: the query, for the position of errors.
        token: where the window is declared.
        windows: those that are there.

    Raises:
        QueryError: there are very many.
    """
    if len(windows) >= _MOST:
        raise error(
            text,
            token.start,
            f"more than {_MOST} windows",
            "use the same window in several patterns",
        )


class _Reading:
    def __init__(
        self, text: str, tokens: Sequence[Token], prologue: Prologue, patterns: Patterns
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.prologue = prologue
        self.patterns = patterns
        self.declared = frozenset(patterns.windows)
        self.ends = _closings(tokens)
        self.window_of: list[_Group] = []
        self.active: list[
            tuple[int, str]
        ] = []  # the ends of the groups of GRAPH around, and what it names

    def read(self, start: int) -> None:
        index = start
        while index < len(self.tokens):
            token = self.tokens[index]
            while self.window_of and self.window_of[-1].end <= index:
                self.window_of.pop()
            while self.active and self.active[-1][0] <= index:
                self.active.pop()
            around = self.window_of[-1] if self.window_of else None
            if token.keyword == "WINDOW":
                index = self.window(index, around)
            elif token.keyword == "STREAM":
                index = self.stream(index, around)
            elif token.keyword == "GRAPH":
                index = self.graph(index, around)
            elif token.keyword == "SERVICE":
                index = self.service(index)
            elif token.keyword == "SELECT":
                index = self.select(index)
            else:
                index += 1

    def window(self, index: int, around: _Group | None) -> int:
        """`WINDOW <w> {`; the index of the brace."""
        self.refuse_nested(self.tokens[index], around)
        keyword = self.tokens[index]
        cursor = Cursor(self.text, self.tokens, index + 1, self.prologue)
        if cursor.token.kind not in _NAMES:
            raise cursor.expected("the name of a window", _WINDOW_HINT)
        name, brace = cursor.next(), cursor.index
        if not cursor.token.is_mark("{"):
            raise cursor.expected(f"{{ behind {name.text}", _WINDOW_HINT)
        self.replace(keyword.start, keyword.end, "GRAPH")
        if name.kind == "variable":
            if not self.declared:
                raise error(
                    self.text,
                    name.start,
                    f"{name.text} has no window to stand for",
                    _DECLARE.format("<window>"),
                )
            names = " ".join(iri(known) for known in self.declared)
            self.replace(keyword.start, keyword.start, f"VALUES {name.text} {{ {names} }} ")
            self.enter(brace, name.text, sorted(self.declared))
            return brace
        window = self.window_name(name)
        if window not in self.patterns.windows:
            raise self.undeclared(name)
        self.enter_named(brace, name, window)
        return brace

    def window_name(self, name: Token) -> str:
        return window_name(name_of(self.text, name, self.prologue), self.text, name)

    def enter_named(self, brace: int, name: Token, window: str) -> None:
        written = name.text
        if window.startswith(WINDOW_NAMES) and window not in written:
            written = iri(window)
            self.replace(name.start, name.end, written)
        self.enter(brace, written, [window])

    def stream(self, index: int, around: _Group | None) -> int:
        """`STREAM <s> [RANGE 15s] {`; the index of the brace."""
        keyword = self.tokens[index]
        self.refuse_nested(keyword, around)
        cursor = Cursor(self.text, self.tokens, index + 1, self.prologue)
        start = cursor.token
        stream = cursor.stream(_STREAM_HINT)
        name = window_name(stream, self.text, start)
        if cursor.token.is_mark("["):
            found = read_specification(cursor)
            windows = self.patterns.windows
            same = (
                name for name, window in windows.items() if window == found.window(name, stream)
            )
            name = next(same, "") or unused_name(windows)
            check_number(self.text, keyword, windows.keys() - {name})
            windows[name] = found.window(name, stream)
            self.patterns.streams = True
        elif name not in self.declared:  # by FROM STREAM
            raise cursor.expected("[ with the width of the window", _STREAM_HINT)
        if not cursor.token.is_mark("{"):
            raise cursor.expected("{ behind the window", _STREAM_HINT)
        self.replace(keyword.start, cursor.token.start, f"GRAPH {iri(name)} ")
        self.enter(cursor.index, iri(name), [name])
        return cursor.index

    def graph(self, index: int, around: _Group | None) -> int:
        """`GRAPH ?g {`; the index of the brace. What is no such pattern is the engine's business."""
        if index + 2 >= len(self.tokens) or self.tokens[index + 1].kind not in _NAMES:
            return index + 1
        name, brace = self.tokens[index + 1], index + 2
        if not self.tokens[brace].is_mark("{"):
            return index + 1
        start = self.tokens[index].start
        self.active.append((self.ends[brace], name.text))
        if around is not None:
            self.replace(start, start, f"{_membership(around.name, name.text)} ")
            for window in around.windows:
                self.patterns.needs[window] |= Needs.MEMBERS
        elif name.kind == "variable":
            self.replace(start, start, f"{_membership(iri(STATIC), name.text)} ")
            self.patterns.graphs = True
        elif (
            self.declared and (window := self.window_name(name)) in self.declared
        ):  # C-SPARQL's FROM NAMED STREAM
            self.enter_named(brace, name, window)
        else:
            self.patterns.graphs = True
        return brace

    def select(self, index: int) -> int:
        """SELECT of a sub-select; the index behind its projection."""
        token, variable = self.tokens[index], self.active[-1][1] if self.active else ""
        index += 1
        projected: set[str] = set()
        while index < len(self.tokens) and not self.tokens[index].is_mark("{"):
            if self.tokens[index].kind == "variable":
                projected.add(self.tokens[index].text[1:])
            index += 1
        if (
            variable[:1] in ("?", "$")
            and variable[1:] not in projected
            and self.patterns.misread is None
        ):
            # Oxigraph 0.5: the variable is not in scope of the sub-select
            message = f"the engine would evaluate this sub-select over all graphs, and not over {variable}"
            self.patterns.misread = error(
                self.text, token.start, message, f"project {variable} in it"
            )
        return index

    def service(self, index: int) -> int:
        """SERVICE; the index behind its group, which is the business of another engine."""
        near = range(index + 1, min(index + 4, len(self.tokens)))  # SERVICE SILENT <e> {
        brace = next((place for place in near if self.tokens[place].is_mark("{")), None)
        if brace is None:
            return index + 1
        end = self.ends[brace]
        for token in self.tokens[brace:end]:
            if token.keyword in ("WINDOW", "STREAM"):
                message = (
                    f"{token.text} cannot be used within SERVICE: another engine has no such window"
                )
                raise error(self.text, token.start, message, "put it beside the SERVICE")
        return end + 1

    def enter(self, brace: int, name: str, windows: Sequence[str]) -> None:
        end = self.ends[brace]
        self.window_of.append(_Group(end, name, tuple(windows)))
        self.active.append((end, name))
        needs = read_needs(self.text, self.tokens, brace, end, self.prologue)
        for window in windows:
            self.patterns.needs[window] = self.patterns.needs.get(window, Needs.NOTHING) | needs
        self.patterns.named.update(windows)

    def refuse_nested(self, token: Token, around: _Group | None) -> None:
        if around is not None:
            name = around.name if len(around.windows) > 1 else written(around.windows[0])
            message = f"{token.text} cannot be used within the window {name}"
            raise error(
                self.text, token.start, message, "put the patterns of windows beside each other"
            )

    def undeclared(self, name: Token) -> QueryError:
        hint = _DECLARE.format(name.text)
        if self.declared:
            hint += (
                f", or use one of {', '.join(written(known) for known in sorted(self.declared))}"
            )
        return error(self.text, name.start, f"the window {name.text} is not declared", hint)

    def replace(self, start: int, end: int, text: str) -> None:
        breaks = "".join(char if char in "\r\n" else "" for char in self.text[start:end])
        if not breaks:
            text = text.ljust(end - start)
        self.patterns.splices.append(Splice(start, end, text + breaks))


class _Group(NamedTuple):
    """The group of a window: the index of its `}`, the window's name as it is written in GRAPH, and its names."""

    end: int
    name: str
    windows: tuple[str, ...]


def _closings(tokens: Sequence[Token]) -> dict[int, int]:
    """The index of the `}` of each `{`, among balanced braces."""
    ends: dict[int, int] = {}
    begun: list[int] = []
    for index, token in enumerate(tokens):
        if token.is_mark("{"):
            begun.append(index)
        elif token.is_mark("}"):
            ends[begun.pop()] = index
    return ends


def _membership(window: str, member: str) -> str:
    return f"GRAPH {iri(WINDOWS_GRAPH)} {{ {window} {iri(MEMBER)} {member} }}"


def read_needs(
    text: str, tokens: Sequence[Token], start: int, end: int, prologue: Prologue
) -> Needs:
    """Returns what a window's group may read, estimated from tokens: never too little, perhaps too much.

    Args:
        text: the query.
        tokens: all of its tokens.
        start: the index of the group's `{`.
        end: that of its `}`.
        prologue: what the names mean.
    """
    needs = Needs.NOTHING
    if not _only_graphs(tokens, start, end):
        needs |= Needs.UNION
    if any(_may_read_context(text, tokens, index, prologue) for index in range(start + 1, end)):
        needs |= Needs.CONTEXT
    return needs


def _only_graphs(tokens: Sequence[Token], start: int, end: int) -> bool:
    """Whether a group is made of GRAPH patterns alone."""
    index = start + 1
    while index < end:
        if tokens[index].is_mark("."):
            index += 1
        elif (
            tokens[index].keyword == "GRAPH" and index + 2 < end and tokens[index + 2].is_mark("{")
        ):
            index = closing(tokens, index + 2) + 1
        else:
            return False
    return True


def _may_read_context(text: str, tokens: Sequence[Token], index: int, prologue: Prologue) -> bool:
    """Whether the token may be the predicate of a context triple, or the sign of a path that may be."""
    token, before, behind = tokens[index], tokens[index - 1], tokens[index + 1]
    if token.kind == "other":
        return token.text in _PATHS
    if token.kind in ("iri", "pname"):
        try:
            return name_of(text, token, prologue) in CONTEXT
        except QueryError:
            return True
    if token.kind != "variable":
        return False
    if before.is_mark(*_BEFORE_PREDICATE):
        return True
    ended = (
        before.kind in (*_TERMS, "language")
        or before.is_mark(*_END)
        or before.keyword in ("TRUE", "FALSE")
    )
    begins = behind.kind in _TERMS or behind.is_mark(*_BEGIN) or behind.keyword in ("TRUE", "FALSE")
    return ended and begins
