"""Row caps and pages: which SELECTs to send so that the whole result comes, and when it cannot have come.

A page is a window of LIMIT and OFFSET over the query (`query/pages.py` writes it); each is a response of its own.
Sources send what `pages` gives and feed what comes back into the page's reader. Nothing here opens a socket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from construct_messages.errors import IncompleteResult
from construct_messages.query.pages import page as window
from construct_messages.query.select import Select
from construct_messages.sources import Request
from construct_messages.sources.profiles import Profile
from construct_messages.sources.response import Header, ResponseReader


@dataclass
class Page:
    """One SELECT to send, and the reader of its answer once that has begun."""

    select: Select
    number: int
    scope: str
    asked: tuple[str, ...]
    url: str
    _reader: ResponseReader | None = field(default=None, init=False)

    def open(self, status: int, header: Header) -> ResponseReader:
        """The reader for the response that has come; see `ResponseReader` for its errors."""
        self._reader = ResponseReader(
            status,
            header,
            self.select.variables,
            asked=self.asked,
            url=self.url,
            response=self.number,
            scope=self.scope,
        )
        return self._reader

    @property
    def count(self) -> int:
        """How many solutions came."""
        return 0 if self._reader is None else self._reader.count

    @property
    def cap(self) -> int | None:
        """How many solutions the endpoint gives at most, if it said so."""
        return None if self._reader is None else self._reader.cap


def pages(request: Request, profile: Profile, *, asked: tuple[str, ...], url: str) -> Iterator[Page]:
    """The pages of a request, each to be read to its end before the next is taken; one if no paging is asked for.

    Raises:
        IncompleteResult: the endpoint's cap cut the result, or it sent more than a page.
    """
    select = request.select
    if request.page_size is None:
        page = Page(select, 0, "d", asked, url)
        yield page
        if page.cap is not None and page.count >= page.cap and (select.limit is None or select.limit > page.cap):
            raise IncompleteResult(
                f"{url} gives at most {page.cap} solutions, and {page.count} came",
                # the header that announces a cap is Virtuoso's, which sorts large offsets only inside a sub-select
                hint=f"read the result in pages: page_size={page.cap}"
                + ("" if profile.wrap_slices else ', of a Virtuoso with profile="virtuoso"'),
            )
        return
    size, position, number = request.page_size, 0, 0
    while (part := window(select, size, position, wrap=profile.wrap_slices)) is not None:
        page = Page(part, number, "d" if profile.stable_blank_nodes else f"p{number}_", asked, url)
        yield page
        wanted = part.limit or 0
        if page.count > wanted:
            raise IncompleteResult(f"{url} sent {page.count} solutions for a page of {wanted}: it does not heed LIMIT")
        if page.count < wanted:
            if not page.cap or page.count < page.cap:
                return  # nothing is left
            size = page.cap
        position += page.count
        number += 1
