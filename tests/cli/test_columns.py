"""Files of columns on the command line: layouts, types, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from construct_messages import read_log
from tests.support.commands import Done

pytestmark = pytest.mark.process

EX = "http://example.org/"
QUERY = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :is ?n ; :name ?l }} WHERE {{ ?s :is ?n ; :name ?l }} ORDER BY ?s"
DATA = f'PREFIX : <{EX}> :a :is 1 ; :name "A"@en . :b :is 2 ; :name "B"@de .'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.ttl").write_text(DATA)
    (tmp_path / "mixed.ttl").write_text(f'{DATA} :c :is "three" ; :name "C" .')
    return tmp_path


def run_query(call: Callable[..., Done], *arguments: str, source: str = "data.ttl") -> Done:
    return call("run", "--query", QUERY, "--source", source, *arguments)


def test_types_and_languages(here: Callable[..., Done], folder: Path) -> None:
    arguments = (
        "--output",
        "x.parquet",
        "--column-type",
        "?n=decimal(5,1)",
        "--language-column",
        "l",
    )
    assert run_query(here, *arguments).status == 0
    table = pq.read_table(folder / "x.parquet")
    assert [str(kind) for kind in table.schema.types] == [
        "string", "decimal128(5, 1)", "string", "string"
    ]  # fmt: skip
    assert table.column("l_language").to_pylist() == ["en", "de"]
    assert table.schema.metadata[b"construct_messages.query"].decode() == QUERY
    assert table.schema.metadata[b"construct_messages.source"] == b"data.ttl"


def test_a_log_there_and_back(here: Callable[..., Done], folder: Path) -> None:
    assert run_query(here, "--output", "x.nq").status == 0
    for there, layout in (("y.parquet", "quads"), ("y.arrow", "nested")):
        assert here("convert", "x.nq", there, "--layout", layout).status == 0
        assert here("convert", there, "z.nq").status == 0
        assert list(read_log(folder / "z.nq")) == list(read_log(folder / "x.nq"))
    assert ipc.open_file(folder / "y.arrow").schema.names == ["message", "quads"]


def test_values_that_do_not_fit(here: Callable[..., Done], folder: Path) -> None:
    done = run_query(here, "--output", "x.parquet", source="mixed.ttl")
    assert done.status == 2
    assert 'solution 3: ?n is "three", a string' in done.errors
    assert not list(folder.glob("*x.parquet*"))
    given = ("--output", "x.parquet", "--invalid-values", "null")
    assert run_query(here, *given, source="mixed.ttl").status == 0
    assert pq.read_table(folder / "x.parquet").column("n").to_pylist() == [1, 2, None]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--output", "x.nq", "--layout", "quads"],
            "options of Parquet have no meaning for N-Quads",
        ),
        (["--output", "x.parquet", "--column-type", "n"], "is not NAME=TYPE"),
        (["--output", "x.parquet", "--column-type", "n=int"], "is no type of a column"),
        (["--output", "x.parquet", "--group-by", "?l"], "a row for each solution"),
        (["--output", "x.csv", "--layout", "nested"], "CSV has no lists"),
    ],
)
def test_refused(here: Callable[..., Done], folder: Path, arguments: list[str], error: str) -> None:
    done = run_query(here, *arguments)
    assert done.status == 2
    assert error in done.errors
    assert not list(folder.glob("*x.*"))
