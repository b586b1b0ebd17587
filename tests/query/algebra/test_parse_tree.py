"""Parse trees: rdflib's grammar over numbered tokens, and what is refused before any of it is planned."""

from __future__ import annotations

import re

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import Position, QueryError, UnsupportedQuery
from construct_messages.query.algebra.parse_tree import parse
from construct_messages.query.algebra.translation import translate_query
from tests.support.queries.algebra_text import NOW, cases, text


@pytest.mark.parametrize(("query", "wanted"), cases("readings"))
def test_readings(query: str, wanted: str) -> None:
    assert text(translate_query(query, now=NOW).pattern) == wanted


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert translate_query("\ufeffASK {}", now=NOW) == translate_query("ASK {}", now=NOW)


def test_spaces_do_not_count() -> None:
    tight = (
        "ASK{?a<u:p>?b;<u:q>'x'@en,1;a<u:C>.?b(<u:r>*/^<u:s>|!<u:t>)+?c FILTER(?a<?b||!?c&&?d>=-1)}"
    )
    wide = """
        ASK { ?a <u:p> ?b ; <u:q> 'x' @en , 1 ; a <u:C> . ?b ( <u:r> * / ^ <u:s> | ! <u:t> ) + ?c
              FILTER ( ?a < ?b || ! ?c && ?d >= -1 ) }"""
    assert translate_query(tight, now=NOW) == translate_query(wide, now=NOW)


def test_many_triples_need_no_deep_stack() -> None:
    triples = " . ".join(f"?s <u:p{number}> ?o{number}" for number in range(200))
    pattern = translate_query(f"ASK {{ {triples} . FILTER(?o1) }}", now=NOW).pattern
    assert text(pattern).count("<u:p") == 200
    assert text(pattern).startswith("(filter (bgp ")


def test_rdflibs_own_settings_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT (?x -1 AS ?y) (+1 AS ?z) { ?s ?p 01, +02, -03.0 FILTER(TRUE) }"
    usual = translate_query(query, now=NOW)
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)
    assert translate_query(query, now=NOW) == usual


UNSUPPORTED = [
    ("service", "ASK { SERVICE <u:x> {} }", "SERVICE", (1, 7)),
    ("service in small letters", "ASK { ?s ?p ?o\nservice silent ?s {} }", "SERVICE", (2, 1)),
    ("lateral", "ASK { LATERAL { ?s ?p ?o } }", "LATERAL", (1, 7)),
    ("version", 'VERSION "1.2" ASK {}', "VERSION", (1, 1)),
    ("pragma", "DEFINE input:inference 'x' ASK {}", "DEFINE", (1, 1)),
    ("triple term", "ASK { ?s ?p <<( ?a ?b ?c )>> }", "<<(", (1, 13)),
    ("reified triple", "ASK { << ?a ?b ?c >> ?p ?o }", "<<", (1, 7)),
    ("annotation", "ASK { ?s ?p ?o {| ?q ?r |} }", "{|", (1, 16)),
    ("reifier", "ASK { ?s ?p ?o ~ ?r }", "~", (1, 16)),
    ("base direction", "ASK { ?s ?p 'x'@en--ltr }", "@en--ltr", (1, 16)),
    ("new function", "ASK { FILTER(isTriple(?x)) }", "ISTRIPLE", (1, 14)),
    ("deep brackets", "ASK { FILTER(" + "(" * 70 + "1" + ")" * 70 + ") }", "nesting", (1, 76)),
    ("deep enough for rdflib", "ASK " + "{" * 60 + "}" * 60, "nesting", None),
    ("tokens that are no operators", "ASK { FILTER(?x<?a&&?b>?y) }", "FILTER(?x<?a", (1, 7)),
]


@pytest.mark.parametrize(
    ("query", "fragment", "position"), [pytest.param(*case, id=name) for name, *case in UNSUPPORTED]
)
def test_what_is_refused_by_name(
    query: str, fragment: str, position: tuple[int, int] | None
) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(query)
    assert refused.value.fragment.startswith(fragment)
    assert refused.value.position == (position and Position(*position))


ILLEGAL = [
    ("nothing", "", "there is no SELECT and no ASK", 1),
    ("prologue alone", "BASE <u:x>", "there is no SELECT and no ASK", 11),
    ("construct", "CONSTRUCT {} {}", "CONSTRUCT has no solutions", 1),
    ("describe", "PREFIX a: <u:> DESCRIBE a:b", "DESCRIBE has no solutions", 16),
    ("update", "INSERT DATA {}", "unexpected INSERT before the form", 1),
    ("prefix without colon", "PREFIX a <u:> ASK {}", "unexpected PREFIX before the form", 1),
    ("prefix with two colons", "PREFIX a:b: <u:> ASK {}", "unexpected PREFIX before the form", 1),
    ("unclosed string", "ASK { ?s ?p 'a }", "this string is never closed", 13),
]


@pytest.mark.parametrize(
    ("query", "message", "column"), [pytest.param(*case, id=name) for name, *case in ILLEGAL]
)
def test_what_is_no_query(query: str, message: str, column: int) -> None:
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        parse(query)
    assert not isinstance(refused.value, UnsupportedQuery)
    assert refused.value.position == Position(1, column)


NOT_SPARQL = [
    ("unclosed group", "ASK { ?s ?p ?o"),
    ("no object", "ASK { ?s ?p }"),
    ("two full stops", "ASK { ?s ?p ?o .. }"),
    ("full stop alone", "ASK { . }"),
    ("literal as predicate", "ASK { ?s 'p' ?o }"),
    ("unknown function", "ASK { FILTER(NOSUCH(?x)) }"),
    ("tag without string", "ASK { ?s ?p @en }"),
    ("datatype without string", "ASK { ?s ?p ^^<u:d> }"),
    ("something behind", "ASK {} ASK"),
]


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in NOT_SPARQL])
def test_what_is_not_sparql(query: str) -> None:
    with pytest.raises(QueryError, match="the query is not SPARQL") as refused:
        parse(query)
    assert not isinstance(refused.value, UnsupportedQuery)
    assert refused.value.position is not None
    assert refused.value.position.line == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("ASK { <a> ?p ?o }", "IRI <a> is relative", id="relative IRI"),
        pytest.param(
            "ASK { FILTER(!(<u:a>|^<u:a>)) }",
            "the query is not SPARQL",
            id="negated set in no path",
        ),
        pytest.param("ASK { FILTER(!(^<u:a>)) }", "^ has no meaning here", id="inverse in no path"),
        pytest.param("ASK { ex:a ?p ?o }", "prefix ex: is not declared", id="undeclared prefix"),
        pytest.param(
            "PREFIX ex: <a> ASK { ex:a ?p ?o }", "prefix ex: cannot be used", id="relative prefix"
        ),
        pytest.param(r"ASK { <u:\u0020> ?p ?o }", "which no IRI may", id="space in an IRI"),
        pytest.param(r"ASK { ?s ?p '\uD800' }", "is not a character", id="surrogate"),
        pytest.param(r"ASK { ?s ?p '\q' }", "unknown escape", id="unknown escape"),
    ],
)
def test_illegal_names_and_literals(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        translate_query(query, now=NOW)
    assert refused.value.position is not None


WORDS = st.sampled_from(
    """SELECT ASK WHERE { } ( ) [ ] . ; , ?x ?y <u:p> a 1 -2 'x' @en ^^ OPTIONAL UNION MINUS FILTER BIND AS VALUES UNDEF
    GRAPH EXISTS NOT IN * + / | ^ ! = < && || COUNT GROUP BY HAVING ORDER LIMIT DISTINCT _:b <<( ~ SERVICE""".split()  # noqa: SIM905  # reads better as words
)


@given(
    st.lists(WORDS, max_size=14).map(" ".join),
    st.sampled_from(["", "ASK { ", "SELECT * { ?s ?p ?o "]),
)
def test_any_text_is_planned_or_refused(rest: str, beginning: str) -> None:
    try:
        planned = translate_query(beginning + rest, now=NOW)
    except QueryError:
        return
    assert planned.pattern.certain <= planned.pattern.possible
