"""The characters of terms by column: of IRIs without brackets, of literals without quotes, and what kind each term is.

A column whose terms are all of one kind, as most are, is taken apart at once. RDF 1.2 Concepts, section 3. No types.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Final, NamedTuple

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


class Characters(NamedTuple):
    """A column of terms, taken apart; None is unbound.

    Args:
        forms: the characters of IRIs and literals, the label of blank nodes with `_:`, and triple terms as they are.
        kinds: the kind of each.
        kind: the one kind of all that are bound; None: they are of several, or none is bound.
    """

    forms: list[bytes | None]
    kinds: Sequence[TermKind | None]
    kind: TermKind | None


def characters(terms: Sequence[bytes]) -> Characters:
    r"""Takes a column of terms apart; the empty string is unbound.

    >>> column = characters([b'"1"^^<http://www.w3.org/2001/XMLSchema#int>', b"", b'"2"^^<http://www.w3.org/2001/XMLSchema#int>'])
    >>> column.forms, column.kind.datatype
    ([b'1', None, b'2'], 'http://www.w3.org/2001/XMLSchema#int')
    >>> characters([b'"a\\"b"@en', b"_:b", b"<urn:x>"]).forms
    [b'a"b', b'_:b', b'urn:x']
    """
    bound = terms if all(terms) else [term for term in terms if term]
    if not bound:
        return Characters([None] * len(terms), [None] * len(terms), None)
    found = _of_one_kind(bound)
    if found is None:
        return _of_several_kinds(terms)
    forms, kind = found
    if len(bound) == len(terms):
        return Characters(forms, _Repeated(kind, len(terms)), kind)
    rest = iter(forms)
    return Characters(
        [next(rest) if term else None for term in terms],
        [kind if term else None for term in terms],
        kind,
    )


class _Repeated(Sequence[TermKind | None]):
    """A kind as often as there are terms."""

    def __init__(self, kind: TermKind, count: int) -> None:
        self._kind, self._count = kind, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int | slice) -> TermKind | list[TermKind]:  # type: ignore[override] # both of a Sequence
        return list(repeat(self._kind, self._count))[place]


def _of_one_kind(terms: Sequence[bytes]) -> tuple[list[bytes | None], TermKind] | None:
    """The characters of terms and their kind; None: they are of several, or not seen to be of one."""
    # no term contains a line break
    text = b"\n".join(terms)
    count = len(terms)
    if text.startswith(b"<"):
        if b"<<(" in text or not text.endswith(b">") or text.count(b">\n<") != count - 1:
            return None
        return list(text[1:-1].split(b">\n<")), IRI
    if text.startswith(b'"') and b"\\" not in text:
        ending = terms[0][terms[0].rindex(b'"') :]
        if not text.endswith(ending):
            return None
        forms = text[1 : -len(ending)].split(ending + b'\n"')
        # none has a quote, as it would be escaped: so each is a literal
        return (list(forms), kind_of(ending)) if len(forms) == count else None
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
    return Characters(forms, kinds, different.pop() if len(different) == 1 else None)


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
