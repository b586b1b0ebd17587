"""RDF terms: a term **is** its canonical N-Triples string.

`<iri>`, `"x"`, `"x"@en`, `"x"@en--ltr`, `"1"^^<…>`, `_:b0`, `<<( s p o )>>`: RDF 1.2 N-Triples, canonical form
(https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples), with language tags lower-cased so that equal terms are
equal strings. Terms are normalised and checked once, where they enter; inside the package they are spliced, hashed and
compared as they are. Terms are made here; `parsing.py` reads them, and `parsing.py` takes them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NewType

from construct_messages.errors import TermError
from construct_messages.rdf.arguments import wrong_type
from construct_messages.rdf.terms import grammar
from construct_messages.rdf.terms.grammar import (
    BLANK_LABEL,
    RDF,
    XSD,
    compiled,
    escape,
)
from construct_messages.rdf.terms.natives import form_of
from construct_messages.rdf.terms.wellformed import (
    AS_STRING,
    LANGTAG,
    NO_CHARACTER,
    NO_LANGUAGE,
    NOT_IN_IRIREF,
    OUT_OF_PLACE,
    SCHEME,
    SURROGATE,
    UNENDED,
    UNTAGGED,
    Lenience,
    fault_of_iri,
    is_language,
    percent_encoded,
    resolved,
)

# --- resolution -----------------------------------------------------------------------------------
# Resolution of relative IRIs, which is pyoxigraph's: RFC 3986, section 5.2.

_SCHEME: Final = re.compile(grammar.SCHEME)


@lru_cache(maxsize=1024)
def resolve(reference: str, base: str | None, *, lenient: bool = False) -> Term:
    """Resolves a reference to an IRI. `reference`: an absolute or relative IRI without brackets, escapes decoded.
    `lenient`: whether to resolve a relative reference even if it, or its base, is malformed.

    >>> resolve("#me", "http://example.org/card")
    '<http://example.org/card#me>'
    """
    if base is None or _SCHEME.match(reference):
        return iri(reference)
    return Term(f"<{resolved(reference, base, lenient=lenient)}>")


# --- canonical ------------------------------------------------------------------------------------

Term = NewType("Term", str)
"""A canonical N-Triples term. Build one with the functions of this module, never by hand."""

UNBOUND: Final = Term("")
"""The value of an unbound variable in a solution: no term is the empty string, and it is falsy."""

# --- making terms ---------------------------------------------------------------------------------------------------


def iri(
    value: str,
    *,
    prefixes: Mapping[str, str] | None = None,
    encode: bool = False,
    lenience: Lenience | None = None,
) -> Term:
    """Creates an IRI term from an absolute IRI.

    Args:
        value: the IRI without angle brackets.
        prefixes: namespace IRIs by prefix, such as those of a `LogReader`. A value such as `foaf:name` is expanded if
            its prefix is one of them.
        encode: percent-encode the characters of a legacy extended IRI, such as spaces, which some endpoints send,
            instead of raising an error; see `percent_encoded`.
        lenience: accepts and counts a malformed IRI; None: it is an error.

    Raises:
        TermError: not an absolute IRI by RFC 3987.

    >>> iri("http://example.org/é")
    '<http://example.org/é>'
    >>> iri("http://example.org/a b", encode=True)
    '<http://example.org/a%20b>'
    >>> iri("foaf:name", prefixes={"foaf": "http://xmlns.com/foaf/0.1/"})
    '<http://xmlns.com/foaf/0.1/name>'
    >>> iri("http://example.org/100%")
    Traceback (most recent call last):
    construct_messages.errors.TermError: <http://example.org/100%> is no IRI: Invalid IRI percent encoding '%'
      hint: percent-encode what no IRI may hold (% itself as %25), or read leniently to pass such IRIs
    """
    if not isinstance(value, str):
        raise wrong_type(
            "iri", "value", value, "str", "pass the IRI as a string, without angle brackets"
        )
    if prefixes is not None:
        if not isinstance(prefixes, Mapping):
            raise wrong_type(
                "iri", "prefixes", prefixes, "Mapping | None", "pass namespace IRIs by their prefix"
            )
        prefix, colon, local = value.partition(":")
        if colon and prefix in prefixes:
            value = prefixes[prefix] + local
    fault = fault_of_iri(value)
    if fault is None:
        return Term(f"<{value}>")
    if encode and not SURROGATE.search(value):
        value = percent_encoded(value)
        fault = fault_of_iri(value)
    if fault is None:
        return Term(f"<{value}>")
    if lenience is not None and (accepted := lenience.iri(value)) is not None:
        return Term(f"<{accepted}>")
    if bad := NOT_IN_IRIREF.search(value):
        raise TermError(
            f"IRI <{value}> holds {bad.group()!r}, which no IRI may",
            hint="percent-encode the character",
            kind="" if UNENDED.search(value) else "an IRI with a character that no IRI may hold",
        )
    if not SCHEME.match(value):
        raise TermError(
            f"IRI <{value}> is relative",
            hint="give a base IRI, or write the IRI in full",
            kind="a relative IRI",
        )
    raise TermError(
        f"<{value}> is no IRI: {fault}",
        hint="percent-encode what no IRI may hold (% itself as %25), or read leniently to pass such IRIs",
        kind="a malformed IRI",
    )


def literal(
    value: object,
    *,
    datatype: str | None = None,
    language: str | None = None,
    direction: str | None = None,
    lenience: Lenience | None = None,
) -> Term:
    """Creates a literal; `datatype` is an IRI without brackets.

    Args:
        value: its characters; or a bool, int, float, Decimal, datetime, date, time, timedelta or bytes, which has its
            own datatype.
        datatype, language, direction: its datatype, language tag and base direction.
        lenience: accepts and counts a malformed language tag or datatype IRI, and a datatype that needs a language tag;
            None: they are errors.

    Raises:
        TermError: a surrogate, a malformed language tag or direction, an invalid datatype IRI, a datatype that needs
            a language tag, or another one beside a tag.

    >>> literal("chat", language="FR")
    '"chat"@fr'
    >>> literal("1", datatype=XSD + "integer")
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> literal("x", datatype=XSD + "string"), literal(1.5)
    ('"x"', '"1.5"^^<http://www.w3.org/2001/XMLSchema#double>')
    """
    if not isinstance(value, str):
        form = None if datatype or language or direction else form_of(value)
        if form is None:
            raise wrong_type(
                "literal", "value", value, "str", f'write it as in literal("{value}", datatype=…)'
            )
        return Term(f'"{form[0]}"^^<{form[1]}>')
    if SURROGATE.search(value):
        raise TermError(
            f"literal {value!r} holds a surrogate, which is not a character", kind=NO_CHARACTER
        )
    text = f'"{escape(value)}"'
    if language:
        if not isinstance(language, str):
            raise wrong_type(
                "literal",
                "language",
                language,
                "str | None",
                "pass a language tag, or leave it out",
            )
        if not is_language(language) and not (
            lenience is not None and lenience.passes_language(language)
        ):
            is_tag = LANGTAG.fullmatch(language) is not None
            hint = (
                "correct the tag, or read leniently to pass such tags"
                if is_tag
                else 'write it as in "chat"@fr'
            )
            raise TermError(f"{language!r} is not a language tag", hint=hint, kind=NO_LANGUAGE)
        if direction and direction not in ("ltr", "rtl"):
            raise TermError(
                f"base direction {direction!r} is neither ltr nor rtl", kind=NO_LANGUAGE
            )
        if datatype is not None and datatype not in _TAGGED:
            raise TermError(
                f"literal {value!r} has the language tag {language!r} and the datatype {datatype!r}"
            )
        return Term(
            f"{text}@{language.lower()}--{direction}" if direction else f"{text}@{language.lower()}"
        )
    if direction:
        raise TermError(f"literal {value!r} has a base direction but no language tag")
    if datatype is None or datatype == XSD + "string":
        return Term(text)
    if not isinstance(datatype, str):
        raise wrong_type(
            "literal", "datatype", datatype, "str | None", "pass its IRI, or leave it out"
        )
    if datatype in _TAGGED:
        return _untagged(text, datatype, lenience)
    try:
        return Term(f"{text}^^{_datatype(datatype)}")
    except TermError:
        return Term(f"{text}^^{iri(datatype, lenience=lenience)}")


_TAGGED: Final = (f"{RDF}langString", f"{RDF}dirLangString")


def _untagged(text: str, datatype: str, lenience: Lenience | None) -> Term:
    """Returns the literal of a datatype that needs a language tag, without one."""
    term = Term(f"{text}^^<{datatype}>")
    if lenience is None or lenience.how == "skip":
        raise TermError(
            f"literal {text} is of the datatype <{datatype}>, and has no language tag",
            hint="read leniently to pass such literals",
            kind=f"a {UNTAGGED[1]}",
        )
    lenience.count(AS_STRING if lenience.how == "strict" else UNTAGGED, term)
    return Term(text) if lenience.how == "strict" else term


@lru_cache(maxsize=1024)
def _datatype(value: str) -> Term:
    return iri(value)


def blank(label: str, scope: str = "") -> Term:
    """Creates a blank node; `scope` (lower-case letters, then digits and `_`) separates labels of different origins.

    A label that N-Triples cannot write is replaced by its hexadecimal form after the scope in upper case, so that the
    mapping is one to one and needs no table.

    Raises:
        TermError: such a label without a scope.

    >>> blank("b0"), blank("b0", "d"), blank("nodeID://b1", "d")
    ('_:b0', '_:db0', '_:D6e6f646549443a2f2f6231')
    """
    if not isinstance(label, str):
        raise wrong_type("blank", "label", label, "str", "pass a string, without _:")
    if compiled(BLANK_LABEL, label.isascii()).fullmatch(label):
        return Term(f"_:{scope}{label}")
    if not scope or not label:
        raise TermError(f"{label!r} is not a blank node label")
    return Term(f"_:{scope.upper()}{label.encode('utf-8', 'surrogatepass').hex()}")


FORBIDDEN: Final[Mapping[str, tuple[str, ...]]] = {
    "subject": ('"', "<<("),
    "predicate": ('"', "<<(", "_:"),
    "object": (),
    "graph": ('"', "<<("),
}
"""The beginnings of terms that are not allowed in each position of a triple, a triple term or a quad."""


def triple(subject: Term, predicate: Term, object: Term, *, generalized: bool = False) -> Term:
    """Creates a triple term of three terms (RDF 1.2 Concepts, section 3.1).

    Args:
        subject, predicate, object: the terms.
        generalized: allow terms in positions that RDF does not allow.

    Raises:
        TermError: a term in a position that RDF does not allow.

    >>> triple(iri("urn:s"), iri("urn:p"), literal("o"))
    '<<( <urn:s> <urn:p> "o" )>>'
    """
    term = Term(f"<<( {subject} {predicate} {object} )>>")
    for position, part in (("subject", subject), ("predicate", predicate), ("object", object)):
        if not isinstance(part, str):
            raise wrong_type(
                "triple",
                position,
                part,
                "a Term",
                "make terms by iri(), literal(), blank() and triple()",
            )
        if not generalized and part.startswith(FORBIDDEN[position]):
            raise TermError(
                f"{part} cannot be the {position} of a triple term: {term}", kind=OUT_OF_PLACE
            )
    return term
