"""Files of columns: what other programs read of them, what is read of other programs' files, and what is refused."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest

from construct_messages import GrowingLog, construct_messages, read_log, write_log
from construct_messages.errors import ColumnError, LimitExceeded, LogError, SourceError, UsageError
from construct_messages.logs.columns import types
from construct_messages.options import ColumnOptions
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import XSD, Term, number

QUERY = """PREFIX : <http://example.org/>
CONSTRUCT { ?s :name ?name ; :age ?age ; :since ?since }
WHERE { ?s :name ?name ; :since ?since OPTIONAL { ?s :age ?age } }
ORDER BY ?s"""
DATA = """@prefix : <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:a :name "Ann, \\"A\\""@en ; :age 41 ; :since "2024-05-01T00:00:00Z"^^xsd:dateTime .
:b :name "Bo"@da ; :since "2024-05-02T00:00:00Z"^^xsd:dateTime ."""


@pytest.fixture(scope="module")
def store() -> ox.Store:
    store = ox.Store()
    store.load(DATA.encode(), format=ox.RdfFormat.TURTLE)
    return store


def test_duckdb_reads_solutions(store: ox.Store, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "people.parquet"
    assert construct_messages(QUERY, store).write(file) == 2
    rows = duckdb.sql(
        f"SELECT name, age + 1, CAST(since AS DATE)::VARCHAR FROM '{file}' ORDER BY s"
    )
    assert rows.fetchall() == [('Ann, "A"', 42, "2024-05-01"), ("Bo", None, "2024-05-02")]
    reader = construct_messages(QUERY, store).to_arrow()  # noqa: F841 - DuckDB finds it by its name
    assert duckdb.sql("SELECT sum(age) FROM reader").fetchall() == [(41,)]


def test_duckdb_reads_quads_and_what_it_writes_is_read(store: ox.Store, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file, other = tmp_path / "quads.parquet", tmp_path / "other.parquet"
    construct_messages(QUERY, store).write(file, options=ColumnOptions("quads"))
    counts = duckdb.sql(f"SELECT message, count(*) FROM '{file}' GROUP BY message ORDER BY message")
    assert counts.fetchall() == [(1, 3), (2, 2)]
    duckdb.sql(
        f"COPY (SELECT * FROM '{file}' WHERE predicate LIKE '%name' ORDER BY message) TO '{other}' (FORMAT parquet)"
    )
    names = [message.value() for message in read_log(other)]
    assert names == ['Ann, "A"', "Bo"]
    construct_messages(QUERY, store).write(file, options=ColumnOptions("nested"))
    sizes = duckdb.sql(f"SELECT len(quads), quads[1].language FROM '{file}'").fetchall()
    assert sizes == [(3, "en"), (2, "da")]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_polars_reads_solutions(store: ox.Store, tmp_path: Path, format: str) -> None:
    polars = pytest.importorskip("polars")
    file = tmp_path / f"people.{format}"
    construct_messages(QUERY, store).write(file)
    read = {"parquet": polars.read_parquet, "arrow": polars.read_ipc}[format](file)
    frame = construct_messages(QUERY, store).to_polars()
    assert read.equals(frame)
    assert frame.schema == {
        "s": polars.String,
        "name": polars.String,
        "age": polars.Int64,
        "since": polars.Datetime("us", "UTC"),
    }


def test_pandas(store: ox.Store) -> None:
    pandas = pytest.importorskip("pandas")
    frame = construct_messages(QUERY, store).to_pandas()
    assert list(map(str, frame.dtypes)) == ["string", "string", "Int64", "datetime64[us, UTC]"]
    assert frame["age"].sum() == 41
    assert frame["age"].isna().tolist() == [False, True]
    assert frame["since"][0] == pandas.Timestamp("2024-05-01", tz="UTC")
    by_arrow = construct_messages(QUERY, store).to_pandas(dtype_backend="pyarrow")
    assert str(by_arrow.dtypes["age"]) == "int64[pyarrow]"
    assert (
        str(construct_messages(QUERY, store).to_pandas(dtype_backend="numpy")["age"].dtype)
        == "float64"
    )
    with pytest.raises(UsageError, match="dtype_backend"):
        construct_messages(QUERY, store).to_pandas(dtype_backend="polars")


MIXED = """CONSTRUCT { ?s <urn:of> ?o } WHERE { VALUES (?s ?o) {
    (<urn:a> 1) (<urn:b> 2.5) (<urn:c> %s) (<urn:d> UNDEF) } }"""


@pytest.mark.parametrize(
    ("last", "values"),
    [
        ('"unknown"', ["1", "2.5", "unknown", None]),
        ('"3"@en', ["1", "2.5", "3", None]),
        ("<urn:x>", ["1", "2.5", "urn:x", None]),
        (f'"0001-01-01"^^<{XSD}date>', ["1", "2.5", "0001-01-01", None]),
        (f'"x"^^<{XSD}integer>', ["1", "2.5", "x", None]),
    ],
)
def test_frames_of_mixed_values_have_strings(
    store: ox.Store, last: str, values: list[str | None], caplog: pytest.LogCaptureFixture
) -> None:
    pandas = pytest.importorskip("pandas")
    query = MIXED % last
    frame = construct_messages(query, store).to_pandas(batch_rows=2)
    assert frame["o"].dtype == "string"
    assert [None if value is pandas.NA else value for value in frame["o"]] == values
    assert "solution 3: ?o is" in caplog.text
    assert "therefore ?o is a column of strings" in caplog.text
    assert construct_messages(query, store).to_polars(batch_rows=1)["o"].to_list() == values
    for options in ({"invalid": "error"}, {"types": {"o": "int64"}}):
        with pytest.raises(ColumnError):
            construct_messages(query, store).to_pandas(**options)
    nulls = construct_messages(query, store).to_pandas(invalid="null")
    assert nulls["o"].isna().tolist() == [False, False, True, True]


def test_decimals_are_doubles_on_request(store: ox.Store) -> None:
    pytest.importorskip("pandas")
    query = MIXED % "UNDEF"
    with pytest.raises(TypeError):
        construct_messages(query, store).to_pandas()["o"] * 1.1
    frame = construct_messages(query, store).to_pandas(decimals="double")
    assert (frame["o"] * 1.1).sum() == pytest.approx(3.85)
    large = MIXED % f"{1 << 70}"
    assert construct_messages(large, store).to_pandas(decimals="double")["o"].max() == 2.0**70


def test_doubles_that_are_no_number_stay(store: ox.Store) -> None:
    pytest.importorskip("pandas")
    frame = construct_messages(MIXED % f'"NaN"^^<{XSD}double>', store).to_pandas()
    assert frame["o"].isna().tolist() == [False, False, False, True]
    assert str(frame["o"][2]) == "nan"


def test_dates_that_python_does_not_have(store: ox.Store, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("pandas")
    query = f"""CONSTRUCT {{ ?s <urn:on> ?day }} WHERE {{ VALUES (?s ?day) {{
        (<urn:s> "-0044-03-15"^^<{XSD}date>) (<urn:t> "2024-05-01"^^<{XSD}date>) }} }}"""
    frame = construct_messages(query, store).to_pandas()
    assert frame["day"].tolist() == ["-0044-03-15", "2024-05-01"]
    assert "before the year 1" in caplog.text
    days = construct_messages(query, store).to_pandas(dtype_backend="pyarrow")["day"]
    assert str(days.dtype) == "date32[day][pyarrow]"


def test_csv_is_that_of_sparql_results(store: ox.Store, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    construct_messages(QUERY, store).write(file)
    assert file.read_bytes().split(b"\r\n")[1] == (
        b'http://example.org/a,"Ann, ""A""",41,2024-05-01T00:00:00Z'
    )
    with file.open(newline="", encoding="utf-8") as text:
        assert [row["age"] for row in csv.DictReader(text)] == ["41", ""]
    pandas = pytest.importorskip("pandas")
    assert pandas.read_csv(file)["age"].tolist()[0] == 41
    quads = io.BytesIO()
    construct_messages(QUERY, store).write(quads, "csv", options=ColumnOptions("quads"))
    assert quads.getvalue().count(b"\r\n") == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ColumnOptions("nested"), "CSV has no lists"),
        (ColumnOptions(types={"age": "int64"}), "CSV has no types"),
    ],
)
def test_what_csv_does_not_have(store: ox.Store, options: ColumnOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(construct_messages(QUERY, store).serialize("csv", options=options))


@pytest.mark.parametrize("layout", ["solutions", "quads", "nested"])
@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_no_solutions(layout: str, format: str) -> None:
    file = io.BytesIO()
    assert (
        construct_messages(QUERY, ox.Store()).write(file, format, options=ColumnOptions(layout))
        == 0
    )
    if layout == "solutions":
        with pytest.raises(LogError, match="no messages: the columns are s, name, age, since"):
            list(read_log(file.getvalue()))
    else:
        assert list(read_log(file.getvalue())) == []


@pytest.mark.parametrize(
    "given", [{"group_by": "s"}, {"distinct": True}, {"skip_empty": True}], ids=str
)
def test_grouped_solutions_are_no_rows(store: ox.Store, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a row for each solution") as caught:
        construct_messages(QUERY, store, **given).to_arrow()
    assert "quads" in str(caught.value.hint)
    with pytest.raises(UsageError, match="a row for each solution"):
        construct_messages(QUERY, store, **given).write(io.BytesIO(), "parquet")
    rows = construct_messages(QUERY, store, **given).to_arrow(layout="nested").read_all()
    assert [len(quads) for quads in rows.column("quads").to_pylist()] == [3, 2]


def test_messages_of_a_log_are_no_solutions() -> None:
    with pytest.raises(UsageError, match="these are messages"):
        read_log(b"").to_arrow(layout="solutions")
    with pytest.raises(UsageError, match="these are messages"):
        write_log([Message()], io.BytesIO(), "parquet", options=ColumnOptions("solutions"))


def test_max_messages(store: ox.Store) -> None:
    messages = construct_messages(QUERY, store, max_messages=1)
    assert messages.to_arrow().read_all().num_rows == 1
    assert messages.message_count == 1
    with pytest.raises(UsageError, match="read once"):
        messages.to_arrow()


class Failing:
    """A source that fails after some batches."""

    predefined: ClassVar[dict[str, str]] = {}
    stable_blank_nodes = True

    def __init__(self, error: Exception | None, *columns: list[Term]) -> None:
        self._error, self._columns, self.closed = error, columns, False

    def solutions(self, request: Any) -> Iterator[Solutions]:
        assert len(request.select.variables) == 1
        try:
            for column in self._columns:
                yield Solutions([column])
            if self._error is not None:
                raise self._error
        finally:
            self.closed = True

    asolutions = solutions

    def close(self) -> None:
        pass


ONE = "CONSTRUCT { ?s a <urn:C> } WHERE { ?s a <urn:D> }"


def test_an_incomplete_result_is_no_file(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    source = Failing(SourceError("gone"), [number("1")] * 5, [number("2")] * 5)
    with pytest.raises(SourceError, match="gone"):
        construct_messages(ONE, source).write(file, options=ColumnOptions(batch_rows=2))
    assert list(tmp_path.iterdir()) == []
    source = Failing(SourceError("gone"), [number("1")] * 5)
    reader = construct_messages(ONE, source).to_arrow(batch_rows=2)
    with pytest.raises(SourceError, match="gone"):
        reader.read_all()
    assert source.closed


def test_a_value_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(b"before")
    source = Failing(None, [number("1")] * 5, [Term("<urn:x>")])
    with pytest.raises(ColumnError, match=re.escape("solution 6: ?s is <urn:x>")):
        construct_messages(ONE, source).write(file, options=ColumnOptions(batch_rows=2))
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]
    assert file.read_bytes() == b"before"


async def test_asynchronously(store: ox.Store) -> None:
    chunks = [chunk async for chunk in construct_messages(QUERY, store).aserialize("parquet")]
    assert pq.read_table(io.BytesIO(b"".join(chunks))).num_rows == 2


def test_a_log_that_grows_is_no_file_of_columns(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be complete"):
        GrowingLog(tmp_path / "x.parquet")


# --- files of other programs ---


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


RAW = {"message": [1], "subject": ["<urn:s>"], "predicate": ["<urn:p>"], "object": ["5"], "graph": [None]}  # fmt: skip


def test_terms_of_other_programs_are_normalised() -> None:
    (message,) = read_log(parquet(**RAW | {"graph": pa.array([None], pa.string()), "extra": [1]}))
    assert str(message.value()) == "5"


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"message": [2, 1], **{name: RAW[name] * 2 for name in list(RAW)[1:]}}, "1 comes after 2"),
        ({"subject": ["urn s"]}, "is not an RDF term"),
        ({"subject": ['"s"']}, "cannot be the subject"),
        ({"graph": ['"g"']}, "cannot be the name of a graph"),
        ({"object": pa.array([None], pa.string())}, "the object of a quad is null"),
        ({"object": [5]}, "is no text"),
        ({"message": pa.array([None], pa.int64())}, "message is null"),
        ({"message": [-1]}, "message is -1"),
        ({"message": [1.0]}, "message is double, not an integer"),
        ({"message": ["1"]}, "message is string, not an integer"),
        (
            {"datatype": ["urn:x"], "language": ["en"], "subject": ["urn:s"], "predicate": ["urn:p"]},
            "has the language en",
        ),
    ],
)  # fmt: skip
def test_files_that_are_no_logs(columns: dict[str, Any], error: str) -> None:
    given = {"graph": pa.array([None], pa.string())} | columns
    given = {**RAW, **given}
    if len(given["message"]) == 2:
        given["graph"] = pa.array([None, None], pa.string())
    with pytest.raises(LogError, match=error):
        list(read_log(parquet(**given)))


QUAD = {"subject": "<urn:s>", "predicate": "<urn:p>", "object": "5", "graph": None}
NESTED = pa.list_(pa.struct([(name, pa.string()) for name in QUAD]))


@pytest.mark.parametrize(
    ("numbers", "quads", "error"),
    [
        ([1, 3, 2], [[QUAD]] * 3, "2 comes after 3"),
        ([1, 1], [[QUAD]] * 2, "1 comes after 1"),
        ([1], [[QUAD, None]], "a quad is null"),
    ],
)
def test_nested_files_that_are_no_logs(
    numbers: list[int], quads: list[list[Any]], error: str
) -> None:
    with pytest.raises(LogError, match=error):
        list(read_log(parquet(message=numbers, quads=pa.array(quads, NESTED))))


def test_polars_writes_messages(store: ox.Store, tmp_path: Path) -> None:
    """As lists with longer offsets than those of this package."""
    polars = pytest.importorskip("polars")
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    construct_messages(QUERY, store).write(ours, options=ColumnOptions("nested"))
    polars.read_parquet(ours).filter(polars.col("message") > 1).write_parquet(theirs)
    assert list(read_log(theirs)) == list(read_log(ours))[1:]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_files_that_are_damaged(store: ox.Store, format: str) -> None:
    whole = b"".join(
        construct_messages(QUERY, store).serialize(format, options=ColumnOptions("quads"))
    )
    for size in (0, 8, len(whole) // 2, len(whole) - 1):
        with pytest.raises(LogError, match=r"no (Parquet|Arrow) file"):
            list(read_log(whole[:size], format))


def test_large_messages() -> None:
    file = io.BytesIO()
    quads = b"".join(b"<urn:s> <urn:p%d> <urn:o> .\n" % place for place in range(9))
    write_log(read_log(quads, "nq"), file, "parquet")
    with pytest.raises(LimitExceeded, match="message 1"):
        list(read_log(file.getvalue(), message_bytes=100))


def test_streams_of_arrow_are_read() -> None:
    sink = io.BytesIO()
    table = pa.table({**RAW, "graph": pa.array([None], pa.string())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert len(list(read_log(sink.getvalue()))) == 1


def test_without_pyarrow(store: ox.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(types, "import_module", missing)
    types.arrow.cache_clear()
    with pytest.raises(UsageError, match="pyarrow, which is not installed") as caught:
        construct_messages(QUERY, store).write(io.BytesIO(), "parquet")
    assert caught.value.hint == "pip install 'construct-messages[arrow]'"
    with pytest.raises(UsageError, match="polars, which is not installed"):
        construct_messages(QUERY, store).to_polars()
