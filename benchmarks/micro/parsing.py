"""SPARQL text to a tree, against rdflib's parser: `python -m benchmarks micro parsing [--queries DIR] [--rounds N]`.

The queries are the specification's and, with `--queries`, all `.rq` files of a folder which both parsers read.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rdflib.plugins.sparql.parser import parseQuery

from benchmarks.harness import Figure, alternate, report
from benchmarks.micro import data
from construct_messages import ConstructQuery
from construct_messages.errors import QueryError
from construct_messages.query.checks import check
from construct_messages.query.syntax.parser import parse
from construct_messages.query.tokens import tokenize

BASE = "http://example.org/"


def main() -> None:
    """Measures tokens, the tree, the checks and the rewriting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    files = sorted(arguments.queries.rglob("*.rq")) if arguments.queries else []
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    queries = [text for text in (data.SPECIFICATION, *texts) if is_read(text)]
    report("parsing", f"{len(queries)} queries read", measure(queries, arguments.rounds))


def is_read(text: str) -> bool:
    """Whether both read the query."""
    try:
        checked(text)
        ConstructQuery.parse(text, base=BASE)
        parseQuery(text)
    except QueryError:
        return False
    except Exception:  # noqa: BLE001 - rdflib raises whatever it meets
        return False
    return True


def checked(text: str) -> None:
    """Reads and checks a query."""
    check(parse(text, base=BASE))


def measure(queries: Sequence[str], rounds: int) -> list[Figure]:
    """The table's lines."""
    works: dict[str, Callable[[str], object]] = {
        "rdflib's parser": parseQuery,
        "tokens": tokenize,
        "the tree": parse,
        "the tree, checked": checked,
        "the SELECT and the template": partial(ConstructQuery.parse, base=BASE),
    }
    times = alternate(rounds, [partial(each, work, queries) for work in works.values()])
    rdflib = times[0]
    return [
        Figure(
            name if index == 0 else f"{name}, against rdflib's parser",
            time,
            rdflib / time if index else None,
            "≥ 20" if name == "the tree" else "",
        )
        for index, (name, time) in enumerate(zip(works, times, strict=True))
    ]


def each(work: Callable[[str], object], queries: Sequence[str]) -> None:
    """Does it for each query."""
    for query in queries:
        work(query)
