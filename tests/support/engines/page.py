"""Writes docs/engines.md: what each engine does differently, from the table that the tests hold them to.

Run it as `python -m tests.support.engines.page`; a test makes sure that the page is what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.engines.construct_cases import CASES, CHANGED, DIFFERENCES, VALUES, Fails
from tests.support.engines.servers import ENGINES
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "engines.md"

HEAD = f"""\
# Engines: what each does differently

<!-- written by `python -m tests.support.engines.page`; do not edit -->

{len(CASES)} CONSTRUCT queries are asked of each engine, by the package and through the server, and compared message
by message with a reference that shares no code with the package: Oxigraph in memory evaluates a SELECT written by
hand, and a few lines instantiate a template given as data. Where an engine gives something else, the table of the
tests says what and why, and a test fails when that is no longer so.

| engine | version | installed by | profile | over |
|---|---|---|---|---|
| Oxigraph server | 0.5 | `pip install oxigraph` | `oxigraph` | a store directory |
| rdflib-endpoint | 0.6 | `pip install 'rdflib-endpoint[cli]'` | `generic` | a file |
| Virtuoso | 7.2.5 | `apt-get install virtuoso-opensource-7-bin` | `virtuoso` | its own store |
| Comunica | 4.5 | `npm install @comunica/query-sparql-file@4` | `generic` | a file |

[Spark](spark.md), where this package evaluates queries itself, is asked the same of a DataFrame, and again of one that
holds every quad twice.

Each engine runs on loopback, started by the tests. npm's folder is named by the environment variable
`CONSTRUCT_MESSAGES_NODE`, as in

```sh
npm install --prefix ~/engines @comunica/query-sparql-file@4 @comunica/query-sparql@4
CONSTRUCT_MESSAGES_NODE=~/engines pytest tests/sources/test_engines.py tests/server/test_clients.py
```

A missing engine skips its tests with the command that installs it; where the environment variable `CI` is `true`,
that is a failure.
"""

REST = """\
## What the table cannot say

- **RDF 1.2** (triple terms, base directions) is only asked of Oxigraph; that the others do not read such data is a
  test, too.
- **Silence.** rdflib-endpoint and Comunica take `default-graph-uri` and `named-graph-uri` and do not heed them: write
  FROM, or do not ask these of them. Comunica gives everything for LIMIT 0, so it is not asked then.
- **Virtuoso with a default graph**, as DBpedia has one, gives nothing for `GRAPH <name> { … }`, without an error:
  write `GRAPH ?g { … } FILTER(?g = <name>)`, or `FROM NAMED <name>`.
- **Virtuoso's own CONSTRUCT** ends after 10,001 triples with status 200 and no header that says so: of the
  specification's query over 110,000 solutions it gave 10,001 of 220,600 triples. Read in pages of 10,000 solutions
  (`python -m benchmarks.virtuoso`), all 110,000 messages came.
- **Time in a Virtuoso page** goes into writing the JSON (1.2 s for 10,000 solutions of that query) and sorting in a
  sub-select (another second); 1,000 ordered solutions without a sub-select took 0.42 s.
"""


def page() -> str:
    return "\n".join([HEAD, *terms(), "", *differences(), "", REST])


def terms() -> Iterator[str]:
    """What becomes of the terms that some engine does not give back as they were."""
    yield "## Terms that do not come back as they were"
    yield ""
    yield f"Of {len(VALUES)} kinds of terms, all others come back as they were from all engines."
    yield ""
    yield f"| in the data | {' | '.join(ENGINES)} |"
    yield f"|---|{'---|' * len(ENGINES)}"
    for name, value in VALUES.items():
        changed = [CHANGED.get(engine, {}).get(name) for engine in ENGINES]
        if any(changed):
            yield f"| `{value}` | {' | '.join(f'`{other}`' if other else '' for other in changed)} |"


def differences() -> Iterator[str]:
    """What engines do otherwise."""
    yield "## Queries that are answered otherwise"
    yield ""
    yield "| query | engine | | what happens |"
    yield "|---|---|---|---|"
    for name, by_engine in DIFFERENCES.items():
        for engine, (reason, instead) in by_engine.items():
            what = f"an error: {instead.words}" if isinstance(instead, Fails) else count(len(instead.messages))
            yield f"| {name} | {engine} | {reason} | {what} |"


def count(messages: int) -> str:
    return {0: "no messages", 1: "1 message"}.get(messages, f"{messages} messages")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
