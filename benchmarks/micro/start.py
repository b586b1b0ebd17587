"""Short runs of the command line, beside scripts that someone would write: `python -m benchmarks micro start`.

Whole processes, in turn, CPU seconds: `run` over a file of about 10,000 triples, beside a script over pyoxigraph, and
`run` at an endpoint whose answer is small, beside a script over SPARQLWrapper, which reads JSON. The scripts write the
same log.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyoxigraph as ox

from benchmarks.harness import Figure, completed, report
from benchmarks.micro import data
from benchmarks.micro.engine import oxigraph_server
from construct_messages import read_log

COMPANIES = 9_300
ENDPOINT_QUERY = f"{data.SPECIFICATION} LIMIT 20"

PATTERN = data.SPECIFICATION.removeprefix(data.PROLOGUE).removeprefix(data.TEMPLATE)
SELECT = f"{data.PROLOGUE}SELECT ?company ?location ?lname ?pop {PATTERN}"
WRITE = f"""
TYPE, DBO = "<{data.RDF_TYPE.value}>", "{data.DBO}"
LABEL, CENSUS = "<{data.LABEL.value}>", "<{data.DBP}populationCensus>"

def write(company, location, label, population):
    print("# @message")
    print(company, TYPE, f"<{{DBO}}Company> .")
    print(company, f"<{{DBO}}location>", location, ".")
    print(location, TYPE, f"<{{DBO}}Country> .")
    print(location, LABEL, label, ".")
    print(location, CENSUS, population, ".")
"""
OVER_PYOXIGRAPH = f"""
import sys
import pyoxigraph
{WRITE}
store = pyoxigraph.Store()
store.bulk_load(path=sys.argv[1])
for company, location, label, population in store.query(sys.argv[2]):
    write(company, location, label, population)
"""
OVER_SPARQLWRAPPER = f"""
import sys
from SPARQLWrapper import JSON, SPARQLWrapper
{WRITE}
def term(value):
    if value["type"] == "uri":
        return f"<{{value['value']}}>"
    if value["type"] == "bnode":
        return f"_:{{value['value']}}"
    literal = f'"{{value["value"]}}"'
    if "xml:lang" in value:
        return f"{{literal}}@{{value['xml:lang']}}"
    return f"{{literal}}^^<{{value['datatype']}}>" if "datatype" in value else literal

endpoint = SPARQLWrapper(sys.argv[1])
endpoint.setReturnFormat(JSON)
endpoint.setQuery(sys.argv[2])
for solution in endpoint.queryAndConvert()["results"]["bindings"]:
    write(*(term(solution[name]) for name in ("company", "location", "lname", "pop")))
"""


def main() -> None:
    """Measures both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report(
            "start",
            "Short runs, CPU seconds of whole processes",
            measure(Path(folder), arguments.rounds),
        )


def measure(folder: Path, rounds: int) -> list[Figure]:
    """Each command beside its script.

    Args:
        folder: an empty one.
        rounds: how often each is run.
    """
    store = data.store(COMPANIES)
    file, query, asked = folder / "data.nt", folder / "query.rq", folder / "small.rq"
    store.dump(str(file), ox.RdfFormat.N_TRIPLES, from_graph=ox.DefaultGraph())
    query.write_text(data.SPECIFICATION)
    asked.write_text(ENDPOINT_QUERY)
    ours = [sys.executable, "-m", "construct_messages", "run"]
    script = [sys.executable, "-c", OVER_PYOXIGRAPH, str(file), SELECT]
    command = [*ours, str(query), "--source", str(file)]
    figures = compare(
        f"over {len(store):,} triples", "pyoxigraph", script, command, "≤ 1.2", rounds
    )
    data.store(COMPANIES, folder / "store")
    with oxigraph_server(folder / "store") as url:
        script = [sys.executable, "-c", OVER_SPARQLWRAPPER, url, f"{SELECT} LIMIT 20"]
        command = [*ours, str(asked), "--source", url]
        for results, profile in (("JSON", []), ("TSV", ["--profile", "oxigraph"])):
            what = f"at an endpoint, 20 messages in {results}"
            figures += compare(what, "SPARQLWrapper", script, [*command, *profile], "≤ 1", rounds)
    return figures


def compare(
    what: str, library: str, script: Sequence[str], command: Sequence[str], goal: str, rounds: int
) -> list[Figure]:
    """The CPU seconds of a script and of a command that write the same messages, and the ratio of these."""
    messages = [
        {frozenset(each) for each in read_log(completed(run).stdout, "nq", syntax="rdfm")}
        for run in (script, command)
    ]
    if messages[0] != messages[1] or not messages[0]:
        raise SystemExit(
            f"{what}: the script over {library} and the command wrote different messages"
        )
    seconds: list[list[float]] = [[], []]
    for _ in range(rounds):
        for taken, run in zip(seconds, (script, command), strict=True):
            taken.append(completed(run).cpu_seconds)
    theirs, ours = map(statistics.median, seconds)
    return [
        Figure(f"{what}: a script over {library}", theirs),
        Figure(f"{what}: `run`", ours, ours / theirs, goal),
    ]
