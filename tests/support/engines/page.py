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
the messages with a reference that shares no code with the package. The tables list every difference; a test fails when
one no longer exists. `embedded` is pyoxigraph in this process; over tables of quads (`duckdb`) and on `spark`, this
package evaluates queries itself.
"""

REST = """\
## Notes on engines

**DuckDB and Spark.** [Tables of quads](sources.md#tables-of-quads), and all data on [Spark](spark.md), are queried by
one plan of this package, which becomes SQL of either engine, with values by the
specifications: integers and decimals of any length (quotients and products of decimals are cut at the 18th digit after
the point), all types of dates, regular expressions of XPath. So it differs from the embedded engine where that differs
from SPARQL: duplicates of alternative paths and of negated property sets count, `NaN` and dates without a time zone
compare as XPath says, casts to `xsd:integer` have more than 64 bits, `xsd:string` of a double of a million and more has
an exponent, and `xsd:decimal` of a float has the digits of that double and no more. `ORDER BY` has an order without
cycles: blank nodes, IRIs, numbers, strings, booleans, dates, other literals. SAMPLE takes the first term in the order
of strings, and GROUP_CONCAT joins in that order. VALUES in a graph that there is not has no solutions. Thousands of
random queries, and 200 that were found in the wild, have the solutions of the embedded engine otherwise.

Jena answers 88 of 109 queries over real data as DuckDB does here. In the others it writes other forms of numbers
(`31.0` for `31`, 24 digits of quotients), spells tags `en-US`, takes `-0e0 < 0` and `NaN > 0` for true, and has values
where SPARQL has an error: `STR` of blank nodes, `YEAR` of durations, casts from any literal.

**The embedded engine and Oxigraph.** The order by value has cycles where numbers and strings meet (9 < 10 < "10" < 9),
and such an `ORDER BY` may end the process of an Oxigraph server. Order by `STR(?o)` there. The embedded engine is asked
for keys without cycles instead: no value, blank nodes, IRIs, numbers, dates and times, durations, other literals by
text, datatype and language, then triple terms. That takes up to twice the time of its own sort.

Queries for the embedded engine are rewritten where its answers differ from SPARQL:

- Alternatives of paths become UNION, because it returns a solution of several alternatives once.
- In `GRAPH ?g`, a `MINUS` without a variable in common is omitted. A `MINUS` whose common variables may be unbound is
  refused: write it after the group of `GRAPH ?g`, or use `FILTER NOT EXISTS`.
- A sub-select in `GRAPH ?g` gets `?g` in its projection and its `GROUP BY`. It is refused with `LIMIT`, with `OFFSET`,
  with aggregates but no `GROUP BY`, and with another variable of that name.
- `{ FILTER(true) }` is added to a `GRAPH ?g` in which no triple is matched directly, so that `?g` is bound.
- A `?g` in `OPTIONAL`, `MINUS`, `BIND` or a condition in `GRAPH ?g` becomes another variable, which is compared with
  `?g` after the group: the engine would know the graph in it already.
- A variable of `EXISTS` that the group of its `FILTER` does not bind, but one around it does, gets another name: the
  engine would know its value. So does such a variable of other expressions in nested groups, for example `?x` in
  `?s ?p ?x OPTIONAL { ?s ?q ?o BIND(STR(?x) AS ?y) }`.
- `COUNT` of an expression becomes `COUNT` of a variable that `BIND` assigns: the engine has no count for a group in
  which the expression is an error, where SPARQL does not count the error.

The same holds for `GRAPH ?m` in windows. These differences remain:

- The third of three nested `OPTIONAL`s sees what is bound around the first if it has no variable in common with the
  second, as in `?s :q ?o OPTIONAL { ?s :q ?o OPTIONAL { :a :r ?x OPTIONAL { ?s :p ?o } } }`.
- `<`, `<=`, `>` and `>=` are errors between two different booleans, so that a FILTER with them leaves the solution out.
  Compare with `=`.
- SPARQL 1.1 leaves open what a variable that is bound outside means in `MINUS` within `EXISTS`. The embedded engine
  compares its value on both sides; Jena does not.

**Virtuoso.**

- With a default graph, as DBpedia has one, `GRAPH <name> { … }` returns nothing, without an error. Use
  `GRAPH ?g { … } FILTER(?g = <name>)`, or `FROM NAMED <name>`.
- Its own CONSTRUCT stops after 10,001 triples, with status 200 and without a header.
- Its order by value follows the plan, so a query with such an order over several pages may be an
  [error](sources.md#endpoints).
- A page of 10,000 solutions takes it 1.2 s to write as JSON and another second to sort.

**rdflib-endpoint and Comunica** ignore `default-graph-uri` and `named-graph-uri`: use FROM. Comunica ignores LIMIT 0,
so it gets no such query, and does not sort blank nodes: groups by them need `order="appearance"`.

**RDF4J and GraphDB.** RDF4J answers some orders by value with status 200 and nothing, which is an error here: order by
`STR(?o)`. Its TSV has no length for a client that closes the connection: ask for JSON. Triple terms are
[read](sources.md#endpoints) from JSON. GraphDB has two settings that end results without a sign, `query-limit-results`
and `query-timeout` with `throw-QueryEvaluationException-on-timeout` false. Read such results in pages.

**Blazegraph** repeats some solutions on two pages of an order by value, which is an error that shows both. Order by
texts. Wikidata ends queries after 60 s.

**Ontop** cannot sort values of several types: order by texts. Its TSV is refused, because strings have no quotation
marks there. Its profile asks for JSON.

**Stardog** ends queries after `query.timeout` with an error. Its triple terms (`statement`) are read.

**QLever** ends queries after 30 s with status 429, which is not repeated. The reason of an error after the first byte
is shown. Old versions end JSON after 1,000,000 solutions; one more request then asks for the next. Do not put the
parameter `send` into its URL, which limits JSON.

**Truth values.** SPARQL 1.1 takes `"x"@en` for true and ill-typed numbers for false, as DuckDB and Spark do here;
drafts of SPARQL 1.2 take both for errors. Write `FILTER(STR(?x) != "")` to test for text.

**RDF 1.2** (triple terms, base directions) is tested with Oxigraph, and with RDF4J for triple terms. The others do not
read such data.

## Run these tests

| engine | version | profile | installed by |
|---|---|---|---|
| Oxigraph server | 0.5 | `oxigraph` | `pip install oxigraph` |
| rdflib-endpoint | 0.6 | `rdflib` | `pip install 'rdflib-endpoint[cli]'` |
| Virtuoso | 7.2.5 | `virtuoso` | `apt-get install virtuoso-opensource-7-bin` |
| Comunica | 4.5 | `generic` | `npm install @comunica/query-sparql-file@4` |
| Apache Jena Fuseki | 5.6 | `fuseki` | Maven |
| RDF4J Server | 4.1 | `rdf4j` | Maven |
| Blazegraph | 2.1 | `blazegraph` | Maven |
| Ontop, over H2 | 4.1 | `ontop` | Maven |

```sh
npm install --prefix ~/engines @comunica/query-sparql-file@4 @comunica/query-sparql@4
CONSTRUCT_MESSAGES_NODE=~/engines pytest tests/sparql/sources/test_engines.py tests/server/test_clients.py
mvn --file tests/support/engines/rdf4j.xml dependency:copy-dependencies -DoutputDirectory=$HOME/rdf4j
CONSTRUCT_MESSAGES_RDF4J=$HOME/rdf4j pytest tests/sparql/sources/test_paged_engines.py -k rdf4j
```

A missing engine skips its tests, or fails them where `CI` is `true`. GraphDB, Stardog and QLever cannot be installed by
the tests: notes and [profiles](sources.md#endpoints) are from their documentation and source code, and scripted servers
play them. `tests/support/engines/upstream-reports.md` has the bugs among these differences as texts for issue trackers.
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
    """Yield a table of the queries that engines answer differently, a line for those that differ alike."""
    yield "## Queries that engines answer differently"
    yield ""
    yield "| query | engines | difference | result |"
    yield "|---|---|---|---|"
    for name, by_engine in DIFFERENCES.items():
        alike: dict[tuple[str, str], list[str]] = {}
        for engine, (reason, instead) in by_engine.items():
            result = (
                f"an error: {instead.words}"
                if isinstance(instead, Fails)
                else count(len(instead.messages))
            )
            alike.setdefault((reason, result), []).append(engine)
        for (reason, result), engines in alike.items():
            yield f"| {name} | {', '.join(engines)} | {reason} | {result} |"


def count(messages: int) -> str:
    return {0: "no messages", 1: "1 message"}.get(messages, f"{messages} messages")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
