"""The data sets of the suite: DBpedia-shaped from a seed, and real DBpedia files."""

from __future__ import annotations

from pathlib import Path


def write_dbpedia_shaped(path: Path, triples: int, seed: int = 42) -> None:
    """Writes N-Triples of the shape of DBpedia, the same for the same seed and size."""
    raise NotImplementedError
