"""What a store makes of terms, known beforehand."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from construct_messages.continuous.dataset import StoredTerms
from construct_messages.rdf.terms import XSD

TIME = "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
LEXICAL = st.one_of(
    st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[+-]?(0|[1-9][0-9]{0,8})(\.[0-9]{1,5})?", fullmatch=True),
    st.from_regex(
        r"-?[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,7})?(Z|[+-]0[0-9]:00)?",
        fullmatch=True,
    ),
    st.sampled_from(["true", "false", "1", "0", "INF", "NaN", "-0", "-0.0", "P1D", "PT36H"]),
)
DATATYPES = st.sampled_from(
    [
        *(
            f"{XSD}{name}"
            for name in (
                "integer",
                "decimal",
                "double",
                "float",
                "dateTime",
                "boolean",
                "string",
                "long",
            )
        ),
        *(
            f"{XSD}{name}"
            for name in ("date", "duration", "dayTimeDuration", "int", "nonNegativeInteger")
        ),
        "http://example.org/type",
    ]
)
LITERALS = st.builds(
    lambda text, datatype: ox.Literal(text, datatype=ox.NamedNode(datatype)), LEXICAL, DATATYPES
)
TERMS = LITERALS | st.builds(
    lambda object: ox.Triple(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), object), LITERALS
)


@given(st.lists(TERMS, min_size=1, max_size=5))
@settings(deadline=None, max_examples=60)
@example([ox.Literal("1.50", datatype=ox.NamedNode(f"{XSD}double"))])
def test_equals_what_a_store_gives_back(terms: list[ox.Literal | ox.Triple]) -> None:
    stored = StoredTerms()
    for term in terms:
        quad = ox.Quad(ox.NamedNode("urn:a"), ox.NamedNode("urn:b"), term, ox.NamedNode("urn:g"))
        store = ox.Store()
        store.add(quad)
        assert [stored.term(term)] == [each.object for each in store]


@pytest.mark.parametrize(
    "term", [ox.NamedNode("urn:o"), ox.BlankNode("b"), ox.Literal("a", language="EN")]
)
def test_other_terms_stay(term: ox.NamedNode | ox.BlankNode | ox.Literal) -> None:
    assert StoredTerms().term(term) is term
