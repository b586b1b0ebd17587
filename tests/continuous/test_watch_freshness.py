"""What is asked of a watched source again, and what need not be: files, HTTP's validators."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from construct_messages import construct_messages
from construct_messages.errors import (
    SourceError,
)
from construct_messages.streams import StreamStore
from tests.support.http.fault_server import FaultServer, response
from tests.support.http.pauses import no_pauses
from tests.support.watching import QUERY, Given, answer, watching

# --- what need not be asked for again ---


async def test_conditional_requests(out: StreamStore, endpoint: FaultServer) -> None:
    unchanged = response(b"", status="304 Not Modified", framing="close")
    given = Given(out)
    endpoint.play(answer("a", headers={"ETag": '"1"'}), unchanged, answer("a", "b", headers={"ETag": '"2"'}), unchanged)
    for expected in (["a"], [], ["b"], []):
        await watching(out, endpoint.url, method="get").evaluate()
        assert given() == expected
    assert [asked.headers.get("if-none-match") for asked in endpoint.asked] == [None, '"1"', '"1"', '"2"']


async def test_an_answer_that_was_cut_does_not_count_as_known(out: StreamStore, endpoint: FaultServer) -> None:
    """Its ETag is not that of what was seen."""
    cut = answer("a", "b", headers={"ETag": '"2"'}, cut=150)
    endpoint.play(answer("a", headers={"ETag": '"1"'}), cut, answer("a", "b", headers={"ETag": '"2"'}))
    watched = watching(out, endpoint.url, method="get")
    with no_pauses():
        await watched.evaluate()
        await watched.evaluate()
    assert [asked.headers.get("if-none-match") for asked in endpoint.asked] == [None, '"1"', '"1"']
    assert Given(out)() == ["a", "b"]


@pytest.mark.parametrize(
    ("date", "known"),
    [("Sun, 22 Nov 2026 12:00:05 GMT", "Sun, 22 Nov 2026 12:00:00 GMT"), ("Sun, 22 Nov 2026 12:00:00 GMT", None)],
    ids=["older", "of the same second"],
)
async def test_last_modified(out: StreamStore, endpoint: FaultServer, date: str, known: str | None) -> None:
    """RFC 9110, section 8.8.2.2: what was modified in the second of the answer may be modified again in it."""
    headers = {"Last-Modified": "Sun, 22 Nov 2026 12:00:00 GMT", "Date": date}
    endpoint.play(answer("a", headers=headers))
    for _ in range(2):
        await watching(out, endpoint.url, method="get").evaluate()
    assert endpoint.asked[1].headers.get("if-modified-since") == known


@pytest.mark.parametrize("options", [{}, {"method": "get", "page_size": 10}], ids=["post", "pages"])
async def test_requests_without_a_condition(out: StreamStore, endpoint: FaultServer, options: dict[str, Any]) -> None:
    """RFC 9110, section 13.1.2: a POST would be refused; and a page is not the whole."""

    def answered(asked: Any) -> bytes:
        names = () if "OFFSET 1" in asked.parameters["query"][0] else ("a",)
        return answer(*names, headers={"ETag": '"1"'})

    endpoint.play(answered)
    for _ in range(2):
        await watching(out, endpoint.url, **options).evaluate()
    assert not any("if-none-match" in asked.headers for asked in endpoint.asked)
    assert Given(out)() == ["a"]


async def test_a_file_is_read_again(out: StreamStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("construct_messages.continuous.freshness._SETTLED_SECONDS", -3600.0)
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
