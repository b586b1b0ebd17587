"""The function IRI as SQL, with the resolution of relative IRIs.

SPARQL 1.1 Query, section 17.4.2.8; RFC 3986, section 5.2, over the characters of RFC 3987. Text that is not an IRI is
NULL, SPARQL's error.
"""

from __future__ import annotations

import re
from typing import Final

from construct_messages.spark.sql.iri_grammar import IRI
from construct_messages.spark.sql.term_parts import is_iri, is_simple, text_of
from construct_messages.spark.sql.values import ERROR, Scalar, Type, case, let, literal

_ABSOLUTE: Final = rf"^(?:{IRI})\z"
_SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.\-]*+:"
_PARTS: Final = re.compile(r"([^:/?#]+:)(//[^/?#]*)?([^?#]*)(\?[^#]*)?", re.DOTALL)


def iri(argument: Scalar, base: str | None = None) -> Scalar:
    """Returns the function IRI.

    Args:
        argument: an IRI, or a simple literal with the characters of one.
        base: an absolute IRI; None: a relative IRI is an error.
    """
    if argument.type is Type.STRING:
        return Scalar(let(argument.sql, lambda text: _from_text(text, base)))
    if argument.type is not Type.TERM:
        return ERROR
    return Scalar(
        let(
            argument.sql,
            lambda term: case(
                (is_iri(term), term),
                (is_simple(term), let(text_of(term), lambda text: _from_text(text, base))),
            ),
        )
    )


def _from_text(text: str, base: str | None) -> str:
    def checked(value: str) -> str:
        return case((f"{value} RLIKE {literal(_ABSOLUTE)}", f"concat('<', {value}, '>')"))

    if base is None:
        return checked(text)
    resolved = case((f"{text} RLIKE {literal(_SCHEME)}", text), otherwise=_resolved(text, base))
    return let(resolved, checked)


def _resolved(reference: str, base: str) -> str:
    """Returns SQL of a resolved relative reference: RFC 3986, section 5.2.2."""
    scheme, authority, path, query = _PARTS.findall(base)[0]
    folder = path[: path.rfind("/") + 1] or ("/" if authority else "")
    prefixes = case(
        (f"startswith({reference}, '//')", literal(scheme)),
        (f"startswith({reference}, '/')", literal(scheme + authority)),
        otherwise=literal(scheme + authority + folder),
    )
    return case(
        (f"{reference} RLIKE '^[^/?#]*:'", "NULL"),  # an invalid scheme
        (
            f"{reference} = '' OR startswith({reference}, '#')",
            _joined(scheme + authority + path + query, reference),
        ),
        (f"startswith({reference}, '?')", _joined(scheme + authority + path, reference)),
        otherwise=let(f"concat({prefixes}, {reference})", _without_dots),
    )


def _joined(prefix: str, reference: str) -> str:
    return f"concat({literal(prefix)}, {reference})"


def _without_dots(value: str) -> str:
    """Returns SQL of an IRI without `.` and `..` in its path (section 5.2.4)."""
    pieces = literal(r"^([^:/?#]+:(?://[^/?#]*)?/?)([^?#]*)(.*)\z")

    def piece(number: int) -> str:
        return f"regexp_extract({value}, {pieces}, {number})"

    def shortened(path: str) -> str:
        empty = "CAST(array() AS ARRAY<STRING>)"
        step = case(
            ("s = '.'", "kept"),
            ("s = '..'", "slice(kept, 1, greatest(size(kept) - 1, 0))"),
            otherwise="concat(kept, array(s))",
        )
        kept = f"aggregate(split({path}, '/'), {empty}, (kept, s) -> {step})"
        end = f"if({path} RLIKE '(^|/)[.]{{1,2}}$', array(''), {empty})"
        return f"array_join(concat({kept}, {end}), '/')"

    has_dots = literal(r"^[^:/?#]+:(//[^/?#]*)?/?([^?#]*/)?[.]{1,2}([/?#]|\z)")
    shorter = f"concat({piece(1)}, {let(piece(2), shortened)}, {piece(3)})"
    return case((f"{value} RLIKE {has_dots}", shorter), otherwise=value)
