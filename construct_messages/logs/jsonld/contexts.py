"""Expands documents by their JSON-LD contexts, which are in the log or passed by the caller. Contexts are not fetched.

JSON-LD 1.1 API, section 5.1 (expansion), by PyLD. The result needs no context; this module does not convert it to RDF.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping
from math import inf
from typing import Any, Final

import msgspec
from pyld import jsonld  # type: ignore[import-untyped] # it has no type information
from pyld.context_resolver import ContextResolver  # type: ignore[import-untyped] # nor has this
from pyld.resolved_context import ResolvedContext  # type: ignore[import-untyped] # nor has this

from construct_messages.errors import ConstructMessagesError, LimitExceeded, UsageError
from construct_messages.logs.jsonld.json_text import NO_BASE
from construct_messages.logs.jsonld.nodes import Rare, Terms
from construct_messages.logs.turtle.scanner import MOST_BASE

# --- context weight -------------------------------------------------------------------------------
# Estimates the cost of JSON-LD contexts before they are processed.
#
# Each context creates a copy of all terms in scope, and each name may become an IRI as long as the longest one of a
# context: a few bytes of both multiply. PyLD interprets contexts.
#
# JSON-LD 1.1 API, section 4.1 (context processing) and 5.2 (IRI expansion).

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_MOST_COPIES: Final = 1 << 22
"""The maximal number of terms that all contexts of one message may copy."""
_COPY: Final = 1 << 4
"""The number of characters that a copy counts for."""
_USUAL_IRI: Final = 1 << 7
"""The length of declarations in contexts that is not counted, in characters."""
_VALUE: Final = 1 << 7
"""The number of characters that a value counts for: about its size in bytes during the expansion of its document."""


class Weight:
    """Counts the content of a document and of its contexts. `active`: the counts of the context that is active before
    it; None: no context.

    >>> weight = Weight()
    >>> weight.add({"@context": [{"a": "urn:a"}, {"b": "urn:b"}], "a": 1, "b": [2, 3]}, {})
    >>> weight.contexts, weight.terms, weight.values
    (2, 2, 4)
    """

    def __init__(self, active: Weight | None = None) -> None:
        self._active = active
        self.contexts = self.terms = self.values = self.names = 0
        # of declarations in contexts: the longest IRI, and the additions of relative bases and vocabularies
        self._longest = self._relative = 0
        self._lengths: dict[str, int] = {}  # of terms, as IRIs
        self._scoped: set[str] = set()  # names of terms and types with scoped contexts
        self._loaded: set[str] = set()  # contexts by IRI that are counted
        if active is not None:
            self.contexts, self.terms = active.contexts, active.terms
            self._longest, self._relative = active._longest, active._relative

    def add(self, document: Any, given: Mapping[str, Any], *, whole: bool = False) -> None:
        """Counts a document. `whole`: whether its own context is counted already."""
        used: list[str] = []
        # each part with the number of nodes around it that have a context: each copies the terms again
        parts: list[tuple[Any, int]] = [(document, 0)]
        deepest = 0
        while parts:
            part, depth = parts.pop()
            if isinstance(part, dict):
                if "@context" in part:
                    depth += 1
                    deepest = max(deepest, depth)
                for key, value in part.items():
                    if key == "@context":
                        if not (whole and part is document):
                            self.add_context(value, given)
                        continue
                    self.values += 1
                    self.names += 1
                    used.append(key)
                    parts.append((value, depth))
            elif isinstance(part, list):
                self.values += len(part)
                parts += [(each, depth) for each in part]
            elif isinstance(part, str):
                self.names += 1
                used.append(part)
        self.contexts = max(self.contexts, deepest)
        weight: Weight | None = self
        while weight is not None:
            if weight._scoped:
                self.contexts += sum(map(weight._scoped.__contains__, used))
            weight = weight._active

    def add_context(self, context: Any, given: Mapping[str, Any]) -> None:
        """Counts a context, with those that it loads and those of its terms."""
        named: set[str] = set()
        contexts = [context]
        while contexts:
            context = contexts.pop()
            if isinstance(context, list):
                contexts += context
            elif isinstance(context, str):
                if context in named:
                    self.contexts += 1  # copies the terms once more
                elif context in given and not self._has_loaded(context):
                    self._loaded.add(context)
                    contexts.append(given[context].get("@context"))
                named.add(context)
            elif isinstance(context, dict):
                self.contexts += 1
                self.terms += len(context)
                self._measure(context)
                for name, definition in context.items():
                    if name == "@import":
                        contexts.append(definition)
                    elif isinstance(definition, dict) and "@context" in definition:
                        self._scoped.add(name)
                        contexts.append(definition["@context"])

    def _has_loaded(self, iri: str) -> bool:
        return iri in self._loaded or (self._active is not None and self._active._has_loaded(iri))

    def _measure(self, context: Mapping[str, Any]) -> None:
        """Counts the lengths of a context's IRIs: a term may begin with another one, which begins with another."""
        values = {
            name: value["@id"] if isinstance(value, dict) and "@id" in value else value
            for name, value in context.items()
        }
        measured: set[str] = set()
        for name in values:
            chain = []
            while isinstance(value := values.get(name), str) and name not in measured:
                chain.append((name, value))
                measured.add(name)
                name = value.partition(":")[0]
            for name, value in reversed(chain):
                begins, colon, rest = value.partition(":")
                known = self._length(begins) if colon else None
                self._lengths[name] = len(value) if known is None else known + len(rest)
                self._longest = max(self._longest, self._lengths[name])
        for keyword in ("@base", "@vocab"):
            value = values.get(keyword)
            if isinstance(value, str) and not _ABSOLUTE.match(value):
                self._relative += len(value)

    def _length(self, name: str) -> int | None:
        if name in self._lengths or self._active is None:
            return self._lengths.get(name)
        return self._active._length(name)

    def check(self, number: int, most: float) -> None:
        """Checks that the document is not too large. `most`: the maximal number of characters of the message; names,
        values and copies count for some.
        """
        if self.contexts * self.terms > min(_MOST_COPIES, most / _COPY):
            raise LimitExceeded(
                f"message {number}: {self.contexts} contexts copy {self.terms} terms each",
                hint="write one context for all, on a line of its own",
            )
        if self._relative > MOST_BASE:
            raise LimitExceeded(
                f"message {number}: relative bases and vocabularies have more than {MOST_BASE} characters",
                hint="write the IRIs of @base and @vocab in full",
            )
        longer = (self.names + self.terms) * max(0, self._longest + self._relative - _USUAL_IRI)
        if max(longer, self.values * _VALUE) > most:
            raise LimitExceeded(
                f"message {number} has more than {most:.0f} characters once its contexts are applied",
                hint="allow larger messages, or split the message",
            )


# --- contexts -------------------------------------------------------------------------------------

_MOST_CONTEXTS: Final = 100
_MOST_TEXT: Final = 1 << 20
"""How many contexts of documents are kept: their number, and the length of their JSON in characters."""
_MOST_WEIGHTS: Final = 16
NO_CONTEXT: Final = object()


class Contexts:
    """Expands documents by the contexts in them and by those of the caller. `given`: contexts by their IRI, as parsed
    JSON (`{"@context": …}` or its value). `base`: the IRI that relative IRIs resolve against; None: they stay relative.

    >>> contexts = Contexts({"https://example.org/names": {"name": "http://xmlns.com/foaf/0.1/name"}}, None)
    >>> contexts.expand({"@context": "https://example.org/names", "@id": "urn:a", "name": "Ada"})
    [{'@id': 'urn:a', 'http://xmlns.com/foaf/0.1/name': [{'@value': 'Ada'}]}]
    >>> contexts.expand({"@context": "https://example.org/other"})
    Traceback (most recent call last):
    ...
    construct_messages.errors.UsageError: the context <https://example.org/other> is not known, and none is fetched
      hint: give it: contexts={"https://example.org/other": …}, on the command line --context https://example.org/other=FILE
    """

    def __init__(self, given: Mapping[str, Any] | None, base: str | None) -> None:
        self._given = {
            iri: context
            if isinstance(context, Mapping) and "@context" in context
            else {"@context": context}
            for iri, context in (given or {}).items()
        }
        self._base = base or NO_BASE
        self._processed: dict[str, Any] = {}
        self._active = _Active(None)

    def terms(
        self, active: Any, context: Any = NO_CONTEXT, *, number: int = 1, most: float = inf
    ) -> Terms:
        """Returns the names of a document under the active context and its own, if it has one; raises `Rare` if
        `expand` reads it, or finds the error. `most`: see `expand`.
        """
        self._begin(active)
        self._weight_of(context).check(number, most)
        if isinstance(context, dict) and "@context" in context:
            raise Rare
        processor, options = Processor(), self._options
        made = processor._get_initial_context(options)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                if active is not None:
                    made = processor.process_context(made, active, options)
                if context is not NO_CONTEXT:
                    made = processor._process_context(made, copy.deepcopy(context), options)
            return Terms(made, self._base)
        except MemoryError:
            raise
        except Exception as error:  # an arbitrary one, see below: `expand` reports the fault
            raise Rare from error

    def expand(
        self, document: Any, active: Any = None, *, number: int = 1, most: float = inf
    ) -> list[Any]:
        """Returns the document in expanded form. `most`: the maximal number of characters of the expanded message."""
        self._begin(active)
        context = document.get("@context", NO_CONTEXT) if isinstance(document, dict) else NO_CONTEXT
        weight = Weight(self._weight_of(context))
        weight.add(document, self._given, whole=True)
        weight.check(number, most)
        options = self._options
        if active is not None:
            options["expandContext"] = active
        try:
            # PyLD warns about reserved terms, and drops them according to JSON-LD 1.1 (section 9.15.1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                expanded: list[Any] = Processor().expand(document, options)
        except MemoryError:
            raise
        # PyLD raises arbitrary errors for values of an unexpected kind
        except Exception as error:
            raise reason_of(error) from error
        return expanded

    def _begin(self, active: Any) -> None:
        """Forgets contexts if there are many, except for those of the caller, and weighs an active one."""
        if len(self._processed) > _MOST_CONTEXTS or sum(map(len, self._processed)) > _MOST_TEXT:
            self._processed = {
                iri: kept for iri, kept in self._processed.items() if iri in self._given
            }
        if active is not self._active.context:
            self._active = _Active(active)
            self._active.weight.add_context(active, self._given)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "base": self._base,
            "processingMode": "json-ld-1.1",
            "documentLoader": self.load,
            # keeps processed contexts from one document to the next
            "contextResolver": _Resolver(self._active, self._processed, self.load),
        }

    def _weight_of(self, context: Any) -> Weight:
        """Returns the weight of the active context and of a document's own; those with names are kept."""
        if context is NO_CONTEXT:
            return self._active.weight
        kept = self._active.weights
        named = isinstance(context, str) or (
            isinstance(context, list) and any(isinstance(each, str) for each in context)
        )
        key = msgspec.json.encode(context) if named else b""
        if key in kept:
            return kept[key]
        weight = Weight(self._active.weight)
        weight.add_context(context, self._given)
        if named:
            if len(kept) >= _MOST_WEIGHTS:
                kept.clear()
            kept[key] = weight
        return weight

    def load(self, iri: str, _options: object) -> dict[str, Any]:
        """Returns a context of the caller; the document loader of PyLD."""
        if iri not in self._given:
            raise UsageError(
                f"the context <{iri}> is not known, and none is fetched",
                hint=f'give it: contexts={{"{iri}": …}}, on the command line --context {iri}=FILE',
            )
        # PyLD modifies its arguments; "static" lets it keep the processed context
        document = copy.deepcopy(self._given[iri])
        return {"contextUrl": None, "documentUrl": iri, "document": document, "tag": "static"}


class Processor(jsonld.JsonLdProcessor):  # type: ignore[misc] # PyLD has no type information
    """PyLD's processor, which also accepts `"@vocab": null`, `"@language": null` and `"@direction": null` if none is
    active.
    """

    def _clone_active_context(self, active_ctx: Any) -> Any:
        return _Unset(super()._clone_active_context(active_ctx))


class _Unset(dict[str, Any]):
    """A context from which missing keys can be removed."""

    def __delitem__(self, key: str) -> None:
        self.pop(key, None)


class _Active:
    """The active context of a log, processed by PyLD once instead of for each message."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.weight = Weight()
        # those of this context and another one, by its JSON
        self.weights: dict[bytes, Weight] = {}
        # the results, by the context that was active before
        self.processed: dict[str, ResolvedContext] = {}


class _Resolver(ContextResolver):  # type: ignore[misc] # PyLD has no type information
    """PyLD's resolver, which returns the active context of the log immediately."""

    def __init__(self, active: _Active, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._active = active

    def resolve(self, active_ctx: Any, context: Any, base: str, cycles: Any = None) -> Any:
        """Resolves a context; see `ContextResolver.resolve`."""
        if context is None or context is not self._active.context:
            return super().resolve(active_ctx, context, base, cycles)
        before = active_ctx["_uuid"]
        if before not in self._active.processed:
            options = {
                "base": base,
                "documentLoader": self.document_loader,
                "processingMode": "json-ld-1.1",
            }
            options["contextResolver"] = ContextResolver(self.shared_cache, self.document_loader)
            made = Processor().process_context(active_ctx, context, options)
            self._active.processed[before] = ResolvedContext({})
            self._active.processed[before].set_processed(active_ctx, made)
        return [self._active.processed[before]]


def reason_of(error: BaseException) -> UsageError:
    """Returns the innermost cause, which describes the error; the outer ones only name the operation."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ConstructMessagesError):
        return UsageError(error.message, hint=error.hint)
    if isinstance(error, RecursionError):
        return UsageError("the terms of a context are defined by too long a chain of each other")
    if not isinstance(error, jsonld.JsonLdError):
        return UsageError(
            f"malformed JSON-LD, on which PyLD fails: {type(error).__name__}: {error}",
            hint="check the values of keywords, in @context above all",
        )
    message = str(error.args[0]).removeprefix("Invalid JSON-LD syntax; ").rstrip(".")
    return UsageError(f"{message} ({error.code})" if error.code else message)
