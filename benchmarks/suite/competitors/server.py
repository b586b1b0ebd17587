"""This package's server before an endpoint, and curl: the server's start and memory are part of what is measured."""

from __future__ import annotations

import re
import subprocess
import sys


def main() -> None:
    """Arguments: the query's file, the endpoint, and options of `construct-messages serve`."""
    query, endpoint, *options = sys.argv[1:]
    command = [sys.executable, "-m", "construct_messages", "serve", "--bind", "127.0.0.1:0", "--source", endpoint]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = next(filter(None, (re.search(r'listening on (http://[^"\s]+)', line) for line in server.stderr)))
            accept = "Accept: application/n-triples; messages=rdfm"
            asked = ["--data-urlencode", f"query@{query}", "--header", accept, found[1].rstrip("/") + "/sparql"]
            done = subprocess.run(["curl", "--silent", "--show-error", "--fail-with-body", *asked], check=False)
        finally:
            server.terminate()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
