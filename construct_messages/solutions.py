"""A batch of solutions, by column: what results decoders give and log writers take.

Columns hold terms as `Term` or as UTF-8 bytes, whichever the source delivers; each is made from the other when asked
for, a column at a time. Nothing here knows a template or a result format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from construct_messages.terms import Term


class Solutions:
    """Consecutive solutions of one SELECT, in order; an unbound variable is the empty string.

    Args:
        columns: one column per projected variable, all of the same length, at least one; terms or their UTF-8 bytes.
        response: which response of the source they came in, counted from 0 (pages are responses).

    >>> batch = Solutions([[b"<urn:a>", b"<urn:b>"], [b'"1"', b""]])
    >>> list(batch)
    [('<urn:a>', '"1"'), ('<urn:b>', '')]
    """

    __slots__ = ("_text", "_utf8", "response")

    def __init__(self, columns: Sequence[list[Term]] | Sequence[list[bytes]], *, response: int = 0) -> None:
        self._text: Sequence[list[Term]] | None = None
        self._utf8: Sequence[list[bytes]] | None = None
        if columns[0] and isinstance(columns[0][0], bytes):
            self._utf8 = cast(Sequence[list[bytes]], columns)
        else:
            self._text = cast(Sequence[list[Term]], columns)
        self.response = response

    @classmethod
    def of(cls, solutions: Sequence[Sequence[Term]], *, response: int = 0) -> Solutions:
        """Creates a batch from solutions instead of columns.

        >>> Solutions.of([("<urn:a>", ""), ("<urn:b>", '"1"')]).text
        [['<urn:a>', '<urn:b>'], ['', '"1"']]
        """
        return cls([list(column) for column in zip(*solutions, strict=True)], response=response)

    def __len__(self) -> int:
        return len((self._text or self._utf8 or ((),))[0])

    def __iter__(self) -> Iterator[tuple[Term, ...]]:
        return zip(*self.text, strict=True)

    def __repr__(self) -> str:
        return f"<Solutions: {len(self)} of response {self.response}>"

    def at(self, index: int) -> tuple[Term, ...]:
        """One solution; the columns stay as they are.

        >>> Solutions([[b"<urn:a>", b"<urn:b>"], [b'"1"', b""]]).at(-1)
        ('<urn:b>', '')
        """
        (solution,) = self._slice(index, index + 1 or None)
        return solution

    def head(self, count: int) -> Solutions:
        """The first `count` solutions.

        >>> list(Solutions.of([("<urn:a>",), ("<urn:b>",)]).head(1))
        [('<urn:a>',)]
        """
        return self._slice(0, count)

    def take(self, places: Sequence[int]) -> Solutions:
        """Returns the solutions at these indexes, of which there is at least one.

        >>> list(Solutions.of([("<urn:a>",), ("<urn:b>",), ("<urn:c>",)]).take([0, 2]))
        [('<urn:a>',), ('<urn:c>',)]
        """
        columns = self._text if self._text is not None else self._utf8
        assert columns is not None
        part = cast(Sequence[list[Term]], [[column[place] for place in places] for column in columns])
        return Solutions(part, response=self.response)

    def parts(self, count: int) -> Iterator[Solutions]:
        """All of them, `count` at a time.

        >>> [list(part) for part in Solutions.of([("<urn:a>",), ("<urn:b>",), ("<urn:c>",)]).parts(2)]
        [[('<urn:a>',), ('<urn:b>',)], [('<urn:c>',)]]
        """
        if len(self) <= count:
            yield self
            return
        for start in range(0, len(self), count):
            yield self._slice(start, start + count)

    def _slice(self, start: int, end: int | None) -> Solutions:
        columns = self._text if self._text is not None else self._utf8
        assert columns is not None
        part = cast(Sequence[list[Term]], [column[start:end] for column in columns])
        return Solutions(part, response=self.response)

    @property
    def text(self) -> Sequence[list[Term]]:
        """The columns as terms."""
        if self._text is None:
            assert self._utf8 is not None
            # no canonical term holds a line break
            self._text = [cast(list[Term], b"\n".join(column).decode().split("\n")) for column in self._utf8]
        return self._text

    @property
    def utf8(self) -> Sequence[list[bytes]]:
        """The columns as UTF-8 bytes."""
        if self._utf8 is None:
            assert self._text is not None
            self._utf8 = ["\n".join(column).encode().split(b"\n") if column else [] for column in self._text]
        return self._utf8
