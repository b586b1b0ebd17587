"""Overlapping pages: each request repeats the last solutions, and the response must repeat them.

A page is a window over an order (SPARQL 1.2 Query, section 15). If an engine orders two requests differently, skips a
solution, or ignores OFFSET, or its data changes, then solutions are lost or repeated in answers that look complete. The
solutions that two responses share reveal this. Nothing here sends a request or writes a query.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from construct_messages.rdf.errors import IncompleteResult, shown
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term, map_blanks
from construct_messages.sparql.sources.http.response import ResponseReader

MOST: Final = 10
"""The maximal number of solutions that two responses share."""

_ANY_BLANK: Final = Term("_:")

_Solution: TypeAlias = tuple[Term, ...]


class Overlap:
    """The first and last solutions that have arrived, and their comparison with repeated ones.

    Args:
        url: the endpoint, for errors.
        columns: the indexes of the variables to compare, whose values are the same in each evaluation.
        stable_blank_nodes: whether a blank node label means the same node in every response; if not, all blank nodes
            are equal here.
        hint: the hint for an endpoint without a fixed order.

    Attributes:
        count: the number of solutions that have arrived.
        offset_is_obeyed: whether a response has shown that the endpoint obeys OFFSET.
    """

    def __init__(
        self, url: str, columns: Sequence[int], *, stable_blank_nodes: bool, hint: str
    ) -> None:
        self._url, self._columns, self._hint = url, columns, hint
        self._stable_blank_nodes = stable_blank_nodes
        self._first: list[_Solution] = []
        self._last: deque[_Solution] = deque(maxlen=MOST)
        self.count = 0
        self.offset_is_obeyed = False

    def size(self, limit: int) -> int:
        """Returns the number of solutions to repeat in a request for `limit` solutions: at most half.

        >>> Overlap("", (0,), stable_blank_nodes=True, hint="").size(100)
        0
        """
        return min(MOST, limit // 2, self.count)

    def shows_offset(self, size: int) -> bool:
        """Returns whether the next response can prove that OFFSET is obeyed, if it shares `size` solutions.

        It cannot if an endpoint that ignores OFFSET, and sends the beginning again, would send the same solutions.
        """
        return self._first[:size] != self._tail(size)

    def add(self, batch: Solutions) -> None:
        """Takes the next solutions."""
        if (wanted := MOST - len(self._first)) > 0:
            self._first.extend(map(self._compared, batch.head(wanted)))
        self._last.extend(map(self._compared, batch.tail(MOST)))
        self.count += len(batch)

    def check(self, again: Sequence[_Solution], server: str | None) -> None:
        """Compares the first solutions of a response with the last ones.

        Args:
            again: all solutions that the response shares with previous ones.
            server: the name of the engine in the response.

        Raises:
            IncompleteResult: they differ.
        """
        expected = self._tail(len(again))
        came = list(map(self._compared, again))
        if came == expected:
            self.offset_is_obeyed = self.offset_is_obeyed or self.shows_offset(len(again))
            return
        engine = self._engine(server)
        if not self.offset_is_obeyed and came == self._first[: len(came)]:
            raise IncompleteResult(f"{engine} sent the same page again: it does not obey OFFSET")
        place = next(
            place
            for place, pair in enumerate(zip(came, expected, strict=True))
            if pair[0] != pair[1]
        )
        raise IncompleteResult(
            f"{engine} returned other solutions for the same place of two pages: solution "
            f"{self.count - len(came) + place + 1} was {_text(expected[place])}, then {_text(came[place])}",
            hint=self._hint,
        )

    def missing(self, came: int, size: int, server: str | None) -> IncompleteResult:
        """Returns the error for a response that ends within the solutions it shares with previous ones."""
        return IncompleteResult(
            f"{self._engine(server)} sent only {came} of {size} solutions again that it sent before: "
            "its result became shorter",
            hint=self._hint,
        )

    def _engine(self, server: str | None) -> str:
        return f"{self._url} ({shown(server)})" if server else self._url

    def _tail(self, size: int) -> list[_Solution]:
        return list(self._last)[-size:] if size else []

    def _compared(self, solution: _Solution) -> _Solution:
        terms = tuple(solution[column] for column in self._columns)
        if self._stable_blank_nodes:
            return terms
        return tuple(map_blanks(term, lambda _: _ANY_BLANK) for term in terms)


class OverlappingReader(ResponseReader):
    """Reads a response that begins with repeated solutions, and yields the new ones after them.

    Args:
        overlap: the solutions that have arrived.
        size: the number of repeated solutions.
        arguments, options: see `ResponseReader`.
    """

    def __init__(self, overlap: Overlap, size: int, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._overlap, self._size = overlap, size
        self._again: list[_Solution] = []

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        """Yields the new solutions that a piece completes; see `ResponseReader.feed`.

        Raises:
            IncompleteResult: the repeated solutions differ from the previous ones.
        """
        for batch in super().feed(piece):
            fresh = batch
            if (wanted := self._size - len(self._again)) > 0:
                self._again.extend(batch.head(wanted))
                if len(self._again) == self._size:
                    self._overlap.check(self._again, self._header("Server"))
                fresh = batch.tail(len(batch) - wanted)
            if len(fresh):
                self._overlap.add(fresh)
                yield fresh

    def close(self) -> None:
        """Processes the end of the body; see `ResponseReader.close`.

        Raises:
            IncompleteResult: repeated solutions are missing.
        """
        super().close()
        if len(self._again) < self._size:
            raise self._overlap.missing(len(self._again), self._size, self._header("Server"))


def _text(solution: _Solution) -> str:
    return shown(" ".join(term or "(unbound)" for term in solution)) or "a solution without values"
