"""How little the query of `micro.spark` can take on Spark: `python -m benchmarks micro spark_floor [--triples N …]`.

The same messages by a program that is written for this query and this dump: a cold process with the session's start,
which reads each line once, checks that it is canonical or does not, groups by subject and joins the places. It removes
no duplicates, knows no hubs, believes every number, and refuses all lines but canonical ones. What `spark run` takes
above that is for any query over any dump. It is no proof of a bound: a better program may exist.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from pyspark.sql import functions as F

from benchmarks.harness import Figure, report
from benchmarks.micro.spark import _contents, _run, two_cores
from benchmarks.micro.spark_data import write_dump
from construct_messages.rdf.terms import RDF
from construct_messages.spark.sql.values import literal

_IRI = r'<[a-z]++:[^\x00-\x20<>"{}|^`\\]*+>'
_CANONICAL = rf'^{_IRI} {_IRI} (?:{_IRI}|"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@[a-z-]++|\^\^{_IRI})?) \.\z'
_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
_TYPE = f"<{RDF}type>"
_COMPANY, _PLACE, _STAFF, _FOUNDED = (
    f"<http://dbpedia.org/ontology/{name}>"
    for name in ("Company", "location", "numberOfEmployees", "foundingDate")
)


def main() -> None:
    """Measures each size, or (with --dump) runs once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, nargs="+", default=(5_000_000, 10_000_000))
    parser.add_argument("--dump", nargs=2, metavar=("DUMP", "LOG"), help=argparse.SUPPRESS)
    parser.add_argument("--checked", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.dump:
        _query(*arguments.dump, checked=arguments.checked)
        return
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        dump, log = Path(name) / "dump.nt", Path(name) / "log"
        for triples in arguments.triples:
            write_dump(dump, triples)
            for what, options in {
                "each line checked": ("--checked",),
                "nothing checked": (),
            }.items():
                run = _run(
                    ("--dump", str(dump), str(log), *options), "benchmarks", "micro", "spark_floor"
                )
                messages, _ = _contents(log)
                figures.append(
                    Figure(f"{triples / 1e6:g}M, {messages:,} messages, {what}", run.seconds)
                )
    report("spark_floor", "the query of benchmarks.spark by hand, cold processes", figures)


def _query(dump: str, log: str, *, checked: bool) -> None:
    spark = two_cores()
    text = spark.read.text(dump)
    if checked:
        pattern = literal(_CANONICAL)
        text = text.filter(f"CASE WHEN value RLIKE {pattern} THEN TRUE ELSE raise_error(value) END")
    quads = (
        text.selectExpr("split(value, ' ', 3) AS parts")
        .selectExpr("parts[0] AS s", "parts[1] AS p", "left(parts[2], length(parts[2]) - 2) AS o")
        .filter(f"p IN ({', '.join(map(literal, (_TYPE, _LABEL, _PLACE, _STAFF, _FOUNDED)))})")
        .filter(f"p <> {literal(_LABEL)} OR endswith(o, '@en')")
        .filter(
            f"p <> {literal(_STAFF)} OR CAST(regexp_extract(o, '[0-9]+', 0) AS BIGINT) >= 75000"
        )
        .repartition("s")
        # so that Spark does not read the text for the companies and again for the places; see `gathering.py`
        .observe("read", *map(F.max, "spo"))
    )
    objects = {"t": _TYPE, "name": _LABEL, "place": _PLACE, "staff": _STAFF, "founded": _FOUNDED}
    collected = [
        f"collect_list(CASE WHEN p = {literal(p)} THEN o END) AS {name}"
        for name, p in objects.items()
    ]
    quads.createOrReplaceTempView("quads")
    companies = spark.sql(f"SELECT s, {', '.join(collected)} FROM quads GROUP BY xxhash64(s), s")
    companies = companies.filter(f"array_contains(t, {literal(_COMPANY)}) AND size(staff) > 0")
    for name in ("name", "place"):
        companies = companies.selectExpr("*", f"explode({name}) AS one_{name}")
    companies = companies.selectExpr("*", "explode_outer(founded) AS one_founded")
    places = quads.filter(f"p = {literal(_LABEL)}").selectExpr("s AS one_place", "o AS place_name")
    statements = [
        "'# @message'",
        f"concat(s, ' {_TYPE} {_COMPANY} .')",
        f"concat(s, ' {_LABEL} ', one_name, ' .')",
        f"concat(s, ' {_PLACE} ', one_place, ' .')",
        f"concat(s, ' {_FOUNDED} ', one_founded, ' .')",
        f"concat(one_place, ' {_LABEL} ', place_name, ' .')",
    ]
    rows = companies.join(places, "one_place").selectExpr(
        f"concat_ws('\\n', {', '.join(statements)})"
    )
    rows.write.mode("overwrite").text(log)
    spark.stop()
