"""The formats of files by the extensions of their names, before an extension of compression. No file is opened here."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.files.compression import COMPRESSIONS
from construct_messages.rdf.formats import N_QUADS, READ, WRITTEN, Format

_ARCHIVES: Final = {".tgz": ".gz", ".tbz2": ".bz2", ".txz": ".xz", ".tzst": ".zst"}


def format_of_file(name: str) -> Format | None:
    """Returns the format of a file name's extension, before any extension of compression; else None.

    >>> format_of_file("log.trig.zst").name, format_of_file("log.jsonl").name, format_of_file("log.txt")
    ('TriG', 'NDJSON-LD', None)
    """
    extension = _extension(name)
    return next((format for format in READ if extension in format.extensions), None)


def default_format(name: str | None, otherwise: Format = N_QUADS) -> str:
    """Returns the format of an output log by the name of its file.

    Args:
        name: the name of the file; its extension determines the format.
        otherwise: the format without an extension or a name; N-Quads carries everything.

    Raises:
        UsageError: an unknown extension.

    >>> from construct_messages.rdf.formats import TRIG
    >>> default_format("log.ttl.gz"), default_format("log"), default_format("log.gz"), default_format(None, TRIG)
    ('ttl', 'nq', 'nq', 'trig')
    >>> default_format("data.rdf")
    Traceback (most recent call last):
    ...
    construct_messages.rdf.errors.UsageError: data.rdf: .rdf is not the extension of a log format
      hint: end the name in .nq, .trig, .nt, .ttl, .ndjsonld, .ndjson, .jsonl, .jelly, .yamlld, .yaml, .yml, .rdfxml, \
.json, .parquet, .arrow, .arrows, .feather or .csv (after it .gz, .bz2, .xz or .zst), or give the format
    """
    if name is None or not (extension := _extension(name)):
        return otherwise.extension
    if (found := next((each for each in WRITTEN if extension in each.extensions), None)) is None:
        *most, last = (f".{each}" for format in WRITTEN for each in format.extensions)
        *packings, packing = COMPRESSIONS
        raise UsageError(
            f"{name}: .{extension} is not the extension of a log format",
            hint=f"end the name in {', '.join(most)} or {last} (after it {', '.join(packings)} or {packing}), "
            "or give the format",
        )
    return found.extension


def _extension(name: str) -> str:
    """The last extension of a file's name that is not one of compression, in lower case and without the dot."""
    path = PurePath(name)
    if path.suffix.lower() in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix.lower()[1:]


def is_archive_name(name: str) -> bool:
    """Whether a file's name is that of a tar archive.

    >>> is_archive_name("stream.tar.zst"), is_archive_name("stream.ttl.gz")
    (True, False)
    """
    return packing_of_name(name)[1]


def packing_of_name(name: str) -> tuple[str | None, bool]:
    """The compression of a file by its name, and whether the name is that of an archive.

    >>> packing_of_name("stream.tgz"), packing_of_name("stream.ttl")
    (('.gz', True), (None, False))
    """
    path = PurePath(name)
    suffix = path.suffix.lower()
    if suffix in _ARCHIVES:
        return _ARCHIVES[suffix], True
    if suffix in COMPRESSIONS:
        return suffix, PurePath(path.stem).suffix.lower() == ".tar"
    return None, suffix == ".tar"
