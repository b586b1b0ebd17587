"""Texts of queries and their leaves in the algebra, and what is refused before any of it is planned."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import Position, QueryError, UnsupportedQuery
from tests.support.queries.algebra_text import NOW, cases, text, translate_query


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


def test_a_version_does_not_matter() -> None:
    assert translate_query('VERSION "1.2" ASK {}', now=NOW) == translate_query("ASK {}", now=NOW)


UNSUPPORTED = [
    ("service", "ASK { SERVICE <u:x> {} }", "SERVICE", (1, 7)),
    ("service in small letters", "ASK { ?s ?p ?o\nservice silent ?s {} }", "SERVICE", (2, 1)),
    ("triple term", "ASK { ?s ?p <<( ?a ?b ?c )>> }", "<<(", (1, 13)),
    ("reified triple", "ASK { << ?a ?b ?c >> ?p ?o }", "<<", (1, 7)),
    ("annotation", "ASK { ?s ?p ?o {| ?q ?r |} }", "?s ?p ?o", (1, 7)),
    ("reifier", "ASK { ?s ?p ?o ~ ?r }", "?s ?p ?o", (1, 7)),
    ("base direction", "ASK { ?s ?p 'x'@en--ltr }", "'x'@en--ltr", (1, 13)),
    ("new function", "ASK { FILTER(isTriple(?x)) }", "ISTRIPLE", (1, 14)),
    ("deep brackets", "ASK { FILTER(" + "(" * 70 + "1" + ")" * 70 + ") }", "nesting", (1, 76)),
]


@pytest.mark.parametrize(
    ("query", "fragment", "position"), [pytest.param(*case, id=name) for name, *case in UNSUPPORTED]
)
def test_what_is_refused_by_name(
    query: str, fragment: str, position: tuple[int, int] | None
) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        translate_query(query, now=NOW)
    assert refused.value.fragment.startswith(fragment)
    assert refused.value.position == (position and Position(*position))


ILLEGAL = [
    ("nothing", "", "there is no CONSTRUCT, nor any other form of query", 1),
    ("prologue alone", "BASE <u:x>", "there is no CONSTRUCT, nor any other form of query", 11),
    ("construct", "CONSTRUCT {} {}", "CONSTRUCT has no solutions", 1),
    ("describe", "PREFIX a: <u:> DESCRIBE a:b", "DESCRIBE has no solutions", 16),
    ("update", "INSERT DATA {}", "there is no CONSTRUCT, nor any other form of query", 15),
    ("prefix without colon", "PREFIX a <u:> ASK {}", "expected a declaration", 1),
    ("prefix with two colons", "PREFIX a:b: <u:> ASK {}", "expected a declaration", 1),
    ("pragma", "DEFINE input:inference 'x' ASK {}", "expected a declaration", 1),
    ("lateral", "ASK { LATERAL { ?s ?p ?o } }", "expected a pattern, found LATERAL", 7),
    ("unclosed string", "ASK { ?s ?p 'a }", "this { is never closed", 5),
    ("unclosed group", "ASK { ?s ?p ?o", "this { is never closed", 5),
    ("no object", "ASK { ?s ?p }", "expected a variable or an RDF term, found }", 13),
    ("two full stops", "ASK { ?s ?p ?o .. }", "expected a pattern, found .", 17),
    ("full stop alone", "ASK { . }", "expected a pattern, found .", 7),
    ("literal as predicate", "ASK { ?s 'p' ?o }", "expected a predicate", 10),
    ("unknown function", "ASK { FILTER(NOSUCH(?x)) }", "there is no function NOSUCH", 14),
    ("tag without string", "ASK { ?s ?p @en }", "expected a variable or an RDF term", 13),
    ("datatype without string", "ASK { ?s ?p ^^<u:d> }", "expected a variable or an RDF term", 13),
    ("something behind", "ASK {} ASK", "expected a clause or the end of the query", 8),
]


@pytest.mark.parametrize(
    ("query", "message", "column"), [pytest.param(*case, id=name) for name, *case in ILLEGAL]
)
def test_what_is_no_query(query: str, message: str, column: int) -> None:
    with pytest.raises(QueryError, match=re.escape(message)) as refused:
        translate_query(query, now=NOW)
    assert not isinstance(refused.value, UnsupportedQuery)
    assert refused.value.position == Position(1, column)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("ASK { <a> ?p ?o }", "IRI <a> is relative", id="relative IRI"),
        pytest.param(
            "ASK { FILTER(!(<u:a>|^<u:a>)) }",
            "expected ) at the end of the expression",
            id="negated set in no path",
        ),
        pytest.param(
            "ASK { FILTER(!(^<u:a>)) }", "expected an expression, found ^", id="inverse in no path"
        ),
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
