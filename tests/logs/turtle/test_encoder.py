"""Turtle and TriG logs: exact bytes both ways, what is refused, and what other parsers read back."""

from collections.abc import Callable, Mapping, Sequence

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import event, given
from hypothesis import strategies as st
from pyling import iter_rdf_message_documents
from rdflib.compare import to_isomorphic

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncoderOptions
from construct_messages.logs.turtle.encoder import TurtleEncoder
from construct_messages.rdf.formats import RDFM, SYNTAXES, TRIG, TURTLE, Format, Syntax
from construct_messages.rdf.formats.lookup import find_syntax
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    RDF,
    XSD,
    Term,
    from_pyoxigraph,
    iri,
    literal,
    parse_term,
    triple,
)
from tests.support.logs.kinds import Kind, isomorphic, read, single_bytes

PREFIXES = {
    "ex": "http://example.org/",
    "exa": "http://example.org/a",
    "": "urn:x:",
    "xsd": XSD,
}
HEAD = """\
PREFIX ex: <http://example.org/>
PREFIX exa: <http://example.org/a>
PREFIX : <urn:x:>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>

"""


def ex(local: str) -> Term:
    return iri(f"http://example.org/{local}")


S, P, Q, O = map(ex, "spqo")  # noqa: E741 - the usual letter for an object
TYPE = iri(RDF + "type")


def message(*quads: tuple[Term, ...]) -> Message:
    return Message(Quad(*quad) for quad in quads)


def log(
    messages: Sequence[Message],
    format: Format = TURTLE,
    syntax: Syntax = RDFM,
    prefixes: Mapping[str, str] | None = PREFIXES,
) -> str:
    encoder = TurtleEncoder(format, syntax, EncoderOptions(prefixes))
    return b"".join([encoder.start(), *map(encoder.encode, messages), encoder.finish()]).decode()


EMPTY = Message()
ONE = message((S, P, O))
GRAPHS = message((S, P, O, ex("g")), (S, P, O), (S, Q, O, ex("g")), (O, P, S, Term("_:g")))
TRIPLE = message((S, P, triple(S, TYPE, triple(Term("_:b"), P, literal("a b )>> .")))))
DIRECTION = message((S, P, literal("x", language="ar", direction="rtl")))

LOGS = {
    "no message": ([], TURTLE, "rdfm", ""),
    "no message, announced": ([], TURTLE, "1.2-messages", f'VERSION "1.2-messages"\n{HEAD}'),
    "one": ([ONE], TURTLE, "rdfm", f"# @message\n{HEAD}ex:s ex:p ex:o .\n"),
    "one, announced": (
        [ONE],
        TURTLE,
        "1.1-messages",
        f'VERSION "1.1-messages"\n{HEAD}ex:s ex:p ex:o .\nMESSAGE\n',
    ),
    "empty ones": (
        [EMPTY, ONE, EMPTY, ONE, EMPTY],
        TRIG,
        "rdfm",
        f"# @message\n{HEAD}# @message\nex:s ex:p ex:o .\n# @message\n# @message\nex:s ex:p ex:o .\n# @message\n",
    ),
    "empty ones, announced": (
        [EMPTY, ONE, EMPTY, ONE, EMPTY],
        TRIG,
        "1.2-basic-messages",
        f'VERSION "1.2-basic-messages"\n{HEAD}'
        "MESSAGE\nex:s ex:p ex:o .\nMESSAGE\nMESSAGE\nex:s ex:p ex:o .\nMESSAGE\nMESSAGE\n",
    ),
    "grouped in order of appearance": (
        [
            message(
                (S, Q, O),
                (O, P, S),
                (S, TYPE, P),
                (S, Q, literal("x", language="en")),
                (S, Q, Term("_:b.1")),
            )
        ],
        TURTLE,
        "rdfm",
        f'# @message\n{HEAD}ex:s ex:q ex:o , "x"@en , _:b.1 ;\n    a ex:p .\nex:o ex:p ex:s .\n',
    ),
    "graphs": (
        [GRAPHS],
        TRIG,
        "rdfm",
        f"# @message\n{HEAD}ex:g {{\n    ex:s ex:p ex:o ;\n        ex:q ex:o .\n}}\n"
        "ex:s ex:p ex:o .\n_:g {\n    ex:o ex:p ex:s .\n}\n",
    ),
    "triple terms": (
        [TRIPLE],
        TURTLE,
        "1.2-messages",
        f'VERSION "1.2-messages"\n{HEAD}ex:s ex:p <<( ex:s a <<( _:b ex:p "a b )>> ." )>> )>> .\nMESSAGE\n',
    ),
    "base direction": ([DIRECTION], TURTLE, "rdfm", f'# @message\n{HEAD}ex:s ex:p "x"@ar--rtl .\n'),
    "a literal that reads as delimiters": (
        [message((S, P, literal('\n# @message\nMESSAGE\n"""')))],
        TURTLE,
        "1.1-messages",
        f'VERSION "1.1-messages"\n{HEAD}ex:s ex:p "\\n# @message\\nMESSAGE\\n\\"\\"\\"" .\nMESSAGE\n',
    ),
}


@pytest.mark.parametrize("case", LOGS)
def test_bytes(case: str) -> None:
    messages, format, label, expected = LOGS[case]
    assert log(messages, format, find_syntax(label)) == expected


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize(
    "pieces", [lambda data: [data], single_bytes], ids=["whole", "byte by byte"]
)
@pytest.mark.parametrize("case", LOGS)
def test_bytes_read(case: str, pieces: Callable[[bytes], list[bytes]], announced: bool) -> None:
    expected, format, label, text = LOGS[case]
    kind = Kind(format, find_syntax(label))
    reading = read(pieces(text.encode()), kind, announced=announced)
    assert reading.error is None
    assert (
        reading.messages == expected
        if kind.keeps_labels
        else isomorphic(reading.messages, expected)
    )


def test_without_prefixes() -> None:
    assert log([ONE], prefixes=None) == f"# @message\n{S} {P} {O} .\n"


def test_each_message_is_whole_when_it_is_encoded() -> None:
    encoder = TurtleEncoder(TURTLE, find_syntax("1.2-messages"), EncoderOptions())
    assert encoder.start() == b'VERSION "1.2-messages"\n'
    assert encoder.encode(ONE).endswith(b" .\nMESSAGE\n")


OBJECTS = {
    # IRIs: only names that need no escape are shortened, by the longest namespace
    "<http://example.org/b>": "ex:b",
    "<http://example.org/>": "ex:",
    "<http://example.org/ab>": "exa:b",
    "<http://example.org/a-b>": "ex:a-b",
    "<http://example.org/1.5>": "ex:1.5",
    "<http://example.org/x%20y>": "ex:x%20y",
    "<http://example.org/x.>": "<http://example.org/x.>",
    "<http://example.org/.x>": "<http://example.org/.x>",
    "<http://example.org/-x>": "<http://example.org/-x>",
    "<http://example.org/b:c>": "ex:b:c",
    "<http://example.org/b/c>": "<http://example.org/b/c>",
    "<http://example.org/b#c>": "<http://example.org/b#c>",
    "<http://example.org/b(c)>": "<http://example.org/b(c)>",
    "<http://example.org/Zürich>": "ex:Zürich",
    "<urn:x:y>": ":y",
    "<urn:y>": "<urn:y>",
    f"<{RDF}type>": f"<{RDF}type>",
    # numbers and booleans: only in the shape every parser gives back
    f'"0"^^<{XSD}integer>': "0",
    f'"-12"^^<{XSD}integer>': "-12",
    f'"+1"^^<{XSD}integer>': '"+1"^^xsd:integer',
    f'"01"^^<{XSD}integer>': '"01"^^xsd:integer',
    f'"-0"^^<{XSD}integer>': '"-0"^^xsd:integer',
    f'"1"^^<{XSD}int>': '"1"^^xsd:int',
    f'"1.50"^^<{XSD}decimal>': "1.50",
    f'"1"^^<{XSD}decimal>': '"1"^^xsd:decimal',
    f'"1."^^<{XSD}decimal>': '"1."^^xsd:decimal',
    f'".5"^^<{XSD}decimal>': '".5"^^xsd:decimal',
    f'"1.0E6"^^<{XSD}double>': "1.0E6",
    f'"1e6"^^<{XSD}double>': '"1e6"^^xsd:double',
    f'"INF"^^<{XSD}double>': '"INF"^^xsd:double',
    f'"1.0E0"^^<{XSD}float>': '"1.0E0"^^xsd:float',
    f'"true"^^<{XSD}boolean>': "true",
    f'"1"^^<{XSD}boolean>': '"1"^^xsd:boolean',
    f'"٣"^^<{XSD}integer>': '"٣"^^xsd:integer',
    # other literals
    '"a"': '"a"',
    '"a>"': '"a>"',
    r'"\"^^<urn:x:d>"': r'"\"^^<urn:x:d>"',
    '"a"^^<urn:x:d>': '"a"^^:d',
    '"a"^^<urn:y:d>': '"a"^^<urn:y:d>',
    '"a"@en-gb': '"a"@en-gb',
}


@pytest.mark.parametrize("term", OBJECTS)
def test_terms(term: str) -> None:
    text = log([message((S, P, parse_term(term)))])
    assert text == f"# @message\n{HEAD}ex:s ex:p {OBJECTS[term]} .\n"
    (statement,) = ox.parse(text, format=ox.RdfFormat.TURTLE)
    assert from_pyoxigraph(statement.object) == term


REFUSED = {
    "graph in Turtle": (
        TURTLE,
        "rdfm",
        [EMPTY, ONE, GRAPHS],
        ["message 3", "Turtle", "<http://example.org/g> ."],
    ),
    "triple term below 1.2": (
        TRIG,
        "1.1-messages",
        [TRIPLE],
        ["message 1", "1.1-messages", "<<( "],
    ),
    "triple term in basic": (
        TURTLE,
        "1.2-basic-messages",
        [ONE, TRIPLE],
        ["message 2", "1.2-basic-messages", "<<( "],
    ),
    "direction below 1.2": (
        TURTLE,
        "1.1-messages",
        [DIRECTION],
        ["message 1", "1.1-messages", '"x"@ar--rtl'],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_what_it_cannot_carry(case: str) -> None:
    format, label, messages, words = REFUSED[case]
    with pytest.raises(UnsupportedByFormat) as error:
        log(messages, format, find_syntax(label))
    assert all(word in error.value.message for word in words), error.value.message
    assert error.value.hint


def test_basic_carries_directions() -> None:
    assert '"x"@ar--rtl' in log([DIRECTION], syntax=find_syntax("1.2-basic-messages"))


@pytest.mark.parametrize("prefix", ["ex.", "_x", "1a", "a b", "ex:", ".", "-", "é\u0301.", "a\\b"])
def test_prefixes_that_cannot_be_declared_are_left_out(prefix: str) -> None:
    """Issue 13, 11: a prefix that Turtle has no syntax for stops no conversion."""
    text = log([ONE], prefixes={prefix: "http://example.org/", "ex": "http://example.org/"})
    assert text.splitlines()[1:3] == ["PREFIX ex: <http://example.org/>", ""]
    assert len(list(ox.parse(text, format=ox.RdfFormat.TURTLE))) == len(ONE)


@pytest.mark.parametrize("namespace", ["#", "", "http://example.org/%", "http://example.org/a b"])
def test_namespaces_that_are_no_iris_are_left_out(namespace: str) -> None:
    text = log([ONE], prefixes={"rel": namespace, "ex": "http://example.org/"})
    assert text.splitlines()[1:3] == ["PREFIX ex: <http://example.org/>", ""]


# pyling-n3 takes a log of no messages for one message, and does not read a nested triple term with `)>>` in a literal
NOT_PYLING = {"no message, announced", "triple terms"}


@pytest.mark.parametrize(
    "case",
    [case for case, (_, _, label, _) in LOGS.items() if label != "rdfm" and case not in NOT_PYLING],
)
def test_another_reader_of_messages_finds_as_many(case: str) -> None:
    messages, format, label, _ = LOGS[case]
    assert len(list(iter_rdf_message_documents(log(messages, format, find_syntax(label))))) == len(
        messages
    )


# --- round trips ----------------------------------------------------------------------------------------------------

NAMESPACES = ["http://example.org/", "http://example.org/a", "http://example.org/a#", "urn:x:", XSD]
prefixes = st.dictionaries(
    st.sampled_from(["", "ex", "a", "true", "MESSAGE", "e.x", "é-1", "prefix", "base"]),
    st.sampled_from(NAMESPACES),
)
locals_ = st.one_of(
    st.text("ab1.:-_%2Fé·/#?()'~!,;=&*+@$\U0001f600\U00010400", max_size=8),
    st.sampled_from(
        [
            "",
            "a",
            "b.",
            ".b",
            "b..c",
            "%41",
            "%4",
            ":",
            "::",
            "a:b",
            "-",
            "1",
            "_",
            "b%",
            "x·",
            "MESSAGE",
        ]
    ),
)


def is_valid(value: str) -> bool:
    """Whether RFC 3987 knows such an IRI; what it does not, strict parsers refuse in any syntax."""
    try:
        ox.NamedNode(value)
    except ValueError:
        return False
    return True


iris = st.builds(str.__add__, st.sampled_from(NAMESPACES), locals_).filter(is_valid).map(iri)
blanks = st.sampled_from([Term(f"_:{label}") for label in ("b", "t0b0", "d1.2", "B-1", "é")])
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        [
            "\n# @message\n",
            "\nMESSAGE\n",
            '"',
            "\\",
            '"""',
            "a\r\nb",
            "<<( )>>",
            "x--rtl",
            '"@en--ltr ',
        ]
    ),
)
numbers = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats().map(str),
    st.sampled_from(
        ["true", "1", "01", "+1", "-0", "1.", ".5", "1.0E6", "1e6", "1.50", "-0.0", "1.0E-7", "INF"]
    ),
)
literals = st.one_of(
    texts.map(literal),
    st.builds(
        lambda t, tag: literal(t, language=tag), texts, st.sampled_from(["en", "de-at", "x-y-z"])
    ),
    st.builds(lambda t, d: literal(t, datatype=d[1:-1]), texts, iris),
    st.builds(
        lambda t, d: literal(t, datatype=XSD + d),
        numbers,
        st.sampled_from(["integer", "decimal", "double", "boolean", "float", "int"]),
    ),
)
plain = st.one_of(iris, blanks, literals)
subjects = st.one_of(iris, blanks)
predicates = st.one_of(iris, st.just(TYPE))
triples = st.recursive(
    st.builds(triple, subjects, predicates, plain),
    lambda inner: st.builds(triple, subjects, predicates, st.one_of(plain, inner)),
    max_leaves=3,
)
directed = st.builds(lambda t: literal(t, language="ar", direction="rtl"), texts)


def logs(*, graphs: bool, full: bool) -> st.SearchStrategy[list[Message]]:
    quad = st.builds(
        Quad,
        subjects,
        predicates,
        st.one_of(plain, triples, directed) if full else plain,
        st.one_of(st.none(), subjects) if graphs else st.none(),
    )
    return st.lists(st.lists(quad, max_size=6).map(Message), max_size=4)


def parse(text: str, format: Format) -> Message:
    return Message(
        Quad(
            from_pyoxigraph(quad.subject),
            from_pyoxigraph(quad.predicate),
            from_pyoxigraph(quad.object),
            None
            if isinstance(quad.graph_name, ox.DefaultGraph)
            else from_pyoxigraph(quad.graph_name),
        )
        for quad in ox.parse(text, format=ox.RdfFormat.from_extension(format.extension))
    )


def split(text: str, syntax: Syntax) -> list[str]:
    """A log's messages by its delimiter lines, each as a document of its own with the log's prefixes."""
    lines = [line for line in text.split("\n") if line and not line.startswith("VERSION ")]
    head = [line for line in lines if line.startswith("PREFIX ")]
    parts: list[list[str]] = [[]]
    for line in lines:
        if line + "\n" == syntax.delimiter:
            parts.append([])
        elif line not in head:
            parts[-1].append(line)
    outside = parts.pop(0 if syntax.delimiter_first else -1)
    assert outside == []
    return ["\n".join([*head, *part]) for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize("label", [syntax.label for syntax in SYNTAXES])
@pytest.mark.parametrize("format", [TURTLE, TRIG], ids=lambda format: format.extension)
@given(data=st.data(), prefixes=prefixes)
def test_round_trip_by_message(
    format: Format, label: str, data: st.DataObject, prefixes: dict[str, str]
) -> None:
    syntax = find_syntax(label)
    messages = data.draw(logs(graphs=format.graphs, full=syntax.triple_terms))
    parts = split(log(messages, format, syntax, prefixes), syntax)
    event(f"messages: {len(messages)}")
    assert [parse(part, format) for part in parts] == messages


@pytest.mark.slow
@pytest.mark.parametrize("format", [TURTLE, TRIG], ids=lambda format: format.extension)
@given(data=st.data(), prefixes=prefixes)
def test_plain_parsers_read_the_union(
    format: Format, data: st.DataObject, prefixes: dict[str, str]
) -> None:
    messages = data.draw(logs(graphs=format.graphs, full=True))
    union = Message(quad for message in messages for quad in message)
    assert parse(log(messages, format, RDFM, prefixes), format) == union


RDFLIB_CASES = {
    case: messages
    for case, (messages, *_) in LOGS.items()
    if case not in ("triple terms", "base direction")
} | {"terms": [message(*((S, P, Term(term)) for term in OBJECTS))]}


@pytest.mark.filterwarnings(
    "ignore:ConjunctiveGraph is deprecated:DeprecationWarning"
)  # rdflib's own TriG parser
@pytest.mark.parametrize("case", RDFLIB_CASES)
def test_rdflib_reads_the_union(case: str) -> None:
    lines = "\n".join(str(quad) for message in RDFLIB_CASES[case] for quad in message)
    assert read_by_rdflib(log(RDFLIB_CASES[case], TRIG), "trig") == read_by_rdflib(lines, "nquads")


def read_by_rdflib(text: str, format: str) -> dict[str, object]:
    """The non-empty graphs up to blank node labels; the logs here have at most one with a blank name."""
    dataset = rdflib.Dataset()
    dataset.parse(data=text, format=format)
    return {
        "_:"
        if isinstance(graph.identifier, rdflib.BNode)
        else str(graph.identifier): to_isomorphic(graph)
        for graph in dataset.graphs()
        if len(graph)
    }
