"""The options of JSON documents: the frame, and the arrangement of documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from construct_messages.errors import UsageError
from construct_messages.logs import FormatOptions


@dataclass(frozen=True)
class JsonOptions(FormatOptions):
    """The options of JSON documents.

    Args:
        frame: a JSON-LD frame as parsed JSON; one that consists of `@context` names the keys of the default documents.
            None: the default documents.
        context: a JSON-LD context as parsed JSON, or its IRI, for a frame without `@context` or for the default
            documents.
        contexts: contexts by their IRI, as parsed JSON; nothing is fetched.
        native: whether numbers and booleans are JSON's; otherwise they are written like other literals.
        array: whether the documents are one JSON array, instead of lines.

    Raises:
        UsageError: a frame that is not a JSON object, or two contexts.

    >>> JsonOptions(frame={"@type": "http://schema.org/City"}).in_words()
    'a frame'
    >>> JsonOptions.of({"array": "true"}).array
    True
    """

    _SHOWN = "JSON documents"

    frame: Mapping[str, Any] | None = None
    context: Any = None
    contexts: Mapping[str, Any] = field(default_factory=dict)
    native: bool = True
    array: bool = False

    def __post_init__(self) -> None:
        frame: object = self.frame
        if frame is not None and not isinstance(frame, Mapping):
            raise UsageError(
                f"the frame is no JSON object: {str(frame)[:80]!r}",
                hint='write one such as {"@context": …, "@type": "City"}',
            )
        if self.context is not None and "@context" in (self.frame or {}):
            raise UsageError(
                "the frame has a context, and another one is given", hint="give one of them"
            )

    def in_words(self) -> str:
        """Returns a line that describes the options to people."""
        words = {
            "a frame": self.frame is not None,
            "a context": self.context is not None,
            "numbers as strings": not self.native,
            "an array": self.array,
        }
        return ", ".join(word for word, is_so in words.items() if is_so)
