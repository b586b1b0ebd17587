"""SELECTs changed piece by piece: bindings, sorting, pages, and each on another's result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import Position, QueryError, UsageError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.select import BY_TEXT, BY_TEXT_ONLY, Select, beyond, page
from construct_messages.rdf.terms import Term, from_pyoxigraph, iri, literal, number, parse_term

P = "PREFIX : <http://e/> "
E = "http://e/"


def select(text: str, *, group_by: tuple[str, ...] = ()) -> Select:
    return ConstructQuery.parse(P + text, group_by=group_by).rewritten


def evaluate(store: ox.Store, query: Select) -> list[tuple[str, ...]]:
    solutions = store.query(str(query))
    assert isinstance(solutions, ox.QuerySolutions)
    assert [variable.value for variable in solutions.variables] == list(query.variables)
    return [
        tuple("" if value is None else from_pyoxigraph(value) for value in solution)
        for solution in solutions
    ]


# --- pieces ---------------------------------------------------------------------------------------------------------


def test_pieces() -> None:
    text = "CONSTRUCT { ?s :p ?t } FROM <x:g> WHERE { ?s a ?t } # 1\nGROUP BY ?s (COUNT(*) AS ?t) HAVING (?t > 1) # 2\n"
    text += "ORDER BY DESC(?s) # 3\nOFFSET 3 LIMIT 4 # 4\nVALUES ?s { :a } # 5\n"
    assert select(text) == Select(
        prologue=P,
        head="SELECT ?s ?t ",
        variables=("s", "t"),
        dataset="FROM <x:g> WHERE ",
        group="{ ?s a ?t }",
        aggregation=" # 1\nGROUP BY ?s (COUNT(*) AS ?t) HAVING (?t > 1)",
        order=" # 2\nORDER BY DESC(?s)",
        slice=" # 3\nOFFSET 3 LIMIT 4",
        limit=4,
        offset=3,
        values=" # 4\nVALUES ?s { :a } # 5\n",
    )


@pytest.mark.parametrize(
    ("tail", "order", "slice", "values"),
    [
        (" LIMIT 5 option(limit 7)", "", " LIMIT 5", " option(limit 7)"),
        (" LIMIT ${n} OFFSET 2 VALUES ?s {}", "", " LIMIT ${n} OFFSET 2", " VALUES ?s {}"),
        ("VALUES ?s { }", "", "", "VALUES ?s { }"),
        ("ORDER BY ?s LIMIT 1", "ORDER BY ?s", " LIMIT 1", ""),
        (" # only a comment", "", "", " # only a comment"),
    ],
)
def test_tails(tail: str, order: str, slice: str, values: str) -> None:
    query = select("CONSTRUCT { ?s :p ?t } WHERE {}" + tail)
    assert (query.order, query.slice, query.values) == (order, slice, values)


# --- bindings -------------------------------------------------------------------------------------------------------

TERMS = [
    "<http://e/x>",
    '"a"',
    '"a\\n\\"\\\\"@en',
    '"a"@en--rtl',
    "1",
    "true",
    '"x"^^<http://e/t>',
    "<<( <a:s> <a:p> 1 )>>",
]


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize(
    "group",
    [
        "{ }",
        "{ ?x ?y ?z }",
        "{ SELECT ?x { } }",
        "{# SELECT\nSELECT ?x { } }",
        "{ OPTIONAL { ?b :none ?v } }",
    ],
)
def test_bound_values_reach_the_solution(term: str, group: str) -> None:
    store = store_of([("a", "p", iri(E + "c"))])
    value = parse_term(term)
    query = select(f"CONSTRUCT {{ :s :p ?v }} WHERE {group}").bind({"v": value})
    assert evaluate(store, query) == [(value,)]


def test_bindings_join() -> None:
    store = ox.Store()
    query = select("CONSTRUCT { ?a :p ?b } WHERE { VALUES (?a ?b) { (1 2) (1 3) (2 3) } }")
    bound = query.bind({"a": number("1")}).bind({"b": number("3")})
    assert re.findall(r"VALUES \(\?.\)", bound.group) == ["VALUES (?b)", "VALUES (?a)"]
    assert len(evaluate(store, bound)) == 1
    assert evaluate(store, query.bind({"a": number("1"), "b": number("3")})) == evaluate(
        store, bound
    )
    assert query.bind({}) is query


@pytest.mark.parametrize(
    ("name", "term", "words"),
    [
        ("x", iri("a:b"), "no variable ?x to bind\n  hint: use one of ?a, ?b"),
        ("a", Term("_:b"), "?a cannot be bound to the blank node _:b"),
        ("a", Term("<<( _:b <a:p> <a:o> )>>"), "?a cannot be bound to the blank node"),
        ("a", Term(""), "?a cannot be bound to nothing"),
    ],
)
def test_what_cannot_be_bound(name: str, term: Term, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        select("CONSTRUCT { ?a a 1 } { ?a a ?b }").bind({name: term})


@pytest.mark.parametrize(
    "group",
    [
        "{ { SELECT ?a { ?a ?b ?hidden } } }",
        "{ SELECT ?a (MAX(?hidden) AS ?b) { ?a a ?hidden } GROUP BY ?a }",
        "{ ?a ?b 1 OPTIONAL { { SELECT ?a { ?a ?b ?hidden } } } }",
    ],
)
def test_what_a_sub_select_keeps_to_itself_cannot_be_bound(group: str) -> None:
    """Issue 13, 5: its sibling, a binding that has no effect."""
    with pytest.raises(UsageError, match="is only in a sub-select"):
        select(f"CONSTRUCT {{ ?a a ?b }} {group}").bind({"hidden": iri("a:b")})


def test_what_a_sub_select_projects_can_be_bound() -> None:
    bound = select("CONSTRUCT { ?a a ?b } { { SELECT * { ?a ?b ?c } } { SELECT ?d { ?d a ?e } } }")
    for name in "cd":
        assert f"VALUES (?{name})" in bound.bind({name: iri("a:b")}).group


# --- data and queries for sorting and pages --------------------------------------------------------------------------

OBJECTS = st.sampled_from(
    [
        iri(E + "a"),
        iri(E + "b"),
        literal("1"),
        literal("1", language="en"),
        number("1"),
        number("1.0"),
        number("2"),
    ]
)
TRIPLES = st.tuples(st.sampled_from("abc"), st.sampled_from("pq"), OBJECTS)
DATA = st.lists(TRIPLES, max_size=12)

ORDERS = ["", " ORDER BY ?o", " ORDER BY DESC(?p) ?s", "ORDER BY(STR(?o))"]
SLICES = [
    "",
    " LIMIT 5",
    " OFFSET 2",
    " LIMIT 4 OFFSET 1",
    "\nOFFSET 1 LIMIT 3",
    " LIMIT 0",
    " LIMIT 100",
]
ENDS = ["", " VALUES ?s { :a :b }", "\nVALUES ?p { :p }", " # end", "#end"]
BODIES = [
    ("?s :r ?o", "{ ?s ?p ?o }", ""),
    ("?s :r ?o", "{ ?s ?p ?o OPTIONAL { ?o ?p ?x } } ", ""),
    ("?s :r ?p", "WHERE{ SELECT * { ?s ?p ?o } }", ""),
    ("?s :r ?n", "WHERE { ?s ?p ?o }", " GROUP BY ?s ?p ?o (STR(?o) AS ?n) HAVING (COUNT(?o) > 0)"),
    (":s :r :o", "{ ?s ?p ?o }", ""),
]
QUERIES = st.builds(
    lambda body, order, slice, end: (
        f"CONSTRUCT {{ {body[0]} }} {body[1]}{body[2]}{order}{slice}{end}"
    ),
    *map(st.sampled_from, (BODIES, ORDERS, SLICES, ENDS)),
)


def store_of(data: list[tuple[str, str, Term]]) -> ox.Store:
    store = ox.Store()
    lines = "".join(f"<{E}{s}> <{E}{p}> {o} .\n" for s, p, o in data)
    store.load(lines.encode(), format=ox.RdfFormat.N_TRIPLES)
    return store


def pages(
    store: ox.Store, query: Select, size: int, *, wrap: bool, keys: Sequence[str] = BY_TEXT
) -> Iterator[list[tuple[str, ...]]]:
    offset = 0
    while (window := page(query, size, offset, wrap=wrap, keys=keys)) is not None:
        solutions = evaluate(store, window)
        assert len(solutions) <= size
        yield solutions
        if len(solutions) < size:
            return
        offset += size


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(
    DATA,
    QUERIES,
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([BY_TEXT, BY_TEXT_ONLY]),
)
def test_pages_are_the_whole(
    data: list[tuple[str, str, Term]], text: str, size: int, wrap: bool, keys: tuple[str, ...]
) -> None:
    store, query = store_of(data), select(text)
    everything = page(query, 10_000, 0, keys=keys)
    whole = [] if everything is None else evaluate(store, everything)
    paged = [
        solution
        for solutions in pages(store, query, size, wrap=wrap, keys=keys)
        for solution in solutions
    ]
    assert Counter(paged) == Counter(whole)
    assert len(whole) == len(evaluate(store, query))
    if not query.limit and not query.offset and query.limit != 0:
        assert Counter(whole) == Counter(evaluate(store, query))
    # else terms compare equal; texts distinguish them
    if keys is BY_TEXT_ONLY or not any('"1' in value for solution in whole for value in solution):
        assert paged == whole


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(DATA, QUERIES, st.lists(st.sampled_from(["s", "o"]), min_size=1, max_size=2, unique=True))
def test_sorted_solutions_are_the_same_and_contiguous(
    data: list[tuple[str, str, Term]], text: str, keys: list[str]
) -> None:
    store, query = store_of(data), select(text, group_by=tuple(keys))
    result = evaluate(store, query.sorted_by(keys))
    expected = evaluate(store, query)
    assert len(result) == len(expected)
    if not query.slice:
        assert Counter(result) == Counter(expected)
    chosen = [tuple(solution[query.variables.index(key)] for key in keys) for solution in result]
    changes = [key for index, key in enumerate(chosen) if index == 0 or chosen[index - 1] != key]
    assert len(changes) == len(set(changes))


@settings(max_examples=settings.default.max_examples, deadline=None)
@given(DATA, QUERIES, st.integers(1, 4), st.booleans())
def test_bound_then_sorted_then_paged(
    data: list[tuple[str, str, Term]], text: str, size: int, wrap: bool
) -> None:
    store = store_of(data)
    query = select(text, group_by=("s",)).bind({"s": iri(E + "a")}).sorted_by(["s"])
    paged = [
        solution for solutions in pages(store, query, size, wrap=wrap) for solution in solutions
    ]
    assert len(paged) == len(evaluate(store, query))
    assert {solution[query.variables.index("s")] for solution in paged} <= {f"<{E}a>"}


def test_whole_text_of_each_change() -> None:
    query = select("CONSTRUCT\n{ ?s :r ?o } FROM <a:g> WHERE { ?s ?p ?o } LIMIT 9 # end")
    assert str(query.bind({"o": iri("a:o")}).sorted_by(["s"])) == (
        f"{P}SELECT ?s ?o\n FROM <a:g> WHERE {{ {{ SELECT ?s ?o WHERE "
        "{ VALUES (?o) { (<a:o>) } ?s ?p ?o } LIMIT 9 # end\n"
        '} } ORDER BY COALESCE(STR(?s), "") COALESCE(DATATYPE(?s), "") COALESCE(LANG(?s), "") '
        'COALESCE(IF(!isIRI(?s) && !isLITERAL(?s), ?s, ""), "")'
    )
    assert str(page(query, 5, 5)) == (
        f"{P}SELECT ?s ?o\n FROM <a:g> WHERE {{ ?s ?p ?o }} ORDER BY STR(?s) ?s STR(?o) ?o LIMIT 4 OFFSET 5 # end"
    )
    assert str(page(query, 5, 5, wrap=True)) == (
        f"{P}SELECT ?s ?o\n FROM <a:g> WHERE {{ {{ SELECT ?s ?o WHERE {{ ?s ?p ?o }} ORDER BY STR(?s) ?s "
        "STR(?o) ?o # end\n"
        "} } LIMIT 4 OFFSET 5"
    )


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        ("", "?s ?o"),
        ("ORDER BY ?o", "?o ?s"),
        ("ORDER BY $o DESC(?s)", "$o DESC(?s)"),
        ("order by asc ( ?s )", "asc ( ?s ) ?o"),
        ("ORDER BY (?o) STR(?s)", "(?o) STR(?s) ?s"),
        ("ORDER BY (?o + 1) ?x", "(?o + 1) ?x ?s ?o"),
        ("ORDER BY <urn:f>(?s) DESC(?o)", "<urn:f>(?s) DESC(?o) ?s"),
    ],
)
def test_ties_are_broken_by_what_is_no_key_yet(order: str, keys: str) -> None:
    window = page(
        select(f"CONSTRUCT {{ ?s :p ?o }} WHERE {{ ?s ?x ?o }} {order}"), 10, 0, keys=["?{}"]
    )
    assert window is not None
    assert " ".join(window.order.split()[2:]) == keys


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (1, -1)])
def test_no_such_page(limit: int, offset: int) -> None:
    with pytest.raises(UsageError, match="there is no page"):
        page(select("CONSTRUCT { ?s a 1 } {}"), limit, offset)


@pytest.mark.parametrize("slice", ["LIMIT ${n}", "LIMIT %n% OFFSET 1", "LIMIT 1 OFFSET ?x"])
def test_pages_need_a_slice_that_can_be_read(slice: str) -> None:
    with pytest.raises(QueryError, match="expected a number after") as raised:
        page(select(f"CONSTRUCT {{ ?s a 1 }}\n{{}}\n{slice}"), 10, 0)
    assert raised.value.position == Position(3, 1 + re.search(r"[$%?]", slice).start())  # type: ignore[union-attr] # it matches


def test_a_limit_without_number() -> None:
    with pytest.raises(
        QueryError, match="line 1, column 36: expected a number after LIMIT, and the query ends"
    ):
        page(ConstructQuery.parse("CONSTRUCT { ?s a 1 }       {} LIMIT").rewritten, 10, 0)


def test_sorted_by_what_is_not_projected() -> None:
    with pytest.raises(UsageError, match=r"cannot be sorted by \?t"):
        select("CONSTRUCT { ?s a 1 } { ?s a ?t }").sorted_by(["t"])


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    "tail",
    [
        "",
        " LIMIT 30",
        " OFFSET 4",
        "\nORDER BY DESC(?s) # 1\nLIMIT 30 OFFSET 2 # 2\n",
        " ORDER BY ?s VALUES ?s { :n3 }",
    ],
)
def test_what_is_beyond(tail: str, wrap: bool) -> None:
    store = ox.Store()
    store.extend(
        ox.Quad(ox.NamedNode(f"{E}n{n}"), ox.NamedNode(f"{E}p"), ox.Literal("o")) for n in range(20)
    )
    query = select(f"CONSTRUCT {{ ?s a ?s }} WHERE {{ ?s :p ?o }}{tail}")
    whole = len(evaluate(store, query))
    for count in (0, 1, whole - 1):
        assert len(evaluate(store, beyond(query, count, wrap=wrap))) == (count < whole)
    assert evaluate(store, beyond(query, whole, wrap=wrap)) == []
    assert beyond(query, 1, wrap=wrap).order == ("" if wrap else query.order)
