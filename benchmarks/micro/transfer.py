"""What endpoints send, and over how many connections: `python -m benchmarks micro transfer [ENGINE …]`.

100,000 solutions in JSON, uncompressed and compressed: bytes from the endpoint, counted by a forwarder, and CPU seconds
of the client. nginx compresses for engines that do not. Then 100 pages, and their connections. Engines that are not
installed are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.harness import Figure, alternate, report
from construct_messages.query.select import Select
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.endpoint import Endpoint, EndpointSource
from tests.support.engines import servers

ENGINES: Final = ("rdf4j", "fuseki", "blazegraph", "virtuoso", "oxigraph")
_COMPRESSES: Final = ("rdf4j",)
_PEOPLE: Final = 100_000
_PERSON: Final = "<http://example.org/people/person-{:06}>"
_NAME, _KNOWS = "<http://xmlns.com/foaf/0.1/name>", "<http://xmlns.com/foaf/0.1/knows>"
_ALL: Final = Select(
    "", "SELECT ?s ?n ?o ", ("s", "n", "o"), "WHERE ", f"{{ ?s {_NAME} ?n ; {_KNOWS} ?o }}"
)
_PAGED: Final = 1_000  # solutions, of which a page of 20 repeats ten
_SOME: Final = Select(
    *("", "SELECT ?s ?n ", ("s", "n"), "WHERE "),
    f"{{ VALUES ?s {{ {' '.join(map(_PERSON.format, range(_PAGED)))} }} ?s {_NAME} ?n }}",
)
_NGINX: Final = """
daemon off; pid {place}/pid; error_log {place}/error.log; events {{ }}
http {{
  access_log off; client_max_body_size 1m; client_body_buffer_size 1m; proxy_max_temp_file_size 0;
  client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;
  server {{
    listen 127.0.0.1:{port}; gzip on; gzip_types *; gzip_proxied any;
    location / {{ proxy_pass http://{engine}; }}
  }}
}}
"""


class Forwarder:
    """Passes connections on to a server, and counts them and the bytes that it sends."""

    def __init__(self, url: str) -> None:
        self._there = urlsplit(url)
        self.connections = self.received = 0
        self._loop, ready = asyncio.new_event_loop(), threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        serving = asyncio.start_server(self._serve, "127.0.0.1", 0)
        listener = self._loop.run_until_complete(serving)
        host, port = listener.sockets[0].getsockname()
        self.url = self._there._replace(netloc=f"{host}:{port}").geturl()
        ready.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there = await asyncio.open_connection(self._there.hostname, self._there.port)

        async def forward(
            source: asyncio.StreamReader, target: asyncio.StreamWriter, counted: bool
        ) -> None:
            while data := await source.read(1 << 16):
                self.received += len(data) if counted else 0
                target.write(data)
                await target.drain()
            target.close()

        await asyncio.gather(forward(reader, there[1], False), forward(there[0], writer, True))


@contextmanager
def nginx(url: str, place: Path) -> Iterator[str]:
    """nginx in front of an endpoint, which compresses all that it answers."""
    port, parts = servers.free_port(), urlsplit(url)
    settings = place / "nginx.conf"
    settings.write_text(_NGINX.format(place=place, port=port, engine=parts.netloc))
    program = servers.program("nginx", "apt-get install nginx")
    with servers.running([program, "-c", settings, "-p", place], [port], place):
        yield parts._replace(netloc=f"127.0.0.1:{port}").geturl()


def main() -> None:
    """Measures each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=ENGINES, metavar="ENGINE", help=str(ENGINES))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "people.nt"
        with open(data, "w", encoding="ascii") as file:
            for number in range(_PEOPLE):
                person, other = _PERSON.format(number), _PERSON.format(number * 7919 % _PEOPLE)
                file.write(f'{person} {_NAME} "Person number {number} of the town" .\n')
                file.write(f"{person} {_KNOWS} {other} .\n")
        for name in arguments.engines:
            place = Path(folder) / name
            place.mkdir()
            try:
                figures += measure(name, data, place, arguments.rounds)
            except servers.Missing as missing:
                print(f"{name} is left out: {missing}")
    report("transfer", "JSON of 100,000 solutions, CPU seconds of the client", figures)


def measure(name: str, data: Path, place: Path, rounds: int) -> list[Figure]:
    """The figures of one engine.

    Args:
        name: one of `ENGINES`.
        data: the file that it serves.
        place: an empty folder.
        rounds: how often each answer is read.
    """
    with ExitStack() as stack:
        url = stack.enter_context(getattr(servers, name)(data, place))
        if name not in _COMPRESSES:
            (place / "nginx").mkdir()
            url = stack.enter_context(nginx(url, place / "nginx"))
        forwarder = Forwarder(url)
        # which returns at most 10,000 solutions at once
        pages = 10_000 if name == "virtuoso" else None
        plain, packed = (
            Endpoint.at(forwarder.url, headers={"Accept-Encoding": "identity"}),
            Endpoint.at(forwarder.url),
        )
        received = {}

        def run(endpoint: Endpoint) -> None:
            before = forwarder.received
            _read(endpoint, name, _ALL, pages, _PEOPLE)
            received[endpoint == packed] = (forwarder.received - before) / 1e6

        _read(packed, name, _SOME, 20, _PAGED)
        connections = forwarder.connections
        seconds = alternate(rounds, [partial(run, plain), partial(run, packed)], time.thread_time)
    if received[True] > received[False] / 10 or connections != 1:
        raise SystemExit(f"{name}: {received} MB, {connections} connections")
    ratio = seconds[1] / seconds[0]
    return [
        Figure(f"{name}: identity, {received[False]:.1f} MB", seconds[0]),
        Figure(f"{name}: compressed, {received[True]:.2f} MB", seconds[1], ratio, "≤ 1.15"),
    ]


def _read(
    endpoint: Endpoint, profile: str, select: Select, page_size: int | None, count: int
) -> None:
    with closing(EndpointSource(endpoint, profile=profile, results="json")) as source:
        came = sum(map(len, source.solutions(Request(select, page_size=page_size))))
    if came != count:
        raise SystemExit(f"{profile} sent {came} of {count} solutions")


if __name__ == "__main__":
    main()
