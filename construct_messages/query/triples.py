"""Triples in query text: the template's grammar, read from tokens by recursive descent.

SPARQL 1.2 Query, section 19.8, ConstructTriples and below, with reifiers and annotations as section 4.3 expands them;
beside that only what Apache Jena adds: `GRAPH name { … }` and `{ … }` (default graph), separated as in SPARQL Update's
Quads. Everything legal is read, also triples that no message can hold (`Template` drops them); all else is refused.
Nothing outside the template is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from construct_messages.errors import QueryError, TermError
from construct_messages.query.prologue import Prologue
from construct_messages.query.tokens import Token, closing, decoded, error
from construct_messages.template import Blank, Constant, Nested, Pattern, Slot, Variable, legal
from construct_messages.terms import RDF, boolean, iri, literal, number, triple, unescape

T = TypeVar("T")

_TYPE: Final = Constant(iri(RDF + "type"))
_FIRST: Final = Constant(iri(RDF + "first"))
_REST: Final = Constant(iri(RDF + "rest"))
_NIL: Final = Constant(iri(RDF + "nil"))
_REIFIES: Final = Constant(iri(RDF + "reifies"))

_MOST_NESTED: Final = 100  # the reader's own stack; deeper nodes can be named
_PATH: Final = ("/", "|", "^", "*", "+", "?", "!")


def read_triples(
    text: str, tokens: Sequence[Token], opening: int, prologue: Prologue
) -> tuple[tuple[str, ...], tuple[Pattern, ...]]:
    """The variables, by first appearance, and the triples of the template or short-form pattern in `{ … }`.

    Args:
        opening: the index of its `{`.

    Raises:
        QueryError: an illegal template, at the first token that cannot stand where it stands.

    >>> from construct_messages.query.tokens import tokenize
    >>> text = "{ ?x a [] }"
    >>> read_triples(text, tokenize(text), 0, Prologue(None, {}, {}, frozenset()))[0]
    ('x',)
    """
    reader = _Reader(text, tokens[opening + 1 : closing(tokens, opening) + 1], prologue)
    reader.quads()
    return tuple(reader.variables), tuple(reader.patterns)


class _Reader:
    """One template; each method reads one rule of the grammar and adds the triples it stands for."""

    def __init__(self, text: str, tokens: Sequence[Token], prologue: Prologue) -> None:
        self._text = text
        self._tokens = tokens
        self._prologue = prologue
        self._next = 0
        self._depth = 0
        self._graph: Slot | None = None
        self._labels: dict[str, Blank] = {}
        self._blanks = 0
        self.variables: dict[str, int] = {}
        self.patterns: list[Pattern] = []

    # --- tokens -----------------------------------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _at(self, *marks: str) -> bool:
        return self._token.is_mark(*marks)

    def _take(self, *marks: str) -> bool:
        if not self._at(*marks):
            return False
        self._next += 1
        return True

    def _need(self, mark: str, where: str) -> None:
        if not self._take(mark):
            raise self._refused(f"expected {mark} {where}")

    def _refused(self, expected: str) -> QueryError:
        token = self._token
        hint = "property paths cannot stand in a template" if token.text in _PATH else None
        found = "an unclosed string" if token.kind == "unclosed" else token.text
        return error(self._text, token.start, f"{expected}, found {found}", hint)

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            message = f"the template nests more than {_MOST_NESTED} deep"
            raise error(
                self._text, self._token.start, message, "name inner nodes by blank node labels"
            )

    # --- quads and triples ------------------------------------------------------------------------------------------

    def quads(self) -> None:
        """TriplesTemplate? ( QuadsNotTriples '.'? TriplesTemplate? )* '}', Jena's ConstructQuads."""
        self._triples()
        while not self._at("}"):
            if self._token.keyword == "GRAPH":
                self._next += 1
                self._graph = self._graph_name()
                self._need("{", "behind the name of the graph")
            elif not self._take("{"):
                raise self._refused("expected a full stop or the end of the template")
            self._triples()
            self._need("}", "or a full stop")
            self._graph = None
            self._take(".")
            self._triples()

    def _graph_name(self) -> Slot:
        if self._token.kind in ("variable", "iri", "pname", "blank") or self._at("["):
            return self._term()
        raise self._refused("expected a variable, an IRI or a blank node as the name of the graph")

    def _triples(self) -> None:
        while not (self._at("{", "}") or self._token.keyword == "GRAPH"):
            self._same_subject()
            if not self._take("."):
                return

    def _same_subject(self) -> None:
        if self._at("<<"):
            subject, alone = self._reified(), True
        elif self._at("(", "["):
            subject, alone = self._node()
        else:
            subject, alone = self._term(), False
        if not alone or self._at_verb():
            self._properties(subject)

    def _at_verb(self) -> bool:
        return self._token.kind in ("variable", "iri", "pname") or self._token.text == "a"

    def _verb(self) -> Slot:
        token = self._token
        if token.text == "a":
            self._next += 1
            return _TYPE
        if not self._at_verb():
            raise self._refused("expected a predicate: a variable, an IRI or a")
        return self._term()

    def _properties(self, subject: Slot) -> None:
        """PropertyListNotEmpty."""
        while True:
            predicate = self._verb()
            self._object(subject, predicate)
            while self._take(","):
                self._object(subject, predicate)
            if not self._at(";"):
                return
            while self._take(";"):
                pass
            if not self._at_verb():
                return

    def _object(self, subject: Slot, predicate: Slot) -> None:
        """Object: a node with its annotations."""
        # the triple comes before those of its object, as in the text
        place = len(self.patterns)
        object = self._graph_node()
        self.patterns.insert(place, Pattern(subject, predicate, object, self._graph))
        stated = self._nested(subject, predicate, object)
        reifier: Slot | None = None
        while self._at("~", "{|"):
            if self._at("~"):
                reifier = self._reifier(stated)
                continue
            self._deeper()
            self._next += 1
            self._properties(self._reify(self._fresh(), stated) if reifier is None else reifier)
            self._need("|}", "at the end of the annotation")
            self._depth -= 1
            reifier = None  # a second block is about another reifier

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _graph_node(self) -> Slot:
        if self._at("<<"):
            return self._reified()
        if self._at("(", "["):
            return self._node()[0]
        return self._term()

    def _node(self) -> tuple[Slot, bool]:
        """A node in brackets, and whether it may stand as a statement of its own."""
        self._deeper()
        if self._take("["):
            node: Slot = self._fresh()
            alone = not self._at("]")
            if alone:
                self._properties(node)
            self._need("]", "at the end of the blank node")
        else:
            self._next += 1
            alone = not self._at(")")
            node = self._collection()
        self._depth -= 1
        return node, alone

    def _collection(self) -> Slot:
        if self._take(")"):
            return _NIL
        first = cell = self._fresh()
        while True:
            place = len(self.patterns)
            self.patterns.insert(place, Pattern(cell, _FIRST, self._graph_node(), self._graph))
            if self._take(")"):
                self._add(cell, _REST, _NIL)
                return first
            rest = self._fresh()
            self._add(cell, _REST, rest)
            cell = rest

    def _reified(self) -> Slot:
        """ReifiedTriple: `<< s p o ~ reifier >>` is its reifier."""
        self._deeper()
        self._next += 1
        subject, predicate, object = (
            self._inner(reified=True),
            self._verb(),
            self._inner(reified=True),
        )
        stated = self._nested(subject, predicate, object)
        reifier = self._reifier(stated) if self._at("~") else self._reify(self._fresh(), stated)
        self._need(">>", "at the end of the reified triple")
        self._depth -= 1
        return reifier

    def _inner(self, *, reified: bool) -> Slot:
        """Subject or object of a reified triple or a triple term: what is in brackets cannot stand there."""
        if reified and self._at("<<"):
            return self._reified()
        opening = self._next
        slot = self._term()
        if slot is _NIL:
            self._next = opening
            raise self._refused("a collection cannot stand in a triple term or reified triple")
        return slot

    def _reifier(self, stated: Slot) -> Slot:
        self._next += 1
        named = self._token.kind in ("variable", "iri", "pname", "blank") or self._at("[")
        return self._reify(self._term() if named else self._fresh(), stated)

    def _reify(self, reifier: Slot, stated: Slot) -> Slot:
        self._add(reifier, _REIFIES, stated)
        return reifier

    def _triple_term(self) -> Slot:
        self._deeper()
        self._next += 1
        subject, predicate, object = (
            self._inner(reified=False),
            self._verb(),
            self._inner(reified=False),
        )
        self._need(")>>", "at the end of the triple term")
        self._depth -= 1
        return self._nested(subject, predicate, object)

    # --- terms ------------------------------------------------------------------------------------------------------

    def _term(self) -> Slot:
        """VarOrTerm."""
        token = self._token
        read = self._terms.get(token.kind)
        if read:
            self._next += 1
            return read(self, token)
        if token.keyword in ("TRUE", "FALSE"):
            self._next += 1
            return Constant(boolean(token.text))
        if self._at("<<("):
            return self._triple_term()
        if self._at("[", "("):
            return self._empty_brackets()
        raise self._refused("expected a variable or an RDF term")

    def _empty_brackets(self) -> Slot:
        """ANON or NIL: the only brackets that are terms."""
        opening = self._next
        anonymous = self._take("[")
        if not anonymous:
            self._next += 1
        if not self._take("]" if anonymous else ")"):
            self._next = opening
            raise self._refused("expected a variable or an RDF term")
        return self._fresh() if anonymous else _NIL

    def _variable(self, token: Token) -> Slot:
        name = decoded(self._text, token)[1:]
        return Variable(self.variables.setdefault(name, len(self.variables)))

    def _iri(self, token: Token) -> Slot:
        return Constant(self._prologue.iri(self._text, token))

    def _label(self, token: Token) -> Slot:
        label = decoded(self._text, token)
        if label not in self._labels:
            self._labels[label] = self._fresh()
        return self._labels[label]

    def _number(self, token: Token) -> Slot:
        return Constant(number(token.text))

    def _literal(self, token: Token) -> Slot:
        quotes = 3 if token.text.startswith(('"""', "'''")) else 1
        value = self._legal(token, unescape, token.text[quotes:-quotes])
        suffix = self._token
        if suffix.kind == "language":
            self._next += 1
            language, _, direction = suffix.text[1:].partition("--")
            return Constant(
                self._legal(suffix, literal, value, language=language, direction=direction or None)
            )
        if self._take("^^"):
            if self._token.kind not in ("iri", "pname"):
                raise self._refused("expected the IRI of a datatype")
            suffix = self._token
            self._next += 1
            return Constant(literal(value, datatype=self._prologue.iri(self._text, suffix)[1:-1]))
        return Constant(self._legal(token, literal, value))

    def _legal(
        self, token: Token, make: Callable[..., T], *values: str, **options: str | None
    ) -> T:
        try:
            return make(*values, **options)
        except TermError as problem:
            raise error(self._text, token.start, problem.message, problem.hint) from None

    _terms: Final[dict[str, Callable[[_Reader, Token], Slot]]] = {
        "variable": _variable,
        "iri": _iri,
        "pname": _iri,
        "blank": _label,
        "number": _number,
        "string": _literal,
    }

    # --- what they build --------------------------------------------------------------------------------------------

    def _add(self, subject: Slot, predicate: Slot, object: Slot) -> None:
        self.patterns.append(Pattern(subject, predicate, object, self._graph))

    def _fresh(self) -> Blank:
        self._blanks += 1
        return Blank(self._blanks - 1)

    def _nested(self, subject: Slot, predicate: Slot, object: Slot) -> Slot:
        nested = Nested(subject, predicate, object)
        match nested:
            case Nested(Constant(s), Constant(p), Constant(o)) if legal(nested, "object"):
                return Constant(triple(s, p, o))
        return nested  # also of constants: what can never be legal shows in its parts
