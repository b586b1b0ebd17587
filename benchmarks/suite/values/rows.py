"""Frames of pandas from an endpoint, in four ways; each imports what it needs, and pickles the frame.

`ours` asks by `to_pandas`. `sparqlwrapper` converts each value by its datatype, and lets pandas choose columns that
have missing values. `rdflib` asks through its `SPARQLStore`. `csv` is the package sparql-dataframe.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
CONVERTERS: Final[dict[str, Callable[[str], object]]] = {
    f"{XSD}nonNegativeInteger": int,
    f"{XSD}integer": int,
    f"{XSD}float": float,
    f"{XSD}double": float,
    f"{XSD}date": datetime.date.fromisoformat,
}


def ours(query: str, endpoint: str) -> Any:
    """This package; `query` is the CONSTRUCT."""
    from construct_messages import construct_messages

    return construct_messages(query, endpoint).to_pandas()


def sparqlwrapper(query: str, endpoint: str) -> Any:
    """SPARQLWrapper, and a conversion written by hand."""
    import pandas as pd
    from SPARQLWrapper import JSON, SPARQLWrapper

    asked = SPARQLWrapper(endpoint)
    asked.setQuery(query)
    asked.setReturnFormat(JSON)
    found: Any = asked.queryAndConvert()
    rows = [
        {name: _converted(value) for name, value in binding.items()}
        for binding in found["results"]["bindings"]
    ]
    return pd.DataFrame(rows, columns=found["head"]["vars"]).convert_dtypes()


def _converted(value: dict[str, str]) -> object:
    return CONVERTERS.get(value.get("datatype", ""), str)(value["value"])


def rdflib(query: str, endpoint: str) -> Any:
    """rdflib's remote store, and `toPython` of each term."""
    import pandas as pd
    from rdflib import Graph
    from rdflib.plugins.stores.sparqlstore import SPARQLStore

    found: Any = Graph(SPARQLStore(endpoint, method="POST")).query(query)
    rows = [[None if term is None else term.toPython() for term in row] for row in found]
    return pd.DataFrame(rows, columns=[str(name) for name in found.vars])


def csv(query: str, endpoint: str) -> Any:
    """sparql-dataframe: the endpoint's CSV, read by pandas."""
    import sparql_dataframe  # type: ignore[import-untyped] # it has no type information

    return sparql_dataframe.get(endpoint, query)


WAYS: Final = {each.__name__: each for each in (ours, sparqlwrapper, rdflib, csv)}


def main() -> None:
    """Arguments: the way, the query's file, the endpoint, and the file for the frame."""
    way, query, endpoint, output = sys.argv[1:]
    frame = WAYS[way](Path(query).read_text(encoding="utf-8"), endpoint)
    frame.to_pickle(output)


if __name__ == "__main__":
    main()
