"""Messages as rows: by column and one by one, and back, for any messages and templates."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import read_log, write_log
from construct_messages.logs.columns.quads import MessageRows
from construct_messages.options import ColumnOptions
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term
from tests.support.strategies import SOLUTIONS, messages, templates

LAYOUTS = pytest.mark.parametrize("layout", ["quads", "nested"])
TERMS = pytest.mark.parametrize("raw", [False, True], ids=["values", "n-triples"])


@LAYOUTS
@TERMS
@given(template=templates(), solutions=SOLUTIONS, cut=st.integers(0, 6))
def test_by_column_equals_message_by_message(
    layout: str, raw: bool, template: Template, solutions: list[tuple[Term, ...]], cut: int
) -> None:
    template = template.labelled(Labels("x"))
    options = ColumnOptions(layout, raw, batch_rows=3)
    by_column, one_by_one = MessageRows(options, {}), MessageRows(options, {})
    found, expected = [], []
    for part, first in ((solutions[:cut], 0), (solutions[cut:], cut)):
        if part:
            found += by_column.add_solutions(template, Solutions.of(part), first)
    for number, solution in enumerate(solutions):
        expected += one_by_one.add(Message(template.instantiate(solution, number)))
    assert rows([*found, *by_column.finish()]) == rows([*expected, *one_by_one.finish()])


def rows(batches: list[Any]) -> Any:
    return pa.Table.from_batches(batches).to_pylist()


@LAYOUTS
@TERMS
@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.one_in(2)
@given(log=messages(), batch_rows=st.integers(1, 4))
def test_a_log_is_the_same_when_it_is_read_back(
    layout: str, raw: bool, format: str, log: list[Message], batch_rows: int
) -> None:
    file = io.BytesIO()
    write_log(log, file, format, options=ColumnOptions(layout, raw, batch_rows=batch_rows))
    read = read_log(file.getvalue(), keep_labels=True)
    assert list(read) == log  # the same terms, in the same messages, by the same labels
    assert read.options == ColumnOptions(layout, raw)
    assert read.format is not None
    assert read.format.extension == format
    apart = list(read_log(file.getvalue(), shared_labels=False))
    assert len(apart) == len(log)
    assert all(message.isomorphic(other) for message, other in zip(apart, log, strict=True))


def test_nodes_of_two_messages_stay_apart() -> None:
    log = b'VERSION "1.2-messages"\n_:b <urn:p> "o" .\nMESSAGE\n_:b <urn:p> "o" .\nMESSAGE\n'
    subjects = read_log(log).to_arrow().read_all().column("subject").to_pylist()
    assert len(set(subjects)) == 2
    file = io.BytesIO()
    write_log(read_log(log), file, "parquet")
    first, second = read_log(file.getvalue())
    assert first.isomorphic(second)
    assert first != second
