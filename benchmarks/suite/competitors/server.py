"""This package's server before an endpoint. It runs before anything is measured, as it does for its users."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.suite.engines import NotStarted
from benchmarks.suite.records import Service


@contextmanager
def serving(endpoint: str, *options: str) -> Iterator[Service]:
    """`construct-messages serve` before an endpoint, until the end of the block.

    Args:
        endpoint: the URL of a SPARQL endpoint.
        options: of the command.

    Raises:
        NotStarted: it ended before it listened; says its last words.
    """
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "serve",
        "--bind",
        "127.0.0.1:0",
        "--source",
        endpoint,
    ]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            last_lines = deque[str](maxlen=2)  # an error and its hint
            for line in server.stderr:
                last_lines.append(line.strip())
                if found := re.search(r'listening on (http://[^"\s]+)', line):
                    # what it logs is read on, lest it wait for a reader
                    reading = threading.Thread(target=deque, args=(server.stderr, 0), daemon=True)
                    reading.start()
                    try:
                        yield Service(found[1].rstrip("/") + "/sparql", server.pid)
                    finally:
                        server.terminate()
                        reading.join()  # before its file is closed
                    return
            raise NotStarted(" ".join(last_lines))
        finally:
            server.terminate()
