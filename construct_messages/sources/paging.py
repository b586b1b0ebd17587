"""Row caps and pages: which SELECTs to send so that the whole result comes, and when it cannot have come.

A page is a window of LIMIT and OFFSET over the query (`query/pages.py` writes it); each is a response of its own.
Sources send what `pages` gives and feed what comes back into the page's reader. Nothing here opens a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import TracebackType
from typing import Final, TypeAlias

from construct_messages.errors import IncompleteResult, QueryError, SourceError, SourceTimeout
from construct_messages.query.pages import beyond
from construct_messages.query.pages import page as window
from construct_messages.query.select import Select
from construct_messages.solutions import Solutions
from construct_messages.sources import Request
from construct_messages.sources.profiles import Profile
from construct_messages.sources.response import Header, ResponseReader

_FIRST_PAGE: Final = 500

_NewReader: TypeAlias = Callable[[int, Header, tuple[str, ...]], ResponseReader]


@dataclass
class Page:
    """One part of a result: the SELECT that asks for what of it is still to come, and the reader of the answer.

    A context manager around all attempts at it, which says what their failure means.

    Args:
        url: the endpoint, as errors name it.
        rest: the SELECT for what is behind so many solutions of the page; None where that is nothing.
        resumable: whether `rest` can tell what came from what is to come.
        new_reader: makes the reader of a response from status, headers and variables.
    """

    url: str
    rest: Callable[[int], Select | None]
    resumable: bool
    new_reader: _NewReader
    _before: int = field(default=0, init=False)
    _reader: ResponseReader | None = field(default=None, init=False)

    def __enter__(self) -> None:
        """Nothing is to be done before."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """A failure is what it is."""

    @property
    def select(self) -> Select | None:
        """What to send; None where all has come."""
        return self.rest(self.count)

    def open(self, status: int, header: Header) -> ResponseReader:
        """The reader for the response that has come; see `ResponseReader` for its errors."""
        select = self.select
        assert select is not None
        self._before, self._reader = self.count, None
        self._reader = self.new_reader(status, header, select.variables)
        return self._reader

    def may_retry(self, _: SourceError) -> bool:
        """Whether the page can be sent again without a solution coming twice."""
        return self.resumable or not self.count

    @property
    def count(self) -> int:
        """How many solutions came."""
        return self._before + self.count_of_last

    @property
    def count_of_last(self) -> int:
        """How many solutions came in the last response."""
        return 0 if self._reader is None else self._reader.count

    @property
    def cap(self) -> int | None:
        """How many solutions the endpoint gives at most, if it said so."""
        return None if self._reader is None else self._reader.cap


@dataclass
class _Probe(Page):
    """A page that only asks whether there is anything; where it is refused, there may be."""

    failure: IncompleteResult

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, SourceError) and not isinstance(error, SourceTimeout):
            raise self.failure from error


class _Counting(ResponseReader):
    """Counts solutions and gives none."""

    def feed(self, data: bytes) -> Iterator[Solutions]:
        for _ in super().feed(data):
            pass
        return iter(())


def pages(request: Request, profile: Profile, *, asked: tuple[str, ...], url: str) -> Iterator[Page]:
    """The pages of a request, each to be read to its end before the next is taken; one if no paging is asked for.

    Where the endpoint's cap may have cut an answer that was not asked for in pages, a last one, which gives nothing,
    asks for one solution behind it.

    Raises:
        IncompleteResult: the endpoint's cap cut the result, or it sent more than a page.
    """
    numbers = count()
    paged, labels = request.page_size is not None, request.labels

    def new_reader(
        kind: type[ResponseReader], status: int, header: Header, variables: tuple[str, ...]
    ) -> ResponseReader:
        number = next(numbers)
        return kind(
            status,
            header,
            variables,
            asked=asked,
            url=url,
            response=number,
            scope=labels.of_response(number) if paged and not profile.stable_blank_nodes else labels.of_data,
            timeouts=profile.timeouts,
            client_authenticates=any(name.title() == "Authorization" for name, _ in request.headers),
        )

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
            next_one = beyond(select, whole.count, wrap=_wraps(profile, select.offset + whole.count + 1))
        except QueryError as error:  # a dialect's LIMIT, which cannot be told
            raise capped from error
        yield (probe := _Probe(url, lambda _: next_one, True, partial(new_reader, _Counting), capped))
        if probe.count:
            raise capped
        return
    # the first page is small: an engine gives the beginning of an order sooner than a lot of it
    full, position = request.page_size, 0
    size = min(full, _FIRST_PAGE)
    while (part := _window(select, size, position, profile)) is not None:
        wanted = part.limit or 0
        rest = partial(_rest, select, wanted, position, profile)
        yield (page := Page(url, rest, True, partial(new_reader, ResponseReader)))
        if page.count > wanted:
            raise IncompleteResult(f"{url} sent {page.count} solutions for a page of {wanted}: it does not heed LIMIT")
        if page.count < wanted:
            if not page.cap or page.count_of_last < page.cap:
                return  # nothing is left
            full = page.cap
        size = full
        position += page.count


def _rest(select: Select, wanted: int, position: int, profile: Profile, came: int) -> Select | None:
    return _window(select, wanted - came, position + came, profile) if came < wanted else None


def _window(select: Select, size: int, position: int, profile: Profile) -> Select | None:
    return window(select, size, position, wrap=_wraps(profile, select.offset + position + size))


def _wraps(profile: Profile, end: int) -> bool:
    return profile.sort_window is not None and end > profile.sort_window
