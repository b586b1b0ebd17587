"""Write docs/reference/engines.md: the known differences of engines, from the tables that the tests check.

Run `python -m tests.support.engines.page`. A test checks that the page is up to date.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.engines.construct_cases import CASES, CHANGED, DIFFERENCES, VALUES, Fails
from tests.support.engines.servers import ENGINES
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "reference" / "engines.md"

HEAD = f"""\
# Engines: known differences

<!-- written by `python -m tests.support.engines.page`; do not edit -->

The tests send {len(CASES)} CONSTRUCT queries to each engine, through the package and through the server, and compare
the results message by message with a reference that shares no code with the package: Oxigraph in memory evaluates a
handwritten SELECT, and a few lines instantiate a template that is defined as data. The tables below list each
difference and its reason. A test fails when a difference no longer exists.

| engine | version | installed by | profile | data |
|---|---|---|---|---|
| Oxigraph server | 0.5 | `pip install oxigraph` | `oxigraph` | a store directory |
| rdflib-endpoint | 0.6 | `pip install 'rdflib-endpoint[cli]'` | `rdflib` | a file |
| Virtuoso | 7.2.5 | `apt-get install virtuoso-opensource-7-bin` | `virtuoso` | its own store |
| Comunica | 4.5 | `npm install @comunica/query-sparql-file@4` | `generic` | a file |

On [Spark](spark.md), this package evaluates queries itself. The same queries run there over a DataFrame, and over a
DataFrame that contains every quad twice.

The tests start each engine on loopback. Set the environment variable `CONSTRUCT_MESSAGES_NODE` to the folder of the npm
packages:

```sh
npm install --prefix ~/engines @comunica/query-sparql-file@4 @comunica/query-sparql@4
CONSTRUCT_MESSAGES_NODE=~/engines pytest tests/sparql/sources/test_engines.py tests/server/test_clients.py
```

Results in pages, in orders of their own, and by key are also read from four engines in Java, which Maven installs:

| engine | version | profile | also tried |
|---|---|---|---|
| Apache Jena Fuseki | 5.6 | `fuseki` | sorted groups |
| RDF4J Server | 4.1 | `rdf4j` | sorted groups; triple terms of RDF-star |
| Blazegraph | 2.1 | `blazegraph` | sorted groups; the reasons of its errors |
| Ontop, over H2 | 4.1 | `ontop` | sorted groups |

```sh
mvn --file tests/support/engines/rdf4j.xml dependency:copy-dependencies -DoutputDirectory=$HOME/rdf4j
CONSTRUCT_MESSAGES_RDF4J=$HOME/rdf4j pytest tests/sparql/sources/test_paged_engines.py -k rdf4j
```

GraphDB, Stardog and QLever cannot be installed by the tests. What is written here and in their
[profiles](sources.md#endpoints) about them is from their documentation, source code and issues, and scripted servers
play it.

If an engine is missing, its tests are skipped with the command that installs it. If the environment variable `CI` is
`true`, they fail.
"""

REST = """\
## Notes on engines

- **Reported.** `tests/support/engines/upstream-reports.md` has the bugs among these as texts for their issue
  trackers.
- **The embedded engine** gets alternatives of paths as UNION, as it returns a solution of several of them once. An
  alternative whose blank node is used on both sides of a FILTER stays as it is. In `GRAPH ?g`, a `MINUS` that shares
  no variable with what is before it is left out. One whose shared variables may be unbound is refused: write it behind
  the group of `GRAPH ?g`, or use `FILTER NOT EXISTS`. A sub-select in `GRAPH ?g` gets `?g` in its projection and its
  `GROUP BY`, so that it is evaluated in each graph by itself. Refused are sub-selects there with `LIMIT` or `OFFSET`,
  with aggregates but no `GROUP BY` (write `GROUP BY ?g`, which leaves out graphs without solutions), and with another
  variable of the name `?g` (rename it). Where no triple is matched directly in `GRAPH ?g`, as in another `GRAPH` or
  VALUES, `{ FILTER(true) }` is added, so that `?g` is bound. All this is the same in windows (`GRAPH ?m`).
- **Truth values.** SPARQL 1.1 takes `"x"@en` for true and ill-typed numbers for false; drafts of SPARQL 1.2 take both
  for errors. On Spark they are those of SPARQL 1.1, with the other engines mostly errors: a `FILTER(?x)` over such
  values keeps other solutions. Write `FILTER(STR(?x) != "")` to test for text.
- **Oxigraph's order by value** has cycles where numbers and strings meet: 9 < 10 < "10" < 9. `ORDER BY ?o` over such
  values may end the process of an Oxigraph server: order by `STR(?o)`, or by a variable whose values are of one type.
  The embedded engine is asked for keys without cycles, in sub-selects, too: no value, blank nodes, IRIs, numbers, dates
  and times, durations, all other literals by their text, datatype and language, and triple terms. Numbers are compared
  as in `<`, integers beyond ±1.7·10²⁰ as doubles; dates and times without a timezone as in UTC; triple terms inside of
  triple terms are equal. This takes up to twice the time of the engine's own sort.
- **Virtuoso's order by value** of IRIs, literals and blank nodes follows its plan. Pages do not depend on it, except
  those of a query with such an order of its own, which are an [error](sources.md#endpoints) if it changes between them.
- **RDF4J's order by value** of several types may be none: it answers with status 200 and nothing, which is an error.
  Pages and sorted groups are in an order by texts. If the query orders by such values, write `ORDER BY STR(?o)`. For a
  client that closes the connection its TSV has no length, so it is refused: ask for JSON.
- **RDF4J and GraphDB** have triples of RDF-star as terms, [which are read](sources.md#endpoints) from JSON.
- **GraphDB** has two settings of a repository that end results early and say nothing: `query-limit-results`, and
  `query-timeout` while `throw-QueryEvaluationException-on-timeout` is false, its default. Both are 0, no limit, unless
  the owner changed them. Read such results in pages: after a short page, one more request asks for the rest.
- **Blazegraph's order by value** of several types repeats some solutions on two pages, which is an error that shows
  both. Order by texts. Its errors repeat the query; the reason after it is shown. Wikidata ends queries after 60 s.
- **Ontop** cannot sort values of several types: order by texts. Its TSV is refused: it has the media type
  `text/sparql-results+tsv`, and strings without quotation marks, which nothing distinguishes from other terms: a string
  `<urn:a>` would become an IRI. Its profile asks for JSON; do not give `results="tsv"`.
- **Stardog** ends queries after `query.timeout`, a setting, with an error. Its triple terms (`statement`) are read.
- **QLever** ends queries after 30 s (`default-query-timeout`), with status 429, which is not repeated if the reason is
  a timeout. An error after the first byte is in the end of the result, after `!!!!>># An error has occurred`: its
  reason is shown. Old versions end JSON after 1,000,000 solutions; if exactly as many arrive, one more request asks for
  the next. Leave the parameter `send` out of its URL: it limits JSON.
- **Comunica** does not sort blank nodes: groups by them need `order="appearance"`.
- **RDF 1.2** (triple terms, base directions) is only tested with Oxigraph, except for the triple terms of RDF4J. A test
  checks that rdflib-endpoint, Virtuoso and Comunica do not read such data.
- **Ignored parameters.** rdflib-endpoint and Comunica accept `default-graph-uri` and `named-graph-uri`, but ignore
  them: use FROM instead. Comunica ignores LIMIT 0 and returns everything, so it gets no such query.
- **Virtuoso with a default graph**, such as DBpedia, returns nothing for `GRAPH <name> { … }`, without an error. Use
  `GRAPH ?g { … } FILTER(?g = <name>)` or `FROM NAMED <name>` instead.
- **Virtuoso's own CONSTRUCT** stops after 10,001 triples, with status 200 and without a header about it. For the
  specification's query over 110,000 solutions it returned 10,001 of 220,600 triples. In pages of 10,000 solutions,
  all 110,000 messages arrived.
- **Time of a Virtuoso page.** Of 10,000 solutions of that query, writing the JSON takes 1.2 s and sorting in a
  sub-select another second.
"""


def page() -> str:
    return "\n".join([HEAD, *terms(), "", *differences(), "", REST])


def terms() -> Iterator[str]:
    """Yield a table of the terms that an engine changes."""
    yield "## Terms that engines change"
    yield ""
    yield f"All engines return the others of the {len(VALUES)} tested kinds of terms unchanged, as in empty cells."
    yield ""
    yield f"| in the data | {' | '.join(ENGINES)} |"
    yield f"|---|{'---|' * len(ENGINES)}"
    for name, value in VALUES.items():
        changed = [CHANGED.get(engine, {}).get(name) for engine in ENGINES]
        if any(changed):
            yield f"| `{value}` | {' | '.join(f'`{other}`' if other else '' for other in changed)} |"


def differences() -> Iterator[str]:
    """Yield a table of the queries that engines answer differently."""
    yield "## Queries that engines answer differently"
    yield ""
    yield "| query | engine | difference | result |"
    yield "|---|---|---|---|"
    for name, by_engine in DIFFERENCES.items():
        for engine, (reason, instead) in by_engine.items():
            what = (
                f"an error: {instead.words}"
                if isinstance(instead, Fails)
                else count(len(instead.messages))
            )
            yield f"| {name} | {engine} | {reason} | {what} |"


def count(messages: int) -> str:
    return {0: "no messages", 1: "1 message"}.get(messages, f"{messages} messages")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
