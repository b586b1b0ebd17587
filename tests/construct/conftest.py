"""The data of the message cases in every kind of source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLStore

from tests.support.queries.message_cases import DATA


@pytest.fixture(scope="session")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.ttl"
    path.write_text(DATA)
    return path


@pytest.fixture(scope="session")
def sources(
    data_file: Path, oxigraph_server: Callable[[Path], str], rdflib_server: Callable[[Path], str]
) -> dict[str, object]:
    """The same data in every kind of source."""
    store = ox.Store()
    store.load(path=data_file)
    directory = data_file.parent / "store"
    with_data = ox.Store(directory)
    with_data.load(path=data_file)
    with_data.flush()
    del with_data
    oxigraph = oxigraph_server(data_file)
    return {
        "store": store,
        "file": data_file,
        "directory": str(directory),
        "rdflib": rdflib.Graph().parse(data_file),
        "dataset": rdflib.Dataset(default_union=True).parse(data_file, format="turtle"),
        "rdflib's client": rdflib.Graph(SPARQLStore(oxigraph, method="POST_FORM")),
        "oxigraph": oxigraph,
        "rdflib-endpoint": rdflib_server(data_file),
    }
