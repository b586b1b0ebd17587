"""The text of a query as the embedded engine, pyoxigraph 0.5, evaluates it by the specification.

Prefixed names with several full stops are written as IRIs: it refuses `ex:a.b.c` after `ex:a.b` (SPARQL 1.2 Query,
section 19.8, [PN_LOCAL]). Alternatives of paths are written as UNION: it gives a solution of several of them once, not
once for each (section 18.4). In `GRAPH ?g`, it takes ?g for a variable that both sides of MINUS share (section 18.6).
The rest of the text is unchanged, so that the columns of other lines stay the same. Nothing is evaluated here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from construct_messages.errors import QueryError
from construct_messages.query.prologue import Prologue
from construct_messages.query.scope import in_scope
from construct_messages.query.syntax.nodes import (
    BlankNode,
    GraphPattern,
    GroupPattern,
    IriNode,
    MinusPattern,
    PathAlternative,
    PathInverse,
    PathNegation,
    PathNode,
    PathRepetition,
    PathSequence,
    TripleNode,
    TriplesBlock,
    TripleTermNode,
    UnionPattern,
    VariableNode,
)
from construct_messages.query.syntax.parser import parse
from construct_messages.query.syntax.tree import walk
from construct_messages.query.tokens import error, tokenize
from construct_messages.regex import regex

_SUSPECT: Final = regex(r":(?:[\w%\-]|\\.)*\.(?:[\w%\-.]|\\.)*\.[\w%\-\\]")


def names_in_full(text: str) -> str:
    """Returns the query with such names written as IRIs.

    >>> names_in_full("PREFIX ex: <urn:> ASK { ?s ex:a.b ex:a.b.c . }")
    'PREFIX ex: <urn:> ASK { ?s ex:a.b <urn:a.b.c> . }'
    """
    if not _SUSPECT.search(text):
        return text
    tokens = tokenize(text)
    first_group = next(
        (index for index, token in enumerate(tokens) if token.is_mark("{")), len(tokens)
    )
    prologue = Prologue.read(text, tokens[:first_group], base=None, prefixes={})
    pieces, done = [], 0
    for token in tokens:
        if token.kind == "pname" and token.text.partition(":")[2].count(".") > 1:
            try:
                name = prologue.iri(text, token.text, token.start)
            except QueryError:
                continue  # the engine reports the error
            pieces += [text[done : token.start], name]
            done = token.end
    return "".join((*pieces, text[done:]))


_ALTERNATIVE: Final = regex(r"[^|]\|[^|]")
_MINUS: Final = regex(r"(?i)\bGRAPH\b[\s\S]*\bMINUS\b")
_MOST_WAYS: Final = 64


class _Splice(NamedTuple):
    start: int
    end: int
    text: str


def for_embedded(text: str) -> str:
    """Returns the text to pass to the embedded engine.

    Args:
        text: a query.

    Raises:
        QueryError: a MINUS within `GRAPH ?g` that the engine would evaluate wrongly.

    >>> for_embedded("SELECT * { ?s <urn:p>|<urn:q>/<urn:r> ?o }")
    'SELECT * { { ?s <urn:p> ?o . } UNION { ?s (<urn:q>)/(<urn:r>) ?o . } }'
    >>> for_embedded("SELECT * { GRAPH ?g { ?s ?p ?o MINUS { ?x ?q ?y } } }")
    'SELECT * { GRAPH ?g { ?s ?p ?o  } }'
    """
    text = names_in_full(text)
    if not (_ALTERNATIVE.search(text) or _MINUS.search(text)):
        return text
    try:
        form = parse(text).form
    except QueryError:
        return text  # the engine reports the error
    pieces, done = [], 0
    for start, end, new in sorted(_splices(text, form)):
        breaks = "".join(character for character in text[start:end] if character in "\r\n")
        pieces += [text[done:start], new, breaks]
        done = end
    return "".join((*pieces, text[done:]))


def _splices(text: str, form: Any) -> Iterator[_Splice]:
    blocks = [node for node in walk(form) if isinstance(node, TriplesBlock)]
    left: list[tuple[Any, str]] = [(form, "")]
    while left:
        node, graph = left.pop()
        match node:
            case TriplesBlock():
                if (written := _without_alternatives(text, node, blocks)) is not None:
                    yield _Splice(node.start, node.end, written)
                continue
            case GraphPattern(name=VariableNode(name=name)):
                graph = f"?{name}"
            case GraphPattern():
                graph = ""
            case GroupPattern(elements=elements) if graph:
                for place, minus in enumerate(elements):
                    if isinstance(minus, MinusPattern):
                        if _excludes_nothing(text, elements[:place], minus, graph):
                            yield _Splice(minus.start, minus.end, "")
                        else:
                            left.append((minus, graph))
                left += [(each, graph) for each in elements if not isinstance(each, MinusPattern)]
                continue
        left += [(part, graph) for part in node if isinstance(part, tuple)]


# --- MINUS ----------------------------------------------------------------------------------------------------------


def _excludes_nothing(text: str, before: Sequence[Any], minus: MinusPattern, graph: str) -> bool:
    """Whether a MINUS within the graph of a variable shares no variable with what is before it.

    Raises:
        QueryError: it may share some, but need not.
    """
    if _certain(before) & _certain(minus.group.elements):
        return False
    shared = in_scope(*before).keys() & in_scope(minus.group).keys()
    if not shared:
        return True
    names = ", ".join(f"?{name}" for name in sorted(shared))
    raise error(
        text,
        minus.start,
        f"the embedded engine would compare {graph} in this MINUS, too, where {names} may be unbound",
        f"write FILTER NOT EXISTS, or MINUS behind GRAPH {graph} {{ … }}",
    )


def _certain(elements: Sequence[Any]) -> frozenset[str]:
    """Some of the variables that all solutions of a group bind."""
    names: set[str] = set()
    for element in elements:
        match element:
            case TriplesBlock():
                names |= in_scope(element).keys()
            case GroupPattern(elements=inner):
                names |= _certain(inner)
            case GraphPattern(group=group):
                names |= _certain(group.elements)
            case UnionPattern(groups=groups):
                names |= frozenset.intersection(*(_certain(each.elements) for each in groups))
    return frozenset(names)


# --- alternatives ---------------------------------------------------------------------------------------------------


def _without_alternatives(
    text: str, block: TriplesBlock, blocks: Sequence[TriplesBlock]
) -> str | None:
    """Triples with UNIONs in place of alternatives; None: there are none, or none that can be replaced.

    Blank nodes stay in one group: triples that share them are part of each operand.
    """
    ways = [
        [triple.predicate]
        if isinstance(triple.predicate, VariableNode)
        else list(_ways(triple.predicate))
        for triple in block.triples
    ]
    if all(len(each) == 1 for each in ways):
        return None
    labels = _labels(block)
    if any(other is not block and labels & _labels(other) for other in blocks) or any(
        isinstance(node, TripleTermNode) for node in walk(block)
    ):
        return None
    plain, unions = "", list[str]()
    for places in _connected(block.triples):
        choices = list(product(*(ways[place] for place in places)))
        if len(choices) > _MOST_WAYS:
            return None
        groups = [
            "".join(
                _triple(text, block.triples[place], path, number)
                for place, path in zip(places, choice, strict=True)
            )
            for number, choice in enumerate(choices)
        ]
        if len(groups) == 1:
            plain += groups[0]
        else:
            unions.append(" UNION ".join(f"{{ {group}}}" for group in groups))
    return plain + " ".join(unions)


def _ways(path: PathNode) -> Iterator[PathNode]:
    """The alternatives of a path, none of which has alternatives outside of `?`, `*` and `+`, whose ends are sets."""
    match path:
        case PathAlternative(paths=paths):
            for one in paths:
                yield from _ways(one)
        case PathSequence(start, end, paths):
            for parts in product(*map(_ways, paths)):
                yield PathSequence(start, end, parts)
        case PathInverse(start, end, inner):
            for one in _ways(inner):
                yield PathInverse(start, end, one)
        case PathNegation(start, end, members):
            inverse = tuple(one for one in members if isinstance(one, PathInverse))
            forward = tuple(one for one in members if isinstance(one, IriNode))
            if inverse and forward:
                yield PathNegation(start, end, forward)
                yield PathNegation(start, end, inverse)
            else:
                yield path
        case _:
            yield path


def _connected(triples: Sequence[TripleNode]) -> list[list[int]]:
    """The numbers of the triples, by sets that share blank nodes."""
    found: list[tuple[set[str], list[int]]] = []
    for number, triple in enumerate(triples):
        labels, numbers = _labels(triple), [number]
        others = []
        for known in found:
            if known[0] & labels:
                labels |= known[0]
                numbers = known[1] + numbers
            else:
                others.append(known)
        found = [*others, (labels, numbers)]
    return [numbers for _, numbers in found]


def _labels(node: Any) -> set[str]:
    return {each.label for each in walk(node) if isinstance(each, BlankNode)}


def _triple(text: str, triple: TripleNode, predicate: PathNode | VariableNode, way: int) -> str:
    parts = (triple.subject, predicate, triple.object)
    return " ".join(_written(text, part, way) for part in parts) + " . "


def _written(text: str, node: Any, way: int) -> str:
    match node:
        case BlankNode(label=label):
            return f"_:way{way}.{label.lstrip('.')}"
        case IriNode(written=written):
            return str(written)
        case PathSequence(paths=paths):
            return "/".join(f"({_written(text, path, way)})" for path in paths)
        case PathAlternative(paths=paths):
            return "|".join(f"({_written(text, path, way)})" for path in paths)
        case PathInverse(path=IriNode(written=written)):
            return f"^{written}"
        case PathInverse(path=path):
            return f"^({_written(text, path, way)})"
        case PathRepetition(path=path, modifier=modifier):
            return f"({_written(text, path, way)}){modifier}"
        case PathNegation(members=members):
            names = (_written(text, member, way) for member in members)
            return f"!({'|'.join(names)})"
    return text[node.start : node.end]
