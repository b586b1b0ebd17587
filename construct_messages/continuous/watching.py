"""Watches a source: evaluates a CONSTRUCT query repeatedly, and makes elements of its new or removed solutions.

The elements are appended, and the state saved, in the same transactions. An evaluation that fails, or whose
result is incomplete, returns nothing and changes nothing, so that solutions are not reported as removed by mistake.
RSP-QL (ISTREAM, DSTREAM, RSTREAM); docs/decisions/049-state-of-continuous-queries.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from construct_messages.construct.messages import construct_messages
from construct_messages.continuous.streaming import Spool, page_messages
from construct_messages.errors import (
    ConstructMessagesError,
    IncompleteResult,
    SourceError,
    SourceTimeout,
    StoreError,
    UsageError,
)
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.query.continuous.values import Operator
from construct_messages.query.rewrite import read_results
from construct_messages.query.tokens import QueryText
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.options import Dataset, Requests
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term, has_blank, map_blanks
from construct_messages.sparql.client.retries import Attempts, Timeouts
from construct_messages.sparql.sources import Condition, Request, Validators
from construct_messages.sparql.sources.open import open_source
from construct_messages.streams import Element, Publication, Seen, StreamStore, open_store

if TYPE_CHECKING:
    from construct_messages.sparql.sources.open import SourceLike


# --- comparison -----------------------------------------------------------------------------------
# Compares the solutions of one evaluation with those of the previous one, to find new and removed solutions.
#
# Solutions are compared as a multiset, by digests of 12 bytes. Labels of blank nodes change from answer to answer, so
# they are numbered in their order in a solution; nodes shared by two solutions are not compared. No I/O. RSP-QL: the
# comparison of ISTREAM and DSTREAM; docs/decisions/049-state-of-continuous-queries.md.

_BYTES: Final = 12  # the probability that two of ten million solutions collide is about 10^-15
_BLANK: Final = b"_:"


class Known:
    """The solutions of the previous evaluation: their number for each digest, updated by the caller that commits them.

    Python's own hash is many times faster than a digest. So a solution without blank nodes that occurred once is found
    by its hash if this process has seen it. The hash has 64 bits and a different key in each process: with n known
    solutions, a new one collides with a probability of n / 2^64.
    """

    def __init__(self, counts: dict[bytes, int]) -> None:
        self.counts = counts
        self.by_hash: dict[int, bytes] = {}

    def others(self) -> dict[bytes, int]:
        """The counts of digests that have no hash."""
        if len(self.by_hash) == len(self.counts):
            return {}
        found = set(self.by_hash.values())
        return {digest: count for digest, count in self.counts.items() if digest not in found}


class Comparison:
    """Compares the solutions of one evaluation with those of the previous one, batch by batch.

    `new` has the digests of the new solutions so far, in order, with repetitions.


    >>> known = Known({})
    >>> first = Comparison(known)
    >>> first.feed(Solutions.of([("<urn:a>",), ("<urn:a>",), ("_:b",)]))
    <Solutions: 3 of response 0>
    >>> known.counts.update({digest: first.new.count(digest) for digest in first.new})
    >>> first.settle()
    >>> second = Comparison(known)
    >>> list(second.feed(Solutions.of([("<urn:c>",), ("<urn:a>",), ("_:other",)])))
    [('<urn:c>',)]
    >>> list(second.vanished.values())
    [1]
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._left, self._others = set(known.by_hash), known.others()
        self._met: list[tuple[int, bytes]] = []
        self.new: list[bytes] = []

    def feed(self, solutions: Solutions) -> Solutions | None:
        """Adds the next solutions, and returns the new ones, or None."""
        columns = solutions.utf8
        hashes = list(map(hash, zip(*columns, strict=True)))
        distinct = set(hashes)
        places: Iterable[int] = ()
        if len(distinct) == len(hashes):
            unknown = distinct - self._left
            self._left -= distinct
            if unknown:
                places = [place for place, each in enumerate(hashes) if each in unknown]
        else:
            places = [place for place, each in enumerate(hashes) if not self._take(each)]
        new = []
        for place in places:
            row = b"\n".join(
                [column[place] for column in columns]
            )  # no canonical term holds a line break
            digest = _digest(row)
            if _BLANK not in row:
                self._met.append((hashes[place], digest))
            count = self._others.pop(digest, 0)
            if count == 0:
                new.append(place)
                self.new.append(digest)
            elif count > 1:
                self._others[digest] = count - 1
        if len(new) == len(hashes):
            return solutions if new else None
        return solutions.take(new) if new else None

    def _take(self, found: int) -> bool:
        if found not in self._left:
            return False
        self._left.remove(found)
        return True

    @property
    def vanished(self) -> Mapping[bytes, int]:
        """Returns how often each digest is missing, after the last solution."""
        return {self._known.by_hash[each]: 1 for each in self._left} | self._others

    def settle(self) -> None:
        """Stores the hashes of the solutions of this evaluation, after the counts were updated."""
        by_hash, counts = self._known.by_hash, self._known.counts
        for each in self._left:
            del by_hash[each]
        for each, digest in self._met:
            if counts.get(digest) == 1:
                by_hash[each] = digest
            else:
                by_hash.pop(each, None)


def _digest(row: bytes) -> bytes:
    if _BLANK in row:
        row = _numbered(row)
    return blake2b(row, digest_size=_BYTES).digest()


def _numbered(row: bytes) -> bytes:
    """A solution with its blank nodes numbered by their order."""
    names: dict[Term, Term] = {}

    def name(node: Term) -> Term:
        return names.setdefault(node, Term(f"_:{len(names)}"))

    terms = [Term(text) for text in row.decode().split("\n")]
    return "\n".join(map_blanks(term, name) if has_blank(term) else term for term in terms).encode()


def digest_of(batches: Iterable[Solutions]) -> bytes:
    """Returns one digest of all solutions of a result, independent of their order.

    >>> a, b = Solutions.of([("<urn:a>",)]), Solutions.of([("<urn:b>",)])
    >>> digest_of([a, b]) == digest_of([b, a]), digest_of([a, b]) == digest_of([a, b, b])
    (True, False)
    """
    rows = (row for batch in batches for row in map(b"\n".join, zip(*batch.utf8, strict=True)))
    every = sorted(map(_digest, rows))
    return blake2b(b"".join(every), digest_size=_BYTES).digest()


# --- changes --------------------------------------------------------------------------------------
# Appends the elements of a watch: messages of new or removed solutions, together with the seen solutions.
#
# The digests of seen solutions are saved in the store, in the transactions that append the elements. `watching.py`
# finds the changes. RSP-QL (ISTREAM, DSTREAM, RSTREAM).

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


# --- freshness ------------------------------------------------------------------------------------
# Detects whether a source may have changed since it was read: by the state of files, HTTP validators, or a query.
#
# An unknown state counts as a change. The watched query is evaluated elsewhere.

_SETTLED_SECONDS: Final = 2.0
"""Seconds within which a file may change again with the same state, because clocks of file systems are coarse."""


class Freshness(msgspec.Struct, frozen=True):
    """The state of a source when it was read.

    Args:
        source: its name; None: an object of a library.
        files: inode, size and times of change of each file; None: no files, or they may have changed since.
        etag, modified: see `Condition`.
        change: the digest of the change query's result, in hexadecimal.
    """

    source: str | None = None
    files: list[list[int]] | None = None
    etag: str | None = None
    modified: str | None = None
    change: str | None = None

    def encode(self) -> bytes:
        """Encodes it for the store."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, kept: bytes | None) -> Self | None:
        """Decodes the result of `encode`; None if nothing is stored."""
        return None if kept is None else msgspec.json.decode(kept, type=cls)


def name_of(source: Any) -> str | None:
    """Returns the name of a source: its URL or paths; None for an object of a library."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, Sequence):
        return "\n".join(os.fspath(path) for path in source)
    return None


class Files:
    """The state of the files of a source before they are read.

    `settled` is their state if any later change would change it; None if it might not, or there are no files.
    """

    def __init__(self, source: Any) -> None:
        named = name_of(source)
        self._paths = [] if named is None else [Path(path) for path in named.split("\n")]
        self._look = self._looks()
        newest = max((max(look[2:]) for look in self._look or ()), default=0)
        self.settled = self._look if newest < time.time_ns() - _SETTLED_SECONDS * 1e9 else None

    async def check(self) -> None:
        """Checks, after reading, that they are unchanged."""
        if self._look is not None and await asyncio.to_thread(self._looks) != self._look:
            raise SourceError(f"{self._paths[0]} changed while it was read", transient=True)

    def _looks(self) -> list[list[int]] | None:
        try:
            stats = [path.stat() for path in self._paths if path.is_file()]
        except OSError:
            return None
        if not stats or len(stats) < len(self._paths):
            return None
        return [[stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for stat in stats]


class ChangeQuery:
    """A SELECT or ASK query whose result changes whenever the result of the watched query may have changed."""

    def __init__(
        self,
        query: str,
        source: Any,
        *,
        base: str | None,
        prefixes: Mapping[str, str] | None,
        dataset: Dataset,
        requests: Requests,
    ) -> None:
        self._query, self._source, self._dataset, self._requests = query, source, dataset, requests
        self._select = read_results(query, base=base, prefixes=prefixes)

    async def digest(self) -> str:
        """Returns a digest of the query and its result, independent of the order of the result."""
        opened = await asyncio.to_thread(
            partial(open_source, self._source, **self._requests.opening)
        )
        dataset = self._dataset
        request = Request(
            self._select,
            tuple(dataset.default_graph),
            tuple(dataset.named_graphs),
            timeout=self._requests.timeout,
        )
        try:
            async with aclosing(opened.asolutions(request)) as batches:
                result = digest_of([batch async for batch in batches])
        finally:
            if opened is not self._source:
                opened.close()
        return blake2b(self._query.encode() + b"\n" + result, digest_size=16).hexdigest()


# --- watching -------------------------------------------------------------------------------------


NAME: Final = "watch"
"""The name of the stream, and of the owner of the state, in a store of a single watch."""

READ_SECONDS: Final = 600.0
"""The default of the seconds in which an endpoint may send nothing: an evaluation that stalls would be the last."""

_LOGGER: Final = logging.getLogger(__name__)
_LONGEST_PAUSE: Final = 3600.0  # the maximal pause that a source may request


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation.

    Args:
        elements: the number of elements that were appended.
        error: the reason of a failure; None: it succeeded. A failed evaluation is repeated.

    >>> Evaluation(elements=2).error is None
    True
    """

    elements: int
    error: ConstructMessagesError | None = None


class Watch:
    """A query whose solutions are watched, with a store for its state and its elements.

    Args:
        query: the text of a CONSTRUCT query.
        source: see `construct_messages`. It is opened for each evaluation, so that files are read again.
        store: opened to write.
        stream: the name of an existing stream in it.
        owner: the owner of the state in the store.
        operator: selects the solutions that become elements: new ones, removed ones, or all.
        change_query: the text of a SELECT or ASK query that is sent first: if its result has not changed since the last
            complete evaluation, nothing is evaluated; or None.
        skip_first: append no elements for the solutions of the first evaluation.
        skip_empty: append no messages without quads.
        skolemize, bindings, prefixes, base, dataset: see `construct_messages`.
        requests: see `construct_messages`; an endpoint that sends nothing for ten minutes fails, unless
            `read_seconds` is another time.

    Raises:
        QueryError: the change query is not valid.

    >>> import asyncio
    >>> import pyoxigraph as ox
    >>> from tempfile import TemporaryDirectory
    >>> from construct_messages.streams import open_store
    >>> data = ox.Store()
    >>> data.load(b"<urn:a> <urn:size> 1 .", format=ox.RdfFormat.TURTLE)
    >>> with TemporaryDirectory() as folder, open_store(f"{folder}/streams.db") as store:
    ...     _ = store.create("sizes")
    ...     query = "CONSTRUCT { ?s <urn:grew> ?n } WHERE { ?s <urn:size> ?n }"
    ...     watch = Watch(query, data, store=store, stream="sizes", owner="sizes")
    ...     [asyncio.run(watch.evaluate()) for _ in range(2)]
    [1, 0]
    """

    def __init__(
        self,
        query: str,
        source: SourceLike,
        *,
        store: StreamStore,
        stream: str,
        owner: str,
        operator: Operator = Operator.ISTREAM,
        change_query: str | None = None,
        skip_first: bool = False,
        skip_empty: bool = False,
        skolemize: str | None = None,
        bindings: Mapping[str, Any] | None = None,
        prefixes: Mapping[str, str] | None = None,
        base: str | None = None,
        dataset: Dataset = Dataset(),
        requests: Requests = Requests(),
    ) -> None:
        if requests.read_seconds is None:
            requests = replace(requests, read_seconds=READ_SECONDS)
        meant: dict[str, Any] = {
            "bindings": bindings,
            "dataset": dataset,
            "prefixes": prefixes,
            "base": base,
            "skolemize": skolemize,
        }
        self._ask = partial(construct_messages, query, source, requests=requests, **meant)
        self._change = (
            change_query
            if change_query is None
            else ChangeQuery(
                change_query,
                source,
                base=base,
                prefixes=prefixes,
                dataset=dataset,
                requests=requests,
            )
        )
        self._query, self._source, self._retries = query, source, requests.retries
        self._store, self._owner, self._operator = store, owner, operator
        self._changes = WatchChanges(
            store, stream, owner, operator, skip_first=skip_first, skip_empty=skip_empty
        )
        self._fingerprint = _fingerprint(QueryText(query).compact, operator, meant)
        # earlier releases took the text as it is
        self._fingerprints = {self._fingerprint, _fingerprint(query, operator, meant)}
        self._known: Known | None = None  # as in the store; None: to be read
        self._succeeded = False

    async def evaluations(self, every: float) -> AsyncGenerator[Evaluation]:
        """Evaluates repeatedly, without end.

        Args:
            every: seconds from the start of one evaluation to the start of the next; a longer evaluation is not
                interrupted.

        Raises:
            ConstructMessagesError: the first evaluation cannot succeed, or the store cannot be written.
        """
        loop = asyncio.get_running_loop()
        while True:
            begun, pause = loop.time(), every
            try:
                done = Evaluation(await self.evaluate())
            except StoreError:
                raise
            except ConstructMessagesError as error:
                asked = error.retry_after if isinstance(error, SourceError) else None
                if not self._succeeded and not (isinstance(error, SourceError) and error.transient):
                    raise
                done, pause = Evaluation(0, error), max(every, min(asked or 0, _LONGEST_PAUSE))
            yield done
            await asyncio.sleep(begun + pause - loop.time())

    async def evaluate(self) -> int:
        """Evaluates once; a truncated answer is requested again, up to `retries` times.

        Returns:
            The number of appended elements.

        Raises:
            ConstructMessagesError: it failed; see `construct_messages`. Nothing was appended then, except after a
                StoreError: appended elements are complete, and count as seen.
        """
        async for attempt in Attempts(self._retries, Timeouts(None), _is_cut):
            with attempt:
                try:
                    count = await self._evaluate()
                except SourceTimeout:  # an OSError, too
                    raise
                except OSError as error:
                    raise SourceError(f"cannot read the source: {error}") from error
        self._succeeded = True
        return count

    async def _evaluate(self) -> int:
        state = await self._store.asaved_state(self._owner)
        self._check_query(state)
        before, known = Freshness.decode(state.get("source")), await self._read_known()
        files = await asyncio.to_thread(Files, self._source)
        change = None if self._change is None else await self._change.digest()
        now = Freshness(name_of(self._source), files.settled, change=change)
        validators = Validators()
        if before is not None and before.source == now.source:
            if change is not None and change == before.change:
                return 0
            if self._operator is not Operator.RSTREAM:  # it returns all each time, changed or not
                if now.files is not None and now.files == before.files:
                    return 0
                validators = Validators(before.etag, before.modified)
        condition, comparison = Condition(validators), Comparison(known)
        with Spool() as spool:
            messages = await asyncio.to_thread(self._ask)
            async with messages, aclosing(messages.abatches(condition)) as batches:
                async for batch in batches:
                    new = batch if self._operator is Operator.RSTREAM else comparison.feed(batch)
                    if new is not None:
                        for message in messages.instantiate(new):
                            spool.add(message)
            await files.check()
            if condition.unchanged:
                return 0
            now = Freshness(now.source, now.files, *condition.received, change)
            kept = {"query": self._fingerprint, "source": now.encode()}
            changed = {key: value for key, value in kept.items() if state.get(key) != value}
            self._known = None  # until all of them are written
            count = await self._changes.commit(
                comparison, known.counts, spool, changed, first=before is None
            )
            comparison.settle()
            self._known = known
            return count

    async def _read_known(self) -> Known:
        if self._operator is Operator.RSTREAM:
            return Known({})
        if self._known is None:
            self._known = Known(await self._store.aseen(self._owner))
        return self._known

    def _check_query(self, state: Mapping[str, bytes]) -> None:
        if "query" in state and state["query"] not in self._fingerprints:
            raise UsageError(
                "the state is that of another query, operator or dataset",
                hint="use another state, or remove this one to begin again",
            )


def _fingerprint(query: str, operator: Operator, meant: Mapping[str, Any]) -> bytes:
    """Returns a digest of everything that determines the messages of a source, without querying the source."""
    parts = [operator.value, query]
    for value in meant.values():
        parts.append(
            repr(sorted(value.items(), key=str) if isinstance(value, Mapping) else value or None)
        )
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def as_operator(name: Operator | str) -> Operator:
    """Returns the operator with a name, in any case.

    >>> as_operator("dstream")
    <Operator.DSTREAM: 'DSTREAM'>
    """
    try:
        return Operator(name.upper() if isinstance(name, str) else name)
    except ValueError:
        hint = f"choose {', '.join(operator.value.lower() for operator in Operator)}"
        raise UsageError(f"operator={name!r} is unknown", hint=hint) from None


def _is_cut(error: SourceError) -> bool:
    """Whether to request an answer again here; before its first solution, the source itself retries."""
    return isinstance(error, IncompleteResult)


@checked
async def watch(
    query: str,
    source: SourceLike = None,
    *,
    every: float = 60.0,
    operator: Operator | str = Operator.ISTREAM,
    state: str | os.PathLike[str] | None = None,
    change_query: str | None = None,
    skip_first: bool = False,
    skip_empty: bool = False,
    skolemize: str | None = None,
    bindings: Mapping[str, Any] | None = None,
    prefixes: Mapping[str, str] | None = None,
    base: str | None = None,
    dataset: Dataset = Dataset(),
    requests: Requests = Requests(),
) -> AsyncGenerator[Element]:
    """Yields the new solutions of a CONSTRUCT query when they appear, each as an element, without end.

    An evaluation that fails or is incomplete yields nothing and is repeated; this is logged.

    Args:
        query: the text of the query.
        source: see `construct_messages`; files are read again each time.
        every: seconds from the start of one evaluation to that of the next.
        operator: `"istream"` yields new solutions, `"dstream"` removed ones, `"rstream"` all of each evaluation.
        state: a file for the state, to continue after a restart: no solution is lost. Elements are removed from it in
            pages of up to a thousand, when the element after a page is requested: those of the last page are repeated,
            with the same sequences. None: all solutions are new at the start.
        change_query: a SELECT or ASK query that is sent first: if its result has not changed since the last complete
            evaluation, nothing is evaluated.
        skip_first: do not yield the solutions of the first evaluation.
        skip_empty: leave out messages without quads.
        skolemize, bindings, prefixes, base, dataset: see `construct_messages`.
        requests: see `construct_messages`; an endpoint that sends nothing for ten minutes fails, unless
            `read_seconds` is another time.

    Raises:
        QueryError: the query is not a valid CONSTRUCT query.
        UsageError: an invalid option, or the state of another query.
        SourceError: the first evaluation failed.
        StoreError: the state cannot be read or written.

    >>> import asyncio, pyoxigraph as ox
    >>> store = ox.Store()
    >>> store.add(ox.Quad(ox.NamedNode("urn:a"), ox.NamedNode("urn:p"), ox.Literal("1")))
    >>> async def follow():
    ...     async for element in watch("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }", store, every=0.01):
    ...         print(element.sequence, element.message)
    ...         if element.sequence == 2:
    ...             break
    ...         store.add(ox.Quad(ox.NamedNode("urn:b"), ox.NamedNode("urn:p"), ox.Literal("2")))
    >>> asyncio.run(follow())
    1 <Message of 1 quad: <urn:a> <urn:q> "1" .>
    2 <Message of 1 quad: <urn:b> <urn:q> "2" .>
    """
    if not every >= 0:
        raise UsageError(f"every={every} is less than 0", hint="give seconds")
    with state_store(state) as store:
        watching = Watch(
            query,
            source,
            store=store,
            stream=NAME,
            owner=NAME,
            operator=as_operator(operator),
            change_query=change_query,
            skip_first=skip_first,
            skip_empty=skip_empty,
            skolemize=skolemize,
            bindings=bindings,
            prefixes=prefixes,
            base=base,
            dataset=dataset,
            requests=requests,
        )
        async with aclosing(_taken(store)) as elements:  # of an earlier run
            async for element in elements:
                yield element
        async with aclosing(watching.evaluations(every)) as evaluations:
            async for evaluation in evaluations:
                if evaluation.error is not None:
                    _LOGGER.warning("the evaluation failed and is retried: %s", evaluation.error)
                if evaluation.elements:
                    async with aclosing(_taken(store)) as elements:
                        async for element in elements:
                            yield element


@contextmanager
def state_store(state: str | os.PathLike[str] | None) -> Iterator[StreamStore]:
    """Opens the store of one watch, with its stream, in a file; None: in a temporary file."""
    with ExitStack() as stack:
        if state is None:
            state = (
                Path(stack.enter_context(TemporaryDirectory(prefix="construct-messages-")))
                / "watch.db"
            )
        store = stack.enter_context(open_store(state))
        store.create(NAME, exist_ok=True)
        yield store


async def _taken(store: StreamStore) -> AsyncGenerator[Element]:
    """Yields the waiting elements; each is removed when the next one is requested."""
    async with aclosing(store.apages(NAME)) as pages:
        async for page in pages:
            for element in page:
                yield element
            await store.atrim(NAME, page[-1].sequence)
