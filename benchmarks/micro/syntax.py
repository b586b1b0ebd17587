"""Queries read to a syntax tree, against rdflib and pyoxigraph: `python -m benchmarks micro syntax [--rounds N]`.

The queries are those of the W3C's SPARQL 1.1 suite that all three read; nothing is evaluated. pyoxigraph has no parser
of its own: the query is asked of an empty store, which also plans it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from rdflib.plugins.sparql.parser import parseQuery

from benchmarks.harness import Figure, alternate, report
from construct_messages.query.checks import check
from construct_messages.query.syntax.parser import parse
from tests.support.queries.mutants import BASE, oxigraph_refusal, rdflib_refusal
from tests.support.queries.syntax_cases import syntax_cases


def main() -> None:
    """Measures the three parsers over the same queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    texts = queries()
    readers: Sequence[Callable[[str], object]] = (
        lambda text: check(parse(text, base=BASE)),
        parseQuery,
        oxigraph_refusal,
    )

    def reads(read: Callable[[str], object]) -> Callable[[], object]:
        return lambda: [read(text) for text in texts] and None

    ours, rdflib, oxigraph = alternate(
        rounds, [reads(read) for read in readers], clock=time.process_time
    )
    figures = [
        Figure(
            "this package, with all checks; rdflib's time against that", ours, rdflib / ours, "≥ 20"
        ),
        Figure("rdflib's parseQuery", rdflib),
        Figure("pyoxigraph, over an empty store", oxigraph),
    ]
    report("syntax", f"{len(texts)} queries of the W3C", figures)


def queries() -> list[str]:
    """The legal queries of SPARQL 1.1 that all read, without SERVICE, which pyoxigraph would call."""
    texts = [case.text for case in syntax_cases() if case.legal and "sparql11" in case.name]
    return [
        text
        for text in texts
        if "SERVICE" not in text.upper()
        and oxigraph_refusal(text) is None
        and rdflib_refusal(text) is None
    ]
