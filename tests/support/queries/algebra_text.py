"""The algebra as text, and cases of it: `spark_plans/*.txt` hold queries and what is planned for them.

A case is a line `# name`, the query, and indented the text of its plan; where lines break does not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet

from construct_messages.query.algebra.nodes import Call, Constant, Link, Plan, Triple, Var
from construct_messages.query.algebra.translation import translate
from construct_messages.query.syntax.parser import parse
from construct_messages.rdf.terms import RDF, XSD, Term

_PREFIXES: Final = {XSD: "xsd", RDF: "rdf"}
_KNOWN: Final = re.compile(rf"<({'|'.join(map(re.escape, _PREFIXES))})(\w+)>")

NOW: Final = Term(f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>')


def translate_query(
    select: str,
    *,
    now: Term,
    base: str | None = None,
    default_graphs: Sequence[str] = (),
    named_graphs: Sequence[str] = (),
) -> Plan:
    """Translates the text of a SELECT or ASK query; see `translate`."""
    return translate(
        parse(select, base=base), now=now, default_graphs=default_graphs, named_graphs=named_graphs
    )


def text(what: Any) -> str:
    """A node, expression, path or anything in them; what is left to its default at the end is left out.

    >>> text(Call("=", (Var("x"), Constant(Term(f'"1"^^<{XSD}integer>')))))
    '(= ?x "1"^^xsd:integer)'
    """
    match what:
        case Var(name):
            return name if what.hidden else f"?{name}"
        case Constant(term) | Link(term):
            return text(term)
        case Call(name, arguments):
            return f"({' '.join((name, *map(text, arguments)))})"
        case Triple():
            return text(tuple(place for place in what.positions if place is not None))
        case str():
            return _KNOWN.sub(lambda iri: f"{_PREFIXES[iri[1]]}:{iri[2]}", what)
        case tuple():
            return f"[{' '.join(map(text, what))}]"
        case frozenset():
            return f"{{{' '.join(sorted(map(text, what)))}}}"
        case None | bool() | int():
            return "-" if what is None else str(what)
    parts = [(getattr(what, field.name), field.default) for field in fields(what)]
    while parts and parts[-1][0] == parts[-1][1]:
        parts.pop()
    return f"({' '.join((type(what).__name__.lower(), *(text(value) for value, _ in parts)))})"


_CASE: Final = re.compile(r"^# (.+)\n((?:(?! {4}).+\n)+)((?: {4}.+\n)+)\n?", re.MULTILINE)


def cases(name: str) -> list[ParameterSet]:
    """The cases of a file: query and plan."""
    content = (Path(__file__).parent / "plans" / f"{name}.txt").read_text(encoding="utf-8")
    assert _CASE.sub("", content) == ""
    return [
        pytest.param(case[2], " ".join(case[3].split()), id=case[1])
        for case in _CASE.finditer(content)
    ]
