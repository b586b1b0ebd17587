"""The Oxigraph server over a store directory, on loopback, for the benchmarks that go through HTTP."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def oxigraph_server(store: Path) -> Iterator[str]:
    """The endpoint's URL, while the server runs."""
    program = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or "oxigraph"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "serve-read-only", "--location", str(store), "--bind", f"127.0.0.1:{port}"],
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise SystemExit("the Oxigraph server did not start")
        yield f"http://127.0.0.1:{port}/query"
    finally:
        server.terminate()
        server.wait()
