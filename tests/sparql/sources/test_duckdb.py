"""A table of quads as a source: the messages of the embedded engine, limits, and what is refused."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from construct_messages import Message, construct_messages, read_log
from construct_messages.cli import main
from construct_messages.errors import (
    QuadsError,
    QueryError,
    SourceTimeout,
    UnsupportedQuery,
    UsageError,
)
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.options import Dataset, Grouping, Requests
from construct_messages.sparql.relational.quads import load
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.duckdb import DuckDbSource
from tests.support.places import shared_path

DATA = """\
PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
:a a :Company ; :name "Ångström & Söhne"@de , "Angstrom" ; :staff 120 ; :founded "1950-03-01"^^xsd:date ; :in :x .
:b a :Company ; :name "B" ; :staff 7 ; :in :y ; :owns [ :name "inner" ; :share 0.5 ] .
:c a :Company ; :staff "4000"^^xsd:double ; :in :x .
:x :partOf :y . :y :partOf :z . :z :partOf :x .
:g { :a :checked true . :d :checked false }
"""
PREFIX = "PREFIX : <http://example.org/> "
QUERIES = {
    "join": "CONSTRUCT { ?s :label ?n ; :staff ?e } WHERE { ?s a :Company ; :name ?n ; :staff ?e FILTER(?e > 5) }",
    "optional": "CONSTRUCT { ?s a :Firm ; :label ?n ; :since ?d } WHERE { ?s a :Company OPTIONAL { ?s :name ?n } "
    "OPTIONAL { ?s :founded ?d FILTER(YEAR(?d) < 1960) } }",
    "functions": "CONSTRUCT { ?s :label ?u } WHERE { ?s :name ?n BIND(UCASE(STR(?n)) AS ?u) FILTER(STRLEN(?u) < 9) }",
    "blank nodes": "CONSTRUCT { ?o :of ?s ; :with [ :share ?h ] } WHERE { ?s :owns ?o . ?o :share ?h }",
    "exists": "CONSTRUCT { ?s a :Alone } WHERE { ?s a :Company FILTER NOT EXISTS { ?s :name ?n } MINUS { ?s :in :y } }",
    "path": "CONSTRUCT { ?s :within ?p } WHERE { ?s :in/:partOf* ?p }",
    "groups": "CONSTRUCT { ?p :total ?t ; :companies ?c } WHERE { { SELECT ?p (SUM(?e) AS ?t) (COUNT(*) AS ?c) "
    "{ ?s :in ?p ; :staff ?e } GROUP BY ?p HAVING(COUNT(*) > 0) ORDER BY ?p LIMIT 5 } }",
    "graphs": "CONSTRUCT { GRAPH ?g { ?s :checked ?c } } WHERE { GRAPH ?g { ?s :checked ?c } }",
    "union and values": "CONSTRUCT { ?s :is ?v } WHERE { { ?s :staff ?v } UNION { ?s :in ?v } VALUES ?s { :a :c } }",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The data as a file, and as a table."""
    folder = tmp_path_factory.mktemp("quads")
    (folder / "data.trig").write_text(DATA)
    load([folder / "data.trig"], folder / "data.quads")
    return folder / "data.trig", folder / "data.quads"


def same(left: Iterable[Message], right: Iterable[Message]) -> bool:
    """Whether these are the same messages, in any order, up to the labels of blank nodes."""
    waiting = list(right)
    for message in left:
        found = next((one for one in waiting if message.isomorphic(one)), None)
        if found is None:
            return False
        waiting.remove(found)
    return not waiting


@pytest.mark.parametrize("name", QUERIES)
def test_messages_are_those_of_the_embedded_engine(files: tuple[Path, Path], name: str) -> None:
    found, wanted = (list(construct_messages(PREFIX + QUERIES[name], path)) for path in files[::-1])
    assert wanted
    assert same(found, wanted), (found, wanted)


@pytest.mark.parametrize(
    "options",
    [
        {"group_by": "?p"},
        {"bindings": {"p": "<http://example.org/x>"}},
        {"distinct": True},
        {"group_by": Grouping("?p", order="sorted")},
    ],
    ids=str,
)
def test_options(files: tuple[Path, Path], options: dict[str, object]) -> None:
    query = PREFIX + "CONSTRUCT { ?p :has ?s } WHERE { ?s :in ?p }"
    found, wanted = (list(construct_messages(query, path, **options)) for path in files[::-1])
    assert wanted
    assert same(found, wanted)


def test_real_data(tmp_path: Path) -> None:
    source = shared_path("data/dbpedia-countries.nt")
    load([source], tmp_path / "t")
    query = """PREFIX dbo: <http://dbpedia.org/ontology/> PREFIX dbp: <http://dbpedia.org/property/>
CONSTRUCT { ?s a ?t ; dbo:language ?l ; dbp:all ?n } WHERE { ?s a ?t ; dbo:language ?l
 OPTIONAL { ?s dbp:officialLanguages ?n } FILTER(STRSTARTS(STR(?t), "http://dbpedia.org/ontology") && ?l != ?s)
 FILTER NOT EXISTS { ?s dbo:regionalLanguage ?l } FILTER(STRLEN(STR(?l)) < 50) }"""
    found, wanted = (
        Counter(message.lines for message in construct_messages(query, path))
        for path in (tmp_path / "t", source)
    )
    assert found == wanted
    assert found


@pytest.mark.parametrize("source", [{}, {"engine": "duckdb"}], ids=["table", "files"])
@pytest.mark.parametrize(
    "dataset",
    [
        Dataset("union"),
        Dataset("http://example.org/g"),
        Dataset(named_graphs="http://example.org/g"),
    ],
    ids=str,
)
def test_datasets(files: tuple[Path, Path], dataset: Dataset, source: dict[str, str]) -> None:
    for where in (
        "?s :checked ?c",
        "GRAPH ?g { ?s :checked ?c }",
        "?s ?p ?c",
        "?s :checked/^:checked ?c",
    ):
        query = f"{PREFIX} CONSTRUCT {{ ?s :is ?c }} WHERE {{ {where} FILTER(!isBlank(?s) && !isBlank(?c)) }}"
        found, wanted = (
            Counter(
                m.lines for m in construct_messages(query, path, dataset=dataset, requests=requests)
            )
            for path, requests in (
                (files[0] if source else files[1], Requests(**source)),
                (files[0], Requests()),
            )
        )
        assert found == wanted, where


def test_order_is_kept(files: tuple[Path, Path]) -> None:
    query = PREFIX + "CONSTRUCT { ?s :staff ?e } WHERE { ?s :staff ?e } ORDER BY DESC(?e)"
    staff = [next(iter(message)).object for message in construct_messages(query, files[1])]
    assert [term.split('"')[1] for term in staff] == ["4000", "120", "7"]


def test_lexical_forms_stay(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(
        '<urn:a> <urn:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    )
    load([tmp_path / "a.nt"], tmp_path / "t")
    (message,) = construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", tmp_path / "t")
    assert '"01"' in message.lines.decode()


def test_asyncio(files: tuple[Path, Path]) -> None:
    async def found() -> list[Message]:
        stream = construct_messages(PREFIX + QUERIES["join"], files[1])
        return [message async for message in stream]

    assert same(asyncio.run(found()), construct_messages(PREFIX + QUERIES["join"], files[0]))


def test_time_limit(tmp_path: Path) -> None:
    lines = "".join(f"<urn:{n}> <urn:p> <urn:{n % 7}> .\n" for n in range(3000))
    (tmp_path / "a.nt").write_text(lines)
    load([tmp_path / "a.nt"], tmp_path / "t")
    query = "CONSTRUCT { ?a <urn:q> ?c } WHERE { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f } ORDER BY ?e"
    began = time.monotonic()
    with pytest.raises(SourceTimeout):
        list(construct_messages(query, tmp_path / "t", requests=Requests(timeout=1)))
    assert time.monotonic() - began < 60


def test_a_reader_may_stop(files: tuple[Path, Path]) -> None:
    query = PREFIX + "CONSTRUCT { ?a :b ?c } WHERE { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h }"
    with construct_messages(query, files[1]) as stream:
        assert next(iter(stream))


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o", QueryError),
        ("CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <urn:x> { ?s ?p ?o } }", UnsupportedQuery),
        ('CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(REGEX(?o, "(?=a)")) }', UnsupportedQuery),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(<urn:f>(?o)) }", UnsupportedQuery),
    ],
)
def test_what_is_not_supported_is_refused(
    files: tuple[Path, Path], query: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        list(construct_messages(query, files[1]))


def test_what_is_no_table_is_refused(tmp_path: Path, files: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="store"):
        list(construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", tmp_path))
    with pytest.raises(QuadsError):
        DuckDbSource(tmp_path)
    with pytest.raises(UsageError, match="memory_limit"):
        DuckDbSource(files[1], memory_limit="much")
    dataset = Dataset(["union", "urn:g"])
    with pytest.raises(UsageError, match="union"):
        list(construct_messages("CONSTRUCT WHERE { ?s ?p ?o }", files[1], dataset=dataset))


def test_several_files_with_the_same_quad(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    load([tmp_path / "a.nt", tmp_path / "b.nt"], tmp_path / "t")
    for query in ("?s <urn:p> ?o", "?s ?p ?o", "?s <urn:p>/^<urn:p> ?o"):
        found = list(
            construct_messages(f"CONSTRUCT {{ ?s <urn:q> ?o }} WHERE {{ {query} }}", tmp_path / "t")
        )
        assert len(found) == 1, query


def test_explanation(files: tuple[Path, Path]) -> None:
    source = DuckDbSource(files[1], memory_limit="500MB", threads=1)
    select = ConstructQuery.parse(PREFIX + QUERIES["join"]).select_for(None, Grouping())
    text = source.explain(Request(select))
    source.close()
    assert "joined in this order" in text
    assert "SELECT" in text


def test_command_line(tmp_path: Path, files: tuple[Path, Path]) -> None:
    table, log = str(tmp_path / "t"), tmp_path / "log.nq"
    query = PREFIX + QUERIES["path"]
    assert (
        main(
            ["load", str(files[0]), "--output", table, "--memory-limit", "500MB", "--threads", "1"]
        )
        == 0
    )
    assert main(["run", "--query", query, "--source", table, "--output", str(log), "--quiet"]) == 0
    assert same(read_log(log), construct_messages(query, files[0]))
    (tmp_path / "bad.nt").write_text("<urn:a> .\n")
    assert main(["load", str(tmp_path / "bad.nt"), "--output", table]) == 3
    assert main(["load", str(files[0]), "--output", table, "--memory-limit", "much"]) == 2
    assert same(construct_messages(query, table), construct_messages(query, files[0]))


def test_engines_on_the_command_line(
    tmp_path: Path, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data, table = map(str, files)
    query, log = ["--query", PREFIX + QUERIES["optional"]], tmp_path / "log.nq"
    limits = ["--engine", "duckdb", "--memory-limit", "500MB", "--spill", str(tmp_path / "spill")]
    command = ["run", *query, "--source", data, *limits, "--output", str(log), "--quiet"]
    assert main(command) == 0
    assert same(read_log(log), construct_messages(PREFIX + QUERIES["optional"], data))
    for source in ([table], [data, "--engine", "duckdb"]):
        assert main(["run", *query, "--explain", "--source", *source]) == 0
        said = capsys.readouterr().out
        assert "joined in this order" in said
        assert "\nSELECT " in said
    for wrong in (["--explain"], ["--threads", "2"]):
        assert main(["run", *query, "--source", data, *wrong]) == 2
    assert "DuckDB" in capsys.readouterr().err
