"""`construct.py`: one table of message cases through every kind of source, and what a stream promises."""

from __future__ import annotations

import asyncio
import gc
import io
import math
import threading
import weakref
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import event, given, settings
from hypothesis import strategies as st
from rdflib.plugins.stores.sparqlstore import SPARQLStore

from construct_messages import (
    GroupError,
    LimitExceeded,
    Message,
    NotConstruct,
    QueryError,
    QueryMessages,
    SourceError,
    SourceTimeout,
    TermError,
    UnsupportedByFormat,
    UsageError,
    construct_messages,
    read_log,
    terms,
)
from construct_messages.labels import Labels
from construct_messages.solutions import Solutions
from construct_messages.sources import Request
from construct_messages.template import Blank, Constant, Pattern, Slot, Template, Variable
from construct_messages.terms import Term, parse_term
from tests.support.strategies import DATA_BLANKS, IRIS, LITERALS

PREFIX = "PREFIX ex: <http://example.org/>\n"
DATA = """
@prefix ex: <http://example.org/> .
ex:acme a ex:Company ; ex:location ex:be, ex:nl ; ex:name "Acme"@en .
ex:bolt a ex:Company ; ex:location ex:be ; ex:name "Bolt"@en, "Boulon"@fr .
ex:corp a ex:Company ; ex:location "somewhere" ; ex:founded _:event .
_:event ex:year 1999 .
ex:be ex:label "België"@nl ; ex:population 11500000 ; ex:open true ; ex:share 0.5 .
ex:nl ex:label "Nederland"@nl .
"""


XSD = terms.XSD


def quads(*short: str) -> list[str]:
    """Quads in short: IRIs below example.org by their last part, `a` for rdf:type, other terms as they are."""

    def term(position: int, part: str) -> str:
        if part[0] in '<"_':
            return part
        return f"<{terms.RDF}type>" if (position, part) == (1, "a") else f"<http://example.org/{part}>"

    return [" ".join([*(term(*item) for item in enumerate(quad.split(" "))), "."]) for quad in short]


EACH = "{ ?c ex:location ?l } ORDER BY ?c ?l"

# name, query (without the prefix), options, the quads of each message
CASES: list[tuple[str, str, dict[str, object], list[list[str]]]] = [
    (
        "one message per solution",
        f"CONSTRUCT {{ ?c ex:in ?l }} {EACH}",
        {},
        [quads("acme in be"), quads("acme in nl"), quads("bolt in be"), quads('corp in "somewhere"')],
    ),
    (
        "dropped triples leave the rest, and empty messages stay",
        "CONSTRUCT { ?l ex:of ?c . ?l ex:label ?n } WHERE "
        "{ ?c ex:location ?l OPTIONAL { ?l ex:label ?n } } ORDER BY ?c ?l",
        {},
        [
            quads("be of acme", 'be label "België"@nl'),
            quads("nl of acme", 'nl label "Nederland"@nl'),
            quads("be of bolt", 'be label "België"@nl'),
            [],
        ],
    ),
    (
        "skip_empty",
        f"CONSTRUCT {{ ?l ex:of ?c }} {EACH}",
        {"skip_empty": True},
        [quads("be of acme"), quads("nl of acme"), quads("be of bolt")],
    ),
    (
        "group_by in order of appearance",
        "CONSTRUCT { ?c ex:in ?l } WHERE { ?c ex:location ?l } ORDER BY DESC(STR(?l)) ?c",
        {"group_by": ("?c",)},
        [quads('corp in "somewhere"'), quads("acme in nl", "acme in be"), quads("bolt in be")],
    ),
    (
        "group_by a variable outside the template",
        f"CONSTRUCT {{ ?c a ex:Thing }} {EACH}",
        {"group_by": ("l",)},
        [quads("acme a Thing", "bolt a Thing"), quads("acme a Thing"), quads("corp a Thing")],
    ),
    (
        "template blank nodes are fresh in each solution of a group",
        f"CONSTRUCT {{ ?c ex:has [ ex:place ?l ] }} {EACH} LIMIT 2",
        {"group_by": "?c"},
        [quads("acme has _:x_t0b0", "_:x_t0b0 place be", "acme has _:x_t1b0", "_:x_t1b0 place nl")],
    ),
    (
        "group_by sorted keeps the slice",
        f"CONSTRUCT {{ ?c ex:in ?l }} {EACH} LIMIT 3",
        {"group_by": ("?l",), "group_order": "sorted"},
        [quads("acme in be", "bolt in be"), quads("acme in nl")],
    ),
    (
        "distinct",
        f"CONSTRUCT {{ ?l ex:used true }} {EACH}",
        {"distinct": True},
        [quads(f'be used "true"^^<{XSD}boolean>'), quads(f'nl used "true"^^<{XSD}boolean>'), []],
    ),
    (
        "duplicates stay unless told otherwise",
        f"CONSTRUCT {{ ex:x ex:y ex:z }} {EACH}",
        {},
        [quads("x y z")] * 4,
    ),
    (
        "duplicates of one variable",
        "CONSTRUCT { ex:x ex:at ?l } WHERE { ?c ex:location ?l FILTER isIRI(?l) } ORDER BY ?l",
        {},
        [quads("x at be"), quads("x at be"), quads("x at nl")],
    ),
    (
        "13.1: solutions without a binding",
        "CONSTRUCT { ex:log ex:entry [ ex:name ?n ] } WHERE "
        '{ ?c a ex:Company OPTIONAL { ?c ex:name ?n FILTER (LANG(?n) = "fr") } } ORDER BY ?c',
        {},
        [
            quads("log entry _:x_t0b0"),
            quads('_:x_t1b0 name "Boulon"@fr', "log entry _:x_t1b0"),
            quads("log entry _:x_t2b0"),
        ],
    ),
    (
        "13.1: a variable that is never bound",
        "CONSTRUCT { ex:x ex:y ?never ; ex:z ex:w } WHERE { ?c a ex:Company }",
        {},
        [quads("x z w")] * 3,
    ),
    (
        "template blank nodes are fresh in each solution",
        f"CONSTRUCT {{ [] ex:at ?l }} {EACH} LIMIT 2",
        {},
        [quads("_:x_t0b0 at be"), quads("_:x_t1b0 at nl")],
    ),
    (
        "distinct compares template blank nodes by slot",
        f"CONSTRUCT {{ _:x ex:at ?l ; ex:same _:x }} {EACH} LIMIT 3",
        {"distinct": True},
        [quads("_:x_t0b0 at be", "_:x_t0b0 same _:x_t0b0"), quads("_:x_t1b0 at nl", "_:x_t1b0 same _:x_t1b0")],
    ),
    (
        "numbers and booleans are expanded",
        "CONSTRUCT { ex:be ex:v ?p, ?o, ?s } WHERE { ex:be ex:population ?p ; ex:open ?o ; ex:share ?s }",
        {},
        [quads(f'be v "11500000"^^<{XSD}integer>', f'be v "true"^^<{XSD}boolean>', f'be v "0.5"^^<{XSD}decimal>')],
    ),
    ("no solutions", "CONSTRUCT { ?x ex:b ex:c } WHERE { ?x a ex:Nothing }", {}, []),
    (
        "max_messages",
        f"CONSTRUCT {{ ?c ex:in ?l }} {EACH}",
        {"max_messages": 2},
        [quads("acme in be"), quads("acme in nl")],
    ),
    ("max_messages of none", f"CONSTRUCT {{ ?c ex:in ?l }} {EACH}", {"max_messages": 0}, []),
    (
        "the short form",
        "CONSTRUCT WHERE { ?l ex:label ?n }",
        {"group_by": ("?n",), "group_order": "sorted"},
        [quads('be label "België"@nl'), quads('nl label "Nederland"@nl')],
    ),
    (
        "initial bindings",
        "CONSTRUCT { ?c ex:in ?l } WHERE { ?c ex:location ?l } ORDER BY ?c",
        {"bindings": {"?l": "<http://example.org/be>"}},
        [quads("acme in be"), quads("bolt in be")],
    ),
    (
        "a sub-select's aggregates",
        "CONSTRUCT { ?l ex:companies ?n } WHERE "
        "{ SELECT ?l (COUNT(?c) AS ?n) { ?c ex:location ?l } GROUP BY ?l } ORDER BY DESC(?n) ?l",
        {"skip_empty": True},
        [quads(f'be companies "2"^^<{XSD}integer>'), quads(f'nl companies "1"^^<{XSD}integer>')],
    ),
    (
        "GROUP BY",
        "CONSTRUCT { ?l ex:used ?c } WHERE { ?c ex:location ?l } GROUP BY ?l ORDER BY ?l",
        {},
        [[], [], []],
    ),
    (
        "13.3: a trailing VALUES behind GROUP BY",
        "CONSTRUCT { ?l ex:called ?u ; ex:by ?c } WHERE { ?c ex:location ?l } GROUP BY ?l HAVING (COUNT(?c) > 0) "
        'ORDER BY DESC(COUNT(?c)) ?u VALUES (?l ?u) { (ex:nl "three") (ex:be "one") (ex:be "two") (ex:none "none") }',
        {},
        [quads('be called "one"'), quads('be called "two"'), quads('nl called "three"')],
    ),
    (
        "13.3: a trailing VALUES behind HAVING alone",
        "CONSTRUCT { ex:x ex:y ?u } WHERE { ?c ex:location ?l } HAVING (COUNT(*) = 4) ORDER BY ?u VALUES ?u { 1 2 }",
        {},
        [quads(f'x y "1"^^<{XSD}integer>'), quads(f'x y "2"^^<{XSD}integer>')],
    ),
    (
        "13.3: grouping by what a trailing VALUES binds",
        "CONSTRUCT { ?l ex:called ?u } WHERE { ?c ex:location ?l } GROUP BY ?l VALUES (?l ?u) { (ex:nl 1) (ex:be 1) }",
        {"group_by": "?u", "group_order": "sorted"},
        [quads(f'be called "1"^^<{XSD}integer>', f'nl called "1"^^<{XSD}integer>')],
    ),
    (
        "13.16: initial bindings of what BIND assigns",
        "CONSTRUCT { ?c ex:in ?place } WHERE { ?c ex:location ?l BIND(?l AS ?place) } ORDER BY ?c",
        {"bindings": {"place": "<http://example.org/be>"}},
        [quads("acme in be"), quads("bolt in be")],
    ),
    (
        "13.16: initial bindings of a plain value",
        "CONSTRUCT { ?l ex:people ?n } WHERE { ?l ex:population ?n }",
        {"bindings": {"n": 11500000}},
        [quads(f'be people "11500000"^^<{XSD}integer>')],
    ),
    (
        "a quads template",
        "CONSTRUCT { GRAPH ?c { ?l ex:label ?n } ?c ex:has ?l } WHERE "
        "{ ?c ex:location ?l . ?l ex:label ?n } ORDER BY ?c ?l LIMIT 1",
        {},
        [quads('be label "België"@nl acme', "acme has be")],
    ),
    (
        "a relative IRI and a prefix from outside",
        "CONSTRUCT { <here> my:ocal ?l } WHERE { ?l my:abel ?n } ORDER BY ?l LIMIT 1",
        # not the namespace of ex: rdflib knows one prefix for each
        {"base": "http://example.org/", "prefixes": {"my": "http://example.org/l"}},
        [quads("here local be")],
    ),
]


@pytest.fixture(scope="session")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.ttl"
    path.write_text(DATA)
    return path


@pytest.fixture(scope="session")
def sources(
    data_file: Path, oxigraph_server: Callable[[Path], str], rdflib_server: Callable[[Path], str]
) -> dict[str, object]:
    """The same data in every kind of source."""
    store = ox.Store()
    store.load(path=data_file)
    directory = data_file.parent / "store"
    with_data = ox.Store(directory)
    with_data.load(path=data_file)
    with_data.flush()
    del with_data
    oxigraph = oxigraph_server(data_file)
    return {
        "store": store,
        "file": data_file,
        "directory": str(directory),
        "rdflib": rdflib.Graph().parse(data_file),
        "dataset": rdflib.Dataset(default_union=True).parse(data_file, format="turtle"),
        "rdflib's client": rdflib.Graph(SPARQLStore(oxigraph, method="POST_FORM")),
        "oxigraph": oxigraph,
        "rdflib-endpoint": rdflib_server(data_file),
    }


# the source, its options, and the cases it cannot answer, with the reason
PATHS: list[tuple[str, dict[str, object]]] = [
    ("store", {}),
    ("file", {}),
    ("directory", {}),
    ("rdflib", {}),
    ("rdflib", {"timeout": 60}),
    ("dataset", {}),
    ("rdflib's client", {}),
    ("oxigraph", {}),
    ("oxigraph", {"results": "xml"}),
    ("oxigraph", {"results": "tsv", "profile": "oxigraph"}),
    ("oxigraph", {"method": "get"}),
    ("oxigraph", {"page_size": 1}),
    ("rdflib-endpoint", {}),
    ("rdflib-endpoint", {"page_size": 2}),
]


def path_id(path: tuple[str, dict[str, object]]) -> str:
    return " ".join([path[0], *(f"{name}={value}" for name, value in path[1].items())])


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("path", PATHS, ids=path_id)
@pytest.mark.parametrize(
    ("query", "options", "messages"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_one_case_every_path(
    query: str,
    options: dict[str, object],
    messages: list[list[str]],
    path: tuple[str, dict[str, object]],
    asynchronous: bool,
    sources: dict[str, object],
) -> None:
    def stream() -> QueryMessages:
        return construct_messages(PREFIX + query, sources[path[0]], label_prefix="x", **path[1], **options)  # type: ignore[arg-type]

    async def collect() -> tuple[list[Message], bytes]:
        return [message async for message in stream()], b"".join([chunk async for chunk in stream().aserialize()])

    if asynchronous:
        found, log = asyncio.run(collect())
    else:
        found, log = list(stream()), b"".join(stream().serialize())
    assert [sorted(map(str, message)) for message in found] == [sorted(message) for message in messages]
    # the fast path, where there is one, says the same
    parts = log.decode().split("# @message\n")
    assert parts.pop(0) == ""
    assert [sorted(part.splitlines()) for part in parts] == [sorted(message) for message in messages]


# --- union of messages = CONSTRUCT -----------------------------------------------------------------------------------

WHERES = [
    "{ ?a ?b ?c }",
    "{ ?a ?b ?c OPTIONAL { ?c ?e ?d } }",
    "{ ?a ?e ?b OPTIONAL { ?b ?f ?c OPTIONAL { ?c ?g ?d } } }",
    "{ { ?a ?b ?c } UNION { ?d ?b ?a } }",
    "{ ?e ?f ?a . ?e ?b ?c OPTIONAL { ?e ?f ?d FILTER(isLiteral(?d)) } }",
]
SUBJECTS = st.sampled_from([parse_term(f"<http://example.org/{name}>") for name in "ab"]) | DATA_BLANKS
PREDICATES = st.sampled_from([parse_term(f"<http://example.org/{name}>") for name in "pq"])
TRIPLES = st.tuples(SUBJECTS, PREDICATES, st.one_of(SUBJECTS, SUBJECTS, LITERALS, IRIS))
VARIABLES = tuple("abcd")
VARIABLE = st.sampled_from([Variable(index) for index in range(4)])
SUBJECT: st.SearchStrategy[Slot] = st.sampled_from([VARIABLE, VARIABLE, st.builds(Blank, st.integers(0, 1))]).flatmap(
    lambda slot: slot
)
OBJECT: st.SearchStrategy[Slot] = st.one_of(SUBJECT, SUBJECT, st.builds(Constant, LITERALS))
PATTERN = st.builds(Pattern, SUBJECT, st.one_of(st.builds(Constant, PREDICATES), VARIABLE), OBJECT)


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[Pattern], str]:
    """A template and a WHERE; in half of them ?d is ?a, and two triples that are equal then."""
    patterns, where = draw(st.lists(PATTERN, min_size=1, max_size=4)), draw(st.sampled_from(WHERES))
    if draw(st.booleans()):
        where = "{ ?a ?b ?c BIND(?a AS ?d) }"
        predicate, object = draw(st.builds(Constant, PREDICATES)), draw(OBJECT)
        patterns += [Pattern(Variable(VARIABLES.index(name)), predicate, object) for name in "ad"]
    return patterns, where


def sparql(slot: Slot) -> str:
    match slot:
        case Variable(index):
            return f"?{VARIABLES[index]}"
        case Blank(index):
            return f"_:b{index}"
        case Constant(term):
            return term
    raise AssertionError(slot)


def as_dataset(quads: list[ox.Quad]) -> ox.Dataset:
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def check_union(triples: list[tuple[Term, Term, Term]], patterns: list[Pattern], where: str) -> dict[str, bool]:
    """One example; says what happened in it."""
    store = ox.Store()
    for triple in triples:
        store.add(ox.Quad(*map(terms.to_pyoxigraph, triple)))  # type: ignore[arg-type]
    text = " . ".join(" ".join(map(sparql, (p.subject, p.predicate, p.object))) for p in patterns)
    query = f"CONSTRUCT {{ {text} }} WHERE {where}"
    stream = construct_messages(query, store, label_prefix="x")
    messages = list(stream)

    # one message per solution, in the order of the SELECT
    names = stream.query.template.variables
    solutions = list(store.query(stream.select))
    assert len(messages) == len(solutions)
    values = [
        tuple("" if (v := solution[name]) is None else terms.from_pyoxigraph(v, "x_d") for name in names)
        for solution in solutions
    ]
    template = stream.query.template.labelled(Labels("x"))
    assert [list(m) for m in messages] == [template.instantiate(value, n) for n, value in enumerate(values)]  # type: ignore[arg-type]

    # their union is what the engine's own CONSTRUCT says
    own = [ox.Quad(t.subject, t.predicate, t.object) for t in store.query(query)]
    united = [quad for message in messages for quad in message.to_pyoxigraph()]
    assert as_dataset(united) == as_dataset(own)

    # the log by the fast path is the log by the slow path, and plain parsers read it
    log = b"".join(construct_messages(query, store, label_prefix="x").serialize("nq"))
    assert as_dataset(list(ox.parse(log, ox.RdfFormat.N_QUADS))) == as_dataset(united)
    slow = "".join("# @message\n" + "".join(f"{quad}\n" for quad in message) for message in messages)
    assert log == slow.encode()

    used = {slot.index for p in template.patterns for slot in p if isinstance(slot, Variable)}
    subjects = {p.subject.index for p in template.patterns if isinstance(p.subject, Variable)}
    return {
        "unbound variable": any(not value[index] for value in values for index in used),
        "literal subject": any(value[index].startswith('"') for value in values for index in subjects),
        "shared blank node": len({m for m in messages if any("_:x_d" in str(q) for q in m)}) > 1,
        "duplicate inside a message": any(
            len(m) < sum(len(Template(names, (p,)).instantiate(v, 0)) for p in template.patterns)  # type: ignore[arg-type]
            for m, v in zip(messages, values, strict=True)
        ),
    }


@given(st.lists(TRIPLES, min_size=1, max_size=8), queries())
def test_union_of_messages_is_construct(
    triples: list[tuple[Term, Term, Term]], query: tuple[list[Pattern], str]
) -> None:
    for what, happened in check_union(triples, *query).items():
        event(f"{what}: {happened}")


def test_the_union_property_meets_what_it_is_about() -> None:
    counts: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True)
    @given(st.lists(TRIPLES, min_size=1, max_size=8), queries())
    def count(triples: list[tuple[Term, Term, Term]], query: tuple[list[Pattern], str]) -> None:
        counts["examples"] += 1
        counts.update(what for what, happened in check_union(triples, *query).items() if happened)

    count()
    examples = counts.pop("examples")
    assert len(counts) == 4
    assert min(counts.values()) >= examples / 10, (counts, examples)


# --- what a stream promises ------------------------------------------------------------------------------------------

SPO = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


@pytest.fixture
def store() -> ox.Store:
    filled = ox.Store()
    filled.load(DATA.encode(), format=ox.RdfFormat.TURTLE)
    return filled


class Recorder:
    """A source that records what is asked of it."""

    predefined: Mapping[str, str] = {}
    stable_blank_nodes = True

    def __init__(self) -> None:
        self.said: list[str] = []

    def solutions(self, request: Request) -> Generator[Solutions]:
        self.said.append("asked")
        try:
            for number in range(10):
                yield Solutions.of([(Term(f"<urn:{number}>"),) * len(request.select.variables)])
                self.said.append(f"went on after {number}")
        finally:
            self.said.append("closed")

    async def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        for batch in self.solutions(request):
            yield batch

    def close(self) -> None:
        self.said.append("let go")


def test_lazy_and_closed_when_exhausted() -> None:
    source = Recorder()
    stream = construct_messages(SPO, source)
    assert source.said == []
    next(stream)
    assert source.said == ["asked"]
    assert len(list(stream)) == 9
    assert source.said[-1] == "closed"
    assert (stream.message_count, stream.solutions) == (10, 10)


def test_a_large_batch_leaves_turns_to_others() -> None:
    class OneBatch(Recorder):
        def solutions(self, request: Request) -> Generator[Solutions]:
            width = len(request.select.variables)
            yield Solutions.of([(Term(f"<urn:{number}>"),) * width for number in range(1000)])

    async def turns() -> tuple[int, bytes]:
        """How often others had one until the log was whole."""
        count, chunks = 0, []

        async def write() -> None:
            async for chunk in construct_messages(SPO, OneBatch()).aserialize("trig"):
                chunks.append(chunk)

        writing = asyncio.create_task(write())
        while not writing.done():
            await asyncio.sleep(0)
            count += 1
        return count, b"".join(chunks)

    count, log = asyncio.run(turns())
    assert count >= 1000 / 200
    assert log == b"".join(construct_messages(SPO, OneBatch()).serialize("trig"))


def test_closed_by_the_context_manager() -> None:
    source = Recorder()
    with construct_messages(SPO, source) as stream:
        next(stream)
    assert source.said == ["asked", "closed"]


def test_closed_as_garbage() -> None:
    source = Recorder()
    stream = construct_messages(SPO, source)
    next(stream)
    watch = weakref.ref(stream)
    del stream
    assert watch() is None, "dropping the last reference is enough"
    assert source.said == ["asked", "closed"]


def test_closed_when_max_messages_is_reached() -> None:
    source = Recorder()
    assert len(list(construct_messages(SPO, source, max_messages=3))) == 3
    assert source.said == ["asked", "went on after 0", "went on after 1", "closed"]


async def test_closed_in_asyncio() -> None:
    source = Recorder()
    async with construct_messages(SPO, source) as stream:
        async for _ in stream:
            break
    assert source.said[-1] == "closed"


def test_what_the_stream_opened_it_closes(data_file: Path) -> None:
    assert len(list(construct_messages(SPO, data_file))) == 17


def test_read_once(store: ox.Store) -> None:
    stream = construct_messages(SPO, store)
    next(stream)
    with pytest.raises(UsageError, match="read once"):
        stream.serialize()
    with pytest.raises(UsageError, match="read once"):
        aiter(stream)
    serialized = construct_messages(SPO, store)
    next(serialized.serialize())
    with pytest.raises(UsageError, match="read once"):
        next(serialized)


def test_threads_end_with_the_stream(store: ox.Store) -> None:
    stream = construct_messages("CONSTRUCT { ?a ?b ?c } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }", store)
    next(stream)
    del stream
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "construct-messages evaluation":
            thread.join(5)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    ("name", "format", "head"),
    [
        ("log.nq", None, b"# @message\n<http"),
        ("log.nt", None, b"# @message\n<http"),
        ("log.ttl", None, b"# @message\nPREFIX ex:"),
        ("log.trig", None, b"# @message\nPREFIX ex:"),
        ("log.txt", "trig", b"# @message\nPREFIX ex:"),
        ("log.nq", "application/trig; version=1.2-messages", b'VERSION "1.2-messages"\nPREFIX ex:'),
    ],
)
def test_write(name: str, format: str | None, head: bytes, store: ox.Store, tmp_path: Path) -> None:
    query = PREFIX + "CONSTRUCT { ?l ex:label ?n } WHERE { ?l ex:label ?n }"
    assert construct_messages(query, store).write(tmp_path / name, format) == 2
    assert (tmp_path / name).read_bytes().startswith(head)
    buffer = io.BytesIO()
    assert construct_messages(query, store).write(buffer, format or "nq") == 2
    assert buffer.getvalue()
    assert not buffer.closed


def test_a_file_open_for_text_is_refused(store: ox.Store) -> None:
    with pytest.raises(UsageError, match="open for text"):
        construct_messages(SPO, store).write(io.StringIO())  # type: ignore[arg-type]


def test_a_failed_write_leaves_nothing(store: ox.Store, tmp_path: Path) -> None:
    path = tmp_path / "log.nt"
    with pytest.raises(UnsupportedByFormat, match="message 1: N-Triples has no named graphs"):
        construct_messages("CONSTRUCT { GRAPH ?s { ?s ?p ?o } } WHERE { ?s ?p ?o }", store).write(path)
    assert list(tmp_path.iterdir()) == []


def test_skolemize(store: ox.Store) -> None:
    query = PREFIX + "CONSTRUCT { ?e ex:in ?y ; ex:by [ ex:name 'x' ] } WHERE { ?c ex:founded ?e . ?e ex:year ?y }"
    options = {"skolemize": "https://example.org/.well-known/genid/", "label_prefix": "x"}
    (message,) = construct_messages(query, store, **options)  # type: ignore[arg-type]
    skolem, own = sorted({quad.subject for quad in message})
    assert skolem.startswith("<https://example.org/.well-known/genid/x_d")
    assert own == "_:x_t0b0"
    (log,) = construct_messages(query, store, **options).serialize()  # type: ignore[arg-type]
    assert b"<https://example.org/.well-known/genid/x_d" in log


@pytest.mark.parametrize(
    ("value", "found"),
    [('"Acme"@en', 1), (ox.Literal("Acme", language="en"), 1), (rdflib.Literal("Acme", lang="en"), 1), ('"Acme"', 0)],
)
def test_bindings_take_terms_of_any_library(value: object, found: int, store: ox.Store) -> None:
    query = PREFIX + "CONSTRUCT { ?c ex:named ?n } WHERE { ?c ex:name ?n }"
    assert len(list(construct_messages(query, store, bindings={"n": value}))) == found


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (2, f'"2"^^<{XSD}integer>'),
        (-(10**30), f'"-{10**30}"^^<{XSD}integer>'),
        (True, f'"true"^^<{XSD}boolean>'),
        (2.5, f'"2.5"^^<{XSD}double>'),
        (math.inf, f'"INF"^^<{XSD}double>'),
        (Decimal("1E+3"), f'"1000"^^<{XSD}decimal>'),
        (Decimal("0.10"), f'"0.10"^^<{XSD}decimal>'),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), f'"2026-01-02T03:04:05+00:00"^^<{XSD}dateTime>'),
        (date(2026, 1, 2), f'"2026-01-02"^^<{XSD}date>'),
        (time(1, 2), f'"01:02:00"^^<{XSD}time>'),
        (timedelta(days=1), f'"P1D"^^<{XSD}dayTimeDuration>'),
        ("2", f'"2"^^<{XSD}integer>'),  # text is N-Triples, also that of a number
        ('"2"', '"2"'),
    ],
    ids=lambda value: str(value),
)
def test_bindings_take_plain_values_of_python(value: object, term: str) -> None:
    """Issue 13, 16."""
    stream = construct_messages("CONSTRUCT { ?s ?p ?n } WHERE { ?s ?p ?o }", Recorder(), bindings={"n": value})
    assert f"VALUES (?n) {{ ({term}) }}" in stream.select
    assert ox.Store().query(stream.select) is not None


def test_the_environment_names_the_source(data_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONSTRUCT_MESSAGES_SOURCE", raising=False)
    with pytest.raises(UsageError, match="no source is named"):
        construct_messages(SPO)
    monkeypatch.setenv("CONSTRUCT_MESSAGES_SOURCE", str(data_file))
    assert len(list(construct_messages(SPO))) == 17


@pytest.mark.parametrize(
    ("query", "options", "error", "words"),
    [
        ("SELECT * { ?s ?p ?o }", {}, NotConstruct, "got SELECT"),
        ("CONSTRUCT { ?s ?p } WHERE { ?s ?p ?o }", {}, QueryError, "line 1, column"),
        ("CONSTRUCT { ?s ex:p ?o } WHERE { ?s ?p ?o }", {}, QueryError, "ex:"),
        ("CONSTRUCT { ?s <p> ?o } WHERE { ?s ?p ?o }", {}, QueryError, "relative"),
        (SPO, {"group_by": ("?nowhere",)}, QueryError, "nowhere"),
        (SPO, {"group_by": ("?s",), "group_order": "random"}, UsageError, "group_order"),
        (SPO, {"group_limit": 0}, UsageError, "group_limit"),
        (SPO, {"distinct_limit": -1}, UsageError, "distinct_limit"),
        (SPO, {"page_size": 0}, UsageError, "page_size"),
        (SPO, {"timeout": 0}, UsageError, "timeout"),
        (SPO, {"max_messages": -1}, UsageError, "max_messages"),
        (SPO, {"skolemize": "relative"}, TermError, "relative"),
        (SPO, {"bindings": {"s": "unquoted"}}, TermError, "not an RDF term"),
        (SPO, {"bindings": {"s": "Brussels"}}, TermError, "a string as"),
        (SPO, {"bindings": {"s": [5]}}, UsageError, "no term"),
        (SPO, {"bindings": {"s": None}}, UsageError, "no term"),
        (SPO, {"bindings": {"s": Decimal("NaN")}}, UsageError, "no term"),
        (SPO, {"bindings": {"s": "_:b"}}, UsageError, "blank node"),
        (SPO, {"bindings": {"nowhere": "<urn:x>"}}, UsageError, "nowhere"),
        (f"{SPO} GROUP BY (STR(?s) AS ?k)", {"bindings": {"k": 1}}, UsageError, "GROUP BY computes it"),
        ("CONSTRUCT { ?s ?p ?o } { . ?s ?p ?o }", {"bindings": {"s": 1}}, QueryError, "line 1, column 26"),
    ],
)
def test_refused_at_once(
    query: str, options: dict[str, object], error: type[Exception], words: str, store: ox.Store
) -> None:
    with pytest.raises(error, match=words):
        construct_messages(query, store, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["store", "file", "rdflib", "oxigraph", "rdflib-endpoint"])
def test_a_prefix_that_nobody_declared_is_named(source: str, sources: dict[str, object]) -> None:
    """Issue 13, 16."""
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o . ?o nowhere:p ?q }"
    with pytest.raises((QueryError, SourceError), match=r"PREFIX nowhere:|nowhere: is not declared"):
        list(construct_messages(query, sources[source]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"group_by": ("?s",), "group_limit": 3}, LimitExceeded, "more than 3 solutions"),
        ({"distinct": True, "distinct_limit": 3}, LimitExceeded, "more than 3 different messages"),
        ({"timeout": 1e-9}, SourceTimeout, "time allowed"),
    ],
)
def test_limits_are_errors(options: dict[str, object], error: type[Exception], words: str, store: ox.Store) -> None:
    with pytest.raises(error, match=words):
        list(construct_messages(SPO, store, **options))  # type: ignore[arg-type]


def test_a_sorted_key_that_comes_back_is_an_error() -> None:
    class Unsorted(Recorder):
        def solutions(self, request: Request) -> Generator[Solutions]:
            yield Solutions.of([(Term(f"<urn:{n % 2}>"),) * len(request.select.variables) for n in range(4)])

    with pytest.raises(GroupError, match="came back after it was closed"):
        list(construct_messages(SPO, Unsorted(), group_by="?s", group_order="sorted"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (42, "is no source"),
        ([], "list of files is empty"),
        ([1], "is no path"),
        ("ftp://example.org/data", "cannot be a source"),
        (["http://example.org/sparql", "data.ttl"], "cannot be a source"),
        ("absent.ttl", "no such file"),
    ],
)
def test_what_is_no_source(source: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        construct_messages(SPO, source)  # type: ignore[arg-type]


# --- blank nodes over pages ------------------------------------------------------------------------------------------

BLANKS = "@prefix ex: <http://example.org/> .\n" + "\n".join(
    f"ex:{name} ex:at _:b{number // 4} ." for number, name in enumerate("abcdefghijkl")
)
BLANKS_QUERY = PREFIX + "CONSTRUCT { ?s ex:at ?node } WHERE { ?s ex:at ?node } ORDER BY ?s"
TORN = "one node may have become several"


@pytest.fixture(scope="session")
def blanks_server(tmp_path_factory: pytest.TempPathFactory, oxigraph_server: Callable[[Path], str]) -> str:
    """Twelve solutions over three blank nodes."""
    path = tmp_path_factory.mktemp("blanks") / "blanks.ttl"
    path.write_text(BLANKS)
    return oxigraph_server(path)


@pytest.mark.parametrize("how", ["for", "async for", "serialize"])
@pytest.mark.parametrize(
    ("options", "nodes", "warned"),
    [
        ({}, 3, False),
        ({"page_size": 5, "profile": "oxigraph"}, 3, False),
        ({"page_size": 12}, 3, False),
        ({"page_size": 5}, 5, True),
        ({"page_size": 5, "max_messages": 5}, 2, False),
    ],
    ids=lambda value: str(value),
)
def test_blank_nodes_over_pages(
    blanks_server: str,
    options: dict[str, object],
    nodes: int,
    warned: bool,
    how: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Issue 13, 4: labels are stable where the engine is known for it; otherwise it is said, or an error."""

    def read(**more: object) -> list[Message]:
        stream = construct_messages(BLANKS_QUERY, blanks_server, **options, **more)  # type: ignore[arg-type]
        if how == "serialize":
            return list(read_log(b"".join(stream.serialize("nq")), "nq"))

        async def collect() -> list[Message]:
            return [message async for message in stream]

        return asyncio.run(collect()) if how == "async for" else list(stream)

    messages = read()
    assert len(messages) == options.get("max_messages", 12)
    assert len({quad.object for message in messages for quad in message}) == nodes
    said = [record.getMessage() for record in caplog.records if TORN in record.getMessage()]
    assert len(said) == warned
    if warned:
        with pytest.raises(SourceError, match=TORN):
            read(strict=True)
    else:
        assert len(read(strict=True)) == len(messages)


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
def test_blank_nodes_over_pages_of_a_served_endpoint(
    strict: bool, blanks_server: str, proxy: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    # held back until it is whole, so that an error has a status
    url = proxy(blanks_server, page_size=5, strict=strict, buffer_bytes=1 << 20)
    asked = f"{url}?{urlencode({'query': BLANKS_QUERY, 'format': 'nq', 'messages': 'rdfm'})}"
    if strict:
        with pytest.raises(HTTPError) as refused:
            urlopen(asked)
        assert TORN in refused.value.read().decode()
        return
    with urlopen(asked) as answer:
        assert answer.read().count(b"# @message\n") == 12
    assert [record.levelname for record in caplog.records if TORN in record.getMessage()] == ["WARNING"]


def test_pages_without_blank_nodes_are_no_reason_to_warn(
    data_file: Path, oxigraph_server: Callable[[Path], str]
) -> None:
    query = PREFIX + "CONSTRUCT { ?c ex:text ?t } WHERE { ?c ex:location ?l BIND('_:b0' AS ?t) }"
    assert len(list(construct_messages(query, oxigraph_server(data_file), page_size=1, strict=True))) == 4


@pytest.mark.parametrize("engine", ["oxigraph", "virtuoso"])
def test_labels_are_stable_where_the_profile_says_so(
    engine: str, serve_with: Callable[[str, Path], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("stable") / "blanks.ttl"
    path.write_text(BLANKS)
    url, at = serve_with(engine, path), "<http://example.org/at>"
    query = f"CONSTRUCT {{ ?s {at} ?node }} WHERE {{ ?s {at} ?node }} ORDER BY ?s"
    whole, paged = (
        [*construct_messages(query, url, profile=engine, page_size=size, label_prefix="x", strict=True)]
        for size in (None, 4)
    )
    assert len(whole) == 12
    assert whole == paged
