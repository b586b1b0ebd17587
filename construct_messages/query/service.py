"""Checks for requests that a query makes the engine send: SERVICE, LOAD, functions, and pragmas of Virtuoso.

SPARQL 1.1 Federated Query, section 2 (SERVICE), and SPARQL 1.1 Update, section 3.1.4 (LOAD), by tokens. The caller
passes the policy; only the text is checked here.

Not every engine tokenizes a text as the recommendation does. Oxigraph has no tokenizer: it reads `SERVICESILENT<urn:a>`
and `SERVICEex:a` as SERVICE clauses, `<` after a term as an operator, and an unclosed `'''` as an empty string and more
text; other engines decode `\\uXXXX` before they parse. So a text is read in every possible way, and if the reading is
ambiguous, each `service` in it counts as a clause that may reach anything. This rejects some unusual but harmless
queries; no query that sends a request is let through.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from construct_messages.errors import Forbidden, Position, QueryError
from construct_messages.query.prologue import Expansion, Prologue
from construct_messages.query.tokens import ESCAPE, QueryText, Token, spliced
from construct_messages.rdf.terms import iri

_SERVICE: Final = re.compile("service", re.IGNORECASE)
_LOAD: Final = re.compile("load", re.IGNORECASE)
_PRAGMA: Final = re.compile("define|option", re.IGNORECASE)
_FETCHING: Final = re.compile(r"get:|input:grab", re.IGNORECASE)

_BEFORE_NAMES: Final = ("GRAPH", "SERVICE", "SILENT")
_OPERANDS: Final = ("variable", "iri", "blank", "pname", "string", "language", "number")
_OPENING: Final = ("(", "{", "[", "<<(", "{|")
_CLOSING: Final = (")", "}", "]", ")>>", "|}")
# `<scheme://` is not a comparison with a prefixed name: no expression begins with a slash
_FAR: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.\-]*://")


class ServiceClause(NamedTuple):
    """One SERVICE clause."""

    # the absolute IRI of the endpoint; None for a variable or if the IRI is ambiguous
    iri: str | None
    silent: bool  # whether it is SILENT
    start: int  # the offset of the endpoint's name
    end: int  # the offset after the endpoint's name


def services(text: str | QueryText) -> list[ServiceClause]:
    """Returns the SERVICE clauses anywhere in a query or update.

    >>> query = "PREFIX ex: <http://example.org/> ASK { SERVICE SILENT ex:a { ?s ?p 'SERVICE' } SERVICE ?s {} }"
    >>> [(clause.iri, clause.silent) for clause in services(query)]
    [('http://example.org/a', True), (None, False)]
    """
    query = QueryText.of(text)
    found = list(_clauses(query))
    for other in query.readings[1:]:
        read = Counter(clause.iri for clause in _clauses(other))
        if read - Counter(clause.iri for clause in found) and (escape := ESCAPE.search(query.text)):
            found.append(ServiceClause(None, False, *escape.span()))
    return found


def check_services(text: str | QueryText, policy: str | Collection[str]) -> None:
    """Checks that the SERVICE clauses of a query or update reach only allowed endpoints.

    The policy is `"allow"`, `"deny"` or the allowed IRIs, which are compared as text with the resolved IRI.

    >>> check_services("ASK { SERVICE <http://example.org/sparql> {} }", {"http://example.org/sparql"})
    >>> check_services("ASK { SERVICE <http://example.org/sparql> {} }", "deny")
    Traceback (most recent call last):
    construct_messages.errors.Forbidden: line 1, column 15: SERVICE <http://example.org/sparql> is not allowed here
      hint: leave SERVICE out; it is disabled
    """
    if policy == "allow":
        return
    allowed = () if isinstance(policy, str) else policy
    query = QueryText.of(text)
    for clause in services(query):
        if clause.iri is None or clause.iri not in allowed:
            what = (
                repr(query.text[clause.start : clause.end][:80])
                if clause.iri is None
                else f"<{clause.iri}>"
            )
            unknown = ", whose IRI is not in the text," if clause.iri is None else ""
            raise Forbidden(
                f"SERVICE {what}{unknown} is not allowed here",
                position=Position.at(query.text, clause.start),
                hint=f"write one of {', '.join(f'<{name}>' for name in sorted(allowed))} in full"
                if allowed
                else "leave SERVICE out; it is disabled",
            )


def redirect_services(text: str | QueryText, targets: Mapping[str, str]) -> str:
    """Replaces IRIs in the SERVICE clauses of a query or update; the rest of the text is unchanged.

    `targets` maps the IRIs to replace to the new ones.

    >>> redirect_services("ASK { SERVICE <urn:a>{} SERVICE <urn:b>{} }", {"urn:a": "http://127.0.0.1:1/a"})
    'ASK { SERVICE <http://127.0.0.1:1/a>{} SERVICE <urn:b>{} }'
    """
    query = QueryText.of(text)
    return spliced(
        query.text,
        [
            (clause.start, clause.end, iri(targets[clause.iri]))
            for clause in services(query)
            if clause.iri is not None and clause.iri in targets
        ],
    )


def check_loads(text: str | QueryText, policy: str | Collection[str]) -> None:
    """Checks that an update loads only allowed documents.

    >>> check_loads("LOAD SILENT <urn:a> INTO GRAPH <urn:g>", {"urn:a"})
    >>> check_loads("CLEAR ALL; LOAD <urn:a>", "deny")
    Traceback (most recent call last):
    construct_messages.errors.Forbidden: line 1, column 17: LOAD <urn:a> is not allowed here
      hint: leave LOAD out; the documents that the endpoint may fetch are restricted
    """
    if policy == "allow":
        return
    allowed = () if isinstance(policy, str) else policy
    for query in QueryText.of(text).readings:
        if not _LOAD.search(query.text):
            continue
        tokens = query.tokens
        names = _Names(query)
        end = Token("mark", "", len(query.text))
        for index, token in enumerate(tokens):
            names.pass_by(index)
            if "LOAD" not in token.keyword:
                continue
            following, second = (*tokens[index + 1 : index + 3], end, end)[:2]
            source = second if following.keyword == "SILENT" else following
            if token.keyword != "LOAD" or names.resolve(source) not in allowed:
                raise Forbidden(
                    f"LOAD {query.text[source.start : source.end][:80]} is not allowed here",
                    position=Position.at(query.text, source.start),
                    hint="leave LOAD out; the documents that the endpoint may fetch are restricted",
                )
        if _is_ambiguous(tokens):
            raise Forbidden(
                "the target of LOAD is not in the text",
                hint="close every string, or leave LOAD out",
            )


def check_functions(text: str | QueryText, unsafe: Collection[str], safe: Collection[str]) -> None:
    """Checks that a query or update names no function that may send requests or read files.

    `unsafe` has beginnings of IRIs, such as `bif:`, and `safe` exceptions in lower case. A name with an undeclared
    prefix counts as an IRI, since engines predefine prefixes.

    >>> check_functions("ASK { FILTER(bif:lower(?x) = 'a') }", ["bif:"], {"bif:lower"})
    >>> check_functions("PREFIX b: <bif:> ASK { FILTER(b:http_get(?x)) }", ["bif:"], {"bif:lower"})
    Traceback (most recent call last):
    construct_messages.errors.Forbidden: line 1, column 11: <bif:> may make the endpoint fetch or read files
      hint: leave it out; the documents that the endpoint may fetch are restricted
    """
    begin = tuple(unsafe)
    if not begin:
        return
    may_name = re.compile("|".join((*map(re.escape, begin), r"<[^<>:\s]*+>")), re.IGNORECASE)
    for query in QueryText.of(text).readings:
        if not may_name.search(query.text):
            continue
        token = _unsafe_function(query, begin, safe)
        if token is None and _is_ambiguous(query.tokens) and (found := may_name.search(query.text)):
            token = Token("other", found.group(), found.start())
        if token is not None:
            raise Forbidden(
                f"{token.text[:80]} may make the endpoint fetch or read files",
                position=Position.at(query.text, token.start),
                hint="leave it out; the documents that the endpoint may fetch are restricted",
            )


def check_fetches(text: str | QueryText) -> None:
    """Checks that a query or update has no pragma that makes Virtuoso load documents from the web.

    These are `get:…` and `input:grab-…`, after DEFINE and in the OPTION of a FROM clause.

    >>> check_fetches("DEFINE sql:describe-mode 'CBD' ASK { ?s get:soft ?o }")
    >>> check_fetches("DEFINE get:soft 'soft' ASK {}")
    Traceback (most recent call last):
    construct_messages.errors.Forbidden: line 1, column 8: get:soft makes the endpoint load from the web
      hint: leave it out; it is disabled
    """
    readings = QueryText.of(text).readings
    if not _FETCHING.search(readings[-1].text):
        return
    for query in readings:
        for token in _pragmas(query):
            raise Forbidden(
                f"{token.text} makes the endpoint load from the web",
                position=Position.at(query.text, token.start),
                hint="leave it out; it is disabled",
            )


def _unsafe_function(
    query: QueryText, unsafe: tuple[str, ...], safe: Collection[str]
) -> Token | None:
    """The first token that may name an unsafe function, in any way in which an engine may form its IRI."""
    tokens, names = query.tokens, _Names(query)
    nothing = Token("mark", "", 0)
    for index, token in enumerate(tokens):
        names.pass_by(index)
        if token.kind not in ("iri", "pname"):
            continue
        resolved = names.resolve(token)
        written = token.text.strip("<>").lower()
        for name in (written, (resolved or "").lower()):
            if name.startswith(unsafe) and name not in safe:
                return token
        if token.kind == "pname" and written.partition(":")[2].startswith(unsafe):
            return token  # after an empty namespace
        if token.kind == "iri" and resolved is None:
            before = tokens[index - 1] if index else nothing
            following = tokens[index + 1] if index + 1 < len(tokens) else nothing
            if following.is_mark("("):
                return token  # a procedure by its bare name
            if before.text.endswith(":") and any(
                name.startswith(written or "-") for name in unsafe
            ):
                return token  # the declaration of a part of such a namespace
    return None


def _clauses(query: QueryText) -> Iterator[ServiceClause]:
    if not _SERVICE.search(query.text):
        return
    tokens = query.tokens
    if _is_ambiguous(tokens):
        for match in _SERVICE.finditer(query.text):
            yield ServiceClause(None, False, *match.span())
        return
    names = _Names(query)
    nothing = Token("mark", "", len(query.text))
    for index, token in enumerate(tokens):
        before = tokens[index - 1].keyword if index else ""
        following, second = (*tokens[index + 1 : index + 3], nothing, nothing)[:2]
        names.pass_by(index)
        if token.kind == "word" and "SERVICE" in token.keyword:
            tail = token.keyword.rpartition("SERVICE")[2]
            silent = "SILENT" in (tail, following.keyword)
            name = second if tail == "" and silent else following
            known = tail in ("", "SILENT") and not name.text.upper().startswith("SILENT")
            yield ServiceClause(
                names.resolve(name) if known else None, silent, name.start, name.end
            )
        elif (
            following.is_mark("{")
            and _begins_with_service(token)
            and not before.endswith(_BEFORE_NAMES)
        ):
            # a name can precede a brace in a legal query, too: the last object of triples without a full stop
            yield ServiceClause(None, False, token.start, token.end)


def _begins_with_service(token: Token) -> bool:
    return token.kind == "pname" and _SERVICE.search(token.text.partition(":")[0]) is not None


class _Names:
    """Resolves names at the current position: declarations are at the head, and between updates."""

    def __init__(self, query: QueryText) -> None:
        self._text, self._tokens = query.text, query.tokens
        self._prologue = Prologue(None, {}, {}, frozenset(), Expansion(len(query.text)))
        self._depth = 0
        self._unread: list[Token] = []
        self._glued = False

    def pass_by(self, index: int) -> None:
        """Updates the declarations by a token; to be called for each token in order."""
        token = self._tokens[index]
        self._depth = max(0, self._depth + token.is_mark("{") - token.is_mark("}"))
        if self._depth == 0:
            self._unread.append(token)
            # PREFIXex:<…> declares ex: for an engine without tokens
            declares = "PREFIX" in token.text.upper() and token.kind in ("word", "pname")
            behind_prefix = index > 0 and self._tokens[index - 1].keyword == "PREFIX"
            self._glued |= declares and token.keyword != "PREFIX" and not behind_prefix

    def resolve(self, token: Token) -> str | None:
        """The IRI of a name; None for other tokens, or if the IRI is not known."""
        if token.kind not in ("iri", "pname"):
            return None
        if self._unread:
            before = self._prologue
            self._prologue = Prologue.read(
                self._text,
                self._unread,
                base=before.base,
                prefixes=before.prefixes,
                expansion=before.expansion,
            )
            self._unread = []
        if self._glued and not _FAR.match(token.text):
            return None
        try:
            return self._prologue.iri(self._text, token.text, token.start)[1:-1]
        except QueryError:
            return None  # undeclared, or relative without a base: the engine may have a declaration


def _is_ambiguous(tokens: Sequence[Token]) -> bool:
    """Whether an engine without a tokenizer may split the text differently.

    This applies after an unclosed string; in a long string with an unknown escape, which it may read as short strings
    instead; and for a `<` after an operand within brackets, if a string, a comment or a bracket could begin or end in
    the text that is an IRI here.
    """
    brackets: list[str] = []
    before = Token("mark", "", 0)
    for token in tokens:
        if token.kind == "unclosed":
            return True
        if token.kind == "string" and token.text[:3] in ('"""', "'''"):
            inside = token.text[3:-3]
            if "\\" in inside and token.text[0] in inside:
                return True
        if brackets[-1:] == ["("] and _ends_operand(before):
            if token.is_mark("<<", "<<("):
                return True
            if token.kind == "iri" and not _FAR.match(token.text) and set(token.text) & set("'#()"):
                return True
        if token.is_mark(*_OPENING):
            brackets.append(token.text)
        elif token.is_mark(*_CLOSING) and brackets:
            brackets.pop()
        before = token
    return False


def _ends_operand(token: Token) -> bool:
    return (
        token.kind in _OPERANDS
        or token.is_mark(*_CLOSING, ">>")
        or token.keyword.endswith(("TRUE", "FALSE"))
    )


def _pragmas(query: QueryText) -> Iterator[Token]:
    tokens = query.tokens
    if _is_ambiguous(tokens):
        if _PRAGMA.search(query.text):
            yield from (
                Token("other", match.group(), match.start())
                for match in _FETCHING.finditer(query.text)
            )
        return
    option = 0  # the depth of brackets after OPTION
    before = ""
    for token in tokens:
        if token.kind in ("pname", "iri") and (option or before.endswith("DEFINE")):
            if _FETCHING.match(token.text.lstrip("<")):
                yield token
        elif token.is_mark("("):
            option += 1 if option or before.endswith("OPTION") else 0
        elif token.is_mark(")"):
            option -= 1 if option else 0
        before = token.keyword
