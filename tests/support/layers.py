"""Draws the layers in docs/explanation/architecture.md from the floors that tests/test_layers.py checks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Final

from tests.support.places import ROOT

PICTURE: Final = ROOT / "docs" / "images" / "layers.svg"

_WIDTH, _LEFT, _HEIGHT, _GAP = 760, 330, 30, 8
# what a row is for, by its first room; a row without words is drawn all the same
_JOBS: Final[Mapping[str, str]] = {
    "cli": "commands, options, terminal output",
    "server": "HTTP and gRPC: queries, streams, the page",
    "spark": "DataFrames, dumps and streams on a cluster",
    "continuous": "windows, watches",
    "construct": "query + source → messages; live transports",
    "sparql": "sources of solutions; the store of streams",
    "logs": "messages ↔ bytes; query text → plan",
    "rdf": "terms, messages, templates, the table of formats",
    "_version": "",
}


def drawn(floors: Mapping[str, int]) -> str:
    """Return the picture as SVG: a row for each floor, the highest at the top, a box for each room.

    Args:
        floors: the floor of each room, from 0.
    """
    named = sorted(
        (item for item in floors.items() if item[0] != "__main__"), key=lambda item: -item[1]
    )
    rows = [[room for room, _ in rooms] for _, rooms in groupby(named, key=lambda item: item[1])]
    height = len(rows) * (_HEIGHT + _GAP) + 60
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "  <!-- drawn by `python -m tests.test_layers`; do not edit -->",
        '  <title id="title">The layers of the package: each row imports only rows below it</title>',
        "  <style>.room { fill: #dbeafe; stroke: #1d4ed8; } .name { fill: #1f2933; } .job { fill: #52606d; }</style>",
        f'  <rect width="{_WIDTH}" height="{height}" rx="10" fill="#f5f7fa"/>',
        f'  <path d="M18 24 v{height - 52} m-5 -8 l5 8 l5 -8" fill="none" stroke="#52606d" stroke-width="2"/>',
        f'  <text x="18" y="{height - 10}" class="job">imports point down</text>',
    ]
    for number, rooms in enumerate(rows):
        top, x = 20 + number * (_HEIGHT + _GAP), 36.0
        widths = [14 + 7.6 * len(room) for room in rooms]
        for room, width in zip(rooms, widths, strict=True):
            lines.append(
                f'  <rect x="{x:g}" y="{top}" width="{width:g}" height="{_HEIGHT}" rx="6" class="room"/>'
                f'<text x="{x + width / 2:g}" y="{top + 20}" text-anchor="middle" class="name">{room}</text>'
            )
            x += width + 6
        job = _JOBS.get(rooms[0], "")
        lines.append(f'  <text x="{max(x + 8, _LEFT):g}" y="{top + 20}" class="job">{job}</text>')
    return "\n".join([*lines, "</svg>", ""])
