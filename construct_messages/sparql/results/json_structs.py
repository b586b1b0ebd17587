"""Decodes the solutions of a JSON result by msgspec: one struct per solution, with a field for each variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from construct_messages.rdf.errors import TermError
from construct_messages.rdf.regex import regex
from construct_messages.rdf.terms import (
    NEEDS_ESCAPE,
    UNBOUND,
    USUAL_IRI,
    Lenience,
    Term,
    blank,
    iri,
    literal,
    triple,
)
from construct_messages.sparql.results import DEEPEST, OPAQUE, accepted, checked_iri


class _Strict(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A member with another name, such as `lang`, is an error: without it, this would be another term."""


class _Iri(_Strict, tag_field="type", tag="uri", gc=False):
    value: str


class _Blank(_Strict, tag_field="type", tag="bnode", gc=False):
    value: str


class _Literal(_Strict, tag_field="type", tag="literal", gc=False):
    value: str
    datatype: str | None = None
    language: str | None = msgspec.field(default=None, name="xml:lang")
    direction: str | None = msgspec.field(default=None, name="its:dir")


class _TypedLiteral(_Literal, tag_field="type", tag="typed-literal", gc=False):
    """The type of literals with a datatype in drafts of the first edition; Virtuoso still uses it."""


class _Parts(_Strict, gc=False):
    """The terms of a triple term by the names of RDF 1.2, or by those of RDF4J, GraphDB and Stardog."""

    subject: _Value | None = None
    predicate: _Value | None = None
    object: _Value | None = None
    s: _Value | None = None
    p: _Value | None = None
    o: _Value | None = None

    def terms(self) -> tuple[_Value, _Value, _Value]:
        names = _LONG if self.s is self.p is self.o is None else _SHORT
        first, second, third = (getattr(self, name) for name in names)
        given = [name for name in (*_LONG, *_SHORT) if getattr(self, name) is not None]
        if first is None or second is None or third is None or len(given) > len(names):
            raise TermError(f"a triple term of {', '.join(given) or 'nothing'}")
        return first, second, third


class _Triple(_Strict, tag_field="type", tag="triple", gc=False):
    value: _Parts


class _Statement(_Parts, tag_field="type", tag="statement", gc=False):
    """A triple term of Stardog, with the graph that has the triple, which is no part of the term."""

    value: _Parts | None = None
    g: msgspec.Raw = msgspec.Raw()


_Value: TypeAlias = _Iri | _Blank | _Literal | _TypedLiteral | _Triple | _Statement

_LONG: Final = ("subject", "predicate", "object")
_SHORT: Final = ("s", "p", "o")

_CLOSE: Final = " )>>"
_value = attrgetter("value")
_literal_kind = attrgetter("datatype", "language", "direction")
_IRIS: Final = regex(rf"{USUAL_IRI}(?:\n{USUAL_IRI})*+")


class StructReader:
    """Decodes solutions."""

    def __init__(
        self,
        variables: Sequence[str],
        declared: Sequence[str],
        scope: str,
        lenience: Lenience | None,
    ) -> None:
        self._scope, self._lenience = scope, lenience
        self._columns = [attrgetter(f"v{index}") for index in range(len(variables))]
        self._suffixes = _Suffixes()
        self._decoder = _decoder(variables, declared)

    def read(self, text: bytes) -> list[Any]:
        """Decodes a JSON array of solutions.

        Raises:
            ValueError: the text is not JSON, or its values are not solutions for these variables.
        """
        try:
            return self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(str(error)) from error

    def terms(self, solutions: list[Any], column: int) -> Iterable[Term]:
        """Returns the terms of a column of decoded solutions; they are created when they are iterated over.

        Raises:
            TermError: one is not a term. Iteration raises it in the place of the term.
        """
        values = list(map(self._columns[column], solutions))
        return self._alike(values) or map(partial(accepted, self._lenience, self._term), values)

    def _alike(self, values: list[Any]) -> list[Term] | None:
        """The terms of a column of one kind without corrections; None for any other column."""
        kinds = set(map(type, values))
        if kinds == {_Iri}:
            texts = list(map(_value, values))
            text = "\n".join(texts)
            is_usual = text.count("\n") == len(texts) - 1 and OPAQUE[1:] not in text
            if is_usual and _IRIS.fullmatch(text):
                return [Term(f"<{text}>") for text in texts]
        elif kinds <= {_Literal, _TypedLiteral}:
            texts = list(map(_value, values))
            if not NEEDS_ESCAPE.search("".join(texts)):
                try:
                    suffixes = list(map(self._suffixes.__getitem__, map(_literal_kind, values)))
                except TermError:
                    return None  # term by term, to count it, or to find the number of its solution
                return [
                    Term(f'"{text}"{suffix}') for text, suffix in zip(texts, suffixes, strict=True)
                ]
        return None

    def _term(self, value: _Value | None) -> Term:
        match value:
            case None:
                return UNBOUND
            case _Iri():
                return checked_iri(iri(value.value, encode=True, lenience=self._lenience))
            case _Blank():
                return blank(value.value, self._scope)
            case _Literal():
                return literal(
                    value.value,
                    datatype=value.datatype,
                    language=value.language,
                    direction=value.direction,
                    lenience=self._lenience,
                )
            case _Triple() | _Statement():
                return self._triple(value)

    def _triple(self, value: _Value) -> Term:
        """Returns a triple term, without recursion and without copying it for each enclosing term.

        Only its object can be a triple term, too (RDF 1.2 Concepts, section 3.1).
        """
        opened: list[str] = []
        while isinstance(value, _Triple | _Statement):
            if len(opened) == DEEPEST:
                raise TermError(f"more than {DEEPEST} triple terms are nested")
            parts = (value.value or value) if isinstance(value, _Statement) else value.value
            *others, value = parts.terms()
            subject, predicate = (
                Term("<<(") if isinstance(part, _Triple | _Statement) else self._term(part)
                for part in others
            )
            opened.append(triple(subject, predicate, UNBOUND).removesuffix(_CLOSE))
        return Term("".join((*opened, self._term(value), _CLOSE * len(opened))))


def _decoder(variables: Sequence[str], declared: Sequence[str]) -> msgspec.json.Decoder[list[Any]]:
    """Returns a decoder of solutions; a value for an unknown variable is an error.

    Its field for the first variable is `v0`, and so on.
    """
    others = [name for name in declared if name not in variables]
    names = {f"v{index}": name for index, name in enumerate((*variables, *others))}
    kinds = [*[_Value | None] * len(variables), *[msgspec.Raw] * len(others)]
    fields = [(field, kind, None) for field, kind in zip(names, kinds, strict=True)]
    solution = msgspec.defstruct(
        "Solution", fields, rename=names, gc=False, forbid_unknown_fields=True
    )
    return msgspec.json.Decoder(list[solution])  # type: ignore[valid-type] # made above


class _Suffixes(dict[tuple[str | None, str | None, str | None], str]):
    """The text after a literal's closing quote, by its datatype, language and direction."""

    def __missing__(self, kind: tuple[str | None, str | None, str | None]) -> str:
        datatype, language, direction = kind
        suffix = self[kind] = literal(
            "", datatype=datatype, language=language, direction=direction
        )[2:]
        return suffix
