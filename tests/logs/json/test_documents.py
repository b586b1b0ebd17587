"""JSON documents without a frame and with one, what is refused, and documents by template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import Message, construct_messages, read_log, to_json
from construct_messages.errors import UnsupportedByFormat, UsageError
from construct_messages.logs import Encoder, EncoderOptions, encoder_for
from construct_messages.logs.json.compiled import by_pyld
from construct_messages.logs.json.documents import KeyNames, roots_of, uses_of
from construct_messages.logs.json.framing import Nodes, json_of, nodes_of, terms_in, value_object
from construct_messages.options import JsonOptions
from construct_messages.rdf.formats import JSON_DOCUMENTS
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term, is_blank, literal
from tests.support.logs.frames import contexts, frames, messages
from tests.support.strategies import SOLUTIONS, templates

PREFIXES = """
PREFIX : <http://example.org/> PREFIX a: <http://a.example/> PREFIX b: <http://b.example/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
"""


def message(turtle: str) -> Message:
    text = PREFIXES + turtle + (" ." if turtle and turtle[-1] not in ".}" else "")
    return Message.from_pyoxigraph(ox.parse(text, format=ox.RdfFormat.TRIG))


def encoder(**options: Any) -> Encoder:
    assert JSON_DOCUMENTS.own is not None
    return encoder_for(
        JSON_DOCUMENTS, JSON_DOCUMENTS.own, EncoderOptions(own=JsonOptions(**options))
    )


EX = "http://example.org/"


@pytest.mark.parametrize(
    ("turtle", "expected"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param(':a :p "x"', {"id": f"{EX}a", "p": "x"}, id="one node"),
        pytest.param(
            ':a a :C, :D; :p "x", "y"',
            {"id": f"{EX}a", "type": [f"{EX}C", f"{EX}D"], "p": ["x", "y"]},
            id="several values",
        ),
        pytest.param(
            ":a :i 07; :d 1.50; :e 1e3; :b true; :f '1'^^xsd:boolean; :l '9'^^xsd:long",
            {"id": f"{EX}a", "i": 7, "d": 1.5, "e": 1000.0, "b": True, "f": True, "l": 9},
            id="numbers and booleans",
        ),
        pytest.param(
            ":a :i 'x'^^xsd:integer; :d '2020-01-01'^^xsd:date; :e 'INF'^^xsd:double; :s '300'^^xsd:byte",
            {"id": f"{EX}a", "i": "x", "d": "2020-01-01", "e": "INF", "s": "300"},
            id="other literals are strings",
        ),
        pytest.param(
            ":a :j '{\"k\": [1, null]}'^^rdf:JSON",
            {"id": f"{EX}a", "j": {"k": [1, None]}},
            id="JSON literals",
        ),
        pytest.param(
            ":a :p 'x'@en, 'y'@nl, 'z'@nl",
            {"id": f"{EX}a", "p": {"en": "x", "nl": ["y", "z"]}},
            id="languages",
        ),
        pytest.param(
            ":a :p 'x'@en, 'y'", {"id": f"{EX}a", "p": {"en": "x", "@none": "y"}}, id="no language"
        ),
        pytest.param(
            ":a :p 'x'@en; :q :b . :b :p 'y'",
            {"id": f"{EX}a", "p": {"en": "x"}, "q": {"id": f"{EX}b", "p": "y"}},
            id="no language in one node",
        ),
        pytest.param(
            ":a :p :b, :c . :b :q :c . :c :r 1",
            {
                "id": f"{EX}a",
                "p": [
                    {"id": f"{EX}b", "q": {"id": f"{EX}c", "r": 1}},
                    {"id": f"{EX}c", "r": 1},
                ],
            },
            id="embedded wherever it is an object",
        ),
        pytest.param(":a :p :b", {"id": f"{EX}a", "p": f"{EX}b"}, id="IRIs are strings"),
        pytest.param(
            ":a :p :b, 'x'", {"id": f"{EX}a", "p": [{"id": f"{EX}b"}, "x"]}, id="IRI and string"
        ),
        pytest.param(
            ":a :p :b . :b :q :a",
            {"id": f"{EX}a", "p": {"id": f"{EX}b", "q": f"{EX}a"}},
            id="a cycle",
        ),
        pytest.param(":a :p :a", {"id": f"{EX}a", "p": f"{EX}a"}, id="a node in itself"),
        pytest.param(
            ":a :p 1 . :b :p 2",
            {"@graph": [{"id": f"{EX}a", "p": 1}, {"id": f"{EX}b", "p": 2}]},
            id="several roots",
        ),
        pytest.param(
            ":a :p 1 . :b :p :c . :c :p :b",
            {
                "@graph": [
                    {"id": f"{EX}a", "p": 1},
                    {"id": f"{EX}b", "p": {"id": f"{EX}c", "p": {"id": f"{EX}b"}}},
                ]
            },
            id="a root and a cycle",
        ),
        pytest.param(
            ":a :p ('x' 2 :b)", {"id": f"{EX}a", "p": ["x", 2, {"id": f"{EX}b"}]}, id="list"
        ),
        pytest.param(":a :p ()", {"id": f"{EX}a", "p": []}, id="empty list"),
        pytest.param(
            ":a :p (1) , (2)",
            {"id": f"{EX}a", "p": [{"@list": [1]}, {"@list": [2]}]},
            id="two lists",
        ),
        pytest.param(
            ":a :p ((1) 2)",
            {"id": f"{EX}a", "p": {"@list": [{"@list": [1]}, 2]}},
            id="list of lists",
        ),
        pytest.param(":a :p [ :q 1 ]", {"id": f"{EX}a", "p": {"q": 1}}, id="blank node"),
        pytest.param("[] :p 1", {"p": 1}, id="blank root"),
        pytest.param(
            ":a a:p 1; b:p 2; :q 3",
            {"id": f"{EX}a", "http://a.example/p": 1, "http://b.example/p": 2, "q": 3},
            id="equal local names",
        ),
        pytest.param(":a :type 1", {"id": f"{EX}a", f"{EX}type": 1}, id="a name that is taken"),
        pytest.param(
            ":g { :a :p 1 } :h { :a :q 2 }", {"id": f"{EX}a", "p": 1, "q": 2}, id="named graphs"
        ),
    ],
)
def test_documents_without_a_frame(turtle: str, expected: dict[str, Any]) -> None:
    found = message(turtle)
    assert to_json(found) == expected
    assert encoder().encode(found) == encoder().encode_document(found) + b"\n"


def test_prefixes_part_equal_local_names() -> None:
    found = message(":a a:p 1; b:p 2")
    assert JSON_DOCUMENTS.own is not None
    options = EncoderOptions({"a": "http://a.example/", "b": "http://b.example/"})
    written = encoder_for(JSON_DOCUMENTS, JSON_DOCUMENTS.own, options).encode(found)
    assert json.loads(written) == {"id": f"{EX}a", "a_p": 1, "b_p": 2}


@given(messages())
def test_default_documents_are_those_of_a_frame(found: Message) -> None:
    """The default is what PyLD frames by the roots, with every node embedded, where their context is the default's."""
    # frames have no blank nodes, and the default documents no datatypes but those of numbers and booleans
    found = found.map_blanks(lambda node: Term(f"<{EX}blank{node[2:]}>"))
    found = Message(quad._replace(object=_without_datatype(quad.object)) for quad in found)
    nodes = nodes_of(found)
    made = encoder()
    document = json.loads(made.encode(found))
    roots = roots_of(nodes)
    context = KeyNames((), {}, ()).context(uses_of(nodes))
    if not roots or any(_refers_to_itself(nodes)):
        return
    frame = {"@context": context, "@id": [root[1:-1] for root in roots], "@embed": "@always"}
    options = JsonOptions(frame=frame)
    assert _plain(json.loads(by_pyld(options, frame).document(found))) == _plain(document)


def _without_datatype(term: Term) -> Term:
    if term[0] != '"':
        return term
    value = value_object(term)
    is_string = json_of(value["@value"], value.get("@type")) is None and "@language" not in value
    return literal(value["@value"]) if is_string else term


def _refers_to_itself(nodes: Nodes) -> Iterator[bool]:
    for term, node in nodes.items():
        yield any(term in terms_in(values) for values in node.properties.values())


def _plain(value: Any) -> Any:
    """A document with value objects as strings, and language maps of nothing but strings without a language."""
    if isinstance(value, dict):
        if "@value" in value and "@language" not in value:
            return value["@value"]
        if set(value) == {"@none"}:
            return _plain(value["@none"])
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_plain, value), key=repr)
    return value


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ({"@embed": "@alwys"}, "'@alwys' at /@embed"),
        ({"urn:p": {"@embed": "@last"}}, "'@last' at /urn:p/@embed"),
        ({"urn:p": [{"@explicit": "yes"}]}, "'yes' at /urn:p/0/@explicit"),
        ({"@tpye": "urn:A"}, "/@tpye: @tpye is no keyword"),
        ({"@context": {"p": "urn:p"}, "p": {"nmae": {}}}, "/p/nmae: 'nmae' is no term"),
        ({"@context": {"@vocab": 5}}, "the context is malformed"),
        ({"@context": "https://example.org/c", "p": {}}, "<https://example.org/c> is not known"),
        ([{}], "the frame is no JSON object"),
        ("City", "the frame is no JSON object"),
        ({"@id": 5}, "the frame is malformed"),
    ],
    ids=str,
)
def test_bad_frames_name_the_place(frame: Any, place: str) -> None:
    with pytest.raises(UsageError, match=place.replace("/", "[/]")) as raised:
        to_json(message(":a :p 1"), frame)
    assert raised.value.hint or "malformed" in str(raised.value)


def test_errors_of_one_message_have_no_number_of_others() -> None:
    for _ in range(2):
        with pytest.raises(UnsupportedByFormat, match="message 1: JSON has no triple terms"):
            to_json(message(":a :p <<( :a :b :c )>>"))


def test_two_contexts() -> None:
    with pytest.raises(UsageError, match="another one is given"):
        to_json(message(":a :p 1"), {"@context": {}, "urn:p": {}}, context={})


@pytest.mark.parametrize(
    ("turtle", "frame", "error"),
    [
        (
            " ".join(f":n{n} :p :n{n + 1} ; :q :n{n + 1} ." for n in range(20)),
            None,
            "more than 65536 nodes",
        ),
        (":a :p <<( :a :b :c )>>", None, "has no triple terms"),
        (":a :p 'x'^^rdf:JSON", None, "is no JSON"),
        (
            ":a :p (1), (2)",
            {"@context": {"p": {"@id": f"{EX}p", "@container": "@list"}}, "@id": f"{EX}a"},
            "has 2 lists",
        ),
        (
            ":a :p <x:y>",
            {"@context": {"x": {"@id": "http://x/", "@prefix": True}, "@vocab": EX}, "p": {}},
            "reads like a compact IRI",
        ),
        (" ".join(f":n{n} :p :n{n + 1} ." for n in range(200)), None, "nested more than 128"),
    ],
    ids=["many paths", "triple term", "JSON literal", "two lists", "confused IRI", "too deep"],
)
def test_what_no_document_can_have(turtle: str, frame: Any, error: str) -> None:
    with pytest.raises(UnsupportedByFormat, match=error):
        encoder(frame=frame).encode(message(turtle))


def test_context_alone_names_the_keys() -> None:
    found = message(":a :p :b . :b :q 1")
    expected = {"@id": f"{EX}a", "P": {"@id": f"{EX}b", "Q": 1}}
    context = {"P": f"{EX}p", "Q": f"{EX}q"}
    assert to_json(found, context=context) == to_json(found, {"@context": context}) == expected
    by_iri = to_json(found, context="https://c.example/", contexts={"https://c.example/": context})
    assert by_iri == expected


@pytest.mark.parametrize(
    "frame",
    [
        {"@context": {"@vocab": EX}, "p": {"@embed": "@always"}, "@reverse": {"q": {}}},
        {"@context": {"@vocab": EX, "p": {"@id": "p", "@container": "@index"}}, "p": {}},
        {"@context": {"@vocab": EX, "isQOf": {"@reverse": "q"}}, "p": {}},
        {"@context": {"@vocab": EX, "n": "@nest", "p": {"@id": f"{EX}p", "@nest": "n"}}, "p": {}},
        {"@context": {"@vocab": EX}, "@graph": {"p": {}}},
        {"@context": {"@vocab": EX, "p": {"@id": f"{EX}p", "@context": {"q": "urn:q"}}}, "p": {}},
    ],
    ids=["@reverse", "@index", "reverse term", "@nest", "@graph", "scoped context"],
)
def test_other_features_are_left_to_pyld(frame: dict[str, Any]) -> None:
    found = message(":a :p :b . :b :q :a")
    options = JsonOptions(frame=frame)
    assert to_json(found, frame) == json.loads(by_pyld(options, frame).document(found))


@given(
    template=templates(),
    solutions=SOLUTIONS,
    context=contexts(),
    frame=frames(),
    array=st.booleans(),
)
def test_documents_by_template(
    template: Template,
    solutions: list[tuple[Term, ...]],
    context: dict[str, Any],
    frame: dict[str, Any],
    array: bool,
) -> None:
    plain, special = (encoder(frame={"@context": context, **frame}, array=array) for _ in range(2))

    def outcome(encode: Any) -> Any:
        try:
            return encode()
        except UnsupportedByFormat as error:
            return str(error)

    def slow() -> bytes:
        return b"".join(
            plain.encode(Message(template.instantiate(solution, number)))
            for number, solution in enumerate([*solutions, *solutions])
        )

    fast = special.for_template(template)

    def by_column() -> bytes:
        batch = Solutions.of(solutions)
        return b"".join(bytes(fast.encode(batch, first)) for first in (0, len(solutions)))

    if solutions:
        assert outcome(by_column) == outcome(slow)


QUERY = """
CONSTRUCT { ?s a ?t ; <urn:x:name> ?n ; <urn:x:knows> ?o . ?o <urn:x:name> ?m }
WHERE { ?s a ?t ; <urn:x:name> ?n ; <urn:x:knows> ?o . ?o <urn:x:name> ?m } ORDER BY ?s ?n ?o
"""
DATA = """<urn:a> a <urn:C> ; <urn:x:name> "A", "B" ; <urn:x:knows> <urn:b>, <urn:c> .
<urn:b> <urn:x:name> "b" . <urn:c> <urn:x:name> "c" ."""


@pytest.fixture
def store() -> ox.Store:
    store = ox.Store()
    store.load(DATA.encode(), format=ox.RdfFormat.TURTLE)
    return store


def test_grouped_documents_have_arrays_where_there_may_be_several(store: ox.Store) -> None:
    written = b"".join(construct_messages(QUERY, store, group_by=["?s", "?t"]).serialize("json"))
    assert json.loads(written) == {
        "id": "urn:a",
        "type": "urn:C",
        "name": ["A", "B"],
        "knows": [{"id": "urn:b", "name": ["b"]}, {"id": "urn:c", "name": ["c"]}],
    }


@pytest.mark.parametrize("group_by", ["", "?s"])
def test_arrays(store: ox.Store, group_by: str) -> None:
    def written(**options: Any) -> bytes:
        found = construct_messages(QUERY, store, group_by=group_by.split())
        return b"".join(found.serialize("json", options=JsonOptions(**options)))

    assert json.loads(written(array=True)) == list(map(json.loads, written().splitlines()))


def test_an_empty_array(store: ox.Store) -> None:
    found = construct_messages("CONSTRUCT { ?s <urn:p> ?o } WHERE { ?s <urn:none> ?o }", store)
    assert json.loads(b"".join(found.serialize("json", options=JsonOptions(array=True)))) == []


def test_a_log_becomes_documents(store: ox.Store) -> None:
    log = b"".join(construct_messages(QUERY, store).serialize("nq"))
    documents = [to_json(found) for found in read_log(log)]
    assert len(documents) == 4
    assert documents[0] == {
        "id": "urn:a",
        "type": "urn:C",
        "name": "A",
        "knows": {"id": "urn:b", "name": "b"},
    }


def test_documents_are_not_read() -> None:
    with pytest.raises(UsageError, match="unknown format 'json'"):
        read_log(b"{}", "json")


def test_blank_nodes_keep_an_identifier_where_it_is_needed() -> None:
    found = message(":a :p _:x ; :q _:x")
    document = to_json(found)
    assert document["p"] == document["q"]
    assert is_blank(Term(document["p"]))
