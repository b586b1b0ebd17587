"""The command line where something around it is missing or odd: standard streams, places, extensions, first bytes.

Tables of every command against every such thing; processes of their own where it is about the process.
"""

from __future__ import annotations

import codecs
import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from construct_messages import read_log, write_log
from construct_messages.rdf.formats import FORMATS
from tests.support.commands import COMMAND, ENVIRONMENT, Done
from tests.support.logs.archives import archive
from tests.support.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]

Here = Callable[..., Done]
DATA = str(ROOT / "queries" / "data" / "companies.ttl")
COMPANIES = str(ROOT / "queries" / "companies.rq")
LABELLED = b'VERSION "1.2-messages"\n<urn:a> <urn:p> <urn:b> .\nMESSAGE\n'
EXTENSIONS = [format.extension for format in FORMATS]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with a log."""
    (tmp_path / "log.nq").write_bytes(LABELLED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- standard streams that are closed -------------------------------------------------------------------------------

READING = {
    "convert": ["convert", "-", "-"],
    "convert to a file": ["convert", "-", "out.nq"],
    "head": ["head", "-"],
    "slice": ["slice", "-"],
    "inspect": ["inspect", "-"],
    "validate": ["validate", "-"],
    "diff": ["diff", "-", "log.nq"],
    "run": ["run", "-", "--source", DATA],
}
WRITING = {
    "convert": ["convert", "log.nq", "-"],
    "head": ["head", "log.nq"],
    "head of nothing": ["head", "-n", "0", "log.nq"],
    "slice": ["slice", "log.nq"],
    "inspect": ["inspect", "log.nq"],
    "inspect for programs": ["inspect", "--json", "log.nq"],
    "validate": ["validate", "log.nq"],
    "diff": ["diff", "log.nq", DATA],
    "run": ["run", COMPANIES, "--source", DATA],
    "select": ["run", COMPANIES, "--select"],
    "settings": ["serve", "--source", "https://example.org/sparql", "--check-config"],
    "version": ["--version"],
    "help": ["convert", "--help"],
}


def shell(arguments: list[str], closed: str) -> Done:
    """What a command does in a shell that closes some of its standard streams."""
    done = subprocess.run(
        ["bash", "-c", f'"$@" {closed}', "bash", *COMMAND, *arguments],
        capture_output=True,
        check=False,
        text=True,
        env=ENVIRONMENT,
        timeout=240,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("case", READING)
def test_standard_input_is_closed(case: str, place: Path) -> None:
    """Issue 13, 16: `convert - - <&-`."""
    done = shell(READING[case], "<&-")
    assert (done.status, done.log) == (2, "")
    assert done.errors.startswith("error: cannot read ")
    assert "Traceback" not in done.errors
    assert [path.name for path in place.iterdir()] == ["log.nq"]


@pytest.mark.parametrize("case", WRITING)
def test_standard_output_is_closed(case: str) -> None:
    done = shell(WRITING[case], ">&-")
    assert done.status == (2 if case == "diff" else 1)
    assert done.errors == "error: cannot write: Bad file descriptor\n"


@pytest.mark.parametrize("case", ["convert", "validate", "run", "settings"])
def test_standard_error_is_closed(case: str) -> None:
    """Nothing that is said there comes into the log instead, and no file that is opened takes its place."""
    closed = shell(WRITING[case], "2>&-")
    assert closed == shell(WRITING[case], "")
    assert closed.log


def test_errors_with_standard_error_closed() -> None:
    assert shell(["convert", "absent.nq", "-"], "2>&-") == Done(2, "", "")


def test_all_are_closed(place: Path) -> None:
    assert shell(["convert", "log.nq", "out.nq"], "<&- >&- 2>&-") == Done(0, "", "")
    assert (place / "out.nq").read_bytes() == b"# @message\n<urn:a> <urn:p> <urn:b> .\n"


# --- places that cannot be written, and extensions of nothing -------------------------------------------------------

OUTPUTS: dict[str, Callable[[str], list[str]]] = {
    "convert": lambda name: ["convert", "log.nq", name],
    "head": lambda name: ["head", "log.nq", "--output", name],
    "slice": lambda name: ["slice", "log.nq", "--output", name],
    "run": lambda name: ["run", COMPANIES, "--source", DATA, "--output", name],
}
UNWRITABLE = {
    "no folder": "absent/log.nq",
    "a folder": "folder.nq",
    "within a file": "log.nq/log.nq",
    "too long": "x" * 300 + ".nq",
}


@pytest.mark.parametrize("where", UNWRITABLE)
@pytest.mark.parametrize("command", OUTPUTS)
def test_a_place_that_cannot_be_written(command: str, where: str, here: Here, place: Path) -> None:
    """Issue 13, 16: `--output nosuchdir/x` is status 1, as the documentation has it."""
    (place / "folder.nq").mkdir()
    done = here(*OUTPUTS[command](UNWRITABLE[where]))
    assert (done.status, done.log) == (1, "")
    assert done.errors.startswith("error: ")
    assert sorted(path.name for path in place.iterdir()) == ["folder.nq", "log.nq"]


@pytest.mark.parametrize(
    "name", ["out.rdf", "out.jsonld", "out.n3", "out.xml", "out.nq.zip", "out.turtle", "out.txt"]
)
@pytest.mark.parametrize("command", OUTPUTS)
def test_an_extension_that_is_unknown(command: str, name: str, here: Here, place: Path) -> None:
    """Issue 13, 12: N-Quads are not written under any name."""
    done = here(*OUTPUTS[command](name))
    assert (done.status, done.log) == (2, "")
    assert (
        "is not the extension of a log format\nhint: end the name in .nq, .trig, .nt, .ttl,"
        in done.errors
    )
    assert here(*OUTPUTS[command](name), "--format", "nt").status == 0
    assert (place / name).read_bytes().count(b"<") >= 3


@pytest.mark.parametrize("name", ["out", "out.gz", ".hidden"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_no_extension_at_all(command: str, name: str, here: Here) -> None:
    assert here(*OUTPUTS[command](name)).status == 0
    assert next(iter(read_log(name, "nq")))


@pytest.mark.parametrize("command", OUTPUTS)
def test_standard_output_by_its_name(command: str, here: Here, place: Path) -> None:
    done = here(*OUTPUTS[command]("-"))
    assert (done.status, done.errors) == (0, "")
    assert " .\n" in done.log
    assert [path.name for path in place.iterdir()] == ["log.nq"]


def test_select_with_an_output(here: Here, place: Path) -> None:
    """Issue 13, 16: `--select --output` writes the query there."""
    printed = here("run", COMPANIES, "--select")
    assert "SELECT ?" in printed.log
    for name in ("query.rq", "query.rq.gz"):
        assert here("run", COMPANIES, "--select", "--output", name) == Done(0, "", "")
    assert (place / "query.rq").read_text(encoding="utf-8") == printed.log
    assert gzip.decompress((place / "query.rq.gz").read_bytes()).decode() == printed.log
    assert here("run", COMPANIES, "--select", "--output", "absent/query.rq").status == 1


# --- what is read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["head", "-n", "0"], ["slice", "--count", "0"], ["slice", "--from", "9"]]
)
@pytest.mark.parametrize("named", [True, False])
def test_no_message_of_a_labelled_log(
    arguments: list[str], named: bool, here: Here, place: Path
) -> None:
    """Issue 13, 16: `head -n 0` keeps the syntax, also where only the first bytes tell the format."""
    (place / "log.txt").write_bytes(LABELLED)
    done = here(*arguments, "log.nq" if named else "log.txt")
    assert done == Done(0, 'VERSION "1.2-messages"\n', "")


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_an_empty_log(extension: str, here: Here, place: Path) -> None:
    (place / f"empty.{extension}").touch()
    for command in (["head", "-n", "0"], ["head"], ["slice"], ["validate"], ["inspect"]):
        assert here(*command, f"empty.{extension}").status == 0
    assert here("convert", f"empty.{extension}", "out.nq") == Done(0, "", "")


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize(
    "extension", [extension for extension in EXTENSIONS if extension != "jelly"]
)  # no text
def test_a_byte_order_mark_before_a_log(
    extension: str, packing: str, here: Here, place: Path
) -> None:
    write_log(read_log("log.nq"), f"log.{extension}")
    marked = codecs.BOM_UTF8 + (place / f"log.{extension}").read_bytes()
    for name in (f"marked.{extension}{packing}", f"marked.txt{packing}"):
        (place / name).write_bytes(gzip.compress(marked) if packing else marked)
        assert here("diff", "log.nq", name) == Done(0, "", "")


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize(
    ("extension", "document"),
    [
        *(
            (extension, b"<urn:a> <urn:p> <urn:b> .")
            for extension in ("ttl", "trig", "nt", "nq", "n3")
        ),
        ("jsonld", b'{"@id": "urn:a", "urn:p": {"@id": "urn:b"}}'),
        (
            "rdf",
            b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="urn:a">'
            b'<p xmlns="urn:" rdf:resource="urn:b"/></rdf:Description></rdf:RDF>',
        ),
    ],
)
def test_a_byte_order_mark_before_data(
    extension: str, document: bytes, packing: str, here: Here, place: Path
) -> None:
    """Issue 13, 16: a Turtle file with a byte order mark."""
    marked = codecs.BOM_UTF8 + document
    (place / f"data.{extension}{packing}").write_bytes(gzip.compress(marked) if packing else marked)
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    done = here("run", "--query", query, "--source", f"data.{extension}{packing}")
    assert done == Done(0, "# @message\n<urn:a> <urn:p> <urn:b> .\n", "")


def test_a_byte_order_mark_before_settings(here: Here, place: Path) -> None:
    (place / "server.toml").write_bytes(
        codecs.BOM_UTF8 + b'[endpoint]\nsource = ["https://example.org/sparql"]\n'
    )
    assert here("serve", "--config", "server.toml", "--check-config").status == 0


@pytest.mark.parametrize(
    "name", ["stream.tar", "stream.tar.gz", "stream", "stream.gz", "stream.bin", "stream.ttl"]
)
@pytest.mark.parametrize("format", [None, "ttl"])
def test_an_archive_by_its_bytes(name: str, format: str | None, here: Here, place: Path) -> None:
    """Issue 13, 16: an archive is one, whatever its name, and also where the format of its files is given."""
    packed = archive(("1.ttl", b"<urn:a> <urn:p> 1 ."), ("2.ttl", b"<urn:a> <urn:p> 2 ."))
    (place / name).write_bytes(gzip.compress(packed) if name.endswith(".gz") else packed)
    given = ["--input-format", format] if format else []
    assert here("validate", name, *given) == Done(0, f"{name}: ok, 2 messages, 2 quads\n", "")


def test_terms_that_are_reserved(place: Path) -> None:
    """Issue 13, 16: PyLD's warning does not come to standard error."""
    (place / "log.ndjsonld").write_text(
        '{"@context": {"@reserved": "urn:r", "p": {"@id": "@no"}, "q": {"@reverse": "@no"}, "r": "urn:p"}}\n'
        '{"@id": "urn:a", "r": 1, "p": 2}\n',
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "default",
            "-m",
            "construct_messages",
            "convert",
            "log.ndjsonld",
            "-",
        ],
        capture_output=True,
        check=False,
        env=ENVIRONMENT,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'"1"' in done.stdout


# --- commands and options that users missed --------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 3, 10, 99])
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_tail(extension: str, count: int, here: Here, place: Path) -> None:
    """Issue 13, what users missed: `tail` gives the last messages, as `slice` from there does."""
    log = "".join(f'# @message\n<urn:s> <urn:p> "{number}" .\n' for number in range(10))
    (place / "source.nq").write_text(log, encoding="utf-8")
    assert here("convert", "source.nq", f"numbers.{extension}").status == 0
    assert here(
        "tail", f"numbers.{extension}", "-n", str(count), "--output", f"tail.{extension}"
    ) == Done(0, "", "")
    first = str(max(1, 11 - count))
    assert (
        here(
            "slice", f"numbers.{extension}", "--from", first, "--output", f"slice.{extension}"
        ).status
        == 0
    )
    assert (place / f"tail.{extension}").read_bytes() == (place / f"slice.{extension}").read_bytes()


def test_tail_keeps_the_syntax_and_reads_to_the_end(here: Here, place: Path) -> None:
    assert here("tail", "log.nq") == Done(0, LABELLED.decode(), "")
    assert here("tail", "-n", "-1", "log.nq").status == 2
    (place / "broken.nq").write_bytes(LABELLED + b"nonsense")
    assert here("tail", "broken.nq").status == 3


@pytest.mark.parametrize("extension", ["ttl", "trig", "ndjsonld", "yamlld", "rdfxml"])
@pytest.mark.parametrize("command", OUTPUTS)
def test_no_prefixes(command: str, extension: str, here: Here, place: Path) -> None:
    """Issue 13, what users missed: `--no-prefixes` of whatever writes a log."""
    (place / "log.nq").unlink()
    (place / "log.nq").symlink_to("prefixed")
    (place / "prefixed").write_text(
        "PREFIX dbo: <http://dbpedia.org/ontology/>\ndbo:a dbo:p dbo:b .\n", encoding="utf-8"
    )
    given = [] if command == "run" else ["--input-format", "ttl"]
    for name, options in (("with", []), ("without", ["--no-prefixes"])):
        arguments = OUTPUTS[command](f"{name}.{extension}")
        assert here(*arguments, *given, *options) == Done(0, "", "")
    assert b"dbo:" not in (place / f"without.{extension}").read_bytes()
    if extension in ("ttl", "trig"):
        assert b"dbo:" in (place / f"with.{extension}").read_bytes()
    assert here("diff", f"with.{extension}", f"without.{extension}") == Done(0, "", "")


@pytest.mark.parametrize(
    "document",
    [
        '{\n  "@id": "urn:a"\n}\n',
        '[\n  {"@id": "urn:a"}\n]\n',
        '{"@context": {\n"a": "urn:a"}, "a": 1}\n',
        '{"@id":\n"urn:a"}',
    ],
)
@pytest.mark.parametrize("name", ["data.jsonld", "data.ndjsonld"])
def test_json_ld_over_several_lines(name: str, document: str, here: Here, place: Path) -> None:
    """It is one message; a document that is cut gets a hint."""
    (place / name).write_text(document, encoding="utf-8")
    assert here("validate", name).log.startswith(f"{name}: ok, 1 message")
    (place / name).write_text(document.rstrip()[:-1], encoding="utf-8")
    done = here("validate", name)
    assert done.status == 3
    assert "hint: write each message as one JSON-LD document on one line" in done.errors


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["serve"], "run --source TABLE; to keep a session of Spark"),
        (["load", "a.nt", "--output", "t", "--no-class-archive"], "leave it out"),
    ],
    ids=["command", "option"],
)
def test_commands_that_have_gone_name_others(arguments: list[str], hint: str, here: Here) -> None:
    done = here("spark", *arguments)
    assert done.status == 2
    assert "hint: it has gone: " in done.errors
    assert hint in done.errors
