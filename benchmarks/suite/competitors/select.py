"""A SELECT with the same WHERE clause, and the template filled in by hand: the careful user's way.

Knows everything: a row is a solution. All groups are right where the user has got all of this right for his template:
unbound variables, literals as subjects, blank nodes that are new for each row, escapes. He writes it again for each
query, and what he has then is no RDF log but his own text. An endpoint that cuts its answers off cuts this one, too,
unless he knows that and asks for pages; without an order, which Virtuoso refuses beyond 10,000 rows, nothing promises
that pages fit together.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.suite.competitors.printing import instantiate, pieces, print_groups
from benchmarks.suite.competitors.solutions import (
    by_oxigraph,
    by_pages,
    by_pyoxigraph,
    by_rdflib,
    by_sparqlwrapper,
)


def main() -> None:
    """Arguments: the pieces, who evaluates, and the data or the endpoint; for "oxigraph" also its program."""
    query, (engine, source, *more) = pieces()
    select = query["select"]
    match engine:
        case "sparqlwrapper":
            solutions = by_sparqlwrapper(source, select)
        case "pages":
            solutions = by_pages(source, select)
        case "rdflib":
            solutions = by_rdflib(Path(source), select)
        case "pyoxigraph":
            solutions = by_pyoxigraph(Path(source), select)
        case _:
            solutions = by_oxigraph(more[0], Path(source), select, Path(sys.argv[1]).parent)
    template = query["template"]
    print_groups(
        instantiate(template, solution, number) for number, solution in enumerate(solutions)
    )


if __name__ == "__main__":
    main()
