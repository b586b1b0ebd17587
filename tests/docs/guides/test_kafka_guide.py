"""The guide from DBpedia to Kafka works as printed, with another endpoint in DBpedia's place and a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from construct_messages import read_log
from tests.support.docs import BLOCKS
from tests.support.engines.kafka import Kafka
from tests.support.engines.kafka_records import consume
from tests.support.engines.servers import Missing, free_port, program
from tests.support.places import ROOT, absent
from tests.support.waiting import SECONDS, wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]

ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
}


def test_from_dbpedia_to_kafka(kafka: Kafka, tmp_path: Path) -> None:
    try:
        program("kcat", "apt-get install kcat")
    except Missing as missing:
        absent(str(missing))
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    data = tmp_path / "companies.ttl"
    data.write_bytes((ROOT / "queries" / "data" / "companies.ttl").read_bytes())
    source = free_port()
    commands = [
        block.text.strip()
        .replace("localhost:9092", kafka.address)
        .replace("https://dbpedia.org/sparql", f"http://127.0.0.1:{source}/sparql")
        .replace("--every 1h", "--every 1s")
        for block in BLOCKS
        if (block.page, block.language) == ("docs/guides/dbpedia-to-kafka.md", "sh")
    ]
    assert len(commands) == 5
    install, publish, kcat, subscribe, watch = commands
    assert install == "pip install '.[kafka]'"

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=ENVIRONMENT,
            check=True,
            timeout=SECONDS,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def start(command: str, stack: ExitStack) -> subprocess.Popen[str]:
        process = stack.enter_context(
            subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=tmp_path,
                env=ENVIRONMENT,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(process.terminate)
        return process

    with ExitStack() as stack:
        server = start(f"construct-messages serve --source {data} --bind 127.0.0.1:{source}", stack)
        assert server.stderr is not None
        assert any("listening on" in line for line in server.stderr)
        run(publish)
        assert len(consume(kafka, "companies")) == 5
        shown = run(kcat)
        assert shown.count("content-type=application/n-quads") == 5
        run(subscribe)
        run(subscribe)
        assert len(list(read_log(tmp_path / "companies.nq"))) == 5
        assert "--skip-first " in watch
        watching = start(watch.replace("--skip-first ", ""), stack)  # nothing is new there
        wait_until(lambda: len(consume(kafka, "companies")) == 10 or watching.poll() is not None)
        assert watching.poll() is None
        run(subscribe.replace("--after 0 ", ""))
        assert len(list(read_log(tmp_path / "companies.nq"))) == 10
