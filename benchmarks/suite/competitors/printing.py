"""How competitors print groups, and how these are read afterwards: N-Triples, and `# group` after each.

They flush after the first group, so that its time shows. Imports little, for it is part of what is measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

END = "# group\n"
SLOT = "%%VALUES%%"
"""Stands in the query for one entity where its VALUES clause goes."""


def pieces() -> tuple[dict[str, Any], list[str]]:
    """What the user wrote by hand (the file that the first argument names), and the other arguments."""
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2:]


def cannot(reason: str) -> NoReturn:
    """Ends the program: it cannot do what the query asks for."""
    sys.exit(f"cannot: {reason}")


def print_groups(groups: Iterable[Iterable[str]]) -> None:
    """Prints groups of N-Triples lines, each line with its end."""
    write, first = sys.stdout.write, True
    for lines in groups:
        write("".join(lines) + END)
        if first:
            sys.stdout.flush()
            first = False
    sys.stdout.flush()


def instantiate(
    template: Iterable[Sequence[str]], solution: Mapping[str, str], number: int
) -> list[str]:
    """The N-Triples lines of a template for a solution; leaves out what is unbound and what is no triple.

    Args:
        template: triples of terms; variables begin with `?`.
        solution: a term in N-Triples for each bound variable.
        number: of the solution, for the labels of the template's own blank nodes.
    """
    lines = []
    for triple in template:
        s, p, o = (
            solution.get(term)
            if term[0] == "?"
            else f"_:own_{term[2:]}_{number}"
            if term[0] == "_"
            else term
            for term in triple
        )
        if s and p and o and s[0] != '"' and p[0] == "<":
            lines.append(f"{s} {p} {o} .\n")
    return lines


def printed_groups(output: bytes) -> Iterator[frozenset[tuple[str, str, str]]]:
    """The groups that a competitor printed, or those of a log of N-Triples or N-Quads; empty ones are left out."""
    import pyoxigraph as ox

    triples = ox.parse(output, ox.RdfFormat.N_QUADS, lenient=True)
    group: list[tuple[str, str, str]] = []
    for line in output.split(b"\n"):
        if line.startswith((b"# group", b"# @message")):
            if group:
                yield frozenset(group)
            group = []
        elif line and not line.startswith(b"#"):
            quad = next(triples)
            group.append((str(quad.subject), str(quad.predicate), str(quad.object)))
    if group:
        yield frozenset(group)
