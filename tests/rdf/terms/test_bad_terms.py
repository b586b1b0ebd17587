"""No bad term ends a log that is read leniently: a table of them, for every reader that can meet them and every writer.

What a reader leaves out, accepts and counts is the same in every format. The data are those that people report: tags as
in a locale, halves of surrogate pairs, links relative to a page, unescaped backslashes, Virtuoso's untagged literals.
"""

from __future__ import annotations

import io
import logging
import re
from typing import Any, NamedTuple

import pytest
from pyjelly import jelly
from pyjelly.integrations.generic.generic_sink import IRI, GenericStatementSink, Literal, Triple
from pyjelly.integrations.generic.serialize import grouped_stream_to_frames
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.ioutils import write_delimited
from pyjelly.serialize.streams import SerializerOptions

from construct_messages import ConstructMessagesError, read_log, write_log
from construct_messages.errors import LogError
from construct_messages.rdf.formats import FORMATS
from construct_messages.rdf.terms import RDF
from tests.support.places import shared_path

LANG_STRING = f"{RDF}langString"
PASSED, SKIPPED = "passed as found", "left out"


class Bad(NamedTuple):
    """A term that is not RDF.

    Args:
        lines: as N-Triples and Turtle write it.
        json: as JSON-LD does; empty: it has no such term.
        jelly: as pyjelly does, which checks nothing.
        xml: the rest of an element after its name, as RDF/XML does.
        read: what a lenient reader makes of it; None: it leaves the statement out.
        action, kind: how it is counted.
    """

    lines: str
    json: str
    jelly: Any
    xml: str
    read: str | None
    action: str
    kind: str


TERMS = {
    "locale": Bad(
        '"x"@en_US',
        '{"@value": "x", "@language": "en_US"}',
        Literal("x", langtag="en_US"),
        ' xml:lang="en_US">x',
        None,
        SKIPPED,
        "a malformed language tag",
    ),
    "tag": Bad(
        '"x"@zh-classical',
        '{"@value": "x", "@language": "zh-classical"}',
        Literal("x", langtag="zh-classical"),
        ' xml:lang="zh-classical">x',
        '"x"@zh-classical',
        PASSED,
        "malformed language tag",
    ),
    "no tag": Bad('""@', "", None, "", None, SKIPPED, "a malformed language tag"),
    "direction": Bad('"x"@en--up', "", None, "", None, SKIPPED, "a malformed language tag"),
    "half": Bad(r'"a\uD800b"', r'"a\uD800b"', None, "", None, SKIPPED, "an escape of no character"),
    "half, long": Bad(r'"\U0000DC00"', "", None, "", None, SKIPPED, "an escape of no character"),
    "beyond": Bad(r'"\U00110000"', "", None, "", None, SKIPPED, "an escape of no character"),
    "backslash": Bad(r'"C:\windows"', "", None, "", None, SKIPPED, "an escape of no character"),
    "half in an IRI": Bad(
        r"<http://e/\uD83D>",
        r'{"@id": "http://e/\uD83D"}',
        None,
        "",
        None,
        SKIPPED,
        "an escape of no character",
    ),
    "line end in an IRI": Bad(r"<http://e/\u000A>", "", None, "", None, SKIPPED, "an "),
    "relative": Bad(
        "<#Wine>",
        '{"@id": "#Wine"}',
        IRI("#Wine"),
        ' rdf:resource="#Wine">',
        None,
        SKIPPED,
        "a relative IRI",
    ),
    "relative datatype": Bad(
        '"2"^^<unit/kg>',
        "",
        Literal("2", datatype="unit/kg"),
        ' rdf:datatype="unit/kg">2',
        None,
        SKIPPED,
        "a relative IRI",
    ),
    "percent": Bad(
        "<http://e/100%>",
        '{"@id": "http://e/100%"}',
        IRI("http://e/100%"),
        ' rdf:resource="http://e/100%">',
        "<http://e/100%>",
        PASSED,
        "malformed IRI",
    ),
    "datatype": Bad(
        '"1"^^<http://e/a#b#c>',
        '{"@value": "1", "@type": "http://e/a#b#c"}',
        Literal("1", datatype="http://e/a#b#c"),
        ' rdf:datatype="http://e/a#b#c">1',
        '"1"^^<http://e/a#b#c>',
        PASSED,
        "malformed IRI",
    ),
    "bracket": Bad(
        r"<http://e/\u003Cb>",
        '{"@id": "http://e/<b"}',
        IRI("http://e/<b"),
        ' rdf:resource="http://e/&lt;b">',
        None,
        SKIPPED,
        "an ",
    ),
    "space": Bad(
        "<http://e/a b>",
        '{"@id": "http://e/a b"}',
        IRI("http://e/a b"),
        ' rdf:resource="http://e/a b">',
        "<http://e/a%20b>",
        "percent-encoded",
        "IRI with a character",
    ),
    "untagged": Bad(
        f'"Wine"^^<{LANG_STRING}>',
        f'{{"@value": "Wine", "@type": "{LANG_STRING}"}}',
        Literal("Wine", datatype=LANG_STRING),
        f' rdf:datatype="{LANG_STRING}">Wine',
        f'"Wine"^^<{LANG_STRING}>',
        PASSED,
        "literal without the language tag",
    ),
    "in a triple term": Bad(
        '<<( <urn:a> <urn:b> "x"@en_US )>>',
        "",
        None,
        "",
        None,
        SKIPPED,
        "a malformed language tag",
    ),
    "of a triple term": Bad(
        '<<( "x" <urn:a> <urn:b> )>>', "", None, "", None, SKIPPED, "a term in a position"
    ),
}


def of_lines(bad: Bad, _: str) -> bytes:
    sound = "<urn:s{0}> <urn:p> <urn:o> .\n"
    line = f"<urn:s> <urn:p> {bad.lines} .\n"
    parts = (sound.format(1) + line + sound.format(2), line, sound.format(3))
    return "".join(f"# @message\n{part}" for part in parts).encode()


def of_turtle(bad: Bad, extension: str) -> bytes:
    """With lists of objects and predicates, whose other members are sound, in a string over two lines."""
    # pyoxigraph takes no long string in a triple term
    long = bad.lines if "<<(" in bad.lines else bad.lines.replace('"x"', "'''x\n'''")
    begin, end = ("<urn:g> {", "}") if extension == "trig" else ("", "")
    parts = (
        f"<urn:s1> <urn:p> {long}, <urn:o> .\n <urn:s2> <urn:q> {bad.lines} ; <urn:p> <urn:o> .",
        f"<urn:s> <urn:p> {bad.lines} .",
        "<urn:s3> :p <urn:o> .",
    )
    log = "".join(f"{begin}{part}{end}\nMESSAGE\n" for part in parts)
    return f'VERSION "1.2-messages"\nPREFIX : <urn:>\n{log}'.encode()


def of_json(bad: Bad, extension: str) -> bytes:
    sound = '{{"@id": "urn:s{0}", "urn:p": {{"@id": "urn:o"}}}}'
    node = f'{{"@id": "urn:s", "urn:p": [{bad.json}]}}'
    parts = (
        f'{{"@included": [{sound.format(1)}, {node}, {sound.format(2)}]}}',
        node,
        sound.format(3),
    )
    return "".join(
        f"--- {part}\n...\n" if extension == "yamlld" else f"{part}\n" for part in parts
    ).encode()


def of_xml(bad: Bad, _: str) -> bytes:
    sound = '<rdf:Description rdf:about="urn:s{0}"><u:p rdf:resource="urn:o"/></rdf:Description>'
    node = f'<rdf:Description rdf:about="urn:s"><u:p{bad.xml}</u:p></rdf:Description>'
    parts = (sound.format(1) + node + sound.format(2), node, sound.format(3))
    return "".join(
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:u="urn:">{part}</rdf:RDF>\n' for part in parts
    ).encode()


def of_jelly(bad: Bad, _: str) -> bytes:
    """By pyjelly."""
    sound = [Triple(IRI(f"urn:s{n}"), IRI("urn:p"), IRI("urn:o")) for n in (1, 2, 3)]
    term = Triple(IRI("urn:s"), IRI("urn:p"), bad.jelly)
    sinks = []
    for triples in ([sound[0], term, sound[1]], [term], [sound[2]]):
        sinks.append(sink := GenericStatementSink())
        for each in triples:
            sink.add(each)
    options = SerializerOptions(
        logical_type=jelly.LOGICAL_STREAM_TYPE_GRAPHS,
        params=StreamParameters(),
        lookup_preset=LookupPreset(),
    )
    log = io.BytesIO()
    for frame in grouped_stream_to_frames((sink for sink in sinks), options=options):
        write_delimited(frame, log)
    return log.getvalue()


READERS = {
    "nt": (of_lines, "lines"),
    "nq": (of_lines, "lines"),
    "ttl": (of_turtle, "lines"),
    "trig": (of_turtle, "lines"),
    "ndjsonld": (of_json, "json"),
    "yamlld": (of_json, "json"),
    "rdfxml": (of_xml, "xml"),
    "jelly": (of_jelly, "jelly"),
}
CASES = [
    pytest.param(extension, name, id=f"{extension}-{name}")
    for extension, (_, field) in READERS.items()
    for name, bad in TERMS.items()
    if getattr(bad, field)
]


def warning(caplog: pytest.LogCaptureFixture) -> str:
    (record,) = caplog.records
    caplog.clear()
    assert record.levelno == logging.WARNING
    return record.getMessage()


@pytest.mark.parametrize(("extension", "name"), CASES)
def test_no_bad_term_ends_a_log(
    extension: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = TERMS[name]
    log = READERS[extension][0](bad, extension)
    messages = list(reader := read_log(log, extension, lenient=True))
    assert len(messages) == 3
    said = warning(caplog)
    action, _, rest = said.partition(": ")
    assert action == bad.action
    assert bad.kind in re.sub(r"(\w+)s\b", r"\1", rest) or bad.kind in rest
    assert "(the first: " in rest
    assert said.isprintable()
    sound = [f"<urn:s{n}> <urn:p> <urn:o>" for n in (1, 2, 3)]
    found = [str(quad) for message in messages for quad in message]
    assert [line for line in found if not line.startswith("<urn:s>")][-1].startswith(sound[2])
    assert all(any(line.startswith(each) for line in found) for each in sound)
    objects = {quad.object for message in messages for quad in message} - {"<urn:o>"}
    assert {object.replace("\\n", "") for object in objects} == ({bad.read} - {None})
    # each statement counts, but a term of Jelly that is accepted counts where it is written
    times = 3 if extension in ("ttl", "trig") else 2
    once = extension == "jelly" and bad.read is not None
    assert reader.malformed == (1 if once else times)

    # every writer takes what was read, and a lenient reader has it again
    for format in FORMATS:
        if not format.graphs and extension == "trig":
            continue
        again = io.BytesIO()
        write_log(messages, again, format.extension)
        assert (
            format.extension,
            list(read_log(again.getvalue(), format.extension, lenient=True)),
        ) == (
            format.extension,
            messages,
        )
    caplog.clear()

    # nothing that is not RDF remains
    skipping = read_log(log, extension, lenient="skip")
    messages = list(skipping)
    assert len(messages) == 3
    assert {quad.object for message in messages for quad in message} == {"<urn:o>"}
    assert skipping.malformed == times
    assert warning(caplog).startswith(f"left out: {times} statements with a")
    for format in FORMATS:
        if format.graphs or extension != "trig":
            again = io.BytesIO()
            write_log(messages, again, format.extension)
            assert list(read_log(again.getvalue(), format.extension)) == messages


@pytest.mark.parametrize(("extension", "name"), CASES)
def test_strict_readers_refuse_all_but_untagged_literals(
    extension: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad = TERMS[name]
    log = READERS[extension][0](bad, extension)
    if name == "untagged":
        messages = list(read_log(log, extension))
        assert {quad.object for message in messages for quad in message} == {"<urn:o>", '"Wine"'}
        assert warning(caplog).startswith("read as a string: ")
        return
    try:
        messages = list(read_log(log, extension))
    except LogError as error:
        number = error.number
    else:  # JSON-LD drops them
        number = 1 if extension in ("ndjsonld", "yamlld") else 0
        assert {quad.object for message in messages for quad in message} == {"<urn:o>"}
    assert number == 1


OUT_OF_PLACE = [
    '"s" <urn:p> <urn:o>',
    '"s"@en <urn:p> <urn:o>',
    "<urn:s> _:b <urn:o>",
    '<urn:s> "p" "o"',
]


@pytest.mark.parametrize("statement", OUT_OF_PLACE)
@pytest.mark.parametrize("extension", ["nt", "nq"])
def test_terms_out_of_place(statement: str, extension: str) -> None:
    log = f"<urn:a> <urn:p> <urn:o> .\n{statement} .\n<urn:b> <urn:p> <urn:o> .".encode()
    reader = read_log(log, extension, lenient=True)
    (message,) = reader
    assert (len(message), reader.malformed) == (2, 1)


@pytest.mark.parametrize("statement", OUT_OF_PLACE[:2])
@pytest.mark.parametrize("extension", ["ttl", "trig"])
def test_literals_as_subjects(statement: str, extension: str) -> None:
    log = f"<urn:a> <urn:p> <urn:o> .\n{statement}, <urn:x> .\n<urn:b> <urn:p> <urn:o> ."
    for text, left_out in ((log, 2), (f"{statement} .", 1)):
        reader = read_log(text.encode(), extension, lenient=True)
        (message,) = reader
        assert (len(message), reader.malformed) == (2 * (left_out - 1), left_out)


BROKEN = {
    "no dot": "<urn:s> <urn:p> <urn:o>\n<urn:a> <urn:p> <urn:o> .",
    "no object": "<urn:s> <urn:p> .",
    "no end of an IRI": "<urn:s <urn:p> <urn:o> .\n<urn:a> <urn:p> <urn:o> .",
    "no end of a string": '<urn:s> <urn:p> "x .\n<urn:a> <urn:p> <urn:o> .',
    "five terms": '<urn:s> <urn:p> "x"@en_US <urn:o> <urn:o> .',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("extension", ["nt", "nq", "ttl", "trig"])
def test_what_is_no_statement_ends_a_log(text: str, extension: str) -> None:
    """Nobody knows what follows: a log may have been cut, or two terms may have become one."""
    with pytest.raises(LogError) as error:
        list(read_log(text.encode(), extension, lenient=True))
    check(error.value, text)


def check(error: ConstructMessagesError, log: str) -> None:
    """An error can be printed, and is about a place in the log."""
    assert str(error).replace("\n", "").isprintable()
    assert error.position is not None
    lines = re.split("\r\n|\r|\n", log)
    line, column = error.position
    assert line <= len(lines)
    assert column <= len(lines[line - 1]) + 1


def test_positions_behind_bad_terms() -> None:
    """Masks have the lengths of what they stand for."""
    text = r'<urn:s> <urn:p> "\uD800\x"@en_US, <http://é/\uD800>, "😀\U0000D800" <urn:o> .'
    with pytest.raises(LogError) as error:
        list(read_log(text.encode(), "ttl", lenient=True))
    assert error.value.position == (1, text.index("<urn:o>") + 1)


@pytest.mark.parametrize("extension", ["nt", "ttl", "trig", "ndjsonld", "yamlld"])
def test_characters_of_private_use_are_kept(extension: str) -> None:
    """Masks are characters that the text does not have, be it as an escape."""
    chars = "\ue000\ue001\ue002\ue003"
    if extension.endswith("ld"):
        values = ["\\ue004", *chars, "\\uD800"]
        joined = ", ".join(f'"{value}"' for value in values)
        log = f'{{"@id": "urn:s", "urn:p": [{joined}]}}'
    else:
        values = ["\\uE004", *chars, "\\uD800"]
        log = "\n".join(f'<urn:s> <urn:p> "{value}" .' for value in values)
    reader = read_log(log.encode(), extension, lenient=True)
    (message,) = reader
    assert {quad.object for quad in message} == {f'"{char}"' for char in f"{chars}\ue004"}
    assert reader.malformed == 1


@pytest.mark.parametrize("extension", ["nt", "ttl", "trig"])
def test_a_long_log(extension: str, caplog: pytest.LogCaptureFixture) -> None:
    """One of a thousand statements is bad; all others are read, and each kind is counted."""
    count, bad = 20_000, [term for term in TERMS.values() if "<<(" not in term.lines]
    log = "".join(
        f"<urn:s{n}> <urn:p> {bad[n // 500 % len(bad)].lines if n % 500 == 0 else f'{chr(34)}{n}{chr(34)}'} .\n"
        + ("# @message\n" if n % 7 == 0 else "")
        for n in range(count)
    )
    messages = list(read_log(log.encode(), extension, lenient=True))
    found = {str(quad) for message in messages for quad in message}
    assert {f'<urn:s{n}> <urn:p> "{n}" .' for n in range(count) if n % 500} <= found
    left_out = sum(bad[n // 500 % len(bad)].read is None for n in range(0, count, 500))
    assert len(found) == count - left_out
    assert len(messages) == log.count("# @message") + 1
    numbers = map(int, re.findall(r"(\d+) statements? with", warning(caplog).partition(";")[0]))
    assert sum(numbers) == left_out


W3C = "suites/w3c/rdf/rdf11"


@pytest.mark.suite
@pytest.mark.parametrize("folder", ["rdf-n-triples", "rdf-n-quads", "rdf-turtle", "rdf-trig"])
def test_negative_tests_of_the_w3c(folder: str) -> None:
    """None is read as something else: its statement is left out, or an error is within the text. Terms end no log."""
    ended = set()
    for path in sorted((shared_path(W3C) / folder).glob("*-bad-*.*")):
        text = path.read_text()
        log = f"<urn:a> <urn:p> <urn:o> .\n{text}\n<urn:b> <urn:p> <urn:o> ."
        reader = read_log(log.encode(), path.suffix[1:], lenient=True)
        try:
            messages = list(reader)
        except ConstructMessagesError as error:
            ended.add(path.stem)
            check(error, log)
            continue
        found = [str(quad) for message in messages for quad in message]
        assert {"<urn:a> <urn:p> <urn:o> .", "<urn:b> <urn:p> <urn:o> ."} <= set(found), path
        # pyoxigraph reads an escape that no name has as the characters after its backslash
        assert reader.malformed or "bad-pname" in path.name, path
    terms = re.compile(r"-(?:bad-(?:esc|uri|uri-escape|lang)-\d+)$")
    assert not [name for name in ended if terms.search(name)]
