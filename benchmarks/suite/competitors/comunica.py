"""Comunica's command line over the file: its flat CONSTRUCT, in which the template is found again with pyoxigraph.

Knows the template, which of its parts are optional, and the filters of the query. Cannot know which triples came
together: see `rematch.py`. Comunica also prints triples with literals as subjects, which no parser takes: the user
drops these lines.
"""

from __future__ import annotations

import subprocess
from io import BytesIO
from pathlib import Path

from benchmarks.suite.competitors.printing import instantiate, pieces, print_groups
from benchmarks.suite.competitors.solutions import by_pyoxigraph


def main() -> None:
    """Arguments: the pieces, the N-Triples file, the query's file, and the folder of npm's modules."""
    query, (data, text, modules) = pieces()
    program = str(Path(modules) / ".bin" / "comunica-sparql-file")
    command = [program, data, "--file", text, "-t", "application/n-triples"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        triples = b"".join(line for line in process.stdout if not line.startswith(b'"'))
        solutions = by_pyoxigraph(BytesIO(triples), query["rematch"])
        print_groups(instantiate(query["rematch_template"], solution, 0) for solution in solutions)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


if __name__ == "__main__":
    main()
