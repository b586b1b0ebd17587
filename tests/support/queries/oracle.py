"""Oxigraph's own CONSTRUCT, over one solution at a time, as an oracle for templates.

The WHERE group is replaced by values of every kind for each variable. Oxigraph has no graphs in templates, so each
graph of a quads template is asked for alone, as a template of triples.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyoxigraph as ox

from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.tokens import Token, tokenize
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.template import Pattern, Template
from construct_messages.rdf.terms import UNBOUND, Term, from_pyoxigraph, iri, literal, triple
from tests.support.queries.braces import closing

KINDS = 5


def value(kind: int, index: int) -> tuple[str, Term]:
    """An expression for the value of variable `index`, and the term; kinds are IRI, literal, blank, triple, unbound."""
    match kind % KINDS:
        case 0:
            term = iri(f"urn:value:{index}")
        case 1:
            term = literal(f"value {index}", language="en" if index % 2 else None)
        case 2:
            return "BNODE()", Term(f"_:d{index}")
        case 3:
            term = triple(iri(f"urn:value:{index}"), iri("urn:p"), literal(f"{index}"))
        case _:
            return "", UNBOUND
    return term, term


def disagreement(text: str, query: ConstructQuery) -> str:
    """How the query's template and Oxigraph's differ on some solution; the empty string where they never do.

    Raises:
        SyntaxError: Oxigraph cannot read the template.
    """
    for inside, template in graphs(text, query):
        names = query.rewritten.variables
        for turn in range(-1, KINDS):
            values = [value(0 if turn < 0 else turn + index, index) for index in range(len(names))]
            bindings = " ".join(
                f"BIND({made} AS ?{name})"
                for name, (made, _) in zip(names, values, strict=True)
                if made
            )
            asked = f"{query.rewritten.prologue}CONSTRUCT {{ {inside} }} WHERE {{ {bindings} }}"
            found = ox.Store().query(asked)
            assert isinstance(found, ox.QueryTriples)
            theirs = Message(
                Quad(*(from_pyoxigraph(part) for part in statement)) for statement in found
            )
            ours = Message(template.instantiate([term for _, term in values], 0))
            if not ours.isomorphic(theirs):
                return f"{[str(term) for _, term in values]}: {ours.quads ^ theirs.quads}"
    return ""


def graphs(text: str, query: ConstructQuery) -> Iterator[tuple[str, Template]]:
    """The text and the template of the triples of each graph, the graph's name left out."""
    texts = {name: inside for name, inside in _graph_texts(text).items() if inside}
    by_graph: dict[object, list[Pattern]] = {}
    for pattern in query.template.patterns:
        by_graph.setdefault(pattern.graph, []).append(pattern._replace(graph=None))
    assert len(texts) == len(by_graph)
    # the default graph first, the others in the order of the text
    for inside, graph in zip(
        texts.values(), sorted(by_graph, key=lambda graph: graph is not None), strict=True
    ):
        yield inside, Template(query.rewritten.variables, tuple(by_graph[graph]))


def _graph_texts(text: str) -> dict[str, str]:
    tokens = tokenize(text)
    head = next(index for index, token in enumerate(tokens) if token.keyword == "CONSTRUCT")
    index = next(index for index in range(head, len(tokens)) if tokens[index].is_mark("{"))
    end = closing(tokens, index)
    pieces: dict[str, list[list[Token]]] = {"": [[]]}
    index += 1
    while index < end:
        token = tokens[index]
        if token.keyword == "GRAPH" or token.is_mark("{"):
            opening = next(i for i in range(index, end) if tokens[i].is_mark("{"))
            name = " ".join(part.text for part in tokens[index + 1 : opening])
            block = closing(tokens, opening)
            pieces.setdefault(name, []).append(list(tokens[opening + 1 : block]))
            pieces[""].append([])
            index = block + (2 if tokens[block + 1].is_mark(".") else 1)
        else:
            pieces[""][-1].append(token)
            index += 1
    return {name: " . ".join(filter(None, map(_joined, some))) for name, some in pieces.items()}


def _joined(tokens: list[Token]) -> str:
    if tokens and tokens[-1].is_mark("."):
        tokens = tokens[:-1]
    return " ".join(token.text for token in tokens)
