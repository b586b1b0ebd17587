"""DataFrames of callers as tables of quads: each cell must be a term, or the job ends with its row and column."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import QuadsError

pytest.importorskip("pyspark")
from construct_messages.spark import construct_messages, load_quads, translated
from construct_messages.spark.quads.table import QuadTable
from tests.support.spark.sessions import optimized

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

SCHEMA = "subject string, predicate string, object string, graph string"
GOOD = ("<urn:a>", "<urn:p>", '"b"', None)
ASKED = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }"


def error_of(spark: SparkSession, cells: tuple[str | None, ...]) -> QuadsError | None:
    """The error of a table with a row of these cells among others."""
    table = QuadTable.of(spark.createDataFrame([GOOD, cells, GOOD], SCHEMA).coalesce(1))
    try:
        with translated():
            table.frame.collect()
    except QuadsError as error:
        return error
    return None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize(
    "cell",
    [
        "urn:a",
        "Berlin",
        None,
        "",
        "<a>",
        "<http://example.org/New York>",
        '"Berlin',
        '"say "hi""',
        '"two\nlines"',
        '"a" ',
        '"a"@',
        '"a"^^xsd:int',
        r'"C:\dir"',
        "_:a b",
        "<urn:a> <urn:b>",
        "<urn:a",
        "<urn:a><urn:b>",
        *(f"<urn:{char}a>" for char in "{}|^`\\\t"),
        '"1"^^<urn:{}>',
        "_:b\t",
        "1",
        '"b"',
        '"b"@en',
        '"1"^^<http://www.w3.org/2001/XMLSchema#int>',
        "_:b",
        "<urn:a>",
    ],
)
def test_a_cell_is_a_term_or_the_job_ends(
    quick: SparkSession, place: int, cell: str | None
) -> None:
    """The parser of another program judges: it reads the cell as the one term that is written so."""
    cells = [*GOOD]
    cells[place] = cell
    line = " ".join(each for each in cells if each is not None) + " ."
    try:
        (quad,) = ox.parse(line.encode(), ox.RdfFormat.N_QUADS)
        is_term = str(quad[place]) == ("DEFAULT" if cell is None else cell)
    except (SyntaxError, ValueError):
        is_term = False
    error = error_of(quick, tuple(cells))
    assert (error is None) is is_term
    if error is not None:
        column = SCHEMA.split(", ")[place].split()[0]
        shown, *row = (
            "NULL" if each is None else each.replace("\n", r"\n").replace("\t", r"\t")
            for each in (cell, *cells)
        )
        assert error.message == (
            f"column '{column}' holds {shown}, which is not a term for a {column}, in the row ({', '.join(row)})"
        )
        assert error.hint is not None
        assert "in N-Triples syntax" in error.hint


def test_a_column_has_its_own_name_in_the_error(quick: SparkSession) -> None:
    frame = quick.createDataFrame([("<urn:a>", "<urn:p>", "Berlin")], ["s", "p", "the town"])
    table = QuadTable.of(frame, {"subject": "s", "predicate": "p", "object": "the town"})
    with pytest.raises(QuadsError, match="column 'the town' holds Berlin"), translated():
        construct_messages(ASKED, table).frame.collect()


def test_rows_that_files_could_skip_are_checked(quick: SparkSession, tmp_path: Path) -> None:
    """By its statistics, the file has no row of the pattern, and the log would be empty."""
    path = str(tmp_path / "quads")
    quick.createDataFrame([("urn:a", "urn:p", "urn:b", None)], SCHEMA).write.parquet(path)
    frame = quick.read.parquet(path)
    with pytest.raises(QuadsError, match="column 'subject' holds urn:a"), translated():
        construct_messages(ASKED, frame).frame.collect()
    assumed = QuadTable.of(frame, assume_terms=True)
    assert construct_messages(ASKED, assumed).frame.collect() == []


def test_loaded_quads_are_not_checked_again(quick: SparkSession, tmp_path: Path) -> None:
    dump = tmp_path / "dump.nt"
    dump.write_text("<urn:a> <urn:p> <urn:b> .\n")
    loaded = load_quads(quick, dump)

    def is_checked(table: DataFrame | QuadTable) -> bool:
        return "which is not a term" in optimized(construct_messages(ASKED, table).frame)

    assert not is_checked(loaded)
    assert not is_checked(QuadTable.of(loaded))
    assert is_checked(loaded.filter("subject <> 'Berlin'"))
    assert is_checked(QuadTable.of(loaded, {"subject": "object", "object": "subject"}))


IRIS = st.text("abcäß/?&=~é日-", max_size=8).map(lambda text: ox.NamedNode(f"http://e.org/{text}"))
BLANKS = st.integers(0, 9).map(lambda number: ox.BlankNode(f"b{number}"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LITERALS = st.one_of(
    TEXTS.map(ox.Literal),
    TEXTS.map(lambda text: ox.Literal(text, language="de-AT")),
    TEXTS.map(lambda text: ox.Literal(text, datatype=ox.NamedNode("urn:t"))),
)
TRIPLES = st.builds(ox.Triple, IRIS, IRIS, IRIS | LITERALS).map(lambda triple: f"<<( {triple} )>>")


@settings(max_examples=3)
@given(
    st.lists(
        st.tuples(
            IRIS | BLANKS,
            IRIS,
            IRIS | BLANKS | LITERALS | TRIPLES,
            IRIS | BLANKS | st.none(),
        ),
        min_size=50,
    )
)
def test_terms_of_another_program_are_passed(
    quick: SparkSession, quads: list[tuple[object, ...]]
) -> None:
    rows = [tuple(None if cell is None else str(cell) for cell in quad) for quad in quads]
    table = QuadTable.of(quick.createDataFrame(rows, SCHEMA))
    with translated():
        assert [tuple(row) for row in table.frame.collect()] == rows
