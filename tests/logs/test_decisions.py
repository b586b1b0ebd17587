"""What the specification leaves open is decided once: all decoders keep to the table in docs/reference/logs.md."""

from __future__ import annotations

import pytest

from construct_messages.errors import LogError
from construct_messages.rdf.formats import FORMATS, JELLY, Format
from construct_messages.rdf.formats.lookup import find_format, find_syntax
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, iri, literal
from tests.support.logs.kinds import KINDS, Kind, isomorphic, read, single_bytes, write

A, B = ("<urn:a> <urn:p> <urn:o> .", "<urn:b> <urn:p> <urn:o> .")
LABEL = 'VERSION "1.2-messages"'

# the log, what is announced from outside, and the size of each message; behind them where the error is, if there is one
DECISIONS: dict[str, tuple[str, str | None, list[int | tuple[int, int]]]] = {
    "nothing at all": ("", None, []),
    "only a comment": ("# none\n", None, []),
    "a byte order mark": ("\ufeff# @message\n", None, [0]),
    "only an announcement": (f"{LABEL}\n", None, []),
    "only an announcement from outside": ("", "1.2-messages", []),
    "a document that tells nothing": (f"{A}\n{B}\n", None, [2]),
    "the same under rdfm": (f"{A}\n{B}\n", "rdfm", [2]),
    "the same under a label": (f"{A}\n{B}\n", "1.2-messages", [2]),
    "quads that come twice": (f"{A}\n{A}\n", None, [1]),
    "a delimiter ahead": (f"# @message\n{A}\n", None, [1]),
    "a delimiter at the end": (f"{A}\n# @message\n", None, [1, 0]),
    "a delimiter after a statement": (f"{A} # @message\n{B}\n", None, [1, 1]),
    "more behind the delimiter": (f"{A}\n#@messages, the next of them\n{B}\n", None, [1, 1]),
    "no delimiter": (f"{A}\n# a @message\n## @message\n{B}\n", None, [2]),
    "a comment under a label": (f"{LABEL}\n{A}\n# @message\n{B}\nMESSAGE\n", None, [2]),
    "a comment under a label from outside": (
        f"{A}\n# @message\n{B}\nMESSAGE\n",
        "1.2-messages",
        [2],
    ),
    "a plain version": (f'VERSION "1.2"\n{A}\n# @message\n{B}\n', None, [1, 1]),
    "the same announcement again": (
        f"{LABEL}\n{A}\nMESSAGE\n{LABEL}\n{B}\nMESSAGE\n",
        None,
        [1, 1],
    ),
    "the announcement from outside, too": (f"{LABEL}\n{A}\nMESSAGE\n", "1.2-messages", [1]),
    "another than from outside": (f"{LABEL}\n{A}\n", "1.1-messages", [(1, 1)]),
    "another than before": (f'{LABEL}\n{A}\nMESSAGE\nVERSION "1.1-messages"\n', None, [1, (4, 1)]),
    "an unknown one": (f'VERSION "9-messages"\n{A}\n', None, [(1, 1)]),
    "an announcement after a statement": (f"{A}\n{LABEL}\nMESSAGE\n", None, [(2, 1)]),
    "an announcement behind a delimiter": (f"# @message\n{LABEL}\n", None, [(2, 1)]),
    "an announcement under rdfm": (f"{LABEL}\n{A}\n", "rdfm", [(1, 1)]),
    "MESSAGE without an announcement": (f"{A}\nMESSAGE\n", None, [(2, 1)]),
    "MESSAGE under rdfm": (f"# @message\n{A}\n# @message\nMESSAGE\n", None, [1, (4, 1)]),
    "MESSAGE under rdfm from outside": ("MESSAGE\n", "rdfm", [(1, 1)]),
}


@pytest.mark.parametrize("format", ["nt", "nq", "ttl", "trig"])
@pytest.mark.parametrize("case", DECISIONS)
def test_all_formats_agree(case: str, format: str) -> None:
    log, announced, expected = DECISIONS[case]
    kind = Kind(find_format(format)[0], find_syntax(announced or "rdfm"))
    for chunks in ([log.encode()], single_bytes(log.encode())):
        came = read(chunks, kind, announced=announced is not None)
        found: list[int | tuple[int, int]] = [len(message) for message in came.messages]
        if came.error is not None:
            assert isinstance(came.error, LogError)
            assert came.error.number == len(came.messages) + 1
            assert came.error.position is not None
            found.append((came.error.position.line, came.error.position.column))
        assert found == expected


@pytest.mark.parametrize(
    "prefixes", [None, {"ex": "http://example.org/"}], ids=["without prefixes", "with prefixes"]
)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_joined_logs_are_a_log(kind: Kind, prefixes: dict[str, str] | None) -> None:
    subject, predicate = iri("http://example.org/s"), iri("http://example.org/p")
    logs = [
        [
            Message(),
            Message(
                [
                    Quad(subject, predicate, literal(text)),
                    Quad(Term(f"_:{text}"), predicate, subject),
                ]
            ),
            Message(),
        ]
        for text in ("a", "b")
    ]
    came = read([b"".join(write(messages, kind, prefixes) for messages in logs)], kind)
    assert came.error is None
    assert isomorphic(came.messages, [message for messages in logs for message in messages])


@pytest.mark.parametrize(
    "format", [format for format in FORMATS if format is not JELLY], ids=lambda f: f.extension
)
def test_a_byte_order_mark_alone_is_no_message(format: Format) -> None:
    kind = next(kind for kind in KINDS if kind.format is format)
    for chunks in ([b"\xef\xbb\xbf"], single_bytes(b"\xef\xbb\xbf")):
        came = read(chunks, kind)
        assert (came.messages, came.error) == ([], None)
