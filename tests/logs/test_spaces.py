"""RDF spaces: what folds, what does not, and the laws by which folding and unfolding are inverses."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from construct_messages.errors import CannotFold
from construct_messages.logs.from_pyoxigraph import to_message
from construct_messages.logs.spaces import fold, unfold
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, Term, iri, is_blank, literal, parse_term, triple

PREFIXES = f"""
PREFIX : <http://example.org/>
PREFIX eg: <http://example.org/eg#>
PREFIX rdf: <{RDF}>
"""


def trig(text: str) -> Message:
    return to_message(ox.parse(PREFIXES + text, format=ox.RdfFormat.TRIG, base_iri=None))


PARTS = (
    'a rdf:Triple ; rdf:subjectIRI "http://example.org/s" ; rdf:predicateIRI "http://example.org/p"'
)
FOLDED = f':space rdf:containsTriple [ {PARTS} ; rdf:objectValue "o" ] .'
LABELLED = f':space rdf:containsTriple _:t . _:t {PARTS} ; rdf:objectValue "o" .'

# A dataset and its fold; both ways
FOLDS = {
    "nothing": ("", ""),
    "no named graph": (":s :p :o , 1 , [] .", ":s :p :o , 1 , [] ."),
    # the draft's own example, which forgets to close the bracket and to declare eg:
    "the draft's example": (
        ":space { eg:subject eg:predicate eg:object }",
        """:space rdf:containsTriple [
            a rdf:Triple ;
            rdf:subjectIRI "http://example.org/eg#subject" ;
            rdf:predicateIRI "http://example.org/eg#predicate" ;
            rdf:objectIRI "http://example.org/eg#object" ;
        ] .""",
    ),
    "a triple and a quad": (":s :p 'o' . :space { :s :p 'o' }", f":s :p 'o' . {FOLDED}"),
    "one triple in two spaces": (
        ":space { :s :p 'o' } :other { :s :p 'o' }",
        f"{FOLDED} {FOLDED.replace(':space', ':other')}",
    ),
    "literals stay as they are": (
        ':space { :s :p "01"^^<http://www.w3.org/2001/XMLSchema#integer> , "chat"@fr , "x"@ar--rtl }',
        "".join(
            FOLDED.replace('"o"', text)
            for text in (
                '"01"^^<http://www.w3.org/2001/XMLSchema#integer>',
                '"chat"@fr',
                '"x"@ar--rtl',
            )
        ),
    ),
    "blank nodes keep who they are across spaces": (
        "_:a :p _:b . _:b { _:a :p _:b } :space { _:b :p 'o' }",
        f"""_:a :p _:b .
        _:b rdf:containsTriple [
            a rdf:Triple ; rdf:subjectNode _:a ; rdf:predicateIRI "http://example.org/p" ; rdf:objectNode _:b
        ] .
        {FOLDED.replace('subjectIRI "http://example.org/s"', "subjectNode _:b")}""",
    ),
    "triple terms of the default graph": (
        ":s :p <<( _:a :p :o )>> . :space { :s :p 'o' }",
        f":s :p <<( _:a :p :o )>> . {FOLDED}",
    ),
    "the vocabulary, short of a folded triple": (
        f"[] {PARTS} . :t {PARTS} ; rdf:objectValue 1 . :space {{ :s :p 'o' }} rdf:containsTriple a rdf:Property .",
        f"[] {PARTS} . :t {PARTS} ; rdf:objectValue 1 . {FOLDED} rdf:containsTriple a rdf:Property .",
    ),
    "the vocabulary within a space": (
        ":g { :space rdf:containsTriple :t }",
        f""":g rdf:containsTriple [
            a rdf:Triple ; rdf:subjectIRI "http://example.org/space" ; rdf:predicateIRI "{RDF}containsTriple" ;
            rdf:objectIRI "http://example.org/t"
        ] .""",
    ),
}


@pytest.mark.parametrize("case", FOLDS)
def test_fold(case: str) -> None:
    dataset, graph = map(trig, FOLDS[case])
    folded = fold(dataset)
    assert folded.isomorphic(graph)
    assert unfold(folded) == dataset
    assert unfold(graph).isomorphic(dataset)


def test_five_triples_stand_where_the_quad_stood() -> None:
    first, second = (
        Quad(iri("urn:s"), iri("urn:p"), literal("o"), iri("urn:g")),
        Quad(*map(iri, ("a:a", "a:b", "a:c"))),
    )
    folded = list(fold(Message([first, second])))
    assert len(folded) == 6
    assert folded[-1] == second
    assert list(unfold(Message(folded))) == [first, second]


# What no part of the vocabulary stands for, and what the default graph holds already
UNFOLDABLE = {
    "a triple term": (
        ":g { :s :p <<( :s :p :o )>> }",
        r"<<\( .* has no fold: .* <http://example.org/g> \.",
    ),
    "a folded triple": (FOLDED, "already, _:"),
    "a folded triple beside a quad": (f"{FOLDED} :s {{ :s :p :o }}", "already"),
    # each matches the template as a SPARQL pattern, though unfolding would leave it
    "an IRI for a triple": (
        f":s rdf:containsTriple :t . :t {PARTS} ; rdf:objectValue 1 .",
        "already, <http://ex",
    ),
    "a folded triple in two spaces": (f"{LABELLED} :b rdf:containsTriple _:t .", "already, _:t"),
    "more said of it": (FOLDED.replace('"o"', '"o" ; :more 1'), "already"),
    "two objects": (FOLDED.replace('"o"', '"o" , "p"'), "already"),
}


@pytest.mark.parametrize("case", UNFOLDABLE)
def test_what_has_no_fold(case: str) -> None:
    text, words = UNFOLDABLE[case]
    with pytest.raises(CannotFold, match=words) as error:
        fold(trig(text))
    assert error.value.hint


def test_generalized_quads_have_no_fold() -> None:
    s, p = iri("urn:s"), iri("urn:p")
    for quad in (
        Quad(s, Term("_:p"), s, s),
        Quad(literal("s"), p, s, s),
        Quad(s, literal("p"), s, s),
    ):
        with pytest.raises(CannotFold, match="has no fold"):
            fold(Message([quad]))


# Graphs that are the fold of no dataset: what stays as it is, and what a strict reader is told
NO_FOLDS = {
    "no space": (f"[] {PARTS} ; rdf:objectValue 1 .", "is no folded triple"),
    "no type": (FOLDED.replace("a rdf:Triple ;", ""), "is no folded triple"),
    "no subject": (
        FOLDED.replace('rdf:subjectIRI "http://example.org/s" ;', ""),
        "is no folded triple",
    ),
    "no predicate": (
        FOLDED.replace(' ; rdf:predicateIRI "http://example.org/p"', ""),
        "is no folded triple",
    ),
    "no object": (FOLDED.replace(' ; rdf:objectValue "o"', ""), "is no folded triple"),
    "only contained": (":space rdf:containsTriple [] .", "is no folded triple"),
    "only a type": (":t a rdf:Triple .", "<http://example.org/t> is no folded triple"),
    "two subjects": (
        FOLDED.replace("rdf:subjectIRI", "rdf:subjectNode [] ; rdf:subjectIRI"),
        "is no folded triple",
    ),
    "two subjects of a kind": (
        FOLDED.replace("rdf:subjectIRI", 'rdf:subjectIRI "a:b" ,'),
        "is no folded triple",
    ),
    "two predicates": (
        FOLDED.replace("rdf:predicateIRI", 'rdf:predicateIRI "a:b" ,'),
        "is no folded triple",
    ),
    "an object that is IRI and literal": (
        FOLDED.replace('"o"', '"o" ; rdf:objectIRI "a:b"'),
        "is no folded triple",
    ),
    "more said of it": (FOLDED.replace('"o"', '"o" ; :more 1'), "is no folded triple"),
    "said of in another place": (f"{LABELLED} :x :p _:t .", "_:t is no folded triple"),
    "said of in a triple term": (
        f"{LABELLED} :x :p <<( :s :p <<( _:t :p :o )>> )>> .",
        "_:t is no folded triple",
    ),
    "its own space": (LABELLED.replace(":space", "_:t"), "_:t is no folded triple"),
    "its own subject": (
        LABELLED.replace('subjectIRI "http://example.org/s"', "subjectNode _:t"),
        "_:t is no folded triple",
    ),
    "two spaces": (f"{LABELLED} :b rdf:containsTriple _:t .", "_:t is no folded triple"),
    "an IRI for a triple": (
        f":s rdf:containsTriple :t . :t {PARTS} ; rdf:objectValue 1 .",
        "org/t> is no folded triple",
    ),
    "a relative IRI": (FOLDED.replace("http://example.org/s", "s"), "is no folded triple"),
    "no IRI": (FOLDED.replace("http://example.org/s", "a:b c"), "is no folded triple"),
    "an IRI with a language": (
        FOLDED.replace('example.org/s"', 'example.org/s"@en'),
        "is no folded triple",
    ),
    "an IRI as xsd:anyURI": (
        FOLDED.replace(
            'example.org/p"', 'example.org/p"^^<http://www.w3.org/2001/XMLSchema#anyURI>'
        ),
        "is no folded triple",
    ),
    "an IRI that is no string": (
        FOLDED.replace('"http://example.org/s"', ":s"),
        "is no folded triple",
    ),
    "an IRI for a blank node": (
        FOLDED.replace('subjectIRI "http://example.org/s"', "subjectNode :s"),
        "is no folded",
    ),
    "a node for a value": (FOLDED.replace('"o"', "[]"), "is no folded triple"),
}


@pytest.mark.parametrize("case", NO_FOLDS)
def test_what_is_no_fold_stays(case: str) -> None:
    text, words = NO_FOLDS[case]
    graph = trig(text)
    assert unfold(graph) == graph
    assert unfold(Message([*graph, *trig(FOLDED)])) == Message(
        [*graph, *trig(":space { :s :p 'o' }")]
    )
    with pytest.raises(CannotFold, match=words) as error:
        unfold(graph, strict=True)
    assert error.value.hint


def test_a_triple_whose_subject_is_another() -> None:
    """The outer one is a folded triple, the inner one is mentioned twice, and so is none."""
    outer = LABELLED.replace("_:t", "_:u").replace(
        'subjectIRI "http://example.org/s"', "subjectNode _:t"
    )
    graph = trig(LABELLED + outer)
    assert unfold(graph) == trig(f"{LABELLED} :space {{ _:t :p 'o' }}")
    with pytest.raises(CannotFold, match="_:t is no folded triple"):
        unfold(graph, strict=True)


def test_two_nodes_that_fold_the_same_quad() -> None:
    """The known exception to fold(unfold(g)) being g: one of the two is lost, so a strict reader refuses them."""
    graph = trig(FOLDED + FOLDED)
    assert len(graph) == 10
    assert unfold(graph) == trig(":space { :s :p 'o' }")
    with pytest.raises(CannotFold, match=r"_:.* and _:.* fold the same quad") as error:
        unfold(graph, strict=True)
    assert error.value.hint


def test_named_graphs_stay_when_unfolding() -> None:
    """The draft's unfold2, which is idempotent; only the default graph is unfolded."""
    dataset = trig(f"{FOLDED} :g {{ {FOLDED} }}")
    unfolded = unfold(dataset)
    assert unfolded.isomorphic(trig(f":space {{ :s :p 'o' }} :g {{ {FOLDED} }}"))
    assert unfold(unfolded) == unfolded
    with pytest.raises(CannotFold, match="named graph already"):
        unfold(dataset, strict=True)


def test_a_mention_in_a_named_graph_counts() -> None:
    dataset = trig(f"{LABELLED} :g {{ :x :p _:t }}")
    assert unfold(dataset) == dataset


def test_a_space_that_is_a_literal() -> None:
    graph = Message(
        quad._replace(subject=literal("x")) if "contains" in str(quad) else quad
        for quad in trig(FOLDED)
    )
    assert unfold(graph) == graph
    with pytest.raises(CannotFold, match="is no folded triple"):
        unfold(graph, strict=True)


def test_new_labels_are_new_in_the_message_and_in_the_log() -> None:
    dataset = Message(
        [
            Quad(Term("_:x_f2b0"), iri("urn:p"), parse_term("<<( _:x_f2bb7 <urn:p> _:x )>>")),
            Quad(iri("urn:s"), iri("urn:p"), literal("o"), iri("urn:g")),
        ]
    )
    folded = fold(dataset, number=2, labels=Labels("x"))
    assert {quad.subject for quad in folded} >= {Term("_:x_f2bbb1"), Term("_:x_f2b0")}
    one = trig(":g { :s :p 1 , 2 }")
    labels = Labels("x")
    for each in (
        [fold(one), fold(one)],
        [fold(one, number=number, labels=labels) for number in (1, 2)],
    ):
        nodes = [
            {term for quad in folded for term in quad if term and is_blank(term)} for folded in each
        ]
        assert [len(some) for some in nodes] == [2, 2]
        assert not nodes[0] & nodes[1]


# The draft's two TriG documents, which are one dataset; its N-Quads write http://example/org/ for http://example.org/
EXAMPLES = (
    ":a :b 1. :s1 { :a :b 10 } :s2 { :a :b 20 } :s1 { :a :b 11 } :s2 { :a :b 21 } :a :b 2.",
    ":a :b 1,2. :s1 { :a :b 10,11. } :s2 { :a :b 20,21. }",
)


def test_the_drafts_datasets() -> None:
    one, other = map(trig, EXAMPLES)
    assert one == other
    assert len(fold(one)) == 2 + 4 * 5
    assert fold(one).isomorphic(fold(other))
    assert unfold(fold(one), strict=True) == one


# --- the laws ---

VOCABULARY = [
    iri(RDF + name)
    for name in (
        *(
            "type",
            "containsTriple",
            "subjectIRI",
            "subjectNode",
            "predicateIRI",
            "objectIRI",
            "objectNode",
        ),
        "objectValue",
    )
]
nodes = st.sampled_from([Term("_:a"), Term("_:b"), Term("_:f1b0"), iri("urn:s"), iri("urn:t")])
predicates = st.sampled_from([*VOCABULARY, iri("urn:p"), iri("urn:q")])
literals = st.sampled_from(
    [*map(literal, ("urn:s", "urn:p", "rel", "")), literal("urn:s", language="en")]
)
objects = st.one_of(
    nodes, literals, st.just(iri(f"{RDF}Triple")), st.builds(triple, nodes, predicates, nodes)
)
quads = st.builds(Quad, nodes, predicates, st.one_of(nodes, literals), nodes)
triples = st.builds(Quad, nodes, predicates, objects, st.none())


@st.composite
def folded_triples(draw: st.DrawFn) -> list[Quad]:
    """The fold of a quad, or nearly that: a triple may be missing, and its node may be any."""
    folded = list(fold(Message([draw(quads)])))
    made_up, node = (
        folded[0].object,
        draw(st.sampled_from([Term("_:t"), Term("_:u"), Term("_:v"), Term("_:a"), iri("urn:t")])),
    )
    named = [Quad(*(node if term == made_up else term for term in quad)) for quad in folded]  # type: ignore[arg-type]
    return [quad for quad in named if draw(st.sampled_from([True] * 20 + [False]))]


graphs = st.builds(
    lambda folded, others: Message([quad for quads in folded for quad in quads] + others),
    st.lists(folded_triples(), max_size=3),
    st.lists(triples, max_size=3),
)


@given(st.lists(quads, max_size=5), st.lists(triples, max_size=8).map(Message) | graphs)
def test_unfold_inverts_fold(named: list[Quad], default: Message) -> None:
    """unfold(fold(d)) is d for all datasets that have a fold, labels of blank nodes included."""
    dataset = Message([*named, *default])
    try:
        folded = fold(dataset)
    except CannotFold:
        event("no fold")
        with pytest.raises(CannotFold):
            fold(default)
        return
    event("folded")
    assert {quad.graph for quad in folded} <= {None}
    assert len(folded) == len(dataset) + 4 * len(set(named))
    assert unfold(folded) == dataset


@given(graphs)
def test_fold_inverts_a_strict_unfold(graph: Message) -> None:
    """fold(unfold(g)) is g up to labels for all graphs that a strict reader takes."""
    try:
        dataset = unfold(graph, strict=True)
    except CannotFold:
        event("not strictly")
        return
    event(f"strictly: {len(graph) - len(dataset)} fewer")
    assert fold(dataset).isomorphic(graph)


@given(graphs)
def test_fold_inverts_any_unfold_that_loses_no_node(graph: Message) -> None:
    """A lenient reader loses only the second of two nodes that fold the same quad, and keeps what is no fold."""
    dataset = unfold(graph)
    assert all(quad in graph for quad in dataset if quad.graph is None)
    try:
        folded = fold(dataset)
    except CannotFold:
        event("no fold: the rest holds the template")
        return
    if len(folded) < len(graph):
        event("a quad folded twice")
        with pytest.raises(CannotFold):
            unfold(graph, strict=True)
    else:
        event("all there")
        assert folded.isomorphic(graph)
