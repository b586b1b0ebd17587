"""What a query is said to need of a window is enough: what else is in the window changes no answer."""

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.continuous.values import Needs

CM = "https://w3id.org/construct-messages#"
WINDOW = '<urn:w> { <urn:a> <urn:p> <urn:b> . <urn:b> <urn:p> "1" ; <urn:q> "1" }'
MESSAGES = f"""
<urn:s/1> {{ <urn:a> <urn:p> <urn:b> . <urn:b> <urn:p> "1" }}
<urn:s/2> {{ <urn:b> <urn:q> "1" }}
<urn:construct-messages:windows> {{ <urn:w> <{CM}member> <urn:s/1> , <urn:s/2> }}
"""


def context(message: int, graph: str) -> str:
    return f"""<{graph}> {{
      <urn:s/{message}> <http://www.w3.org/ns/prov#generatedAtTime> "2026-11-22T00:00:0{message}Z" ;
        <{CM}sequence> {message} ; <{CM}stream> <urn:s> ; <{CM}graph> <urn:g> }}"""


SUBJECTS = st.sampled_from(["?a", "?b", "?c", "<urn:a>", "<urn:s/1>", "[]"])
OBJECTS = st.sampled_from(["?a", "?b", "?c", "<urn:b>", "<urn:s>", '"1"', "[]"])
PREDICATES = st.sampled_from(
    [
        *("<urn:p>", "<urn:q>", "a", "?a", "?d"),
        *("prov:generatedAtTime", "cm:sequence", f"<{CM}stream>", "cm:graph"),
        *(
            "<urn:p>/<urn:q>",
            "^<urn:p>",
            "<urn:p>*",
            "<urn:p>?",
            "<urn:p>+",
            "!<urn:p>",
            "(<urn:p>|cm:sequence)",
        ),
    ]
)


@st.composite
def groups(draw: st.DrawFn, depth: int = 2, *, within: bool = False) -> str:
    """What stands between braces: triples in their abbreviated forms, and patterns around them.

    Args:
        depth: how many groups may be in each other.
        within: whether it is within GRAPH ?m, which sub-selects must project.
    """
    parts = []
    for kind in draw(
        st.lists(st.sampled_from(KINDS if depth else KINDS[:5]), min_size=1, max_size=3)
    ):
        subject, object, other = draw(SUBJECTS), draw(OBJECTS), draw(OBJECTS)
        predicate, second = draw(PREDICATES), draw(PREDICATES)
        inner = (
            draw(groups(depth - 1, within=within or kind == "graph")) if kind in KINDS[5:] else ""
        )
        parts.append(
            {
                "plain": f"{subject} {predicate} {object} .",
                "semicolon": f"{subject} {predicate} {object} ; {second} {other} .",
                "comma": f"{subject} {predicate} {object} , {other} .",
                "blank": f"[ {predicate} {object} ; {second} {other} ] .",
                "nested": f"{subject} {predicate} [ {second} {other} ] .",
                "graph": f"GRAPH ?m {{ {inner} }}",
                "optional": f"OPTIONAL {{ {inner} }}",
                "not exists": f"FILTER NOT EXISTS {{ {inner} }}",
                "select": f"{{ SELECT {'?m ?a' if within else '*'} WHERE {{ {inner} }} }}",
                "union": f"{{ {inner} }} UNION {{ VALUES ?d {{ cm:graph <urn:p> }} }}",
            }[kind]
        )
    return " ".join(parts)


KINDS = [
    "plain",
    "semicolon",
    "comma",
    "blank",
    "nested",
    "graph",
    "optional",
    "not exists",
    "select",
    "union",
]


def answers(query: str, needs: Needs) -> list[str]:
    """What a query finds in a window of which no more is there than this."""
    store = ox.Store()
    if Needs.UNION in needs:
        store.load(WINDOW, format=ox.RdfFormat.TRIG)
    if Needs.MEMBERS in needs:
        store.load(MESSAGES, format=ox.RdfFormat.TRIG)
    for message in (1, 2) if Needs.CONTEXT in needs else ():
        if Needs.UNION in needs:
            store.load(context(message, "urn:w"), format=ox.RdfFormat.TRIG)
        if Needs.MEMBERS in needs:
            store.load(context(message, f"urn:s/{message}"), format=ox.RdfFormat.TRIG)
    found = store.query(query)
    assert isinstance(found, ox.QuerySolutions)
    return sorted(str([solution[variable] for variable in found.variables]) for solution in found)


@given(groups())
def test_what_is_not_needed_changes_nothing(group: str) -> None:
    read = parse_continuous(
        f"PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX cm: <{CM}> "
        f"SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW] WHERE {{ WINDOW <urn:w> {{ {group} }} }}"
    )
    everything = Needs.UNION | Needs.MEMBERS | Needs.CONTEXT
    assert answers(read.query, read.needs["urn:w"]) == answers(read.query, everything)


NEEDS = {
    "a predicate": ("?s <urn:p> ?o", Needs.UNION),
    "messages only": ("GRAPH ?m { ?s <urn:p> ?o } . GRAPH ?n { ?s <urn:q> ?o }", Needs.MEMBERS),
    "messages and a filter": (
        "GRAPH ?m { ?s <urn:p> ?o } FILTER(?o > 1)",
        Needs.UNION | Needs.MEMBERS,
    ),
    "any predicate": ("?s ?p ?o", Needs.UNION | Needs.CONTEXT),
    "the time": ("?m <http://www.w3.org/ns/prov#generatedAtTime> ?t", Needs.UNION | Needs.CONTEXT),
    "the time within a message": (
        "GRAPH ?m { ?m <http://www.w3.org/ns/prov#generatedAtTime> ?t }",
        Needs.MEMBERS | Needs.CONTEXT,
    ),
    "terms that are no predicates": (
        "?s <urn:p> ?o ; <urn:q> [ <urn:r> ( ?a ) ] . FILTER(?o < ?a)",
        Needs.UNION,
    ),
}


@pytest.mark.parametrize(("group", "needs"), NEEDS.values(), ids=NEEDS)
def test_no_more_is_needed(group: str, needs: Needs) -> None:
    text = f"SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW] WHERE {{ WINDOW <urn:w> {{ {group} }} }}"
    assert parse_continuous(text).needs == {"urn:w": needs}


def test_times_of_triples_need_messages() -> None:
    text = """PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
    SELECT (f:timestamp(?s, <urn:p>, ?o) AS ?t) FROM STREAM <urn:s> [RANGE 5s STEP 5s] WHERE { ?s <urn:p> ?o }"""
    assert parse_continuous(text).needs == {"urn:s": Needs.UNION | Needs.MEMBERS | Needs.CONTEXT}
