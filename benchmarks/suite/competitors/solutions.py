"""The solutions of a SELECT query from each library or program, with terms in N-Triples: what users write by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any

XSD = "http://www.w3.org/2001/XMLSchema#"

Solution = dict[str, str]


def quoted(text: str) -> str:
    """A string literal of N-Triples."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    )
    return f'"{escaped}"'


def by_rdflib(data: Path | IO[bytes], select: str) -> Iterator[Solution]:
    """Evaluated by rdflib over N-Triples."""
    from rdflib import Graph, Literal

    graph = Graph().parse(data, format="nt11")

    def term(value: Any) -> str:
        if not isinstance(value, Literal):
            return str(value.n3())
        suffix = (
            f"@{value.language}"
            if value.language
            else f"^^<{value.datatype}>"
            if value.datatype
            else ""
        )
        return quoted(str(value)) + suffix

    for binding in graph.query(select).bindings:
        yield {f"?{name}": term(value) for name, value in binding.items()}


def by_pyoxigraph(data: Path | IO[bytes], select: str) -> Iterator[Solution]:
    """Evaluated by pyoxigraph over N-Triples, in a store in memory."""
    import pyoxigraph as ox

    store = ox.Store()
    if isinstance(data, Path):
        store.bulk_load(path=data, format=ox.RdfFormat.N_TRIPLES)
    else:
        store.bulk_load(data, ox.RdfFormat.N_TRIPLES)
    result = store.query(select)
    assert isinstance(result, ox.QuerySolutions)
    names = [str(variable) for variable in result.variables]
    for solution in result:
        yield {
            name: str(value)
            for name, value in zip(names, solution, strict=True)
            if value is not None
        }


def by_pages(endpoint: str, select: str, size: int = 10_000) -> Iterator[Solution]:
    """Asked of an endpoint through SPARQLWrapper, page by page: the query as a subselect, with LIMIT and OFFSET."""
    head, where = re.split(r"(?=\bSELECT\b)", select, maxsplit=1)
    for offset in count(0, size):
        page = list(
            by_sparqlwrapper(
                endpoint, f"{head} SELECT * {{ {{ {where} }} }} LIMIT {size} OFFSET {offset}"
            )
        )
        yield from page
        if len(page) < size:
            break


def by_sparqlwrapper(endpoint: str, select: str) -> Iterator[Solution]:
    """Asked of an endpoint through SPARQLWrapper, as JSON."""
    from SPARQLWrapper import JSON, POST, SPARQLWrapper

    client = SPARQLWrapper(endpoint, agent="construct-messages-benchmarks")
    client.setQuery(select)
    client.setMethod(POST)
    client.setReturnFormat(JSON)

    def term(value: dict[str, str]) -> str:
        match value["type"]:
            case "uri":
                return f"<{value['value']}>"
            case "bnode":
                return f"_:{value['value']}"
        if language := value.get("xml:lang"):
            return f"{quoted(value['value'])}@{language}"
        datatype = value.get("datatype")
        return quoted(value["value"]) + (f"^^<{datatype}>" if datatype else "")

    answer: Any = client.queryAndConvert()
    for binding in answer["results"]["bindings"]:
        yield {f"?{name}": term(value) for name, value in binding.items()}


_NUMBERS = (("integer", re.compile(r"[+-]?\d+")), ("decimal", re.compile(r"[+-]?\d*\.\d+")))


def by_oxigraph(program: str, data: Path, select: str, workdir: Path) -> Iterator[Solution]:
    """Evaluated by the program of Oxigraph: loaded into a folder, then asked for TSV."""
    import subprocess
    import tempfile

    def term(cell: str) -> str:
        if cell[0] in '<"_':
            return cell
        if cell in ("true", "false"):
            return f'"{cell}"^^<{XSD}boolean>'
        kind = next((name for name, pattern in _NUMBERS if pattern.fullmatch(cell)), "double")
        return f'"{cell}"^^<{XSD}{kind}>'

    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        subprocess.run(
            [program, "load", "--location", folder, "--file", data, "--format", "nt"],
            check=True,
            capture_output=True,
        )
        asked = [
            program,
            "query",
            "--location",
            folder,
            "--results-format",
            "tsv",
            "--query",
            select,
        ]
        with subprocess.Popen(asked, stdout=subprocess.PIPE, encoding="utf-8") as process:
            assert process.stdout is not None
            names = process.stdout.readline().rstrip("\n").split("\t")
            for line in process.stdout:
                cells = zip(names, line.rstrip("\n").split("\t"), strict=True)
                yield {name: term(cell) for name, cell in cells if cell}
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, asked)
