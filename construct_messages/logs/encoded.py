"""Encoded batches: messages as the bytes of a log, together or one by one.

A file or an HTTP response uses a batch as one block; a transport that frames messages itself, and a limit on their
size, use them one by one. The block is their concatenation. A template encoder returns the class that creates the block
fastest. No syntax here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class EncodedBatch(Protocol):
    """The messages of a batch, in order, each with its delimiter in the log."""

    def __bytes__(self) -> bytes:
        """Returns all messages, joined. This is the fast path: it should not create a `bytes` object for each
        message.
        """
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Yields the messages one by one; may be called repeatedly, and after `bytes()`."""
        ...


class EncodedMessages:
    """A batch of messages that were encoded one by one.

    >>> batch = EncodedMessages([b"<urn:a> <urn:p> 1 .\\n", b""])
    >>> bytes(batch), [len(message) for message in batch]
    (b'<urn:a> <urn:p> 1 .\\n', [20, 0])
    """

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = messages

    def __bytes__(self) -> bytes:
        return b"".join(self._messages)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._messages)


class EncodedTexts:
    """A batch of messages as text, which is encoded in UTF-8 on demand.

    >>> batch = EncodedTexts(["{}\\n", '{"@id": "urn:é"}\\n'])
    >>> len(bytes(batch)), [len(message) for message in batch]
    (21, [3, 18])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __bytes__(self) -> bytes:
        return "".join(self._texts).encode()

    def __iter__(self) -> Iterator[bytes]:
        return map(str.encode, self._texts)
