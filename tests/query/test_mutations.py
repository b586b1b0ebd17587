"""What engines refuse is refused, however it is rewritten: over queries with a token put in, taken out or exchanged.

A query that neither pyoxigraph nor rdflib reads must not become a SELECT that an engine reads: by the rewriting alone,
nor by the pages, the order or the initial bindings put into it.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Final

import pyoxigraph as ox
import pytest
from rdflib.plugins.sparql.parser import parseQuery

from construct_messages.errors import QueryError, UsageError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.select import Select, beyond, page
from construct_messages.query.tokens import tokenize
from construct_messages.rdf.terms import iri
from tests.support.places import shared_path
from tests.support.queries.braces import closing

pytestmark = pytest.mark.slow

BASE: Final = "http://example.org/"
MUTANTS: Final = int(os.environ.get("MUTANTS", "2000"))

SEEDS: Final = [
    "PREFIX : <urn:> CONSTRUCT { ?s :p ?o } FROM <urn:g> FROM NAMED :h WHERE { ?s :g ?o FILTER (?o > 1) } "
    "GROUP BY ?s (STR(?o) AS ?t) HAVING (COUNT(*) > 1) ORDER BY DESC(?s) ?t LIMIT 3 OFFSET 2 "
    'VALUES (?s ?t) { (1 2) (UNDEF "x") }',
    "CONSTRUCT FROM <urn:g> WHERE { ?s ?p ?o ; a <urn:C> . } ORDER BY ASC(?o) OFFSET 1 LIMIT 2 VALUES ?s { 1 }",
    "CONSTRUCT { ?s ?p [ a ?o ] , (1 2) } { { SELECT ?s (MAX(?x) AS ?p) { ?s ?q ?x } GROUP BY ?s } "
    "OPTIONAL { ?s a ?o } MINUS { ?s ?p 1 } BIND(1 AS ?z) }",
    "CONSTRUCT { << ?s ?p ?o >> ?q ?r . ?s ?p ?o ~ ?x {| ?y 'z'@en |} } "
    "WHERE { ?s ?p ?o . VALUES (?q ?r) { (<urn:a> <urn:b>) } } LIMIT 1",
    "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } ORDER BY ?s LIMIT 5",
    "BASE <urn:> PREFIX : <a> CONSTRUCT { ?s ?p :b . [] a 1 } WHERE { ?s ?p ?o } GROUP BY ?s ?p HAVING (COUNT(?o) > 1)",
]
_TOKENS: Final = """
( ) { } . ; , ?v ?s $WHERE WHERE FROM NAMED <urn:x> * + ! = 1 's' a _:b [] GROUP BY HAVING ORDER ASC LIMIT OFFSET
VALUES UNDEF AS SELECT DISTINCT REDUCED UNION FILTER WITH GRAPH CONSTRUCT ASK DESCRIBE PREFIX BASE
"""
PHRASES: Final = (
    *(
        "(1 AS ?n)",
        "(COUNT(*) AS ?n)",
        "?s ?p ?o",
        "{ ?s ?p ?o }",
        "STR(?s)",
        "BIND(1 AS ?new)",
        "% name",
    ),
    *_TOKENS.split(),
)


def oxigraph_reads(text: str) -> bool:
    try:
        ox.Store().query(text, base_iri=BASE)
    except SyntaxError:
        return False
    except RuntimeError:
        pass  # a function it does not know
    return True


def rdflib_reads(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parseQuery(text)
        except Exception:  # noqa: BLE001 - it raises whatever it meets
            return False
    return True


def mutant(text: str, chance: random.Random) -> str:
    tokens = tokenize(text)
    one, other = sorted(chance.sample(tokens, 2), key=lambda token: token.start)
    another = chance.choice(PHRASES)
    before, behind = text[: one.start], text[one.end :]
    return chance.choice(
        [
            f"{before} {another} {one.text}{behind}",
            f"{before} {behind}",
            f"{before} {another} {behind}",
            f"{before}{one.text} {one.text}{behind}",
            f"{before}{other.text}{text[one.end : other.start]}{one.text}{text[other.end :]}",
            f"{text} {another}",
        ]
    )


def rewritings(select: Select) -> Iterator[tuple[str, str]]:
    """Everything that becomes of a query, as texts."""
    changes = {
        "plain": lambda: select,
        "a page": lambda: page(select, 5, 0),
        "a page around": lambda: page(select, 5, 5, wrap=True),
        "a probe": lambda: beyond(select, 5, wrap=True),
        "sorted": lambda: select.sorted_by(select.variables[:1]),
        "bound": lambda: select.bind({select.variables[0]: iri("urn:b")}),
        "sorted pages of bound ones": lambda: page(
            select.bind({select.variables[0]: iri("urn:b")}).sorted_by(select.variables), 5, 0
        ),
    }
    for name, change in changes.items():
        try:
            changed = change()
        except (QueryError, UsageError):
            continue
        if changed is not None:
            yield name, str(changed)


def has_graphs(text: str) -> bool:
    """Whether there are braces in the template, or in the pattern that is one."""
    tokens = tokenize(text)
    head = next(index for index, token in enumerate(tokens) if token.keyword == "CONSTRUCT")
    opening = next(index for index in range(head, len(tokens)) if tokens[index].is_mark("{"))
    return any(token.is_mark("{") for token in tokens[opening + 1 : closing(tokens, opening)])


def wrongly_read(text: str) -> str | None:
    """How a query that nobody reads became one that Oxigraph reads; None: it did not."""
    try:
        query = ConstructQuery.parse(text, base=BASE)
    except (QueryError, UsageError):
        return None
    if has_graphs(text):
        return None  # which are Apache Jena's
    readers = (partial(oxigraph_reads, text), partial(rdflib_reads, text))
    accepted = next(
        (name for name, rewritten in rewritings(query.rewritten) if oxigraph_reads(rewritten)), None
    )
    return None if accepted is None or any(reads() for reads in readers) else accepted


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_seeds_are_read_as_they_are(seed: int) -> None:
    query = ConstructQuery.parse(SEEDS[seed], base=BASE)
    assert {name for name, text in rewritings(query.rewritten) if not oxigraph_reads(text)} == set()


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_mutants_of_seeds(seed: int) -> None:
    """Issue 13, 2."""
    chance = random.Random(seed)
    texts = [mutant(SEEDS[seed], chance) for _ in range(MUTANTS // len(SEEDS))]
    assert {text: how for text in texts if (how := wrongly_read(text))} == {}


@pytest.mark.suite
def test_mutants_of_queries_found_in_the_wild() -> None:
    """Issue 13, 2."""
    paths = sorted(shared_path("queries").rglob("*.rq"))
    wild = [path.read_text(encoding="utf-8", errors="replace") for path in paths]
    # nothing is to be sent, and rdflib takes long for long ones
    wild = [
        text
        for text in wild
        if len(text) < 600 and "SERVICE" not in text.upper() and oxigraph_reads(text)
    ]
    assert len(wild) > 100
    chance = random.Random(13)
    texts = [mutant(chance.choice(wild), chance) for _ in range(MUTANTS)]
    assert {text: how for text in texts if (how := wrongly_read(text))} == {}


@pytest.mark.parametrize(
    "tail",
    [
        "ORDER BY",
        "ORDER BY LIMIT 3",
        "ORDER BY ?s LIMIT 3 ?o",
        "ORDER BY ?s OFFSET 1 STR(?o)",
        "ORDER",
        "LIMIT",
        "OFFSET ?s",
    ],
)
def test_what_pages_would_mend(tail: str) -> None:
    """Issue 13, 2: found by mutation."""
    text = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }} {tail}"
    assert not oxigraph_reads(text)
    select = ConstructQuery.parse(text).rewritten
    assert {name for name, rewritten in rewritings(select) if oxigraph_reads(rewritten)} == set()
