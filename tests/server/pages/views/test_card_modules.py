"""The page's modules for cards that touch no document: prefixes, marks, shapes of messages, pictures, and the store."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from construct_messages import Message, Quad, iri, literal
from construct_messages.rdf.formats import N_QUADS
from construct_messages.rdf.terms import RDF, Term, parse_term
from tests.support.http.streams import read
from tests.support.pages.modules import Modules

pytestmark = [pytest.mark.slow, pytest.mark.engine]

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    return Modules(tmp_path_factory.mktemp("modules"))


# --- prefixes --------------------------------------------------------------------------------------------------------

SHORTEN = """
import { COMMON_PREFIXES, Prefixes } from "./prefixes.js";
function main({ declared, learned, iris }) {
  const prefixes = new Prefixes(COMMON_PREFIXES, declared);
  for (const [iri, isTerm] of learned) prefixes.learn(iri, isTerm);
  return iris.map((iri) => prefixes.shorten(iri));
}
"""
DECLARED = {
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://mine.example/",
    "": "urn:default:",
}
LEARNED = [
    *(("http://www.bbc.co.uk/ontologies/domain/Document", True), ("urn:x:p", True)),
    *(("http://data.example.org/things/1", False), ("http://data.example.org/things/2", False)),
    *(("http://data.example.org/once/1", False), ("http://other.example/things/p", True)),
    ("http://example.org/", True),
]
SHORT = {
    "http://www.w3.org/2000/01/rdf-schema#label": "rdfs:label",
    "http://purl.org/dc/terms/title": "dcterms:title",
    "http://mine.example/a": "foaf:a",
    "http://xmlns.com/foaf/0.1/name": None,
    "urn:default:a": ":a",
    "http://dbpedia.org/resource/Reuss_(state)": "dbr:Reuss_(state)",
    "http://dbpedia.org/resource/a/b": None,
    "http://www.bbc.co.uk/ontologies/domain/name": "domain:name",
    "http://data.example.org/things/3": "things:3",
    "http://other.example/things/q": "things2:q",
    "http://data.example.org/once/1": None,
    "http://example.org/x": None,
    "urn:x:q": "ns:q",
}


def test_prefixes(modules: Modules) -> None:
    """Declared ones win over common ones, and those that are made up come last and never take a name that is taken."""
    given = {"declared": DECLARED, "learned": LEARNED, "iris": list(SHORT)}
    assert dict(zip(SHORT, modules.run(SHORTEN, given), strict=True)) == SHORT


# --- what nobody sees ------------------------------------------------------------------------------------------------

MARKED = {
    "plain text": ["plain text"],
    "a\u202eb": ["a", "U+202E right-to-left override", "b"],
    "\ufeffa\u200b": ["U+FEFF byte order mark", "a", "U+200B zero width space"],
    "a\x00": ["a", "U+0000"],
    " a  ": ["a space", "a", "2 spaces"],
    "\U0001f468\u200d\U0001f469": ["\U0001f468\u200d\U0001f469"],
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645": [
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    ],
    "a\u200c": ["a", "U+200C zero width non-joiner"],
    "a\nb\tc": ["a\nb\tc"],
}


def test_marks(modules: Modules) -> None:
    script = """import { partsOf } from "./marks.js";
    const main = (texts) => texts.map((text) => {
      const parts = partsOf(text);
      const whole = parts.map((part) => part.text ?? part).join("") === text;
      return [whole, parts.map((part) => part.name ?? part)];
    });"""
    assert modules.run(script, list(MARKED)) == [[True, parts] for parts in MARKED.values()]


# --- the shape of a message ------------------------------------------------------------------------------------------

NEST = """
import { nest } from "./nesting.js";
import { blankName } from "./term-view.js";
import { parseLine, termText } from "./terms.js";
function main(messages) {
  return messages.map((lines) => {
    const labels = new Map();
    const said = (term) => {
      if (term.kind === "blank") return blankName(term, labels);
      if (term.kind !== "triple") return termText(term);
      return ["<<(", said(term.subject), `<${term.predicate.value}>`, said(term.object), ")>>"].join(" ");
    };
    const node = ({ properties }) => properties.map(([predicate, objects]) => [`<${predicate}>`, objects.map(object)]);
    const object = ({ term, node: own, items }) => {
      if (items !== null) return { items: items.map(object) };
      if (own === null) return { term: said(term) };
      return { term: term.kind === "iri" ? said(term) : null, properties: node(own) };
    };
    return nest(lines.map(parseLine)).map(({ name, nodes }) => {
      return [name && said(name), nodes.map((each) => [said(each.term), node(each)])];
    });
  });
}
"""


class Reading:
    """What a reader makes of a card: each node without a name is a new one."""

    def __init__(self, graphs: Any) -> None:
        self._new = 0
        self.lines: list[str] = []
        for self._graph, nodes in graphs:
            for subject, properties in nodes:
                self._read(subject, properties)

    def _read(self, subject: str, properties: Any) -> None:
        for predicate, objects in properties:
            for each in objects:
                self._add(subject, predicate, self._object(each))

    def _object(self, shown: Any) -> str:
        if "items" in shown:
            return self._list(shown["items"])
        name: str = shown["term"] or self._name()
        self._read(name, shown.get("properties", ()))
        return name

    def _list(self, items: Any) -> str:
        names = [self._name() for _ in items] + [f"<{RDF}nil>"]
        for item, name, rest in zip(items, names, names[1:], strict=False):
            self._add(name, f"<{RDF}first>", self._object(item))
            self._add(name, f"<{RDF}rest>", rest)
        return names[0]

    def _name(self) -> str:
        self._new += 1
        return f"_:new{self._new}"

    def _add(self, *terms: str) -> None:
        self.lines.append(" ".join(filter(None, (*terms, self._graph, "."))))


def random_message(random: Random) -> Message:
    blanks = [Term(f"_:b{number}") for number in range(4)]
    subjects = [*blanks, iri("urn:s"), iri("urn:t"), iri("urn:u")]
    label = iri("http://www.w3.org/2000/01/rdf-schema#label")
    predicates = [iri("urn:p"), label, *(iri(f"{RDF}{name}") for name in ("type", "first", "rest"))]
    objects = [
        *subjects,
        iri(f"{RDF}nil"),
        literal("a"),
        parse_term('"b"@en'),
        parse_term('"c"@nl'),
    ]
    objects.append(parse_term("<<( _:b0 <urn:p> _:b1 )>>"))
    graphs = [None, None, None, iri("urn:g"), blanks[0]]
    return Message(
        Quad(*map(random.choice, (subjects, predicates, objects, graphs)))
        for _ in range(random.randrange(14))
    )


def test_a_card_says_what_its_message_says(modules: Modules) -> None:
    """Nothing is lost and nothing doubled: blank nodes are nested only where that says the same."""
    random = Random(7)
    messages = [random_message(random) for _ in range(400)]
    shapes = modules.run(NEST, [[str(quad) for quad in message] for message in messages])
    for message, shape in zip(messages, shapes, strict=True):
        lines = Reading(shape).lines
        assert len(lines) == len(message)
        assert read("".join(f"{line}\n" for line in lines), N_QUADS).isomorphic(message)


def test_what_is_deep_is_at_the_top_again(modules: Modules) -> None:
    chain = [f"_:c{n} <urn:p> _:c{n + 1} ." for n in range(1000)]
    ((_, nodes),) = modules.run(NEST, [chain])[0]
    assert len(nodes) > 50


# --- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 20, 200])
def test_no_two_nodes_of_a_picture_meet(modules: Modules, count: int) -> None:
    """Each has a place of its own, every edge goes one column on, and each statement is one edge."""
    script = """import { layOut } from "./graph.js";
    import { parseLine } from "./terms.js";
    const main = (lines) => {
      const { nodes, edges, left } = layOut(lines.map(parseLine));
      const places = new Set(nodes.map(({ row, column }) => `${row} ${column}`));
      return [places.size === nodes.length, edges.every(({ from, to }) => to.column === from.column + 1
        && to.row >= from.row), edges.length, left];
    };"""
    lines = [
        f"<urn:{number // 7}> <urn:p{number % 3}> <urn:{number % 50 if number % 5 else number}> ."
        for number in range(1, count + 1)
    ]
    assert modules.run(script, lines) == [True, True, count, 0]


# --- the store -------------------------------------------------------------------------------------------------------

STORE = """
import { Message } from "./log.js";
import { MessageStore } from "./store.js";
async function main({ count, bytes }) {
  const store = new MessageStore({ bytes });
  const linesOf = (number) =>
    number % 10 === 0 ? [] : Array.from({ length: number % 3 + 1 }, (_, i) => `<urn:${number}> <urn:p> "${i} é" .`);
  for (let number = 1; number <= count; number += 1) store.add(new Message(number, linesOf(number)));
  await store.packing;
  let same = 0;
  for (let index = store.first; index < count; index += 37) {
    const message = await store.at(index);
    if (JSON.stringify([message.number, message.lines]) === JSON.stringify([index + 1, linesOf(index + 1)])) same += 1;
  }
  const walked = [];
  for (let index = 0; index < count; ) {
    const [start, messages] = await store.some(index);
    walked.push(...messages.map(({ number }) => number));
    index = start + messages.length;
  }
  const rises = walked.every((number, at) => number === store.first + at + 1);
  const found = [1, store.first + 1, count, count + 1].map((number) => store.indexOf(number));
  return { first: store.first, bytes: store.bytes, same, walked: walked.length, rises, found };
}
"""


def test_a_store_gives_back_what_came(modules: Modules) -> None:
    count = 20_000
    kept = modules.run(STORE, {"count": count, "bytes": 1 << 28})
    assert kept.pop("bytes") < 400_000  # of 1.2 million characters
    assert kept == {
        "first": 0,
        "same": 541,
        "walked": count,
        "rises": True,
        "found": [0, 0, count - 1, -1],
    }


def test_a_full_store_lets_the_oldest_go(modules: Modules) -> None:
    kept = modules.run(STORE, {"count": 20_000, "bytes": 100_000})
    assert 0 < kept["first"] < 20_000
    assert kept["bytes"] <= 100_000 or kept["walked"] <= 512
    assert kept["same"] == -(-(20_000 - kept["first"]) // 37)
    assert kept["rises"]
    assert kept["found"] == [-1, kept["first"], 19_999, -1]
