"""Converts solutions to messages or to the bytes of a log, without I/O, for the blocking and asyncio interfaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from construct_messages.errors import GroupError, LimitExceeded, SourceError
from construct_messages.logs import (
    EncodedBatch,
    EncoderOptions,
    FormatOptions,
    TemplateEncoder,
    encoder_for,
)
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message, Quad, of_distinct
from construct_messages.rdf.options import Grouping, MessageOptions, option_class
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import Term, has_blank, iri

# --- grouping -------------------------------------------------------------------------------------
# Groups solutions into messages: one each, or those with equal values of the grouping variables.
#
# Grouping never adds or removes solutions. In the order of first appearance, all solutions are held until the end; if
# the source sorts by the key, a group is returned when the next begins. Nothing is instantiated here, and there is no
# I/O.


class Numbered(NamedTuple):
    """A solution with its number in the stream, counted from 0."""

    number: int
    solution: tuple[Term, ...]


Group: TypeAlias = list[Numbered]


def digest(text: str) -> bytes:
    """128 bits that represent a text, to save memory."""
    from hashlib import blake2b  # OpenSSL takes long to load, and most queries do not need it

    return blake2b(text.encode(), digest_size=16).digest()


class EachSolution:
    """No grouping: a group for each solution.

    As all groupers do, `feed` returns the groups that a batch completes, and `finish` those that the end completes.

    >>> [group[0].number for group in EachSolution().feed(Solutions.of([("<urn:a>",), ("<urn:a>",)]))]
    [0, 1]
    """

    def __init__(self) -> None:
        self._next = 0

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        first = self._next
        self._next += len(solutions)
        for number, solution in enumerate(solutions, first):
            yield [Numbered(number, solution)]

    def finish(self) -> Iterator[Group]:
        return iter(())


class _Keyed:
    """Reads the key of each solution, and refuses blank nodes that cannot be compared."""

    def __init__(
        self, indexes: Sequence[int], names: Sequence[str], limit: int, stable_blank_nodes: bool
    ) -> None:
        self._indexes, self._names, self._stable = indexes, names, stable_blank_nodes
        self._limit, self._next = limit, 0
        self._blank_in: int | None = None

    def _read(self, solutions: Solutions) -> Iterator[tuple[tuple[Term, ...], Numbered]]:
        response = solutions.response
        for solution in solutions:
            key = tuple(solution[index] for index in self._indexes)
            if not self._stable and (self._blank_in is not None or any(map(has_blank, key))):
                if self._blank_in is None:
                    self._blank_in = response
                if response != self._blank_in or response > 0:
                    raise GroupError(
                        f"grouping by {' '.join(f'?{name}' for name in self._names)} met a blank node, "
                        "whose label means nothing in another response of this source",
                        hint="group by IRIs or literals, or read the result in one response (no page_size)",
                    )
            yield key, Numbered(self._next, solution)
            self._next += 1


class ByAppearance(_Keyed):
    """Groups in the order of their first solutions; holds all solutions until the end."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._groups: dict[tuple[Term, ...], Group] = {}

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        for key, numbered in self._read(solutions):
            if self._next == self._limit:
                raise LimitExceeded(
                    f"grouping would hold more than {self._limit} solutions",
                    hint='raise the limit of the grouping, or stream with order="sorted"',
                )
            self._groups.setdefault(key, []).append(numbered)
        return iter(())

    def finish(self) -> Iterator[Group]:
        yield from self._groups.values()
        self._groups = {}


class Sorted(_Keyed):
    """Groups as they come from a source that sorts by the key; holds one group, and 16 bytes for each closed key."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._key: tuple[Term, ...] | None = None
        self._group: Group = []
        self._closed: set[bytes] = set()

    def feed(self, solutions: Solutions) -> Iterator[Group]:
        for key, numbered in self._read(solutions):
            if key != self._key:
                yield from self.finish()
                self._open(key)
            if len(self._group) == self._limit:
                raise LimitExceeded(
                    f"one group holds more than {self._limit} solutions",
                    hint="raise the limit of the grouping",
                )
            self._group.append(numbered)

    def finish(self) -> Iterator[Group]:
        if self._key is not None:
            self._closed.add(digest("\n".join(self._key)))
            yield self._group
        self._key, self._group = None, []

    def _open(self, key: tuple[Term, ...]) -> None:
        if digest("\n".join(key)) in self._closed:
            named = ", ".join(
                f"?{name} = {term or 'unbound'}"
                for name, term in zip(self._names, key, strict=True)
            )
            raise GroupError(
                f"the group {named} came back after it was closed: the source does not sort by this key",
                hint='use order="appearance"',
            )
        self._key = key


# --- assembly -------------------------------------------------------------------------------------


@option_class
@dataclass(frozen=True, kw_only=True)
class Options(MessageOptions):
    """The options of `construct_messages` for turning solutions into messages, and the limits of a server.

    Exceeding a limit is an error, whereas `max_messages` ends the log. `passed` filters messages; `progress` is called
    with the number of messages since its last call.
    """

    grouping: Grouping = Grouping()
    strict: bool = False
    solution_limit: int | None = None
    message_limit: int | None = None
    message_bytes: int | None = None
    passed: Callable[[Iterator[Message]], Iterator[Message]] | None = None
    progress: Callable[[int], object] | None = None


class Assembly:
    """Converts batches of solutions to messages."""

    def __init__(
        self, template: Template, options: Options, stable_blank_nodes: bool, *, paged: bool = False
    ) -> None:
        self._template, self._options = template, options
        self._grouper: EachSolution | ByAppearance | Sorted = EachSolution()
        grouping = options.grouping
        if grouping.by:
            kind = Sorted if grouping.is_sorted else ByAppearance
            indexes = [template.variables.index(name) for name in grouping.by]
            self._grouper = kind(indexes, grouping.by, grouping.limit, stable_blank_nodes)
        self._identity = _Identity(options.strict) if paged and not stable_blank_nodes else None
        self._seen: set[bytes] = set()
        self.message_count = 0
        self.solution_count = 0

    @property
    def left(self) -> int | None:
        """The number of messages that are still allowed; None: no limit."""
        most = self._options.max_messages
        return None if most is None else most - self.message_count

    @property
    def message_bytes(self) -> int | None:
        """The maximal size of a message in the log; None: no limit."""
        return self._options.message_bytes

    @property
    def group_by(self) -> frozenset[str] | None:
        """The variables that have the same terms in all solutions of a message; None: a message is a solution."""
        by = self._options.grouping.by
        return frozenset(by) if by else None

    @property
    def is_plain(self) -> bool:
        """Whether each solution is one unchanged message, so that a batch can be encoded at once."""
        return self._is_direct and self._options.passed is None

    @property
    def _is_direct(self) -> bool:
        """Whether each solution is one message."""
        options = self._options
        return not (
            options.grouping.by or options.distinct or options.skip_empty or options.skolemize
        )

    def feed(self, solutions: Solutions) -> Iterator[Message]:
        """Yields the messages that a batch completes."""
        self._count(solutions)
        return self._passed(
            self._each(solutions)
            if self._is_direct
            else self._messages(self._grouper.feed(solutions))
        )

    def finish(self) -> Iterator[Message]:
        """Yields the messages that the end completes."""
        return self._passed(self._messages(self._grouper.finish()))

    def _passed(self, messages: Iterator[Message]) -> Iterator[Message]:
        passed = self._options.passed
        return messages if passed is None else passed(messages)

    def encode(self, encoder: TemplateEncoder, solutions: Solutions) -> EncodedBatch:
        """Returns the messages of a batch by the fast path, which requires `is_plain`."""
        solutions = self._allowed(solutions)
        encoded = encoder.encode(solutions, self.message_count)
        self._count(solutions)
        self._deliver(len(solutions))
        return encoded

    def take(self, solutions: Solutions) -> Solutions:
        """Counts solutions that are one message each (see `is_plain`), and returns those within the limits."""
        solutions = self._allowed(solutions)
        self._count(solutions)
        self._deliver(len(solutions))
        return solutions

    def _allowed(self, solutions: Solutions) -> Solutions:
        if self.left is not None and len(solutions) > self.left:
            return solutions.head(self.left)
        return solutions

    def _count(self, solutions: Solutions) -> None:
        self.solution_count += len(solutions)
        if self._identity is not None:
            self._identity.check(solutions)
        limit = self._options.solution_limit
        if limit is not None and self.solution_count > limit:
            raise LimitExceeded(f"more than {limit} solutions", hint="ask for less: add a LIMIT")

    def _deliver(self, count: int) -> None:
        self.message_count += count
        limit = self._options.message_limit
        if limit is not None and self.message_count > limit:
            raise _too_many_messages(limit)
        if self._options.progress is not None:
            self._options.progress(count)

    def _each(self, solutions: Solutions) -> Iterator[Message]:
        """Yields the messages of counted solutions, one each."""
        first, limit = self.solution_count - len(solutions), self._options.message_limit
        progress = self._options.progress
        if self.left == 0:
            return
        solutions = self._allowed(solutions)
        for quads in self._template.instantiate_all(solutions.text, first):
            # like `_deliver`: a call for each message would take a twentieth of the time
            self.message_count += 1
            if limit is not None and self.message_count > limit:
                raise _too_many_messages(limit)
            if progress is not None:
                progress(1)
            yield of_distinct(quads)

    def _messages(self, groups: Iterator[Group]) -> Iterator[Message]:
        if self.left == 0:
            return
        for group in groups:
            if self._options.distinct and not self._is_new(group):
                continue
            message = Message(
                quad
                for number, solution in group
                for quad in self._template.instantiate(solution, number)
            )
            if self._options.skip_empty and not len(message):
                continue
            if self._options.skolemize is not None:
                message = self._skolemized(message, self._options.skolemize)
            self._deliver(1)
            message.checked = True  # like the source's terms
            yield message
            if self.left == 0:
                return

    def _skolemized(self, message: Message, prefix: str) -> Message:
        """Replaces the blank nodes of the data by IRIs; those of the template, fresh in each solution, are kept."""
        labels = self._template.labels
        return message.map_blanks(
            lambda node: node if labels.in_template(node) else iri(prefix + node[2:])
        )

    def _is_new(self, group: Group) -> bool:
        """Whether no earlier message had the same quads; the template's blank nodes are compared by their slot."""
        ground: set[str] = set()
        fresh: list[str] = []
        for _, solution in group:
            quads = self._template.instantiate(solution, 0)
            own = {
                str(quad) for quad in quads if self._template.has_blanks and self._is_fresh(quad)
            }
            ground |= {str(quad) for quad in quads} - own
            if own:
                fresh.append(digest("\n".join(sorted(own))).hex())
        key = digest("\n".join([*sorted(ground), *sorted(fresh)]))
        if key in self._seen:
            return False
        if len(self._seen) == self._options.distinct_limit:
            raise LimitExceeded(
                f"more than {self._options.distinct_limit} different messages",
                hint="raise distinct_limit, or ask for less: add a LIMIT",
            )
        self._seen.add(key)
        return True

    def _is_fresh(self, quad: Quad) -> bool:
        return any(term is not None and self._template.labels.in_template(term) for term in quad)


def _too_many_messages(limit: int) -> LimitExceeded:
    return LimitExceeded(f"more than {limit} messages", hint="ask for less: add a LIMIT")


class _Identity:
    """Detects blank nodes that may have become two, because labels that are local to a response are in several."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._met: set[int] = set()

    def check(self, solutions: Solutions) -> None:
        """Checks the next batch."""
        if len(self._met) == 2 or solutions.response in self._met or not _any_blank(solutions):
            return
        self._met.add(solutions.response)
        if len(self._met) == 1:
            return
        message = "blank nodes are in two responses of a source whose labels change: one node may have become several"
        if self._strict:
            hint = (
                'pass the profile of an engine whose labels are stable ("oxigraph", '
                '"virtuoso"), or read without pages'
            )
            raise SourceError(message, hint=hint)
        import logging  # imported here because most programs do not need it

        logging.getLogger(__name__).warning("%s", message)


def _any_blank(solutions: Solutions) -> bool:
    # most batches have none, which is checked in less time than each of their terms takes
    return any(b"_:" in b"\n".join(column) for column in solutions.utf8) and any(
        has_blank(term) for column in solutions.text for term in column
    )


class Writing:
    """Converts batches of solutions to the bytes of a log, over an assembly.

    A batch is encoded by the encoder's own form of the template if each solution is an unchanged message; else message
    by message.
    """

    def __init__(
        self,
        assembly: Assembly,
        template: Template,
        format: Format,
        syntax: Syntax,
        prefixes: Mapping[str, str],
        options: FormatOptions | None = None,
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self._assembly = assembly
        self._message_bytes = assembly.message_bytes
        encoding = EncoderOptions(
            prefixes,
            template.names_graphs,
            template.has_triple_terms,
            options,
            template,
            assembly.group_by,
            origin or {},
        )
        self._encoder = encoder_for(format, syntax, encoding)
        self._batches = self._encoder.for_template(template) if assembly.is_plain else None
        # held back until the source has answered, so that an early error writes nothing
        self._start = self._encoder.start()

    def feed(self, solutions: Solutions) -> bytes:
        """Returns the bytes that a batch adds to the log."""
        if self._batches is not None:
            encoded = self._assembly.encode(self._batches, solutions)
            chunk = bytes(encoded)
            # one of its messages may be too large only if they all are together
            if self._message_bytes is not None and len(chunk) > self._message_bytes:
                for message in encoded:
                    self._bound(len(message))
        else:
            chunk = b"".join(map(self._encode, self._assembly.feed(solutions)))
        if chunk:
            chunk, self._start = self._start + chunk, b""
        return chunk

    def finish(self) -> Iterator[bytes]:
        """Returns the bytes that end the log; only for a complete result."""
        yield self._start
        for message in self._assembly.finish():
            yield self._encode(message)
        yield self._encoder.finish()

    def _encode(self, message: Message) -> bytes:
        encoded = self._encoder.encode(message)
        self._bound(len(encoded))
        return encoded

    def _bound(self, size: int) -> None:
        if self._message_bytes is not None and size > self._message_bytes:
            raise LimitExceeded(
                f"a message of {size} bytes, where {self._message_bytes} are allowed",
                hint="group less, or ask for smaller values",
            )
