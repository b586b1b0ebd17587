r"""Reads complete messages of plain Turtle or TriG by one regular expression: many statements at a time, without a
parser.

Nearly all statements of a log consist of IRIs, prefixed names, blank node labels, literals and `;` `,` `.`. One
expression splits a text into these tokens, and thereby distinguishes delimiters from strings, IRIs and comments. Tokens
of a kind are a column, and repeated tokens are looked up. The expression accepts a subset of the texts that pyoxigraph
accepts: a message with anything else (a collection, a triple term, a new prefix, an error) is left to `decoder.py`,
the simple path. A property test asserts that both read the same.

RDF 1.2 Turtle, section 6.5, and TriG, section 4.5; docs/decisions/085-turtle-by-regular-expression.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import compress, count
from typing import Any, Final, NamedTuple, cast

from construct_messages.logs.from_pyoxigraph import most_characters
from construct_messages.logs.turtle.scanner import ANY_STRING, QUICK_STRING, make_canonical
from construct_messages.logs.turtle.tokens import Tokens
from construct_messages.rdf import compiled
from construct_messages.rdf.terms import Term
from construct_messages.rdf.terms.grammar import (
    CANONICAL_BLANK,
)

_MOST: Final = most_characters(0, 0)
"""The number of characters that a message may have as N-Quads independently of its size, so that its other limits
need no check.
"""

# --- the expression -------------------------------------------------------------------------------------------------

_WHITE: Final = r"[ \t\r\n]"
# text that is matched as a name or an IRI is only valid after `tokens.py` has checked it
_NAME: Final = (
    r"(?:[A-Za-z]++:|(?:(?!_)[\w.\-]++)?+:)"  # \w includes characters beyond ASCII
    r"[A-Za-z0-9_:%\-]*+[\w:%\-]*+(?:\.++[\w:%\-]++)*+"
)
_IRI: Final = "<[^>]*+>"
_STRING: Final = rf"{QUICK_STRING}(?:@[a-z]{{2,3}}+(?![A-Za-z0-9\-]))?+"
_NUMBER: Final = r"[+\-]?+[0-9]++(?:\.[0-9]++)?+(?:[eE][+\-]?+[0-9]++)?+"
_SUFFIX: Final = rf"\^\^(?:{_IRI}|{_NAME})|@[A-Za-z]++(?:-[A-Za-z0-9]++)*+"


def _declaration(prefix: str, iri: str) -> str:
    return rf"PREFIX{_WHITE}++{prefix}:{_WHITE}*+{iri}|@prefix{_WHITE}++{prefix}:{_WHITE}*+{iri}{_WHITE}*+\."


_PREFIX: Final = r"[^\s:#<]*+"
_DECLARATION: Final = re.compile(
    rf"(?:PREFIX|@prefix){_WHITE}++({_PREFIX}):{_WHITE}*+<([^<>]*+)>(?:{_WHITE}*+\.)?+"
)
_GRAPH: Final = re.compile(rf"(?:GRAPH(?=[ \t\r\n<]){_WHITE}*+)?+([^\s{{]*+){_WHITE}*+\{{")


@cache
def _expression(by_comment: bool, graphs: bool) -> re.Pattern[str]:
    """Returns the expression for a triple with the punctuation after it; or a mark: a delimiter, a brace, a
    declaration; or the rest of the text.

    Groups: a subject, unless the previous triple ends with `;` or `,`; a predicate, unless it ends with `,`; an object
    that is a string with or without its language, a prefix and a local name, or another term; a datatype or language
    after a string; a mark, or the rest up to the end. Matches are adjacent.
    """
    if by_comment:
        # there is no punctuation of a triple before the next match
        delimiter = r"\#[^\S\r\n]*+@message[^\r\n]*+(?<![,;])(?=[\r\n])"
        no_delimiter = r"(?![^\S\r\n]*+@message)"
    else:
        delimiter, no_delimiter = f"MESSAGE(?={_WHITE})", ""
    space = rf"{_WHITE}*+(?:\#{no_delimiter}[^\r\n]*+[\r\n]{_WHITE}*+)*+"
    node = f"{_IRI}|{CANONICAL_BLANK}|{_NAME}"
    braces = rf"|\}}|(?:GRAPH(?:{_WHITE}++|(?=<)))?+(?:{node}){_WHITE}*+\{{|\{{" if graphs else ""
    string = f"({_STRING})"
    simple_name = r"([A-Za-z]*+:)([A-Za-z0-9_]++)(?=[ \t\r\n;,])"
    other = f"({node}|{_NUMBER}|true|false|{ANY_STRING})"
    marks = f"{delimiter}{braces}|{_declaration(_PREFIX, _IRI)}"
    return re.compile(
        rf"(?:(?<=[,;])|(?<![,;]){space}({node}))"
        rf"(?:(?<=,)|(?<!,){space}({_NAME}|{_IRI}|a(?={_WHITE})))"
        rf"{space}(?:{string}|{simple_name}|{other})(?:(?<=\")({_SUFFIX}))?+"
        rf"{space}(?:,|;(?:{_WHITE}\.(?={_WHITE}))?+|\.(?={_WHITE})|(?=\}}))"
        rf"|(?:(?<![,;]){space}(?={marks}))?+((?<![,;])(?:{marks})|(?s:.++))"
    )


# --- messages -------------------------------------------------------------------------------------------------------


class PlainRead(NamedTuple):
    """The messages at the beginning of a text.

    Args:
        messages: subject, predicate, object and graph of each quad in turn; labels of blank nodes are unchanged.
        size: their size in bytes, including delimiters.
        has_blanks: whether any of them may have a blank node.
    """

    messages: list[list[Term | None]]
    size: int
    has_blanks: bool


class PlainMessages:
    r"""Reads plain messages of one log.

    Args:
        by_comment: whether comments delimit messages, or MESSAGE does.
        graphs: whether the format is TriG.

    >>> plain = PlainMessages(by_comment=False, graphs=False)
    >>> plain.declare({"": "urn:x:"})
    >>> messages, size, _ = plain.read(b":a :b :c, :d . MESSAGE MESSAGE :e :f (:g) . MESSAGE ")
    >>> messages[0][:4], len(messages[0]), messages[1], size
    (['<urn:x:a>', '<urn:x:b>', '<urn:x:c>', None], 8, [], 30)
    """

    def __init__(self, *, by_comment: bool, graphs: bool) -> None:
        self._by_comment, self._graphs = by_comment, graphs
        self.declare({})

    def declare(self, prefixes: Mapping[str, str]) -> None:
        """Sets the prefixes for the following texts."""
        self._prefixes, self._tokens = dict(prefixes), Tokens(prefixes)

    def read(self, text: bytes) -> PlainRead:
        """Reads the plain messages at the beginning of a text, as far as their delimiters are in it."""
        if compiled.wire is not None:
            found = compiled.wire.turtle_messages(
                text, self._prefixes, self._graphs, self._by_comment, _MOST
            )
            if found[0]:
                return PlainRead(*cast("tuple[list[list[Term | None]], int, bool]", found))
        try:
            return self._read_text(text.decode())
        except UnicodeDecodeError:
            return PlainRead([], 0, has_blanks=False)  # the simple path reports the position

    def _read_text(self, text: str) -> PlainRead:
        split = _expression(self._by_comment, self._graphs).split
        known = self._tokens
        known.begin()
        found: list[Any] = split(text)
        subjects, predicates, strings, prefixes, locals, others, suffixes, marks = (
            found[group::9] for group in range(1, 9)
        )
        # the rest reaches to the end of the text
        left: str = marks[-1] if marks and marks[-1] is not None and not found[-1] else ""
        stop = make_canonical(strings, len(marks) - bool(left))
        # each match in turn, with subjects and predicates that were left out; None for missing groups
        terms: list[Any] = [None] * (4 * len(marks))
        term: str | None = None
        terms[0::4] = [term := term if token is None else known[token] for token in subjects]
        terms[1::4] = [term := term if token is None else known[token] for token in predicates]
        namespaces = known.namespaces
        terms[2::4] = [
            (string if suffix is None else f"{string}{known[suffix]}")
            if string is not None
            else f"{namespaces[prefix]}{local}>"
            if local is not None
            else known[other]
            if suffix is None
            else f"{known[other]}{known[suffix]}"
            for string, prefix, local, other, suffix in zip(
                strings, prefixes, locals, others, suffixes, strict=True
            )
        ]
        if known.have_others:
            tokens = zip(subjects, predicates, others, suffixes, strict=True)
            stop = next(
                index
                for index, (each, prefix) in enumerate(zip(tokens, prefixes, strict=True))
                if index == stop or not known.are_plain(each, [prefix])
            )
        is_short = len(text) + len(terms) * (known.longest + 1) <= _MOST
        messages: list[list[Term | None]] = []
        message: list[Term | None] = []  # the open message
        graph: Any = None
        is_open = False  # whether a graph is open
        start = end = 0  # the triples and marks that were read, and those of messages
        for index in compress(count(), marks[:stop]):
            mark, quads = marks[index], terms[4 * start : 4 * index]
            start = index + 1
            if graph is not None:
                quads[3::4] = [graph] * (len(quads) // 4)
            message = message + quads if message else quads
            if mark == "MESSAGE" or mark[0] == "#":
                if is_open or not (is_short or _characters(message) <= _MOST):
                    break
                messages.append(message)
                message, end = [], start
            elif is_open:
                if mark != "}":
                    break
                is_open, graph = False, None
            elif mark[-1] == "{":
                name = _GRAPH.fullmatch(mark)
                if name is None or (name[1] and known[name[1]] is None):
                    break
                is_open, graph = True, known[name[1] or None]
            elif not self._is_declared(mark):
                break
        if end < len(marks) - bool(left) or not end:
            # a second search finds the end of the last one
            left = split(text, end)[-1] if end else text
        return PlainRead(messages, len(text.removesuffix(left).encode()), "_:" in text)

    def _is_declared(self, mark: str) -> bool:
        declaration = _DECLARATION.fullmatch(mark)
        return (
            declaration is not None and self._tokens.prefixes.get(declaration[1]) == declaration[2]
        )


def _characters(terms: list[Term | None]) -> int:
    return sum([len(term) + 1 for term in terms if term is not None])
