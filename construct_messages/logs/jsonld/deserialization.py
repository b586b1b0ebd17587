"""Prepares a JSON-LD document for pyoxigraph, if pyoxigraph deviates from JSON-LD 1.1 API.

Section 8.6 (data round tripping) for numbers, section 5.1 (expansion) for names that become null. This module also
rejects names that are not defined in a context of this package. pyoxigraph interprets the rest of a document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.terms import XSD

_DOUBLE: Final = f"{XSD}double"
_INTEGER: Final = f"{XSD}integer"
FIRST_DOUBLE: Final = 10**21
"""Numbers from this one on are doubles, even without a fraction."""

_OTHERWISE: Final = re.compile(rb"[:\[,]-?(?:[0-9]{20}|[0-9]++[.eE])")
# an absolute IRI to PyLD, which therefore keeps nodes with it; an invalid one to pyoxigraph, which drops their
# statements
NO_IRI: Final = "no,iri:<>"
NO_BASE: Final = "no,base:<>/"
"""The base where there is none, instead of PyLD's: it considers this one absolute, too, so that relative IRIs stay
invalid.
"""
_UNKNOWN: Final = "urn:construct-messages:unknown-name:"


def literal_of(number: int | float, datatype: str | None = None) -> tuple[str, str]:
    """Returns the lexical form and the datatype of a JSON number in RDF. `number`: a finite number; integers of any
    size are exact. `datatype`: the IRI of its datatype in the document; None: it has none.

    >>> [literal_of(number)[0] for number in (1e20, 1e21, 5.0, 0.1 + 0.2)]
    ['100000000000000000000', '1.0E21', '5', '3.0E-1']
    >>> literal_of(5, "http://www.w3.org/2001/XMLSchema#double")[0]
    '5.0E0'
    """
    if datatype != _DOUBLE and abs(number) < FIRST_DOUBLE and number % 1 == 0:
        return str(int(number)), datatype or _INTEGER
    mantissa, _, exponent = f"{number:.15E}".partition("E")
    whole, _, fraction = mantissa.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}E{int(exponent)}", datatype or _DOUBLE


def may_need_preparation(written: bytes) -> bool:
    """Returns whether compact JSON may have a number that pyoxigraph reads differently; most documents have none.

    >>> may_need_preparation(b'{"urn:p":[12,-1.5]}'), may_need_preparation(b'{"urn:p":[12,"-1.5"]}')
    (True, False)
    """
    return _OTHERWISE.search(written) is not None


def prepare(part: Any) -> Any:
    """Returns a document, or a part of one, with numbers as typed values, and without names that are null. `part`: a
    document in expanded form, or nodes with names that are IRIs or compact IRIs, and numbers without types.

    >>> prepare({"urn:p": [1e20, {"@id": None}]})
    {'urn:p': [{'@value': '100000000000000000000', '@type': 'http://www.w3.org/2001/XMLSchema#integer'}, \
{'@id': 'no,iri:<>'}]}
    """
    if isinstance(part, list):
        return [prepare(each) for each in part]
    if _is_number(part):
        text, typed = literal_of(part)
        return {"@value": text, "@type": typed}
    if not isinstance(part, dict):
        return part
    if "@value" in part:
        datatype = part.get("@type")
        if isinstance(datatype, str):
            _check_name(datatype)
        if datatype == "@json" or not _is_number(part["@value"]):
            return part
        text, typed = literal_of(part["@value"], datatype)
        return {**part, "@value": text, "@type": typed}
    prepared: dict[str, Any] = {}
    for key, value in part.items():
        if key == "@id":
            value = NO_IRI if value is None else _check_name(value)
        elif key == "@type":
            names = value if isinstance(value, list) else [value]
            value = [_check_name(name) for name in names if name is not None]
        elif key not in ("@index", "@context"):
            _check_name(key)
            value = prepare(value)
        prepared[key] = value
    return prepared


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def refusing(context: Mapping[str, Any], iri: str) -> dict[str, Any]:
    """Returns a context that makes `prepare` reject names without a definition."""
    return {**context, "@vocab": f"{_UNKNOWN}{iri}|"}


def _check_name(name: str) -> str:
    if name.startswith(_UNKNOWN):
        iri, _, term = name.removeprefix(_UNKNOWN).partition("|")
        raise UsageError(
            f'"{term}" is no name of the vocabulary whose context is <{iri}>',
            hint="write its IRI, or define it in the @context of the document",
        )
    return name
