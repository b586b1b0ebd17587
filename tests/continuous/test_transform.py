"""Stateless transformation: many messages by one query give what each gives alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from construct_messages import Message, Quad, Term, iri, literal, transform
from construct_messages.continuous.transform import Transformation
from construct_messages.errors import QueryError, TermError
from construct_messages.rdf.terms import number

# --- any query, any messages ---

VARIABLES = st.sampled_from(["?a", "?b", "?c"])
PREDICATES = st.sampled_from(["<urn:p>", "<urn:q>", "?b"])
PATHS = st.sampled_from(
    [
        "<urn:p>/<urn:q>",
        "^<urn:p>",
        "<urn:p>|<urn:q>",
        "<urn:p>*",
        "<urn:p>+",
        "<urn:q>?",
        "!<urn:p>",
    ]
)
ENDS = st.one_of(VARIABLES, VARIABLES, st.sampled_from(["<urn:1>", "<urn:2>", "1", "_:x"]))
# no LIMIT that has a choice: it may choose another solution each time
CONDITIONS = st.sampled_from(
    [
        *("?a = ?b", "BOUND(?c)", "isBlank(?a)", "?b > 1", "?b IN (1, <urn:1>)", "1 = 1", "1 = 2"),
        *("EXISTS { ?a <urn:q> ?c }", "NOT EXISTS { ?c <urn:q> ?d }"),
    ]
)
EXPRESSIONS = st.sampled_from(
    ["?a", "STR(?a)", "?b + 1", "IF(BOUND(?c), 1, 2)", "7", "COALESCE(?b, 'none')"]
)


def _groups(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """More text of a group, around what such text may hold."""
    return st.one_of(
        st.builds("{{ {} }} UNION {{ {} }}".format, inner, inner),
        st.builds("{} OPTIONAL {{ {} }}".format, inner, inner),
        st.builds("{} MINUS {{ {} }}".format, inner, inner),
        st.builds("{} FILTER({})".format, inner, CONDITIONS),
        st.builds("{{ {} }} {{ {} }}".format, inner, inner),
        st.builds("{{ {} BIND({} AS ?new) }}".format, inner, EXPRESSIONS),
        st.builds("{} VALUES ?b {{ 1 <urn:2> UNDEF }}".format, inner),
        st.builds("GRAPH ?c {{ {} }}".format, inner),
        st.builds("{{ SELECT ?a {{ {} }} }}".format, inner),
        st.builds("{{ SELECT DISTINCT ?a ?b {{ {} }} LIMIT 9 }}".format, inner),
        st.builds("{{ SELECT (COUNT(*) AS ?b) {{ {} }} }}".format, inner),
    )


TRIPLES = st.builds("{} {} {} .".format, st.one_of(VARIABLES, st.just("<urn:1>")), PREDICATES, ENDS)
GROUPS = st.recursive(
    st.one_of(
        TRIPLES,
        TRIPLES,
        st.builds("{} {} {} .".format, VARIABLES, PATHS, ENDS),
        st.sampled_from(["", "VALUES ?a { <urn:1> }", "BIND(1 AS ?a)"]),
    ),
    _groups,
    max_leaves=4,
)
QUERIES = st.builds(
    "CONSTRUCT {{ ?a <urn:is> ?b . ?a <urn:new> ?new . {} }} {} WHERE {{ {} }} {}".format,
    st.sampled_from(["", "[] <urn:c> ?c", "GRAPH ?c { ?a <urn:in> ?b }"]),
    st.sampled_from(["", "", "", "", "FROM <urn:1>", "FROM NAMED <urn:2>"]),
    GROUPS,
    st.sampled_from(
        ["", "", "", "ORDER BY ?a", "OFFSET 0", "GROUP BY ?a ?b", "VALUES ?a { <urn:1> <urn:2> }"]
    ),
)

NODES = st.sampled_from([iri("urn:1"), iri("urn:2"), Term("_:n"), Term("_:m")])
TERMS = st.one_of(NODES, st.sampled_from([number("1"), number("01"), literal("b")]))
GRAPHS = st.one_of(st.none(), st.none(), st.none(), st.sampled_from([iri("urn:1"), Term("_:n")]))
QUADS = st.builds(Quad, NODES, st.sampled_from([iri("urn:p"), iri("urn:q")]), TERMS, st.none())
DATASETS = st.builds(Quad, NODES, st.sampled_from([iri("urn:p"), iri("urn:q")]), TERMS, GRAPHS)
MESSAGES = st.lists(
    st.one_of(
        st.lists(QUADS, max_size=4), st.lists(QUADS, max_size=4), st.lists(DATASETS, max_size=4)
    ).map(Message),
    max_size=5,
)


def comparable(message: Message) -> Message:
    """With one name for the nodes that are made for each solution."""
    return message.map_blanks(lambda node: Term(re.sub(r"_:\w+_t\d+b", "_:t", node)))


def by_message(query: str, messages: Iterable[Message]) -> list[Counter[Message]]:
    """What each message alone gives."""
    transformation = Transformation(query)
    return [Counter(map(comparable, transformation.plain([message.lines]))) for message in messages]


def runs(messages: Sequence[Message], lengths: Iterable[int]) -> list[Counter[Message]]:
    """Consecutive messages, so many in each run."""
    start, found = 0, []
    for length in lengths:
        found.append(Counter(map(comparable, messages[start : start + length])))
        start += length
    assert start == len(messages)
    return found


@settings(max_examples=25, deadline=None)
@given(QUERIES, MESSAGES)
def test_together_as_alone(query: str, messages: list[Message]) -> None:
    try:
        transformation = Transformation(query)
    except QueryError:  # such as a variable that is bound already
        event("refused")
        return
    event("batches" if transformation.batches else "one by one")
    alone = by_message(query, messages)
    together = list(transformation.batch([message.lines for message in messages]))
    assert runs(together, (sum(each.values()) for each in alone)) == alone


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples)
@given(QUERIES, MESSAGES)
def test_together_as_alone_for_long(query: str, messages: list[Message]) -> None:
    test_together_as_alone.hypothesis.inner_test(query, messages)  # type: ignore[attr-defined] # Hypothesis sets it


# --- which queries ---


@pytest.mark.parametrize(
    ("where", "batches"),
    [
        pytest.param("?a <urn:p> ?b", True, id="triples"),
        pytest.param("?a <urn:p> ?b FILTER(?b > 1)", True, id="filter"),
        pytest.param("?a <urn:p> ?b OPTIONAL { ?a <urn:q> ?c }", True, id="optional"),
        pytest.param("{ ?a <urn:p> ?b } UNION { ?a <urn:q> ?b }", True, id="union"),
        pytest.param("?a <urn:p>/^<urn:q> ?b", True, id="sequence-of-predicates"),
        pytest.param("VALUES ?b { 1 } ?a <urn:p> ?b BIND(?b AS ?c)", True, id="values-and-bind"),
        pytest.param("?a <urn:p>* ?b", False, id="path-of-no-length"),
        pytest.param("OPTIONAL { ?a <urn:p> ?b }", False, id="optional-alone"),
        pytest.param("", False, id="nothing"),
        pytest.param(
            "{ ?a <urn:p> ?b } UNION { BIND(1 AS ?b) }", False, id="one-side-without-triple"
        ),
        pytest.param("?a <urn:p> ?b FILTER EXISTS { ?b <urn:q> ?c }", False, id="exists"),
        pytest.param("?a <urn:p> ?b MINUS { ?c <urn:q> ?d }", False, id="minus"),
        pytest.param("GRAPH ?c { ?a <urn:p> ?b }", False, id="graph"),
        pytest.param(
            "{ SELECT ?a ?b { ?a <urn:p> ?b } LIMIT 1 }", False, id="sub-select-with-limit"
        ),
        pytest.param("{ SELECT ?a ?b { ?a <urn:p> ?b } }", False, id="sub-select"),
        pytest.param("?a <urn:p> <<( ?b ?c ?d )>>", False, id="sparql-1.2"),
    ],
)
def test_queries_for_many_messages(where: str, batches: bool) -> None:
    query = f"CONSTRUCT {{ ?a <urn:is> ?b }} WHERE {{ {where} }}"
    assert Transformation(query).batches is batches


@pytest.mark.parametrize("end", ["LIMIT 1", "OFFSET 1", "GROUP BY ?a", "HAVING(COUNT(*) > 1)"])
def test_what_looks_at_several_solutions_is_asked_of_one_message(end: str) -> None:
    query = f"CONSTRUCT {{ ?a <urn:is> <urn:b> }} WHERE {{ ?a <urn:p> ?b }} {end}"
    assert not Transformation(query).batches


# --- messages ---

ALL = "CONSTRUCT { ?s <urn:has> ?o } WHERE { ?s ?p ?o }"


def of(*objects: str, graph: str | None = None) -> Message:
    return Message(
        Quad(iri("urn:s"), iri("urn:p"), literal(each), None if graph is None else iri(graph))
        for each in objects
    )


def objects(messages: Iterable[Message]) -> list[str]:
    return [quad.object for message in messages for quad in message]


def test_in_order_over_many_batches() -> None:
    messages = [of(str(each)) for each in range(2500)]
    assert objects(transform(ALL, messages)) == [f'"{each}"' for each in range(2500)]


def test_order_by_holds_within_a_message() -> None:
    query = "CONSTRUCT { ?s <urn:has> ?o } WHERE { ?s ?p ?o } ORDER BY DESC(?o)"
    assert objects(transform(query, [of("a", "c", "b"), of("b", "d")])) == [
        '"c"',
        '"b"',
        '"a"',
        '"d"',
        '"b"',
    ]


def test_empty_messages_and_named_graphs_stand_among_others() -> None:
    messages = [of("a"), Message(), of("hidden", graph="urn:g"), of("b"), Message(), of("c")]
    assert objects(transform(ALL, messages)) == ['"a"', '"b"', '"c"']


def test_blank_nodes_keep_their_labels() -> None:
    messages = [Message([Quad(Term("_:n"), iri("urn:p"), literal(each))]) for each in "ab"]
    assert {quad.subject for message in transform(ALL, messages) for quad in message} == {"_:n"}


def test_messages_are_taken_as_they_come() -> None:
    asked = []

    def endless() -> Iterable[Message]:
        while True:
            asked.append(len(asked))
            yield of("a")

    assert next(transform(ALL, endless()))
    assert len(asked) == 1000


def test_no_rdf() -> None:
    with pytest.raises(TermError, match="message 2"):
        list(
            transform(ALL, [of("a"), Message([Quad(iri("urn:s"), iri("urn:p"), Term("no term"))])])
        )


def test_an_illegal_query_is_refused_before_a_message_is_asked_for() -> None:
    with pytest.raises(QueryError):
        transform("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p }", [])


def test_rows_of_select() -> None:
    query = "SELECT ?o (STRLEN(?o) AS ?length) ?none WHERE { ex:s <p> ?o }"
    (message,) = transform(query, [of("abc"), Message()], prefixes={"ex": "urn:"}, base="urn:")
    said = {(quad.predicate.rpartition("#")[2], quad.object) for quad in message}
    assert said >= {("resultVariable>", '"none"'), ("variable>", '"o"'), ("value>", '"abc"')}
    assert ("variable>", '"none"') not in said


@settings(max_examples=25, deadline=None)
@given(QUERIES, MESSAGES)
def test_one_message_for_each(query: str, messages: list[Message]) -> None:
    """In its place, with the quads of all that the query alone results in for the message; together and one by one."""
    try:
        transformation = Transformation(query, one_per_message=True)
    except QueryError:
        return
    lines = [message.lines for message in messages]
    expected = [list(Transformation(query).plain([line])) for line in lines]
    for found in (list(transformation.batch(lines)), list(transformation.plain(lines))):
        assert len(found) == len(messages)
        for one, several in zip(found, expected, strict=True):
            assert one.isomorphic(Message(quad for each in several for quad in each))


def test_a_message_without_a_result_becomes_an_empty_one() -> None:
    """Order and places are kept, also across batches."""
    messages = [
        Message([Quad(iri("urn:s"), iri("urn:p"), number(str(n)))] if n % 3 else [])
        for n in range(2500)
    ]
    query = "CONSTRUCT { ?s <urn:is> ?n , ?m } WHERE { ?s <urn:p> ?n BIND(?n * 2 AS ?m) FILTER(?n > 4) }"
    found = list(transform(query, messages, one_per_message=True))
    assert [len(one) for one in found] == [2 if n > 4 and n % 3 else 0 for n in range(2500)]
    assert found[2498].objects(iri("urn:s")) == [number("2498"), number("4996")]


def test_solutions_of_one_message_keep_their_nodes_apart() -> None:
    message = Message(Quad(iri("urn:s"), iri("urn:p"), number(str(n))) for n in range(3))
    query = "CONSTRUCT { [] <urn:value> ?n } WHERE { ?s <urn:p> ?n }"
    (one,) = transform(query, [message], one_per_message=True)
    assert len({quad.subject for quad in one}) == len(one) == 3
