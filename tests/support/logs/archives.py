"""Tar archives of documents."""

from __future__ import annotations

import io
import tarfile


def archive(
    *files: tuple[str, bytes] | tarfile.TarInfo, format: int = tarfile.DEFAULT_FORMAT
) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=format) as tar:
        for file in files:
            if isinstance(file, tarfile.TarInfo):
                tar.addfile(file)
            else:
                name, content = file
                header = tarfile.TarInfo(name)
                header.size = len(content)
                tar.addfile(header, io.BytesIO(content))
    return written.getvalue()
