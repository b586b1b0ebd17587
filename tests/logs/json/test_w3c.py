"""The tests of JSON-LD 1.1 Framing: by PyLD, and as messages become documents here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from construct_messages import Message
from construct_messages.errors import Position, UsageError
from construct_messages.logs import EncoderOptions, encoder_for
from construct_messages.logs.json.compiled import CompiledFrame, compiled
from construct_messages.logs.jsonld.contexts import Processor
from construct_messages.logs.jsonld.decoder import Documents
from construct_messages.options import JsonOptions
from construct_messages.rdf.formats import JSON_DOCUMENTS
from construct_messages.rdf.labels import Labels
from tests.support.logs.frames import comparable
from tests.support.places import shared_path

BASE = "https://w3c.github.io/json-ld-framing/tests/"

EXCEPTIONS = {
    **dict.fromkeys(
        ["#t0013", "#t0070", "#tp020", "#tp021"], "an empty frame, or a context alone, is none here"
    ),
    "#t0058": "omitGraph: where nothing matches, the document is {}",
}
"""Documents that are not as the suite has them, and why."""

RELATIVE = {"#t0056", "#t0057", "#t0065", "#t0066", "#t0067", "#tra03"}
"""Whose documents have IRIs relative to the input: frames say so by `@base`."""


@cache
def suite() -> dict[str, Any]:
    manifest = shared_path("suites/w3c/json-ld") / "frame-manifest.jsonld"
    if not manifest.exists():
        pytest.skip(
            "the framing tests are no part of the suites: copy `tests` of w3c/json-ld-framing into suites/w3c/json-ld"
        )
    return {
        case["@id"]: case | {"folder": manifest.parent}
        for case in json.loads(manifest.read_text())["sequence"]
        if "json-ld-1.0"
        not in (
            case.get("option", {}).get("processingMode"),
            case.get("option", {}).get("specVersion"),
        )
    }


def names() -> Sequence[object]:
    """The cases as parameters; one that skips where there is no suite."""
    try:
        return list(suite())
    except pytest.skip.Exception as absent:
        return [pytest.param("", marks=pytest.mark.skip(str(absent)))]


def read(case: dict[str, Any], what: str) -> Any:
    """A file of a case, with language tags that are ones by BCP 47, as a message has no others."""
    path: Path = case["folder"] / case[what]
    text = path.read_text().replace('"@language": "R"', '"@language": "RU"')
    return json.loads(text.replace('"r"', '"ru"').replace('"l"', '"la"'))


def plain(document: Any) -> Any:
    return comparable({key: value for key, value in document.items() if key != "@context"})


@pytest.mark.suite
@pytest.mark.parametrize("name", names())
def test_pyld(name: str) -> None:
    """The fallback and witness passes all of them."""
    case = suite()[name]
    options = {"base": BASE + case["input"]}
    if "omitGraph" in case.get("option", {}):
        options["omitGraph"] = case["option"]["omitGraph"]
    if "jld:NegativeEvaluationTest" in case["@type"]:
        with pytest.raises(Exception, match=r"framing|frame"):
            Processor().frame(read(case, "input"), read(case, "frame"), options)
        return
    framed = Processor().frame(read(case, "input"), read(case, "frame"), options)
    assert plain(framed) == plain(read(case, "expect"))


@pytest.mark.suite
@pytest.mark.parametrize("name", names())
def test_documents(name: str) -> None:
    case = suite()[name]
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    base = BASE + case["input"]
    message = Documents(base, {}, Labels("x")).read(read(case, "input"), 1, Position(1, 1))
    frame = read(case, "frame")
    if name in RELATIVE:
        frame["@context"] = [{"@base": base}, frame["@context"]]
    options = JsonOptions(frame=frame)
    assert JSON_DOCUMENTS.own is not None

    def document() -> Any:
        encoder = encoder_for(JSON_DOCUMENTS, JSON_DOCUMENTS.own, EncoderOptions(own=options))  # type: ignore[arg-type] # see above
        return json.loads(encoder.encode(message or Message()))

    if "jld:NegativeEvaluationTest" in case["@type"]:
        with pytest.raises(UsageError):
            document()
        return
    assert plain(document()) == plain(read(case, "expect"))


def test_most_frames_of_the_suite_are_compiled() -> None:
    frames = [read(case, "frame") for case in suite().values() if "expect" in case]
    found = [compiled(JsonOptions(frame=frame), frame) for frame in frames]
    assert sum(isinstance(each, CompiledFrame) for each in found) > 0.75 * len(found)
