"""The magic `%%construct` in IPython's shell, and in notebooks with a kernel of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import nbclient
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from construct_messages import Message, Quad, construct_messages, iri, literal
from construct_messages.cli.notebook import MessageList
from tests.support.http.fault_server import TSV, FaultServer, response
from tests.support.places import ROOT

COMPANIES = ROOT / "queries" / "data" / "companies.ttl"
QUERY = """PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
CONSTRUCT { ?s rdfs:label ?name } WHERE { ?s rdfs:label ?name } ORDER BY ?s ?name
"""


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "construct_messages")
    yield shell
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, line: str, query: str = QUERY) -> tuple[Any, str]:
    """What a cell returns, and what it prints on standard error and output."""
    with capture_output() as captured:
        result = shell.run_cell(f"%%construct {line}\n{query}")
    return result.result, captured.stdout + captured.stderr


def test_the_result_is_a_list(shell: InteractiveShell) -> None:
    shown, _ = run(shell, f"{COMPANIES} -o names")
    names = shell.user_ns["names"]
    assert isinstance(names, list)
    assert names is shown
    expected = list(construct_messages(QUERY, COMPANIES))
    assert len(names) == len(expected)
    assert all(a.isomorphic(b) for a, b in zip(names, expected, strict=True))
    assert repr(names) == f"<{len(names)} messages>"
    grouped, _ = run(shell, f"{COMPANIES} --group-by ?s --max-messages 4")
    expected = list(construct_messages(QUERY, COMPANIES, group_by="?s", max_messages=4))
    assert [len(message) for message in grouped] == [len(message) for message in expected]
    assert max(map(len, grouped)) > 1


def test_an_endpoint_is_a_source(shell: InteractiveShell) -> None:
    with closing(FaultServer()) as server:
        server.play(response(b'?s\t?name\n<urn:a>\t"<b>A</b>"\n', TSV))
        shown, _ = run(shell, f"{server.url} --results tsv")
    assert [str(quad.object) for quad in shown[0]] == ['"<b>A</b>"']
    assert "&lt;b&gt;A&lt;/b&gt;" in shown._repr_html_()
    assert "<b>" not in shown._repr_html_()


def test_few_messages_are_shown() -> None:
    messages = MessageList(
        Message([Quad(iri("urn:s"), iri("urn:p"), literal(number))]) for number in range(1200)
    )
    html = messages._repr_html_()
    assert html.startswith("<p>1,200 messages</p><p>1. Message of 1 quad</p><table>")
    assert html.count("<table>") == 10
    assert html.endswith("<p>and 1,190 more</p>")


@pytest.mark.parametrize(
    ("line", "query", "said"),
    [
        (
            str(COMPANIES),
            "CONSTRUCT { ?s ex:p ?o }\nWHERE { ?s ?p ?o }",
            "error: line 2, column 16: ",
        ),
        (str(COMPANIES), "SELECT * { ?s ?p ?o }", "error: line 2, column 1: "),
        ("nowhere.ttl", QUERY, "error: "),
        (f"{COMPANIES} --nothing", QUERY, "error: unrecognized arguments: --nothing"),
        (f"{COMPANIES} --nothing", QUERY, "hint: see %%construct --help"),
        (f"{COMPANIES} -o 1x", QUERY, "error: -o 1x is not the name of a variable"),
        (f"{COMPANIES} -o class", QUERY, "error: -o class is not the name of a variable"),
        (f"{COMPANIES} 'x", QUERY, "No closing quotation"),
        (f"{COMPANIES} --group-by ?other", QUERY, "error: "),
        (f"{COMPANIES} --bind s", QUERY, "error: --bind 's' is not v=TERM"),
    ],
)
def test_errors_are_those_of_the_command_line(
    shell: InteractiveShell, line: str, query: str, said: str
) -> None:
    shown, printed = run(shell, line, query)
    assert shown is None
    assert said in printed
    assert "Traceback" not in printed


def test_help(shell: InteractiveShell) -> None:
    shown, printed = run(shell, "--help")
    assert shown is None
    assert "--group-by ?v" in printed


def magic(shell: InteractiveShell, text: str) -> tuple[Any, str]:
    with capture_output() as captured:
        result = shell.run_cell(text)
    return result.result, captured.stdout + captured.stderr


def test_a_frame(shell: InteractiveShell) -> None:
    pandas = pytest.importorskip("pandas")
    shown, _ = run(shell, f"{COMPANIES} --frame -o frame --max-messages 3")
    assert isinstance(shown, pandas.DataFrame)
    assert list(shown.columns) == ["s", "name"]
    assert len(shown) == 3
    assert shell.user_ns["frame"] is shown


def test_a_source_for_all_cells(shell: InteractiveShell) -> None:
    missing, printed = run(shell, "")
    assert missing is None
    assert "error: " in printed
    assert magic(shell, f"%construct_source {COMPANIES} --max-messages 2") == (None, "")
    assert magic(shell, "%construct_source")[0] == f"{COMPANIES} --max-messages 2"
    assert len(run(shell, "")[0]) == 2
    assert len(run(shell, "--max-messages 1")[0]) == 1
    assert len(run(shell, str(COMPANIES))[0]) > 2
    for line in ("--max-messages 2", f"{COMPANIES} --nothing"):
        assert "error: " in magic(shell, f"%construct_source {line}")[1]
    assert len(run(shell, "")[0]) == 2


def test_prefixes_for_all_cells(shell: InteractiveShell) -> None:
    query = "CONSTRUCT { ?s rdfs:label ?o ; :is ?o } WHERE { ?s rdfs:label ?o }"
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    assert "prefix rdfs: is not declared" in run(shell, str(COMPANIES), query)[1]
    assert magic(shell, f"%construct_prefixes rdfs={rdfs}")[0] == {"rdfs": rdfs}
    declared, _ = magic(
        shell, "%%construct_prefixes\nPREFIX : <http://example.org/>\nPREFIX ex: <urn:>"
    )
    assert declared == {"rdfs": rdfs, "": "http://example.org/", "ex": "urn:"}
    shown, _ = run(shell, str(COMPANIES), query)
    assert {str(quad.predicate) for quad in shown[0]} == {
        f"<{rdfs}label>",
        "<http://example.org/is>",
    }
    other, _ = run(shell, str(COMPANIES), f"PREFIX : <urn:>\n{query}")
    assert {str(quad.predicate) for quad in other[0]} == {f"<{rdfs}label>", "<urn:is>"}
    for text in ("%construct_prefixes rdfs", "%%construct_prefixes\nrdfs: <urn:>"):
        assert "error: " in magic(shell, text)[1]


def test_help_needs_no_cell(shell: InteractiveShell) -> None:
    shown, printed = magic(shell, "%construct --help")
    assert shown is None
    assert "--frame" in printed
    assert "hint: write %%construct" in magic(shell, f"%construct {COMPANIES}")[1]


@pytest.mark.process
@pytest.mark.slow
def test_in_a_notebook() -> None:
    """A kernel in a process of its own, as Jupyter runs it."""
    cell = nbformat.v4.new_code_cell
    notebook = nbformat.v4.new_notebook(
        cells=[
            cell("%load_ext construct_messages"),
            cell(f"%%construct {COMPANIES} -o names\n{QUERY}"),
            cell("len(names), names[0].value()"),
            cell(f"%%construct {COMPANIES}\nCONSTRUCT {{"),
        ]
    )
    nbclient.NotebookClient(
        notebook,
        allow_errors=True,
        timeout=120,
        resources={"metadata": {"path": str(ROOT)}},
    ).execute()
    (shown,) = notebook.cells[1].outputs
    assert shown.data["text/html"].startswith("<p>")
    assert "<table>" in shown.data["text/html"]
    (counted,) = notebook.cells[2].outputs
    assert counted.data["text/plain"].startswith("(")
    (error,) = notebook.cells[3].outputs
    assert (error.output_type, error.ename) == ("error", "QueryError")
    assert error.traceback[0].startswith("error: line 2, column ")
