"""This package from Python: iterating `Message` objects, with a look at each quad, printed as groups."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.suite.competitors.printing import print_groups
from construct_messages import construct_messages


def main() -> None:
    """Arguments: the query's file and the N-Triples file."""
    query, source = sys.argv[1:]
    messages = construct_messages(Path(query).read_text(encoding="utf-8"), source)
    print_groups([f"{quad}\n" for quad in message] for message in messages)


if __name__ == "__main__":
    main()
