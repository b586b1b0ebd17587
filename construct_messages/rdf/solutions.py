"""A batch of solutions, by column: the output of results decoders, and the input of log writers.

Columns contain terms as `Term`, as UTF-8 bytes, or as arrays of Arrow, as the source delivers them. A column is
converted when it is used. Nothing here knows a template or a result format, and nothing imports Arrow.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from construct_messages.rdf.terms import UNBOUND, UNREADABLE, Term


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

    arrays: Sequence[Any] | None = None
    """The columns as arrays of Arrow, if the source delivered them so; see `ArrowSolutions`."""

    def __init__(
        self, columns: Sequence[list[Term]] | Sequence[list[bytes]], *, response: int = 0
    ) -> None:
        self._text: Sequence[list[Term]] | None = None
        self._utf8: Sequence[list[bytes]] | None = None
        if columns[0] and isinstance(columns[0][0], bytes):
            self._utf8 = cast(Sequence[list[bytes]], columns)
        else:
            self._text = cast(Sequence[list[Term]], columns)
        self.response = response

    @classmethod
    def of(cls, solutions: Sequence[Sequence[Term]], *, response: int = 0) -> "Solutions":
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

    def head(self, count: int) -> "Solutions":
        """The first `count` solutions.

        >>> list(Solutions.of([("<urn:a>",), ("<urn:b>",)]).head(1))
        [('<urn:a>',)]
        """
        return self._slice(0, count)

    def tail(self, count: int) -> "Solutions":
        """Returns the last `count` solutions, or all if there are fewer.

        >>> list(Solutions.of([("<urn:a>",), ("<urn:b>",)]).tail(1))
        [('<urn:b>',)]
        """
        return self._slice(max(0, len(self) - count), None)

    def take(self, places: Sequence[int]) -> "Solutions":
        """Returns the solutions at these indexes.

        >>> list(Solutions.of([("<urn:a>",), ("<urn:b>",), ("<urn:c>",)]).take([0, 2]))
        [('<urn:a>',), ('<urn:c>',)]
        """
        columns = self._text if self._text is not None else self.utf8
        part = cast(
            Sequence[list[Term]], [[column[place] for place in places] for column in columns]
        )
        return Solutions(part, response=self.response)

    def readable(self) -> "Solutions":
        """Returns the solutions without those with a term that could not be read (see `terms.Lenience`).

        >>> list(Solutions.of([("<urn:a>",), ("\\0",), ("<urn:c>",)]).readable())
        [('<urn:a>',), ('<urn:c>',)]
        """
        places = [
            place
            for place, solution in enumerate(self)
            if not any(UNREADABLE in term for term in solution)
        ]
        return self if len(places) == len(self) else self.take(places)

    def parts(self, count: int) -> "Iterator[Solutions]":
        """All of them, `count` at a time.

        >>> [list(part) for part in Solutions.of([("<urn:a>",), ("<urn:b>",), ("<urn:c>",)]).parts(2)]
        [[('<urn:a>',), ('<urn:b>',)], [('<urn:c>',)]]
        """
        if len(self) <= count:
            yield self
            return
        for start in range(0, len(self), count):
            yield self._slice(start, start + count)

    def _slice(self, start: int, end: int | None) -> "Solutions":
        columns = self._text if self._text is not None else self.utf8
        part = cast(Sequence[list[Term]], [column[start:end] for column in columns])
        return Solutions(part, response=self.response)

    @property
    def text(self) -> Sequence[list[Term]]:
        """The columns as terms."""
        if self._text is None:
            # no canonical term holds a line break
            self._text = [
                cast(list[Term], b"\n".join(column).decode().split("\n")) for column in self.utf8
            ]
        return self._text

    @property
    def utf8(self) -> Sequence[list[bytes]]:
        """The columns as UTF-8 bytes."""
        if self._utf8 is None:
            self._utf8 = [
                "\n".join(column).encode().split(b"\n") if column else [] for column in self.text
            ]
        return self._utf8


class ArrowSolutions(Solutions):
    """Solutions whose columns are arrays of Arrow: strings, and null where a variable is unbound.

    >>> import pyarrow as pa
    >>> batch = ArrowSolutions([pa.array(["<urn:a>", "<urn:b>"]), pa.array(['"1"', None])])
    >>> list(batch), batch.tail(1).utf8
    ([('<urn:a>', '"1"'), ('<urn:b>', '')], [[b'<urn:b>'], [b'']])
    """

    __slots__ = ("arrays",)

    def __init__(self, arrays: Sequence[Any], *, response: int = 0) -> None:
        self._text = self._utf8 = None
        self.arrays: Sequence[Any] = arrays
        self.response = response

    def __len__(self) -> int:
        return len(self.arrays[0])

    def _slice(self, start: int, end: int | None) -> Solutions:
        size = len(self) if end is None else end
        found = [array[start:size] for array in self.arrays]
        return ArrowSolutions(found, response=self.response)

    @property
    def text(self) -> Sequence[list[Term]]:
        """The columns as terms."""
        if self._text is None:
            self._text = list(map(terms_of, self.arrays))
        return self._text

    @property
    def utf8(self) -> Sequence[list[bytes]]:
        """The columns as UTF-8 bytes."""
        if self._utf8 is None:
            columns = [array.view("binary").to_pylist() for array in self.arrays]
            self._utf8 = [
                [term or b"" for term in column] if array.null_count else column
                for array, column in zip(self.arrays, columns, strict=True)
            ]
        return self._utf8


def terms_of(array: Any) -> list[Term]:
    """Returns an array of Arrow, of strings, as terms; the empty string is unbound.

    >>> import pyarrow as pa
    >>> terms_of(pa.array(["<urn:a>", None]))
    ['<urn:a>', '']
    """
    # not by `fill_null`, which imports pandas where it is installed
    terms: list[Term] = array.to_pylist()
    return [term or UNBOUND for term in terms] if array.null_count else terms
