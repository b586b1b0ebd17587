"""`construct_messages` on Spark: the options mean what they mean elsewhere, and what is refused is refused at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

from construct_messages import Message, construct_messages, read_log
from construct_messages.errors import (
    LimitExceeded,
    Position,
    QuadsError,
    QueryError,
    UnsupportedQuery,
    UsageError,
)
from construct_messages.rdf.terms import XSD, Term, from_pyoxigraph
from construct_messages.spark import load_quads
from tests.support.logs.kinds import blanks
from tests.support.queries.options import arguments
from tests.support.spark.sessions import new_session
from tests.support.spark.terms import typed

room = pytest.importorskip("construct_messages.spark.construct")
QuadTable = pytest.importorskip("construct_messages.spark.quads.table").QuadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

DATA = """\
PREFIX : <http://example.org/>
:acme a :Company ; :location :be, :nl ; :name "Acme"@en ; :staff 120 ; :part-of _:group .
:bolt a :Company ; :location :be ; :name "Bolt" ; :staff 7 ; :owner [ :name "Ann" ] ; :part-of _:group .
:corp a :Company ; :location "somewhere" .
:be :part :eu . :nl :part :eu . :eu :part :world . :world :part :system . :system :part :galaxy .
_:group :name "Group" .
GRAPH :g { :acme :rating 5 . :bolt :rating 3 }
"""
PREFIX = "PREFIX : <http://example.org/>\n"
OF_PLACES = f"{PREFIX}CONSTRUCT {{ ?c :at ?l ; :sure [] . ?l :of ?c }} WHERE {{ ?c :location ?l }} ORDER BY ?c ?l"
SORTED = {"group_by": "l", "group_order": "sorted"}


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    store.load(DATA, ox.RdfFormat.TRIG)
    return store


@pytest.fixture(scope="module")
def quads(spark: SparkSession) -> DataFrame:
    schema = "subject STRING, predicate STRING, object STRING, graph STRING"
    return spark.createDataFrame(
        [
            [None if isinstance(term, ox.DefaultGraph) else from_pyoxigraph(term) for term in quad]
            for quad in ox.parse(DATA, ox.RdfFormat.TRIG)
        ],
        schema,
    ).cache()


def test_labels_of_the_data_are_none_that_a_template_makes(spark: SparkSession) -> None:
    """As in a table of the quads of earlier messages."""
    nested = '<<( _:t0b0 <urn:p> <<( <urn:s> <urn:p> "_:t0b0" )>> )>>'
    table = spark.createDataFrame(
        [("_:t0b0", "<urn:p>", nested, None)],
        "subject STRING, predicate STRING, object STRING, graph STRING",
    )
    query = "CONSTRUCT { ?s ?p ?o . [] ?p ?s } WHERE { ?s ?p ?o }"
    asked = room.construct_messages(query, table, label_prefix="x")
    assert [row.message for row in asked.frame.collect()] == [
        f"_:x_dt0b0 <urn:p> {nested.replace(' _:', ' _:x_d')} .\n_:x_t0b0 <urn:p> _:x_dt0b0 ."
    ]
    assert [row.s for row in asked.solutions().collect()] == ["_:t0b0"]


def test_nodes_of_two_queries_in_one_folder(spark: SparkSession, tmp_path: Path) -> None:
    """Issue 13, 7: also over tables that hold the same labels, and of BNODE()."""
    table = spark.createDataFrame(
        [("_:x", "<urn:p>", "<urn:o>", None)],
        "subject STRING, predicate STRING, object STRING, graph STRING",
    )
    query = (
        "CONSTRUCT { ?s <urn:p> ?n . [] <urn:q> ?n } WHERE { ?s <urn:p> ?o BIND(BNODE() AS ?n) }"
    )
    for _ in range(2):
        room.construct_messages(query, table).write(tmp_path / "logs", mode="append")
    logs = sorted((tmp_path / "logs").glob("*/part-*"))
    first, second = (message for log in logs for message in read_log(log, "nq", keep_labels=True))
    assert len(blanks(first)) == 3
    assert not blanks(first) & blanks(second)


def test_nodes_that_bnode_makes_are_none_of_the_table(spark: SparkSession) -> None:
    """Issue 13, 7: a table may hold the labels that an earlier query made."""
    schema, query = (
        "subject STRING, predicate STRING, object STRING, graph STRING",
        "{ ?s ?p ?o BIND(BNODE() AS ?n) }",
    )

    def made(table: DataFrame) -> list[str]:
        found = room.construct_messages(
            f"CONSTRUCT {{ ?n ?p ?s }} WHERE {query}", table
        ).solutions()
        return [row.n for row in found.collect()]

    (earlier,) = made(spark.createDataFrame([("_:x", "<urn:p>", "<urn:o>", None)], schema))
    (later,) = made(spark.createDataFrame([(earlier, "<urn:p>", "<urn:o>", None)], schema))
    assert earlier != later


def test_a_task_that_runs_again_gives_the_same_labels(spark: SparkSession) -> None:
    """The prefix belongs to the query, and not to a task."""
    table = spark.createDataFrame(
        [(f"_:x{n}", "<urn:p>", "<urn:o>", None) for n in range(8)],
        "subject STRING, predicate STRING, object STRING, graph STRING",
    )
    asked = room.construct_messages(
        "CONSTRUCT { [] ?p ?s } WHERE { ?s ?p ?o }", table.repartition(4, "subject")
    )
    assert asked.frame.collect() == asked.frame.collect()


def messages_of(found: Any) -> list[Message]:
    log = "".join(
        f"# @message\n{message}\n" if message else "# @message\n"
        for (message,) in found.frame.collect()
    )
    return list(read_log(log.encode(), "nq", syntax="rdfm", keep_labels=True))


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": (OF_PLACES, {}),
    "prefixes": (
        "CONSTRUCT { ?c ex:at ?l } WHERE { ?c ex:location ?l }",
        {"prefixes": {"ex": "http://example.org/"}},
    ),
    "base": (
        "CONSTRUCT { ?c <at> ?l } WHERE { ?c <location> ?l }",
        {"base": "http://example.org/x"},
    ),
    "bindings": (
        OF_PLACES,
        {
            "bindings": {
                "l": "<http://example.org/be>",
                "?c": ox.NamedNode("http://example.org/acme"),
            }
        },
    ),
    "group_by": (OF_PLACES, {"group_by": ("?c",)}),
    "group_order": (OF_PLACES, SORTED),
    "distinct": (
        f"{PREFIX}CONSTRUCT {{ ?l :has [] }} WHERE {{ ?c :location ?l }}",
        {"distinct": True},
    ),
    "distinct groups": (
        f"{PREFIX}CONSTRUCT {{ ?l :has [] }} WHERE {{ ?c :location ?l }}",
        SORTED | {"distinct": True},
    ),
    "skip_empty": (
        f"{PREFIX}CONSTRUCT {{ ?l :of ?c }} WHERE {{ ?c :location ?l }}",
        {"skip_empty": True},
    ),
    "max_messages": (OF_PLACES, {"max_messages": 2}),
    "max_messages of groups": (OF_PLACES, SORTED | {"max_messages": 1}),
    "default_graph": (
        f"{PREFIX}CONSTRUCT {{ ?c :rated ?r }} WHERE {{ ?c :rating ?r }}",
        {"default_graph": "http://example.org/g"},
    ),
    "named_graphs": (
        f"{PREFIX}CONSTRUCT {{ ?c :rated ?r }} WHERE {{ GRAPH ?g {{ ?c :rating ?r }} }}",
        {"named_graphs": ["http://example.org/none"]},
    ),
}


@pytest.mark.parametrize(("query", "options"), OPTIONS.values(), ids=OPTIONS)
def test_options_mean_what_they_mean_elsewhere(
    quads: DataFrame, store: ox.Store, query: str, options: dict[str, Any]
) -> None:
    found, wanted = messages_of(room.construct_messages(query, quads, **arguments(options))), []
    with construct_messages(query, store, **arguments(options)) as stream:
        wanted = list(stream)
    if "ORDER BY" not in query and "group_order" not in options:
        found, wanted = in_some_order(found), in_some_order(wanted)
    assert len(found) == len(wanted)
    assert all(one.isomorphic(other) for one, other in zip(found, wanted, strict=True))


def test_paths(quads: DataFrame, store: ox.Store) -> None:
    query = f"{PREFIX}CONSTRUCT {{ ?l :within ?u }} WHERE {{ ?l :part+ ?u }}"
    with pytest.raises(UnsupportedQuery, match="neither end"):
        _ = room.construct_messages(query, quads).frame
    found = messages_of(room.construct_messages(query, quads, allow_full_closure=True))
    with construct_messages(query, store) as stream:
        assert in_some_order(found) == in_some_order(stream)
    with pytest.raises(LimitExceeded):
        _ = room.construct_messages(query, quads, allow_full_closure=True, max_path_rounds=1).frame


def in_some_order(messages: Iterable[Message]) -> list[Message]:
    return sorted(
        messages, key=lambda message: sorted(str(quad).replace("_:", "") for quad in message)[:1]
    )


def test_skolemize(quads: DataFrame) -> None:
    query = f"{PREFIX}CONSTRUCT {{ ?c :in ?g ; :as [] }} WHERE {{ ?c :part-of ?g }}"
    first, second = messages_of(
        room.construct_messages(
            query, quads, skolemize="https://example.org/.well-known/genid/", label_prefix="x"
        )
    )
    (group,) = {
        quad.object
        for message in (first, second)
        for quad in message
        if quad.predicate.endswith("/in>")
    }
    assert group.startswith("<https://example.org/.well-known/genid/x_d")
    assert all(quad.object.startswith("_:") for quad in first if quad.predicate.endswith("/as>"))


def test_solutions(quads: DataFrame) -> None:
    query = f"{PREFIX}CONSTRUCT {{ ?c :p ?n ; :q ?none }} WHERE {{ ?c :staff ?n }} ORDER BY ?n"
    found = room.construct_messages(query, quads)
    frame = found.solutions()
    assert frame.columns == ["c", "n", "none"]
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert [tuple(solution) for solution in frame.collect()] == [
        ("<http://example.org/bolt>", number.format(7), None),
        ("<http://example.org/acme>", number.format(120), None),
    ]
    assert found.frame.columns == ["message"]


def test_variables_that_differ_only_in_case(quads: DataFrame) -> None:
    """Where Spark takes them for one column, `drop` would drop both."""
    spark = new_session(quads.sparkSession, {"spark.sql.caseSensitive": "true"})
    query = f"{PREFIX}CONSTRUCT {{ ?c :p ?C }} WHERE {{ ?c :staff ?C }} ORDER BY ?C"
    found = room.construct_messages(query, spark.createDataFrame(quads.collect(), quads.schema))
    assert [row.c for row in found.solutions().drop("C").collect()] == [
        "<http://example.org/bolt>",
        "<http://example.org/acme>",
    ]
    found = room.construct_messages(query, quads)
    with pytest.raises(UsageError, match=r"\?c and \?C are one name for Spark's columns"):
        found.solutions()
    assert found.frame.count() == 2


def test_explain(quads: DataFrame) -> None:
    text = room.construct_messages(OF_PLACES, quads).explain()
    assert "<http://example.org/location>" in text
    assert "guesses (the table has no statistics)" in text
    assert "FROM stage0 WHERE graph IS NULL" in text


def test_a_table_with_other_columns(quads: DataFrame) -> None:
    frame = quads.filter("graph IS NULL").selectExpr(
        "subject AS s", "predicate AS `p.q`", "object AS o"
    )
    columns = {"subject": "s", "predicate": "p.q", "object": "o"}
    found = room.construct_messages(OF_PLACES, QuadTable.of(frame, columns, assume_distinct=True))
    assert len(messages_of(found)) == 4
    with pytest.raises(QuadsError, match="no column 'subject'"):
        room.construct_messages(OF_PLACES, frame)


# --- what is refused --------------------------------------------------------------------------------------------------

REFUSED = {
    "SERVICE": ("{ SERVICE <http://example.org/sparql> { ?s ?p ?o } }", "SERVICE"),
    "a triple term": ("{ ?s ?p <<( ?a ?b ?o )>> }", "<<("),
    "an unknown function": ("{ ?s ?p ?o BIND(<urn:f>(?o) AS ?x) }", "<urn:f>"),
    "one in EXISTS": (
        "{ ?s <urn:p>+ ?o FILTER NOT EXISTS { ?o <urn:q> ?x FILTER(<urn:f>(?o)) } }",
        "<urn:f>",
    ),
    "one in an aggregate": (
        "{ SELECT ?s (SUM(<urn:f>(?o)) AS ?o) { ?s <urn:p>* <urn:o> } GROUP BY ?s }",
        "<urn:f>",
    ),
    "one in OPTIONAL": (
        "{ ?s <urn:p>+ <urn:o> OPTIONAL { ?s ?p ?o FILTER(<urn:f>(?o)) } }",
        "<urn:f>",
    ),
    "one in ORDER BY": ("{ ?s <urn:p>+ <urn:o> } ORDER BY <urn:f>(?o)", "<urn:f>"),
}


@pytest.mark.parametrize(("where", "fragment"), REFUSED.values(), ids=REFUSED)
def test_refused_before_any_job(
    spark: SparkSession, quads: DataFrame, where: str, fragment: str
) -> None:
    context = spark.sparkContext
    context.setJobGroup(f"refused {where}", "")
    with pytest.raises(UnsupportedQuery) as caught:
        room.construct_messages(f"CONSTRUCT {{ ?s <urn:r> ?o }} WHERE {where}", quads)
    assert fragment in caught.value.fragment
    assert not context.statusTracker().getJobIdsForGroup(f"refused {where}")


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ("CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s ?p }", Position(1, 43)),
        (
            "CONSTRUCT { ?s <urn:p> ?o\n }\nWHERE {\n  ?s ?p ?o FILTER(<urn:f>(?o)) }",
            Position(4, 19),
        ),
        (
            "\ufeffCONSTRUCT { ?s <urn:p> ?o }\r\nWHERE { SERVICE <urn:s> { ?s ?p ?o } }",
            Position(2, 9),
        ),
    ],
)
def test_errors_name_the_place_in_the_query(
    quads: DataFrame, query: str, position: Position
) -> None:
    with pytest.raises(QueryError) as caught:
        room.construct_messages(query, quads)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"group_order": "random"}, "order='random' must be"),
        ({"max_messages": -1}, "max_messages=-1 must be"),
        ({"default_graph": "union"}, "not evaluated on Spark"),
        ({"bindings": {"nothing": "1"}}, r"no variable \?nothing to bind"),
        ({"group_by": "nothing"}, r"no variable \?nothing to group by"),
    ],
)
def test_options_that_make_no_sense(quads: DataFrame, options: dict[str, Any], words: str) -> None:
    with pytest.raises((UsageError, QueryError), match=words):
        room.construct_messages(OF_PLACES, quads, **arguments(options))


# --- logs -------------------------------------------------------------------------------------------------------------

PLAIN = f"{PREFIX}CONSTRUCT {{ ?c :at ?l . GRAPH ?c {{ ?l :of ?c }} }} WHERE {{ ?c :location ?l }} ORDER BY DESC(?c) ?l"


@pytest.mark.parametrize("name", ["log.nq", "log.trig.gz"])
def test_one_log_is_that_of_the_embedded_engine(
    quads: DataFrame, store: ox.Store, tmp_path: Path, name: str
) -> None:
    assert room.construct_messages(PLAIN, quads).write_file(tmp_path / name) == (4, 7)
    with construct_messages(PLAIN, store) as stream:
        stream.write(tmp_path / f"embedded-{name}")
    assert list(map(text_of, read_log(tmp_path / name))) == list(
        map(text_of, read_log(tmp_path / f"embedded-{name}"))
    )


def text_of(message: Message) -> list[str]:
    return list(map(str, message))


@pytest.mark.parametrize("output", ["in", "in/deep", ".", "link", "in/../link"])
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_what_is_read_is_not_written(
    spark: SparkSession, tmp_path: Path, mode: str, output: str
) -> None:
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("in")
    for name in ("in/a b.nt", "in/deep/c#d.nt"):
        (tmp_path / name).write_text("<urn:a> <urn:p> <urn:b> .\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found = room.construct_messages(
        "CONSTRUCT { ?o <urn:q> ?s } WHERE { ?s <urn:p> ?o }", load_quads(spark, tmp_path / "in")
    )
    with pytest.raises(UsageError, match="is what is read"):
        found.write(tmp_path / output, mode=mode)
    with pytest.raises(UsageError, match="is what is read"):
        found.write_file(tmp_path / "link" / "a b.nt", "nq")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_folder_of_logs(quads: DataFrame, tmp_path: Path) -> None:
    found = room.construct_messages(PLAIN, quads)
    assert found.write(tmp_path / "logs", syntax="1.2-messages") == (4, 7)
    parts = sorted((tmp_path / "logs").glob("*/part-*"))
    written = [text_of(message) for part in parts for message in read_log(part, "nq")]
    assert written == [message.split("\n") for (message,) in found.frame.collect()]


# --- imports ----------------------------------------------------------------------------------------------------------


def test_pyspark_is_imported_when_it_is_needed() -> None:
    program = (
        "import sys, construct_messages.spark as spark; spark.Hints; assert 'pyspark' not in sys.modules; "
        "spark.construct_messages; assert 'pyspark' in sys.modules; assert set(spark.__all__) == set(spark._ROOMS)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_names() -> None:
    import construct_messages.spark

    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        construct_messages.spark.nothing  # noqa: B018 - asking for it is what is tested


LARGE = "9" * 38
LONG = {
    "a sum": (f"BIND({LARGE} + 1 AS ?x)", typed(f"1{'0' * 38}", "integer")),
    "an integer of the data": (
        f'BIND("{LARGE}9"^^<{XSD}integer> + 1 AS ?x)',
        typed(f"1{'0' * 39}", "integer"),
    ),
    "a product of decimals": (
        "BIND(9999999999.5 * 9999999999.5 AS ?x)",
        typed("99999999990000000000.25", "decimal"),
    ),
    "a year": (
        f'BIND(("{LARGE}-01-01"^^<{XSD}date> < "2020-01-01"^^<{XSD}date>) AS ?x)',
        typed("false", "boolean"),
    ),
    "an aggregate": (
        f"{{ SELECT (SUM(?n) AS ?x) {{ VALUES ?n {{ {LARGE} {LARGE} }} }} }}",
        typed(f"1{'9' * 37}8", "integer"),
    ),
}


@pytest.mark.parametrize(("where", "value"), LONG.values(), ids=LONG)
def test_values_have_any_length(quick: SparkSession, where: str, value: Term) -> None:
    quads = quick.createDataFrame(
        [("<urn:s>", "<urn:p>", '"o"')], "subject string, predicate string, object string"
    )
    query = f"CONSTRUCT {{ ?s <urn:x> ?x }} WHERE {{ ?s <urn:p> ?o {where} }}"
    assert room.construct_messages(query, quads).frame.collect() == [
        (f"<urn:s> <urn:x> {value} .",)
    ]
