"""A flat CONSTRUCT, and the Concise Bounded Description of each root: its triples, and those of its blank nodes.

Knows which nodes of the result are roots (those with the predicates that the template gives its root). Cannot know
which triples came together: a root with two solutions is one group, what an IRI below the root says is not followed,
and a description that two roots share is in both. The symmetric one also takes what points at the root.

The result is indexed in two dictionaries; rdflib's `Graph.cbd` gives the same groups and takes longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pyoxigraph as ox

from benchmarks.suite.competitors.flat import ask
from benchmarks.suite.competitors.printing import pieces, print_groups


def main() -> None:
    """Arguments: the pieces, the endpoint, and `--symmetric`."""
    query, (endpoint, *options) = pieces()
    with ask(endpoint, query["construct"]) as answer:
        quads = ox.parse(answer, ox.RdfFormat.N_TRIPLES)
        triples = [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]
    print_groups(describe(find_roots(query, triples), triples, symmetric="--symmetric" in options))


def find_roots(
    query: Mapping[str, list[tuple[str, str, str]]], triples: Sequence[tuple[str, str, str]]
) -> list[str]:
    """The subjects that have what the template says of its root."""
    needed = query["root_patterns"]
    root = needed[0][0]
    if root[0] not in "?_":
        return [root]
    found: dict[str, set[int]] = defaultdict(set)
    for s, p, o in triples:
        for index, (_, predicate, object_) in enumerate(needed):
            if (predicate[0] == "?" or predicate == p) and (object_[0] in "?_" or object_ == o):
                found[s].add(index)
    enough = len(needed) if query["root_needs_all"] else 1
    return [root for root, has in found.items() if len(has) >= enough]


def describe(
    roots: Sequence[str], triples: Sequence[tuple[str, str, str]], *, symmetric: bool
) -> Iterator[dict[str, None]]:
    """The lines of the description of each root, each line once."""
    lines_of: dict[str, list[str]] = defaultdict(list)
    pointing: dict[str, list[str]] = defaultdict(list)
    blank: dict[str, list[str]] = defaultdict(list)  # the blank nodes that are objects of a subject
    for s, p, o in triples:
        line = f"{s} {p} {o} .\n"
        lines_of[s].append(line)
        if symmetric:
            pointing[o].append(line)
        if o[0] == "_":
            blank[s].append(o)
    for root in roots:
        group: dict[str, None] = {}
        waiting, seen = [root], {root}
        while waiting:
            node = waiting.pop()
            group |= dict.fromkeys(lines_of.get(node, ()))
            below = [each for each in blank.get(node, ()) if each not in seen]
            seen.update(below)
            waiting += below
        yield group | dict.fromkeys(pointing.get(root, ()))


if __name__ == "__main__":
    main()
