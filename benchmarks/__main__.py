"""`python -m benchmarks`: arguments of the benchmarks, and nothing else."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from benchmarks.micro import NAMES


def main(arguments: Sequence[str]) -> None:
    """Runs one subcommand.

    Raises:
        SystemExit: for arguments that are wrong, and for a benchmark that found something wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    micro = commands.add_parser(
        "micro",
        help="measure one part of this package",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:14}{what}" for name, what in NAMES.items()),
    )
    micro.add_argument("name", choices=NAMES, metavar="NAME", help="one of those below")
    micro.add_argument("arguments", nargs=argparse.REMAINDER, help="of that benchmark; --help names them")
    known = parser.parse_args(arguments)
    if known.command == "micro":
        sys.argv = [f"{parser.prog} micro {known.name}", *known.arguments]
        importlib.import_module(f"benchmarks.micro.{known.name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
