"""Parses terms in the forms of N-Triples, SPARQL's TSV results and command lines, and returns canonical ones.

RDF 1.2 N-Triples, section 7, and the abbreviated numbers and booleans of SPARQL 1.2 Query, section 19.8.
"""

from __future__ import annotations

from typing import Final, cast

from construct_messages.rdf import compiled
from construct_messages.rdf.errors import TermError
from construct_messages.rdf.terms import grammar
from construct_messages.rdf.terms.canonical import Term, blank, iri, literal, triple
from construct_messages.rdf.terms.grammar import BLANK_LABEL, IRIREF, XSD, unescape
from construct_messages.rdf.terms.wellformed import Lenience

_TOKEN: Final = rf"""(?x)\s*+(?:
        (?P<open><<\() | (?P<close>\)>>)
      | <(?P<iri>{IRIREF})>
      | _:(?P<blank>{BLANK_LABEL})
      | (?:"(?P<double>(?:[^"\\\n\r]|\\.)*+)"|'(?P<single>(?:[^'\\\n\r]|\\.)*+)')
        (?:@(?P<language>{grammar.LANGTAG})(?:--(?P<direction>[a-z]+))?|\^\^<(?P<datatype>{IRIREF})>)?
      | (?P<number>[+\-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+\-]?[0-9]+)?)(?![^\s)])
      | (?P<boolean>true|false)(?![^\s)])
    )"""


def number(lexical: str) -> Term:
    """Creates the literal of an abbreviated number of SPARQL and Turtle: integer, decimal or double by its form.

    >>> number("1.5")
    '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    kind = (
        "double" if "e" in lexical or "E" in lexical else "decimal" if "." in lexical else "integer"
    )
    return Term(f'"{lexical}"^^<{XSD}{kind}>')


def boolean(lexical: str) -> Term:
    """Creates the literal of an abbreviated boolean, in any case as SPARQL allows.

    >>> boolean("TRUE")
    '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
    """
    return Term(f'"{lexical.lower()}"^^<{XSD}boolean>')


def parse_term(
    text: str, scope: str = "", lenience: Lenience | None = None, *, generalized: bool = False
) -> Term:
    """Parses and normalises a term of N-Triples, of SPARQL TSV results, or of a command line.

    Abbreviated numbers and booleans are expanded, needless escapes decoded, language tags lower-cased, and `xsd:string`
    omitted. Blank node labels get `scope` in front (see `blank`), `lenience` passes malformed terms (see `iri`), and
    `generalized` is that of `triple`.

    >>> parse_term('42')
    '"42"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> parse_term("'caf\\\\u00E9'@FR")
    '"café"@fr'
    >>> parse_term('<<( <urn:s> <urn:p> _:b )>>', scope="d")
    '<<( <urn:s> <urn:p> _:db )>>'
    """
    term, end = _read_term(text, 0, scope, lenience, generalized)
    if text[end:].strip():
        raise TermError(
            f"unexpected {text[end:].strip()!r} after the term {text[:end]!r}", hint=TERM_HINT
        )
    return term


TERM_HINT: Final = 'write an IRI as <http://…>, a string as "…", a number as 42'


def terms_of_lines(lines: bytes) -> list[Term | None]:
    r"""Returns the terms of canonical N-Quads lines: subject, predicate, object, graph, subject … `lines`: known to be
    valid and canonical; each ends with LF.

    >>> terms_of_lines(b'<urn:s> <urn:p> "o" .\n')
    ['<urn:s>', '<urn:p>', '"o"', None]
    """
    if compiled.wire is not None and (found := compiled.wire.statements(lines, True)):
        read, _, others = found
        if not any(others):  # they have triple terms
            return cast("list[Term | None]", read)
    terms: list[Term | None] = []
    for line in lines.decode().split("\n")[:-1]:
        end, row = 0, list[Term | None]()
        while line[end:] != " .":
            term, end = _read_term(line, end, "", None, True)
            row.append(term)
        terms += row if len(row) == 4 else [*row, None]
    return terms


def _read_term(
    text: str, start: int, scope: str, lenience: Lenience | None, generalized: bool
) -> tuple[Term, int]:
    token = grammar.compiled(_TOKEN, text.isascii())
    match = token.match(text, start)
    if match is None:
        raise TermError(f"{text[start:]!r} is not an RDF term", hint=TERM_HINT)
    end = match.end()
    kind = match.lastgroup
    if match["iri"] is not None:
        return iri(unescape(match["iri"]), lenience=lenience), end
    if match["double"] is not None or match["single"] is not None:
        value = unescape(match["double"] if match["double"] is not None else match["single"])
        datatype = match["datatype"]
        return literal(
            value,
            datatype=None if datatype is None else unescape(datatype),
            language=match["language"],
            direction=match["direction"],
            lenience=lenience,
        ), end
    if kind == "blank":
        return blank(match["blank"], scope), end
    if kind == "number":
        return number(match["number"]), end
    if kind == "boolean":
        return boolean(match["boolean"]), end
    if kind == "open":
        parts = []
        for _ in range(3):
            part, end = _read_term(text, end, scope, lenience, generalized)
            parts.append(part)
        close = token.match(text, end)
        if close is None or close.lastgroup != "close":
            raise TermError(f"triple term is not closed by )>> in {text!r}")
        return triple(*parts, generalized=generalized), close.end()
    raise TermError(f"unexpected {match.group().strip()!r} in {text!r}")
