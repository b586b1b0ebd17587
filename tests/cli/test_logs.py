"""The commands that write logs: `convert`, `cat`, `head`, `tail`, `slice`."""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest
import rdflib
from rdflib.compare import isomorphic

from construct_messages import read_log, write_log
from construct_messages.cli import build_parser
from construct_messages.rdf.formats import FORMATS
from tests.support.commands import COMMAND, ENVIRONMENT, Done
from tests.support.logs.archives import archive
from tests.support.logs.cases.commands import Here, sizes
from tests.support.places import ROOT

pytestmark = pytest.mark.usefixtures("place")

EXTENSIONS = [format.extension for format in FORMATS]


# --- convert --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), list(product(EXTENSIONS, repeat=2)))
def test_any_format_to_any(one: str, other: str, here: Here) -> None:
    assert here("convert", "log.ttl", f"one.{one}.gz") == Done(0, "", "")
    assert here("convert", f"one.{one}.gz", f"other.{other}.zst") == Done(0, "", "")
    assert sizes(f"other.{other}.zst") == [2, 0, 2, 1]
    assert here("diff", "log.ttl", f"other.{other}.zst") == Done(0, "", "")


@pytest.mark.parametrize(
    ("one", "other"), [("nq", "jelly"), ("jelly", "trig"), ("ndjsonld", "rdfxml"), ("yamlld", "nt")]
)
def test_pipes(one: str, other: str, place: Path) -> None:
    write_log(read_log("log.ttl"), f"one.{one}")
    packed = gzip.compress((place / f"one.{one}").read_bytes())
    done = subprocess.run(
        [*COMMAND, "convert", "-", "-", "--format", other],
        input=packed,
        capture_output=True,
        env=ENVIRONMENT,
        check=True,
    )
    assert done.stderr == b""
    assert [len(message) for message in read_log(done.stdout)] == [2, 0, 2, 1]


DOCUMENTS = {"jsonld": "json-ld", "rdf": "pretty-xml", "xml": "xml"}
"""The extension of a document, and the name of its format in rdflib."""


@pytest.mark.parametrize("extension", DOCUMENTS)
@pytest.mark.parametrize("by_name", [True, False])
def test_a_document_of_several_lines_is_one_message(
    extension: str, by_name: bool, here: Here, place: Path
) -> None:
    graph = rdflib.Graph().parse(data='<urn:s> <urn:p> [ <urn:q> "a\\nb" ], <urn:o> .')
    written = graph.serialize(format=DOCUMENTS[extension])
    assert written.count("\n") > 4
    name = f"document.{extension}" if by_name else "document"
    (place / name).write_text(written)
    assert here("validate", name).status == 0
    assert here("convert", name, "out.nq") == Done(0, "", "")
    (message,) = read_log("out.nq")
    assert isomorphic(message.to_rdflib().default_graph, graph)
    lines = written.splitlines(keepends=True)
    for end in range(1, len(lines)):  # a document that ends early is no message
        (place / name).write_text("".join(lines[:end]))
        assert here("convert", name, "cut.nq").status == 3
    (place / name).write_text(written + written)
    assert here("convert", name, "cut.nq").status == 3
    assert not (place / "cut.nq").exists()


# --- cat ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_cat_joins_logs_of_all_formats(extension: str, here: Here) -> None:
    assert here("convert", "log.ttl", f"one.{extension}.gz") == Done(0, "", "")
    names = ["log.ttl", f"one.{extension}.gz", "log.ttl"]
    assert here("cat", *names, "--output", f"joined.{extension}") == Done(0, "", "")
    assert sizes(f"joined.{extension}") == [2, 0, 2, 1] * 3
    assert here("cat", "--count", *names) == Done(0, "12\n", "")
    assert here("cat", "--count", *names, "--output", "counted.nq") == Done(0, "12\n", "")
    assert sizes("counted.nq") == [2, 0, 2, 1] * 3


def test_cat_writes_as_its_first_log(here: Here) -> None:
    done = here("cat", "named.trig", "log.ttl")
    assert done.log.startswith("# @message\nPREFIX ex: <http://example.org/>\n\nex:g {")
    assert here("convert", "log.ttl", "labelled.nt", "--syntax", "1.2-messages") == Done(0, "", "")
    assert here("cat", "labelled.nt", "log.ttl").log.startswith('VERSION "1.2-messages"\n<http')
    assert here(
        "cat", "log.ttl", "named.trig", "--format", "jelly", "--output", "out.jelly"
    ) == Done(0, "", "")
    assert len(sizes("out.jelly")) == 6


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["log.ttl", "broken.nt", "--output", "out.nq"],
            3,
            "in broken.nt: line 3, column 16: message 2",
        ),
        (["log.ttl", "nosuch.nt", "--count"], 2, "cannot read nosuch.nt"),
        (
            ["log.ttl", "named.trig", "--format", "nt", "--output", "out.nt"],
            2,
            "N-Triples has no named graphs",
        ),
        (["log.ttl", "--label-prefix", "X"], 2, "the prefix 'X' of labels"),
    ],
)
def test_what_cat_refuses(
    arguments: list[str], status: int, message: str, here: Here, place: Path
) -> None:
    done = here("cat", *arguments)
    assert (done.status, done.log) == (status, "")
    assert message in done.errors
    assert not list(place.glob("out.*"))


def test_convert_skolemizes_all_blank_nodes(here: Here) -> None:
    """Issue 13: with IRIs that no other log has."""
    Path("some.nt").write_text(
        "# @message\n_:t1 <urn:p> _:d1 .\n# @message\n_:t1 <urn:p> <urn:o> .\n"
    )
    genid = "https://example.org/.well-known/genid/"
    found = []
    for name in ("one.nt", "other.nt"):
        assert here("convert", "some.nt", name, "--skolemize", genid) == Done(0, "", "")
        assert "_:" not in (text := Path(name).read_text())
        assert text.count(genid) == 3
        found.append({quad.subject for message in read_log(name) for quad in message})
    assert [len(subjects) for subjects in found] == [1, 1]
    assert not found[0] & found[1]
    assert here("convert", "some.nt", "out.nt", "--skolemize", "genid").status == 2


WRITTEN: dict[str, tuple[list[str], str]] = {
    "N-Quads by default": (
        ["convert", "named.trig", "-"],
        '# @message\n<http://example.org/a> <http://example.org/p> "1"',
    ),
    "by the extension": (["convert", "log.ttl", "out.trig.gz"], ""),
    "prefixes": (
        ["convert", "log.ttl", "-", "--format", "trig"],
        "# @message\nPREFIX ex: <http://example.org/>\nPREFIX later: <http://example.org/later#>\n\nex:a ex:p 1 ,",
    ),
    "a label": (
        ["convert", "log.ttl", "-", "--syntax", "1.2-messages"],
        'VERSION "1.2-messages"\n<http://example.org/a>',
    ),
    "a media type": (
        ["convert", "log.ttl", "-", "--format", "application/n-triples; version=1.1-messages"],
        'VERSION "1.1-messages"\n<http://example.org/a>',
    ),
    "folded": (
        ["convert", "named.trig", "-", "--fold", "--format", "ttl"],
        "# @message\nPREFIX ex: <http://example.org/>\n\nex:g <http://www.w3.org/1999/02/22-rdf-syntax-ns#contains",
    ),
    "head": (
        ["head", "log.ttl", "-n", "1"],
        "# @message\nPREFIX ex: <http://example.org/>\nPREFIX later: <http://example.org/later#>\n\nex:a ex:p 1 ,",
    ),
    "the syntax that is read": (
        ["head", "labelled.nt"],
        'VERSION "1.2-basic-messages"\n<http://example.org/a>',
    ),
    "another": (
        ["head", "labelled.nt", "--syntax", "rdfm"],
        "# @message\n<http://example.org/a>",
    ),
    "none, where there is none": (
        ["head", "labelled.nt", "--format", "jelly", "--output", "head.jelly"],
        "",
    ),
    "a slice": (
        ["slice", "log.ttl", "--from", "3", "--count", "1", "--format", "ttl"],
        "# @message\nPREFIX ex: <http://example.org/>\nPREFIX later: <http://example.org/later#>\n\n_:",
    ),
    "nothing": (["head", "log.ttl", "--count", "0"], ""),
    "a base": (
        ["convert", "relative", "-", "--base", "http://example.org/"],
        "# @message\n<http://example.org/s> <http://example.org/p>",
    ),
    "a context": (
        ["convert", "named.ndjsonld", "-", "--context", "http://example.org/c?a=b=context.json"],
        '# @message\n<urn:s> <http://example.org/p> "o" .\n',
    ),
    "an input format": (
        ["convert", "text.txt", "-", "--input-format", "ndjson"],
        '# @message\n<urn:s> <urn:p> "o" .\n',
    ),
    "an input syntax": (
        ["head", "silent.nt", "--input-syntax", "1.2-messages"],
        'VERSION "1.2-messages"\n<urn:s> <urn:p> <urn:o> .\nMESSAGE\n',
    ),
    "an archive": (
        ["convert", "stream.tar.gz", "-"],
        "# @message\n<urn:s> <urn:p> <urn:o> .\n# @message\n",
    ),
    "the first of an archive": (
        ["head", "stream.tar.gz", "-n1"],
        "# @message\n<urn:s> <urn:p> <urn:o> .\n",
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_written(case: str, here: Here, place: Path) -> None:
    write_log(read_log("log.ttl"), "labelled.nt", syntax="1.2-basic-messages")
    files = {
        "relative": "<s> <p> <o> .",
        "context.json": '{"@context": {"p": "http://example.org/p"}}',
        "named.ndjsonld": '{"@context": "http://example.org/c?a=b", "@id": "urn:s", "p": "o"}\n',
        "text.txt": '{"@id": "urn:s", "urn:p": "o"}\n',
        "silent.nt": "<urn:s> <urn:p> <urn:o> .\nMESSAGE\n",
    }
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    (place / "stream.tar.gz").write_bytes(
        gzip.compress(archive(("0.nt", b"<urn:s> <urn:p> <urn:o> ."), ("1.nt", b"")))
    )
    arguments, log = WRITTEN[case]
    done = here(*arguments)
    assert (done.status, done.errors) == (0, "")
    if log:
        assert done.log.startswith(log)
    else:
        assert done.log == ""


def test_what_is_folded_is_unfolded(here: Here) -> None:
    assert here("convert", "named.trig", "folded.ttl", "--fold") == Done(0, "", "")
    assert sizes("folded.ttl") == [5, 5]
    assert here("convert", "folded.ttl", "unfolded.jelly", "--unfold") == Done(0, "", "")
    assert here("diff", "named.trig", "unfolded.jelly") == Done(0, "", "")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["head"], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (["head", "-n", "3"], [0, 1, 2]),
        (["head", "--count", "1000"], list(range(20))),
        (["slice"], list(range(20))),
        (["slice", "--from", "18"], [17, 18, 19]),
        (["slice", "--from", "5", "--count", "2"], [4, 5]),
        (["slice", "--from", "21"], []),
        (["slice", "--count", "0"], []),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else "",
)
def test_ranges(arguments: list[str], expected: list[int], here: Here, place: Path) -> None:
    log = "".join(f'# @message\n<urn:s> <urn:p> "{number}" .\n' for number in range(20))
    (place / "numbers.nq").write_text(log, encoding="utf-8")
    command, *options = arguments
    done = here(command, "numbers.nq", *options)
    assert (done.status, done.errors) == (0, "")
    assert re.findall(r'"(\d+)"', done.log) == list(map(str, expected))


@pytest.mark.parametrize("command", ["head", "slice", "tail"])
def test_the_output_may_follow_the_log(command: str, here: Here) -> None:
    labels = ("--label-prefix", "b")
    assert here(command, "log.ttl", "-", *labels) == here(command, "log.ttl", *labels)
    assert here(command, "log.ttl", "out.nq") == Done(0, "", "")
    assert here(command, "log.ttl", "--output", "same.nq") == Done(0, "", "")
    assert sizes("out.nq") == sizes("same.nq") == [2, 0, 2, 1]


def test_no_more_is_read_than_must_be(here: Here) -> None:
    assert here("head", "broken.nt", "-n", "1").status == 0
    assert here("head", "broken.nt", "-n", "2").status == 3


# --- errors ---------------------------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[list[str], int, str, str | None]] = {
    "no such log": (
        ["convert", "absent.nq", "out.nq"],
        2,
        "cannot read absent.nq: No such file",
        None,
    ),
    "a folder": (["cat", "."], 2, "Is a directory", None),
    "no place": (["convert", "log.ttl", "no/out.nq"], 1, "cannot write no/out.nq", None),
    "an archive as output": (["convert", "log.ttl", "out.tar.gz"], 2, "archives are read", None),
    "a graph": (
        ["convert", "named.trig", "out.ttl"],
        2,
        "message 1: Turtle has no named graphs",
        "N-Quads or TriG",
    ),
    "a syntax without meaning": (
        ["convert", "log.ttl", "out.jelly", "--syntax", "rdfm"],
        2,
        "by itself",
        None,
    ),
    "an input syntax without meaning": (
        ["convert", "log.ttl", "out.nq", "--input-format", "jelly", "--input-syntax", "rdfm"],
        2,
        "by itself",
        None,
    ),
    "an unknown format": (
        ["convert", "log.ttl", "out.nq", "--format", "docx"],
        2,
        "unknown format 'docx'",
        "text/turtle",
    ),
    "an unknown input format": (
        ["head", "log.ttl", "--input-format", "docx"],
        2,
        "unknown format 'docx'",
        None,
    ),
    "an unknown syntax": (["head", "log.ttl", "--input-syntax", "2"], 2, "'2'", "--help"),
    "malformed": (
        ["convert", "broken.nt", "out.nq"],
        3,
        "in broken.nt: line 3, column 16: message 2: ",
        None,
    ),
    "of another format": (
        ["convert", "log.ttl", "out.nq", "--input-format", "jelly"],
        3,
        "in log.ttl: message 1",
        None,
    ),
    "too large": (
        ["convert", "log.ttl", "out.nq", "--max-message-bytes", "10"],
        4,
        "message 1",
        None,
    ),
    "no size": (
        ["convert", "log.ttl", "out.nq", "--max-message-bytes", "0"],
        2,
        "--max-message-bytes",
        None,
    ),
    "folded already": (
        ["convert", "folded.ttl", "out.nq", "--fold"],
        2,
        "in message 1: the default graph",
        "unfold",
    ),
    "both ways": (
        ["convert", "log.ttl", "out.nq", "--fold", "--unfold"],
        2,
        "not allowed with",
        "--help",
    ),
    "a malformed context": (
        ["convert", "log.ttl", "out.nq", "--context", "x"],
        2,
        "'x' is not IRI=FILE",
        "IRI=FILE",
    ),
    "no such context": (
        ["convert", "log.ttl", "out.nq", "--context", "urn:c=absent"],
        2,
        "the context absent",
        None,
    ),
    "no JSON": (
        ["convert", "log.ttl", "out.nq", "--context", "urn:c=log.ttl"],
        2,
        "log.ttl is not JSON",
        None,
    ),
    "from zero": (["slice", "log.ttl", "--from", "0"], 2, "--from 0", "from 1"),
    "less than nothing": (["head", "log.ttl", "-n", "-1"], 2, "--count -1", None),
    "inspect a broken log": (["inspect", "broken.nt"], 3, "line 3, column 16: message 2", None),
    "inspect nothing": (["inspect", "absent"], 2, "cannot read absent", None),
    "diff a broken log": (
        ["diff", "first.nt", "broken.nt"],
        3,
        "in broken.nt: line 3, column 16: message 2",
        None,
    ),
    "diff nothing": (["diff", "log.ttl", "absent"], 2, "cannot read absent", None),
    "diff the same pipe": (["diff", "-", "-"], 2, "standard input", None),
    "validate nothing": (["validate", "absent"], 2, "cannot read absent", None),
    "validate a broken log": (
        ["validate", "broken.nt"],
        3,
        "in broken.nt: line 3, column 16: message 2",
        None,
    ),
    "validate a cut log": (
        ["validate", "cut.nt.gz"],
        3,
        "in cut.nt.gz: message 2: byte 40: the .gz data end early",
        None,
    ),
    "validate what is too large": (
        ["validate", "log.ttl", "--max-message-bytes", "10"],
        4,
        "message 1",
        None,
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str, here: Here, place: Path) -> None:
    write_log(read_log("log.ttl"), "first.nt")
    (place / "first.nt").write_bytes((place / "broken.nt").read_bytes()[:26])
    (place / "cut.nt.gz").write_bytes(gzip.compress((place / "broken.nt").read_bytes())[:40])
    vocabulary = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    parts = (
        "a rdf:Triple ; rdf:subjectIRI 'urn:s' ; rdf:predicateIRI 'urn:p' ; rdf:objectIRI 'urn:o'"
    )
    (place / "folded.ttl").write_text(
        f"PREFIX rdf: <{vocabulary}> <urn:g> rdf:containsTriple [ {parts} ] .", encoding="utf-8"
    )
    before = set(place.iterdir())
    arguments, status, error, hint = ERRORS[case]
    done = here(*arguments)
    first, *rest = done.errors.splitlines()
    assert (done.status, first.startswith("error: ")) == (status, True)
    assert error in first
    assert len(rest) <= 1
    assert hint is None or (rest[0].startswith("hint: ") and hint in rest[0])
    assert set(place.iterdir()) == before


def test_a_conversion_that_fails_leaves_the_old_log(place: Path, here: Here) -> None:
    (place / "out.ttl").write_text("the old log", encoding="utf-8")
    assert here("convert", "named.trig", "out.ttl").status == 2
    assert (place / "out.ttl").read_text(encoding="utf-8") == "the old log"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["convert", "log.ttl", "/dev/full"], 1),
        (["inspect", "log.ttl"], 1),
        (["validate", "log.ttl"], 1),
        (["diff", "log.ttl", "named.trig"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_no_space_left(arguments: list[str], status: int) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        status,
        b"error: cannot write: No space left on device\n",
    )


# --- what the commands are ------------------------------------------------------------------------------------------


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    (commands,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    headings = set(
        re.findall(r"`([a-z]+)(?: check)?`", "\n".join(re.findall("^#.*", page, re.MULTILINE)))
    )
    assert set(commands.choices) == headings
    for name in commands.choices:
        assert f"construct-messages {name} " in page
