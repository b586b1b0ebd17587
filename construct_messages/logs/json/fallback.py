"""Framing by PyLD, for frames and contexts with features that are not compiled.

JSON-LD 1.1 Framing and API. tests/logs/json compare the compiled frames with this.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from construct_messages.logs.json.nodes import Nodes, Value, graphs_of
from construct_messages.logs.json.values import expanded_value
from construct_messages.logs.jsonld.contexts import Processor, reason_of
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term, is_literal


def expanded(
    message: Message,
    *,
    natively: bool = True,
    is_expected: Callable[[Term, str], bool] = lambda *_: False,
) -> list[dict[str, Any]]:
    """Returns a message as JSON-LD in expanded form. `is_expected`: whether a context has a term for a property and a
    datatype: then a number keeps its datatype, so that the term is found.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, number
    >>> expanded(Message([Quad(iri("urn:a"), iri("urn:p"), number("7"))]))
    [{'@id': 'urn:a', 'urn:p': [{'@value': 7}]}]
    """

    def value(predicate: Term, value: Value) -> Any:
        if isinstance(value, tuple):
            return {"@list": [one(predicate, each) for each in value]}
        return one(predicate, value)

    def one(predicate: Term, term: Value) -> Any:
        if isinstance(term, tuple):
            return {"@list": [one(predicate, each) for each in term]}
        if not is_literal(term):
            return {"@id": _name(term)}
        return expanded_value(
            term, natively=natively, is_expected=lambda datatype: is_expected(predicate, datatype)
        )

    def nodes(graph: Nodes) -> list[dict[str, Any]]:
        made = []
        for term, node in sorted(graph.items()):
            entries: dict[str, Any] = {"@id": _name(term)}
            if node.types:
                entries["@type"] = list(map(_name, node.types))
            for predicate, values in node.properties.items():
                entries[predicate[1:-1]] = [value(predicate, each) for each in values]
            if len(entries) > 1:
                made.append(entries)
        return made

    graphs = graphs_of(message)
    top = nodes(graphs.pop(None))
    by_id = {node["@id"]: node for node in top}
    for name, graph in graphs.items():
        assert name is not None
        if (id := _name(name)) not in by_id:
            by_id[id] = {"@id": id}
            top.append(by_id[id])
        by_id[id]["@graph"] = nodes(graph)
    return top


def _name(term: Term) -> str:
    return term[1:-1] if term[0] == "<" else term


class ByPyLD:
    """Frames messages by PyLD."""

    def __init__(
        self,
        frame: Mapping[str, Any],
        # the options of PyLD, with a loader of contexts
        options: Mapping[str, Any],
        *,
        natively: bool,
        is_expected: Callable[[Term, str], bool],
    ) -> None:
        self._frame, self._options = frame, options
        self._natively, self._is_expected = natively, is_expected

    def document(self, message: Message) -> str:
        """Returns the document of a message, as JSON."""
        input = expanded(message, natively=self._natively, is_expected=self._is_expected)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                framed = Processor().frame(input, copy.deepcopy(self._frame), dict(self._options))
        except MemoryError:
            raise
        # PyLD raises arbitrary errors for values of an unexpected kind
        except Exception as error:
            reason = reason_of(error)
            raise UnsupportedByFormat(
                f"the frame cannot be applied: {reason.message}", hint=reason.hint
            ) from error
        framed.pop("@context", None)
        return msgspec.json.encode(framed).decode()
