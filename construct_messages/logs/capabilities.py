"""What a format and a version cannot carry, checked before a byte is written: nothing is dropped in silence.

A named graph has no place in N-Triples and Turtle; a triple term and a base direction have none below RDF 1.2.
Every encoder asks here, and decoders what a version allows; no syntax is written here.
"""

from __future__ import annotations

from construct_messages.errors import UnsupportedByFormat
from construct_messages.formats import Format, Syntax
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Constant, Nested, Slot, Template
from construct_messages.terms import Term


def lacks(syntax: Syntax, term: Term) -> str | None:
    """What it is in a term that a version of RDF has not; None where it has all.

    >>> from construct_messages.formats import find_syntax
    >>> lacks(find_syntax("1.1-messages"), Term('"x"@ar--rtl'))
    'base directions'
    """
    if not syntax.triple_terms and term.startswith("<<("):
        return "triple terms"
    # outside a triple term only a language tag can end a literal so
    if not syntax.directions and term.startswith('"') and term.endswith(("--ltr", "--rtl")):
        return "base directions"
    return None


class Carrier:
    """Checks the messages of one log, in order, and counts them for the error.

    Args:
        format: the log's format.
        syntax: the log's syntax.
    """

    def __init__(self, format: Format, syntax: Syntax) -> None:
        self._format, self._syntax = format, syntax
        self._carries_all = format.graphs and syntax.triple_terms and syntax.directions
        self._messages = 0

    def count(self, messages: int) -> None:
        """Counts messages that were checked by `carries_template` and `carries_columns`."""
        self._messages += messages

    def refused(self, error: UnsupportedByFormat) -> UnsupportedByFormat:
        """An error of the message that was counted last, with its number."""
        return UnsupportedByFormat(f"message {self._messages}: {error.message}", hint=error.hint)

    def check(self, message: Message) -> None:
        """Counts one message, and refuses it where a quad cannot be written.

        Raises:
            UnsupportedByFormat: naming the message (from 1), the quad and a format that can.
        """
        self._messages += 1
        if self._carries_all:
            return
        for quad in message:
            if quad.graph is not None and not self._format.graphs:
                raise UnsupportedByFormat(
                    f"message {self._messages}: {self._format.name} has no named graphs: {quad}",
                    hint="write N-Quads or TriG",
                )
            for term in quad:
                # most terms are IRIs, for which asking takes longer than the rest
                if term is not None and term.startswith(("<<(", '"')) and (lack := lacks(self._syntax, term)):
                    raise UnsupportedByFormat(
                        f"message {self._messages}: {self._syntax.version or self._format.name} has no {lack}: {quad}",
                        hint="write N-Quads or TriG with messages=1.2-messages or messages=rdfm",
                    )

    def carries_template(self, template: Template) -> bool:
        """Whether whatever the template itself puts into a message can be written; its variables aside."""
        return all(
            (pattern.graph is None or self._format.graphs)
            and not any(self._slot_lacks(slot) for slot in pattern if slot is not None)
            for pattern in template.live
        )

    def _slot_lacks(self, slot: Slot) -> bool:
        if isinstance(slot, Nested):
            return not self._syntax.triple_terms or any(map(self._slot_lacks, slot))
        return isinstance(slot, Constant) and lacks(self._syntax, slot.term) is not None

    def carries_columns(self, solutions: Solutions) -> bool:
        """Whether a batch surely holds nothing that cannot be written (a look-alike in a literal counts as no)."""
        if self._syntax.triple_terms and self._syntax.directions:
            return True
        joined = b"\n".join(b"\n".join(column) for column in solutions.utf8)
        return b"<<(" not in joined and b"--ltr" not in joined and b"--rtl" not in joined
