"""Pagination: the SELECT queries for a whole result, and the detection of results that row limits truncate.

A page is a window of LIMIT and OFFSET over the query (`query/select.py` writes it) and has a separate response. Each
window begins with the last solutions of the previous one, which are compared. Sources send the queries of
`pages`, and feed each response to the page's reader. Opens no socket.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, Final, Literal, TypeAlias

from construct_messages.errors import (
    IncompleteResult,
    QueryError,
    SourceError,
    SourceTimeout,
    shown,
)
from construct_messages.query.prologue import undeclared
from construct_messages.query.select import Select, beyond, by_key, from_key, paging_key, volatile
from construct_messages.query.select import page as window
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term, map_blanks
from construct_messages.sparql.client.responses import OK, Header
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.http.profiles import PROFILES, Profile
from construct_messages.sparql.sources.http.response import ResponseReader

# --- overlap --------------------------------------------------------------------------------------
# Overlapping pages: each request repeats the last solutions, and the response must repeat them.
#
# A page is a window over an order (SPARQL 1.2 Query, section 15). If an engine orders two requests differently, skips
# a solution, or ignores OFFSET, or its data changes, then solutions are lost or repeated in answers that look
# complete. The solutions that two responses share reveal this. Nothing here sends a request or writes a query.

MOST: Final = 10  # the maximal number of solutions that two responses share

_ANY_BLANK: Final = Term("_:")

_Solution: TypeAlias = tuple[Term, ...]


class Overlap:
    """The first and last solutions that have arrived, and their comparison with repeated ones.

    `columns`: the indexes of the variables to compare, whose values are the same in each evaluation. Without stable
    blank nodes, all blank nodes are equal here. `offset_is_obeyed`: a response has shown this.
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
        # at most half: each page must bring new solutions, also if an endpoint sends few at a time
        return min(MOST, limit // 2, self.count)

    def shows_offset(self, size: int) -> bool:
        """Returns whether the next response can prove that OFFSET is obeyed, if it shares `size` solutions.

        It cannot if an endpoint that ignores OFFSET, and sends the beginning again, would send the same solutions.
        """
        return self._first[:size] != self._tail(size)

    def add(self, batch: Solutions) -> None:
        if (wanted := MOST - len(self._first)) > 0:
            self._first.extend(map(self._compared, batch.head(wanted)))
        self._last.extend(map(self._compared, batch.tail(MOST)))
        self.count += len(batch)

    def check(self, again: Sequence[_Solution], server: str | None) -> None:
        """Raises `IncompleteResult` if the first solutions of a response are not the last ones that have arrived."""
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


class PageReader(ResponseReader):
    """Reads the response for a page. `waited`: the seconds for which solutions waited for their consumer."""

    waited = 0.0

    def _passed(self, batches: Iterator[Solutions]) -> Iterator[Solutions]:
        for batch in batches:
            begun = monotonic()
            yield batch
            self.waited += monotonic() - begun


class OverlappingReader(PageReader):
    """Reads a response that begins with `size` repeated solutions, and yields the new ones after them."""

    def __init__(self, overlap: Overlap, size: int, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._overlap, self._size = overlap, size
        self._again: list[_Solution] = []

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        return self._passed(self._new(piece))

    def _new(self, piece: bytes) -> Iterator[Solutions]:
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
        super().close()
        if len(self._again) < self._size:
            raise self._overlap.missing(len(self._again), self._size, self._header("Server"))


def _text(solution: _Solution) -> str:
    return shown(" ".join(term or "(unbound)" for term in solution)) or "a solution without values"


# --- keyset ---------------------------------------------------------------------------------------
# Keyset pagination: each page has the solutions after the last whole group of the previous page.
#
# All solutions with one text of the key are a group. A full page may end within a group, so the next page begins
# with this group again. So no page depends on the order of equal keys, or on two requests having the same order
# (`Overlap` checks that for OFFSET). Keys are ordered as strings, by code point (SPARQL 1.2 Query, section
# 17.4.1.7). Nothing here sends a request or writes a query.


class Groups:
    """The groups that have arrived, in the order of their keys.

    `last`: the key of the last group that has arrived, possibly incomplete; None: nothing has arrived. `count`: the
    number of solutions of whole groups. `is_complete`: all solutions have arrived.

    Of a key that the user names, each value must be an IRI. Of one that was `chosen`, groups are larger: one begins
    only at an IRI that every engine compares, and writes, alike. Other IRIs are in the group before them, and other
    values in the first.
    """

    def __init__(self, url: str, variable: str, column: int, *, chosen: bool = False) -> None:
        self._url, self._variable, self._column, self.chosen = url, variable, column, chosen
        self._pending: list[Solutions] = []
        self._first: str | None = None
        self._latest: str | None = None  # the key of the last solution
        self.last: str | None = None
        self.count = 0
        self.is_complete = False

    @property
    def pending(self) -> int:
        """The number of solutions of the last group."""
        return sum(map(len, self._pending))

    @property
    def least(self) -> str | None:
        """The key from which the missing solutions are requested; None: all are missing."""
        return self.last if self.count else None

    def begin(self) -> None:
        """Discards the incomplete group: the next response begins with it."""
        self._pending.clear()
        self._first = self.least

    def expect_latest(self) -> None:
        """Makes the next response begin with the last solution."""
        self._first = self._latest

    def check_first(self, batch: Solutions) -> None:
        """Raises `IncompleteResult` if a response does not begin with the expected key: the engine may have a different
        string for the key.
        """
        first = self._key(batch.text[self._column][0])
        if first != self._first:
            raise IncompleteResult(
                f"{self._url} was asked for solutions from {shown(str(self._first))} on, and began with {shown(first)}",
                hint=f"ask again if the data changed meanwhile; otherwise {self._otherwise}",
            )
        self._first = None

    def add(self, batch: Solutions) -> Iterator[Solutions]:
        """Takes the next solutions of a response, and yields those of complete groups.

        Raises `IncompleteResult` for a key that follows a greater one, and for one of the user's that is not an IRI.
        """
        if self._first is not None:
            self.check_first(batch)
        begin = None  # of the last group, if it begins in this batch
        for place, term in enumerate(batch.text[self._column]):
            key = self._latest = self._key(term)
            if self.last is not None:
                if key == self.last or not self._begins_group(key):
                    continue
                if key < self.last:
                    raise IncompleteResult(
                        f"{self._url} does not order texts by code point: {shown(key)} came after {shown(self.last)}",
                        hint=self._otherwise,
                    )
            begin, self.last = place, key if self._begins_group(key) else ""
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
            hint=f"ask again if the data changed meanwhile; otherwise {self._otherwise}",
        )

    @property
    def _otherwise(self) -> str:
        return (
            'read the result with profile="generic"'
            if self.chosen
            else "read the result without page_key"
        )

    def _begins_group(self, key: str) -> bool:
        # a percent sign may be ours, in place of a character that is not allowed; other characters than those of ASCII
        # are ordered in several ways, such as by their UTF-16 code units
        return not self.chosen or (key.isascii() and "%" not in key and bool(key))

    def _key(self, term: Term) -> str:
        if term.startswith("<") and not term.startswith("<<("):
            return term[1:-1]
        if self.chosen:
            return ""
        what = shown(term) if term else "unbound"
        raise IncompleteResult(
            f"?{self._variable} is {what} in a solution of {self._url}, and no key",
            hint="name a variable that is an IRI in every solution",
        )


class KeyReader(PageReader):
    """Reads a response, and yields the solutions of whole groups."""

    def __init__(self, groups: Groups, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._groups = groups
        groups.begin()

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        return self._passed(self._of_whole_groups(piece))

    def _of_whole_groups(self, piece: bytes) -> Iterator[Solutions]:
        for batch in super().feed(piece):
            yield from self._groups.add(batch)


class KeyEnd(ResponseReader):
    """Checks whether solutions follow the last group, and yields that group if there are none.

    The response has the last solution that has arrived, and one more if there is one.
    """

    def __init__(self, groups: Groups, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._groups = groups
        groups.expect_latest()

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        """Checks the solution that the piece completes, and yields nothing."""
        for batch in super().feed(piece):
            if self.count == len(batch):
                self._groups.check_first(batch)
        return iter(())

    def rest(self) -> list[Solutions]:
        super().rest()
        if self.count == 0 and self._status in OK:
            raise self._groups.vanished()
        return list(self._groups.end()) if self.count == 1 else []


# --- sizes ----------------------------------------------------------------------------------------
# How many solutions to request. An engine evaluates and sorts the whole result for each page, however small it is.

_FIRST_PAGE: Final = 500
_SECOND_PAGE: Final = 10_000
_SHARE: Final = 0.1  # of the time for a page: the part that does not depend on its size
_GROWTH: Final = 20  # a page has at most this many times the solutions of the one before
_PAGE_SECONDS: Final = 30.0  # for a larger page than the one before: endpoints end longer ones


class Sizes:
    """The sizes of pages: `next` is the number of solutions to request.

    The first page is small, because engines return the beginning of an order sooner. All others have the size that the
    user gave. Without one (`auto`), the times for two pages show the time for a page without solutions and that for
    each solution, and pages grow until the former is a small share.

    >>> sizes = Sizes("auto")
    >>> sizes.add(500, 1.0), sizes.next, sizes.add(10_000, 1.1), sizes.next
    (None, 10000, None, 200000)
    >>> sizes.add(200_000, 3.1), sizes.next
    (None, 850500)
    """

    def __init__(
        self, asked: int | Literal["auto"], most: int | None = None, first: int = _FIRST_PAGE
    ) -> None:
        self._full = _SECOND_PAGE if asked == "auto" else asked
        self._grows = asked == "auto"
        self._most = _FAR if most is None else most
        self.next = min(self._full, first, self._most)
        self._before: tuple[int, float] | None = None

    def add(self, solution_count: int, seconds: float) -> None:
        """Takes the number of solutions of a full page, and the time that it took."""
        if self._grows and self._before is not None:
            self._full = max(self._full, self._fitting(*self._before, solution_count, seconds))
        self._before = solution_count, seconds
        self.next = min(self._full, self._most)

    def cap(self, solution_count: int) -> None:
        """Takes the size of the largest page that the endpoint sends, announced or not."""
        self.next = self._full = self._most = solution_count
        self._grows = False

    def _fitting(self, fewer: int, shorter: float, more: int, longer: float) -> int:
        largest = more * _GROWTH
        each = (longer - shorter) / (more - fewer) if more > fewer else 0.0
        if each <= 0:  # less than the times vary by
            return largest
        alone = max(0.0, longer - each * more)
        within = (_PAGE_SECONDS - alone) / each
        return int(min(largest, alone / each * (1 - _SHARE) / _SHARE, within))


# --- paging ---------------------------------------------------------------------------------------

_FAR: Final = (
    1_000_000_000  # solutions; the maximum of 32 bits, for engines that count with 32 bits
)

_Kind: TypeAlias = Callable[..., ResponseReader]
_NewReader: TypeAlias = Callable[[_Kind, int, Header, Select], ResponseReader]


class ResultPage:
    """A part of a result: the SELECT for the missing solutions, and the reader of the response.

    A context manager around all attempts, which translates their failures.

    `query` is the SELECT to send, or returns it, or None if all solutions have arrived. `new_reader` creates the reader
    of a response from its class `kind`, status, headers and the query that was sent. `again` returns whether the page
    can be requested again without duplicating a solution; None: it can if none has arrived.
    """

    def __init__(
        self,
        url: str,
        query: Select | Callable[[], Select | None],
        new_reader: _NewReader,
        kind: _Kind = ResponseReader,
        again: Callable[[], bool] | None = None,
    ) -> None:
        self.url, self._query, self._new_reader = url, query, new_reader
        self._kind, self._again = kind, again
        self._reader: ResponseReader | None = None
        self._begun = 0.0
        self.took: float | None = None

    def __enter__(self) -> None:
        self._begun = monotonic()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool | None:
        """Adds to a failure what its engine needs."""
        if isinstance(error, SourceError) and self._reader is not None:
            self._reader.add_hint(error)
        return None

    @property
    def select(self) -> Select | None:
        """The query to send; None: all solutions have arrived."""
        return self._query if isinstance(self._query, Select) else self._query()

    def open(self, status: int, header: Header) -> ResponseReader:
        """Creates the reader for a response; see `ResponseReader` for its errors."""
        select = self.select
        assert select is not None
        self._reader = None
        self._reader = self._new_reader(self._kind, status, header, select)
        return self._reader

    def may_retry(self, _: SourceError) -> bool:
        """Whether the page can be requested again after an error."""
        return not self.received if self._again is None else self._again()

    @property
    def received(self) -> int:
        """The number of solutions in the last response."""
        return 0 if self._reader is None else self._reader.count

    @property
    def seconds(self) -> float:
        """The time that the page has taken so far, without that in which its solutions waited for their consumer.

        Of a page that was read again, it is the time that it `took` at first.
        """
        if self.took is not None:
            return self.took
        waited = self._reader.waited if isinstance(self._reader, PageReader) else 0.0
        return monotonic() - self._begun - waited

    @property
    def cap(self) -> int | None:
        """The row limit of the endpoint, if it has announced one."""
        return None if self._reader is None else self._reader.cap


class _Probe(ResultPage):
    """A page that only checks whether there are more solutions, and does not use them.

    `failure`: the error if the probe fails; None: a failure means that there are no more.
    """

    def __init__(
        self, url: str, query: Select, new_reader: _NewReader, failure: IncompleteResult | None
    ) -> None:
        super().__init__(url, query, new_reader, _Counting, lambda: True)
        self._failure = failure

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, SourceError) or isinstance(error, SourceTimeout):
            return False
        if self._failure is not None:
            raise self._failure from error
        return True


class _Counting(ResponseReader):
    """Counts solutions and yields none."""

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        for _ in super().feed(piece):
            pass
        return iter(())


def pages(
    request: Request, profile: Profile, *, asked: tuple[str, ...], url: str
) -> Iterator[ResultPage]:
    """Yields the pages of a request, or a single one without paging; read each to its end before the next.

    Between pages there are probes, which yield no solutions: after a page that was shorter than requested, or if the
    endpoint's row limit may have truncated an answer without pages, a probe requests the next solution. The probe of
    pages by key yields the last group.
    """
    numbers = count()
    paged, labels = request.page_size is not None, request.labels

    def new_reader(kind: _Kind, status: int, header: Header, select: Select) -> ResponseReader:
        number = next(numbers)
        return kind(
            status,
            header,
            select.variables,
            limit=select.limit,
            asked=asked,
            url=url,
            response=number,
            scope=labels.of_response(number)
            if paged and not profile.stable_blank_nodes
            else labels.of_data,
            lenience=request.lenience,
            profile=profile,
            client_authenticates=any(
                name.title() == "Authorization" for name, _ in request.headers
            ),
            undeclared=undeclared(str(select), profile.prefixes) if status == 400 else None,
            select=select,
            condition=request.condition if select is request.select else None,
        )

    select = request.select
    if request.page_size is None:
        yield from _whole(select, profile, url, new_reader)
        return
    size, key, chosen = request.page_size, request.page_key, _chosen_key(request, profile)
    if key is not None:
        by_key(select, key, 1)  # raises an error for an unknown variable
        groups = Groups(url, key, select.variables.index(key))
        sizes = Sizes(size, profile.page_cap, first=_FIRST_PAGE if size == "auto" else size)
        yield from _by_key(select, key, groups, sizes, url, new_reader)
        return
    sizes = Sizes(size, profile.page_cap if chosen or size == "auto" else None)
    if chosen is not None:
        groups = Groups(url, chosen, select.variables.index(chosen), chosen=True)
        yield from _by_key(select, chosen, groups, sizes, url, new_reader)
        if groups.is_complete:
            return
        select = from_key(select, chosen, groups.least)
    yield from _windows(select, sizes, profile, url, new_reader)


def _chosen_key(request: Request, profile: Profile) -> str | None:
    """The variable by which the pages follow each other, if that is certain to be right; else None."""
    # a lenient reader changes IRIs
    is_strict = request.lenience is None or request.lenience.is_strict
    return paging_key(request.select) if profile.orders_iris and is_strict else None


def _whole(
    select: Select, profile: Profile, url: str, new_reader: _NewReader
) -> Iterator[ResultPage]:
    yield (whole := ResultPage(url, select, new_reader))
    cap = whole.cap or profile.row_cap
    if cap is None or whole.received < cap or (select.limit is not None and select.limit <= cap):
        return
    capped = IncompleteResult(
        f"{url} returns at most {cap} solutions, and {whole.received} came",
        # only Virtuoso announces a row limit, in a header
        hint=f"read the result in pages: page_size={cap}"
        + (', of a Virtuoso with profile="virtuoso"' if profile is PROFILES["generic"] else ""),
    )
    try:
        more = _Probe(url, _beyond(select, whole.received, profile), new_reader, capped)
    except QueryError as error:  # a dialect's LIMIT, which cannot be read
        raise capped from error
    yield more
    if more.received:
        raise capped


def _window(
    url: str,
    select: Select,
    new_reader: _NewReader,
    end: int,
    limit: int,
    overlap: Overlap,
    profile: Profile,
) -> ResultPage:
    """The last solutions that have arrived, and at most `limit` missing ones after them, up to the number `end`."""

    def missing() -> Select | None:
        start, again = overlap.count, overlap.size(limit)
        if start >= end:
            return None
        wrap, keys = profile.orders_in_sub_select, profile.page_keys
        return window(select, end - start + again, start - again, wrap=wrap, keys=keys)

    def reader(*arguments: Any, **options: Any) -> ResponseReader:
        return OverlappingReader(overlap, overlap.size(limit), *arguments, **options)

    def may_retry() -> bool:
        """Whether a response with the beginning, instead of the rest, can be detected."""
        again = overlap.size(limit)
        begins = overlap.count == again  # at OFFSET 0
        return begins or overlap.offset_is_obeyed or overlap.shows_offset(again)

    return ResultPage(url, missing, new_reader, reader, may_retry)


def _windows(
    select: Select, sizes: Sizes, profile: Profile, url: str, new_reader: _NewReader
) -> Iterator[ResultPage]:
    changing = volatile(select)
    overlap = Overlap(
        url,
        [column for column, name in enumerate(select.variables) if name not in changing],
        stable_blank_nodes=profile.stable_blank_nodes,
        hint=f'{_HINT}; of a Virtuoso with profile="virtuoso"'
        if profile is PROFILES["generic"]
        else _HINT,
    )
    while select.limit is None or overlap.count < select.limit:
        size = sizes.next
        again = overlap.size(size)
        if overlap.count and not overlap.offset_is_obeyed and not overlap.shows_offset(again):
            # an endpoint that ignores OFFSET repeats its answer, and no result has this many solutions
            yield (far := _Probe(url, _beyond(select, _FAR, profile), new_reader, None))
            if far.received:
                raise IncompleteResult(
                    f"{url} sent a solution for OFFSET {_FAR}: it does not obey OFFSET"
                )
            overlap.offset_is_obeyed = True
        end = overlap.count - again + size
        end = end if select.limit is None else min(end, select.limit)
        yield (page := _window(url, select, new_reader, end, size, overlap, profile))
        if overlap.count >= end:
            sizes.add(page.received, page.seconds)
            continue
        if not page.received:
            return
        if page.cap is None or page.received < page.cap:
            untold = IncompleteResult(
                f"{url} sent fewer solutions than requested: there may be more than {overlap.count}"
            )
            yield (more := _Probe(url, _beyond(select, overlap.count, profile), new_reader, untold))
            if not more.received:
                return
        sizes.cap(page.received)


def _by_key(
    select: Select, key: str, groups: Groups, sizes: Sizes, url: str, new_reader: _NewReader
) -> Iterator[ResultPage]:
    """The pages by a key: up to the end, which `groups` knows; or, of a chosen key, until OFFSET is better."""

    def from_last_group(size: int) -> Select:
        return by_key(select, key, size, least=groups.least)

    while True:
        before, size = (groups.count, groups.last), sizes.next
        query, kind = partial(from_last_group, size), partial(KeyReader, groups)
        # a new request begins with the incomplete group
        yield (page := ResultPage(url, query, new_reader, kind, again=lambda: True))
        if not page.received:
            if groups.last is not None:
                raise groups.vanished()
            groups.is_complete = True
            return
        if page.received < size:
            rest = by_key(select, key, 2, least=groups.least, offset=groups.pending - 1)
            yield (end := ResultPage(url, rest, new_reader, partial(KeyEnd, groups)))
            if end.received == 1:
                groups.is_complete = True
                return
            sizes.cap(page.received)
        else:
            sizes.add(page.received, page.seconds)
        if groups.chosen:
            if 2 * groups.pending > page.received:  # requested twice, and most of this page
                return
        elif (groups.count, groups.last) == before:
            raise IncompleteResult(
                f"{url} has {page.received} solutions or more with {groups.last} for ?{key}",
                hint="raise page_size above their number, or choose another key",
            )


_HINT: Final = (
    "ask again if the data changed meanwhile; otherwise the endpoint does not keep its order: name a variable that is "
    "an IRI as page_key, or let the query order its solutions by IRIs or texts, such as STR(?o)"
)


def _beyond(select: Select, position: int, profile: Profile) -> Select:
    return beyond(select, position, wrap=profile.orders_in_sub_select)
