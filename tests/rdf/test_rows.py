"""`row_message`: a row of SELECT as a message, and the row read back from it."""

from collections.abc import Sequence
from itertools import pairwise

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import UsageError
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import row_message
from construct_messages.rdf.terms import Term, from_pyoxigraph

READ = """
PREFIX rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#>
SELECT ?variable ?value WHERE {
  ?set a rs:ResultSet ; rs:resultVariable ?variable ; rs:solution ?solution
  OPTIONAL { ?solution rs:binding [ rs:variable ?variable ; rs:value ?value ] }
}
"""

TERMS = st.sampled_from(
    [
        Term(""),
        Term("<urn:a>"),
        Term("<urn:b>"),
        Term('"a"'),
        Term('"a"@en'),
        Term('"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        Term("<<( <urn:a> <urn:p> <urn:b> )>>"),
    ]
)


def read_back(message: Message) -> dict[str, Term]:
    """The row that an engine finds in a message: each variable's value."""
    store = ox.Store()
    store.load("".join(f"{quad}\n" for quad in message), format=ox.RdfFormat.N_QUADS)
    rows = store.query(READ)
    assert isinstance(rows, ox.QuerySolutions)
    found = [
        (row["variable"].value, Term("") if row["value"] is None else from_pyoxigraph(row["value"]))
        for row in rows
    ]
    assert len(found) == len(dict(found))
    return dict(found)


@given(st.lists(TERMS, max_size=5))
def test_row_is_read_back(solution: Sequence[Term]) -> None:
    variables = [f"v{index}" for index in range(len(solution))]
    message = row_message(variables, solution, Labels("y"), 3)
    assert read_back(message) == dict(zip(variables, solution, strict=True))


def test_rows_share_no_nodes_but_those_of_the_data() -> None:
    rows = [row_message(("v",), (Term("_:x_db0"),), Labels("y"), number) for number in range(3)]
    nodes = [{term for quad in row for term in quad[:3] if term.startswith("_:")} for row in rows]
    for before, after in pairwise(nodes):
        assert before & after == {"_:x_db0"}


def test_row_without_variables() -> None:
    assert len(row_message((), (), Labels("y"), 0)) == 2


def test_row_of_another_query_is_refused() -> None:
    with pytest.raises(UsageError, match="1 terms are no row of 2 variables"):
        row_message(("a", "b"), (Term("<urn:a>"),), Labels("y"), 0)
