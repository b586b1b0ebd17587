"""A flat CONSTRUCT, and the template asked of the result again, with rdflib or with pyoxigraph.

Knows the template, which of its parts are optional, and the filters of the query. Cannot know which triples came
together: where two solutions share a node, the parts of one match with those of the other; equal solutions are one;
what the query looked at and did not construct is lost.
"""

from __future__ import annotations

from benchmarks.suite.competitors.flat import ask
from benchmarks.suite.competitors.printing import instantiate, pieces, print_groups
from benchmarks.suite.competitors.solutions import by_pyoxigraph, by_rdflib

ENGINES = {"rdflib": by_rdflib, "pyoxigraph": by_pyoxigraph}


def main() -> None:
    """Arguments: the pieces, the endpoint, and `rdflib` or `pyoxigraph`."""
    query, (endpoint, engine) = pieces()
    with ask(endpoint, query["construct"]) as answer:
        solutions = ENGINES[engine](answer, query["rematch"])
        print_groups(instantiate(query["rematch_template"], solution, 0) for solution in solutions)


if __name__ == "__main__":
    main()
