"""Detects whether a source may have changed since it was read: by the state of files, HTTP validators, or a query.

An unknown state counts as a change. The watched query is evaluated elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from construct_messages.continuous.comparison import digest_of
from construct_messages.query.results import read_results
from construct_messages.rdf.errors import SourceError
from construct_messages.rdf.options import Dataset, Requests
from construct_messages.sparql.sources import Request
from construct_messages.sparql.sources.open import open_source

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

    Args:
        source: see `construct_messages`.

    Attributes:
        settled: their state, if any later change would change it; None if it might not, or there are no files.
    """

    def __init__(self, source: Any) -> None:
        named = name_of(source)
        self._paths = [] if named is None else [Path(path) for path in named.split("\n")]
        self._look = self._looks()
        newest = max((max(look[2:]) for look in self._look or ()), default=0)
        self.settled = self._look if newest < time.time_ns() - _SETTLED_SECONDS * 1e9 else None

    async def check(self) -> None:
        """Checks, after reading, that they are unchanged.

        Raises:
            SourceError: they changed meanwhile.
        """
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
    """A query whose result changes whenever the result of the watched query may have changed.

    Args:
        query: the text of a SELECT or ASK query.
        source: see `construct_messages`.
        base, prefixes, dataset, requests: see `construct_messages`.

    Raises:
        QueryError: another form of query, or a SELECT that does not name its variables.
    """

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
        """Returns a digest of the query and its result, independent of the order of the result.

        Raises:
            SourceError: there is no complete result.
        """
        opened = await asyncio.to_thread(
            partial(open_source, self._source, **self._requests.opening)
        )
        dataset = self._dataset
        request = Request(
            self._select,
            dataset.default_graph,
            dataset.named_graphs,
            timeout=self._requests.timeout,
        )
        try:
            async with aclosing(opened.asolutions(request)) as batches:
                result = digest_of([batch async for batch in batches])
        finally:
            if opened is not self._source:
                opened.close()
        return blake2b(self._query.encode() + b"\n" + result, digest_size=16).hexdigest()
