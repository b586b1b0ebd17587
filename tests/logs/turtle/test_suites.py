"""Turtle and TriG logs, read: another reader finds the same boundaries, and the W3C's suites."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph as ox
import pytest
import rdflib

from construct_messages.errors import LogError
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.rdf.formats import Format
from construct_messages.rdf.formats.lookup import find_format
from tests.support.engines.servers import NODE
from tests.support.logs.cases.turtle import FORMATS, NEW, READ, Chunks, chunked, decode, messages
from tests.support.logs.kinds import isomorphic
from tests.support.places import absent, shared_path

# --- another reader, and the suites ----------------------------------------------------------------------------------

COUNT = """
const N3 = require("n3");
let text = "";
process.stdin.on("data", chunk => text += chunk).on("end", async () => {
  const counts = {};
  for (const [name, format, log] of JSON.parse(text)) counts[name] = await new Promise(resolve => {
    const messages = [new Set()];
    const parser = new N3.Parser({format, directives: ["message"], parseUnsupportedVersions: true, baseIRI: "http://e/"});
    parser.parse(log, {
      onDirective: () => messages.push(new Set()),
      onQuad: (error, quad) => {
        if (error) resolve(String(error));
        else if (quad) messages[messages.length - 1].add(N3.termToId(quad));
        else resolve(messages.map(quads => quads.size));
      },
    });
  });
  process.stdout.write(JSON.stringify(counts));
  process.exit(0);
});
// what it throws behind the error that it has told
process.on("uncaughtException", () => {});
"""

# it takes 1.MESSAGE for one token
NOT_N3 = {"behind a number, a keyword, a tag"}


def test_another_reader_finds_the_same_boundaries() -> None:
    """npm's n3, which leaves an empty last message to its caller."""
    node = Path(os.environ.get(NODE, "nowhere"))
    if not (node / "node_modules" / "n3").exists():
        absent(f"npm's n3 is absent: set {NODE} to the folder that holds its node_modules")
    cases = [
        (name, find_format(media_type)[0].media_types[0], log)
        for name, (media_type, log, _) in READ.items()
        if NEW in log and name not in NOT_N3
    ]
    assert len(cases) > 20
    run = subprocess.run(
        ["node", "-e", COUNT],
        input=json.dumps(cases),
        cwd=node,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    for name, counts in json.loads(run.stdout).items():
        expected = [len(message) for message in messages(*READ[name][2])]
        assert counts in (expected, [*expected, 0]), name


MANIFEST = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
SUITES = "https://w3c.github.io/rdf-tests/rdf/"


class Case(NamedTuple):
    name: str
    kind: str
    document: Path
    result: Path | None


def w3c_cases(format: Format) -> Iterator[Case]:
    suite = f"rdf-{format.name.lower()}"
    root = shared_path("suites/w3c/rdf")
    for folder in (f"rdf11/{suite}", f"rdf12/{suite}/eval", f"rdf12/{suite}/syntax"):
        tests = rdflib.Graph().parse(root / folder / "manifest.ttl")
        for test, action in sorted(tests.subject_objects(MANIFEST.action)):
            name = f"{folder}/{str(action).rpartition('/')[2]}"
            result = tests.value(test, MANIFEST.result)
            kind = str(tests.value(test, rdflib.RDF.type)).rpartition("#")[2]
            yield Case(
                name, kind, root / name, result and root / folder / str(result).rpartition("/")[2]
            )


@pytest.mark.slow
@pytest.mark.suite
@chunked
@pytest.mark.parametrize(
    ("extension", "positive", "negative"), [("ttl", 289, 127), ("trig", 290, 126)]
)
def test_w3c(extension: str, positive: int, negative: int, chunks: Chunks) -> None:
    """Each positive document is a log of one message, or of none where it is empty; each negative one is an error."""
    counts = {True: 0, False: 0}
    for case in w3c_cases(FORMATS[extension]):
        data, base = case.document.read_bytes(), SUITES + case.name
        reading = decode(data, extension, chunks, base=base)
        is_positive = "Negative" not in case.kind
        counts[is_positive] += 1
        if not is_positive:
            assert isinstance(reading.error, LogError), case.name
            continue
        assert reading.error is None, f"{case.name}: {reading.error}"
        if case.result:
            expected = to_message(ox.parse(path=str(case.result)))
        else:
            parsed = ox.RdfFormat.from_extension(extension)
            expected = to_message(ox.parse(data, format=parsed, base_iri=base))
        assert isomorphic(reading.messages, [expected] if len(expected) else []), case.name
    assert counts == {True: positive, False: negative}
