"""Queries with an error put in, read by this parser, by pyoxigraph's and by rdflib's: each difference has its reason.

A few hundred in each run; `make fuzz-syntax` reads 20,000.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import pytest

from construct_messages.errors import QueryError
from construct_messages.query.checks import check
from construct_messages.query.syntax.nodes import (
    AliasNode,
    AskForm,
    CallNode,
    ConstructForm,
    DescribeForm,
    GroupClause,
    HavingClause,
    SelectForm,
    VariableNode,
    walk,
)
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.query.tokens import Token, tokenize
from construct_messages.rdf.terms import is_iri
from tests.support.places import shared_path
from tests.support.queries.mutants import BASE, mutants, oxigraph_refusal, rdflib_refusal
from tests.support.queries.syntax_cases import syntax_cases

pytestmark = pytest.mark.suite

MUTANTS: Final = int(os.environ.get("MUTANTS", "300"))
SEED: Final = int(os.environ.get("SEED", "27"))


class Mutant:
    """A text, and how it is read here.

    Args:
        text: of any kind.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.refusal: str | None = None
        self.query: Query | None = None
        try:
            self.query = parse(text, base=BASE)
            check(self.query)
        except QueryError as error:
            self.refusal = error.message

    @cached_property
    def tokens(self) -> Sequence[Token]:
        return tokenize(self.text)

    @cached_property
    def nodes(self) -> Sequence[Any]:
        return list(walk(self.query.form)) if self.query else []

    @property
    def is_grammatical(self) -> bool:
        """Whether only a note of the grammar refuses it."""
        return self.query is not None and self.query.unknown() is None


class Reason(NamedTuple):
    """Why this parser and another one differ.

    Args:
        why: in a sentence.
        reads: whether this parser is the one that reads.
        holds: whether it is the reason of a difference, from the text and the other's message.
    """

    why: str
    reads: bool
    holds: Callable[[Mutant, str], bool]


def is_projected_twice(mutant: Mutant, _: str) -> bool:
    for form in mutant.nodes:
        if isinstance(form, SelectForm) and form.projection:
            names = Counter(
                item.name
                if isinstance(item, VariableNode)
                else getattr(item, "variable", item).name
                for item in form.projection
            )
            if max(names.values()) > 1:
                return True
    return False


def has_odd_iri(mutant: Mutant, _: str) -> bool:
    names = (token.text[1:-1] for token in mutant.tokens if token.kind == "iri")
    return any(not is_iri(name) and (":" in name or not is_iri(BASE + name)) for name in names)


def is_grouped_without_select(mutant: Mutant, _: str) -> bool:
    form = mutant.query.form if mutant.query else None
    grouped = (
        isinstance(clause, GroupClause | HavingClause) for clause in getattr(form, "clauses", ())
    )
    return isinstance(form, AskForm | ConstructForm | DescribeForm) and any(grouped)


_GLUED: Final = re.compile(
    r"\b(PREFIX|BASE|VERSION|SELECT|DISTINCT|REDUCED|CONSTRUCT|ASK|DESCRIBE|FROM|NAMED|WHERE|OPTIONAL|UNION|MINUS|GRAPH|FILTER"
    r"|BIND|VALUES|NOT|EXISTS|AS|GROUP|ORDER|BY|HAVING|LIMIT|OFFSET|SILENT|SEPARATOR|IN|a)(?=[\w:])",
    re.IGNORECASE,
)


def is_read_with_spaces(mutant: Mutant, _: str) -> bool:
    """Whether it is read when a space is put after one of its keywords."""
    apart = (
        mutant.text[: found.end()] + " " + mutant.text[found.end() :]
        for found in _GLUED.finditer(mutant.text)
    )
    return any(Mutant(text).refusal is None for text in apart)


def calls_after_space(mutant: Mutant, _: str) -> bool:
    calls = [node for node in mutant.nodes if isinstance(node, CallNode)]
    return any(
        call.function in ("CONCAT", "COALESCE")
        and mutant.text[call.start + len(call.function)] != "("
        for call in calls
        if isinstance(call.function, str)
    )


def groups_by_renamed_variable(mutant: Mutant, _: str) -> bool:
    clauses = (node for node in mutant.nodes if isinstance(node, GroupClause))
    conditions = (condition for clause in clauses for condition in clause.conditions)
    return any(
        isinstance(one, AliasNode) and isinstance(one.expression, VariableNode)
        for one in conditions
    )


def refused_with(*words: str) -> Callable[[Mutant, str], bool]:
    return lambda mutant, _: any(word in (mutant.refusal or "") for word in words)


OXIGRAPH: Final = (
    Reason("No rule forbids to project a variable twice.", True, is_projected_twice),
    Reason("What is no IRI though it is an IRIREF is refused with its term.", True, has_odd_iri),
    Reason("Only SELECT * has no meaning with GROUP BY.", True, is_grouped_without_select),
    Reason(
        "Oxigraph reads CONCAT and COALESCE only with their bracket next to them.",
        True,
        calls_after_space,
    ),
    Reason("Oxigraph does not bind ?b of GROUP BY (?a AS ?b).", True, groups_by_renamed_variable),
    Reason("Oxigraph reads keywords without a space after them.", False, is_read_with_spaces),
    Reason(
        "Oxigraph reads aggregates where they have no meaning.",
        False,
        refused_with("is not allowed here"),
    ),
    Reason(
        "Oxigraph reads an annotation after the path ^a.", False, refused_with("has no reifier")
    ),
)
"""Differences from pyoxigraph's parser. SPARQL 1.2 is on this parser's side."""

_NEWER: Final = re.compile(
    r"<<|>>|\{\||~|@[a-z]+--|\b(?:VERSION|TRIPLE|SUBJECT|PREDICATE|OBJECT|isTRIPLE|hasLANG|(?:has|STR)?LANGDIR)\b",
    re.IGNORECASE,
)


def has_text(pattern: str) -> Callable[[Mutant, str], bool]:
    return lambda mutant, _: re.search(pattern, mutant.text) is not None


RDFLIB: Final = (
    Reason("rdflib reads no SPARQL 1.2.", True, lambda mutant, _: bool(_NEWER.search(mutant.text))),
    Reason(
        "rdflib takes ? after a name as part of a path, also that of a variable.",
        True,
        has_text(r"[\w>:)]\s*\?"),
    ),
    Reason(
        "rdflib decodes codepoint escapes first, also those of quotes.", True, has_text(r"\\[uU]00")
    ),
    Reason("rdflib reads no two signs before an operand.", True, has_text(r"[!+-]\s*[!+-]")),
    Reason(
        "rdflib fails on a number after a minus.",
        True,
        lambda _, refusal: "Not a number" in refusal,
    ),
    Reason(
        "rdflib's parser looks no names up.",
        False,
        refused_with("prefix ", "cannot be resolved", "is no IRI"),
    ),
    Reason("rdflib's parser decodes no escapes.", False, refused_with("escape")),
    Reason(
        "rdflib's parser does not know the notes of the grammar.",
        False,
        lambda mutant, _: mutant.is_grammatical,
    ),
)
"""Differences from rdflib's parser where pyoxigraph reads as this one."""


def seeds() -> list[str]:
    """Short queries that pyoxigraph reads, without SERVICE, which it would call."""
    wild = sorted(shared_path("queries").rglob("*.rq"))
    texts = [case.text for case in syntax_cases() if case.legal]
    texts += [path.read_bytes().decode("utf-8", errors="replace") for path in wild]
    return [
        text
        for text in texts
        if len(text) < 1200 and is_local(text) and oxigraph_refusal(text) is None
    ]


def is_local(text: str) -> bool:
    return "SERVICE" not in text.upper()


def unexplained(mutant: Mutant, refusal: str | None, reasons: Sequence[Reason]) -> bool:
    """Whether another parser reads a text otherwise, for no reason that is known."""
    reads = mutant.refusal is None
    if reads == (refusal is None):
        return False
    return not any(one.holds(mutant, refusal or "") for one in reasons if one.reads == reads)


@pytest.mark.slow
def test_differences_have_reasons() -> None:
    found: list[tuple[str, str | None, str | None]] = []
    for text in filter(is_local, mutants(seeds(), MUTANTS, SEED)):
        mutant, oxigraph, rdflib = Mutant(text), oxigraph_refusal(text), rdflib_refusal(text)
        if unexplained(mutant, oxigraph, OXIGRAPH):
            found.append((text, mutant.refusal, oxigraph))
        elif (mutant.refusal is None) == (oxigraph is None) and unexplained(mutant, rdflib, RDFLIB):
            found.append((text, mutant.refusal, rdflib))
    assert found == []


@pytest.mark.parametrize(
    "text", ["ASK { FILTER }(1)", "ASK { { FILTER }(1) }", "ASK { BIND }(1 AS ?x)"]
)
def test_what_is_unknown_ends_with_its_group(text: str) -> None:
    """Found by mutants: the parser did not end."""
    assert Mutant(text).refusal is not None
