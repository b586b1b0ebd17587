"""What messages a CONSTRUCT query ought to give, by other means than the package's.

A SELECT written by hand is evaluated by pyoxigraph in memory, and a template given as data is instantiated one quad at
a time (SPARQL 1.2 Query, section 16.2). Nothing of `construct_messages` is imported here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeGuard
from urllib.parse import quote

import pyoxigraph as ox

PREFIXES = {
    "ex": "http://example.org/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}

Message = list[ox.Quad]
OxTerm = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


def messages(
    store: ox.Store,
    select: str,
    template: Sequence[str],
    *,
    group_by: Sequence[str] = (),
    default_graph: Sequence[str] = (),
    named_graphs: Sequence[str] = (),
    distinct: bool = False,
    skip_empty: bool = False,
    max_messages: int | None = None,
) -> list[Message]:
    """The messages in the order of the solutions, or in that of the groups' first solutions.

    Args:
        select: gives the solutions; prefixes of `PREFIXES` need no declaration.
        template: quads as `"?s ex:p ?o"` or `"?s ex:p ?o ?g"`; the parts are variables, blank nodes, `<<(s,p,o)>>`, or
            what Turtle writes without a space.
        group_by, default_graph, named_graphs, distinct, skip_empty, max_messages: as `construct_messages` takes them;
            `distinct` for templates without blank nodes.
    """
    solutions = store.query(
        select,
        prefixes=PREFIXES,
        default_graph=[ox.NamedNode(name) for name in default_graph] or None,
        named_graphs=[ox.NamedNode(name) for name in named_graphs] or None,
    )
    assert isinstance(solutions, ox.QuerySolutions)
    names = [variable.value for variable in solutions.variables]
    groups: dict[Hashable, Message] = {}
    for number, solution in enumerate(solutions):
        binding = {name: solution[name] for name in names}
        key = tuple(str(binding[name]) for name in group_by) if group_by else number
        groups.setdefault(key, []).extend(instantiate(template, binding))
    found = list(groups.values())
    if distinct:
        first: dict[frozenset[ox.Quad], Message] = {}
        for message in found:
            first.setdefault(frozenset(message), message)
        found = list(first.values())
    if skip_empty:
        found = [message for message in found if message]
    return found[:max_messages]


def instantiate(template: Sequence[str], binding: dict[str, OxTerm | None]) -> Message:
    """The quads of one solution; those that would not be quads are left out."""
    fresh: dict[str, ox.BlankNode] = {}

    def term(part: str) -> OxTerm | None:
        if part.startswith("?"):
            return binding.get(part[1:])
        if part.startswith("_:"):
            return fresh.setdefault(part, ox.BlankNode())
        if part.startswith("<<("):
            subject, predicate, object = map(
                term, part.removeprefix("<<(").removesuffix(")>>").split(",")
            )
            if not (is_subject(subject) and is_predicate(predicate) and object is not None):
                return None
            return ox.Triple(subject, predicate, object)
        return constant(part)

    quads = []
    for pattern in template:
        subject, predicate, object, *graphs = map(term, pattern.split(" "))
        places = [graph for graph in graphs if is_subject(graph)] if graphs else [ox.DefaultGraph()]
        if is_subject(subject) and is_predicate(predicate) and object is not None:
            quads += [ox.Quad(subject, predicate, object, place) for place in places]
    return quads


def is_subject(term: OxTerm | None) -> TypeGuard[ox.NamedNode | ox.BlankNode]:
    return isinstance(term, (ox.NamedNode, ox.BlankNode))


def is_predicate(term: OxTerm | None) -> TypeGuard[ox.NamedNode]:
    return isinstance(term, ox.NamedNode)


def constant(text: str) -> OxTerm:
    """A term as Turtle writes it."""
    prologue = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items())
    found: OxTerm = next(
        ox.parse(f"{prologue}<urn:s> <urn:p> {text} .", ox.RdfFormat.TURTLE)
    ).object
    return found


def decode(log: bytes) -> list[Message]:
    """The messages of an N-Quads log with `# @message` before each."""
    before, *texts = re.split(rb"^# @message\n", log, flags=re.MULTILINE)
    assert not before, f"something stands before the first message: {before[:200]!r}"
    # labels stay as they are, so that `as_one` can compare what messages share
    return [list(ox.parse(text, ox.RdfFormat.N_QUADS)) for text in texts]


def canonical(message: Iterable[ox.Quad]) -> frozenset[str]:
    """The quads as a set, the same for isomorphic messages."""
    dataset = ox.Dataset(message)
    # RDFC-1.0 has no triple terms; pyoxigraph's own algorithm has
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return frozenset(map(str, dataset))


def same(found: list[Message], expected: list[Message], *, ordered: bool) -> bool:
    """Whether two logs hold the same messages up to isomorphism of each; in the same order, if that counts."""
    left, right = (
        [canonical(message) for message in found],
        [canonical(message) for message in expected],
    )
    return left == right if ordered else Counter(left) == Counter(right)


def as_one(log: list[Message]) -> frozenset[str]:
    """A whole log as one dataset: tells also which blank nodes its messages share."""
    return canonical(
        ox.Quad(
            quad.subject,
            quad.predicate,
            quad.object,
            ox.NamedNode(f"urn:{number}:{quote(str(quad.graph_name))}"),
        )
        for number, message in enumerate(log)
        for quad in message
    )
