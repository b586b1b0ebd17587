"""The commands that look at logs: `inspect`, `validate`, `diff`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from construct_messages import read_log, write_log
from tests.support.commands import Done, run
from tests.support.logs.archives import archive
from tests.support.logs.cases.commands import LOG, Here

pytestmark = pytest.mark.usefixtures("place")

# --- inspect, validate, diff ----------------------------------------------------------------------------------------


def test_inspect(here: Here) -> None:
    done = here("inspect", "log.ttl")
    assert (done.status, done.errors) == (0, "")
    lines = dict(re.match(r"(.{14}) ?(.*)", line).groups() for line in done.log.splitlines())  # type: ignore[union-attr] # every line has a label
    shown = {label.strip(): text for label, text in lines.items()}
    assert shown["format"] == "Turtle, rdfm, RDF 1.2"
    assert shown["messages"] == "4, of which 1 empty"
    assert shown["quads"] == "5"
    assert shown["in a message"] == "0 to 2, median 1.5, mean 1.2; the largest is message 1"
    assert shown["blank nodes"] == "in 1 message"
    assert shown["prefixes"] == "ex: <http://example.org/>"
    assert re.fullmatch(
        r"190 bytes in \d+\.\d{3} s: [\d,]+ messages/s, [\d.]+ [kM]?B/s", shown["read"]
    )
    assert all(line == line.rstrip() for line in done.log.splitlines())


def test_inspect_of_named_graphs(here: Here) -> None:
    assert "named graphs   in 2 messages, 2 names\n" in here("inspect", "named.trig").log


@pytest.mark.parametrize("name", ["log.ttl", "log.nq.gz", "log.jelly", "empty", "stream.tar"])
def test_inspect_for_programs(name: str, here: Here, place: Path) -> None:
    if name == "stream.tar":
        (place / name).write_bytes(archive(("0.ttl", b"<urn:s> <urn:p> <urn:o> ."), ("1.nt", b"")))
    elif name == "empty":
        (place / name).write_bytes(b"")
    elif name != "log.ttl":
        write_log(read_log("log.ttl"), name)
    done = here("inspect", name, "--json")
    assert (done.status, done.errors) == (0, "")
    figures = json.loads(done.log)
    with read_log(name) as reader:
        messages = list(reader)
    assert figures["messages"] == len(messages)
    assert figures["quads"] == sum(map(len, messages))
    assert figures["empty"] == sum(not len(message) for message in messages)
    assert figures["bytes"] == (place / name).stat().st_size
    assert figures["prefixes"] == dict(reader.prefixes)
    assert reader.format is not None
    assert (figures["format"], figures["archive"]) == (reader.format.name, name == "stream.tar")
    assert figures["packing"] == ("gz" if name.endswith("gz") else None)
    assert figures["syntax"] == (
        "rdfm" if name.startswith("log.") and name != "log.jelly" else None
    )
    assert figures["seconds"] > 0
    assert here("inspect", name).status == 0


def test_validate_goes_on_behind_a_broken_log(here: Here) -> None:
    done = here("validate", "log.ttl", "broken.nt", "named.trig")
    assert done.status == 3
    assert done.log == "log.ttl: ok, 4 messages, 5 quads\nnamed.trig: ok, 2 messages, 2 quads\n"
    assert done.errors.count("error: ") == 1
    assert here("validate", "broken.nt", "absent").status == 3


def test_validate_standard_input(place: Path) -> None:
    assert run("validate", "-", stdin=LOG) == Done(0, "-: ok, 4 messages, 5 quads\n", "")
    done = run("validate", "-", "--input-format", "nt", stdin=(place / "broken.nt").read_bytes())
    assert (done.status, done.log) == (3, "")
    assert done.errors.startswith("error: line 3, column 16: message 2: ")


def test_diff(here: Here, place: Path) -> None:
    (place / "other.ttl").write_text(
        LOG.replace("ex:d", "ex:e").replace(" , 2", "") + "# @message\n", encoding="utf-8"
    )
    done = here("diff", "log.ttl", "other.ttl")
    assert (done.status, done.errors) == (1, "")
    assert done.log == (
        "--- log.ttl\n+++ other.ttl\n"
        "message 1\n"
        '- <http://example.org/a> <http://example.org/p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        "message 4\n"
        "- <http://example.org/c> <http://example.org/p> <http://example.org/d> .\n"
        "+ <http://example.org/c> <http://example.org/p> <http://example.org/e> .\n"
        "other.ttl has 1 more, from message 5 on\n"
    )


def test_what_the_output_cannot_encode(place: Path) -> None:
    name = os.fsdecode(b"log\xff.nt")
    (place / name).write_text('<urn:s> <urn:p> "é" .', encoding="utf-8")
    done = run("validate", name)
    assert done == Done(0, "log\\udcff.nt: ok, 1 message, 1 quad\n", "")
    done = run("diff", "log.ttl", name, PYTHONIOENCODING="ascii")
    assert (done.status, done.errors) == (1, "")
    assert '+ <urn:s> <urn:p> "\\xe9" .\n' in done.log


def test_diff_with_standard_input() -> None:
    assert run("diff", "log.ttl", "-", stdin=LOG) == Done(0, "", "")
    assert run("diff", "-", "named.trig", stdin=LOG).status == 1
