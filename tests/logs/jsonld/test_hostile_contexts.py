"""Contexts that are malformed: an error of ours with a position, whatever PyLD makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages.cli import main
from construct_messages.errors import LimitExceeded, LogError, Position
from construct_messages.logs.jsonld.decoder import Documents
from construct_messages.rdf.labels import Labels
from tests.support.logs.cases.jsonld import parse
from tests.support.logs.json_ld import by_jsonld_js

KEYWORDS = [
    *(
        "@id",
        "@type",
        "@value",
        "@language",
        "@direction",
        "@graph",
        "@included",
        "@list",
        "@set",
        "@index",
    ),
    *(
        "@reverse",
        "@nest",
        "@json",
        "@context",
        "@vocab",
        "@base",
        "@container",
        "@import",
        "@protected",
        "@prefix",
    ),
    *("@propagate", "@version", "@none", "@foo"),
]
HOSTILE = {
    "an empty @nest": {"term": {"@id": "http://example/term", "@nest": ""}},
    "an @id that is an object": {"term": {"@id": {}}},
    "a vocabulary that looks like a keyword": {"@vocab": "@foo", "term": {"@id": "term"}},
    "a context that is a number": 5,
}


def read(document: Any) -> None:
    Documents(None, {"urn:c": {"p": "urn:p"}}, Labels("x")).read(document, 3, Position(7, 1))


@pytest.mark.parametrize("context", HOSTILE)
def test_what_pyld_fails_on_is_an_error_with_a_position(context: str) -> None:
    with pytest.raises(LogError, match=r"^line 7, column 1: message 3: ") as raised:
        read({"@context": HOSTILE[context], "term": {"term": "x"}})
    assert raised.value.position == Position(7, 1)


def test_a_failure_names_the_program_and_what_to_check() -> None:
    with pytest.raises(LogError) as raised:
        read({"@context": HOSTILE["an empty @nest"]})
    assert (
        raised.value.message
        == "malformed JSON-LD, on which PyLD fails: IndexError: string index out of range"
    )
    assert raised.value.hint == "check the values of keywords, in @context above all"


def test_the_command_line_says_so_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.ndjsonld"
    path.write_text(json.dumps({"@context": HOSTILE["an empty @nest"]}) + "\n", encoding="utf-8")
    assert main(["validate", str(path)]) == 3
    said = capsys.readouterr().err
    assert "line 1, column 1: message 1: malformed JSON-LD" in said
    assert "Traceback" not in said


SCALARS = st.sampled_from(
    [
        *KEYWORDS,
        "",
        "@",
        ":",
        "_:",
        "a",
        "b",
        "a:b",
        "http://e/p",
        "//[",
        "\0",
        "a b",
        None,
        True,
        0,
        1.1,
        -1,
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda values: (
        st.lists(values, max_size=2)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", ""]), values, max_size=3)
    ),
    max_leaves=5,
)
DEFINITIONS = VALUES | st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=3).map(
    lambda definition: {"@id": "http://e/p", **definition}
)
CONTEXTS = st.dictionaries(
    st.sampled_from([*KEYWORDS, "a", "a", "b", "a:b", "", "http://e/q"]),
    DEFINITIONS,
    min_size=1,
    max_size=4,
)
NODES = st.dictionaries(
    st.sampled_from(["a", "b", "@id", "@type", "a:b", "", "@nest", "@reverse"]), VALUES, max_size=3
)


@given(CONTEXTS | st.lists(CONTEXTS | SCALARS, max_size=2), NODES, st.booleans())
@settings(max_examples=4 * settings.default.max_examples)
def test_only_our_errors_come_out_of_any_context(
    context: Any, node: dict[str, Any], alone: bool
) -> None:
    documents = Documents(None, {"urn:c": {"p": "urn:p"}}, Labels("x"))
    positions: set[Position | None] = set()
    for document in [{"@context": context}, node] if alone else [{"@context": context, **node}]:
        try:
            documents.read(document, 1, Position(1, 1))
        except LogError as error:
            event("PyLD fails" if "PyLD fails" in error.message else "refused")
            positions.add(error.position)
        except LimitExceeded:
            event("too much")
        else:
            event("read")
    assert positions <= {Position(1, 1)}


NULLS: list[Any] = [
    {"@vocab": None},
    {"@language": None, "@direction": None},
    [
        {"@vocab": "http://e/", "@language": "en"},
        {"@vocab": None, "@language": None},
        {"@vocab": None},
    ],
    [{"@language": "en"}, None, {"@language": None}],
    {"@import": "urn:c", "@language": None},
    {"p": {"@id": "urn:p", "@context": {"@vocab": None, "@language": None}}},
]


@pytest.mark.parametrize("context", NULLS, ids=json.dumps)
def test_nothing_may_be_set_to_nothing(context: Any) -> None:
    """PyLD removes what is not there, which was an error."""
    document = {"@context": context, "@id": "urn:s", "urn:q": "x", "q": "y", "p": {"urn:q": "z"}}
    message = Documents(None, {"urn:c": {}}, Labels("x")).read(document, 1, Position(1, 1))
    assert message is not None
    if "urn:c" not in json.dumps(context):
        (quads,) = by_jsonld_js([document])
        assert message.isomorphic(parse(quads))


LARGE = {"urn:large": {f"t{number}": f"urn:{number}" for number in range(2_000)}}


def nested(depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"@id": "urn:s"}
    for _ in range(depth):
        node = {"@context": "urn:large", "t1": node}
    return node


def test_one_name_may_not_copy_a_large_context_often() -> None:
    """Each copy takes PyLD as long as the first one, and is three words of the message."""
    often: list[Any] = [{"@context": ["urn:large"] * 200, "t1": "x"}, nested(100)]
    few: list[Any] = [
        {"@context": ["urn:large"] * 3, "t1": "x"},
        nested(10),
        {"@context": "urn:large", "@graph": [nested(1)] * 200},  # which share a copy
    ]
    documents = Documents(None, LARGE, Labels("x"))
    for document in few:
        message = documents.read(document, 1, Position(1, 1), 1 << 20)
        assert message is not None
        assert len(message) > 0
    for document in often:
        with pytest.raises(LimitExceeded, match=r"contexts copy 2000 terms each"):
            documents.read(document, 1, Position(1, 1), 1 << 20)
