"""OPTIONAL, EXISTS and MINUS with conditions on both sides that SQL decides for some terms: solutions as pyoxigraph's.

Both sides have literals of all kinds: the same numbers in several types and forms, dates with and without a zone,
escapes, languages, forms that are not of their datatype.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

pytest.importorskip("duckdb")

from tests.support.queries.relational import evaluated, planned
from tests.support.spark.pairs import asked, read_by_pyoxigraph


def test_solutions_are_those_of_pyoxigraph() -> None:
    fruitful = 0
    random = Random(7)
    for number, (query, quads) in enumerate(random.sample([*asked(random)], 60)):
        wanted = read_by_pyoxigraph(query, quads)
        found = evaluated(planned(query), quads, asks=number % 2 == 0)
        assert Counter(found) == wanted, query
        fruitful += bool(wanted)
    assert fruitful > 20
