"""Writes results documents, independently of the package: what the decoders' tests read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from construct_messages.rdf.terms import (
    Term,
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    triple_parts,
)

Table = Sequence[Sequence[Term]]


def json_term(term: Term) -> dict[str, Any]:
    if is_blank(term):
        return {"type": "bnode", "value": term[2:]}
    if is_triple(term):
        parts = map(json_term, triple_parts(term))
        return {
            "type": "triple",
            "value": dict(zip(("subject", "predicate", "object"), parts, strict=True)),
        }
    if is_literal(term):
        value, datatype, language, direction = literal_parts(term)
        given = {"xml:lang": language, "its:dir": direction, "datatype": datatype}
        return {"type": "literal", "value": value} | {
            name: text for name, text in given.items() if text is not None
        }
    return {"type": "uri", "value": term[1:-1]}


def json_document(variables: Sequence[str], solutions: Table, **options: Any) -> bytes:
    bindings = [
        {name: json_term(term) for name, term in zip(variables, solution, strict=True) if term}
        for solution in solutions
    ]
    return json.dumps(
        {"head": {"vars": list(variables)}, "results": {"bindings": bindings}}, **options
    ).encode()


def xml_term(term: Term) -> str:
    if is_blank(term):
        return f"<bnode>{term[2:]}</bnode>"
    if is_triple(term):
        names = ("subject", "predicate", "object")
        parts = "".join(
            f"<{n}>{xml_term(t)}</{n}>" for n, t in zip(names, triple_parts(term), strict=True)
        )
        return f"<triple>{parts}</triple>"
    if is_literal(term):
        value, datatype, language, direction = literal_parts(term)
        attributes = "" if language is None else f" xml:lang={quoteattr(language)}"
        attributes += (
            "" if direction is None else f" its:version='2.0' its:dir={quoteattr(direction)}"
        )
        attributes += "" if datatype is None else f" datatype={quoteattr(datatype)}"
        # a raw carriage return would be read as a line feed
        return f"<literal{attributes}>{escape(value, {chr(13): '&#13;'})}</literal>"
    return f"<uri>{escape(term[1:-1])}</uri>"


def xml_document(variables: Sequence[str], solutions: Table) -> bytes:
    head = "".join(f"<variable name={quoteattr(name)}/>" for name in variables)
    body = "".join(
        "<result>"
        + "".join(
            f"<binding name={quoteattr(name)}>{xml_term(term)}</binding>"
            for name, term in zip(variables, solution, strict=True)
            if term
        )
        + "</result>"
        for solution in solutions
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#" '
        f'xmlns:its="http://www.w3.org/2005/11/its"><head>{head}</head>\n<results>{body}</results></sparql>\n'
    ).encode()


def tsv_document(variables: Sequence[str], solutions: Table) -> bytes:
    head = "\t".join(f"?{name}" for name in variables)
    return "".join(
        f"{line}\n" for line in (head, *("\t".join(solution) for solution in solutions))
    ).encode()
