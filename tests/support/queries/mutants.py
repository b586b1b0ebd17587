"""Queries with an error put in: tokens taken out, doubled, exchanged or put in, and single characters changed.

Each is made from a seed, so that a failure can be repeated. pyoxigraph's and rdflib's parsers are the witnesses.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Final

import pyoxigraph as ox
from rdflib.plugins.sparql.parser import parseQuery

from construct_messages.query.tokens import tokenize

BASE: Final = "http://example.org/"
_TOKENS: Final = """
( ) { } . ; , ?v ?s $WHERE WHERE FROM NAMED <urn:x> * + ! = 1 's' a _:b [] GROUP BY HAVING ORDER ASC LIMIT OFFSET
VALUES UNDEF AS SELECT DISTINCT REDUCED UNION FILTER WITH GRAPH CONSTRUCT ASK DESCRIBE PREFIX BASE VERSION | / ^ ? &&
|| - -1 1.5e3 @en @en--ltr >= IN NOT true 1. .5 () ^^ ~ << >> {| |} <<( )>>
"""
_PHRASES: Final = (
    *("(1 AS ?n)", "(COUNT(*) AS ?n)", "?s ?p ?o", "{ ?s ?p ?o }", "STR(?s)", "BIND(1 AS ?new)"),
    *("% name", "<< ?s ?p ?o >>", "<<( ?s ?p ?o )>>", "~ ?r", "{| ?p ?o |}", "FILTER(1)"),
    *("OPTIONAL { }", "GRAPH ?g { }", "MINUS { }", "NOT EXISTS { }", "EXISTS", "( 1 2 )"),
    *("GROUP BY ?s", "ORDER BY ?s", "LIMIT 1", "VALUES ?v { 1 }", "{ SELECT * { } }"),
    *("IF(1, 2, 3)", "[ ?p ?o ]", "^^<urn:x>", *_TOKENS.split()),
)
_CHARACTERS: Final = "(){}[].;,?$*+!=<>|/^&-@:_~\"'\\#% \n0aAé"


def mutant(text: str, chance: random.Random) -> str:
    """A text that differs from a query in one place."""
    tokens = tokenize(text)
    if len(tokens) < 2 or chance.random() < 0.2:
        place = chance.randrange(len(text) + 1)
        character = chance.choice(_CHARACTERS)
        return (
            text[:place]
            + chance.choice([character, "", character])
            + text[place + chance.randrange(2) :]
        )
    one, other = sorted(chance.sample(tokens, 2), key=lambda token: token.start)
    another = chance.choice([chance.choice(_PHRASES), chance.choice(tokens).text])
    before, after = text[: one.start], text[one.end :]
    return chance.choice(
        [
            f"{before} {another} {one.text}{after}",
            f"{before} {after}",
            f"{before} {another} {after}",
            f"{before}{one.text} {one.text}{after}",
            f"{before}{other.text}{text[one.end : other.start]}{one.text}{text[other.end :]}",
            f"{text} {another}",
        ]
    )


def mutants(seeds: Sequence[str], number: int, seed: int) -> list[str]:
    """As many mutants, of the seeds in turn."""
    chance = random.Random(seed)
    return [mutant(seeds[index % len(seeds)], chance) for index in range(number)]


def oxigraph_refusal(text: str) -> str | None:
    """The message with which pyoxigraph refuses a query; None where it reads it."""
    try:
        ox.Store().query(text, base_iri=BASE)
    except SyntaxError as problem:
        return str(problem)
    except RuntimeError:
        return None  # a function it does not know
    return None


def rdflib_refusal(text: str) -> str | None:
    """The message with which rdflib's grammar refuses a query; None where it reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parseQuery(text)
        except Exception as problem:  # noqa: BLE001 - it raises whatever it meets
            return f"{type(problem).__name__}: {problem}"
    return None
