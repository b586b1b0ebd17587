"""Evaluation over a table of quads, in an evaluating process: its results are written into pipes, as those of a store.

DuckDB evaluates, and pyoxigraph serializes; see `child.py`. An evaluation is interrupted when the reader of its pipe
has gone, so that the process is soon idle again.
"""

from __future__ import annotations

import io
import os
import select as polling
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import duckdb
import pyarrow as pa
import pyoxigraph as ox

from construct_messages.errors import QueryError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.select import OriginalQuery
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Quad
from construct_messages.rdf.solutions import terms_of
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms.libraries import pyoxigraph_quad
from construct_messages.sparql.sources.duckdb import DuckDbSource, PlanEvaluation

_T = TypeVar("_T")

_READ_BYTES: Final = 1 << 16
_MEMORY_SHARE: Final = 0.6  # of DuckDB in the memory of the process
_LOOK_SECONDS: Final = 0.05  # between looks whether the reader has gone


def open_for(folder: str, memory: int, spill: str) -> DuckDbSource:
    """Opens a table for a process that may allocate `memory` bytes; 0: any number."""
    limit = f"{int(memory * _MEMORY_SHARE)}B" if memory else None
    return DuckDbSource(folder, memory_limit=limit, spill=Path(spill, str(os.getpid())))


def is_short_of_memory(error: BaseException) -> bool:
    """Returns whether an evaluation failed because DuckDB or Python got no memory, or no thread."""
    causes = duckdb.OutOfMemoryException | MemoryError | RuntimeError
    return isinstance(error, causes) or isinstance(error.__cause__, causes)


def write_solutions(
    source: DuckDbSource,
    text: str,
    written: OriginalQuery | None,
    dataset: tuple[Sequence[str], Sequence[str]],
    pipe: int,
) -> None:
    """Evaluates a SELECT into a TSV document, and closes the pipe."""
    with open(pipe, "wb") as file:
        evaluation = source.evaluation(_tree(text, written), *dataset)
        with _watched(evaluation, pipe):
            for part in _document(source, evaluation):
                file.write(part)
                file.flush()


class TriplesResult:
    """The triples of a CONSTRUCT, which are serialized as pyoxigraph serializes those of its own queries."""

    def __init__(self, triples: Iterator[ox.Triple]) -> None:
        self._triples = triples

    def serialize(self, output: str, format: ox.RdfFormat) -> None:
        """See `pyoxigraph.QueryTriples.serialize`."""
        ox.serialize(self._triples, output, format)


TableResult: TypeAlias = ox.QuerySolutions | ox.QueryBoolean | TriplesResult


@contextmanager
def answered(
    source: DuckDbSource, text: str, dataset: tuple[Sequence[str], Sequence[str]], pipe: int
) -> Iterator[TableResult]:
    """Evaluates a query of any form, whose result is to be serialized in the block."""
    tree = parse(text)
    describes = isinstance(tree.form, syntax.DescribeForm)
    construct = ConstructQuery.parse(text) if isinstance(tree.form, syntax.ConstructForm) else None
    if construct is not None and any(pattern.graph for pattern in construct.template.patterns):
        raise QueryError("a graph has no GRAPH", hint="ask for messages, or leave GRAPH out")
    asked = construct.rewritten.tree if construct else _resources(tree) if describes else tree
    evaluation = source.evaluation(asked, *dataset)
    with _watched(evaluation, pipe):
        if describes:
            yield TriplesResult(_begun(_described(evaluation.descriptions(source))))
        elif construct is not None:
            triples = _triples(evaluation.batches(source), construct.template.labelled(Labels()))
            yield TriplesResult(_begun(triples))
        elif evaluation.plan.form == "ASK":
            truth = "true" if next(evaluation.batches(source), None) else "false"
            answer = f'{{"head":{{}},"boolean":{truth}}}'.encode()
            found = ox.parse_query_results(answer, ox.QueryResultsFormat.JSON)
            yield found
        else:
            document = _Document(_begun(_document(source, evaluation)))
            found = ox.parse_query_results(
                io.BufferedReader(document, _READ_BYTES), ox.QueryResultsFormat.TSV
            )
            yield found


def _tree(text: str, written: OriginalQuery | None) -> Query:
    """Returns the tree of a SELECT, with positions in the query that it was made from, if it can be made again."""
    if written is not None:
        query = ConstructQuery.parse(written.text, base=written.base, prefixes=written.prefixes)
        if query.select == text:
            return query.rewritten.tree
    return parse(text)


def _document(source: DuckDbSource, evaluation: PlanEvaluation) -> Generator[bytes]:
    """Yields the parts of a TSV document of solutions."""
    names = evaluation.plan.variables
    yield "\t".join(f"?{name}" for name in names).encode() + b"\n"
    for batch in evaluation.batches(source):
        columns = list(map(terms_of, batch.columns[: len(names)]))
        rows = map("\t".join, zip(*columns, strict=True)) if names else [""] * batch.num_rows
        yield "".join(f"{row}\n" for row in rows).encode()


def _triples(batches: Iterator[pa.RecordBatch], template: Template) -> Iterator[ox.Triple]:
    """Yields the triples of all solutions, each once: a graph."""
    known: set[Quad] = set()
    first = 0
    for batch in batches:
        columns = list(map(terms_of, batch.columns))
        for quads in template.instantiate_all(columns, first):
            for quad in quads:
                if quad not in known:
                    known.add(quad)
                    yield pyoxigraph_quad(quad).triple
        first += batch.num_rows


def _resources(tree: Query) -> Query:
    """Returns the SELECT whose solutions have the resources that a DESCRIBE names."""
    form = tree.form
    assert isinstance(form, syntax.DescribeForm)
    items = [
        target
        if isinstance(target, syntax.VariableNode)
        else syntax.AliasNode(*target[:2], target, syntax.VariableNode(*target[:2], f".{place}"))
        for place, target in enumerate(form.targets or ())
    ]
    where = form.where or syntax.GroupPattern(form.end, form.end, ())
    projection = None if form.targets is None else tuple(items)
    parts = (form.start, form.end, "", projection, form.dataset, where, form.clauses)
    return replace(tree, form=syntax.SelectForm(*parts))


def _described(batches: Iterator[pa.RecordBatch]) -> Iterator[ox.Triple]:
    for batch in batches:
        for subject, predicate, object in zip(*map(terms_of, batch.columns), strict=True):
            yield pyoxigraph_quad(Quad(subject, predicate, object, None)).triple


def _begun(parts: Iterator[_T]) -> Iterator[_T]:
    """Takes the first part, so that an error of the query comes before the format of its result is reported."""
    return chain(list(islice(parts, 1)), parts)


class _Document(io.RawIOBase):
    """A document of parts, whose errors its reader gets."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest = parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


@contextmanager
def _watched(evaluation: PlanEvaluation, pipe: int) -> Iterator[None]:
    """Interrupts an evaluation if the reader of a pipe leaves during the block."""
    over = threading.Event()
    poll = polling.poll()
    poll.register(pipe, 0)  # errors, as of a pipe without a reader, are always reported

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if poll.poll(0):
                evaluation.interrupt()
                return

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        evaluation.interrupt()
        watching.join()
