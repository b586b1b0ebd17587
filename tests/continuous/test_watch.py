"""A source that is watched: what is given out is what changed, whatever the source does and however often it ends."""

from __future__ import annotations

import asyncio
import os
import random
import tracemalloc
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages import Term, construct_messages, iri, literal
from construct_messages.continuous import Watch, watch
from construct_messages.errors import (
    IncompleteResult,
    QueryError,
    UsageError,
)
from construct_messages.query.continuous.values import Operator
from construct_messages.rdf.options import Dataset
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import blank, is_blank
from construct_messages.sparql.sources import Request
from construct_messages.streams import StreamStore, open_store
from tests.support.http.fault_server import FaultServer
from tests.support.watching import QUERY, Given, Table, answer, watching

# --- what changed, by a model ---


class Scripted:
    """A source that gives the solutions it is told, and may fail behind some of them."""

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = False

    def __init__(self) -> None:
        self.table: Table = ()
        self.fails_behind: int | None = None

    def solutions(self, request: Request) -> Generator[Solutions]:
        raise NotImplementedError

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        for number, solution in enumerate(self.table):
            if number == self.fails_behind:
                break
            # labels of a response mean nothing in another
            renamed = [
                blank(term[2:], request.labels.of_data) if is_blank(term) else term
                for term in solution
            ]
            yield Solutions.of([renamed])
        if self.fails_behind is not None:
            raise IncompleteResult("cut", transient=True)

    def close(self) -> None:
        """Nothing to do."""


def shape(solution: tuple[Term, Term]) -> tuple[str, str]:
    """A solution up to the labels of its blank nodes."""
    first, second = solution
    if first.startswith("_:") and second.startswith("_:"):
        return ("_", "same" if first == second else "other")
    return ("_" if first.startswith("_:") else first, "_" if second.startswith("_:") else second)


TERMS = st.sampled_from([iri("urn:a"), iri("urn:_:b"), Term("_:x"), Term("_:y")])
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(TERMS, st.one_of(TERMS, st.just(literal("_:z")))), max_size=6),
        st.none() | st.integers(0, 6),
        st.none() | st.integers(0, 2),
    ),
    max_size=6,
)


class Killed(BaseException):
    """The process ended here."""


def killed_behind(store: StreamStore, commits: int) -> None:
    """Ends the process behind so many commits."""
    commit, left = store.acommit, iter(range(commits))

    async def then(*args: Any, **options: Any) -> range:
        if next(left, None) is None:
            raise Killed
        return await commit(*args, **options)

    store.acommit = then  # type: ignore[method-assign]


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["ISTREAM", "DSTREAM", "RSTREAM"])
@settings(max_examples=40)
@given(steps=STEPS)
def test_what_is_given_out_is_what_changed(
    operator: str, steps: list[tuple[Table, int | None, int | None]]
) -> None:
    """The difference of two multisets, by collections.Counter; failures, and ends between transactions of two each."""

    async def check(folder: str) -> None:
        source, before, expected = (
            Scripted(),
            Counter[tuple[str, str]](),
            Counter[tuple[str, str]](),
        )
        store = open_store(f"{folder}/out.db")
        await store.acreate("out")
        watched = watching(store, source, operator, retries=0)
        for solutions, fails_behind, commits in steps:
            source.table, source.fails_behind = solutions, fails_behind
            now = Counter(map(shape, solutions))
            if commits is not None:
                killed_behind(store, commits)
                with suppress(Killed, IncompleteResult):
                    await watched.evaluate()
                store.close()
                store = open_store(f"{folder}/out.db")
                if operator == "RSTREAM" and fails_behind is None and commits:
                    expected += now  # that was all of it
                watched = watching(store, source, operator, retries=0)
            try:
                await watched.evaluate()
            except IncompleteResult:
                assert fails_behind is not None
            else:
                assert fails_behind is None
                expected += {"ISTREAM": now - before, "DSTREAM": before - now, "RSTREAM": now}[
                    operator
                ]
                before = now
        elements = list(store.read("out"))
        given = Counter(
            shape((quad.subject, quad.object)) for element in elements for quad in element.message
        )
        assert given == expected
        assert sorted(store.seen("watch").values()) == (
            [] if operator == "RSTREAM" else sorted(before.values())
        )
        nodes = [
            {
                term
                for quad in element.message
                for term in (quad.subject, quad.object)
                if term.startswith("_:")
            }
            for element in elements
        ]
        if operator == "DSTREAM":  # what the labels were of is long gone
            assert sum(map(len, nodes)) == len(set().union(*nodes))
        store.close()

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("construct_messages.continuous.streaming.PAGE_MESSAGES", 2)
        asyncio.run(check(folder))


# --- choices ---


async def test_what_is_there_already_may_be_left_out(
    out: StreamStore, endpoint: FaultServer
) -> None:
    given = Given(out)
    endpoint.play(answer("a", "b"), answer("b", "c"), answer("a", "c"))
    for expected in ([], ["c"], ["a"]):
        await watching(out, endpoint.url, skip_first=True).evaluate()
        assert given() == expected


async def test_empty_messages_may_be_left_out(out: StreamStore) -> None:
    store = ox.Store()
    for value in (ox.Literal("a"), ox.NamedNode("urn:b")):
        store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), value))
    query = "CONSTRUCT { ?o <urn:q> ?s } WHERE { ?s <urn:p> ?o }"
    watched = Watch(query, store, store=out, stream="out", owner="watch", skip_empty=True)
    assert await watched.evaluate() == 1
    assert len(out.seen("watch")) == 2
    assert await watched.evaluate() == 0


async def test_the_state_of_another_query_is_refused(
    out: StreamStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("construct_messages.continuous.watching._SETTLED_SECONDS", 0)
    data = tmp_path / "data.nt"  # unchanged, so that it need not be read
    data.write_text("<urn:s> <urn:p> <urn:x> .")

    def asking(query: str = QUERY, operator: str = "ISTREAM", **options: Any) -> Watch:
        return Watch(
            query,
            data,
            store=out,
            stream="out",
            owner="watch",
            operator=Operator(operator),
            **options,
        )

    await asking(bindings={"o": "<urn:x>"}).evaluate()
    others = [
        asking("CONSTRUCT { ?s <urn:q> 1 } WHERE { ?s <urn:p> ?o }", bindings={"o": "<urn:x>"}),
        asking(operator="DSTREAM", bindings={"o": "<urn:x>"}),
        asking(bindings={"o": "<urn:y>"}),
        asking(bindings={"o": "<urn:x>"}, dataset=Dataset("union")),
        asking(),
    ]
    for other in others:
        with pytest.raises(UsageError, match="another query, operator or dataset"):
            await other.evaluate()
    assert await asking(bindings={"o": "<urn:x>"}, dataset=Dataset()).evaluate() == 0


async def test_white_space_and_comments_make_no_other_query(out: StreamStore) -> None:
    """The text as a formatter writes it, as one line, and as it was; and a state of an earlier release."""
    query = "# all\n" + QUERY.replace("{", "{ # and\n\t").replace(" WHERE", "\n\nWHERE")
    assert QUERY.split() != query.split()
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:a"), ox.NamedNode("urn:p"), ox.Literal("a")))

    def asking(text: str) -> Watch:
        return Watch(text, store, store=out, stream="out", owner="watch")

    assert await asking(QUERY).evaluate() == 1
    for text in (query, " ".join(QUERY.split()), QUERY):
        assert await asking(text).evaluate() == 0
    of_text = asking(query)._fingerprints - {asking(query)._fingerprint}
    out.commit("watch", {"query": of_text.pop()})
    assert await asking(query).evaluate() == 0
    assert await asking(QUERY).evaluate() == 0
    with pytest.raises(UsageError, match="another query"):
        await asking(QUERY.replace("?o", "?o2")).evaluate()


async def test_sources_of_libraries(out: StreamStore) -> None:
    graph, given = rdflib.Graph(), Given(out)
    watched = watching(out, graph)
    for name in "ab":
        graph.add((rdflib.URIRef(f"urn:{name}"), rdflib.URIRef("urn:p"), rdflib.Literal(name)))
        await watched.evaluate()
        assert given() == [name]


async def test_many_new_solutions_wait_on_disk(
    out: StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("construct_messages.continuous.streaming._IN_MEMORY", 1000)
    store = ox.Store()
    names = random.Random(1).sample(range(100_000), 2500)
    store.extend(
        ox.Quad(ox.NamedNode(f"urn:{name}"), ox.NamedNode("urn:p"), ox.Literal(f"{name}\n é"))
        for name in names
    )
    watched = watching(out, store)
    assert await watched.evaluate() == 2500
    assert len(out.seen("watch")) == 2500
    assert await watched.evaluate() == 0
    elements = list(out.read("out"))
    messages = list(construct_messages(QUERY, store))
    assert {element.message for element in elements} == set(messages)


@pytest.mark.slow
async def test_solutions_are_not_held(out: StreamStore) -> None:
    """Of 40 MB of solutions, all of which are new, memory holds a small part."""
    count, size = 5000, 8000

    class Large(Scripted):
        async def asolutions(self, _: Request) -> AsyncGenerator[Solutions]:
            for number in range(count):
                yield Solutions.of([(iri(f"urn:{number}"), literal("x" * size))])

    watched = watching(out, Large())
    tracemalloc.start()
    try:
        assert await watched.evaluate() == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < count * size / 2


# --- Python ---


async def test_a_watch_from_python_goes_on_where_it_was(
    tmp_path: Path, endpoint: FaultServer
) -> None:
    async def taken(count: int, **options: Any) -> list[tuple[int, str]]:
        found = []
        async with aclosing(
            watch(QUERY, endpoint.url, every=0, state=tmp_path / "watch.db", **options)
        ) as elements:
            async for element in elements:
                found.append((element.sequence, str(next(iter(element.message)).object).strip('"')))
                if len(found) == count:
                    return found
        raise AssertionError("it has no end")

    endpoint.play(answer("a", "b"), answer("a", "b", "c"))
    assert await taken(3) == [(1, "a"), (2, "b"), (3, "c")]
    endpoint.play(answer("c", "d"))
    # the last one was taken, and the next was not asked for
    assert await taken(2) == [(3, "c"), (4, "d")]


async def test_the_elements_of_the_last_page_are_repeated(
    tmp_path: Path, endpoint: FaultServer
) -> None:
    """They are removed when the one after the page is requested, as the docstring of `watch` says."""

    async def taken(count: int) -> list[int]:
        state = tmp_path / "watch.db"
        async with aclosing(watch(QUERY, endpoint.url, every=0, state=state)) as elements:
            return [(await anext(elements)).sequence for _ in range(count)]

    endpoint.play(answer("a", "b", "c"))
    assert await taken(2) == [1, 2]
    endpoint.play(answer("a", "b", "c", "d"), answer("a", "b", "c", "d", "e"))
    assert await taken(5) == [1, 2, 3, 4, 5]
    endpoint.play(answer("a", "b", "c", "d", "e", "f"))
    assert await taken(2) == [5, 6]


@pytest.mark.parametrize(
    ("query", "options", "error"),
    [
        (QUERY, {"operator": "stream"}, UsageError),
        (QUERY, {"every": -1}, UsageError),
        (QUERY, {"group_by": ["s"]}, TypeError),
        ("SELECT * { ?s ?p ?o }", {}, QueryError),
        (QUERY, {"source": "none.nt"}, UsageError),
    ],
)
async def test_refusals(query: str, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await anext(watch(query, **{"source": ox.Store(), **options}))


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode("urn:a"), ox.NamedNode("urn:p"), ox.Literal("a")))

    async def check() -> None:
        async with aclosing(watch(QUERY, store, every=0)) as elements:
            await anext(elements)
            assert os.listdir(tmp_path)

    asyncio.run(check())
    assert os.listdir(tmp_path) == []
