"""rdflib and PyLD: a CONSTRUCT by SPARQLWrapper, and one frame over the graph of all results, a document a line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyld import jsonld  # type: ignore[import-untyped] # it has no type information
from rdflib import Graph
from SPARQLWrapper import RDFXML, SPARQLWrapper


def main() -> None:
    """Arguments: the task, the query's file and the endpoint."""
    task, query, endpoint = sys.argv[1:]
    asked = SPARQLWrapper(endpoint)
    asked.setQuery(Path(query).read_text(encoding="utf-8"))
    asked.setReturnFormat(RDFXML)
    graph = asked.queryAndConvert()
    assert isinstance(graph, Graph)
    options = {"format": "application/n-quads", "useNativeTypes": True}
    expanded = jsonld.from_rdf(graph.serialize(format="nt"), options)
    frame = json.loads(Path(task).read_text(encoding="utf-8"))["frame"]
    for document in jsonld.frame(expanded, frame, {"omitGraph": False})["@graph"]:
        print(json.dumps(document))


if __name__ == "__main__":
    main()
