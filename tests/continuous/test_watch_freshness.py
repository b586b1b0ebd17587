"""What is asked of a watched source again, and what need not be: files, HTTP's validators."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from construct_messages import construct_messages, literal
from construct_messages.errors import QueryError, SourceError
from construct_messages.streams import StreamStore
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.pauses import no_pauses, no_retries
from tests.support.results.documents import json_document
from tests.support.watching import QUERY, Given, answer, watching

# --- what need not be asked for again ---


async def test_conditional_requests(out: StreamStore, endpoint: FaultServer) -> None:
    unchanged = response(b"", status="304 Not Modified", framing="close")
    given = Given(out)
    endpoint.play(
        answer("a", headers={"ETag": '"1"'}),
        unchanged,
        answer("a", "b", headers={"ETag": '"2"'}),
        unchanged,
    )
    for expected in (["a"], [], ["b"], []):
        await watching(out, endpoint.url, method="get").evaluate()
        assert given() == expected
    assert [asked.headers.get("if-none-match") for asked in endpoint.asked] == [
        None,
        '"1"',
        '"1"',
        '"2"',
    ]


async def test_an_answer_that_was_cut_does_not_count_as_known(
    out: StreamStore, endpoint: FaultServer
) -> None:
    """Its ETag is not that of what was seen."""
    cut = answer("a", "b", headers={"ETag": '"2"'}, cut=150)
    endpoint.play(
        answer("a", headers={"ETag": '"1"'}), cut, answer("a", "b", headers={"ETag": '"2"'})
    )
    watched = watching(out, endpoint.url, method="get")
    with no_pauses():
        await watched.evaluate()
        await watched.evaluate()
    assert [asked.headers.get("if-none-match") for asked in endpoint.asked] == [None, '"1"', '"1"']
    assert Given(out)() == ["a", "b"]


@pytest.mark.parametrize(
    ("date", "known"),
    [
        ("Sun, 22 Nov 2026 12:00:05 GMT", "Sun, 22 Nov 2026 12:00:00 GMT"),
        ("Sun, 22 Nov 2026 12:00:00 GMT", None),
    ],
    ids=["older", "of the same second"],
)
async def test_last_modified(
    out: StreamStore, endpoint: FaultServer, date: str, known: str | None
) -> None:
    """RFC 9110, section 8.8.2.2: what was modified in the second of the answer may be modified again in it."""
    headers = {"Last-Modified": "Sun, 22 Nov 2026 12:00:00 GMT", "Date": date}
    endpoint.play(answer("a", headers=headers))
    for _ in range(2):
        await watching(out, endpoint.url, method="get").evaluate()
    assert endpoint.asked[1].headers.get("if-modified-since") == known


@pytest.mark.parametrize("options", [{}, {"method": "get", "page_size": 10}], ids=["post", "pages"])
async def test_requests_without_a_condition(
    out: StreamStore, endpoint: FaultServer, options: dict[str, Any]
) -> None:
    """RFC 9110, section 13.1.2: a POST would be refused; and a page is not the whole."""

    def answered(asked: Any) -> bytes:
        names = () if "OFFSET 1" in asked.parameters["query"][0] else ("a",)
        return answer(*names, headers={"ETag": '"1"'})

    endpoint.play(answered)
    for _ in range(2):
        await watching(out, endpoint.url, **options).evaluate()
    assert not any("if-none-match" in asked.headers for asked in endpoint.asked)
    assert Given(out)() == ["a"]


async def test_a_file_is_read_again(
    out: StreamStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, given = tmp_path / "data.nt", Given(out)

    def write(*names: str) -> None:
        file.write_text("".join(f'<urn:{name}> <urn:p> "{name}" .\n' for name in names))

    watched = watching(out, file)
    write("a", "b")
    await watched.evaluate()
    assert given() == ["a", "b"]
    write("a", "c")  # as long as before
    await watched.evaluate()
    assert given() == ["c"]
    # what did not change for a while is not read
    monkeypatch.setattr("construct_messages.continuous.watching._SETTLED_SECONDS", -3600.0)
    await watched.evaluate()
    unread = watching(out, file)
    monkeypatch.setattr(unread, "_ask", None)
    assert await unread.evaluate() == 0
    write("a", "d")
    with pytest.raises(TypeError):
        await unread.evaluate()


async def test_a_file_that_is_not_there_for_a_moment(out: StreamStore, tmp_path: Path) -> None:
    file, given = tmp_path / "data.nt", Given(out)
    file.write_text('<urn:a> <urn:p> "a" .\n')
    watched = watching(out, file, "DSTREAM")
    async with aclosing(watched.evaluations(0)) as evaluations:
        assert (await anext(evaluations)).error is None
        file.unlink()
        assert "no such file" in str((await anext(evaluations)).error)
        file.write_text('<urn:a> <urn:p> "a\n')
        assert isinstance((await anext(evaluations)).error, SourceError)
        file.write_text('<urn:b> <urn:p> "b" .\n')
        assert (await anext(evaluations)).error is None
    assert given() == ["a"]


async def test_a_file_that_changes_while_it_is_read(out: StreamStore, tmp_path: Path) -> None:
    file = tmp_path / "data.nt"
    file.write_text('<urn:a> <urn:p> "a" .\n')

    def meanwhile(*args: Any, **options: Any) -> Any:
        messages = construct_messages(*args, **options)
        file.write_text('<urn:a> <urn:p> "a" .\n<urn:b> <urn:p> "b" .\n')
        return messages

    watched = watching(out, file)
    watched._ask = lambda: meanwhile(QUERY, file)  # type: ignore[assignment]
    with pytest.raises(SourceError, match="changed while it was read"):
        await watched.evaluate()
    assert Given(out)() == []


# --- change queries ---


@pytest.mark.parametrize("operator", ["ISTREAM", "RSTREAM"])
@pytest.mark.parametrize(
    ("change_query", "changes"),
    [
        (
            "SELECT (MAX(?o) AS ?latest) (COUNT(*) AS ?n) WHERE { ?s <urn:p> ?o }",
            [True, False, True, True],
        ),
        ("PREFIX : <urn:> SELECT DISTINCT ?s { ?s :p ?o } # all", [True, False, True, True]),
        ("ASK { <urn:c> <urn:p> ?o } # comment", [True, False, False, True]),
        ("ASK { <urn:z> <urn:p> ?o }", [True, False, False, False]),
    ],
    ids=["numbers", "solutions", "ask", "never"],
)
async def test_a_change_query(
    out: StreamStore, change_query: str, changes: list[bool], operator: str
) -> None:
    """Each step adds a solution or not; a step that is not evaluated is made up for later."""
    store, given, names = ox.Store(), Given(out), list[str]()
    seen: list[str] = []
    for name, changed in zip(["a", "", "b", "c"], changes, strict=True):
        if name:
            names.append(name)
            store.add(ox.Quad(ox.NamedNode(f"urn:{name}"), ox.NamedNode("urn:p"), ox.Literal(name)))
        await watching(out, store, operator, change_query=change_query).evaluate()
        expected = (
            []
            if not changed
            else names
            if operator == "RSTREAM"
            else [n for n in names if n not in seen]
        )
        assert given() == expected
        seen += expected


async def test_a_change_query_that_fails(out: StreamStore, endpoint: FaultServer) -> None:
    """Nothing is evaluated, and the next time it is asked again."""
    latest = response(json_document(("x",), [(literal("1"),)]))
    endpoint.play(latest, answer("a"), latest[:150], latest)
    watched = watching(out, endpoint.url, change_query="SELECT ?x { ?s <urn:modified> ?x }")
    assert await watched.evaluate() == 1
    with no_retries(), pytest.raises(SourceError):
        await watched.evaluate()
    assert await watched.evaluate() == 0
    assert len(endpoint.asked) == 4


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("CONSTRUCT WHERE { ?s ?p ?o }", "expected a SELECT or ASK query"),
        ("nothing", "there is no CONSTRUCT, nor any other form of query"),
        ("SELECT { ?s ?p ?o }", "expected a variable, an expression or \\*, found {"),
        ("SELECT ?s", "there is no WHERE group"),
    ],
)
def test_what_is_no_change_query(out: StreamStore, query: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        watching(out, ox.Store(), change_query=query)
