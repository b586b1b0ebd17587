"""Reads a frame and its context once: compiles them, or leaves them to PyLD.

JSON-LD 1.1 API, sections 4.1 (context processing) and 5.1 (expansion), by PyLD. Contexts are not fetched.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information
from pyld.context_resolver import ContextResolver  # type: ignore[import-untyped] # nor has this

from construct_messages.logs.json.framing import EMBEDS, NodeFrame, NotCompiled, compile_frame
from construct_messages.logs.json.nodes import Nodes, Value, expanded_value, graphs_of
from construct_messages.logs.json.notation import ContextNotation
from construct_messages.logs.json.options import JsonOptions
from construct_messages.logs.jsonld.contexts import Contexts, Processor, reason_of
from construct_messages.rdf.errors import UnsupportedByFormat, UsageError
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term, is_literal

# --- fallback -------------------------------------------------------------------------------------
# Framing by PyLD, for frames and contexts with features that are not compiled.
#
# JSON-LD 1.1 Framing and API. tests/logs/json compare the compiled frames with this.


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


# --- compiled -------------------------------------------------------------------------------------

_BOOLEANS: Final = ("@explicit", "@omitDefault", "@requireAll")
_KEYWORDS: Final = frozenset(
    [
        "@context",
        "@id",
        "@type",
        "@value",
        "@language",
        "@direction",
        "@list",
        "@set",
        "@graph",
        "@included",
        "@reverse",
        "@index",
        "@nest",
        "@none",
        "@default",
        "@embed",
        "@explicit",
        "@omitDefault",
        "@requireAll",
        "@omitGraph",
        "@version",
        "@json",
    ]
)


@dataclass(frozen=True)
class CompiledFrame:
    """A compiled frame."""

    frame: NodeFrame
    # the notation of its context
    notation: ContextNotation
    # whether matching only depends on the kinds of terms, except for types, and not on the terms themselves
    is_laid_out: bool


def compiled(options: JsonOptions, frame: Mapping[str, Any]) -> CompiledFrame | ByPyLD:
    """Reads a frame."""
    _check(frame, "")
    pyld = _options(options)
    context = frame.get("@context", {})
    active = _guarded(lambda: _active(context, pyld), "the context of the frame")
    expanded = _guarded(
        lambda: Processor().expand(
            copy.deepcopy(dict(frame)), {**pyld, "isFrame": True, "keepFreeFloatingNodes": True}
        ),
        "the frame",
    )
    _check_terms(frame, active, "")
    try:
        if any(Processor()._expand_iri(active, key, vocab=True) == "@graph" for key in frame):
            raise NotCompiled
        found = compile_frame(expanded)
        notation = ContextNotation(active, natively=options.native)
    except NotCompiled:
        return by_pyld(options, frame)
    return CompiledFrame(found, notation, not notation.to_terms and _is_laid_out(found))


def is_compiled(options: JsonOptions) -> bool:
    """Returns whether the frame of options, and its context, are applied without PyLD."""
    frame, context = options.frame or {}, options.context
    if set(frame) == {"@context"}:
        frame, context = {}, frame["@context"]
    if frame:
        given = frame if context is None else {"@context": context, **frame}
        return isinstance(compiled(options, given), CompiledFrame)
    if context is not None:
        notation_of(options, context, typed=True)
    return True


def by_pyld(options: JsonOptions, frame: Mapping[str, Any]) -> ByPyLD:
    """Returns the well-formed frame for PyLD, which applies it to each message."""
    pyld = _options(options)
    inverse = Processor()._get_inverse_context(_active(frame.get("@context", {}), pyld))

    def is_expected(predicate: Term, datatype: str) -> bool:
        entries = inverse.get(predicate[1:-1], {}).values()
        return any(datatype in entry["@type"] for entry in entries)

    return ByPyLD(frame, pyld, natively=options.native, is_expected=is_expected)


def notation_of(
    options: JsonOptions,
    context: Any,
    *,
    typed: bool,
    arrays: Collection[Term] = (),
    maps_if_needed: bool = False,
) -> ContextNotation:
    """Returns the notation of a context for documents without a frame; see `ContextNotation`."""
    active = _guarded(lambda: _active(context, _options(options)), "the context")
    try:
        return ContextNotation(
            active,
            typed=typed,
            natively=options.native,
            arrays=arrays,
            maps_if_needed=maps_if_needed,
        )
    except NotCompiled:
        raise UsageError(
            "the context has scoped contexts, @nest, @reverse, or a container other than @set, @list and @language",
            hint='write a frame with it, such as {"@context": …, "@type": "City"}, which PyLD applies',
        ) from None


def _options(options: JsonOptions) -> dict[str, Any]:
    contexts = Contexts(options.contexts, None)
    return {
        "base": "",
        "documentLoader": contexts.load,
        "contextResolver": ContextResolver({}, contexts.load),
        "processingMode": "json-ld-1.1",
    }


def _active(context: Any, pyld: dict[str, Any]) -> Any:
    processor = Processor()
    initial = processor._get_initial_context(pyld)
    return processor.process_context(initial, copy.deepcopy(context), pyld)


def _guarded(read: Callable[[], Any], what: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return read()
    except MemoryError:
        raise
    # PyLD raises arbitrary errors for values of an unexpected kind
    except Exception as error:
        reason = reason_of(error)
        raise UsageError(f"{what} is malformed: {reason.message}", hint=reason.hint) from error


def _is_laid_out(frame: NodeFrame) -> bool:
    frames = [frame]
    while frames:
        each = frames.pop()
        if each.ids or (each.value is not None and any(value != {} for value in each.value[0])):
            return False
        frames += (inner for inner in (*each.properties.values(), each.items) if inner)
    return True


def matches_types(frame: NodeFrame) -> bool:
    """Returns whether a frame, or a nested one, selects nodes by certain types."""
    return bool(frame.types) or any(
        matches_types(inner) for inner in (*frame.properties.values(), frame.items) if inner
    )


# --- errors with a place ----------------------------------------------------------------------------------------------


def _check(frame: Any, place: str) -> None:
    """Rejects invalid values of keywords, with their place as a JSON pointer."""
    if isinstance(frame, list):
        for index, each in enumerate(frame):
            _check(each, f"{place}/{index}")
        return
    if not isinstance(frame, Mapping):
        return
    for key, value in frame.items():
        here = f"{place}/{key}"
        if key == "@context":
            continue
        flag = value[0] if isinstance(value, list) and len(value) == 1 else value
        if key == "@embed" and not (isinstance(flag, bool) or flag in EMBEDS):
            raise _refused(here, flag, f"choose one of {', '.join(EMBEDS)}")
        if key in _BOOLEANS and not (isinstance(flag, bool) or flag == "true"):
            raise _refused(here, flag, "write true or false")
        if key in ("@id", "@type"):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str) and each.startswith("_:"):
                    raise _refused(
                        here, each, "blank nodes have no names: write an IRI, or {} for any"
                    )
        if key.startswith("@") and key not in _KEYWORDS:
            raise UsageError(
                f"the frame has no meaning at {here}: {key} is no keyword of JSON-LD framing",
                hint="the flags of a frame are @embed, @explicit, @omitDefault, @requireAll and @default",
            )
        if key != "@default":
            _check(value, here)


def _refused(place: str, value: Any, hint: str) -> UsageError:
    return UsageError(f"the frame has {value!r} at {place}", hint=hint)


def _check_terms(frame: Any, active: Any, place: str) -> None:
    """Rejects keys that the context does not define; framing would leave them out silently."""
    processor = Processor()
    for key, value in frame.items() if isinstance(frame, Mapping) else ():
        if key == "@context" or key.startswith("@"):
            continue
        mapping = active["mappings"].get(key)
        iri = processor._expand_iri(active, key, vocab=True)
        if (
            key not in active["mappings"]
            and (iri is None or not jsonld._is_absolute_iri(iri))
            and not str(iri).startswith("@")
        ):
            raise UsageError(
                f"the frame has no meaning at {place}/{key}: {key!r} is no term of its context",
                hint=f'define it: "@context": {{"{key}": "http://…"}}, or write the IRI',
            )
        if mapping and "@context" in mapping:
            continue  # the context defines other terms in it
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Mapping) and "@context" not in each:
                _check_terms(each, active, f"{place}/{key}")
