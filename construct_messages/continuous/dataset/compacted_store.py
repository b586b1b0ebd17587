"""A store that quads enter and leave without end, in bounded memory.

Oxigraph's store in memory keeps what is removed from it: each quad takes some 400 bytes and its text for ever, and
queries walk over it. So the store is built again when removed quads outweigh the others.
docs/decisions/070-compaction-of-windows.md. Windows and elements are not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import pyoxigraph as ox

_QUAD_BYTES: Final = 400  # about what Oxigraph 0.5 takes for a quad with short texts
_SPARE_BYTES: Final = 1 << 16
_OF_CHANGING: Final = 4  # times their weight may have been removed, before the store is built again
_OF_FIXED: Final = 0.5


class CompactedStore:
    """A store in memory, which is built again when it has kept too many removed quads.

    Args:
        fixed: the quads that always stay.

    Attributes:
        store: holds the quads; another object after each compaction.
        compactions: how often it was built again.

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
        assert fixed_text is not None  # without a file, it is what is returned
        self._fixed = fixed_text  # which takes a third of what quads would
        self._fixed_bytes = len(self._fixed) + _QUAD_BYTES * len(self.store)
        self._changing_bytes = self._removed_bytes = 0
        self.compactions = 0

    def change(
        self, removed: Collection[ox.Quad], added: Collection[ox.Quad], changing: Iterable[ox.Quad]
    ) -> None:
        """Takes quads out and puts others in.

        Args:
            removed: quads that are there, none of them fixed.
            added: quads that are not there.
            changing: all that are there afterwards; fixed ones may be among them.
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
    """About what a store takes for a quad."""
    object = quad.object
    if isinstance(object, ox.Literal):
        return _QUAD_BYTES + len(object.value)
    return _QUAD_BYTES + (len(str(object)) if isinstance(object, ox.Triple) else 0)
