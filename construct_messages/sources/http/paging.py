"""Pages: the SELECT queries for a whole result, and the detection of results that row limits cut short.

A page is a window of LIMIT and OFFSET over the query (`query/pages.py` writes it) and has a separate response. Sources
send the queries of `pages`, and feed each response to the page's reader. Opens no socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, Final, TypeAlias

from construct_messages.errors import IncompleteResult, QueryError, SourceError, SourceTimeout
from construct_messages.query.pages import beyond
from construct_messages.query.pages import page as window
from construct_messages.query.prologue import undeclared
from construct_messages.query.select import Select
from construct_messages.solutions import Solutions
from construct_messages.sources import Request
from construct_messages.sources.http.profiles import Profile
from construct_messages.sources.http.response import Header, ResponseReader
from construct_messages.terms import Term, has_blank, map_blanks

_FIRST_PAGE: Final = 500
_ANY_BLANK: Final = Term("_:")
_FAR: Final = 1_000_000_000  # solutions; what 32 bits hold, for engines that count with no more

_NewReader: TypeAlias = Callable[[int, Header, Select], ResponseReader]


@dataclass
class Page:
    """A part of a result: the SELECT for the missing solutions, and the reader of the response.

    It is a context manager around all attempts, and translates their failures.

    Args:
        url: the endpoint, for errors.
        rest: returns the SELECT for the page after some of its solutions have arrived; None: nothing is missing.
        resumable: whether `rest` can tell solutions that have arrived from those that are missing.
        new_reader: creates the reader of a response from status, headers and the query that was sent.
    """

    url: str
    rest: Callable[[int], Select | None]
    resumable: bool
    new_reader: _NewReader
    _before: int = field(default=0, init=False)
    _reader: ResponseReader | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Prepares nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Leaves failures as they are."""

    @property
    def select(self) -> Select | None:
        """The query to send; None: all solutions have arrived."""
        return self.rest(self.count)

    def open(self, status: int, header: Header) -> ResponseReader:
        """Creates the reader for a response; see `ResponseReader` for its errors."""
        select = self.select
        assert select is not None
        self._before, self._reader = self.count, None
        self._reader = self.new_reader(status, header, select)
        return self._reader

    def may_retry(self, _: SourceError) -> bool:
        """Whether the page can be requested again without duplicating a solution."""
        return self.resumable or not self.count

    @property
    def count(self) -> int:
        """The number of solutions so far."""
        return self._before + self.count_of_last

    @property
    def count_of_last(self) -> int:
        """The number of solutions in the last response."""
        return 0 if self._reader is None else self._reader.count

    @property
    def cap(self) -> int | None:
        """The row limit of the endpoint, if it has announced one."""
        return None if self._reader is None else self._reader.cap


@dataclass
class _Probe(Page):
    """A page that only checks whether there are more solutions.

    Args:
        failure: the meaning of a failed probe; None: there are no more.
    """

    failure: IncompleteResult | None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, SourceError) or isinstance(error, SourceTimeout):
            return False
        if self.failure is not None:
            raise self.failure from error
        return True


class _Counting(ResponseReader):
    """Counts solutions and yields none."""

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        for _ in super().feed(piece):
            pass
        return iter(())


@dataclass
class _Offsets:
    """Detects endpoints that ignore OFFSET and send the same page repeatedly.

    Pages have an order, so each begins after the last solution of the previous one. But solutions may be equal, blank
    nodes cannot be compared across responses, and the query's own order may use variables that solutions do not
    contain.

    Attributes:
        own_order: whether the query has its own order.
        are_heeded: a page began differently from the previous one.
        are_in_doubt: a page in the query's own order began like the previous one.
    """

    own_order: bool
    are_heeded: bool = False
    are_in_doubt: bool = False
    _first: tuple[Term, ...] | None = None  # solutions of the last response
    _last: tuple[Term, ...] | None = None

    def begin(self, solution: tuple[Term, ...], url: str) -> None:
        """Processes the first solution of a response.

        Raises:
            IncompleteResult: it equals that of the previous response, which had further solutions.
        """
        first = tuple(map_blanks(term, lambda _: _ANY_BLANK) for term in solution)
        if self._first is not None and first != self._first:
            self.are_heeded = True
        elif self._first is not None and not self.are_heeded and self.own_order:
            self.are_in_doubt = True
        elif self._first is not None and not self.are_heeded and not self.may_repeat:
            raise IncompleteResult(f"{url} sent the same page again: it does not heed OFFSET")
        self._first = first

    def end(self, solution: tuple[Term, ...]) -> None:
        """Processes the last solution of a response so far."""
        self._last = solution

    @property
    def may_repeat(self) -> bool:
        """Whether the next page may legally begin like the previous one."""
        return self._first == self._last or any(has_blank(term) for term in self._first or ())


class _InOrder(ResponseReader):
    """Passes the first and last solution of the response to `_Offsets`."""

    def __init__(self, offsets: _Offsets, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._offsets = offsets

    def feed(self, piece: bytes) -> Iterator[Solutions]:
        for batch in super().feed(piece):
            if self.count == len(batch):
                self._offsets.begin(batch.at(0), self._url)
            self._offsets.end(batch.at(-1))
            yield batch


def pages(request: Request, profile: Profile, *, asked: tuple[str, ...], url: str) -> Iterator[Page]:
    """Yields the pages of a request, or a single one without paging; read each to its end before the next.

    Between pages there are probes, which yield no solutions: after a page that was shorter than requested, or if the
    endpoint's row limit may have cut an answer without pages, a probe requests the next solution.

    Raises:
        IncompleteResult: the row limit of the endpoint cut the result, or it sent the same page again.
    """
    numbers = count()
    paged, labels = request.page_size is not None, request.labels

    def new_reader(kind: Callable[..., ResponseReader], status: int, header: Header, select: Select) -> ResponseReader:
        number = next(numbers)
        return kind(
            status,
            header,
            select.variables,
            limit=select.limit,
            asked=asked,
            url=url,
            response=number,
            scope=labels.of_response(number) if paged and not profile.stable_blank_nodes else labels.of_data,
            lenience=request.lenience,
            timeouts=profile.timeouts,
            client_authenticates=any(name.title() == "Authorization" for name, _ in request.headers),
            undeclared=undeclared(str(select), profile.prefixes) if status == 400 else None,
            condition=request.condition if select is request.select else None,
        )

    def probe(position: int, failure: IncompleteResult | None) -> _Probe:
        one = beyond(select, position, wrap=_wraps(profile, select.offset + position + 1))
        return _Probe(url, lambda _: one, True, partial(new_reader, _Counting), failure)

    select = request.select
    if request.page_size is None:
        yield (whole := Page(url, lambda _: select, False, partial(new_reader, ResponseReader)))
        if whole.cap is None or whole.count < whole.cap or (select.limit is not None and select.limit <= whole.cap):
            return
        capped = IncompleteResult(
            f"{url} gives at most {whole.cap} solutions, and {whole.count} came",
            # the header that announces a cap is Virtuoso's, which sorts large offsets only inside a sub-select
            hint=f"read the result in pages: page_size={whole.cap}"
            + ("" if profile.sort_window else ', of a Virtuoso with profile="virtuoso"'),
        )
        try:
            next_one = probe(whole.count, capped)
        except QueryError as error:  # a dialect's LIMIT, which cannot be told
            raise capped from error
        yield next_one
        if next_one.count:
            raise capped
        return
    # the first page is small: an engine gives the beginning of an order sooner than a lot of it
    full, position = request.page_size, 0
    size = min(full, _FIRST_PAGE)
    offsets = _Offsets(own_order=bool(select.order))

    def probe_offsets() -> Iterator[Page]:
        # an endpoint that ignores OFFSET answers as it did before; and none has so many solutions
        yield (far := probe(_FAR, None))
        if far.count:
            raise IncompleteResult(f"{url} sent a solution for OFFSET {_FAR}: it does not heed OFFSET")
        offsets.are_heeded = True

    while (part := _window(select, size, position, profile)) is not None:
        if position and offsets.may_repeat and not offsets.are_heeded:
            yield from probe_offsets()
        wanted = part.limit or 0
        rest = partial(_rest, select, wanted, position, profile)
        yield (page := Page(url, rest, True, partial(new_reader, partial(_InOrder, offsets))))
        position += page.count
        if offsets.are_in_doubt and not offsets.are_heeded:
            yield from probe_offsets()
        if page.count < wanted:
            if not page.count_of_last:
                return
            if page.cap is None or page.count_of_last < page.cap:
                untold = IncompleteResult(f"{url} sent {page.count} solutions for a page of {wanted}, maybe not all")
                yield (next_one := probe(position, untold))
                if not next_one.count:
                    return
            full = page.count_of_last  # what it gives at most, announced or not
        size = full


def _rest(select: Select, wanted: int, position: int, profile: Profile, came: int) -> Select | None:
    return _window(select, wanted - came, position + came, profile) if came < wanted else None


def _window(select: Select, size: int, position: int, profile: Profile) -> Select | None:
    return window(select, size, position, wrap=_wraps(profile, select.offset + position + size))


def _wraps(profile: Profile, end: int) -> bool:
    return profile.sort_window is not None and end > profile.sort_window
