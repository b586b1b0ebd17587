"""Real engines that are watched: labels of blank nodes that change, and Virtuoso's cap, are no changes of the data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from construct_messages.errors import IncompleteResult
from construct_messages.streams import StreamStore
from tests.support.engines.servers import DEFAULT_GRAPH, ENGINES
from tests.support.watching import watching

pytestmark = [pytest.mark.engine, pytest.mark.slow]

COUNT = 10_050
"""More than the 10,000 rows that DBpedia's Virtuoso gives at most."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Literals, and nodes that have nothing but a label of their own."""
    file = tmp_path_factory.mktemp("watched") / "data.nt"
    blanks = "".join(f"_:b{number} <urn:p> _:c{number % 7} .\n" for number in range(50))
    file.write_text(
        "".join(f'<urn:s{number}> <urn:p> "{number}" .\n' for number in range(COUNT - 50)) + blanks
    )
    return file


@pytest.mark.parametrize("engine", ["oxigraph", "rdflib", "virtuoso"])
async def test_nothing_changes(
    out: StreamStore, serve_with: Callable[[str, Path], str], data: Path, engine: str
) -> None:
    url, kind = serve_with(engine, data), ENGINES[engine]
    options = {
        "profile": kind.profile,
        "default_graph": DEFAULT_GRAPH if engine == "virtuoso" else (),
    }
    if engine == "virtuoso":
        with pytest.raises(IncompleteResult, match="at most 10000 solutions"):
            await watching(out, url, **options).evaluate()
        assert out.seen("watch") == {}
        options["page_size"] = 4000
    watched = watching(out, url, **options)
    assert await watched.evaluate() == COUNT
    for again in (watched, watching(out, url, **options)):
        assert await again.evaluate() == 0
