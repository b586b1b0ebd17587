"""Keyset pagination: each page has the solutions after the last whole group of the previous page.

All solutions with one value of the key are a group. A full page may end within a group, so the next page begins with
this group again. So no page depends on the order of equal keys, or on two requests having the same order (`overlap.py`
checks that for OFFSET). Keys are ordered as strings, by code point (SPARQL 1.2 Query, section 17.4.1.7). Nothing here
sends a request or writes a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from construct_messages.rdf.errors import IncompleteResult, shown
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term
from construct_messages.sparql.client.responses import OK
from construct_messages.sparql.sources.http.response import ResponseReader


class Groups:
    """The groups that have arrived, in the order of their keys.

    Args:
        url: the endpoint, for errors.
        variable: the name of the key.
        column: its index among the variables.

    Attributes:
        last: the key of the last group that has arrived, possibly incomplete; None: nothing has arrived.
        count: the number of solutions of whole groups.
    """

    def __init__(self, url: str, variable: str, column: int) -> None:
        self._url, self._variable, self._column = url, variable, column
        self._pending: list[Solutions] = []
        self._first: str | None = None
        self.last: str | None = None
        self.count = 0

    @property
    def pending(self) -> int:
        """The number of solutions of the last group."""
        return sum(map(len, self._pending))

    def begin(self) -> None:
        """Discards the incomplete group: the next response begins with it."""
        self._pending.clear()
        self.expect_last()

    def expect_last(self) -> None:
        """Makes the next response begin with the last group."""
        self._first = self.last

    def check_first(self, batch: Solutions) -> None:
        """Checks that a response begins with the last group.

        Raises:
            IncompleteResult: it does not, possibly because the engine has a different string for the key.
        """
        first = self._key(batch.text[self._column][0])
        if first != self._first:
            raise IncompleteResult(
                f"{self._url} was asked for solutions from {shown(str(self._first))} on, and began with {shown(first)}",
                hint="ask again if the data changed meanwhile; otherwise read the result without page_key",
            )
        self._first = None

    def add(self, batch: Solutions) -> Iterator[Solutions]:
        """Takes the next solutions of a response, and yields those of complete groups.

        Raises:
            IncompleteResult: a key is not an IRI, or follows a greater one.
        """
        if self._first is not None:
            self.check_first(batch)
        begin = None  # of the last group, if it begins in this batch
        for place, term in enumerate(batch.text[self._column]):
            key = self._key(term)
            if self.last is not None and key < self.last:
                raise IncompleteResult(
                    f"{self._url} does not order texts by code point: {shown(key)} came after {shown(self.last)}",
                    hint="read the result without page_key",
                )
            if key != self.last:
                begin, self.last = place, key
        if begin is not None:
            if begin:
                self._pending.append(batch.head(begin))
            yield from self.end()
            batch = batch.tail(len(batch) - begin)
        self._pending.append(batch)

    def end(self) -> Iterator[Solutions]:
        """Yields the pending group, which is complete."""
        whole, self._pending = self._pending, []
        for batch in whole:
            self.count += len(batch)
            yield batch

    def vanished(self) -> IncompleteResult:
        """Returns the error for an endpoint that does not send the last group again."""
        return IncompleteResult(
            f"{self._url} did not send the solution with {shown(str(self.last))} again",
            hint="ask again if the data changed meanwhile; otherwise read the result without page_key",
        )

    def _key(self, term: Term) -> str:
        if not term.startswith("<") or term.startswith("<<("):
            what = shown(term) if term else "unbound"
            raise IncompleteResult(
                f"?{self._variable} is {what} in a solution of {self._url}, and no key",
                hint="name a variable that is an IRI in every solution",
            )
        return term[1:-1]


class KeyReader(ResponseReader):
    """Reads a response, and yields the solutions of whole groups.

    Args:
        groups: the groups that have arrived.
        arguments, options: see `ResponseReader`.
    """

    def __init__(self, groups: Groups, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._groups = groups
        groups.begin()

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        """Yields the solutions of the groups that a piece completes; see `ResponseReader.feed`."""
        for batch in super().feed(piece):
            yield from self._groups.add(batch)


class KeyEnd(ResponseReader):
    """Checks whether solutions follow the last group, and yields that group if there are none.

    The response has the last solution of the group, and one more if there is one.
    """

    def __init__(self, groups: Groups, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._groups = groups
        groups.expect_last()

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        """Checks the solution that the piece completes, and yields nothing."""
        for batch in super().feed(piece):
            if self.count == len(batch):
                self._groups.check_first(batch)
        return iter(())

    def rest(self) -> list[Solutions]:
        """Returns the last group if no solution follows it; see `ResponseReader.rest`.

        Raises:
            IncompleteResult: the group has disappeared.
        """
        super().rest()
        if self.count == 0 and self._status in OK:
            raise self._groups.vanished()
        return list(self._groups.end()) if self.count == 1 else []
