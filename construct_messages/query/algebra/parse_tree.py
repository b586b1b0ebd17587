"""The parse tree of a SELECT or ASK query: rdflib's grammar over the tokens of the text, without loss.

SPARQL 1.1 Query, section 19.8. rdflib's parser rewrites numbers, decodes escapes twice, drops a part of `!(^a)`,
records no positions and uses a stack frame for each triple. It therefore gets a skeleton of the text, in which each
name and literal is replaced by the number of its token. Text and positions of the leaves of its tree are then looked up
among the tokens. Features that SPARQL 1.1 does not have are refused by name. No algebra here: the tree is translated by
`patterns`, `calls`, `groups` and `translation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import pyoxigraph as ox
import rdflib
from pyparsing import ParseBaseException
from rdflib.plugins.sparql.parser import Query
from rdflib.plugins.sparql.parserutils import CompValue

from construct_messages.errors import Position, QueryError, TermError, UnsupportedQuery
from construct_messages.query.algebra.nodes import Position as Place
from construct_messages.query.algebra.nodes import Var
from construct_messages.query.prologue import Prologue
from construct_messages.query.refusals import refusal
from construct_messages.query.tokens import Token, decoded, error, tokenize
from construct_messages.terms import RDF, Term, boolean, iri, literal, number, unescape

_LOCK: Final = (
    Lock()
)  # pyparsing finds out how to call its actions by failing, unsafe between threads
_NEWER_MARKS: Final = ("<<", "<<(", ">>", ")>>", "{|", "|}", "~")
_NEWER_FUNCTIONS: Final = (
    *("TRIPLE", "SUBJECT", "PREDICATE", "OBJECT", "ISTRIPLE", "ADJUST"),
    *("LANGDIR", "HASLANG", "HASLANGDIR", "STRLANGDIR"),
)
_UNSUPPORTED: Final = {
    "SERVICE": "SERVICE is not supported: the algebra has no remote endpoints",
    "LATERAL": "LATERAL is no part of SPARQL 1.1",
    "VERSION": "VERSION announces a newer SPARQL than 1.1",
    "DEFINE": "DEFINE is a pragma of Virtuoso",
}
_HINT_1_1: Final = "write the query in SPARQL 1.1"
_MOST_NESTED: Final = (
    64  # brackets in each other; parsers recur, and one of them crashes on a hundred thousand
)
_TRIPLES_IN_A_ROW: Final = (
    16  # triples in a row: rdflib's grammar recurs once a triple, and does not beyond a group
)
_FILLER: Final = "GRAPH <0> {}"  # what is put between them: no token has the number 0

_INVERSE: Final = "inverse"  # of the IRI whose number follows
_NEGATED: Final = re.compile(r"!(?:\^n|\((?:\^?n\|)*\^?n\))")  # in letters for tokens

TYPE: Final = iri(RDF + "type")


@dataclass
class ParseTree:
    """The parse tree of a query, with the meaning of its leaves.

    Args:
        text: the query.
        tokens: the tokens of the whole text; leaf `n` of the tree is the token at index `n - 1`.
        prologue: the declarations of BASE and PREFIX.
        query: rdflib's `SelectQuery` or `AskQuery`.
    """

    text: str
    tokens: Sequence[Token]
    prologue: Prologue
    query: CompValue
    _blanks: dict[str, Var] = field(default_factory=dict)

    def position(self, leaf: Any) -> Place:
        """Returns the variable or term of a triple pattern; a blank node is a hidden variable, one for each label."""
        match leaf:
            case rdflib.Variable():
                return self.variable(leaf)
            case rdflib.BNode():
                return self._blanks.setdefault(str(leaf), Var(f".b{len(self._blanks)}"))
            case _:
                return self.term(leaf)

    def variable(self, leaf: rdflib.Variable) -> Var:
        """Returns the variable of a leaf."""
        return Var(decoded(self.text, self._token(leaf))[1:])

    def term(self, leaf: Any) -> Term:
        """Returns the IRI or literal of a leaf, as written.

        Raises:
            QueryError: an undeclared prefix, a relative IRI without base, an illegal character.
            UnsupportedQuery: an unsupported kind of leaf.
        """
        match leaf:
            case CompValue(name="literal"):
                return self._string(int(dict.__getitem__(leaf, "string")))
            case rdflib.Literal() if leaf.datatype == rdflib.XSD.boolean:
                return boolean(str(leaf))
            case rdflib.Literal():
                return number(self._token(leaf).text)
            case rdflib.URIRef() if ":" in leaf:  # rdf:type, or what collections are written with
                return iri(str(leaf))
            case rdflib.URIRef() if leaf.startswith(_INVERSE):
                raise self.error(leaf, "^ has no meaning here", "use it in property paths")
            case rdflib.URIRef():
                return self._iri(leaf)
        raise UnsupportedQuery(f"{leaf!r} is no term that is known here", fragment=str(leaf))

    def is_signed(self, leaf: Any) -> bool:
        """Whether the leaf is a number whose token has a sign."""
        return (
            isinstance(leaf, rdflib.Literal)
            and leaf.datatype == rdflib.XSD.integer
            and self._sign(leaf) != ""
        )

    def unsigned(self, leaf: rdflib.Literal) -> Term:
        """Returns the number of a leaf without the sign of its token, which rdflib took for an operator."""
        return number(self._token(leaf).text.removeprefix(self._sign(leaf)))

    def inverse(self, leaf: rdflib.URIRef) -> Term | None:
        """Returns the IRI of a member of a negated property set after `^`, or None if it has no `^`."""
        return self._iri(leaf) if leaf.startswith(_INVERSE) else None

    def is_filler(self, part: CompValue) -> bool:
        """Whether an element of a group was added to the skeleton and has no meaning."""
        return part.name == "GraphGraphPattern" and str(dict.__getitem__(part, "term")) == "0"

    def text_of(self, leaf: rdflib.Literal) -> str:
        """Returns the characters of a string without language tag and datatype.

        Raises:
            QueryError: the string has one.
        """
        index = int(leaf)
        if _tag_length(self.tokens, index - 1):
            raise error(self.text, self.tokens[index - 1].start, "a plain string is needed here")
        return self._characters(self.tokens[index - 1])

    def integer(self, leaf: rdflib.Literal) -> int:
        """Returns the number of LIMIT or OFFSET.

        Raises:
            QueryError: not an integer.
        """
        token = self._token(leaf)
        if not token.text.isdecimal():
            raise error(
                self.text,
                token.start,
                f"{token.text} is no number of solutions",
                "write an integer",
            )
        return int(token.text)

    def start_of(self, part: Any) -> Position | None:
        """Returns the position of a part of the tree in the text, as far as its names and literals tell."""
        starts = (self._token(leaf).start for leaf in _leaves(part) if _number(leaf))
        start = min(starts, default=None)
        return None if start is None else Position.at(self.text, start)

    def error(self, part: Any, message: str, hint: str | None = None) -> QueryError:
        """Returns the error that refuses the query because of a part of it."""
        return QueryError(message, position=self.start_of(part), hint=hint)

    def unsupported(
        self, part: Any, message: str, fragment: str, hint: str | None = None
    ) -> UnsupportedQuery:
        """Returns the error for a part that is valid but not supported."""
        return UnsupportedQuery(message, fragment=fragment, position=self.start_of(part), hint=hint)

    def _iri(self, leaf: rdflib.URIRef) -> Term:
        token = self._token(leaf)
        return (
            TYPE if token.kind == "word" else self.prologue.iri(self.text, token.text, token.start)
        )

    def _token(self, leaf: Any) -> Token:
        return self.tokens[_number(leaf) - 1]

    def _sign(self, leaf: rdflib.Literal) -> str:
        first = self._token(leaf).text[:1]
        return first if first in ("+", "-") else ""

    def _characters(self, token: Token) -> str:
        quotes = 3 if token.text[:3] in ('"""', "'''") else 1
        try:
            return unescape(token.text[quotes:-quotes])
        except TermError as problem:
            raise error(self.text, token.start, problem.message) from None

    def _string(self, index: int) -> Term:
        token, *tag = self.tokens[index - 1 : index + _tag_length(self.tokens, index - 1)]
        value = self._characters(token)
        try:
            if not tag:
                return literal(value)
            if len(tag) == 1:
                return literal(value, language=tag[0].text[1:])
            return literal(
                value, datatype=self.prologue.iri(self.text, tag[1].text, tag[1].start)[1:-1]
            )
        except TermError as problem:
            raise error(self.text, token.start, problem.message) from None


def parse(text: str, *, base: str | None = None) -> ParseTree:
    """Parses a SELECT or ASK query.

    Args:
        text: the query.
        base: an absolute IRI, against which BASE in the text is resolved.

    Raises:
        UnsupportedQuery: SERVICE, features newer than SPARQL 1.1, too deeply nested brackets, and valid queries that
            rdflib cannot parse.
        QueryError: another form of query, or text that is not SPARQL.

    >>> tree = parse("SELECT ?s { ?s <urn:p> 01 }")
    >>> tree.query.name
    'SelectQuery'
    """
    text = text.removeprefix("\ufeff")
    tokens = tokenize(text)
    head = _head(text, tokens)
    _refuse(text, tokens)
    prologue = Prologue.read(text, tokens[:head], base=base, prefixes={})
    skeleton, offsets = _skeleton(tokens, head)
    try:
        with _LOCK:
            _, query = Query.parse_string(skeleton, parse_all=True)
    except ParseBaseException as problem:
        found = max(
            (index for offset, index in offsets if offset <= problem.loc), default=len(tokens)
        )
        raise _refusal(text, base, tokens, found) from None
    except RecursionError:
        raise UnsupportedQuery(
            "the query nests too deeply to be read",
            fragment="nesting",
            hint="use fewer brackets and longer names",
        ) from None
    return ParseTree(text, tokens, prologue, query)


def _head(text: str, tokens: Sequence[Token]) -> int:
    """The index of SELECT or ASK, behind a well-formed prologue."""
    index = 0
    while index < len(tokens):
        following = [token.kind for token in tokens[index + 1 : index + 3]]
        match tokens[index].keyword, following:
            case "BASE", ["iri", *_]:
                index += 2
            case "PREFIX", ["pname", "iri"] if (
                tokens[index + 1].text.find(":") == len(tokens[index + 1].text) - 1
            ):
                index += 3
            case "SELECT" | "ASK", _:
                return index
            case ("CONSTRUCT" | "DESCRIBE") as form, _:
                raise error(
                    text,
                    tokens[index].start,
                    f"{form} has no solutions",
                    "give the SELECT that it rests on",
                )
            case ("VERSION" | "DEFINE") as word, _:
                raise _unsupported(text, tokens[index], _UNSUPPORTED[word], word, _HINT_1_1)
            case _:
                raise error(
                    text,
                    tokens[index].start,
                    f"unexpected {tokens[index].text} before the form of the query",
                )
    raise error(text, len(text), "there is no SELECT and no ASK")


def _refuse(text: str, tokens: Sequence[Token]) -> None:
    """Refuses by name what is no part of SPARQL 1.1, and brackets that nest too deeply."""
    depth = 0
    for index, token in enumerate(tokens):
        called = index + 1 < len(tokens) and tokens[index + 1].text == "("
        if token.kind == "unclosed":
            raise error(
                text, token.start, "this string is never closed", f"add {token.text[0]} at its end"
            )
        if (
            token.is_mark(*_NEWER_MARKS)
            or (token.kind == "language" and "--" in token.text)
            or (token.keyword in _NEWER_FUNCTIONS and called)
        ):
            message = f"{token.text} belongs to SPARQL 1.2, which is not supported in WHERE"
            raise _unsupported(text, token, message, token.keyword or token.text, _HINT_1_1)
        if token.keyword in _UNSUPPORTED:
            raise _unsupported(text, token, _UNSUPPORTED[token.keyword], token.keyword, _HINT_1_1)
        depth += token.is_mark("(", "{", "[") - token.is_mark(")", "}", "]")
        if depth > _MOST_NESTED:
            raise _unsupported(
                text, token, f"more than {_MOST_NESTED} brackets in each other", "nesting"
            )


def _unsupported(
    text: str, token: Token, message: str, fragment: str, hint: str | None = None
) -> UnsupportedQuery:
    return UnsupportedQuery(
        message, fragment=fragment, position=Position.at(text, token.start), hint=hint
    )


def _refusal(text: str, base: str | None, tokens: Sequence[Token], found: int) -> QueryError:
    """The error for a text that rdflib cannot read: of the query, if pyoxigraph cannot either."""
    try:
        ox.Store().query(text, base_iri=base)
    except SyntaxError as problem:
        return refusal(problem, text, None, "the query is not SPARQL")
    except RuntimeError:
        pass  # a function that pyoxigraph does not know: legal as far as grammar goes
    start = tokens[found].start if found < len(tokens) else len(text)
    return UnsupportedQuery(
        "the query cannot be read here: it is beyond rdflib's grammar, though not beyond pyoxigraph's",
        fragment=text[start : start + 40],
        position=Position.at(text, start),
        hint="write it with more spaces and brackets",
    )


# --- the skeleton ---------------------------------------------------------------------------------------------------


def _skeleton(tokens: Sequence[Token], head: int) -> tuple[str, list[tuple[int, int]]]:
    """The text for rdflib's grammar, from SELECT or ASK on; and for each of its tokens its offset and index."""
    pieces: list[str] = []
    offsets: list[tuple[int, int]] = []
    labels: dict[str, int] = {}
    inverses = set(_negated_inverses(tokens))
    length = stops = 0
    index = head
    while index < len(tokens):
        token, piece, last = tokens[index], tokens[index].text, index
        match token.kind:
            case "variable":
                piece = f"?{index + 1}"
            case "iri" | "pname":
                piece = f"<{index + 1}>"
            case "blank":
                piece = f"_:{labels.setdefault(token.text, index + 1)}"
            case "string":
                piece, last = f'"{index + 1}"', index + _tag_length(tokens, index)
            case "number":
                piece = f"{token.text[0] if token.text[0] in '+-' else ''}{index + 1}"
            case "other" if index in inverses:
                piece, last = f"<{_INVERSE}{index + 2}>", index + 1
            case "mark" if piece == "." and not _ends_group(tokens, index):
                stops += 1
                if stops % _TRIPLES_IN_A_ROW == 0:
                    piece = f". {_FILLER}"
        if not _touches_previous(tokens, index):
            piece = f" {piece}"
        pieces.append(piece)
        offsets.append((length, index))
        length += len(piece)
        index = last + 1
    return "".join(pieces), offsets


def _touches_previous(tokens: Sequence[Token], index: int) -> bool:
    """Whether rdflib must see the token next to the one before it: a part of `||`, or a path's `*`."""
    before, token = tokens[index - 1], tokens[index]
    if token.text in ("*", "+", "?") and (
        before.kind in ("iri", "pname") or before.text in ("a", ")")
    ):
        return True
    return before.kind == token.kind == "other" and before.end == token.start


def _ends_group(tokens: Sequence[Token], index: int) -> bool:
    """Whether the full stop is followed by no more triples; two in a row are illegal and shall stay so."""
    return index + 1 < len(tokens) and tokens[index + 1].is_mark(".", "}")


def _tag_length(tokens: Sequence[Token], index: int) -> int:
    """Returns the number of tokens of the language tag or datatype after a string."""
    following = [*tokens[index + 1 : index + 3]]
    if following and following[0].kind == "language":
        return 1
    datatype = (
        len(following) == 2 and following[0].text == "^^" and following[1].kind in ("iri", "pname")
    )
    return 2 if datatype else 0


def _negated_inverses(tokens: Sequence[Token]) -> Iterator[int]:
    """The indexes of each `^` that is a member of a negated property set.

    >>> list(_negated_inverses(tokenize("?s !(^<urn:a>|<urn:b>|^<urn:c>)/^<urn:d> ?o")))
    [3, 8]
    """
    shape = "".join(
        "n"
        if token.kind in ("iri", "pname") or token.text == "a"
        else token.text[0]
        if token.text in "!^|()"
        else "."
        for token in tokens
    )
    for negated in _NEGATED.finditer(shape):
        yield from (index for index in range(*negated.span()) if shape[index] == "^")


# --- leaves ---------------------------------------------------------------------------------------------------------


def _number(leaf: Any) -> int:
    """The number of a leaf's token; 0 for what has none, as a blank node without label."""
    digits = (
        str(leaf).removeprefix(_INVERSE)
        if isinstance(leaf, rdflib.URIRef)
        else str(leaf).lstrip("+-")
    )
    return int(digits) if digits.isdecimal() else 0


def _leaves(part: Any) -> Iterator[Any]:
    match part:
        case CompValue():
            for value in dict.values(part):
                yield from _leaves(value)
        case rdflib.term.Identifier():
            yield part
        case str():
            return
        case _:
            for value in part:
                yield from _leaves(value)
