"""The queries of the suite: `queries/benchmark/*.rq`, each with its shape and title in comment lines on top."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "queries" / "benchmark"


@dataclass(frozen=True)
class Query:
    """A CONSTRUCT query of the suite.

    Args:
        name: its file's, without the extension.
        shape: star, path, tree …
        title: what it asks.
    """

    name: str
    shape: str
    title: str
    text: str
    path: Path


def queries(folder: Path = FOLDER) -> list[Query]:
    """All queries, by name."""
    found = []
    for path in sorted(folder.glob("*.rq")):
        text = path.read_text(encoding="utf-8")
        head = dict(line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# "))
        found.append(Query(path.stem, head["shape"], head["title"], text, path))
    return found


def expected(triples: int, seed: int, folder: Path = FOLDER) -> dict[str, tuple[int, int]]:
    """Solutions and messages of each query over generated data; empty for sizes and seeds without known figures."""
    known = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    counts = known["sizes"].get(str(triples), {}) if seed == known["seed"] else {}
    return {name: (solutions, messages) for name, (solutions, messages) in counts.items()}
