"""The characters of terms by column: of IRIs without brackets, of literals without quotes, and what kind each term is.

A column whose terms are all of one kind, as most are, is taken apart at once. RDF 1.2 Concepts, section 3. No types.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from construct_messages.columns.arrow import arrow
from construct_messages.terms import RDF, XSD, unescape


class TermKind(NamedTuple):
    """A kind of term.

    Args:
        name: `"iri"`, `"blank node"`, `"triple term"` or `"literal"`.
        datatype: the IRI of the datatype of literals.
        language: the language tag of literals, with `--` and the base direction where there is one.
    """

    name: str
    datatype: str | None = None
    language: str | None = None


IRI: Final = TermKind("iri")
BLANK: Final = TermKind("blank node")
TRIPLE: Final = TermKind("triple term")
_MOST_KINDS: Final = (
    1 << 12
)  # that are kept: a source may have a datatype of its own for each value


class Characters:
    """A column of terms, taken apart.

    Args:
        array: an array of Arrow of the characters of IRIs and literals, the labels of blank nodes with `_:`, and triple
            terms as they are; null is unbound.
        kind: the one kind of all that are bound; None: they are of several, or none is bound.
        kinds: the kind of each; None: they are of one.
        text: lines that are the characters of all that are bound, between `opening` and `ending`.
        opening, ending: what each line begins and ends with.
    """

    def __init__(
        self,
        array: Any,
        kind: TermKind | None,
        kinds: list[TermKind | None] | None,
        text: bytes,
        opening: bytes = b"",
        ending: bytes = b"",
    ) -> None:
        self.array, self.kind, self._kinds = array, kind, kinds
        self._text, self._opening, self._ending = text, opening, ending

    def __len__(self) -> int:
        return len(self.array)

    @property
    def forms(self) -> list[str | None]:
        """The characters of each; None: unbound."""
        forms: list[str | None] = self.array.to_pylist()
        return forms

    @property
    def kinds(self) -> list[TermKind | None]:
        """The kind of each; None: unbound."""
        if self._kinds is None:
            self._kinds = (
                [None if form is None else self.kind for form in self.forms]
                if self.array.null_count
                else [self.kind] * len(self)
            )
        return self._kinds

    @property
    def counts(self) -> dict[TermKind, int]:
        """How many terms are of each kind."""
        if self._kinds is None and self.kind is not None:
            return {self.kind: len(self) - self.array.null_count}
        return Counter(kind for kind in self.kinds if kind is not None)

    def all_match(self, form: str) -> bool:
        """Whether the characters of all that are bound match a regular expression. False may be wrong."""
        return _lines(self._opening, form, self._ending).fullmatch(self._text) is not None


@lru_cache(maxsize=256)
def _lines(opening: bytes, form: str, ending: bytes) -> re.Pattern[bytes]:
    line = re.escape(opening) + b"(?:" + form.encode() + b")" + re.escape(ending)
    return re.compile(b"(?:" + line + b"(?:\\n" + line + b")*+)?")


def characters(terms: Sequence[bytes]) -> Characters:
    r"""Takes a column of terms apart; the empty string is unbound.

    >>> column = characters([b'"1"^^<http://www.w3.org/2001/XMLSchema#int>', b"", b'"2"^^<http://www.w3.org/2001/XMLSchema#int>'])
    >>> column.forms, column.kind.datatype
    (['1', None, '2'], 'http://www.w3.org/2001/XMLSchema#int')
    >>> characters([b'"a\\"b"@en', b"_:b", b"<urn:x>"]).forms
    ['a"b', '_:b', 'urn:x']
    """
    pa = arrow()
    bound = terms if all(terms) else [term for term in terms if term]
    if not bound:
        return Characters(pa.nulls(len(terms), pa.string()), None, [None] * len(terms), b"")
    # no term contains a line break
    text = b"\n".join(bound)
    found = _one_kind(bound, text)
    if found is None:
        return _of_several_kinds(terms)
    opening, ending, kind = found
    whole = terms if bound is terms else [term or None for term in terms]
    # slices of bytes take a third of the time of those of characters
    array = pa.array(whole, pa.string()).view(pa.binary())
    array = pa.compute.binary_slice(array, len(opening), -len(ending)).view(pa.string())
    return Characters(array, kind, None, text, opening, ending)


def _one_kind(terms: Sequence[bytes], text: bytes) -> tuple[bytes, bytes, TermKind] | None:
    """What terms begin and end with, and their kind; None: they are of several, or not seen to be of one.

    Args:
        terms: none of them is unbound.
        text: the terms as lines.
    """
    joints = len(terms) - 1
    if text.startswith(b"<"):
        if b"<<(" in text or not text.endswith(b">") or text.count(b">\n<") != joints:
            return None
        return b"<", b">", IRI
    if text.startswith(b'"') and b"\\" not in text:
        ending = terms[0][terms[0].rindex(b'"') :]
        # no quote is within a literal, as it would be escaped
        if text.endswith(ending) and text.count(ending + b'\n"') == joints:
            return b'"', ending, kind_of(ending)
    return None


def _of_several_kinds(terms: Sequence[bytes]) -> Characters:
    forms: list[bytes | None] = []
    kinds: list[TermKind | None] = []
    known: dict[bytes, TermKind] = {}
    for term in terms:
        form: bytes | None = term
        kind: TermKind | None = None
        if term.startswith(b'"'):
            end = term.rindex(b'"')
            form, ending = term[1:end], term[end:]
            if b"\\" in form:
                form = unescape(form.decode()).encode()
            kind = known.get(ending)
            if kind is None:
                kind = kind_of(ending)
                if len(known) < _MOST_KINDS:
                    known[ending] = kind
        elif term.startswith(b"<<("):
            kind = TRIPLE
        elif term.startswith(b"<"):
            form, kind = term[1:-1], IRI
        elif term:
            kind = BLANK
        else:
            form = None
        forms.append(form)
        kinds.append(kind)
    different = {kind for kind in kinds if kind is not None}
    array = arrow().array(forms, arrow().string())
    text = b"\n".join([form for form in forms if form is not None])
    return Characters(array, different.pop() if len(different) == 1 else None, kinds, text)


def kind_of(ending: bytes) -> TermKind:
    """Returns the kind of literals that end so, from their last quote on.

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
