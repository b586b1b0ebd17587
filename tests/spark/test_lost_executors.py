"""Queries on a cluster of two workers, an executor of which is killed while a query runs: the messages are the same."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from random import Random

import pytest

from construct_messages import construct_messages
from tests.support.places import ROOT
from tests.support.spark import clusters

pytestmark = [pytest.mark.process, pytest.mark.slow]

SETTINGS = clusters.SETTINGS | {
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.log.level": "ERROR",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "4",
    # an executor sends copies to those that it has heard of: of one that is new, after a minute by default
    "spark.storage.cachedPeersTtl": "500",
}
QUERIES = {
    "path": "CONSTRUCT { <urn:n0> <urn:reaches> ?y } WHERE { <urn:n0> <urn:next>+ ?y }",
    "limit": "CONSTRUCT { ?s <urn:reaches> ?y } WHERE { "
    "{ SELECT ?s { ?s <urn:kind> <urn:k3> } ORDER BY ?s LIMIT 3 } ?s <urn:next>* ?y }",
    "joins": "CONSTRUCT { ?s <urn:to> ?t } WHERE { ?s <urn:kind> ?k ; <urn:next> ?t . ?t <urn:kind> ?k , ?l "
    "OPTIONAL { ?t <urn:next> ?u . ?u <urn:kind> ?l } FILTER(!BOUND(?u)) }",
}

# Prints, for each kill: the query, the number of its messages, and whether these are the expected ones; or its error.
PROGRAM = """\
import json, os, random, signal, sys, threading, time
from pathlib import Path

from pyspark.sql import SparkSession

from construct_messages.spark import construct_messages, load_quads
from construct_messages.spark import engine

place, kills, settings = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
engine.MOST_STEPS = 0  # paths are followed on the executors
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
java = spark.sparkContext._jvm.java.lang.ProcessHandle.current()
queries = {file.stem: file.read_text() for file in sorted(place.glob("*.rq"))}


def executors():
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:
        time.sleep(0.1)
    return [
        each.pid() for each in java.descendants().toArray()
        if "CoarseGrainedExecutorBackend" in Path(f"/proc/{each.pid()}/cmdline").read_text()
    ]


def ask(name):
    quads = load_quads(spark, str(place / "data.nt"))
    return sorted(row.message for row in construct_messages(queries[name], quads).frame.collect())


def check(name, when, found):
    print(name, when, found == (place / f"{name}.txt").read_text().splitlines(), flush=True)


seconds = {}
for name in queries:
    executors()
    for _ in range(2):
        started = time.monotonic()
        found = ask(name)
        seconds[name] = time.monotonic() - started
    check(name, "undisturbed:", found)
chosen = random.Random(kills)
for number in range(kills):
    executors()
    time.sleep(2)
    name = list(queries)[-1 - number % len(queries)]
    killed = threading.Event()

    def kill(process):
        os.kill(process, signal.SIGKILL)
        killed.set()

    timer = threading.Timer(0.7 * chosen.random() * seconds[name], kill, [chosen.choice(executors())])
    timer.start()
    try:
        found = ask(name)
        check(name, "with a kill:" if killed.is_set() else "before a kill:", found)
    except Exception as error:
        print(f"{name} with a kill:", str(error).splitlines()[0], flush=True)
    timer.join()
spark.stop()
"""


@pytest.mark.parametrize("kept", ["twice", "reliably"])
def test_an_executor_is_lost(request: pytest.FixtureRequest, tmp_path: Path, kept: str) -> None:
    """`--kills N`: N kills, of the executors of a path, a path from solutions of a LIMIT, and joins in turn."""
    kills = request.config.getoption("--kills")
    if kills < 3:  # the default
        pytest.skip("two clusters take minutes: make kill-executors")
    home = clusters.spark_home(tmp_path)
    random = Random(1)
    # six layers of forty nodes: each round of a path finds new ones
    links = {
        f"<urn:n{node}> <urn:next> <urn:n{node // 40 * 40 + 40 + random.randrange(40)}> ."
        for node in range(6 * 40)
        for _ in range(2)
    }
    kinds = [f"<urn:n{node}> <urn:kind> <urn:k{random.randrange(9)}> ." for node in range(7 * 40)]
    data = tmp_path / "data.nt"
    data.write_text("\n".join([*sorted(links), *kinds, ""]))
    for name, query in QUERIES.items():
        (tmp_path / f"{name}.rq").write_text(query)
        expected = sorted(
            "\n".join(sorted(map(str, message))) for message in construct_messages(query, data)
        )
        assert len(expected) > 10
        (tmp_path / f"{name}.txt").write_text("\n".join(expected))
    settings = SETTINGS
    if kept == "reliably":
        settings = settings | {"spark.checkpoint.dir": str(tmp_path / "checkpoints")}
    done = clusters.run(
        (sys.executable, "-c", PROGRAM, tmp_path, str(kills), json.dumps(settings)),
        tmp_path,
        os.environ | {"SPARK_HOME": str(home), "PYTHONPATH": str(ROOT)},
        clusters.SECONDS + 120 * kills,
    )
    print(done.log)
    assert done.status == 0, done.errors
    lines = done.log.splitlines()
    assert len(lines) == len(QUERIES) + kills
    assert [line for line in lines if not line.endswith(" True")] == []
