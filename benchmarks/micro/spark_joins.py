"""Joins that only a FILTER, negation or UNION tells of, on Spark and in Oxigraph.

`python -m benchmarks micro spark_joins`. Papers and the people who write them, of the shape that SP2Bench (Schmidt
and others, 2009) took from DBLP, and queries of the shape of its numbers 5a, 6 and 8. Every run is a cold process of
this package's command line, from a dump of N-Triples to an N-Quads log, as in `micro.spark`; both logs must have the
same messages and quads, or nothing is printed. The third time of three in a session that is kept is measured beside.
Oxigraph compares every pair for the first two queries: larger sizes (`--alone`) are for Spark only.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Figure, report
from benchmarks.micro.spark import _MASTER, _MEMORY, _contents, _run, two_cores
from construct_messages.spark.construct import construct_messages
from construct_messages.spark.quads.loading import load_quads

_PAPERS = "http://example.org/papers/"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
_CREATOR, _TITLE = (f"<http://purl.org/dc/elements/1.1/{name}>" for name in ("creator", "title"))
_ISSUED = "<http://purl.org/dc/terms/issued>"
_NAME, _PERSON, _DOCUMENT = (f"<http://xmlns.com/foaf/0.1/{name}>" for name in ("name", "Person", "Document"))
_HUB = "Ada Hub"
_A_PAPER = 6.6  # triples

_PREFIXES = f"""PREFIX : <{_PAPERS}>
PREFIX dc: <http://purl.org/dc/elements/1.1/>
PREFIX dcterms: <http://purl.org/dc/terms/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
QUERIES = {
    # the two groups are linked by the equality of two names alone
    "names": f"""{_PREFIXES}CONSTRUCT {{ ?author foaf:name ?name }} WHERE {{ SELECT DISTINCT ?author ?name WHERE {{
  ?article a :Article ; dc:creator ?author . ?author foaf:name ?name .
  ?talk a :Talk ; dc:creator ?speaker . ?speaker foaf:name ?name2 FILTER (?name = ?name2)
}} }}""",
    # a negation by OPTIONAL and BOUND, which an equality alone links to what it is asked of
    "debuts": f"""{_PREFIXES}CONSTRUCT {{ ?paper :debutOf ?author ; dcterms:issued ?year }} WHERE {{
  ?kind rdfs:subClassOf foaf:Document .
  ?paper a ?kind ; dcterms:issued ?year ; dc:creator ?author . ?author foaf:name ?name
  OPTIONAL {{
    ?kind2 rdfs:subClassOf foaf:Document .
    ?earlier a ?kind2 ; dcterms:issued ?before ; dc:creator ?same FILTER (?author = ?same && ?before < ?year)
  }} FILTER (!BOUND(?same))
}}""",
    # two ways from one person, whom only what stands beside the UNION knows
    "colleagues": f"""{_PREFIXES}CONSTRUCT {{ :colleagues :include ?name }} WHERE {{ SELECT DISTINCT ?name WHERE {{
  ?hub a foaf:Person ; foaf:name "{_HUB}" .
  {{ ?paper dc:creator ?hub , ?author . ?other dc:creator ?author , ?colleague . ?colleague foaf:name ?name
    FILTER (?author != ?hub && ?other != ?paper && ?colleague != ?hub && ?colleague != ?author) }}
  UNION
  {{ ?paper dc:creator ?hub , ?author . ?author foaf:name ?name FILTER (?author != ?hub) }}
}} }}""",
}


def write_papers(path: Path, triples: int, seed: int = 42) -> None:
    """Writes a dump of about so many triples: papers by year, written by few who write much and many who write little.

    One person in fifty has the name of another. The hub is among the authors of one paper in two hundred.
    """
    chance = random.Random(seed)
    papers = int(triples / _A_PAPER)
    written: list[int] = []  # by whom, once for each paper of theirs
    persons = 0
    with path.open("w", encoding="utf-8") as dump:

        def person(name: str) -> int:
            nonlocal persons
            dump.write(
                f'<{_PAPERS}person{persons}> {_TYPE} {_PERSON} .\n<{_PAPERS}person{persons}> {_NAME} "{name}" .\n'
            )
            persons += 1
            return persons - 1

        for kind in ("Article", "Talk"):
            dump.write(f"<{_PAPERS}{kind}> {_SUBCLASS} {_DOCUMENT} .\n")
        hub = person(_HUB)
        for number in range(papers):
            paper, kind = f"<{_PAPERS}paper{number}>", "Talk" if chance.random() < 0.55 else "Article"
            authors = {hub} if number % 200 == 0 else set()
            for _ in range(chance.choice((1, 1, 2, 2, 3))):
                if not written or chance.random() < 0.4:
                    authors.add(person(f"Person {persons - (persons % 50 == 0)}"))
                else:
                    authors.add(chance.choice(written))
            written += sorted(authors - {hub})
            year = 1950 + 70 * number // papers
            dump.write(
                f"{paper} {_TYPE} <{_PAPERS}{kind}> .\n"
                f'{paper} {_TITLE} "On matter {number}" .\n'
                f'{paper} {_ISSUED} "{year}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
            )
            dump.writelines(f"{paper} {_CREATOR} <{_PAPERS}person{author}> .\n" for author in sorted(authors))


def main() -> None:
    """Measures each size, or (with --session) what one session takes for each query again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, nargs="*", default=(20_000,))
    parser.add_argument("--alone", type=int, nargs="*", default=(1_000_000,))
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=tuple(QUERIES))
    parser.add_argument("--session", type=Path, metavar="DUMP", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.session:
        print(json.dumps(_session(arguments.session, arguments.queries)))
        return
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        for triples in (*arguments.triples, *arguments.alone):
            figures += _measure(triples, Path(name), arguments.queries, alone=triples not in arguments.triples)
    report("spark_joins", "from a dump to an N-Quads log; the ratio is Oxigraph's time to Spark's", figures)


def _measure(triples: int, folder: Path, names: list[str], *, alone: bool) -> list[Figure]:
    dump, size = folder / "dump.nt", f"{triples / 1e6:g}M"
    write_papers(dump, triples)
    seconds: dict[str, list[float]] = {}
    logs: dict[str, tuple[int, int]] = {}
    for name in names:
        query, one, other = folder / f"{name}.rq", folder / f"{name}-{size}.nq", folder / f"{name}-{size}"
        query.write_text(QUERIES[name])
        options = ("--master", _MASTER, "--conf", f"spark.driver.memory={_MEMORY}")
        spark = _run(("spark", "run", str(query), *options, "--quads", str(dump), "--output", str(other)))
        seconds[name], logs[name] = [spark.seconds], _contents(other)
        if not alone:
            oxigraph = _run(("run", str(query), "--source", str(dump), "--output", str(one)))
            seconds[name].append(oxigraph.seconds)
            if _contents(one) != logs[name]:
                raise SystemExit(f"{size}, {name}: the logs differ: {_contents(one)}, {logs[name]}")
    session = _run(("--session", str(dump), "--queries", *names), "benchmarks", "micro", "spark_joins")
    kept: dict[str, float] = json.loads(session.stdout.splitlines()[-1])
    figures = []
    for name in names:
        spark_alone, *rest = seconds[name]
        base = rest[0] if rest else None
        if base is not None:
            figures.append(Figure(f"{size}, {name}: Oxigraph", base))
        for what, one in (
            (f"{logs[name][0]:,} messages: Spark", spark_alone),
            ("Spark, again in one session", kept[name]),
        ):
            figures.append(Figure(f"{size}, {name}, {what}", one, None if base is None else base / one))
    return figures


def _session(dump: Path, names: list[str]) -> dict[str, float]:
    """The seconds that each query takes in a session that has asked it twice before."""
    spark = two_cores()
    seconds = {}
    for name in names:
        for _ in range(3):
            started = time.perf_counter()
            construct_messages(QUERIES[name], load_quads(spark, dump)).write(dump.with_name("again"), mode="overwrite")
            seconds[name] = time.perf_counter() - started
    spark.stop()
    return seconds
