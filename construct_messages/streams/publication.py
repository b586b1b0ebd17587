"""Publications: messages as rows of a store, and the digest that identifies a publication.

No database here.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, NamedTuple

from construct_messages.checking import Checker
from construct_messages.message import Message
from construct_messages.streams.element import GENERATED_AT, generated_at
from construct_messages.terms import Term

_GENERATED: Final = f"<{GENERATED_AT}>".encode()


class Publication(NamedTuple):
    """One message that is to be appended.

    Args:
        nquads, generated: see `Element`.
    """

    nquads: bytes
    generated: str | None = None

    @classmethod
    def of(cls, message: Message) -> Publication:
        """A message as it is stored."""
        nquads = message.lines[:-1]
        return cls(nquads, generated_at(message) if _GENERATED in nquads else None)


class Publications(NamedTuple):
    """Messages that are to be appended together.

    Args:
        messages: in order.
        size: how many bytes of N-Quads they have.
        idempotency: the publisher's key for them and the digest of what they say; None: it has none.
    """

    messages: list[Publication]
    size: int
    idempotency: tuple[str, bytes] | None = None

    @classmethod
    def of(cls, messages: Iterable[Message | Publication], key: str | None = None) -> Publications:
        """Messages as they are stored.

        Args:
            messages: those that are publications already stay as they are; they have no key.
            key: the publisher's.

        Raises:
            TermError: a message is no RDF.
        """
        checker = Checker()
        publications = []
        digest = None if key is None else _Digest()
        for message in messages:
            if isinstance(message, Publication):
                publications.append(message)
                continue
            checker.check(message)
            publication = Publication.of(message)
            publications.append(publication)
            if digest is not None:
                digest.add(message, publication.nquads)
        size = sum(len(publication.nquads) for publication in publications)
        return cls(publications, size, None if key is None or digest is None else (key, digest.value))


class _Digest:
    """Identifies the messages of a publication, whatever their blank nodes are called.

    A publisher that sends a log again sends the same labels, and a decoder gives other ones each time.
    """

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._names: dict[Term, Term] = {}

    def add(self, message: Message, nquads: bytes) -> None:
        """Adds the next message, which is also given as it is stored."""
        if b"_:" in nquads:
            nquads = message.map_blanks(self._name).lines[:-1]
        self._hash.update(b"%d " % len(nquads))
        self._hash.update(nquads)

    def _name(self, node: Term) -> Term:
        return self._names.setdefault(node, Term(f"_:b{len(self._names)}"))

    @property
    def value(self) -> bytes:
        """Of all messages so far."""
        return self._hash.digest()
