"""The guide to following DBpedia works as printed, with another endpoint in DBpedia's place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path

import pytest

from construct_messages import read_log
from tests.support.docs import BLOCKS
from tests.support.engines.servers import Missing, free_port, program
from tests.support.places import ROOT, absent
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.process, pytest.mark.slow]

ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
}


@contextmanager
def running(command: str, place: Path, **pipes: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=place, env=ENVIRONMENT, text=True, **pipes
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_follow_dbpedia(tmp_path: Path) -> None:
    try:
        program("curl", "apt-get install curl")
    except Missing as missing:
        absent(str(missing))
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    blocks = [
        block.text.strip()
        for block in BLOCKS
        if (block.page, block.language) == ("docs/guides/follow-dbpedia.md", "sh")
    ]
    first = next(
        number
        for number, text in enumerate(blocks)
        if text.startswith("construct-messages serve --streams")
    )
    port, source = free_port(), free_port()
    serve, watch, events, pages = (
        text.replace(":8080", f":{port}").replace(
            "https://dbpedia.org/sparql", f"http://127.0.0.1:{source}/sparql"
        )
        for text in blocks[first : first + 4]
    )
    assert watch.startswith("construct-messages watch ")
    endpoint = (
        f"construct-messages serve --source queries/data/companies.ttl --bind 127.0.0.1:{source}"
    )
    with ExitStack() as stack:
        for command in (f"{serve} --bind 127.0.0.1:{port}", endpoint):
            server = stack.enter_context(running(command, tmp_path, stderr=subprocess.PIPE))
            assert server.stderr is not None
            assert any("listening on" in line for line in server.stderr)
        with running(watch, tmp_path, stderr=subprocess.PIPE) as watching:
            # it makes the stream
            retrying = events.replace(
                "curl ", "curl --silent --fail --retry 100 --retry-all-errors --retry-delay 1 "
            )
            with running(retrying, tmp_path, stdout=subprocess.PIPE) as following:
                assert following.stdout is not None
                ids = list(
                    islice(
                        (line.split()[1] for line in following.stdout if line.startswith("id:")), 5
                    )
                )
            assert ids == ["1", "2", "3", "4", "5"]
            watching.terminate()
            assert watching.wait(SECONDS) == 0
            assert watching.stderr is not None
            assert watching.stderr.read() == ""
        subprocess.run(
            ["bash", "-c", pages], cwd=tmp_path, env=ENVIRONMENT, check=True, timeout=SECONDS
        )
        assert len(list(read_log(tmp_path / "members.nq"))) == 5
