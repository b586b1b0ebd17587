"""Validates messages that a caller passes to be written: each must be RDF before any of its bytes are written.

Each term is canonical N-Triples, of well-formed IRIs and language tags, and is in a position that RDF allows (RDF 1.2
Concepts, section 3.1). Messages that this package has read or made are so, and are not looked at again.
`logs/checking.py` has the other restrictions of formats.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from construct_messages.errors import TermError, UnsupportedByFormat, UsageError
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Constant, Nested, Slot, Template
from construct_messages.rdf.terms import FORBIDDEN, Lenience, Term, parse_term
from construct_messages.rdf.terms.grammar import (
    CANONICAL_BLANK,
    CANONICAL_IRI,
    CANONICAL_LITERAL,
    compiled,
)

# --- capabilities ---------------------------------------------------------------------------------
# Checks that a format and a version of RDF can express a message, before it is written.
#
# N-Triples, Turtle and RDF/XML have no named graphs; triple terms and base directions came with RDF 1.2. Encoders
# reject unsupported features instead of dropping them; decoders reject features that the declared version does not
# have. No syntax here.


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


# --- checking -------------------------------------------------------------------------------------

# nearly all terms, except for example blank nodes in triple terms: other terms are parsed
_USUAL: Final = f"{CANONICAL_IRI}|{CANONICAL_LITERAL}|{CANONICAL_BLANK}"
# terms to remember, and the length of those worth it
_MOST: Final = 1 << 15
_LONGEST: Final = 256

_POSITIONS: Final = tuple(FORBIDDEN.items())


class Checker:
    """Looks at the messages of one log, in order, and counts them for the error. `lenience`: passes and counts
    malformed IRIs and language tags; None: they are errors. `generalized`: whether terms may be in positions that RDF
    does not allow, as in Jelly.

    >>> Checker().check(Message([Quad(Term("<urn:a>"), Term("<urn:b>"), Term("urn:c"))]))
    Traceback (most recent call last):
    construct_messages.errors.TermError: message 1: 'urn:c' is not an RDF term: <urn:a> <urn:b> urn:c .
      hint: write an IRI as <http://…>, a string as "…", a number as 42
    """

    def __init__(self, lenience: Lenience | None = None, *, generalized: bool = False) -> None:
        self._lenience, self._generalized = lenience, generalized
        self._messages = 0

    # made when a message is looked at: most that a server takes were checked by a decoder

    @cached_property
    def _usual(self) -> re.Pattern[str]:
        return compiled(_USUAL, False)

    @cached_property
    def _known(self) -> tuple[set[Term | None], ...]:
        """By position; of a quad without a graph, None is known."""
        return set(), set(), set(), {None}

    def check(self, message: Message) -> None:
        """Counts one message, and refuses it where it is none."""
        self._messages += 1
        if not isinstance(message, Message):
            raise UsageError(
                f"message {self._messages} is a {type(message).__name__}",
                hint="make it by Message([Quad(…), …])",
            )
        if message.checked:
            return
        subjects, predicates, objects, graphs = self._known
        is_usual = self._usual.fullmatch
        for quad in message:
            subject, predicate, object, graph = quad
            if subject not in subjects:
                self._learn(0, quad)
            if predicate not in predicates:
                self._learn(1, quad)
            # an object is the term that is seldom met again
            if object not in objects and not (isinstance(object, str) and is_usual(object)):
                self._learn(2, quad)
            if graph not in graphs:
                self._learn(3, quad)
        message.checked = self._lenience is None and not self._generalized

    def _learn(self, place: int, quad: Quad) -> None:
        """Checks one term of a quad, by its place in it, and remembers it."""
        term, (position, starts) = quad[place], _POSITIONS[place]
        try:
            self._check_term(term, position, starts)
        except TermError as error:
            shown = " ".join(str(part) for part in quad if part is not None)
            raise TermError(
                f"message {self._messages}: {error.message}: {shown} .", hint=error.hint or _HINT
            ) from None
        assert term is not None
        if len(term) <= _LONGEST:
            known = self._known[place]
            if len(known) >= _MOST:
                known.intersection_update({None})
            known.add(term)

    def _check_term(self, term: Term | None, position: str, starts: tuple[str, ...]) -> None:
        if not isinstance(term, str):
            raise TermError(f"the {position} is {term!r}, no term", hint=_HINT)
        if not self._usual.fullmatch(term):
            canonical = parse_term(term, lenience=self._lenience, generalized=self._generalized)
            if canonical != term:
                raise TermError(
                    f"the {position} {term} is not canonical", hint=f"write it as {canonical}"
                )
        if not self._generalized and term.startswith(starts):
            raise TermError(f"{term} cannot be the {position}", hint=_PLACES)


_HINT: Final = "make terms by iri(), literal(), blank() and triple(), or by parse_term()"
_PLACES: Final = "subjects and graphs are IRIs or blank nodes, predicates are IRIs"
