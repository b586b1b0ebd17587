"""Tokens longer than any buffer, in every format: nothing before, in or behind them is lost, however the log comes.

The logs are texts (and frames that pyjelly's classes make), never what our encoders write. A token has more bytes than
are read from a file or taken apart at a time, so that it always goes on in a next piece.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final

import pytest
from google.protobuf.proto import serialize_length_prefixed
from pyjelly import jelly

from construct_messages import Message, Quad, iri, literal, read_log
from construct_messages.rdf.formats.lookup import find_format
from tests.support.logs.kinds import Kind, read, single_bytes

pytestmark = pytest.mark.slow

LONG: Final = 70_000
"""More than 64 KiB, which is what most parts of readers and parsers take at a time."""

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
S, P, O = iri("urn:s"), iri("urn:p"), iri("urn:o")  # noqa: E741 - the usual letter for an object
X: Final = "x" * LONG
FIRST, LAST = Message([Quad(S, P, literal("first"))]), Message([Quad(S, P, literal("last"))])
AS_IT_WAS: Final = Message([Quad(S, P, O)])


def with_object(value: str, datatype: str | None = None) -> Message:
    return Message([Quad(S, P, literal(value, datatype=datatype))])


LONG_IRI: Final = Message([Quad(iri(f"urn:{X}"), P, iri(f"urn:{X}"))])
ESCAPES: Final = r"\u00E9" * (LONG // 6)
QUOTES: Final = r"\"" * LONG
ESCAPED: Final = "é" * (LONG // 6)

# the part of a log between its first message and its last, and the message that it is; None: it has no quads
LINES: Final[dict[str, tuple[str, Message | None]]] = {
    "comment": (f"#{X}\n", None),
    "comment behind": (f"<urn:s> <urn:p> <urn:o> . #{X}\n", AS_IT_WAS),
    "comments": (f"# {'c' * 99}\n" * (LONG // 100), None),
    "blanks": (f"<urn:s>{' ' * LONG}<urn:p> <urn:o> .\n", AS_IT_WAS),
    "blank lines": ("\n" * LONG, None),
    "IRI": (f"<urn:{X}> <urn:p> <urn:{X}> .\n", LONG_IRI),
    "literal": (f'<urn:s> <urn:p> "{X}" .\n', with_object(X)),
    "datatype": (f'<urn:s> <urn:p> "v"^^<urn:{X}> .\n', with_object("v", datatype=f"urn:{X}")),
    "escapes": (f'<urn:s> <urn:p> "{ESCAPES}" .\n', with_object(ESCAPED)),
    "quotes": (f'<urn:s> <urn:p> "{QUOTES}" .\n', with_object('"' * LONG)),
    "statements": (
        "".join(f'<urn:s> <urn:p> "{number}" .\n' for number in range(LONG // 20)),
        Message(Quad(S, P, literal(str(number))) for number in range(LONG // 20)),
    ),
}
TURTLE: Final = LINES | {
    "long string": (f'<urn:s> <urn:p> """{X}\n{X}""" .\n', with_object(f"{X}\n{X}")),
    "quotes in a long string": (
        f"<urn:s> <urn:p> '''{chr(39) * 2}x{X}''' .\n",
        with_object(f"''x{X}"),
    ),
    "prefix": (f"PREFIX {'p' * LONG}: <urn:>\n{'p' * LONG}:s <urn:p> <urn:o> .\n", AS_IT_WAS),
    "namespace": (f"PREFIX p: <urn:{X}>\np: <urn:p> p: .\n", LONG_IRI),
    "name": (f"PREFIX p: <urn:>\np:{X} <urn:p> p:{X} .\n", LONG_IRI),
    "number": (
        f"<urn:s> <urn:p> {'1' * LONG} .\n",
        with_object("1" * LONG, datatype="http://www.w3.org/2001/XMLSchema#integer"),
    ),
    "objects": (
        f"<urn:s> <urn:p> {', '.join(chr(34) + str(n) + chr(34) for n in range(LONG // 8))} .\n",
        Message(Quad(S, P, literal(str(number))) for number in range(LONG // 8)),
    ),
    "semicolons": (f"<urn:s> <urn:p> <urn:o> {';' * LONG} .\n", AS_IT_WAS),
}
JSON: Final = {
    "id": (f'{{"@id": "urn:{X}", "urn:p": {{"@id": "urn:{X}"}}}}', LONG_IRI),
    "value": (f'{{"@id": "urn:s", "urn:p": "{X}"}}', with_object(X)),
    "escapes": (f'{{"@id": "urn:s", "urn:p": "{ESCAPES}"}}', with_object(ESCAPED)),
    "key": (
        f'{{"@context": {{"{X}": "urn:p"}}, "@id": "urn:s", "{X}": {{"@id": "urn:o"}}}}',
        AS_IT_WAS,
    ),
    "blanks": (f'{{"@id":{" " * LONG}"urn:s", "urn:p": {{"@id": "urn:o"}}}}', AS_IT_WAS),
    "values": (
        f'{{"@id": "urn:s", "urn:p": [{", ".join(chr(34) + str(n) + chr(34) for n in range(LONG // 8))}]}}',
        Message(Quad(S, P, literal(str(number))) for number in range(LONG // 8)),
    ),
}
YAML: Final = JSON | {
    # an implicit key has at most 1,024 characters (YAML 1.2.2, section 7.4.2)
    "key": (
        f'"@context":\n  ? "{X}"\n  : "urn:p"\n"@id": "urn:s"\n? "{X}"\n: {{"@id": "urn:o"}}',
        AS_IT_WAS,
    ),
    "comment": (f"# {X}\n'@id': urn:s\nurn:p: {{'@id': urn:o}}", AS_IT_WAS),
    "comment behind": (f"'@id': urn:s # {X}\nurn:p: {{'@id': urn:o}}", AS_IT_WAS),
    "plain scalar": (f"'@id': urn:s\nurn:p: {X}", with_object(X)),
    "single quotes": (f"'@id': urn:s\nurn:p: '{X}'", with_object(X)),
    "block scalar": (f"'@id': urn:s\nurn:p: |\n  {X}\n  {X}", with_object(f"{X}\n{X}\n")),
    "folded scalar": (f"'@id': urn:s\nurn:p: >-\n  {X}\n  {X}", with_object(f"{X} {X}")),
    "blank lines": (f"'@id': urn:s\n{chr(10) * LONG}urn:p: {{'@id': urn:o}}", AS_IT_WAS),
}


def _xml(content: str, attributes: str = "") -> str:
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:n="urn:"{attributes}>{content}</rdf:RDF>'


def _about(content: str) -> str:
    return _xml(f'<rdf:Description rdf:about="urn:s">{content}</rdf:Description>')


XML: Final = {
    "comment": (
        f"<!--{X}-->{_about('<n:p rdf:resource=' + chr(34) + 'urn:o' + chr(34) + '/>')}",
        AS_IT_WAS,
    ),
    "comment within": (_about(f'<!--{X}--><n:p rdf:resource="urn:o"/>'), AS_IT_WAS),
    "instruction": (_about(f'<?x {X}?><n:p rdf:resource="urn:o"/>'), AS_IT_WAS),
    "IRI": (
        _xml(
            f'<rdf:Description rdf:about="urn:{X}"><n:p rdf:resource="urn:{X}"/></rdf:Description>'
        ),
        LONG_IRI,
    ),
    "text": (_about(f"<n:p>{X}</n:p>"), with_object(X)),
    "CDATA": (_about(f"<n:p><![CDATA[{X}]]></n:p>"), with_object(X)),
    "character references": (_about(f"<n:p>{'&#xE9;' * (LONG // 6)}</n:p>"), with_object(ESCAPED)),
    "a character reference": (_about(f"<n:p>&#{'0' * LONG}233;</n:p>"), with_object("é")),
    "entities": (_about(f"<n:p>{'&amp;' * (LONG // 5)}</n:p>"), with_object("&" * (LONG // 5))),
    "datatype": (
        _about(f'<n:p rdf:datatype="urn:{X}">v</n:p>'),
        with_object("v", datatype=f"urn:{X}"),
    ),
    "namespace": (
        _xml(
            '<rdf:Description rdf:about="urn:s"><m:p rdf:resource="urn:o"/></rdf:Description>',
            f' xmlns:m="urn:{X}"',
        ),
        Message([Quad(S, iri(f"urn:{X}p"), O)]),
    ),
    "attribute on the root": (
        _xml(
            '<rdf:Description rdf:about="urn:s"><n:p rdf:resource="urn:o"/></rdf:Description>',
            f' xmlns:unused="urn:{X}"',
        ),
        AS_IT_WAS,
    ),
    "name": (_about(f'<n:{X} rdf:resource="urn:o"/>'), Message([Quad(S, iri(f"urn:{X}"), O)])),
    "blanks": (_about(f'<n:p{" " * LONG}rdf:resource="urn:o"/>'), AS_IT_WAS),
    "blanks between": (_about(f'{" " * LONG}<n:p rdf:resource="urn:o"/>'), AS_IT_WAS),
}


def lines(message: Message) -> str:
    return "".join(f"{quad}\n" for quad in message)


def json_of(text: str) -> str:
    return f'{{"@id": "urn:s", "urn:p": "{text}"}}'


def logs() -> Iterator[tuple[str, str, bytes, list[Message]]]:
    """By format and case, each token in the middle of a log."""
    for extension, cases in (
        ("nq", LINES),
        ("trig", TURTLE),
    ):  # N-Triples and Turtle have the same decoders
        for name, (part, message) in cases.items():
            first, last = lines(FIRST), lines(LAST)
            log = f"# @message\n{first}# @message\n{part}# @message\n{last}"
            yield extension, name, log.encode(), [FIRST, message or Message(), LAST]
    for name, (part, message) in JSON.items():
        yield (
            "ndjsonld",
            name,
            f"{json_of('first')}\n{part}\n{json_of('last')}\n".encode(),
            [FIRST, message or Message(), LAST],
        )
    for name, (part, message) in YAML.items():
        log = f"---\n{json_of('first')}\n...\n---\n{part}\n...\n---\n{json_of('last')}\n...\n"
        yield "yamlld", name, log.encode(), [FIRST, message or Message(), LAST]
    for name, (part, message) in XML.items():
        first, last = (_about(f"<n:p>{text}</n:p>") for text in ("first", "last"))
        yield (
            "rdfxml",
            name,
            f"{first}\n{part}\n{last}\n".encode(),
            [FIRST, message or Message(), LAST],
        )
    for name, frame, message in jelly_frames():
        stream = BytesIO()
        for each in (_frame(OPTIONS, *_triple("first")), frame, _frame(*_triple("last"))):
            serialize_length_prefixed(each, stream)
        yield "jelly", name, stream.getvalue(), [FIRST, message, LAST]


# --- Jelly, by the classes of rdf.proto ---

OPTIONS: Final = jelly.RdfStreamRow(
    options=jelly.RdfStreamOptions(
        physical_type=jelly.PHYSICAL_STREAM_TYPE_TRIPLES,
        logical_type=jelly.LOGICAL_STREAM_TYPE_GRAPHS,
        max_name_table_size=16,
        max_datatype_table_size=8,
        version=1,
    )
)


def _frame(*rows: jelly.RdfStreamRow, **more: bytes) -> jelly.RdfStreamFrame:
    return jelly.RdfStreamFrame(rows=rows, metadata=more)


def _name(number: int, value: str) -> jelly.RdfStreamRow:
    return jelly.RdfStreamRow(name=jelly.RdfNameEntry(id=number, value=value))


def _iri(number: int) -> jelly.RdfIri:
    return jelly.RdfIri(name_id=number)


def _triple(value: str, **kind: int | str) -> list[jelly.RdfStreamRow]:
    statement = jelly.RdfTriple(
        s_iri=_iri(1), p_iri=_iri(2), o_literal=jelly.RdfLiteral(lex=value, **kind)
    )
    return [_name(1, "urn:s"), _name(2, "urn:p"), jelly.RdfStreamRow(triple=statement)]


def jelly_frames() -> Iterator[tuple[str, jelly.RdfStreamFrame, Message]]:
    yield "literal", _frame(*_triple(X)), with_object(X)
    datatype = jelly.RdfStreamRow(datatype=jelly.RdfDatatypeEntry(id=1, value=f"urn:{X}"))
    yield (
        "datatype",
        _frame(datatype, *_triple("v", datatype=1)),
        with_object("v", datatype=f"urn:{X}"),
    )
    same = jelly.RdfTriple(s_iri=_iri(3), p_iri=_iri(2), o_iri=_iri(3))
    yield "name", _frame(_name(3, f"urn:{X}"), jelly.RdfStreamRow(triple=same)), LONG_IRI
    yield "metadata", _frame(*_triple("v"), x=X.encode()), with_object("v")
    many = [row for number in range(LONG // 40) for row in _triple(str(number))]
    yield (
        "rows",
        _frame(*many),
        Message(Quad(S, P, literal(str(number))) for number in range(LONG // 40)),
    )


# --- however it comes ---

ALL: Final = list(logs())
by_log = pytest.mark.parametrize(
    ("extension", "log", "expected"),
    [
        pytest.param(extension, log, expected, id=f"{extension}-{name}")
        for extension, name, log, expected in ALL
    ],
)


def whole(log: bytes) -> list[bytes]:
    return [log]


def in_pieces(log: bytes) -> list[bytes]:
    return [log[start : start + (1 << 16)] for start in range(0, len(log), 1 << 16)]


def in_odd_pieces(log: bytes) -> list[bytes]:
    return [log[start : start + 4099] for start in range(0, len(log), 4099)]


def kind_of(extension: str) -> Kind:
    format, _ = find_format(extension)
    syntax = format.own or find_format(f"{format.media_type}; messages=rdfm")[1]
    assert syntax is not None
    return Kind(format, syntax)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("split", [whole, in_pieces, in_odd_pieces, single_bytes])
@by_log
def test_nothing_is_lost(
    extension: str, log: bytes, expected: list[Message], split: Callable[[bytes], list[bytes]]
) -> None:
    came = read(split(log), kind_of(extension))
    assert came.error is None
    assert [set(message) for message in came.messages] == [set(message) for message in expected]


@by_log
def test_from_packed_bytes(extension: str, log: bytes, expected: list[Message]) -> None:
    """Unpacked in pieces, and told by its first bytes."""
    reader = read_log(BytesIO(gzip.compress(log)))
    assert [set(message) for message in reader] == [set(message) for message in expected]
    assert reader.format is not None
    # three terms in angle brackets, or a long line without an end, are TriG as well
    assert reader.format.extension in (
        {"nq", "trig"} if extension in ("nq", "trig") else {extension}
    )


@by_log
def test_a_cut_within_it_is_an_error(extension: str, log: bytes, expected: list[Message]) -> None:
    """Or what stands before: the token itself is never taken for a shorter one."""
    for end in (len(log) // 2, len(log) // 2 + 1, len(log) * 3 // 5):
        came = read(in_odd_pieces(log[:end]), kind_of(extension))
        beginning = [set(message) for message in came.messages]
        if came.error is not None:
            assert beginning == [set(message) for message in expected[: len(beginning)]]
        else:
            assert beginning[:1] == [set(FIRST)]
            assert all(
                some <= set(message) for some, message in zip(beginning, expected, strict=False)
            )
