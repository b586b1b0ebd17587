"""Checks that a format and a version of RDF can express a message, before it is written.

N-Triples, Turtle and RDF/XML have no named graphs; triple terms and base directions came with RDF 1.2. Encoders reject
unsupported features instead of dropping them; decoders reject features that the declared version does not have. No
syntax here.
"""

from __future__ import annotations

from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Constant, Nested, Slot, Template
from construct_messages.rdf.terms import Term


def missing_feature(syntax: Syntax, term: Term) -> str | None:
    """Names the feature of a term that a syntax's version of RDF does not support; None: all are supported.

    >>> from construct_messages.rdf.formats.lookup import find_syntax
    >>> missing_feature(find_syntax("1.1-messages"), Term('"x"@ar--rtl'))
    'base directions'
    """
    if not syntax.triple_terms and term.startswith("<<("):
        return "triple terms"
    # outside of triple terms, only a language tag ends a literal like this
    if not syntax.directions and term.startswith('"') and term.endswith(("--ltr", "--rtl")):
        return "base directions"
    return None


class CapabilityCheck:
    """Checks the messages of one log in order, and counts them for errors."""

    def __init__(self, format: Format, syntax: Syntax) -> None:
        self._format, self._syntax = format, syntax
        self._has_all = format.graphs and syntax.triple_terms and syntax.directions
        self._messages = 0

    def count(self, messages: int) -> None:
        """Counts messages that need no `check`, by `support_template` and `support_columns`."""
        self._messages += messages

    def refused(self, error: UnsupportedByFormat) -> UnsupportedByFormat:
        """Adds the number of the last counted message to an error."""
        return UnsupportedByFormat(f"message {self._messages}: {error.message}", hint=error.hint)

    def check(self, message: Message) -> None:
        """Counts a message, and checks that its quads can be written."""
        self._messages += 1
        if self._has_all:
            return
        for quad in message:
            if quad.graph is not None and not self._format.graphs:
                raise UnsupportedByFormat(
                    f"message {self._messages}: {self._format.name} has no named graphs: {quad}",
                    hint="write N-Quads or TriG",
                )
            for term in quad:
                # most terms are IRIs, for which a call takes longer than the rest
                if term is None or not term.startswith(("<<(", '"')):
                    continue
                if feature := missing_feature(self._syntax, term):
                    name = self._syntax.version or self._format.name
                    raise UnsupportedByFormat(
                        f"message {self._messages}: {name} has no {feature}: {quad}",
                        hint="write N-Quads or TriG with messages=1.2-messages or messages=rdfm",
                    )

    def support_template(self, template: Template) -> bool:
        """Returns whether the constants of a template can be written, for any values of its variables."""
        return all(
            (pattern.graph is None or self._format.graphs)
            and not any(self._lacks(slot) for slot in pattern if slot is not None)
            for pattern in template.live
        )

    def _lacks(self, slot: Slot) -> bool:
        if isinstance(slot, Nested):
            return not self._syntax.triple_terms or any(map(self._lacks, slot))
        return isinstance(slot, Constant) and missing_feature(self._syntax, slot.term) is not None

    def support_columns(self, solutions: Solutions) -> bool:
        """Returns whether all terms of a batch can be written. False may be wrong: a literal may look like a triple
        term.
        """
        if self._syntax.triple_terms and self._syntax.directions:
            return True
        joined = b"\n".join(b"\n".join(column) for column in solutions.utf8)
        return b"<<(" not in joined and b"--ltr" not in joined and b"--rtl" not in joined
