"""Every case of `construct_cases.py` on every engine, by every way, against the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pyoxigraph as ox
import pytest

from construct_messages import ConstructMessagesError, construct_messages
from construct_messages.errors import NotConstruct, Position, SourceError
from construct_messages.rdf.options import Requests
from construct_messages.rdf.terms import from_pyoxigraph
from tests.support.engines import page, reference
from tests.support.engines.construct_cases import (
    CASES,
    DATA,
    DECLARED,
    ON_SPARK,
    RDF_1_2,
    Case,
    Fails,
    Gives,
)
from tests.support.engines.servers import ENGINES, Missing, NotStarted
from tests.support.places import absent
from tests.support.queries.options import arguments
from tests.support.waiting import SECONDS

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TEXTS = {"1.1": DATA, "1.2": RDF_1_2}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("engines")
    files = {name: folder / f"data-{name}.trig" for name in TEXTS}
    for name, file in files.items():
        file.write_text(TEXTS[name], encoding="utf-8")
    return files


@pytest.fixture(scope="session")
def directories(
    tmp_path_factory: pytest.TempPathFactory, stores: dict[str, ox.Store]
) -> dict[str, Path]:
    """The data as store directories, for the server's own evaluation."""
    found = {}
    for name, store in stores.items():
        found[name] = tmp_path_factory.mktemp("store")
        on_disk = ox.Store(found[name])
        on_disk.bulk_extend(store)
        on_disk.flush()
    return found


@pytest.fixture(scope="session")
def stores() -> dict[str, ox.Store]:
    stores = {name: ox.Store() for name in TEXTS}
    for name, store in stores.items():
        store.load(TEXTS[name], ox.RdfFormat.TRIG)
    return stores


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory, files: dict[str, Path]) -> dict[str, Path]:
    """The data as tables of quads, for DuckDB."""
    pytest.importorskip("duckdb")
    from construct_messages.sparql.relational.quads import load

    found = {}
    for name, file in files.items():
        found[name] = tmp_path_factory.mktemp("tables") / "data.quads"
        load([file], found[name])
    return found


def by_duckdb(table: Path, case: Case) -> bytes:
    """The log that the package makes of what DuckDB answers."""
    options = arguments({**case.options, "timeout": SECONDS})
    return b"".join(construct_messages(DECLARED + case.query, table, **options).serialize("nq"))


def direct(url: str, profile: str, case: Case) -> bytes:
    """The log that the package makes of what the engine answers."""
    stream = construct_messages(
        DECLARED + case.query,
        url,
        **arguments({**case.options, "profile": profile, "timeout": SECONDS}),
    )
    return b"".join(stream.serialize("nq"))


def through_server(url: str, case: Case) -> bytes:
    """The log that the server sends, before the engine or over the data."""
    form = [("query", DECLARED + case.query)]
    for option, parameter in SAYABLE.items():
        form += [(parameter, value) for value in case.options.get(option, ())]
    parts = urlsplit(url)
    headers = {
        "Accept": "application/n-quads; messages=rdfm",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    with closing(HTTPConnection(parts.netloc, timeout=SECONDS)) as connection:
        connection.request("POST", parts.path, urlencode(form), headers)
        response = connection.getresponse()
        content_type, body = response.headers["Content-Type"], response.read()
    if response.status == 200:
        assert content_type == "application/n-quads; version=1.2; messages=rdfm"
        return body
    assert content_type.startswith("application/problem+json")
    said = json.loads(body)
    assert said["status"] == response.status
    position = Position(said["line"], said["column"]) if "line" in said else None
    raise ConstructMessagesError(said["detail"], position=position, status=response.status)


# options that a client can say to the server, and how; those about pages are in the server's settings
SAYABLE = {
    "group_by": "group-by",
    "default_graph": "default-graph-uri",
    "named_graphs": "named-graph-uri",
}


def can_be_asked(case: Case) -> bool:
    """Whether a client of the server can ask for what the case says."""
    is_construct = case.fails is None or (case.query != "" and case.fails.error is not NotConstruct)
    return is_construct and case.options.keys() <= {*SAYABLE, "page_size"}


def by_spark(table: Any, case: Case) -> bytes:
    """The log of what Spark makes of a table."""
    from construct_messages.spark import construct_messages as on_spark

    found = on_spark(DECLARED + case.query, table, **arguments(case.options)).frame.collect()
    return "".join(
        f"# @message\n{message}\n" if message else "# @message\n" for (message,) in found
    ).encode()


@pytest.fixture(scope="session")
def spark_tables(spark: Any, quick: Any) -> dict[tuple[str, str], Any]:
    """The data as tables, by their names and the way: each quad once, or twice, or twice in a session by default."""
    from construct_messages.spark import QuadTable

    tables = {}
    for name, text in TEXTS.items():
        quads = [
            [None if isinstance(term, ox.DefaultGraph) else from_pyoxigraph(term) for term in quad]
            for quad in ox.parse(text, ox.RdfFormat.TRIG)
        ]
        for way, session, copies in (
            ("spark", quick, 1),
            ("spark doubled", quick, 2),
            ("spark by default", spark, 2),
        ):
            frame = session.createDataFrame(
                quads * copies, "subject STRING, predicate STRING, object STRING, graph STRING"
            )
            tables[name, way] = QuadTable.of(frame.coalesce(1).cache(), assume_distinct=copies == 1)
    return tables


def runs() -> Iterator[object]:
    asked = [
        (place, engine, case)
        for first, (engine, kind) in enumerate(ENGINES.items())
        for place, case in enumerate(CASES, first)
        if case.data == "1.1" or kind.rdf_1_2  # see test_rdf_1_2_is_refused
    ]
    # each engine by each way, and each case by each way: `one_in` leaves the first of the two
    for place, engine, case in asked:
        if can_be_asked(case):
            for way in ("direct", "proxy")[:: 1 if place % 2 else -1]:
                name = f"{way}-{engine}-{case.name}"
                yield pytest.param(way, engine, case, id=name, marks=pytest.mark.one_in(2))
    for _, engine, case in asked:
        if not can_be_asked(case):
            yield pytest.param("direct", engine, case, id=f"direct-{engine}-{case.name}")
    for case in CASES:
        if can_be_asked(case) and "page_size" not in case.options:
            yield pytest.param("embedded", "oxigraph", case, id=f"embedded-{case.name}")
    for case in CASES:
        if "page_size" not in case.options:
            yield pytest.param("duckdb", "duckdb", case, id=f"duckdb-{case.name}")
    # Spark has the plans of DuckDB, and templates of its own: it is asked a third, and what options and differences say
    for number, case in enumerate(case for case in CASES if case.options.keys() <= ON_SPARK):
        if number % 3 and not case.options and "spark" not in case.differs:
            continue
        # by default settings, plans are compiled and adapted, which takes longer than they run: every eighth case
        doubled = "spark doubled" if number % 8 else "spark by default"
        for way in ("spark", doubled)[:: 1 if number % 2 else -1]:
            name = f"{way.replace(' ', '-')}-{case.name}"
            marks = (pytest.mark.one_in(2), pytest.mark.spark)
            yield pytest.param(way, "spark", case, id=name, marks=marks)


@pytest.mark.parametrize(("way", "engine", "case"), list(runs()))
def test_case(
    serve_with: Callable[[str, Path], str],
    files: dict[str, Path],
    directories: dict[str, Path],
    stores: dict[str, ox.Store],
    proxy: Callable[..., str],
    request: pytest.FixtureRequest,
    way: str,
    engine: str,
    case: Case,
) -> None:
    def log() -> bytes:
        if engine == "spark":
            return by_spark(request.getfixturevalue("spark_tables")[case.data, way], case)
        if engine == "duckdb":
            return by_duckdb(request.getfixturevalue("tables")[case.data], case)
        if way == "embedded":
            return through_server(proxy(str(directories[case.data])), case)
        url, profile = serve_with(engine, files[case.data]), ENGINES[engine].profile
        if way == "direct":
            return direct(url, profile, case)
        return through_server(
            proxy(url, profile=profile, page_size=case.options.get("page_size")), case
        )

    own = case.differs.get(way)
    if own is None and (way != "embedded" or case.name.startswith("term ")):
        own = case.differs.get(engine)
    expected = own.instead if own else case.fails
    if isinstance(expected, Fails):
        with pytest.raises(ConstructMessagesError, match=expected.words) as caught:
            log()
        assert way != "direct" or type(caught.value) is expected.error
        assert caught.value.status == expected.status
        return
    found = reference.decode(log())
    wanted = [] if case.fails else expected_of(case, stores[case.data])
    if own and isinstance(expected, Gives):
        differs = case.fails is not None or not reference.same(found, wanted, ordered=case.ordered)
        assert differs, f"{engine} does as the others do, now: leave out {own.reason!r}"
        wanted = [reference.instantiate(message, {}) for message in expected.messages]
    assert reference.same(found, wanted, ordered=case.ordered), (
        f"{shown(found)}, not {shown(wanted)}"
    )
    if case.ordered and "page_size" not in case.options:
        assert reference.as_one(found) == reference.as_one(wanted), (
            "messages share other blank nodes"
        )


@pytest.mark.parametrize("option", ["requests", "distinct_limit", "lenient"])
def test_options_that_mean_nothing_on_spark(option: str) -> None:
    from construct_messages.spark import construct_messages as on_spark

    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        on_spark("", None, **{option: 1})


def expected_of(case: Case, store: ox.Store) -> list[reference.Message]:
    options = {
        name: value
        for name, value in case.options.items()
        if name not in ("page_size", "group_order")
    }
    return reference.messages(store, case.select, case.template, **options)


def shown(log: list[reference.Message]) -> list[list[str]]:
    return [
        [f"{quad.subject} {quad.predicate} {quad.object} {quad.graph_name}" for quad in message]
        for message in log
    ]


@pytest.mark.parametrize("engine", [name for name, engine in ENGINES.items() if not engine.rdf_1_2])
def test_rdf_1_2_is_refused(engine: str, files: dict[str, Path], tmp_path: Path) -> None:
    """The engines that the cases with triple terms are not asked of do not read them."""
    kind, query = ENGINES[engine], "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    try:
        with pytest.raises((NotStarted, SourceError)), kind.start(files["1.2"], tmp_path) as url:
            list(
                construct_messages(
                    query, url, requests=Requests(profile=kind.profile, timeout=SECONDS)
                )
            )
    except Missing as missing:
        absent(str(missing))


_OBJECTS = (
    "<urn:o{}>",
    '"x{}"',
    '"x{}"@en',
    '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '<< <urn:a> <urn:b> "{}"@de >>',
)


@pytest.mark.parametrize(
    "options",
    [{}, {"profile": "rdf4j"}, {"method": "get"}, {"page_size": 40}, {"page_key": "g"}],
    ids=str,
)
def test_triples_of_rdf_star(
    serve_with: Callable[[str, Path], str],
    tmp_path_factory: pytest.TempPathFactory,
    options: dict[str, Any],
) -> None:
    """RDF4J has quoted triples as terms; in RDF 1.2, a triple term is an object only."""
    file = tmp_path_factory.getbasetemp() / "star.trig"
    quoted = {n: f"<< <urn:s{n}> <urn:p> {_OBJECTS[n % 5].format(n)} >>" for n in range(200)}
    lines = [
        f'{quoted[n]} <urn:number> "{n}" . <urn:g{n}> <urn:says> {quoted[n]} .' for n in quoted
    ]
    file.write_text("\n".join(lines))
    url = serve_with("rdf4j", file)
    query = "CONSTRUCT { ?g <urn:of> ?n ; <urn:says> ?t } WHERE { ?t <urn:number> ?n . ?g <urn:says> ?t }"
    if "page_key" in options:
        options = options | {"page_size": 40}
    found = construct_messages(query, url, **arguments({**options, "timeout": SECONDS}))
    terms = {text: text.replace("<< ", "<<( ").replace(" >>", " )>>") for text in quoted.values()}
    assert {frozenset(map(str, message)) for message in found} == {
        frozenset((f'<urn:g{n}> <urn:of> "{n}" .', f"<urn:g{n}> <urn:says> {terms[text]} ."))
        for n, text in quoted.items()
    }
    with pytest.raises(SourceError, match=r"<urn:rdf4j:triple:[^>]+> stands for") as refused:
        list(construct_messages(query, url, requests=Requests(results="xml", timeout=SECONDS)))
    assert 'results="json"' in str(refused.value)


def test_the_page_about_engines_is_up_to_date() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page()
