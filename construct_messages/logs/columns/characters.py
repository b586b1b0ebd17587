"""The characters of terms by column: IRIs without brackets, literals without quotes, and the kind of each term.

A column whose terms are all of one kind, as usual, is converted at once. RDF 1.2 Concepts, section 3. No types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from construct_messages.logs.columns.arrow import arrow
from construct_messages.rdf.terms import RDF, XSD, unescape


class TermKind(NamedTuple):
    """A kind of term.

    Args:
        name: `"iri"`, `"blank node"`, `"triple term"` or `"literal"`.
        datatype: the IRI of the datatype of literals.
        language: the language tag of literals, with `--` and the base direction if there is one.
    """

    name: str
    datatype: str | None = None
    language: str | None = None


IRI: Final = TermKind("iri")
BLANK: Final = TermKind("blank node")
TRIPLE: Final = TermKind("triple term")
_MOST_KINDS: Final = (
    1 << 12
)  # the most kinds that are cached: a source may have a different datatype for each value


class Characters:
    """A column of terms as characters and kinds.

    Args:
        array: an array of Arrow of the characters of IRIs and literals, the labels of blank nodes with `_:`, and triple
            terms as they are; null is unbound.
        kind: the kind of all bound terms; None: there are several kinds, or no bound terms.
        kinds: the kind of each term; None: all have the same kind.
    """

    def __init__(
        self, array: Any, kind: TermKind | None, kinds: list[TermKind | None] | None = None
    ) -> None:
        self.array, self.kind, self._kinds = array, kind, kinds

    def __len__(self) -> int:
        return len(self.array)

    @property
    def forms(self) -> list[str | None]:
        """The characters of each term; None: unbound."""
        forms: list[str | None] = self.array.to_pylist()
        return forms

    @property
    def kinds(self) -> list[TermKind | None]:
        """The kind of each term; None: unbound."""
        if self._kinds is None:
            self._kinds = (
                [None if form is None else self.kind for form in self.forms]
                if self.array.null_count
                else [self.kind] * len(self)
            )
        return self._kinds

    @property
    def counts(self) -> dict[TermKind, int]:
        """The number of terms of each kind."""
        if self._kinds is None and self.kind is not None:
            return {self.kind: len(self) - self.array.null_count}
        return Counter(kind for kind in self.kinds if kind is not None)


def term_array(terms: Sequence[bytes]) -> Any:
    """Returns terms as an array of Arrow; the empty string is unbound, and null there.

    >>> term_array([b"<urn:a>", b""]).to_pylist()
    ['<urn:a>', None]
    """
    pa, compute = arrow(), arrow("compute")
    array = pa.array(terms, pa.binary())
    if compute.min(compute.binary_length(array)).as_py() == 0:
        array = compute.if_else(compute.equal(array, b""), None, array)
    # checking the UTF-8 of all terms at once is faster than one by one
    return array.cast(pa.string())


def held(array: Any) -> bytes:
    """Returns the joined characters of an array of strings that is not a slice of another one."""
    data = array.buffers()[2]
    return b"" if data is None else bytes(data)


def characters(terms: Any) -> Characters:
    r"""Converts a column of terms to characters and kinds.

    Args:
        terms: see `term_array`.

    >>> column = characters(term_array([b'"1"^^<http://www.w3.org/2001/XMLSchema#int>', b""]))
    >>> column.forms, column.kind.datatype
    (['1', None], 'http://www.w3.org/2001/XMLSchema#int')
    >>> characters(term_array([b'"a\\"b"@en', b"_:b", b"<urn:x>"])).forms
    ['a"b', '_:b', 'urn:x']
    """
    pa = arrow()
    if terms.null_count == len(terms):
        return Characters(terms, None, [None] * len(terms))
    found = _one_kind(terms)
    if found is None:
        return _of_several_kinds(terms)
    size, kind = found
    # slices of bytes take a third of the time of those of characters
    array = arrow("compute").binary_slice(terms.view(pa.binary()), 1, -size)
    return Characters(array.view(pa.string()), kind)


def _one_kind(terms: Any) -> tuple[int, TermKind] | None:
    """The bytes after the characters of terms, and their kind; None: there may be several kinds."""
    compute = arrow("compute")

    data = held(terms)
    if data.startswith(b"<"):
        are_iris = b"<<(" not in data and compute.all(compute.starts_with(terms, "<")).as_py()
        return (1, IRI) if are_iris else None
    if data.startswith(b'"') and b"\\" not in data:
        first = next(filter(None, map(_text, terms)))
        ending = first[first.rindex('"') :]
        # literals have no quotes inside, as these are escaped, and IRIs have none
        if compute.all(compute.ends_with(terms, ending)).as_py():
            return len(ending.encode()), kind_of(ending.encode())
    return None


def _text(scalar: Any) -> str | None:
    text: str | None = scalar.as_py()
    return text


def _of_several_kinds(terms: Any) -> Characters:
    forms: list[str | None] = []
    kinds: list[TermKind | None] = []
    known: dict[str, TermKind] = {}
    for term in terms.to_pylist():
        form: str | None = term
        kind: TermKind | None = None
        if term is None:
            pass
        elif term.startswith('"'):
            end = term.rindex('"')
            form, ending = unescape(term[1:end]), term[end:]
            kind = known.get(ending)
            if kind is None:
                kind = kind_of(ending.encode())
                if len(known) < _MOST_KINDS:
                    known[ending] = kind
        elif term.startswith("<<("):
            kind = TRIPLE
        elif term.startswith("<"):
            form, kind = term[1:-1], IRI
        else:
            kind = BLANK
        forms.append(form)
        kinds.append(kind)
    different = {kind for kind in kinds if kind is not None}
    array = arrow().array(forms, arrow().string())
    return Characters(array, different.pop() if len(different) == 1 else None, kinds)


def kind_of(ending: bytes) -> TermKind:
    """Returns the kind of literals by their text from the last quote on.

    >>> kind_of(b'"@ar--rtl')
    TermKind(name='literal', datatype='http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString', language='ar--rtl')
    """
    text = ending.decode()
    if text == '"':
        return TermKind("literal", f"{XSD}string")
    if text.startswith('"@'):
        name = "dirLangString" if "--" in text else "langString"
        return TermKind("literal", RDF + name, text[2:])
    return TermKind("literal", text[4:-1])
