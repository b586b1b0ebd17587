"""Every format and compression cut at every byte: an error, or one of the exceptions that docs/reference/logs.md lists.

The log that is cut has what other programs and the specification have in theirs (`tests/support/logs/documents`), and
is written by our encoders; what is read of its beginning is the beginning of what is read of all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from construct_messages import Message, Quad, blank, iri, literal, read_log
from construct_messages.errors import LogError
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.files.unpacking import COMPRESSIONS
from construct_messages.rdf.formats import JELLY, N_QUADS, N_TRIPLES, YAML_LD, Format
from tests.support.logs.archives import archive
from tests.support.logs.kinds import KINDS, Kind, Reading, isomorphic, read, write

S, P, Q, O, G = (iri(f"http://example.org/{name}") for name in "spqog")  # noqa: E741 - the usual letter for an object

PREFIXES = {"ex": "http://example.org/"}


def messages(format: Format) -> list[Message]:
    """What shows a cut: IRIs that begin others, several objects, literals over lines, blank nodes, empty messages."""
    graph = G if format.graphs else None
    return [
        Message(
            [
                Quad(S, P, iri("http://example.org/o2"), graph),
                Quad(S, P, O, graph),
                Quad(S, Q, literal("a\n b")),
            ]
        ),
        Message(),
        Message(
            [
                Quad(blank("x"), P, blank("y"), graph),
                Quad(blank("y"), P, literal("12", language="en")),
            ]
        ),
        Message([Quad(S, P, literal(str(number))) for number in (12, 1, 123)]),
        Message(
            [
                Quad(O, P, literal("\n".join(("", "---", "...", "MESSAGE", "# @message", "")))),
                Quad(O, Q, S),
            ]
        ),
        Message(),
    ]


def read_from_start(data: bytes, kind: Kind) -> Reading:
    return read([data], kind)


def outcomes(log: bytes, kind: Kind) -> dict[int, list[Message]]:
    """What came of each beginning of the log that was read without an error, by its length."""
    found = {}
    for end in range(len(log)):
        came = read_from_start(log[:end], kind)
        if came.error is None:
            found[end] = came.messages
    return found


def is_beginning(some: Sequence[Message], whole: Sequence[Message]) -> bool:
    return isomorphic(some, whole[: len(some)])


# how prefixes are written is the same in all kinds of a format, and two formats write none
WITH_PREFIXES = {kind.format: kind for kind in KINDS if kind.format not in (N_TRIPLES, N_QUADS)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "prefixes"),
    [
        *(pytest.param(kind, None, id=f"plain-{kind}") for kind in KINDS),
        *(pytest.param(kind, PREFIXES, id=f"prefixes-{kind}") for kind in WITH_PREFIXES.values()),
    ],
)
def test_cut_at_every_byte(kind: Kind, prefixes: dict[str, str] | None) -> None:
    """No cut changes a message; a log of messages that delimit themselves is cut between two of them, if unnoticed."""
    written = messages(kind.format)
    log = write(written, kind, prefixes)
    whole = read_from_start(log, kind)
    assert whole.error is None
    assert isomorphic(whole.messages, written)
    unnoticed = outcomes(log, kind)
    first_end = end_of_first_document(log) if kind.format is YAML_LD else 0
    ends = ends_of_messages(written, kind, prefixes)
    for end, came in unnoticed.items():
        where = f"{kind} cut at {end}: {log[:end][-60:]!r}"
        if kind.format is YAML_LD and end < first_end:
            continue  # the first document: none before it told how they end
        if kind.format.own is not None:
            assert end in ends, where
            assert is_beginning(came, written), where
        else:
            assert is_beginning_of_statements(came, written), where


def end_of_first_document(log: bytes) -> int:
    return log.index(b"\n...\n") + len(b"\n...")


def ends_of_messages(
    written: Sequence[Message], kind: Kind, prefixes: dict[str, str] | None
) -> set[int]:
    """Where a log may be cut unnoticed: between messages, and before the line end or in the marker of one."""
    lengths = [len(write(written[:count], kind, prefixes)) for count in range(len(written) + 1)]
    if kind.format is JELLY:
        return {0, *lengths[1:]}
    # a line end that is missing is not missed
    return {0, *lengths, *(length - 1 for length in lengths if length)}


def is_beginning_of_statements(came: Sequence[Message], written: Sequence[Message]) -> bool:
    """Whether the messages are the first ones, of which the last may lack statements, but holds no others."""
    if not came:
        return True
    *whole, last = came
    if not is_beginning(whole, written) or len(came) > len(written):
        return False
    statements = list(written[len(whole)])
    return any(last.isomorphic(Message(statements[:count])) for count in range(len(statements) + 1))


@pytest.mark.slow
# the compression notices the cut, whichever format is in it
@pytest.mark.parametrize("name", ["log", "stdin"])
@pytest.mark.parametrize("extension", COMPRESSIONS)
@pytest.mark.parametrize("format", [N_QUADS, JELLY], ids=lambda format: format.extension)
def test_a_packed_log_cut_at_every_byte(
    format: Format, extension: str, name: str, tmp_path: Path
) -> None:
    """Told by its name or by its bytes."""
    kind = next(kind for kind in KINDS if kind.format is format)
    path = tmp_path / f"log.{format.extension}{extension}"
    with atomic_file(path) as file:
        file.write(write(messages(format), kind))
    packed = path.read_bytes()
    for end in range(1 if name == "stdin" else 0, len(packed)):
        if name == "log":
            path.write_bytes(packed[:end])
        with pytest.raises(LogError):
            list(read_log(path if name == "log" else packed[:end], format.extension))


# --- YAML-LD: a document in block style that was cut is often another document ---


def test_the_cuts_of_a_yaml_log() -> None:
    """Two nodes with objects of which one begins the other, as in issue 26; 166 of 774 cuts went unnoticed."""
    kind = next(kind for kind in KINDS if kind.format is YAML_LD)
    written = [
        Message([Quad(S, P, iri(f"http://example.org/o{number}{end}")) for end in ("", "2")])
        for number in range(8)
    ]
    log = write(written, kind, PREFIXES)
    unnoticed = outcomes(log, kind)
    ends = ends_of_messages(written, kind, PREFIXES)
    assert set(unnoticed) <= ends | set(range(end_of_first_document(log)))
    assert all(is_beginning(came, written) for came in unnoticed.values())


def test_a_cut_archive(tmp_path: Path) -> None:
    """A tar archive that lacks a byte of its files or its end marker is an error; zeros behind that are padding."""
    files = [
        (f"{number:010}.nt", f'<urn:s> <urn:p> "{number}" .\n'.encode() * 30) for number in range(3)
    ]
    whole = archive(*files)
    marker = whole.rstrip(b"\0")
    end = -(-len(marker) // 512) * 512
    for cut in {*range(0, end + 512, 37), end - 1, end, end + 511}:
        (tmp_path / "log.tar").write_bytes(whole[:cut])
        with pytest.raises(LogError):
            list(read_log(tmp_path / "log.tar"))
    assert len(list(read_log(whole[: end + 512], "nt"))) == len(list(read_log(whole))) == 3
