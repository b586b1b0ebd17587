"""Estimates the cost of JSON-LD contexts before they are processed.

Each context creates a copy of all terms in scope, and each name may become an IRI as long as the longest one of a
context: a few bytes of both multiply. PyLD interprets contexts, in `contexts.py`.

JSON-LD 1.1 API, section 4.1 (context processing) and 5.2 (IRI expansion).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from construct_messages.logs.turtle.declarations import MOST_BASE
from construct_messages.rdf.errors import LimitExceeded

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
    """Counts the content of a document and of its contexts.

    Args:
        active: the counts of the context that is active before it; None: no context.

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

    def add(self, document: Any, given: Mapping[str, Any]) -> None:
        """Counts a document.

        Args:
            document: parsed JSON.
            given: the caller's contexts, by their IRI.
        """
        used: list[str] = []
        parts = [document]
        while parts:
            part = parts.pop()
            if isinstance(part, dict):
                for key, value in part.items():
                    if key == "@context":
                        self.add_context(value, given)
                        continue
                    self.values += 1
                    self.names += 1
                    used.append(key)
                    parts.append(value)
            elif isinstance(part, list):
                self.values += len(part)
                parts += part
            elif isinstance(part, str):
                self.names += 1
                used.append(part)
        for scoped in (self._scoped, self._active._scoped if self._active else ()):
            if scoped:
                self.contexts += sum(map(scoped.__contains__, used))

    def add_context(self, context: Any, given: Mapping[str, Any]) -> None:
        """Counts a context, with those that it loads and those of its terms."""
        contexts = [context]
        while contexts:
            context = contexts.pop()
            if isinstance(context, list):
                contexts += context
            elif isinstance(context, str):
                counted = context in self._loaded or (
                    self._active is not None and context in self._active._loaded
                )
                if context in given and not counted:
                    self._loaded.add(context)
                    contexts.append(given[context].get("@context"))
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
        return self._active._lengths.get(name)

    def check(self, number: int, most: float) -> None:
        """Checks that the document is not too large.

        Args:
            number: the number of the message, from 1.
            most: the maximal number of characters of the message; names, values and copies count for some.

        Raises:
            LimitExceeded: the message is too large, or contexts create too many copies of terms.
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
