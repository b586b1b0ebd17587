"""Which queries the embedded engine has no stack for: refused, with the place, instead of the end of a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Final

import pytest

from construct_messages import construct_messages
from construct_messages.errors import QueryError
from construct_messages.query.embedded import MOST_JOINED, MOST_NESTED, check_depth
from tests.support.places import ROOT

TRIPLE: Final = "?s ?p ?o"


def nested(before: str, within: str, behind: str) -> Callable[[int], str]:
    return lambda count: f"SELECT * {{ {TRIPLE} {count * before} {within} {count * behind} }}"


def joined(part: str) -> Callable[[int], str]:
    return lambda count: f"SELECT * {{ {TRIPLE} {' '.join(part.format(n) for n in range(count))} }}"


# by how many parts there are, and how many of these are allowed
DEEP: Final[dict[str, tuple[Callable[[int], str], int]]] = {
    "parentheses": (
        lambda n: f"SELECT * {{ {TRIPLE} FILTER{n * '('}1{n * ')'} }}",
        MOST_NESTED - 2,
    ),
    "groups": (nested("{", TRIPLE, "}"), MOST_NESTED - 2),
    "GRAPH": (nested("GRAPH ?g {", TRIPLE, "}"), MOST_NESTED - 2),
    "EXISTS": (nested("FILTER EXISTS {", TRIPLE, "}"), MOST_NESTED - 2),
    "IF": (lambda n: f"SELECT * {{ {TRIPLE} FILTER({n * 'IF(1,1,'}1{n * ')'}) }}", MOST_NESTED - 3),
    "sub-selects": (nested("{ SELECT * {", TRIPLE, "}}"), MOST_NESTED // 2 - 1),
    "negations": (lambda n: f"SELECT * {{ {TRIPLE} FILTER({n * '!'}1) }}", MOST_NESTED),
    "UNION": (
        lambda n: f"SELECT * {{ {' UNION '.join([f'{{ {TRIPLE} }}'] * (n + 1))} }}",
        MOST_JOINED,
    ),
    "FILTER": (joined("FILTER(?o != {})"), MOST_JOINED),
    "MINUS": (joined("MINUS {{ ?s ?p {} }}"), MOST_JOINED // 2),
    "BIND": (joined("BIND({0} AS ?v{0})"), MOST_JOINED // 2),
    "sums": (lambda n: f"SELECT * {{ {TRIPLE} FILTER({'1 + ' * n}1) }}", MOST_JOINED),
    "alternatives": (lambda n: f"SELECT * {{ ?s {'<urn:p>|' * n}<urn:p> ?o }}", MOST_JOINED),
}


@pytest.mark.parametrize(("make", "most"), DEEP.values(), ids=DEEP)
def test_what_is_refused(make: Callable[[int], str], most: int) -> None:
    check_depth(make(most))
    with pytest.raises(
        QueryError, match=r"nests more than 500 deep|joins more than 4000 parts"
    ) as refused:
        check_depth(make(most + 1))
    assert refused.value.status == 400
    assert refused.value.position is not None


ASK_ENGINE: Final = """
import itertools, json, sys
import pyoxigraph as ox
store = ox.Store()
store.load(b"<urn:s> <urn:p> 1 .", ox.RdfFormat.TURTLE)
list(itertools.islice(store.query(json.load(sys.stdin)), 1))
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    "name", ["parentheses", "EXISTS", "IF", "sub-selects", "negations", "BIND", "MINUS"]
)
def test_the_engine_takes_the_rest(name: str) -> None:
    """In a process of its own, which it could end. (It takes more of the others, but not as fast.)"""
    make, most = DEEP[name]
    done = subprocess.run(
        [sys.executable, "-c", ASK_ENGINE], input=json.dumps(make(most)).encode(), check=False
    )
    assert done.returncode == 0


TOO_DEEP: Final = ("parentheses", "UNION", "negations", "BIND")


@pytest.mark.parametrize(
    "name", [*TOO_DEEP[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in TOO_DEEP[1:])]
)
def test_this_process_goes_on(name: str) -> None:
    """Issue 26, 16: the engine evaluates in a thread of it."""
    query = DEEP[name][0](20_000).replace("SELECT *", "CONSTRUCT { ?s ?p ?o } WHERE")
    with pytest.raises(QueryError, match=r"the query (nests|joins) more than"):
        list(construct_messages(query, ROOT / "queries" / "data" / "companies.ttl"))
