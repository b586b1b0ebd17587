"""Appends the elements of a watch: messages of solutions that are new or vanished, and what was seen with them.

What was seen is kept in the store, in the transactions that append the elements. `watching.py` asks the source, and
`comparison.py` finds what changed. RSP-QL (ISTREAM, DSTREAM, RSTREAM).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TypeVar

from construct_messages.continuous.comparison import Comparison
from construct_messages.continuous.spool import Spool, page_messages
from construct_messages.labels import Labels
from construct_messages.logs.lines.texts import to_messages
from construct_messages.query.continuous.values import Operator
from construct_messages.streams import Publication, Seen, StreamStore

T = TypeVar("T")


@dataclass(frozen=True)
class WatchChanges:
    """Where the elements of a watch go, and which of them there are.

    Args:
        store: opened to write.
        stream: the name of a stream in it, which is there.
        owner: whose state it is in the store.
        operator: which solutions become elements: new ones, vanished ones, or all.
        skip_first: append nothing of the first evaluation.
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
        """Appends what is to be given out, with what was seen of it, page by page; the state with the last page."""
        if self.operator is Operator.RSTREAM:  # all or nothing of an evaluation
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
        """What is known from now on of the digests of new solutions."""
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
        """The messages of solutions that vanished, where they are to be given out; adds what is known to the rows."""
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
    """Messages with blank nodes of their own: an earlier element may hold the nodes that they had."""
    labels = Labels()
    return [
        Publication.of(message.map_blanks(labels.in_message(number).__getitem__))
        for number, message in enumerate(to_messages(texts), 1)
    ]
