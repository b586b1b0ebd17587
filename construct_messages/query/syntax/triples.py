"""Terms, triples and property paths, read from tokens.

SPARQL 1.2 Query, section 19.8, [75] TriplesSameSubject, [81] TriplesSameSubjectPath and below. The short notations are
expanded by section 4 and section 4.3 (reifiers and annotations): each triple precedes those of its object, as in the
text. Templates have no property paths. No groups and no expressions here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.tokens import Token, decoded, error
from construct_messages.rdf.terms import RDF, iri

# --- reader ---------------------------------------------------------------------------------------
# A position in the tokens of a query, from which clauses are read token by token.
#
# SPARQL 1.2 Query, section 19.8. No grammar here.

T = TypeVar("T")

MOST_NESTED: Final = 100
"""The most nested brackets that are read; each takes a few frames of the interpreter's stack."""


class Refused(Exception):
    """The text at a position is not SPARQL; it becomes a `QueryError`, or an `Unknown` in the tree."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.offset, self.hint = message, offset, hint


class Reader:
    """Reads forward through tokens."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = [*tokens, Token("end", "", len(text))]
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        """The next token; after the last one an empty one of kind `end`."""
        return self.tokens[self.index]

    @property
    def end(self) -> int:
        """The offset after the last token that was taken."""
        token = self.tokens[self.index - 1]
        return token.start + len(token.text)

    def next(self) -> Token:
        """Takes a token."""
        token = self.tokens[self.index]
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *marks: str) -> bool:
        """Whether the next token is one of these punctuation marks."""
        token = self.tokens[self.index]
        return token.kind == "mark" and token.text in marks

    def take(self, *keywords: str) -> str:
        """Takes a keyword if it is one of these, and returns it; else the empty string."""
        token = self.tokens[self.index]
        if token.kind == "word" and (keyword := token.text.upper()) in keywords:
            self.index += 1
            return keyword
        return ""

    def take_mark(self, mark: str) -> bool:
        """Takes a punctuation mark if it is this one."""
        token = self.tokens[self.index]
        if token.kind != "mark" or token.text != mark:
            return False
        self.index += 1
        return True

    def need(self, mark: str, where: str) -> None:
        if not self.take_mark(mark):
            raise self.expected(f"{mark} {where}")

    def require(self, keyword: str, hint: str | None = None) -> None:
        if not self.take(keyword):
            raise self.expected(keyword, hint)

    def expected(self, what: str, hint: str | None = None) -> Refused:
        """The error that another token was expected at this position."""
        token = self.token
        found = f", found {token.text[:80]}" if token.text else ", and the query ends"
        if token.kind == "unclosed":
            found = ", found an unclosed string"
        return Refused(f"expected {what}{found}", token.start, hint)

    def deeper(self, what: str = "query", hint: str = "use fewer brackets") -> None:
        """Counts a nested bracket; the caller subtracts it from `depth` at its end."""
        if self.depth >= MOST_NESTED:
            message = f"the {what} nests more than {MOST_NESTED} deep"
            raise Refused(message, self.token.start, hint)
        self.depth += 1

    # --- names ------------------------------------------------------------------------------------------------------

    def is_iri(self) -> bool:
        """Whether the next token is a name with or without prefix."""
        return self.tokens[self.index].kind in ("iri", "pname")

    def iri(self, what: str = "an IRI", hint: str | None = None) -> syntax.IriNode:
        token = self.tokens[self.index]
        if token.kind not in ("iri", "pname"):
            raise self.expected(what, hint)
        self.index += 1
        return syntax.IriNode(token.start, token.start + len(token.text), token.text)

    def variable(self) -> syntax.VariableNode:
        token = self.tokens[self.index]
        if token.kind != "variable":
            raise self.expected("a variable")
        self.index += 1
        name = decoded(self.text, token) if "\\" in token.text else token.text
        return syntax.VariableNode(token.start, token.start + len(token.text), name[1:])


def read(rule: Callable[[], T], text: str) -> T:
    """Returns the result of a rule of the grammar."""
    try:
        return rule()
    except Refused as problem:
        raise error(text, problem.offset, problem.message, problem.hint) from None


# --- triples --------------------------------------------------------------------------------------

TYPE: Final = iri(RDF + "type")
_FIRST: Final = iri(RDF + "first")
_REST: Final = iri(RDF + "rest")
NIL: Final = iri(RDF + "nil")
_REIFIES: Final = iri(RDF + "reifies")

_TERM: Final = ("variable", "iri", "pname", "string", "number", "blank")
_PATH: Final = ("/", "|", "^", "*", "+", "?", "!")
_NAMED: Final = ("variable", "iri", "pname", "blank")
_DEEP_TEMPLATE: Final = "name inner nodes by blank node labels"


class TriplesReader(Reader):
    """Reads triples; each method reads one rule of the grammar and adds its triples to `triples`."""

    triples: list[syntax.TripleNode]
    is_template = False
    _blanks = 0

    def begins_triples(self) -> bool:
        """Whether the next token may begin a triple."""
        token = self.tokens[self.index]
        if token.kind == "mark":
            return token.text in ("[", "(", "<<", "<<(")
        return token.kind in _TERM or token.keyword in ("TRUE", "FALSE")

    def statement(self) -> None:
        """Triples with one subject."""
        if self.at("<<"):
            subject, alone = self._reified(), True
        elif self.at("(", "["):
            subject, alone = self._node()
        else:
            subject, alone = self.term(), False
        if not alone or self._at_verb():
            self._properties(subject)

    def _at_verb(self) -> bool:
        token = self.tokens[self.index]
        if token.kind in ("variable", "iri", "pname") or token.text == "a":
            return True
        return not self.is_template and (token.text in ("^", "!") or self.at("("))

    def _verb(self) -> syntax.VariableNode | syntax.PathNode:
        token = self.tokens[self.index]
        if not self._at_verb():
            raise self.unexpected("a predicate: a variable, an IRI or a")
        if token.kind == "variable":
            return self.variable()
        return self._name() if self.is_template else self._path()

    def _name(self) -> syntax.IriNode:
        token = self.tokens[self.index]
        if token.text == "a":
            self.index += 1
            return syntax.IriNode(token.start, token.end, "a")
        return self.iri("an IRI or a")

    def unexpected(self, what: str) -> Refused:
        """The error that another token was expected at this position, or that a template has a path."""
        is_path = self.is_template and self.token.text in _PATH
        return self.expected(
            what, "property paths are not allowed in a template" if is_path else None
        )

    def _properties(self, subject: syntax.TermNode) -> None:
        """PropertyListNotEmpty."""
        while True:
            predicate = self._verb()
            self._object(subject, predicate)
            while self.take_mark(","):
                self._object(subject, predicate)
            if not self.take_mark(";"):
                return
            while self.take_mark(";"):
                pass
            if not self._at_verb():
                return

    def _object(
        self, subject: syntax.TermNode, predicate: syntax.VariableNode | syntax.PathNode
    ) -> None:
        """Object: a node with its annotations."""
        place = len(self.triples)
        object = self._graph_node()
        self.triples.insert(
            place, syntax.TripleNode(subject.start, object.end, subject, predicate, object)
        )
        if not self.at("~", "{|"):
            return
        if not isinstance(predicate, syntax.VariableNode | syntax.IriNode):
            raise Refused("a triple with a property path has no reifier", self.token.start)
        stated = syntax.TripleTermNode(subject.start, object.end, subject, predicate, object)
        reifier: syntax.TermNode | None = None
        while self.at("~", "{|"):
            if self.at("~"):
                reifier = self._reifier(stated)
                continue
            self._deeper()
            self.index += 1
            self._properties(self._reify(self._fresh(), stated) if reifier is None else reifier)
            self.need("|}", "at the end of the annotation")
            self.depth -= 1
            reifier = None  # a second block is about another reifier

    def _deeper(self) -> None:
        if self.is_template:
            self.deeper("template", _DEEP_TEMPLATE)
        else:
            self.deeper()

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _graph_node(self) -> syntax.TermNode:
        if self.at("<<"):
            return self._reified()
        return self._node()[0] if self.at("(", "[") else self.term()

    def _node(self) -> tuple[syntax.TermNode, bool]:
        """A node in brackets, and whether it may be a statement by itself."""
        self._deeper()
        opening = self.next()
        if opening.text == "[":
            node: syntax.TermNode = self._fresh(opening.start)
            alone = not self.at("]")
            if alone:
                self._properties(node)
            self.need("]", "at the end of the blank node")
        else:
            alone = not self.at(")")
            node = self._collection(opening.start)
        self.depth -= 1
        return node, alone

    def _collection(self, start: int) -> syntax.TermNode:
        if self.take_mark(")"):
            return syntax.IriNode(start, self.end, NIL)
        first = cell = self._fresh(start)
        while True:
            place = len(self.triples)
            item = self._graph_node()
            self.triples.insert(place, _made(cell, _FIRST, item))
            if self.take_mark(")"):
                self.triples.append(_made(cell, _REST, syntax.IriNode(self.end - 1, self.end, NIL)))
                return first
            rest = self._fresh(self.token.start)
            self.triples.append(_made(cell, _REST, rest))
            cell = rest

    def _reified(self) -> syntax.TermNode:
        """ReifiedTriple: `<< s p o ~ reifier >>` is its reifier."""
        self._deeper()
        start = self.next().start
        stated = self._triple(start, self._reified_part)
        reifier = self._reifier(stated) if self.at("~") else self._reify(self._fresh(start), stated)
        self.need(">>", "at the end of the reified triple")
        self.depth -= 1
        return reifier

    def triple_term(self) -> syntax.TripleTermNode:
        """`<<( s p o )>>`."""
        self._deeper()
        start = self.next().start
        read = self._triple(start, self._inner)
        self.need(")>>", "at the end of the triple term")
        self.depth -= 1
        return syntax.TripleTermNode(start, self.end, read.subject, read.predicate, read.object)

    def _triple(self, start: int, part: Callable[[], syntax.TermNode]) -> syntax.TripleTermNode:
        subject = part()
        if not self._at_verb() or self.at("("):
            raise self.unexpected("a predicate: a variable, an IRI or a")
        predicate = self.variable() if self.token.kind == "variable" else self._name()
        object = part()
        return syntax.TripleTermNode(start, self.end, subject, predicate, object)

    def _reified_part(self) -> syntax.TermNode:
        return self._reified() if self.at("<<") else self._inner()

    def _inner(self) -> syntax.TermNode:
        """Subject or object of a reified triple or a triple term, where brackets are not allowed."""
        opening = self.index
        term = self.term()
        if isinstance(term, syntax.IriNode) and term.written is NIL:
            self.index = opening
            raise self.expected(
                "a term: a collection is not allowed in a triple term or reified triple"
            )
        return term

    def _reifier(self, stated: syntax.TripleTermNode) -> syntax.TermNode:
        start = self.next().start
        named = self.token.kind in _NAMED or self.at("[")
        return self._reify(self.term() if named else self._fresh(start), stated)

    def graph_name(self) -> syntax.VariableNode | syntax.IriNode | syntax.BlankNode:
        """The name of a graph in a template."""
        if self.token.kind in _NAMED or self.at("["):
            name = self.term()
            if isinstance(name, syntax.VariableNode | syntax.IriNode | syntax.BlankNode):
                return name
        raise self.expected("a variable, an IRI or a blank node as the name of the graph")

    def _reify(self, reifier: syntax.TermNode, stated: syntax.TripleTermNode) -> syntax.TermNode:
        self.triples.append(_made(reifier, _REIFIES, stated))
        return reifier

    # --- terms ------------------------------------------------------------------------------------------------------

    def term(self) -> syntax.TermNode:
        """VarOrTerm."""
        token = self.tokens[self.index]
        kind, start = token.kind, token.start
        if kind == "variable":
            return self.variable()
        if kind in ("iri", "pname"):
            return self.iri()
        if kind == "string":
            return self.literal()
        if kind == "number":
            self.index += 1
            return syntax.NumberNode(start, token.end, token.text)
        if kind == "blank":
            self.index += 1
            return syntax.BlankNode(start, token.end, decoded(self.text, token)[2:])
        if token.keyword in ("TRUE", "FALSE"):
            self.index += 1
            return syntax.BooleanNode(start, token.end, token.text)
        if self.at("<<("):
            return self.triple_term()
        if self.at("[", "("):  # ANON or NIL: the only brackets that are terms
            closing = self.tokens[self.index + 1]
            if closing.is_mark("]" if token.text == "[" else ")"):
                self.index += 2
                return (
                    self._fresh(start)
                    if token.text == "["
                    else syntax.IriNode(start, closing.end, NIL)
                )
        raise self.unexpected("a variable or an RDF term")

    def literal(self) -> syntax.LiteralNode:
        """RDFLiteral, from its string on."""
        token = self.next()
        language = datatype = None
        if self.token.kind == "language":
            language = self.next().text[1:]
        elif self.take_mark("^^"):
            datatype = self.iri("the IRI of a datatype")
        return syntax.LiteralNode(token.start, self.end, token.text, language, datatype)

    def _fresh(self, start: int | None = None) -> syntax.BlankNode:
        self._blanks += 1
        place = self.token.start if start is None else start
        return syntax.BlankNode(place, place, f".{self._blanks - 1}")

    # --- property paths ---------------------------------------------------------------------------------------------

    def _path(self) -> syntax.PathNode:
        """Path: alternatives of sequences."""
        start = self.token.start
        ways = [self._sequence()]
        while self._take_other("|"):
            ways.append(self._sequence())
        return ways[0] if len(ways) == 1 else syntax.PathAlternative(start, self.end, tuple(ways))

    def _sequence(self) -> syntax.PathNode:
        start = self.token.start
        steps = [self._step()]
        while self._take_other("/"):
            steps.append(self._step())
        return steps[0] if len(steps) == 1 else syntax.PathSequence(start, self.end, tuple(steps))

    def _step(self) -> syntax.PathNode:
        """PathEltOrInverse."""
        start = self.token.start
        inverse = self._take_other("^")
        first = self.token.start
        if self.at("("):
            self.deeper()
            self.index += 1
            path = self._path()
            self.need(")", "at the end of the path")
            self.depth -= 1
        elif self._take_other("!"):
            path = self._negation(self.tokens[self.index - 1].start)
        else:
            path = self._name()
        if self.token.kind == "other" and self.token.text in ("*", "+", "?"):
            path = syntax.PathRepetition(first, self.token.end, path, self.next().text)
        return syntax.PathInverse(start, self.end, path) if inverse else path

    def _negation(self, start: int) -> syntax.PathNode:
        members: list[syntax.IriNode | syntax.PathInverse] = []
        if not self.take_mark("("):
            members.append(self._member())
        elif not self.take_mark(")"):
            members.append(self._member())
            while self._take_other("|"):
                members.append(self._member())
            self.need(")", "at the end of the negated properties")
        return syntax.PathNegation(start, self.end, tuple(members))

    def _member(self) -> syntax.IriNode | syntax.PathInverse:
        start = self.token.start
        if self._take_other("^"):
            name = self._name()
            return syntax.PathInverse(start, name.end, name)
        return self._name()

    def _take_other(self, sign: str) -> bool:
        token = self.tokens[self.index]
        found = token.kind == "other" and token.text == sign
        self.index += found
        return found


def _made(subject: syntax.TermNode, predicate: str, object: syntax.TermNode) -> syntax.TripleNode:
    """A triple that a short notation expands to."""
    start, end = min(subject.start, object.start), max(subject.end, object.end)
    return syntax.TripleNode(start, end, subject, syntax.IriNode(start, start, predicate), object)
