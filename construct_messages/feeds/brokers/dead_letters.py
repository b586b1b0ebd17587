"""Destinations of records that are not messages: a file of JSON lines, or another topic of a broker."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from construct_messages.feeds.brokers.records import RecordTransport
from construct_messages.feeds.transport import Record, Transport
from construct_messages.rdf.errors import CannotWrite, UsageError
from construct_messages.rdf.files.growing import write_whole
from construct_messages.rdf.files.output import sync_folder
from construct_messages.rdf.wire import Header


class DeadLetterFile:
    """A file with a line of JSON per record, which is stored durably before the next one is read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    async def put(self, record: Record, source: str, reason: str) -> None:
        letter = {
            "source": source,
            "sequence": record.sequence,
            "place": record.place,
            "reason": reason,
            "time": datetime.now(UTC).isoformat(),
            "contentType": record.content_type,
            "key": record.key,
            "headers": dict(record.headers),
            "value": base64.b64encode(record.value).decode(),
        }
        await asyncio.to_thread(self._append, msgspec.json.encode(letter) + b"\n")

    def _append(self, line: bytes) -> None:
        try:
            with open(self._path, "a+b", buffering=0) as file:
                if (size := file.seek(0, os.SEEK_END)) and os.pread(
                    file.fileno(), 1, size - 1
                ) != b"\n":
                    line = b"\n" + line  # a line that was not finished when its process was killed
                write_whole(file, line)
                os.fsync(file.fileno())
                if not size:  # the file is new
                    sync_folder(Path(self._path).resolve().parent)
        except OSError as error:
            raise CannotWrite(f"cannot write {os.fspath(self._path)}: {error.strerror}") from error


class DeadLetterTopic:
    """Another topic of a broker. It gets each record unchanged, with its source, its place and the reason as headers.

    `opening` opens the transport of the topic, for each record.
    """

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Transport]]) -> None:
        self._opening = opening

    async def put(self, record: Record, source: str, reason: str) -> None:
        async with self._opening() as transport:
            if not isinstance(transport, RecordTransport):
                raise UsageError(
                    "dead letters go to a file, or to a topic of a broker",
                    hint="name a file, or a URL such as kafka://localhost/dead-letters",
                )
            key = f"{record.key or source}-{record.sequence}-dead"
            headers = {
                **record.headers,
                Header.DEAD_LETTER_SOURCE.value: source,
                Header.DEAD_LETTER_PLACE.value: record.place or str(record.sequence),
                Header.DEAD_LETTER_REASON.value: reason.replace("\n", "; "),
            }
            await transport.send([record._replace(key=key, headers=headers)], key)
