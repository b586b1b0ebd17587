"""What a program loads: each start waits for it, so what only some programs need is loaded by these.

Work is counted, not timed: the modules that a fresh process has imported, and the expressions that it has compiled.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path

import pytest

import construct_messages
from construct_messages import cli
from construct_messages.__main__ import _collect_later
from construct_messages.rdf.formats.results import TSV
from tests.support.commands import ENVIRONMENT, ROOT

HEAVY = {
    "SPARQLWrapper",
    "aiohttp",
    "msgspec",
    "pyarrow",
    "pyld",
    "pyspark",
    "rdflib",
    "rich",
}
"""What no start of the command line needs."""
NOT_FOR_QUERIES = HEAVY | {"concurrent.futures", "logging"}
"""What no query needs, over a file or at an endpoint."""
NOT_FOR_FILES = NOT_FOR_QUERIES | {
    *(
        "asyncio",
        "email",
        "http",
        "importlib.metadata",
        "json",
        "multiprocessing",
        "socket",
    ),
    *("sqlite3", "ssl", "subprocess", "tempfile", "urllib.request"),
    *(
        "datetime",
        "decimal",
        "hashlib",
        "random",
        "shutil",
        "string",
        "textwrap",
        "traceback",
    ),
    *("bz2", "gzip", "lzma", "tarfile", "backports.zstd", "compression.zstd"),
    *(
        "construct_messages.logs.jelly.options",
        "construct_messages.logs.reading",
        "construct_messages.spark",
    ),
    "construct_messages.logs.writing",
}
"""What a query over a file of RDF does not need."""

QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"
FROM_PYTHON = f"""
from construct_messages import construct_messages
assert len(list(construct_messages({QUERY!r}, sys.argv[1]))) == 2
"""
FROM_THE_COMMAND_LINE = f"""
from construct_messages.cli import main
assert main(["run", "--query", {QUERY!r}, "--source", sys.argv[1], "--output", sys.argv[1] + ".trig"]) == 0
"""
ALL_COMMANDS = "import construct_messages.cli as cli; cli.build_parser()"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.ttl"
    path.write_text('<urn:s> <urn:p> "o", 1 .', encoding="utf-8")
    return path


def loaded(code: str, *arguments: object) -> set[str]:
    """The modules that a fresh process has imported when it has run some code."""
    told = f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", told, *map(str, arguments)],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=True,
        text=True,
    )
    return set(done.stdout.split())


def test_the_package_alone_loads_nothing() -> None:
    modules = loaded("import construct_messages")
    assert {name for name in modules if name.startswith("construct_messages")} == {
        "construct_messages",
        "construct_messages._version",
    }
    assert modules & NOT_FOR_FILES == set()


@pytest.mark.parametrize(
    "code", [FROM_PYTHON, FROM_THE_COMMAND_LINE], ids=["Python", "command line"]
)
def test_a_query_over_a_file_loads_what_it_needs(code: str, data: Path) -> None:
    modules = loaded(code, data)
    assert modules & NOT_FOR_FILES == set()
    assert "construct_messages.construct.messages" in modules


class _Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b"?s\t?o\n<urn:s>\t1\n<urn:s>\t2\n"
        self.send_response(200)
        self.send_header("Content-Type", TSV.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_query_over_an_endpoint_loads_what_it_needs() -> None:
    with HTTPServer(("127.0.0.1", 0), _Endpoint) as server:
        answering = threading.Thread(target=server.serve_forever)
        answering.start()
        try:
            code = FROM_PYTHON.replace(
                "sys.argv[1]", "sys.argv[1], requests=Requests(profile='oxigraph')"
            ).replace("import construct_messages", "import Requests, construct_messages")
            modules = loaded(code, f"http://127.0.0.1:{server.server_port}/sparql")
        finally:
            server.shutdown()
            answering.join()
    not_needed = NOT_FOR_QUERIES - {"msgspec"} | {
        "asyncio",
        "construct_messages.sparql.client.oauth",
        "importlib.metadata",
        "sqlite3",
        "subprocess",
    }
    assert modules & not_needed == set()


def test_the_command_line_loads_what_the_command_needs() -> None:
    commands = {
        f"construct_messages.cli.{name}"
        for name in ("convert", "examine", "feeds", "run", "spark", "watch")
    }
    one = loaded("import construct_messages.cli as cli; cli.build_parser('run')")
    assert one & commands == {"construct_messages.cli.run"}
    every = loaded(ALL_COMMANDS)
    assert every & commands == commands
    assert every & HEAVY == set()


def test_each_command_is_found_by_its_name() -> None:
    """The table of commands in `cli` says what each module adds."""
    for names in cli._COMMANDS.values():
        for name in names:
            (commands,) = (
                action
                for action in cli.build_parser(name)._actions
                if isinstance(action, argparse._SubParsersAction)
            )
            assert tuple(commands.choices) == names


def test_the_first_collection_is_late_and_others_are_as_usual() -> None:
    usual, callbacks = gc.get_threshold(), list(gc.callbacks)
    _collect_later()
    assert gc.get_threshold() == (100_000, *usual[1:])
    gc.collect(0)
    assert (gc.get_threshold(), gc.callbacks) == (usual, callbacks)


def test_names_of_the_package() -> None:
    assert construct_messages.__all__ == sorted(
        construct_messages._ROOMS.keys() - {"load_ipython_extension"}
    )
    for name, room in construct_messages._ROOMS.items():
        assert getattr(construct_messages, name) is getattr(
            import_module(f"construct_messages.{room}"), name
        )
        assert name in dir(construct_messages)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        construct_messages.no_such_name  # noqa: B018 - looking it up is the test
