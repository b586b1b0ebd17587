"""Content codings of responses: gzip and zstd (RFC 9110, section 8.4), flushed at every chunk.

A message must not wait in a compressor for the next one, so each chunk is flushed. Bodies that a source has already
encoded are not touched.
"""

from __future__ import annotations

import sys
import zlib
from contextlib import suppress
from typing import Any, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CODINGS = ("zstd", "gzip")  # best first
_GZIP_LEVEL = 1
_ZSTD_LEVEL = 3


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self, mode: Any = ..., /) -> bytes: ...


class Coder:
    """An encoder of a body.

    Args:
        compressor: a compressor of zlib or zstd; None: the body is unchanged.
        part: the flush mode after a part.
        end: the flush mode at the end.
    """

    def __init__(self, compressor: _Compressor | None = None, part: int = 0, end: int = 0) -> None:
        self._compressor, self._part, self._end = compressor, part, end

    def code(self, data: bytes) -> bytes:
        """Encodes a part, so that a reader can decode it completely."""
        if self._compressor is None:
            return data
        return self._compressor.compress(data) + self._compressor.flush(self._part)

    def finish(self) -> bytes:
        """Returns the last bytes."""
        return b"" if self._compressor is None else self._compressor.flush(self._end)


def negotiate_coding(accept_encoding: str | None) -> str | None:
    """Returns the coding to apply, or None.

    >>> negotiate_coding("gzip, deflate, br, zstd"), negotiate_coding("gzip;q=0.5"), negotiate_coding(None)
    ('zstd', 'gzip', None)
    """
    weights: dict[str, float] = {}
    for item in (accept_encoding or "").lower().split(","):
        name, _, parameter = (part.strip() for part in item.partition(";"))
        with suppress(ValueError):  # a coding with an invalid weight is ignored
            weights[name] = float(parameter.removeprefix("q=")) if parameter else 1.0
    best = max(_CODINGS, key=lambda coding: weights.get(coding, weights.get("*", 0.0)))
    weight = weights.get(best, weights.get("*", 0.0))
    # if the client does not mention it, the identity coding is preferred less than every coding that it names
    return best if weight > weights.get("identity", 0.0) else None


def coder_for(coding: str | None) -> Coder:
    """Returns the encoder for the result of `negotiate_coding`.

    >>> coder = coder_for("gzip")
    >>> zlib.decompress(coder.code(b"one") + coder.finish(), wbits=31)
    b'one'
    """
    match coding:
        case "gzip":
            gzip = zlib.compressobj(_GZIP_LEVEL, wbits=zlib.MAX_WBITS | 16)
            return Coder(gzip, zlib.Z_SYNC_FLUSH, zlib.Z_FINISH)
        case "zstd":
            # a client that stores the body unchanged can then detect damage, as with gzip
            compressor = zstd.ZstdCompressor(
                options={
                    zstd.CompressionParameter.compression_level: _ZSTD_LEVEL,
                    zstd.CompressionParameter.checksum_flag: 1,
                }
            )
            return Coder(compressor, compressor.FLUSH_BLOCK, compressor.FLUSH_FRAME)
    return Coder()
