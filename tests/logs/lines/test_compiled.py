"""The compiled module reads lines as pyoxigraph does, and writes them as Python does, or leaves them to these."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages import Message, Quad
from construct_messages.errors import LogError
from construct_messages.logs import DecoderOptions
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.lines.decoder import (
    LinesDecoder,
    StatementLines,
    _lines_read_back,
    count_canonical,
)
from construct_messages.rdf import compiled
from construct_messages.rdf.compiled import PURE, Statement, Wire
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, SYNTAXES
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.terms import Lenience, Term
from tests.support.logs.lines import documents, taken, the_compiled_module

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
ODD = [
    b"<urn:s>  <urn:p> \t<urn:o> .\n",
    b"<urn:s><urn:p>_:b.\n",
    b"<urn:s> <urn:p> <urn:o> . # a comment\n",
    b'<urn:s> <urn:p> "o"^^<http://www.w3.org/2001/XMLSchema#string> .\n',
    b'<urn:s> <urn:p> "o"@EN-gb .\n',
    b'<urn:\\u00e9> <urn:p> "\\u0041\\U0001F600\\\'\\\\\t" .\n',
    b'_:b <urn:p> <<( _:b <urn:b> <<(<urn:a><urn:b>"c"@EN)>> )>> .\n',
]
OTHERS = [
    b"\n",
    b"# @message\n",
    b"<urn:s> <urn:p> <urn:o> . # @message\n",
    b"<s> <urn:p> <urn:o> .\n",
    b'<urn:s> <urn:p> "a\x00b" .\n',
    b'<urn:s> <urn:p> "a"@en--ltr .\n',
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
    """Asserts that each statement is what pyoxigraph reads of its line, and that all others are there; returns how
    many statements there are.
    """
    in_columns(wire, lines, graphs)
    found = wire.statements(lines, graphs, True)
    try:
        text = lines.decode()
    except UnicodeDecodeError:
        assert found is None
        return 0
    assert found is not None
    read = taken(text, StatementLines(*found))  # type: ignore[arg-type]
    format = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    for line, quad in read:
        assert list(to_message(ox.parse(line, format=format))) == [quad], line
    return len(read)


def in_columns(wire: Wire, lines: bytes, graphs: bool) -> None:
    """Asserts that columns have the canonical statements, byte by byte, and that all other lines are there."""
    count, parts, others, numbers = wire.columns(lines, graphs, b"f1")
    every = [line + b"\n" for line in lines.split(b"\n")[:-1]]
    assert others == b"".join(every[number] for number in numbers)
    canonical = [line for number, line in enumerate(every) if number not in {*numbers}]
    columns = [
        [cells[start:end] for start, end in pairwise(memoryview(ends).cast("i"))]
        for ends, cells in zip(parts[:-1:2], parts[1:-1:2], strict=True)
    ]
    assert [len(column) for column in columns] == [count] * (4 if graphs else 3)
    rows = [
        [re.sub(b"^_:f1", b"_:", cell) for cell in row if cell] + [b".\n"]
        for row in zip(*columns, strict=True)
    ]
    unscoped = b"".join(map(b" ".join, rows))
    assert unscoped == b"".join(canonical)
    if graphs:
        named = [bool(parts[-1][row // 8] >> row % 8 & 1) for row in range(count)]
        assert named == [cell != b"" for cell in columns[3]]
    read = wire.statements(unscoped, graphs, False)
    assert read is not None
    assert (len(read[0]), any(read[2])) == (4 * count, False)


@GRAPHS
def test_statements_are_found(wire: Wire, graphs: bool) -> None:
    lines = [*CANONICAL, *ODD, *([QUAD] if graphs else [])]
    assert alike(wire, b"".join(lines), graphs) == len(lines)
    assert alike(wire, b"".join(a + b for a in lines for b in OTHERS), graphs) == len(lines) * len(
        OTHERS
    )
    assert alike(wire, b"".join(OTHERS), graphs) == 0
    assert alike(wire, QUAD, graphs) == graphs


@GRAPHS
def test_cut_and_changed_at_every_byte(wire: Wire, graphs: bool) -> None:
    for line in [*CANONICAL, QUAD, *ODD, *OTHERS]:
        for place in range(len(line)):
            alike(wire, line[:place], graphs)
            for piece in PIECES:
                alike(wire, line[:place] + piece + line[place:], graphs)
                alike(wire, line[:place] + piece + line[place + 1 :], graphs)


@GRAPHS
@given(
    parts=st.lists(
        st.sampled_from([*CANONICAL, QUAD, *ODD, *OTHERS, *PIECES]) | st.binary(max_size=4),
        max_size=12,
    )
)
def test_any_bytes(graphs: bool, parts: list[bytes]) -> None:
    event(f"statements: {alike(the_compiled_module(), b''.join(parts), graphs) > 0}")


MARKS = [
    *(b'VERSION "1.2-messages"\n', b'VERSION "1.1-messages"\n', b"MESSAGE\n", b"# @message\n"),
    *(b"\n", b"# a comment\n", b" \t\n", b"\r\n", b"<urn:s> <urn:p> <urn:o> . # @message\n"),
]


def outcome(parts: list[bytes], **options: Any) -> tuple[list[list[Quad]], str, str]:
    """The messages of a log, the error that ended it, and what was passed."""
    lenience = Lenience(options.pop("how"))
    decoder = LinesDecoder(
        options.pop("format"),
        options.pop("syntax"),
        DecoderOptions(labels=Labels("x"), lenience=lenience, **options),
    )
    read: list[list[Quad]] = []
    try:
        for part in parts:
            read.extend(map(list, decoder.feed(part)))
        read.extend(map(list, decoder.close()))
    except LogError as error:
        return read, f"{error!r} {error}", str(lenience)
    return read, "", str(lenience)


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Parts of a log, most of which are statements of all forms and delimiters; some are damaged."""
    announced = draw(st.sampled_from([*MARKS[:2], b""]))
    marks = [MARKS[3], b"\n"] if not announced else [b"MESSAGE\n", MARKS[3]]
    lines = [*CANONICAL, *ODD, *ODD, QUAD, *(marks * 6)]
    parts = [announced, *draw(st.lists(st.sampled_from(lines), max_size=12))]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        place = draw(st.integers(0, len(parts) - 1))
        parts.insert(place, draw(st.sampled_from([*OTHERS, *MARKS, *PIECES])))
    return parts


@given(
    parts=logs(),
    format=st.sampled_from([N_QUADS, N_TRIPLES]),
    syntax=st.sampled_from([None, *SYNTAXES]),
    how=st.sampled_from(["strict", "pass", "skip"]),
    shared_labels=st.sampled_from([None, True, False]),
    comments=st.booleans(),
)
def test_logs_are_read_alike(parts: list[bytes], **options: Any) -> None:
    """With and without the module: the same messages, the same error at the same place."""
    found = outcome(parts, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "wire", None)
        assert outcome(parts, **options) == found
    event(f"messages: {len(found[0])}, error: {found[1] != ''}")


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
    lines = b"".join([*CANONICAL, QUAD, *ODD, *OTHERS]) * 5 + b"<urn:s> <urn:p> _:c .\n" * 5
    for broken in (lines, lines + b"\xff", lines[:-3]):
        for _ in range(2):  # the first time, Python keeps some memory for itself
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(50):
                wire.statements(broken, True, True)
                wire.columns(broken, True, b"f1")
                wire.count_canonical([broken, lines], True)
                wire.lines_of([("<urn:s>", "<urn:p>", '"o"', None), ("<urn:s>", "", "", None)])
            gc.collect()
            left = sys.getallocatedblocks() - before
        assert left < 50


@pytest.mark.parametrize(
    "arguments", [(), ("text", True, True), (b"", True), ([QUAD, "text"], True)]
)
def test_wrong_arguments(wire: Wire, arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        wire.statements(*arguments)  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError):
        wire.columns(*arguments)  # type: ignore[arg-type, call-arg]
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
