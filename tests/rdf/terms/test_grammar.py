"""The terminals: what is compiled for texts of ASCII takes the same of them as what is compiled for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.query import tokens
from construct_messages.rdf.terms import grammar, parsing

FRAGMENTS = [
    *map(chr, range(0x80)),
    "_:b",
    "e:x.y",
    "<urn:a>",
    '"""',
    "\\u00e9",
    "@en--ltr",
    "<<(",
    "true",
    "1.5e0",
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS)).map("".join)


@pytest.mark.parametrize(
    "pattern",
    [tokens._TOKEN, tokens._WORD, parsing._TOKEN, grammar.BLANK_LABEL],
    ids=["tokens of queries", "words of queries", "terms", "labels"],
)
@given(text=TEXTS)
def test_texts_of_ascii_match_alike(pattern: str, text: str) -> None:
    found, expected = (
        [
            (match.lastgroup, match.span())
            for match in grammar.compiled(pattern, is_ascii).finditer(text)
        ]
        for is_ascii in (True, False)
    )
    assert found == expected
