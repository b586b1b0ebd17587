"""Appends the elements of a watch: messages of new or removed solutions, together with the seen solutions.

The digests of seen solutions are saved in the store, in the transactions that append the elements. `watching.py`
queries the source, and `comparison.py` finds the changes. RSP-QL (ISTREAM, DSTREAM, RSTREAM).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TypeVar

from construct_messages.continuous.comparison import Comparison
from construct_messages.continuous.spool import Spool, page_messages
from construct_messages.logs.lines.texts import to_messages
from construct_messages.query.continuous.values import Operator
from construct_messages.rdf.labels import Labels
from construct_messages.streams import Publication, Seen, StreamStore

T = TypeVar("T")


@dataclass(frozen=True)
class WatchChanges:
    """The output of a watch: the stream, and the selection of elements.

    Args:
        store: opened to write.
        stream: the name of an existing stream in it.
        owner: the owner of the state in the store.
        operator: selects the solutions that become elements: new ones, removed ones, or all.
        skip_first: append no solutions of the first evaluation.
        skip_empty: append no messages without quads.
    """

    store: StreamStore
    stream: str
    owner: str
    operator: Operator
    skip_first: bool
    skip_empty: bool

    async def commit(
        self,
        comparison: Comparison,
        seen: dict[bytes, int],
        spool: Spool,
        state: Mapping[str, bytes | None],
        *,
        first: bool,
    ) -> int:
        """Appends the selected messages with their digests, page by page, and the state with the last page."""
        if self.operator is Operator.RSTREAM:  # an evaluation is appended completely or not at all
            messages = [message for page in spool.pages() for message in page]
            return await self._append(messages, state=state)
        quiet = first and self.skip_first
        digests, vanished = (
            iter(comparison.new),
            _paged(iter(comparison.vanished.items()), page_messages(len(seen))),
        )
        pages = zip_longest(spool.pages(len(seen)), vanished, fillvalue=())
        count, page, following = 0, next(pages, None), next(pages, None)
        while True:
            new, missing = page or ((), ())
            rows = self._appeared(seen, zip(new, digests, strict=False))  # the page ends first
            gone = await self._vanished(seen, rows, missing)
            given = gone if self.operator is Operator.DSTREAM else () if quiet else new
            kept = state if following is None else None
            if rows or kept:
                count += await self._append(given, rows.values(), kept)
            for digest, each in rows.items():
                if each.count:
                    seen[digest] = each.count
                else:
                    del seen[digest]
            if following is None:
                return count
            page, following = following, next(pages, None)

    def _appeared(
        self, seen: Mapping[bytes, int], new: Iterable[tuple[Publication, bytes]]
    ) -> dict[bytes, Seen]:
        """Returns the records of the digests of new solutions."""
        rows: dict[bytes, Seen] = {}
        for message, digest in new:
            before = rows[digest].count if digest in rows else seen.get(digest, 0)
            rows[digest] = Seen(
                digest, before + 1, message.nquads if self.operator is Operator.DSTREAM else None
            )
        return rows

    async def _vanished(
        self,
        seen: Mapping[bytes, int],
        rows: dict[bytes, Seen],
        missing: Sequence[tuple[bytes, int]],
    ) -> Sequence[Publication]:
        """Returns the messages of removed solutions, if selected; adds the records of their digests to the rows."""
        contents: Sequence[bytes | None] = [None] * len(missing)
        if self.operator is Operator.DSTREAM:
            contents = await self.store.aseen_contents(
                self.owner, [digest for digest, _ in missing]
            )
        gone = []
        for (digest, number), content in zip(missing, contents, strict=True):
            left = seen[digest] - number
            rows[digest] = Seen(digest, left, content if left else None)
            gone += [(content or b"").decode()] * number
        return _anew(gone) if self.operator is Operator.DSTREAM else ()

    async def _append(
        self,
        messages: Sequence[Publication],
        seen: Iterable[Seen] = (),
        state: Mapping[str, bytes | None] | None = None,
    ) -> int:
        if self.skip_empty:
            messages = [message for message in messages if message.nquads]
        appended = await self.store.acommit(
            self.owner, state, seen=seen, stream=self.stream, messages=messages
        )
        return len(appended)


def _paged(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while page := list(islice(items, size)):
        yield page


def _anew(texts: Sequence[str]) -> list[Publication]:
    """Renames the blank nodes of messages, because an earlier element may have the same nodes."""
    labels = Labels()
    return [
        Publication.of(message.map_blanks(labels.in_message(number).__getitem__))
        for number, message in enumerate(to_messages(texts), 1)
    ]
