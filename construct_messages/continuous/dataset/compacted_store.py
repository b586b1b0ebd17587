"""A store whose quads change endlessly, in bounded memory.

Oxigraph's store in memory keeps removed quads: each takes some 400 bytes and its text for ever, and queries scan them.
So the store is rebuilt when removed quads outweigh the others. docs/decisions/070-compaction-of-windows.md. No windows
and no elements here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import pyoxigraph as ox

_QUAD_BYTES: Final = 400  # the approximate size of a quad with short texts in Oxigraph 0.5
_SPARE_BYTES: Final = 1 << 16
_OF_CHANGING: Final = 4  # the factor of their weight that may be removed before a rebuild
_OF_FIXED: Final = 0.5


class CompactedStore:
    """A store in memory, which is rebuilt when it has too many removed quads.

    Args:
        fixed: the quads that always stay.

    Attributes:
        store: holds the quads; another object after each compaction.
        compactions: the number of rebuilds.

    >>> quads = CompactedStore([])
    >>> for number in range(1000):
    ...     quad = ox.Quad(ox.NamedNode(f"urn:{number}"), ox.NamedNode("urn:p"), ox.Literal(number))
    ...     quads.change(list(quads.store), [quad], [quad])
    >>> len(quads.store), quads.compactions
    (1, 6)
    """

    def __init__(self, fixed: Iterable[ox.Quad]) -> None:
        self.store = ox.Store()
        self.store.extend(fixed)
        fixed_text = self.store.dump(format=ox.RdfFormat.N_QUADS)
        assert fixed_text is not None  # without a file, it returns the bytes
        self._fixed = fixed_text  # this takes a third of the time of adding quads
        self._fixed_bytes = len(self._fixed) + _QUAD_BYTES * len(self.store)
        self._changing_bytes = self._removed_bytes = 0
        self.compactions = 0

    def change(
        self, removed: Collection[ox.Quad], added: Collection[ox.Quad], changing: Iterable[ox.Quad]
    ) -> None:
        """Removes quads and adds others.

        Args:
            removed: quads in the store, none of them fixed.
            added: quads that are not in the store.
            changing: all quads afterwards; fixed ones may be among them.
        """
        removed_bytes = sum(map(_bytes_of, removed))
        self._removed_bytes += removed_bytes
        self._changing_bytes += sum(map(_bytes_of, added)) - removed_bytes
        most = _OF_CHANGING * self._changing_bytes + _OF_FIXED * self._fixed_bytes
        if self._removed_bytes > max(_SPARE_BYTES, most):
            self._build(changing)
            return
        for quad in removed:
            self.store.remove(quad)
        self.store.extend(added)

    def _build(self, changing: Iterable[ox.Quad]) -> None:
        self.store = ox.Store()  # the old one is freed before the new one is filled
        self.store.extend(ox.parse(self._fixed, format=ox.RdfFormat.N_QUADS, lenient=True))
        self.store.extend(changing)
        self._removed_bytes = 0
        self.compactions += 1


def _bytes_of(quad: ox.Quad) -> int:
    """The approximate size of a quad in a store."""
    object = quad.object
    if isinstance(object, ox.Literal):
        return _QUAD_BYTES + len(object.value)
    return _QUAD_BYTES + (len(str(object)) if isinstance(object, ox.Triple) else 0)
