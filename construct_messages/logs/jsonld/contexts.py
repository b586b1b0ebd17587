"""Expands documents by their JSON-LD contexts, which are in the log or passed by the caller. Contexts are not fetched.

JSON-LD 1.1 API, section 5.1 (expansion), by PyLD. The result needs no context; this module does not convert it to RDF.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from math import inf
from typing import Any, Final

from pyld import jsonld  # type: ignore[import-untyped] # it has no type information
from pyld.context_resolver import ContextResolver  # type: ignore[import-untyped] # nor has this
from pyld.resolved_context import ResolvedContext  # type: ignore[import-untyped] # nor has this

from construct_messages.logs.jsonld.context_weight import Weight
from construct_messages.logs.jsonld.deserialization import NO_BASE
from construct_messages.rdf.errors import ConstructMessagesError, UsageError

_MOST_CONTEXTS: Final = 100


class Contexts:
    """Expands documents by the contexts in them and by those of the caller.

    Args:
        given: contexts by their IRI, as parsed JSON (`{"@context": …}` or its value).
        base: the IRI that relative IRIs resolve against; None: they stay relative.

    >>> contexts = Contexts({"https://example.org/names": {"name": "http://xmlns.com/foaf/0.1/name"}}, None)
    >>> contexts.expand({"@context": "https://example.org/names", "@id": "urn:a", "name": "Ada"})
    [{'@id': 'urn:a', 'http://xmlns.com/foaf/0.1/name': [{'@value': 'Ada'}]}]
    >>> contexts.expand({"@context": "https://example.org/other"})
    Traceback (most recent call last):
    ...
    construct_messages.rdf.errors.UsageError: the context <https://example.org/other> is not known, and none is fetched
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

    def expand(
        self, document: Any, active: Any = None, *, number: int = 1, most: float = inf
    ) -> list[Any]:
        """Returns the document in expanded form.

        Args:
            document: parsed JSON.
            active: the context that is active before it.
            number: the number of the message, from 1.
            most: the maximal number of characters of the expanded message.

        Raises:
            UsageError: an unknown context, or not JSON-LD.
            LimitExceeded: contexts and terms together are too large.
        """
        if len(self._processed) > _MOST_CONTEXTS:
            self._processed.clear()
        if active is not self._active.context:
            self._active = _Active(active)
            self._active.weight.add_context(active, self._given)
        weight = Weight(self._active.weight)
        weight.add(document, self._given)
        weight.check(number, most)
        options = {
            "base": self._base,
            "documentLoader": self.load,
            # keeps processed contexts from one document to the next
            "contextResolver": _Resolver(self._active, self._processed, self.load),
        }
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

    def load(self, iri: str, _options: object) -> dict[str, Any]:
        """Returns a context of the caller; the document loader of PyLD.

        Raises:
            UsageError: the caller passed no such context.
        """
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
