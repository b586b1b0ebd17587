"""Parses terms in the forms of N-Triples, SPARQL's TSV results and command lines, and returns canonical ones.

RDF 1.2 N-Triples, section 7, and the abbreviated numbers and booleans of SPARQL 1.2 Query, section 19.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast

from construct_messages.errors import TermError
from construct_messages.rdf import compiled
from construct_messages.rdf.terms import grammar
from construct_messages.rdf.terms.canonical import Term, blank, iri, literal, triple
from construct_messages.rdf.terms.grammar import BLANK_LABEL, IRIREF, XSD, unescape
from construct_messages.rdf.terms.wellformed import Lenience

# --- parts ----------------------------------------------------------------------------------------
# The kinds and parts of canonical terms.
#
# RDF 1.2 N-Triples, canonical form (https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples). `parsing.py` parses
# terms of other forms.


def is_blank(term: Term) -> bool:
    """Whether the term is a blank node; one inside a triple term does not count (see `has_blank`)."""
    return term.startswith("_:")


def is_literal(term: Term) -> bool:
    return term.startswith('"')


def is_triple(term: Term) -> bool:
    return term.startswith("<<(")


def has_blank(term: Term, label: str = "") -> bool:
    """Whether the term is, or holds at any depth, a blank node whose label begins with `label`.

    >>> from construct_messages.rdf.terms import parse_term
    >>> nested = parse_term('<<( <urn:s> <urn:p> _:b )>>')
    >>> has_blank(nested), has_blank(nested, "b"), has_blank(nested, "t")
    (True, True, False)
    """
    if is_triple(term):
        return any(has_blank(part, label) for part in triple_parts(term))
    return term.startswith(f"_:{label}")


# In canonical terms a token ends at its closing character; spaces only occur between tokens.
_PART: Final = re.compile(r'<<\(|\)>>|<[^>]*>|_:[^ ]+|"(?:[^"\\]|\\.)*+"(?:@[^ ]+|\^\^<[^>]*>)?')


def triple_parts(term: Term) -> tuple[Term, Term, Term]:
    """Returns subject, predicate and object of a triple term.

    >>> from construct_messages.rdf.terms import parse_term
    >>> triple_parts(parse_term('<<( <urn:s> <urn:p> <<( <urn:s> <urn:p> "x y" )>> )>>'))
    ('<urn:s>', '<urn:p>', '<<( <urn:s> <urn:p> "x y" )>>')
    """
    parts: list[Term] = []
    depth = start = 0
    for match in _PART.finditer(term, 3, len(term) - 3):
        token = match.group()
        if token == "<<(":
            if depth == 0:
                start = match.start()
            depth += 1
        elif token == ")>>":
            depth -= 1
            if depth == 0:
                parts.append(Term(term[start : match.end()]))
        elif depth == 0:
            parts.append(Term(token))
    subject, predicate, object = parts
    return subject, predicate, object


def nesting(text: str) -> int:
    """Returns the depth of nested triple terms in a term or in a line of N-Triples or N-Quads.

    >>> nesting('<<( <urn:s> <urn:p> <<( <urn:s> <urn:p> "<<(" )>> )>>')
    2
    """
    deepest = depth = 0
    for match in _PART.finditer(text):
        if match.group() == "<<(":
            depth += 1
            deepest = max(deepest, depth)
        elif match.group() == ")>>":
            depth -= 1
    return deepest


def map_blanks(term: Term, change: Callable[[Term], Term]) -> Term:
    """Returns the term with every blank node in it, at any depth, replaced by `change(blank node)`.

    >>> from construct_messages.rdf.terms import iri, parse_term
    >>> map_blanks(parse_term('<<( _:a <urn:p> "_:a" )>>'), lambda b: iri("urn:" + b[2:]))
    '<<( <urn:a> <urn:p> "_:a" )>>'
    """
    if is_blank(term):
        return change(term)
    if is_triple(term):
        subject, predicate, object = triple_parts(term)
        return triple(
            map_blanks(subject, change), predicate, map_blanks(object, change), generalized=True
        )
    return term


_LITERAL: Final = re.compile(
    r'"((?:[^"\\]|\\.)*+)"(?:@([a-z0-9\-]+?)(?:--(ltr|rtl))?|\^\^<([^>]*)>)?', re.DOTALL
)


def literal_parts(term: Term) -> tuple[str, str | None, str | None, str | None]:
    """Returns value, datatype IRI, language tag and base direction of a literal; absent parts are None.

    >>> from construct_messages.rdf.terms import literal, number
    >>> literal_parts(literal("chat", language="fr")), literal_parts(number("7"))[1]
    (('chat', None, 'fr', None), 'http://www.w3.org/2001/XMLSchema#integer')
    """
    match = _LITERAL.fullmatch(term)
    if match is None:
        raise TermError(f"{term!r} is not a literal")
    value, language, direction, datatype = match.groups()
    return unescape(value), datatype, language, direction


# --- parsing --------------------------------------------------------------------------------------

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
    if compiled.wire is not None and (found := compiled.wire.statements(lines, True, True)):
        read, _, others = found
        if not any(others):  # no base directions, and no other unusual terms
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
