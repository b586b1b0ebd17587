"""What `run --resume` adds to the time of an endpoint: `python -m benchmarks micro resuming`.

The same pages of a result, in turn: fetched by a plain client that reads nothing of them, by `run`, by `run --resume`,
and by `run --resume` that is killed at half of its time and then run again. Tables for each engine and way of paging
have the wall time; the CPU seconds of endpoint and client together, which are the time if nothing overlaps, whatever
else the machine does; and those of the client. The engines are those of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.harness import Figure, Run, completed, report, run, tree
from benchmarks.micro.paging import QUERY, write_items
from construct_messages import Requests, construct_messages
from tests.support.engines.servers import ALL, Missing

ENGINES = ("fuseki", "virtuoso", "oxigraph")
# a lenient reader pages by OFFSET
WAYS = {"by OFFSET": ("--lenient",), "by a key": ("--page-key", "?item")}
GOAL = "≤ 1.2"

PLAIN = """
import http.client, json, sys
from urllib.parse import urlsplit
asked = json.load(open(sys.argv[1]))
url = urlsplit(asked["url"])
connection = http.client.HTTPConnection(url.netloc)
for body in asked["bodies"]:
    connection.request("POST", url.path, body, asked["headers"])
    with connection.getresponse() as response:
        assert response.status == 200
        while response.read(1 << 18):
            pass
"""


def main() -> None:
    """Measures each engine and each way, and checks that all runs write the same messages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solutions", type=int, default=100_000)
    parser.add_argument("--page-size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    arguments = parser.parse_args()
    for engine in arguments.engines:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            write_items(place / "data.nt", arguments.solutions)
            try:
                with ALL[engine].start(place / "data.nt", place) as url:
                    for way in arguments.ways:
                        title = f"{engine}, {arguments.solutions} solutions in pages {way}"
                        paging = ("--profile", engine, *WAYS[way])
                        measure(title, url, paging, arguments, place)
            except Missing as missing:
                print(missing)


def measure(
    title: str, url: str, paging: Sequence[str], arguments: argparse.Namespace, place: Path
) -> None:
    """Prints both tables of one way of paging.

    Args:
        title: what stands above the tables.
        url: the endpoint.
        paging: the options of `run` for this way.
        arguments: those of this program.
        place: a folder for files.
    """
    size = arguments.page_size
    command = [sys.executable, "-m", "construct_messages", "run", "--quiet", "--query", QUERY]
    command += ["--source", url, "--page-size", str(size), *paging, "--output", "-"]
    state = place / "state"
    resumed = [*command, "--resume", str(state)]
    fetch = [sys.executable, "-c", PLAIN, str(_asked(url, paging, size, place))]
    expected = _messages(completed(command).stdout)
    if len(expected) != arguments.solutions:
        raise SystemExit(f"{title}: {len(expected)} messages")
    taken: list[list[tuple[float, ...]]] = [[], [], [], []]
    for _ in range(arguments.rounds):
        for number, each in enumerate((fetch, command, resumed)):
            began = _endpoint_seconds()
            done = completed(each)
            taken[number].append(_times(began, done))
        began = _endpoint_seconds()
        killed = run(resumed, timeout=done.seconds / 2)
        done = completed(resumed)
        taken[3].append(_times(began, killed, done))
        if killed.ending != "timeout" or _messages(done.stdout) != expected or state.exists():
            raise SystemExit(f"{title}: a run that was killed and resumed wrote other messages")
    names = ("a plain client", "run", "run --resume", "run --resume, killed at half, and again")
    for place_of_kind, kind in enumerate(("wall time", "CPU of both", "CPU of the client")):
        medians = [statistics.median(each[place_of_kind] for each in rounds) for rounds in taken]
        goals = ("", "", GOAL, GOAL) if place_of_kind < 2 else ("",) * 4
        figures = [
            Figure(name, each, each / medians[0], goal)
            for name, each, goal in zip(names, medians, goals, strict=True)
        ]
        slug = f"resuming-{title}-{kind}".replace(",", "").replace(" ", "-")
        report(slug, f"{title}: {kind}", figures)


def _endpoint_seconds() -> float:
    return sum(used for process, _, used in tree(os.getpid()) if process != os.getpid())


def _times(began: float, *runs: Run) -> tuple[float, ...]:
    """Wall time, CPU seconds of endpoint and client, and those of the client."""
    client = sum(each.cpu_seconds for each in runs)
    both = _endpoint_seconds() - began + client
    return sum(each.seconds for each in runs), both, client


def _asked(url: str, paging: Sequence[str], size: int, place: Path) -> Path:
    """A file with the requests for the pages of the result, as they were kept to be resumed."""
    state = place / "asked.sqlite"
    requests = Requests(
        page_size=size,
        page_key=paging[-1] if "--page-key" in paging else None,
        profile=paging[1],
        resume=str(state),
    )
    for _ in construct_messages(QUERY, url, requests=requests, lenient="--lenient" in paging):
        pass
    with closing(sqlite3.connect(state)) as database:
        rows = database.execute("SELECT query, headers FROM response ORDER BY number").fetchall()
    state.unlink()
    answered = {name.title(): value for name, value in json.loads(rows[0][1])}
    headers = {
        "Accept": answered["Content-Type"],
        "Accept-Encoding": answered.get("Content-Encoding", "identity"),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    asked = place / "asked.json"
    bodies = [urlencode({"query": query}) for query, _ in rows]
    asked.write_text(json.dumps({"url": url, "headers": headers, "bodies": bodies}))
    return asked


def _messages(log: bytes) -> set[bytes]:
    return set(log.split(b"# @message\n")[1:])
