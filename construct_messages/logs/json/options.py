"""The options of JSON documents: the frame, and the arrangement of documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from construct_messages.rdf.errors import UsageError


@dataclass(frozen=True)
class JsonOptions:
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
    """

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

    @property
    def names_graphs(self) -> bool:
        """Whether messages may have named graphs: their triples are in the documents."""
        return True

    @property
    def is_generalized(self) -> bool:
        """Whether terms may be in positions that RDF does not allow: never."""
        return False

    @property
    def is_flat(self) -> bool:
        """Whether a blank node label is one node in all documents: never."""
        return False

    def for_writing(
        self,
        source: JsonOptions | None = None,  # noqa: ARG002 - what other formats decide by
        *,
        graphs: bool = True,  # noqa: ARG002
        triple_terms: bool = False,  # noqa: ARG002
        generalized: bool = True,  # noqa: ARG002
    ) -> JsonOptions:
        """Returns the options themselves; see `FormatOptions.for_writing`."""
        return self

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> JsonOptions:
        """Creates options from names and values.

        Raises:
            UsageError: an unknown option or an invalid value.

        >>> JsonOptions.of({"array": "true"}).array
        True
        """
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise UsageError(
                    f"unknown option {name!r} of JSON documents",
                    hint=f"choose among {', '.join(known)}",
                )
        flags: dict[Any, bool] = {"true": True, "false": False}
        read: dict[str, Any] = {
            name: flags.get(value, value) if isinstance(value, str) else value
            for name, value in values.items()
        }
        return cls(**read)

    def as_dict(self) -> dict[str, Any]:
        """Returns the options by name, for JSON."""
        return asdict(self)

    def in_words(self) -> str:
        """Returns a line that describes the options to people."""
        words = {
            "a frame": self.frame is not None,
            "a context": self.context is not None,
            "numbers as strings": not self.native,
            "an array": self.array,
        }
        return ", ".join(word for word, is_so in words.items() if is_so)
