"""The base of the text encoders: Turtle, TriG, NDJSON-LD, YAML-LD and RDF/XML.

Each of them defines the text of a message and of its terms. This module rejects features that the format does not have,
adds the number of the message to errors, and writes batches of a template's solutions by `text_encoder.py`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, repeat
from operator import eq
from typing import Any, ClassVar, Final, TypeAlias

from construct_messages.errors import UnsupportedByFormat
from construct_messages.logs import EncodedBatch, TemplateEncoder
from construct_messages.logs.checking import CapabilityCheck
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, of_distinct
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import (
    FORBIDDEN,
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
)
from construct_messages.rdf.terms import RDF, Term

# --- layout ---------------------------------------------------------------------------------------
# Layouts: the text of a template's message with places for the terms of each solution.
#
# The plain encoder of a format lays out a message once for all solutions with messages of the same shape. For each
# solution, only the terms are filled in. No syntax and no rules of SPARQL here: `Template.instantiate` applies those
# to marks in place of terms.
#
# A shape determines the positions of terms: unbound ones, those of a kind that is not allowed in their position,
# equal ones, and conditions of the format (see `Layouts`). Templates with triple terms that contain variables have no
# layouts. tests/test_fast_path.py compares the result with the plain encoder.

# Encoded batches: messages as the bytes of a log, together or one by one.
#
# A file or an HTTP response uses a batch as one block; a transport that frames messages itself, and a limit on their
# size, use them one by one. The block is their concatenation. A template encoder returns the class that creates the
# block fastest. No syntax here.


class EncodedMessages:
    """A batch of messages that were encoded one by one.

    >>> batch = EncodedMessages([b"<urn:a> <urn:p> 1 .\\n", b""])
    >>> bytes(batch), [len(message) for message in batch]
    (b'<urn:a> <urn:p> 1 .\\n', [20, 0])
    """

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = messages

    def __bytes__(self) -> bytes:
        return b"".join(self._messages)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._messages)


class EncodedTexts:
    """A batch of messages as text, which is encoded in UTF-8 on demand.

    >>> batch = EncodedTexts(["{}\\n", '{"@id": "urn:é"}\\n'])
    >>> len(bytes(batch)), [len(message) for message in batch]
    (21, [3, 18])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __bytes__(self) -> bytes:
        return "".join(self._texts).encode()

    def __iter__(self) -> Iterator[bytes]:
        return map(str.encode, self._texts)


# --- layout ---------------------------------------------------------------------------------------

_MOST_PATTERNS: Final = 100
_MOST_LAYOUTS: Final = 256
# the number of cached texts, and the maximal length of their terms
_MOST_TEXTS: Final = 1 << 15
_LONGEST: Final = 256

# Marks are between NUL characters, which texts do not contain otherwise: the formats escape or forbid them
_MARK: Final = re.compile("\0([0-9]+)\0")
NIL: Final = Term(f"<{RDF}nil>")
_NUMBER: Final = 7_301_842_965_501_893_274
"""A placeholder for the number of a solution in the labels of the template's blank nodes, found again in their
texts.
"""

Shape: TypeAlias = tuple[Any, ...]
"""The conditions that decide the positions of terms in a message, as bits, and then terms that decide them."""
Columns: TypeAlias = Sequence[Sequence[Term]]
WriteTerm: TypeAlias = Callable[[Term], str]


class NoLayout(Exception):
    """Raised for a term whose message has no layout; encoders catch it."""


class Texts(dict[Term, str]):
    """The texts of terms in one kind of place, cached for recent terms. `write`: returns the text of a term; it may
    raise `UnsupportedByFormat` or `NoLayout`.

    >>> names = Texts(lambda term: term[1:-1])
    >>> names[Term("<urn:a>")], len(names)
    ('urn:a', 1)
    """

    def __init__(self, write: WriteTerm) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, term: Term) -> str:
        text = self._write(term)
        if len(term) <= _LONGEST:
            if len(self) >= _MOST_TEXTS:
                self.clear()
            self[term] = text
        return text


TextsByKind: TypeAlias = Mapping[Any, Texts]
"""The texts for each kind of position of terms: for example subjects and predicates, or indentation."""
Place: TypeAlias = Callable[[Hashable], WriteTerm]
"""Returns the writer of terms in a kind of place."""
Write: TypeAlias = Callable[[Message, Place], str]
"""Writes a message. It may inspect terms as far as the arguments of `Layouts` allow, and only writes them by
`Place`.
"""


def plain(texts: TextsByKind) -> Place:
    """Returns the writer of the terms themselves, for an encoder that writes a message without a layout."""
    return lambda kind: texts[kind].__getitem__


def is_laid_out(template: Template) -> bool:
    """Returns whether a template has layouts; not if it has triple terms with variables, or is very large.

    >>> is_laid_out(Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Variable(0)),)))
    True
    """
    live = template.live
    # patterns are compared with each other: for very many, encoding each message separately is faster
    return len(live) <= _MOST_PATTERNS and not any(
        isinstance(slot, Nested) for pattern in live for slot in pattern
    )


class Layouts:
    """Writes the messages of a template's solutions.

    >>> def write(message, place):
    ...     return "".join(f"{place(None)(subject)} {place(None)(object)};" for subject, _, object, _ in message)
    >>> x, y, p = Variable(0), Variable(1), Constant(Term("<urn:p>"))
    >>> template = Template(("x", "y"), (Pattern(x, p, y), Pattern(y, p, x)))
    >>> layouts = Layouts(template, write, {None: Texts(str)})
    >>> layouts.texts(Solutions.of([("<urn:a>", "<urn:b>"), ("<urn:a>", '"b"'), ("<urn:a>", "<urn:a>")]), 0)
    ['<urn:a> <urn:b>;<urn:b> <urn:a>;', '<urn:a> "b";', '<urn:a> <urn:a>;']
    """

    def __init__(
        self,
        template: Template,
        write: Write,
        texts: TextsByKind,
        *,
        # whether the layout depends on which objects are literals
        literals: bool = False,
        # the predicates that the format writes differently; None: each may be written differently
        predicates: Collection[Term] | None = (),
        # whether the layout depends on other occurrences of a node, and on languages and datatypes of literals
        nodes: bool = False,
        # the predicates on whose objects the layout depends
        deciding: Collection[Term] = (),
    ) -> None:
        self._template, self._write, self._texts = template, write, texts
        self._layouts: dict[Shape, _Layout | None] = {}
        patterns = template.live
        starts = dict(FORBIDDEN, object=(*FORBIDDEN["object"], '"')) if literals else FORBIDDEN
        if nodes:
            blanks = {place: (*starts[place], "_:") for place in ("subject", "object")}
            starts = {**starts, **blanks}
        # Each of these is a bit of the shape: how the terms of a variable begin, unbound ones included …
        bits = (1 << bit for bit in range(1 << 30))
        self._starts: dict[int, dict[str, int]] = {}
        for pattern in patterns:
            for slot, forbidden in zip(pattern, starts.values(), strict=True):
                if isinstance(slot, Variable):
                    found = self._starts.setdefault(slot.index, {})
                    for start in ("", *forbidden):
                        if start not in found:
                            found[start] = next(bits)
        # … and whether they equal those of another variable or a constant.
        pairs = [pair for a, b in combinations(patterns, 2) for pair in _compared(a, b)]
        variables = {
            pattern.predicate for pattern in patterns if isinstance(pattern.predicate, Variable)
        }
        pairs += [(variable, Constant(term)) for variable in variables for term in predicates or ()]
        if nodes:
            pairs += _pairs_of_nodes(patterns)
        self._pairs = {pair: next(bits) for pair in dict.fromkeys(pairs)}
        # variables whose terms are part of the shape
        whole = variables if predicates is None else set()
        decide = {Constant(term) for term in deciding}
        if decide:
            whole = whole | {
                pattern.object
                for pattern in patterns
                if isinstance(pattern.object, Variable)
                and (isinstance(pattern.predicate, Variable) or pattern.predicate in decide)
            }
        self._whole = sorted(slot.index for slot in whole)
        # and variables of which the text after a literal's lexical form is part of it
        objects = {pattern.object for pattern in patterns if isinstance(pattern.object, Variable)}
        self._suffixed = sorted(slot.index for slot in objects - whole) if nodes else []
        self._blanks: set[Blank] = {
            slot for pattern in patterns for slot in pattern if isinstance(slot, Blank)
        }

    def texts(self, solutions: Solutions, first: int) -> list[str]:
        """Writes the messages of a batch, one per solution. `first`: the number of the first solution in the stream,
        for fresh blank nodes.
        """
        columns, size = solutions.text, len(solutions)
        written = [""] * size
        for shape, places in self._shapes(columns, size):
            sample = [column[places[0]] for column in columns]
            if (layout := self._layout(shape, sample, len(places))) is None:
                message = Message(self._template.instantiate(sample, first + places[0]))
                written[places[0]] = self._write(message, plain(self._texts))
            elif len(places) == size:
                return list(layout.fill(columns, range(first, first + size)))
            else:
                chosen = {
                    index: [columns[index][place] for place in places] for index in layout.variables
                }
                for place, text in zip(
                    places, layout.fill(chosen, [first + place for place in places]), strict=True
                ):
                    written[place] = text
        return written

    def _shapes(self, columns: Columns, size: int) -> Iterable[tuple[Shape, Sequence[int]]]:
        """Returns the shapes of the messages, each with the places of its solutions."""
        all_bits, bits = 0, list[int]()
        for bit, places in self._differences(columns, size):
            if len(places) == size:
                all_bits |= bit
                continue
            bits = bits or [0] * size
            for place in places:
                bits[place] |= bit
        suffixes = [list(map(_suffix, columns[index])) for index in self._suffixed]
        if not bits and not self._whole and all(len(set(each)) == 1 for each in suffixes):
            return [((all_bits, *(each[0] for each in suffixes)), range(size))] if size else []
        shapes: dict[Shape, list[int]] = {}
        whole = (columns[index] for index in self._whole)
        keys = zip(bits or repeat(0, size), *whole, *suffixes, strict=True)
        for place, (some_bits, *terms) in enumerate(keys):
            shapes.setdefault((all_bits | some_bits, *terms), []).append(place)
        return shapes.items()

    def _differences(self, columns: Columns, size: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Returns the bits that are set anywhere, each with its places."""
        for index, starts in self._starts.items():
            column = columns[index]
            # terms do not contain line breaks, so one search counts those with some beginning
            joined = "\n" + "\n".join(column) if len(starts) > 1 else ""
            for start, bit in starts.items():
                count = joined.count(f"\n{start}") if start else column.count(Term(""))
                if count == size:
                    yield bit, range(size)
                elif count:
                    yield bit, [place for place, term in enumerate(column) if _begins(term, start)]
        for (variable, slot), bit in self._pairs.items():
            column = columns[variable.index]
            if isinstance(slot, Constant):
                if slot.term in column:
                    yield bit, [place for place, term in enumerate(column) if term == slot.term]
            elif any(map(eq, column, other := columns[slot.index])):
                yield (
                    bit,
                    [
                        place
                        for place, (a, b) in enumerate(zip(column, other, strict=True))
                        if a == b
                    ],
                )

    def _layout(self, shape: Shape, sample: Sequence[Term], count: int) -> _Layout | None:
        """Returns the layout of a shape; None if it is not worthwhile yet: for the first message, if it is a single
        one.
        """
        layout = self._layouts.get(shape)
        if layout is None:
            if shape not in self._layouts and len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            if count > 1 or shape in self._layouts:
                layout = self._lay_out(shape, sample)
            self._layouts[shape] = layout
        return layout

    def _lay_out(self, shape: Shape, sample: Sequence[Term]) -> _Layout:
        """Writes a message of marks, one for each term that the shape does not determine."""
        terms, slots = list(sample), dict[Term, Variable | Blank]()
        for index in self._starts.keys() - set(self._whole):
            if term := sample[index]:
                # begins like the term, so that the rules for terms of its kind apply
                mark = Term(f"{next(filter(term.startswith, _KINDS))}\0{index}")
                if (
                    self._suffixed
                ):  # the mark of another variable may take the place of an equal object
                    mark = Term(mark + _suffix(term))
                terms[index] = mark
                slots[mark] = Variable(index)
        for (variable, slot), bit in self._pairs.items():
            if shape[0] & bit:
                one, other = (
                    terms[variable.index],
                    slot.term if isinstance(slot, Constant) else terms[slot.index],
                )
                if one in slots:
                    one, other = other, one
                terms = [one if term == other else term for term in terms]
        labels = self._template.labels
        slots |= {labels.of_template(_NUMBER, blank.index): blank for blank in self._blanks}
        fields: list[tuple[Texts, Variable | Blank]] = []

        def place(kind: Hashable) -> WriteTerm:
            texts = self._texts[kind]

            def write(term: Term) -> str:
                if (slot := slots.get(term)) is None:
                    return texts[term]
                fields.append((texts, slot))
                return f"\0{len(fields) - 1}\0"

            return write

        text = self._write(Message(self._template.instantiate(terms, _NUMBER)), place)
        return _Layout(text, fields, labels)


_KINDS: Final = ("<<(", "<", '"', "_:")


class _Layout:
    """The text of a message, and the sources of its places."""

    def __init__(
        self, text: str, fields: Sequence[tuple[Texts, Variable | Blank]], labels: Labels
    ) -> None:
        self._columns: list[tuple[Texts, int] | None] = []  # None: the numbers of the solutions

        def field(mark: re.Match[str]) -> str:
            texts, slot = fields[int(mark[1])]
            if isinstance(slot, Variable):
                self._columns.append((texts, slot.index))
                return "%s"
            self._columns.append(None)
            before, _, after = texts[labels.of_template(_NUMBER, slot.index)].rpartition(
                str(_NUMBER)
            )
            return f"{before}%d{after}"

        self._form = _MARK.sub(field, text.replace("%", "%%"))
        # the variables whose terms it contains
        self.variables = {column[1] for column in self._columns if column}

    def fill(
        self, columns: Columns | Mapping[int, Sequence[Term]], numbers: Sequence[int]
    ) -> Iterable[str]:
        """Returns the texts of the messages of solutions."""
        if not self._columns:
            return repeat(self._form % (), len(numbers))
        filled = [
            map(column[0].__getitem__, columns[column[1]]) if column else numbers
            for column in self._columns
        ]
        return map(self._form.__mod__, zip(*filled, strict=True))


def _begins(term: Term, start: str) -> bool:
    return term.startswith(start) if start else not term


def _suffix(term: Term) -> str:
    """Returns the text after a literal's lexical form: its quote, datatype and language."""
    return term[term.rindex('"') :] if term[:1] == '"' else ""


def _pairs_of_nodes(
    patterns: Sequence[Pattern],
) -> Iterator[tuple[Variable, Variable | Constant]]:
    """Returns the slots that may be the same node."""
    slots = dict.fromkeys(
        slot for pattern in patterns for slot in (pattern.subject, pattern.object)
    )
    variables = [slot for slot in slots if isinstance(slot, Variable)]
    yield from combinations(variables, 2)
    for slot in slots:
        if isinstance(slot, Constant) and not slot.term.startswith('"'):
            yield from ((variable, slot) for variable in variables)
    yield from ((variable, Constant(NIL)) for variable in variables)


def _compared(a: Pattern, b: Pattern) -> Iterator[tuple[Variable, Variable | Constant]]:
    """Returns the slots of two patterns that are written next to each other if they differ, and once if they are
    equal.
    """
    one: Slot | None
    other: Slot | None
    for one, other in (
        (a.graph, b.graph),
        (a.subject, b.subject),
        (a.predicate, b.predicate),
        (a.object, b.object),
    ):
        if one == other:
            continue
        if isinstance(other, Variable) and isinstance(one, Constant):
            one, other = other, one
        # data and template have different labels
        if not isinstance(one, Variable) or not isinstance(other, Variable | Constant):
            return
        yield one, other


# --- plain encoder --------------------------------------------------------------------------------
# Encodes solutions by their messages. Specialised template encoders produce the same bytes (tests/test_fast_path.py and
# tests/logs/test_encoded.py).


class PlainTemplateEncoder:
    """A `TemplateEncoder` for any encoder and any template.

    >>> from construct_messages.rdf.template import Constant, Pattern, Variable
    >>> from construct_messages.rdf.terms import Term
    >>> template = Template(("x",), (Pattern(Variable(0), Constant(Term("<urn:p>")), Constant(Term('"o"'))),))
    >>> plain = PlainTemplateEncoder(lambda message: f"{len(message)} ".encode(), template)
    >>> bytes(plain.encode(Solutions.of([("<urn:a>",), ("",)]), 0))
    b'1 0 '
    """

    def __init__(self, encode: Callable[[Message], bytes], template: Template) -> None:
        self._encode, self._template = encode, template

    def encode(self, solutions: Solutions, first: int) -> EncodedMessages:
        return EncodedMessages(
            [
                self._encode(of_distinct(quads))
                for quads in self._template.instantiate_all(solutions.text, first)
            ]
        )


# --- text encoder ---------------------------------------------------------------------------------


class TextEncoder(ABC):
    """Writes messages as text."""

    def __init__(self, format: Format, syntax: Syntax) -> None:
        self.format, self.syntax = format, syntax
        self.capabilities = CapabilityCheck(format, syntax)

    def begin(self) -> None:
        """Counts messages from 1 again, for errors."""
        self.capabilities = CapabilityCheck(self.format, self.syntax)

    def start(self) -> bytes:
        """Returns the bytes before the first message: none by default."""
        return b""

    @abstractmethod
    def write(self, message: Message) -> str:
        """Writes one message with its delimiter, without declarations of the log; raises `UnsupportedByFormat`."""

    @abstractmethod
    def write_document(self, message: Message) -> str:
        """Writes one message as a separate document; see `Encoder.encode_document`."""

    def declare(self, texts: list[str]) -> None:  # noqa: B027 - most formats declare nothing here
        """Inserts the declarations of the log into the first of these messages, if they were not written yet."""

    def encode(self, message: Message) -> bytes:
        texts = [self._checked(message, self.write)]
        self.declare(texts)
        return texts[0].encode()

    def encode_document(self, message: Message) -> bytes:
        return self._checked(message, self.write_document).encode()

    def _checked(self, message: Message, write: Callable[[Message], str]) -> str:
        self.capabilities.check(message)
        try:
            return write(message)
        except UnsupportedByFormat as error:
            raise self.capabilities.refused(error) from None

    def finish(self) -> bytes:
        return b""

    def for_template(self, template: Template) -> TemplateEncoder:
        return PlainTemplateEncoder(self.encode, template)


class LayoutEncoder(TextEncoder):
    """Writes messages as text, and those of a template by layouts.

    The attributes of the class name the conditions that decide the positions of terms in a message; see `Layouts`.
    """

    literals: ClassVar[bool] = False
    predicates: ClassVar[Collection[Term] | None] = ()
    nodes: ClassVar[bool] = False
    deciding: Collection[Term] = ()

    def __init__(self, format: Format, syntax: Syntax, texts: TextsByKind) -> None:
        super().__init__(format, syntax)
        self.texts, self._place = texts, plain(texts)

    @abstractmethod
    def write_by(self, message: Message, place: Place) -> str:
        """Writes one message like `write`, its terms by `place` only; raises `NoLayout` if only `write` can."""

    def write(self, message: Message) -> str:
        """Writes one message with its own terms."""
        return self.write_by(message, self._place)

    def for_template(self, template: Template) -> TemplateEncoder:
        if not (self.capabilities.support_template(template) and is_laid_out(template)):
            return PlainTemplateEncoder(self.encode, template)
        return TemplateTexts(self, template)


class TemplateTexts:
    """Encodes batches of a template's solutions; byte for byte the same as `encode(Message(instantiate(…)))`."""

    def __init__(self, encoder: LayoutEncoder, template: Template) -> None:
        self._encoder, self._plain = encoder, PlainTemplateEncoder(encoder.encode, template)
        self._layouts = Layouts(
            template,
            encoder.write_by,
            encoder.texts,
            literals=encoder.literals,
            predicates=encoder.predicates,
            nodes=encoder.nodes,
            deciding=encoder.deciding,
        )

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        if not len(solutions) or not self._encoder.capabilities.support_columns(solutions):
            return self._plain.encode(solutions, first)
        try:
            texts = self._layouts.texts(solutions, first)
        except (NoLayout, UnsupportedByFormat):
            return self._plain.encode(solutions, first)
        self._encoder.capabilities.count(len(solutions))
        self._encoder.declare(texts)
        return EncodedTexts(texts)
