"""Estimates the size of the RDF of a JSON-LD document, before a parser creates it.

The parser creates all quads of a document together, and each contains the `@id` of its node: the memory for a long one
with many values grows with the square of its size in the log. Documents are in expanded form, or have a context of
prefixes only; `documents.py` interprets them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_BLANK: Final = 34
"""The length of a label that the parser creates."""
_TYPE: Final = 49
_LITERAL: Final = 50
"""The parts of a literal other than its value: quotes, and the datatype of a number."""
_IN_A_LIST: Final = 2 * (_BLANK + _TYPE + _BLANK)


def characters(document: Any, context: Mapping[str, Any]) -> int:
    """Returns the approximate number of characters of a document's quads as N-Quads.

    Args:
        document: a node, or nodes.
        context: the prefixes, each with an IRI or a definition.

    >>> characters({"@id": "urn:a", "urn:p": ["b", {"@id": "urn:c"}]}, {})
    76
    """

    def iri(name: Any) -> int:
        if not isinstance(name, str):
            return _BLANK
        begins, _, _ = name.partition(":")
        namespace = context.get(begins, "")
        if isinstance(namespace, dict):
            namespace = namespace.get("@id", "")
        return len(name) + len(namespace)

    total = 0
    nodes: list[tuple[Any, int]] = [(document, 0)]  # each with the length of its graph's name
    while nodes:
        node, graph = nodes.pop()
        if isinstance(node, list):
            nodes += ((each, graph) for each in node)
            continue
        if not isinstance(node, dict):
            continue
        subject = iri(node.get("@id"))
        for key, values in node.items():
            if key == "@graph":
                nodes.append((values, subject))
            elif key == "@included":
                nodes.append((values, graph))
            elif key == "@reverse":
                nodes += (
                    ({"@id": node.get("@id"), predicate: each}, graph)
                    for predicate, each in values.items()
                )
            elif key == "@type" or not key.startswith("@"):
                statement = subject + graph + (_TYPE if key == "@type" else iri(key))
                for value in _each(values):
                    total += statement
                    if not isinstance(value, dict):
                        total += iri(value) if key == "@type" else _LITERAL + len(str(value))
                    elif "@value" in value:
                        total += _LITERAL + sum(len(str(part)) for part in value.values())
                    elif "@list" in value:
                        items = (
                            value["@list"] if isinstance(value["@list"], list) else [value["@list"]]
                        )
                        total += len(items) * (_IN_A_LIST + 2 * graph)
                        nodes += (({key: item}, graph) for item in items)
                    else:
                        total += iri(value.get("@id"))
                        nodes.append((value, graph))
    return total


def _each(values: Any) -> Iterator[Any]:
    if isinstance(values, list):
        yield from values
    else:
        yield values
