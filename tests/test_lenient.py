"""Reading dirty data leniently: what is passed, counted and told, by every door; and that the strict way refuses it."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages import ConstructMessagesError, Message, construct_messages

DIRTY = """\
<http://e/100%> <http://e/p> "x"@zh-classical .
<http://e/s> <http://e/p> <http://e/[b]> .
<http://e/s> <http://e/p> "1"^^<http://e/a#b#c> .
<http://e/s> <http://e/p> <http://e/fine> .
"""
QUERY = "CONSTRUCT { ?s <http://e/q> ?o } WHERE { ?s <http://e/p> ?o } ORDER BY STR(?o)"
LINES = {line.replace("http://e/p>", "http://e/q>") for line in DIRTY.splitlines()}
REFUSED = r"is no IRI|percent encoding|is not a language tag|subtag|code point"
COUNT = "passed as found: 3 malformed IRIs and 1 malformed language tag; the first is "


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    path = tmp_path / "dirty.nt"
    path.write_text(DIRTY)
    return path


def as_path(path: Path) -> object:
    return path


def as_store(path: Path) -> object:
    store = ox.Store()
    store.load(path=path, lenient=True)
    return store


def as_directory(path: Path) -> object:
    store = ox.Store(str(path.with_suffix("")))
    store.load(path=path, lenient=True)
    store.flush()
    return path.with_suffix("")


def as_rdflib(_: Path) -> object:
    graph, p = rdflib.Graph(), rdflib.URIRef("http://e/p")
    s = rdflib.URIRef("http://e/s")
    # rdflib takes no such tag, and a datatype of another kind for the count
    graph.add((rdflib.URIRef("http://e/100%"), p, rdflib.URIRef("http://e/[b]")))
    graph.add((s, p, rdflib.Literal("1", datatype=rdflib.URIRef("http://e/a#b#c"))))
    return graph


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("source", [as_path, as_store, as_directory])
def test_sources(
    source: Callable[[Path], object], asynchronous: bool, dirty: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 13, 9: IRIs are passed with a warning and a count."""

    def read(lenient: bool) -> list[Message]:
        stream = construct_messages(QUERY, source(dirty), lenient=lenient)  # type: ignore[arg-type]
        if not asynchronous:
            return list(stream)

        async def collect() -> list[Message]:
            return [message async for message in stream]

        return asyncio.run(collect())

    with pytest.raises(ConstructMessagesError, match=REFUSED):
        read(False)
    assert not caplog.records
    messages = read(True)
    assert {str(quad) for message in messages for quad in message} == LINES
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "construct_messages.terms.wellformed")
    assert record.getMessage().startswith(COUNT)


def test_rdflib(dirty: Path, caplog: pytest.LogCaptureFixture) -> None:
    (one, two) = construct_messages(QUERY, as_rdflib(dirty), lenient=True)  # type: ignore[arg-type]
    assert {str(quad) for quad in (*one, *two)} == {
        "<http://e/100%> <http://e/q> <http://e/[b]> .",
        '<http://e/s> <http://e/q> "1"^^<http://e/a#b#c> .',
    }
    assert [record.getMessage() for record in caplog.records if "passed as found: 3" in record.getMessage()]


def command(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the command line in a process of its own, logging as it is."""
    done = subprocess.run(
        [sys.executable, "-m", "construct_messages", *arguments], capture_output=True, check=False, encoding="utf-8"
    )
    return done.returncode, done.stdout, done.stderr


def test_run(dirty: Path) -> None:
    """The log goes to standard output, the count to standard error."""
    arguments = ["run", "--query", QUERY, "--source", str(dirty), "--format", "nt"]
    status, out, err = command(*arguments)
    assert (status, out) == (3, "")
    assert "percent encoding" in err
    status, out, err = command(*arguments, "--lenient")
    assert (status, set(out.splitlines()) - {"# @message"}) == (0, LINES)
    assert err.startswith(COUNT)


def test_what_no_log_can_hold_is_refused(tmp_path: Path) -> None:
    """Lenient is not boundless: a space, or a relative IRI, would be another IRI in the log."""
    path = tmp_path / "worse.nt"
    for iri in ("http://e/\\u0020", "http://e/a b", "a", "http://e/\\u003E"):
        path.write_text(f"<{iri}> <http://e/p> <http://e/o> .")
        with pytest.raises(ConstructMessagesError):
            list(construct_messages(QUERY, path, lenient=True))
