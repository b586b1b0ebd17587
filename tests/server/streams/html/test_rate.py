"""The chart of a stream's rate, and times in words: the modules of the page, the former beside that of the server."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from construct_messages.server.streams.html_view import Rate
from tests.support.pages.modules import Modules

pytestmark = pytest.mark.engine

MAIN = """
import { describedRate, pathOf } from "./rate.js";
import { ago } from "./times.js";
function main({ rates, seconds }) {
  const now = new Date("2026-11-28T12:00:00Z");
  return {
    paths: rates.map(pathOf),
    words: rates.slice(0, 3).map(describedRate),
    times: seconds.map((each) => ago(new Date(now - 1000 * each), now)),
  };
}
"""
TIMES = {
    -60: "just now",
    4: "just now",
    59: "59 sec. ago",
    60: "1 min. ago",
    7199: "1 hr. ago",
    86_400: "1 day ago",
    6 * 86_400 + 1: "6 days ago",
}


def test_both_draw_the_same(tmp_path: Path) -> None:
    random = Random(7)
    some = [[random.choice((0, 0, 1, 3, 10, 1000)) for _ in range(60)] for _ in range(100)]
    rates = [[0, 0], [1, 0], [1, 1000], *some]
    done = Modules(tmp_path).run(MAIN, {"rates": rates, "seconds": list(TIMES)})
    assert done["paths"] == [Rate(counts).path for counts in rates]
    assert done["words"] == [
        "none in the last hour",
        "1 in the last hour, up to 1 a minute",
        "1,001 in the last hour, up to 1,000 a minute",
    ]
    assert done["times"] == list(TIMES.values())
