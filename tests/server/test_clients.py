"""Common SPARQL clients, pointed at the server instead of the endpoint: they get the same answers.

Each client asks an Oxigraph server, the server in front of that, and the server over the same data as files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyoxigraph as ox
import pytest
import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLStore
from SPARQLWrapper import (
    CSV,
    GET,
    JSON,
    JSONLD,
    N3,
    POST,
    POSTDIRECTLY,
    RDFXML,
    TSV,
    TURTLE,
    URLENCODED,
    XML,
    SPARQLWrapper,
)

from tests.support.engines.servers import Missing, node_program
from tests.support.places import absent
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.engine, pytest.mark.slow]

DATA = """
@prefix ex: <http://example.org/> .
ex:acme a ex:Company ; ex:location ex:be, ex:nl ; ex:name "Acme"@en, "Ağme \\"q\\"\\n"@tr ; ex:staff 120 .
ex:bolt a ex:Company ; ex:location ex:be ; ex:name "Bolt" ; ex:share 0.25 .
<urn:g> { ex:acme ex:rating ex:five . }
"""
PREFIX = "PREFIX ex: <http://example.org/>\n"
QUERIES = {
    "SELECT": PREFIX + "SELECT ?c ?p ?o ?none WHERE { ?c a ex:Company ; ?p ?o } ORDER BY ?c ?p ?o",
    "ASK": PREFIX + "ASK { ex:acme ex:location ex:nl }",
    "CONSTRUCT": PREFIX
    + "CONSTRUCT { ?l ex:of ?c . ?c ex:named ?n } WHERE { ?c ex:location ?l ; ex:name ?n }",
    "DESCRIBE": PREFIX + "DESCRIBE ex:acme",
}


class Urls(NamedTuple):
    """Where the same data are."""

    endpoint: str
    served: str


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clients") / "data.trig"
    file.write_text(DATA, encoding="utf-8")
    return file


@pytest.fixture(scope="session", params=["upstream", "files"])
def urls(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    file: Path,
    oxigraph_server: Callable[[Path], str],
    proxy: Callable[..., str],
) -> Urls:
    endpoint = oxigraph_server(file)
    if request.param == "upstream":
        return Urls(endpoint, proxy(endpoint))
    directory = tmp_path_factory.mktemp("clients") / "store"
    store = ox.Store(directory)
    store.load(path=file)
    store.flush()
    del store
    return Urls(endpoint, proxy(str(directory)))


# --- SPARQLWrapper ---

of_sparqlwrapper = pytest.mark.filterwarnings(
    "ignore:ConjunctiveGraph is deprecated:DeprecationWarning"
)

RESULTS = {"SELECT": (JSON, XML, CSV, TSV), "ASK": (JSON, XML)}
GRAPHS = (XML, RDFXML, TURTLE, N3, JSONLD)


def comparable(answer: Any) -> object:
    """What SPARQLWrapper converts an answer to, as a value."""
    if isinstance(answer, rdflib.Graph):
        return set(answer)
    return answer.toxml() if hasattr(answer, "toxml") else answer


@of_sparqlwrapper
@pytest.mark.parametrize(
    ("form", "format"), [(form, format) for form in QUERIES for format in RESULTS.get(form, GRAPHS)]
)
@pytest.mark.parametrize(
    ("method", "how"), [(GET, URLENCODED), (POST, URLENCODED), (POST, POSTDIRECTLY)]
)
def test_sparqlwrapper(urls: Urls, form: str, format: str, method: str, how: str) -> None:
    def ask(url: str) -> object:
        wrapper = SPARQLWrapper(url, returnFormat=format)
        wrapper.setMethod(method)
        wrapper.setRequestMethod(how)
        wrapper.setTimeout(int(SECONDS))
        wrapper.setQuery(QUERIES[form])
        return comparable(wrapper.queryAndConvert())

    answer = ask(urls.served)
    assert answer == ask(urls.endpoint)
    assert answer


@of_sparqlwrapper
@pytest.mark.parametrize("form", QUERIES)
def test_sparqlwrapper_with_a_dataset(urls: Urls, form: str) -> None:
    def ask(url: str) -> object:
        wrapper = SPARQLWrapper(
            url, defaultGraph="urn:g", returnFormat=RESULTS.get(form, GRAPHS)[0]
        )
        wrapper.setTimeout(int(SECONDS))
        wrapper.setQuery(QUERIES[form])
        return comparable(wrapper.queryAndConvert())

    assert ask(urls.served) == ask(urls.endpoint)


# --- rdflib ---


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
@pytest.mark.parametrize("format", ["xml", "json", "csv", "tsv"])
def test_rdflib_store(urls: Urls, method: Any, format: str) -> None:
    ex = rdflib.Namespace("http://example.org/")

    def ask(url: str) -> list[object]:
        graph = rdflib.Graph(SPARQLStore(url, method=method, returnFormat=format))
        found: list[object] = [
            list(graph.query(QUERIES["SELECT"])),
            set(graph.triples((None, ex.location, None))),
            set(graph.objects(ex.acme, ex.name)),
            len(graph),
        ]
        if format in ("xml", "json"):  # there is no other for ASK
            found += [graph.query(QUERIES["ASK"]).askAnswer, (ex.bolt, ex.location, ex.nl) in graph]
        return found

    found = ask(urls.served)
    assert found == ask(urls.endpoint)
    assert all(len(part) for part in found[:3] if isinstance(part, (list, set)))


def test_rdflib_store_constructs(urls: Urls) -> None:
    def ask(url: str) -> set[object]:
        return set(rdflib.Graph(SPARQLStore(url)).query(QUERIES["CONSTRUCT"]).graph or ())

    assert ask(urls.served) == ask(urls.endpoint) != set()


# --- curl ---

CURL = {
    "GET": ["--get", "--data-urlencode"],
    "POST": ["--data-urlencode"],
    "direct POST": ["--header", "Content-Type: application/sparql-query", "--data-binary"],
    "compressed": ["--compressed", "--data-urlencode"],
}
MEDIA_TYPES = {
    "SELECT": [
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
    ],
    "ASK": ["application/sparql-results+json", "application/sparql-results+xml"],
    "CONSTRUCT": [
        *("application/n-triples", "text/turtle", "application/rdf+xml", "application/trig", "*/*"),
        # clients that name all they can read, formats of logs among it, are not answered with messages for that
        "application/rdf+xml;q=0.9, application/x-ld+ndjson, application/x-jelly-rdf, text/turtle",
    ],
    "DESCRIBE": ["application/n-triples", "text/turtle"],
}


def curl(url: str, how: str, query: str, accept: str) -> tuple[str, bytes]:
    """The content type and the body."""
    program = shutil.which("curl")
    if program is None:
        absent("curl is not installed: apt-get install curl")
    data = query if how == "direct POST" else f"query={query}"
    command = [
        program,
        "--silent",
        "--show-error",
        "--fail",
        "--max-time",
        str(SECONDS),
        "--write-out",
        "\n%{content_type}",
    ]
    done = subprocess.run(
        [*command, "--header", f"Accept: {accept}", *CURL[how], data, url],
        check=True,
        capture_output=True,
    )
    body, _, content_type = done.stdout.rpartition(b"\n")
    return content_type.decode(), body


def content(content_type: str, body: bytes) -> object:
    """What an answer says, whatever its bytes."""
    media_type = content_type.partition(";")[0]
    if media_type in ("text/csv", "text/tab-separated-values"):
        return body
    if (results := ox.QueryResultsFormat.from_media_type(media_type)) is not None:
        answer = ox.parse_query_results(body, results)
        if isinstance(answer, ox.QueryBoolean):
            return bool(answer)
        assert isinstance(answer, ox.QuerySolutions)
        return [[str(solution[variable]) for variable in answer.variables] for solution in answer]
    format = ox.RdfFormat.from_media_type(media_type)
    assert format is not None, f"{media_type} is no format of RDF"
    return lines(ox.parse(body, format))


def lines(quads: Iterable[ox.Quad]) -> set[str]:
    return {str(quad) for quad in quads}


@pytest.mark.parametrize("how", CURL)
@pytest.mark.parametrize(
    ("form", "accept"), [(form, accept) for form, some in MEDIA_TYPES.items() for accept in some]
)
def test_curl(urls: Urls, how: str, form: str, accept: str) -> None:
    found, expected = (
        curl(url, how, QUERIES[form], accept) for url in (urls.served, urls.endpoint)
    )
    assert content(*found) == content(*expected)
    assert found[0].partition(";")[0] == expected[0].partition(";")[0] or accept == "*/*"


# --- Comunica ---

ASKING = """
const { QueryEngine } = require('@comunica/query-sparql');
const { queries, sources } = JSON.parse(process.argv[2]);
(async () => {
  const answers = [];
  for (const source of sources) {
    const engine = new QueryEngine();
    const answer = {};
    for (const [name, query] of Object.entries(queries)) {
      const result = await engine.query(query, { sources: [source] });
      const mediaType = name === 'CONSTRUCT' ? 'application/n-quads' : 'application/sparql-results+json';
      const { data } = await engine.resultToString(result, mediaType);
      answer[name] = '';
      for await (const chunk of data) answer[name] += chunk;
    }
    answers.push(answer);
  }
  console.log(JSON.stringify(answers));
})();
"""


def test_comunica(urls: Urls, tmp_path: Path) -> None:
    """As a SPARQL endpoint, and where it finds out by itself that it is one, from the service description."""
    try:
        program = Path(node_program("comunica-sparql", "@comunica/query-sparql@4"))
    except Missing as missing:
        absent(str(missing))
    queries = {form: QUERIES[form] for form in ("SELECT", "ASK", "CONSTRUCT")}
    sources = [{"type": "sparql", "value": url} for url in urls] + [{"value": urls.served}]
    (tmp_path / "ask.js").write_text(ASKING)
    done = subprocess.run(
        ["node", "ask.js", json.dumps({"queries": queries, "sources": sources})],
        cwd=tmp_path,
        env=os.environ | {"NODE_PATH": str(program.parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    expected, *served = [
        {form: read_comunica(form, answer) for form, answer in answers.items()}
        for answers in json.loads(done.stdout)
    ]
    assert expected["CONSTRUCT"]
    assert served == [expected] * 2


def read_comunica(form: str, answer: str) -> object:
    if form == "CONSTRUCT":
        return lines(ox.parse(answer, ox.RdfFormat.N_QUADS))
    results = json.loads(answer)
    return (
        results["boolean"] if form == "ASK" else results["results"]
    )  # beside which it says what it did
