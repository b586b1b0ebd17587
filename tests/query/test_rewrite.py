"""CONSTRUCT in, SELECT and template out: a table of what is rewritten, and one of what is refused."""

from __future__ import annotations

import re

import pytest

from construct_messages.errors import NotConstruct, QueryError, UsageError
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.query.tokens import tokenize
from tests.support.queries.braces import closing
from tests.support.queries.rewrite_cases import (
    BASE,
    CASES,
    PREFIXES,
    REFUSED,
    Case,
    Refused,
    parse,
    shown,
)


def cases(*some: Case) -> pytest.MarkDecorator:
    chosen = some or CASES
    return pytest.mark.parametrize("case", chosen, ids=[case.id for case in chosen])


@cases()
def test_rewritten(case: Case) -> None:
    query = parse(case.text)
    assert query.select == case.select
    assert shown(query.template) == case.patterns
    assert query.template.variables == query.rewritten.variables


@cases()
def test_with_byte_order_mark(case: Case) -> None:
    assert parse("\ufeff" + case.text) == parse(case.text)


@cases()
def test_with_crlf(case: Case) -> None:
    query = parse(case.text.replace("\n", "\r\n"))
    assert query.select == case.select.replace("\n", "\r\n")
    assert shown(query.template) == case.patterns


@cases()
def test_with_comments_between_tokens(case: Case) -> None:
    query = parse(sprinkled(case.text))
    assert [token.text for token in tokenize(query.select)] == [
        token.text for token in tokenize(case.select)
    ]
    assert shown(query.template) == case.patterns
    assert query.select.count("\n") == sprinkled(case.text).count("\n")


def sprinkled(text: str) -> str:
    """With a comment before each token from the template's on to its end."""
    tokens = tokenize(text)
    head = next(index for index, token in enumerate(tokens) if token.keyword == "CONSTRUCT")
    opening = next(index for index in range(head, len(tokens)) if tokens[index].text == "{")
    result, done = "", 0
    for token in tokens[opening : closing(tokens, opening) + 1]:
        result += text[done : token.start] + "#}'\"<\n"
        done = token.start
    return result + text[done:]


@pytest.mark.parametrize("case", REFUSED, ids=[case.id for case in REFUSED])
@pytest.mark.parametrize("variant", ["plain", "byte order mark", "crlf"])
def test_refused(case: Refused, variant: str) -> None:
    text = {
        "plain": case.text,
        "byte order mark": "\ufeff" + case.text,
        "crlf": case.text.replace("\n", "\r\n"),
    }
    with pytest.raises(QueryError) as raised:
        parse(text[variant])
    assert (raised.value.position, case.words in str(raised.value)) == (
        (case.line, case.column),
        True,
    ), raised.value


def test_relative_iri_needs_a_base() -> None:
    with pytest.raises(
        QueryError, match="line 1, column 18: IRI <x> is relative\n  hint: give a base IRI"
    ):
        ConstructQuery.parse("CONSTRUCT { ?s a <x> } {}")


def test_relative_prefix_is_refused_only_where_the_template_uses_it() -> None:
    query = ConstructQuery.parse("PREFIX e: <#> CONSTRUCT { ?s a ?t } { ?s a e:x }")
    assert (query.select, query.prefixes) == ("PREFIX e: <#> SELECT ?s ?t { ?s a e:x }", {})
    with pytest.raises(
        QueryError, match="column 32: prefix e: cannot be used: IRI <#> is relative"
    ):
        ConstructQuery.parse("PREFIX e: <#> CONSTRUCT { ?s a e:t } {}")


def test_relative_base_without_base_is_none() -> None:
    assert ConstructQuery.parse("BASE <x> CONSTRUCT { ?s a ?t } {}").base is None


# --- prefixes, base, forms, grouping --------------------------------------------------------------------------------


def test_predefined_prefixes_are_not_inserted() -> None:
    predefined = {"foaf": "http://foaf/", "dc": "http://dc/", "e": "http://wrong/"}
    query = ConstructQuery.parse(
        "CONSTRUCT { ?s a foaf:P, e:x } {}", prefixes=PREFIXES, predefined=predefined
    )
    assert query.select == "PREFIX e: <http://e/> SELECT ?s {}"
    assert shown(query.template) == ["?s a <http://foaf/P>", "?s a :x"]
    assert query.prefixes == {"foaf": "http://foaf/", "": "http://e/", "e": "http://e/"}


def test_undeclared_prefixes_outside_the_template_are_the_engine_s() -> None:
    assert (
        ConstructQuery.parse("CONSTRUCT {} { ?s a x:y }").select
        == "SELECT (1 AS ?solution) { ?s a x:y }"
    )


def test_given_prefixes_are_declared_for_the_group_too() -> None:
    query = ConstructQuery.parse("CONSTRUCT { ?s a 1 }\n{ ?s a e:y }", prefixes=PREFIXES)
    assert query.select == "PREFIX e: <http://e/> SELECT ?s\n{ ?s a e:y }"


def test_base_in_effect() -> None:
    assert parse("BASE <a/> BASE <b/> CONSTRUCT {} {}").base == "http://e/a/b/"
    assert parse("CONSTRUCT {} {}").base == BASE


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "x"}, "the base: IRI <x> is relative"),
        ({"base": "http://e/{}"}, "the base: IRI <http://e/{}> holds"),
        ({"prefixes": {"e": "x"}}, "prefix e:: IRI <x> is relative"),
        ({"prefixes": {"e:": "http://e/"}}, "'e:' is not a prefix"),
        ({"prefixes": {"1": "http://e/"}}, "'1' is not a prefix"),
        ({"prefixes": {"a b": "http://e/"}}, "'a b' is not a prefix"),
        ({"group_by": ["?"]}, "'?' is not a variable"),
        ({"group_by": ["?a-b"]}, "'?a-b' is not a variable"),
        ({"group_by": ["??a"]}, "'??a' is not a variable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_malformed_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        ConstructQuery.parse("CONSTRUCT { ?s a 1 } {}", **options)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("written", ["?t", "$t", "t"])
def test_grouping_variables_are_projected_last(written: str) -> None:
    query = ConstructQuery.parse("CONSTRUCT { ?s a 1 } { ?s a ?t }", group_by=[written, "?s"])
    assert query.rewritten.variables == query.template.variables == ("s", "t")
    assert query.select == "SELECT ?s ?t { ?s a ?t }"


def test_grouping_variable_that_is_not_there() -> None:
    with pytest.raises(
        QueryError, match=r"no variable \?x to group by\n  hint: use one of \?s, \?t"
    ):
        ConstructQuery.parse("CONSTRUCT { ?s a 1 } { ?s a ?t }", group_by=["x"])


def test_grouping_variable_that_is_no_key() -> None:
    with pytest.raises(
        QueryError, match=r"\?t is no key of the query's own GROUP BY.*\n  hint: use one of \?s"
    ):
        ConstructQuery.parse("CONSTRUCT { ?s a 1 } { ?s a ?t } GROUP BY ?s", group_by=["?t"])


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("SELECT * {}", "SELECT"),
        ("PREFIX construct: <x> ask {}", "ASK"),
        ("# CONSTRUCT\nDESCRIBE <construct>", "DESCRIBE"),
        ("DEFINE sql:construct 'construct' SELECT * {}", "SELECT"),
        ("INSERT DATA {}", "UPDATE"),
        ("DELETE WHERE {}", "UPDATE"),
        ("WITH <g> DELETE {} WHERE {}", "UPDATE"),
        ("LOAD <x>", "UPDATE"),
        ("CLEAR ALL", "UPDATE"),
        ("DROP ALL", "UPDATE"),
        ("CREATE GRAPH <x>", "UPDATE"),
        ("ADD <x> TO <y>", "UPDATE"),
        ("MOVE <x> TO <y>", "UPDATE"),
        ("COPY <x> TO <y>", "UPDATE"),
    ],
)
def test_other_forms(text: str, form: str) -> None:
    assert query_form(text) == query_form("\ufeff" + text) == form
    with pytest.raises(NotConstruct) as raised:
        ConstructQuery.parse(text)
    assert raised.value.form == form


def test_deep_but_not_too_deep() -> None:
    query = parse(f"CONSTRUCT {{ ?s a {'[ a ' * 100} 1 {']' * 100} }} {{}}")
    assert len(query.template.patterns) == 101
    nested = parse(f"CONSTRUCT {{ ?s a {'<<( ?s a ' * 100} 1 {')>>' * 100} }} {{}}")
    assert len(nested.template.instantiate(("<urn:a>",), 0)) == 1
