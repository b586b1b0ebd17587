"""Tokens of any text: nothing lost, nothing raised, in linear time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import QueryError
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.query.tokens import check_braces, decoded, outer, tokenize
from tests.support.growth import bounded_cpu
from tests.support.queries.braces import closing

pytestmark = pytest.mark.slow

FRAGMENTS = st.sampled_from(
    [
        *"{}()[]<>.,;:?$@#'\"\\_^~|!%+- \n\r\ta1é\ufeff\x00",
        *(
            '"""',
            "'''",
            "<<(",
            ")>>",
            "<<",
            ">>",
            "{|",
            "|}",
            "_:b",
            "\\u0041",
            "\\uD800",
            "e:",
            "<http://e/>",
            "@en--ltr",
        ),
        *(
            "CONSTRUCT ",
            " WHERE ",
            "FROM ",
            "GRAPH",
            "PREFIX ",
            "BASE ",
            "DEFINE ",
            "VALUES ",
            "ORDER BY ",
            "GROUP BY ",
        ),
        *(
            "?s ",
            "?p ",
            "?o ",
            " a ",
            "?s ?p ?o",
            "LIMIT ",
            "OFFSET ",
            "HAVING",
            "WITH",
            "10",
            " AS ",
            "true",
        ),
    ]
)
SCRAPS = st.lists(FRAGMENTS, max_size=40).map("".join)
QUERIES = st.builds(
    "{}CONSTRUCT{{{}}}WHERE{{{}}}{}".format, *(SCRAPS | st.just("") for _ in range(4))
)


@contextmanager
def refusals() -> Iterator[list[QueryError]]:
    """Collects the one error that is allowed."""
    found: list[QueryError] = []
    try:
        yield found
    except QueryError as refused:
        found.append(refused)


@given(st.text() | SCRAPS | QUERIES)
def test_tokens_are_pieces_of_the_text(text: str) -> None:
    end = 0
    for token in tokenize(text):
        assert token.start >= end
        assert text[token.start : token.end] == token.text
        between = text[end : token.start]
        assert not between.strip(" \t\r\n") or "#" in between
        end = token.end


@given(st.text() | SCRAPS)
def test_form_of_any_text(text: str) -> None:
    with refusals() as refused:
        assert query_form(text) in {"CONSTRUCT", "SELECT", "ASK", "DESCRIBE", "UPDATE"}
    assert all(error.position for error in refused)


@given(QUERIES, st.sampled_from([None, "http://e/"]))
def test_any_text_is_rewritten_or_refused_with_its_place(text: str, base: str | None) -> None:
    with refusals() as refused:
        query = ConstructQuery.parse(text, base=base, prefixes={"e": "http://e/"})
        assert query.template.variables == query.rewritten.variables
        pieces = query.rewritten
        assert str(pieces).endswith(
            pieces.group + pieces.aggregation + pieces.order + pieces.slice + pieces.values
        )
    assert all(error.position for error in refused)


LONG = [
    *(
        "{",
        "}",
        '"',
        "'",
        "<",
        "<a",
        "a-",
        "a.",
        '\\"',
        "'''\"\"\"",
        "_:a.",
        "?",
        "\\u0041",
        "1",
        "1.",
        "@a-",
        "'''\\",
    ),
    *(
        "[",
        "(",
        "é",
        ".",
        "a..",
        ":.",
        "%",
        '"a\n',
        "#",
        "CONSTRUCT ",
        "CONSTRUCT{",
        "?s a ",
        "<<(",
        "'a\\",
        "PREFIX :<a>",
    ),
    *("?s a [],", "_:b a 1 .", "[ a 1 ] .", "?s a 1 ~ {| a 2 |} ."),
]


@pytest.mark.parametrize("part", LONG)
def test_linear_time(part: str) -> None:
    text = part * (20_000 // len(part))
    with bounded_cpu():
        for query in (text, f"CONSTRUCT {{ {text}", f"CONSTRUCT {{}} {{ {text} }}"):
            with refusals():
                ConstructQuery.parse(query, base="http://e/")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (
            "?a<?b && ?c>?d",
            ["variable", "other", "variable", "other", "other", "variable", "other", "variable"],
        ),
        ("<a>", ["iri"]),
        ("?x-1", ["variable", "number"]),
        ("a:b-1.x.", ["pname", "mark"]),
        ("a.b-c", ["word", "mark", "word", "other", "word"]),
        ("_:a.b.", ["blank", "mark"]),
        ("_:", ["other", "pname"]),
        ('"a" """b" """ \'c', ["string", "string", "unclosed"]),
        ("'a\n'", ["unclosed", "unclosed"]),
        ("'''a\n", ["unclosed"]),
        ("1.e1 .5 5. +1", ["number", "number", "number", "mark", "number"]),
        ("<<(<< >>)>>", ["mark", "mark", "mark", "mark"]),
        ("{| |} ^^ ^", ["mark", "mark", "mark", "other"]),
        ("'x'@en--ltr", ["string", "language"]),
        ("# <a>\r'#' <#> e:\\#", ["string", "iri", "pname"]),
    ],
)
def test_kinds(text: str, kinds: list[str]) -> None:
    assert [token.kind for token in tokenize(text)] == kinds


def test_braces() -> None:
    text = "{ '}' { # }\n } } ( { ) }"
    tokens = tokenize(text)
    check_braces(text, tokens)
    assert tokens[closing(tokens, 0)].start == text.index("} (")
    inside = tokenize("a(b(c)d)e{f}g)h")
    assert [inside[index].text for index in outer(inside, 0, len(inside))] == [*"a()e{}g)h"]


def test_decoded_names() -> None:
    assert [
        decoded("", tokenize(name)[0])
        for name in (r"?\u0061b", r"\u0061:\U00000062\-", r"_:\u0061")
    ] == [
        "?ab",
        "a:b\\-",
        "_:a",
    ]
