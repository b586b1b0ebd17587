"""Fixtures that several test modules use."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# what an example takes says nothing where other work shares the machine; figures are the benchmarks' business
settings.register_profile("project", deadline=None, print_blob=True)
settings.register_profile("long", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile("project")

_SUITES = Path(os.environ.get("CONSTRUCT_MESSAGES_SUITES") or Path(__file__).parents[2] / "shared")


def shared_path(name: str) -> Path:
    """A file or folder of the test suites, which lie beside the project; skips the test where they are absent."""
    path = _SUITES / name
    if not path.exists():
        message = f"{name} is absent: set CONSTRUCT_MESSAGES_SUITES to the folder that holds it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


Serve = Callable[[Path], str]
"""Starts an engine over an RDF file, once in a test session, and gives its endpoint's URL."""


def _command(name: str) -> str:
    """An engine's program, from beside the interpreter or the PATH."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if found is None:
        message = f"{name} is not installed: pip install 'construct-messages[test]'"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


def _engines(command: Callable[[Path, int], list[str]], path: str) -> Iterator[Serve]:
    running: dict[Path, tuple[str, subprocess.Popen[bytes]]] = {}

    def serve(data: Path) -> str:
        if data not in running:
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            process = subprocess.Popen(command(data, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running[data] = (f"http://127.0.0.1:{port}{path}", process)
            deadline = time.monotonic() + 30
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None, "the engine ended instead of listening"
                assert time.monotonic() < deadline, "the engine does not listen"
                time.sleep(0.05)
        return running[data][0]

    yield serve
    for _, process in running.values():
        process.terminate()
    for _, process in running.values():
        process.wait()


@pytest.fixture(scope="session")
def oxigraph_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """The Oxigraph server."""

    def command(data: Path, port: int) -> list[str]:
        store = tmp_path_factory.mktemp("oxigraph") / "store"
        program = _command("oxigraph")
        subprocess.run([program, "load", "--location", store, "--file", data], check=True, capture_output=True)
        return [program, "serve-read-only", "--location", str(store), "--bind", f"127.0.0.1:{port}"]

    yield from _engines(command, "/query")


@pytest.fixture(scope="session")
def rdflib_server() -> Iterator[Serve]:
    """rdflib-endpoint, which evaluates with rdflib."""

    def command(data: Path, port: int) -> list[str]:
        return [_command("rdflib-endpoint"), "serve", str(data), "--host", "127.0.0.1", "--port", str(port)]

    yield from _engines(command, "/")
