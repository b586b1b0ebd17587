"""RDF spaces: represent named graphs as triples, and back (RDF Spaces and Datasets, "Folding").

https://dvcs.w3.org/hg/rdf/raw-file/default/rdf-spaces/index.html. A `Message` is what the draft calls a *quadset*:
triples and quads together. Each quad becomes five triples about a new blank node, in which IRIs are strings, so that
nothing can be inferred from other statements about them. No serialization here, and nothing about logs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from construct_messages.errors import CannotFold, TermError
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import (
    RDF,
    Term,
    has_blank,
    iri,
    is_blank,
    is_literal,
    is_triple,
    literal,
    literal_parts,
    triple_parts,
)

_TYPE: Final = iri(f"{RDF}type")
_TRIPLE: Final = iri(f"{RDF}Triple")
_CONTAINS: Final = iri(f"{RDF}containsTriple")
_SUBJECT_IRI: Final = iri(f"{RDF}subjectIRI")
_SUBJECT_NODE: Final = iri(f"{RDF}subjectNode")
_PREDICATE_IRI: Final = iri(f"{RDF}predicateIRI")
_OBJECT_IRI: Final = iri(f"{RDF}objectIRI")
_OBJECT_NODE: Final = iri(f"{RDF}objectNode")
_OBJECT_VALUE: Final = iri(f"{RDF}objectValue")

_PARTS: Final[Mapping[Term, str]] = {
    _SUBJECT_IRI: "subject",
    _SUBJECT_NODE: "subject",
    _PREDICATE_IRI: "predicate",
    _OBJECT_IRI: "object",
    _OBJECT_NODE: "object",
    _OBJECT_VALUE: "object",
}
"""The part of the template that a property replaces, in addition to `rdf:containsTriple` and the type."""


@checked
def fold(message: Message, *, number: int = 1, labels: Labels | None = None) -> Message:
    """Folds a dataset into one graph: its default graph, and five triples for each quad of a named graph.

    Args:
        message: a dataset. Its blank nodes keep their labels, also as names of graphs.
        number: the number of the message among those that are folded with the same labels, from 1.
        labels: create the labels of new blank nodes; None: with a random prefix.

    Raises:
        CannotFold: the default graph already contains a folded triple, which unfolding would take for a quad of the
            dataset; or a named graph contains a triple term, which the vocabulary cannot represent.

    >>> s, p, g = iri("urn:s"), iri("urn:p"), iri("urn:g")
    >>> for quad in fold(Message([Quad(s, p, literal("o"), g)]), labels=Labels("x")):
    ...     print(str(quad).replace(RDF, "rdf:"))
    <urn:g> <rdf:containsTriple> _:x_f1b0 .
    _:x_f1b0 <rdf:type> <rdf:Triple> .
    _:x_f1b0 <rdf:subjectIRI> "urn:s" .
    _:x_f1b0 <rdf:predicateIRI> "urn:p" .
    _:x_f1b0 <rdf:objectValue> "o" .
    """
    if node := next(_occurrences(message), None):
        raise CannotFold(
            f"the default graph holds a folded triple already, {node}",
            hint="unfold the message first, or leave it as it is",
        )
    stem = (labels or Labels()).of_fold(number)
    while any(term is not None and has_blank(term, stem) for quad in message for term in quad):
        stem += "b"
    folded: list[Quad] = []
    for quad in message:
        if quad.graph is None:
            folded.append(quad)
            continue
        node = Term(f"_:{stem}{len(folded)}")
        folded += _template(quad, quad.graph, node)
    graph = Message(folded)
    graph.checked = message.checked
    return graph


def _template(quad: Quad, space: Term, node: Term) -> tuple[Quad, ...]:
    subject, predicate, object, _ = quad
    return (
        Quad(space, _CONTAINS, node),
        Quad(node, _TYPE, _TRIPLE),
        _part(quad, node, subject, _SUBJECT_IRI, _SUBJECT_NODE),
        _part(quad, node, predicate, _PREDICATE_IRI),
        _part(quad, node, object, _OBJECT_IRI, _OBJECT_NODE, _OBJECT_VALUE),
    )


def _part(
    quad: Quad,
    node: Term,
    term: Term,
    as_iri: Term,
    as_node: Term | None = None,
    as_value: Term | None = None,
) -> Quad:
    if is_blank(term) and as_node:
        return Quad(node, as_node, term)
    if is_literal(term) and as_value:
        return Quad(node, as_value, term)
    if is_blank(term) or is_literal(term) or is_triple(term):
        raise CannotFold(
            f"{term} has no fold: {quad}", hint="only IRIs, blank nodes and literals have one"
        )
    return Quad(node, as_iri, literal(term[1:-1]))


def _occurrences(message: Message) -> Iterator[Term]:
    """The nodes that match the template in the default graph as in SPARQL: they may have other statements."""
    parts: defaultdict[Term, set[str]] = defaultdict(set)
    contained = []
    for subject, predicate, object, graph in message:
        if graph is not None:
            continue
        if predicate in _PARTS:
            parts[subject].add(_PARTS[predicate])
        elif predicate == _TYPE and object == _TRIPLE:
            parts[subject].add("type")
        elif predicate == _CONTAINS:
            contained.append(object)
    return (node for node in contained if node in parts and len(parts[node]) == 4)


@checked
def unfold(graph: Message, *, strict: bool = False) -> Message:
    """Unfolds a graph into a dataset: each folded triple becomes a quad, and all other triples are copied.

    A folded triple is a blank node that the graph mentions in the five triples of the template and nowhere else, with a
    string that is an absolute IRI, a blank node, or a literal where the template has one. For every dataset that can be
    folded, `unfold(fold(d)) == d`.

    Args:
        graph: a message. Named graphs that it already has are copied without unfolding.
        strict: refuse graphs that are not the fold of a dataset, so that `fold(unfold(g, strict=True))` is isomorphic
            to `g`.

    Raises:
        CannotFold: with `strict`: a named graph, a use of the vocabulary outside of a folded triple, or a quad that is
            folded twice.

    >>> quads = Message([Quad(iri("urn:s"), iri("urn:p"), Term("_:o"), Term("_:g"))])
    >>> unfold(fold(quads)) == quads
    True
    """
    about: defaultdict[Term, list[Quad]] = defaultdict(list)
    mentions: Counter[Term] = Counter()
    for quad in graph:
        if strict and quad.graph is not None:
            raise CannotFold(
                f"the message has a named graph already: {quad}",
                hint="unfold without strict to keep it",
            )
        if quad.graph is None:
            about[quad.subject].append(quad)
        mentions.update(node for term in quad if term is not None for node in _blanks(term))

    found: dict[Quad, Quad] = {}  # by each of their triples
    for quad in graph:
        node = quad.object
        if (
            quad.graph is None
            and quad.predicate == _CONTAINS
            and is_blank(node)
            and mentions[node] == 5
        ):
            unfolded = _read(quad.subject, about[node])
            if unfolded is not None:
                found |= dict.fromkeys((quad, *about[node]), unfolded)
    if strict:
        _check_strictly(graph, found)
    dataset = Message(found.get(quad, quad) for quad in graph)
    dataset.checked = graph.checked
    return dataset


def _read(space: Term, quads: list[Quad]) -> Quad | None:
    """The quad that the four triples about a node fold; None: they are not these four."""
    values = {quad.predicate: quad.object for quad in quads}
    if (
        not len(quads) == len(values) == 4
        or values.get(_TYPE) != _TRIPLE
        or is_literal(space)
        or is_triple(space)
    ):
        return None
    subject = _iri(values.get(_SUBJECT_IRI)) or _blank(values.get(_SUBJECT_NODE))
    predicate = _iri(values.get(_PREDICATE_IRI))
    object = (
        _iri(values.get(_OBJECT_IRI))
        or _blank(values.get(_OBJECT_NODE))
        or _literal(values.get(_OBJECT_VALUE))
    )
    return Quad(subject, predicate, object, space) if subject and predicate and object else None


def _iri(term: Term | None) -> Term | None:
    if term is None or not is_literal(term):
        return None
    value, datatype, language, _ = literal_parts(term)
    try:
        return None if datatype or language else iri(value)
    except TermError:
        return None  # a relative IRI, or none: nothing folds to it


def _blank(term: Term | None) -> Term | None:
    return term if term and is_blank(term) else None


def _literal(term: Term | None) -> Term | None:
    return term if term and is_literal(term) else None


def _blanks(term: Term) -> Iterator[Term]:
    if is_blank(term):
        yield term
    elif is_triple(term):
        for part in triple_parts(term):
            yield from _blanks(part)


def _check_strictly(graph: Message, found: Mapping[Quad, Quad]) -> None:
    spaces: dict[Quad, Term] = {}
    for quad in graph:
        subject, predicate, object, _ = quad
        if quad not in found:
            if (
                predicate in _PARTS
                or predicate == _CONTAINS
                or (predicate, object) == (_TYPE, _TRIPLE)
            ):
                raise CannotFold(
                    f"{object if predicate == _CONTAINS else subject} is no folded triple, but the graph has: {quad}",
                    hint="a folded triple is a blank node in five triples: one space contains it, and it has the type"
                    " rdf:Triple, one subject, one predicate and one object; unfold without strict to keep the rest",
                )
        elif predicate == _CONTAINS and spaces.setdefault(found[quad], object) != object:
            raise CannotFold(
                f"{spaces[found[quad]]} and {object} fold the same quad: {found[quad]}",
                hint="unfold without strict to take it once",
            )
