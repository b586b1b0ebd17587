"""Turtle and TriG for a template: the text of a message is laid out once, and each solution fills its places.

A layout is what the plain encoder writes for a message of marks, one for each slot that is no constant. It holds for
the solutions that drop the same triples of the template, and in which two terms are equal only where their slots are;
any other solution is written by the plain encoder, and so the bytes are the same (tests/test_fast_path.py). SPARQL's
rules are read from `template.FORBIDDEN`; nothing here knows how Turtle is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, repeat
from operator import eq
from typing import Final, TypeAlias

from construct_messages.labels import Labels
from construct_messages.message import Message, Quad
from construct_messages.solutions import Solutions
from construct_messages.template import (
    FORBIDDEN,
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
)
from construct_messages.terms import Term

_MOST_PATTERNS: Final = 100
_MOST_LAYOUTS: Final = 256

_MARK: Final = re.compile("\0([^\0]*)\0")

Texts: TypeAlias = Mapping[Term, str]
_Columns: TypeAlias = Sequence[Sequence[Term]]


def is_laid_out(template: Template) -> bool:
    """Whether the template is one that layouts are for; one with triple terms that hold variables is not.

    >>> is_laid_out(Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Variable(0)),)))
    True
    """
    live = template.live
    # each slot is compared with each: of very many, message by message is quicker
    return len(live) <= _MOST_PATTERNS and not any(isinstance(slot, Nested) for pattern in live for slot in pattern)


class TurtleTemplate:
    """The texts of messages, without delimiters.

    Args:
        write: the plain encoder's text of a message.
        texts: what it writes for terms.
        verbs: what it writes for predicates.
        template: what instantiates solutions; see `is_laid_out`.
    """

    def __init__(self, write: Callable[[Message], str], texts: Texts, verbs: Texts, template: Template) -> None:
        self._write, self._texts, self._verbs, self._template = write, texts, verbs, template
        self._patterns = template.live
        self._layouts: dict[int, _Layout] = {}
        # for each variable: how its terms may begin, and the patterns that such a term drops, a bit each
        self._drops: dict[int, dict[str, int]] = {}
        for bit, pattern in enumerate(self._patterns):
            for slot, starts in zip(pattern, FORBIDDEN.values(), strict=True):
                if isinstance(slot, Variable):
                    drops = self._drops.setdefault(slot.index, {})
                    for start in ("", *starts):
                        drops[start] = drops.get(start, 0) | 1 << bit

    def messages(self, solutions: Solutions, first: int) -> list[str]:
        """The texts of the messages of a batch, one a solution; see `TemplateEncoder.encode`."""
        columns = solutions.text
        texts = [""] * len(solutions)
        for dropped, places in self._alike(columns, len(solutions)):
            layout = self._layout(dropped)
            chosen = columns if len(places) == len(solutions) else [[c[place] for place in places] for c in columns]
            numbers = [first + place for place in places]
            for place, text in zip(places, layout.fill(chosen, numbers, self._texts, self._verbs), strict=True):
                texts[place] = text
            for index in layout.exceptions(chosen):
                place = places[index]
                solution = [column[place] for column in columns]
                texts[place] = self._write(Message(self._template.instantiate(solution, first + place)))
        return texts

    def _alike(self, columns: _Columns, size: int) -> Iterable[tuple[int, Sequence[int]]]:
        """The places of the solutions that drop the same patterns, by the patterns dropped."""
        dropped: list[int] | None = None
        for index, drops in self._drops.items():
            column = columns[index]
            # no term holds a line break: so one search tells whether any begins in some way
            joined = "\n" + "\n".join(column)
            if "" not in column and not any(start and f"\n{start}" in joined for start in drops):
                continue
            dropped = dropped or [0] * size
            for place, term in enumerate(column):
                for start, bits in drops.items():
                    if term.startswith(start) if start else not term:
                        dropped[place] |= bits
        if dropped is None:
            return [(0, range(size))]
        places: dict[int, list[int]] = {}
        for place, bits in enumerate(dropped):
            places.setdefault(bits, []).append(place)
        return places.items()

    def _layout(self, dropped: int) -> _Layout:
        if dropped not in self._layouts:
            if len(self._layouts) == _MOST_LAYOUTS:
                self._layouts.clear()
            kept = [pattern for bit, pattern in enumerate(self._patterns) if not dropped >> bit & 1]
            self._layouts[dropped] = _Layout(kept, self._write, self._template.labels)
        return self._layouts[dropped]


class _Layout:
    """Where in the text of a message which slot stands.

    Args:
        patterns: all of them are written.
        write: the plain encoder's text of a message.
        labels: those of the template.
    """

    def __init__(self, patterns: Sequence[Pattern], write: Callable[[Message], str], labels: Labels) -> None:
        self._labels = labels
        marks: dict[str, tuple[Slot, bool]] = {}

        def mark(slot: Slot, verb: bool = False) -> Term:
            if isinstance(slot, Constant):
                return slot.term
            name = f"{'verb ' if verb else ''}{slot}"
            marks[name] = slot, verb
            return Term(f"\0{name}\0")

        text = write(
            Message(
                Quad(mark(subject), mark(predicate, True), mark(object), None if graph is None else mark(graph))
                for subject, predicate, object, graph in patterns
            )
        )
        self._form = _MARK.sub("%s", text.replace("%", "%%"))
        self._slots = [marks[name] for name in _MARK.findall(text)]
        self._distinct = [pair for slots in _siblings(patterns) for pair in combinations(slots, 2) if _may_equal(*pair)]

    def fill(self, columns: _Columns, numbers: Sequence[int], texts: Texts, verbs: Texts) -> Iterable[str]:
        """The text of each solution."""
        filled: list[Iterable[str]] = []
        for slot, verb in self._slots:
            if isinstance(slot, Variable):
                filled.append(map((verbs if verb else texts).__getitem__, columns[slot.index]))
            else:
                assert isinstance(slot, Blank)
                form = self._labels.of_template("%d", slot.index)
                filled.append([form % number for number in numbers])
        if not filled:
            return repeat(self._form % (), len(numbers))
        return map(self._form.__mod__, zip(*filled, strict=True))

    def exceptions(self, columns: _Columns) -> set[int]:
        """The places of the solutions in which terms are equal that are to be written apart."""
        found: set[int] = set()
        for a, b in self._distinct:
            equal = list(map(eq, _terms(a, columns), _terms(b, columns)))
            if True in equal:
                found.update(place for place, is_equal in enumerate(equal) if is_equal)
        return found


def _siblings(patterns: Iterable[Pattern]) -> Iterator[Iterable[Slot]]:
    """The slots that are written side by side, and so would be one if their terms were equal."""
    groups: dict[tuple[object, ...], dict[Slot, None]] = {}
    for subject, predicate, object, graph in patterns:
        if graph is not None:
            groups.setdefault((), {})[graph] = None
        groups.setdefault((graph,), {})[subject] = None
        groups.setdefault((graph, subject), {})[predicate] = None
        groups.setdefault((graph, subject, predicate), {})[object] = None
    yield from groups.values()


def _may_equal(a: Slot, b: Slot) -> bool:
    kinds = {type(a), type(b)}
    return Variable in kinds and Blank not in kinds  # data and template have different labels


def _terms(slot: Slot, columns: _Columns) -> Iterable[Term]:
    if isinstance(slot, Variable):
        return columns[slot.index]
    assert isinstance(slot, Constant)
    return repeat(slot.term)
