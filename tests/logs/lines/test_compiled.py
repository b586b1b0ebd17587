"""The compiled module returns what the Python code beside it returns, or leaves the lines to it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages import Message, Quad
from construct_messages.logs.lines.decoder import (
    StatementLines,
    _lines_read_back,
    count_canonical,
    read_lines,
)
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import PURE, Statement, Wire
from construct_messages.rdf.terms import Term
from tests.support.logs.lines import documents, the_compiled_module

GRAPHS = pytest.mark.parametrize("graphs", [True, False], ids=["N-Quads", "N-Triples"])
CANONICAL = [
    b"<http://example.org/s> <http://example.org/p> <http://example.org:80/a?b/c?d#e/f?g> .\n",
    b"<http://example.org/s> <http://example.org/p> _:b .\n",
    b'<http://example.org/s> <urn:p> "a \\"quoted\\" \\\\ \\n text, \xc3\xa9 \xf0\x9f\x98\x80" .\n',
    b'_:b1 <urn:p> "chat"@fr .\n',
    b'_:b1 <urn:p> "zi"@zh-hant-tw .\n',
    b'<urn:s> <urn:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    b"<http://\xc3\xa9.example/%C3%A9> <urn:p> <mailto:a@b> .\n".replace(b"//\xc3\xa9.", b"//e."),
]
QUAD = b'<urn:s> <urn:p> "o"@en <http://example.org/g> .\n'
OTHERS = [
    b"\n",
    b"# @message\n",
    b"<urn:s>  <urn:p> <urn:o> .\n",
    b"<urn:s> <urn:p> <urn:o> . \n",
    b"<s> <urn:p> <urn:o> .\n",
    b'<urn:s> <urn:p> "o"^^<http://www.w3.org/2001/XMLSchema#string> .\n',
    b'<urn:s> <urn:p> "\\u0041" .\n',
    b'<urn:s> <urn:p> "a\x00b" .\n',
    b"<urn:s> <urn:p> <<( <urn:a> <urn:b> <urn:c> )>> .\n",
    b"<urn:\xef\xbf\xbe> <urn:p> <urn:o> .\n",
]
# what decides in a scan, of one byte and more
PIECES = [
    *(bytes([each]) for each in b'<>_:."\\@^#% \n\r\t\0-aZ09'),
    b"\xc3",
    b"\xa9",
    b"\xed\xa0\x80",
    b"^^<",
    b" .\n",
]


@pytest.fixture(autouse=True)
def reader() -> None:
    """These tests run once, with the compiled module."""
    the_compiled_module()


@pytest.fixture
def wire() -> Wire:
    return the_compiled_module()


def alike(wire: Wire, lines: bytes, graphs: bool) -> int:
    """Asserts that all lines are there, and that each statement is one by Python, too; returns their number."""
    found = wire.statements(lines, graphs)
    try:
        text = lines.decode()
    except UnicodeDecodeError:
        assert found is None
        return 0
    assert found is not None
    terms, blanks, others = found
    read = [" ".join(filter(None, terms[at : at + 4])) + " .\n" for at in range(0, len(terms), 4)]
    assert "".join(other + line for other, line in zip(others, [*read, ""], strict=True)) == text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "wire", None)
        by_python = read_lines("".join(read).encode(), graphs=graphs)
    assert by_python == StatementLines(terms, blanks, [""] * (len(read) + 1))  # type: ignore[arg-type]
    return len(read)


@GRAPHS
def test_statements_are_found(wire: Wire, graphs: bool) -> None:
    lines = [*CANONICAL, QUAD] if graphs else CANONICAL
    assert alike(wire, b"".join(lines), graphs) == len(lines)
    assert alike(wire, b"".join(a + b for a in lines for b in OTHERS), graphs) == len(lines) * len(
        OTHERS
    )
    assert alike(wire, b"".join(OTHERS), graphs) == 0
    assert alike(wire, QUAD, graphs) == graphs


@GRAPHS
def test_cut_and_changed_at_every_byte(wire: Wire, graphs: bool) -> None:
    for line in [*CANONICAL, QUAD, *OTHERS]:
        for place in range(len(line)):
            alike(wire, line[:place], graphs)
            for piece in PIECES:
                alike(wire, line[:place] + piece + line[place:], graphs)
                alike(wire, line[:place] + piece + line[place + 1 :], graphs)


@GRAPHS
@given(
    parts=st.lists(
        st.sampled_from([*CANONICAL, QUAD, *OTHERS, *PIECES]) | st.binary(max_size=4), max_size=12
    )
)
def test_any_bytes(graphs: bool, parts: list[bytes]) -> None:
    event(f"statements: {alike(the_compiled_module(), b''.join(parts), graphs) > 0}")


@GRAPHS
@given(several=st.lists(documents(), max_size=3))
def test_documents_that_are_canonical(graphs: bool, several: list[bytes]) -> None:
    several = [each if each.endswith(b"\n") else each + b"\n" for each in several]
    found = the_compiled_module().count_canonical(several, graphs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "wire", None)
        event(f"canonical: {found is not None}")
        assert found is None or found == count_canonical(several, graphs)


@GRAPHS
def test_equal_lines(wire: Wire, graphs: bool) -> None:
    """A document is a set of statements; two documents may have the same."""
    document = b"".join(CANONICAL)
    assert wire.count_canonical([document, document], graphs) == 2 * len(CANONICAL)
    assert wire.count_canonical([document, document + CANONICAL[3]], graphs) is None
    assert wire.count_canonical([b""], graphs) is None
    assert wire.count_canonical([QUAD], graphs) == (1 if graphs else None)


TERMS = [
    *("<urn:s>", "<urn:p>", "_:b", '"o"', '"é"@en', '"5"^^<urn:t>', '"a"@en--ltr'),
    *("", "<", "<s>", "_:", "_:b.", "urn:s", '"o', '"o" ', "<urn:a b>", "<urn:s>\0", "\ud800"),
    "<<( <urn:a> <urn:b> <urn:c> )>>",
]


@given(
    st.lists(
        st.tuples(*[st.sampled_from([*TERMS[:3], *TERMS])] * 3, st.sampled_from([None, *TERMS]))
    )
)
def test_lines_that_are_written(statements: list[Statement[Term]]) -> None:
    message = Message([Quad(*parts) for parts in statements])
    found = the_compiled_module().lines_of(message.statements)
    event(f"written: {found is not None}")
    assert found == _lines_read_back(message)


@pytest.mark.parametrize("statement", [None, "spog", ("s", "p", "o"), (b"s", "p", "o", None)])
def test_statements_that_are_none(wire: Wire, statement: object) -> None:
    assert wire.lines_of([statement]) is None  # type: ignore[list-item]


@pytest.mark.slow
def test_nothing_is_left_in_memory(wire: Wire) -> None:
    lines = b"".join([*CANONICAL, QUAD, *OTHERS]) * 5 + b"<urn:s> <urn:p> _:c .\n" * 5
    for broken in (lines, lines + b"\xff", lines[:-3]):
        for _ in range(2):  # the first time, Python keeps some memory for itself
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(50):
                wire.statements(broken, True)
                wire.count_canonical([broken, lines], True)
                wire.lines_of([("<urn:s>", "<urn:p>", '"o"', None), ("<urn:s>", "", "", None)])
            gc.collect()
            left = sys.getallocatedblocks() - before
        assert left < 50


@pytest.mark.parametrize("arguments", [(), ("text", True), (b"",), ([QUAD, "text"], True)])
def test_wrong_arguments(wire: Wire, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        wire.statements(*arguments)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError):
        wire.count_canonical(*arguments)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError):
        wire.lines_of(None)  # type: ignore[arg-type]


def test_it_is_left_out_on_demand() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "construct_messages", "--version"],
        env=os.environ | {PURE: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "(pure Python, without the compiled module)" in done.stdout


@pytest.mark.parametrize("interface", ["", "INTERFACE = compiled.INTERFACE + 1"])
def test_one_of_another_interface_is_left_out(interface: str) -> None:
    program = (
        "import sys\n"
        "from importlib import reload\n"
        "from construct_messages.rdf import compiled\n"
        "class Other:\n"
        f"    {interface or 'pass'}\n"
        "sys.modules['construct_messages.rdf.compiled._wire'] = Other\n"
        "print(reload(compiled).wire)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={name: value for name, value in os.environ.items() if name != PURE},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "None\n"
