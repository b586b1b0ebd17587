"""Writing messages as logs: a folder with a file for each partition, or one ordered file.

N-Quads and N-Triples logs are written by Spark's text writer, without Python workers: the delimiter is in the value,
and the bytes are those of `logs/lines/encoder.py`. Any other log is written by the encoders of `logs/`, through the
data source `rdfm`. A file gets its name when it is complete. RDF Messages, section 3. No queries here.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pyarrow import fs
from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import expr

from construct_messages.logs import FormatOptions, check_options
from construct_messages.rdf.errors import CannotWrite, IncompleteResult, UsageError
from construct_messages.rdf.files.output import atomic_file
from construct_messages.rdf.formats import N_QUADS, N_TRIPLES, Format, Syntax, content_type
from construct_messages.spark.frames.messages import MESSAGE
from construct_messages.spark.logs import register
from construct_messages.spark.logs.files import place_of, s3_settings
from construct_messages.spark.logs.owners import Owner
from construct_messages.spark.logs.runs import Run
from construct_messages.spark.logs.text_folders import (
    FIGURES,
    NO_COMPRESSION,
    PARTITION,
    parts_in,
    write_parts,
    write_texts,
)
from construct_messages.spark.session import is_remote, translated
from construct_messages.spark.sql.values import literal

MODES: Final = ("error", "overwrite", "append")
"""The values of `mode`: how an existing folder is treated."""

_VALUE: Final = "value"
_BREAK: Final = literal("\n")
_QUADS: Final = f"if({MESSAGE} = '', 0, 1 + octet_length({MESSAGE}) - octet_length(replace({MESSAGE}, {_BREAK})))"
_FIGURES: Final = ("count(1) AS messages", f"sum({_QUADS}) AS quads")
# the compressions of Spark's text writer that need no library of the system, by Spark's names
_CODECS: Final = {None: NO_COMPRESSION, "gzip": "gzip", "bzip2": "bzip2"}
_CHUNK_BYTES: Final = 1 << 20
_URL: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.\-]+:")


class Written(NamedTuple):
    """The numbers of messages and quads of a log."""

    message_count: int
    quads: int


def write_folder(
    messages: DataFrame,
    path: str | os.PathLike[str],
    format: Format,
    syntax: Syntax,
    *,
    graphs: bool = True,
    prefixes: Mapping[str, str] | None = None,
    options: FormatOptions | None = None,
    mode: str = "error",
    compression: str | None = None,
    lenient: bool = False,
) -> Written:
    """Writes one log per partition into a folder, which contains `_SUCCESS` when all of them are complete.

    Args:
        messages: a frame with the column `message`; partitions are written in their order.
        path: the folder, on any filesystem that Spark can write to.
        format, syntax: the format and the syntax of the logs.
        graphs: whether messages may have named graphs.
        prefixes: for formats that have prefixes.
        options: options of the format.
        mode: one of `MODES`. Only logs that earlier runs have recorded are overwritten.
        compression: `"gzip"`, `"bzip2"`, `"zstd"` or another codec that Spark knows; None: no compression.
        lenient: write malformed IRIs and language tags unchanged.

    Raises:
        UsageError: an unknown mode, an existing folder, or files of others in one to overwrite.
        UnsupportedByFormat: the format cannot represent a quad.
        IncompleteResult: another job wrote to the folder at the same time, or its existing logs are incomplete.
    """
    if mode not in MODES:
        raise UsageError(f"mode {mode!r} is unknown", hint=f"choose one of {', '.join(MODES)}")
    check_options(format, options)
    # over Spark Connect, Spark's own overwriting would remove files that no run has recorded
    removes = mode == "overwrite" and is_remote(messages.sparkSession)
    if removes or not (_is_native(format, syntax, graphs=graphs) and compression in _CODECS):
        how = {"compression": compression} if compression else {}
        return _write_rdfm(
            messages, os.fspath(path), format, syntax, graphs, prefixes, options, mode, how, lenient
        )
    values, observation = _observed(messages, _value(syntax, announced=True))
    with translated():
        media_type = content_type(format, syntax)
        write_texts(
            values,
            observation,
            os.fspath(path),
            media_type,
            mode=mode,
            compression=_CODECS[compression],
        )
        return _written(observation)


def write_file(
    messages: DataFrame,
    path: str | os.PathLike[str],
    format: Format,
    syntax: Syntax,
    *,
    graphs: bool = True,
    prefixes: Mapping[str, str] | None = None,
    options: FormatOptions | None = None,
    lenient: bool = False,
) -> Written:
    """Writes one log with all messages in their order. Partitions are written in the same folder and then concatenated.

    Args:
        messages: a frame with the column `message`.
        path: a file on a filesystem that the driver and all executors share; compressed if it ends in `.gz`, `.bz2`,
            `.xz` or `.zst`.
        format, syntax, graphs, prefixes, options, lenient: as for `write_folder`.

    Raises:
        CannotWrite: the path cannot be written.
        IncompleteResult: the executors write to another filesystem.
        UnsupportedByFormat: as for `write_folder`.
    """
    if _URL.match(name := os.fspath(path)):
        raise UsageError(
            f"{name} is no file of this machine", hint="name a folder: it may be on any filesystem"
        )
    target = Path(name.removeprefix("file:"))
    check_options(format, options)
    if _is_native(format, syntax, graphs=graphs):
        with _parts(messages, syntax, target) as (parts, written), atomic_file(target) as log:
            log.write(syntax.announcement.encode())
            for chunk in _chunks(parts):
                log.write(chunk)
        return written
    how = {"single": "true"}
    return _write_rdfm(
        messages,
        os.fspath(path),
        format,
        syntax,
        graphs,
        prefixes,
        options,
        "overwrite",
        how,
        lenient,
    )


def _write_rdfm(
    messages: DataFrame,
    path: str,
    format: Format,
    syntax: Syntax,
    graphs: bool,
    prefixes: Mapping[str, str] | None,
    options: FormatOptions | None,
    mode: str,
    how: Mapping[str, str],
    lenient: bool,
) -> Written:
    place = place_of(path, s3_settings(messages.sparkSession))
    if mode == "error" and place.files.get_file_info(place.path).type != fs.FileType.NotFound:
        raise UsageError(
            f"{path} exists already", hint="choose another path, or ask for it to be overwritten"
        )
    register(messages.sparkSession)
    observation = Observation()
    writer = messages.observe(observation, *map(expr, _FIGURES)).write.format("rdfm").options(**how)
    writer = (
        writer.option("format", content_type(format, syntax))
        .option("graphs", graphs)
        .option("lenient", lenient)
    )
    writer = writer.option("prefixes", json.dumps(dict(prefixes or {})))
    if options is not None:
        writer = writer.option(format.extension, json.dumps(options.as_dict()))
    with translated():
        # a data source in Python has no mode "error", which is checked above
        writer = writer.option("alone", "true") if mode == "error" else writer
        writer.mode("append" if mode == "error" else mode).save(path)
        return _written(observation)


def _is_native(format: Format, syntax: Syntax, *, graphs: bool) -> bool:
    """Returns whether each message can be written as its own N-Quads lines."""
    carries = format == N_QUADS or (format == N_TRIPLES and not graphs)
    return carries and syntax.triple_terms and syntax.directions


def _value(syntax: Syntax, *, announced: bool) -> str:
    """Returns SQL of a message with its delimiter, without the last line break."""
    delimiter = literal(syntax.delimiter.removesuffix("\n"))
    if syntax.delimiter_first:
        value = f"if({MESSAGE} = '', {delimiter}, concat({delimiter}, {_BREAK}, {MESSAGE}))"
    else:
        value = f"if({MESSAGE} = '', {delimiter}, concat({MESSAGE}, {_BREAK}, {delimiter}))"
    if announced and syntax.announcement:
        # the lower 33 bits count within a partition
        is_first = "monotonically_increasing_id() & 8589934591 = 0"
        return f"concat(if({is_first}, {literal(syntax.announcement)}, ''), {value})"
    return value


def _observed(messages: DataFrame, value: str) -> tuple[DataFrame, Observation]:
    """Returns the values of a text file, and the observation of their numbers."""
    observation = Observation()
    values = messages.selectExpr(MESSAGE, f"{value} AS {_VALUE}", PARTITION)
    values = values.observe(observation, *map(expr, (*_FIGURES, *FIGURES)))
    return values.select(_VALUE), observation


def _written(observation: Observation) -> Written:
    return Written(observation.get["messages"], observation.get["quads"] or 0)


@contextmanager
def _parts(
    messages: DataFrame, syntax: Syntax, target: Path
) -> Iterator[tuple[Sequence[Path], Written]]:
    """Writes the messages of each partition to a file; yields the files in order, and removes them after the block."""
    values, observation = _observed(messages, _value(syntax, announced=False))
    try:
        if not (above := target.absolute().parent).is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        run = Run.begin(place_of(str(above)), Owner.this())
    except OSError as error:
        raise CannotWrite(
            f"cannot write {target}: {error.strerror or error}", hint="choose another place"
        ) from error
    try:
        folder = f"{run.hidden}/logs"
        with translated():
            write_parts(values, f"file:{folder}")
            written, size = _written(observation), observation.get["bytes"] or 0
        parts = sorted(parts_in(place_of(folder)))
        found = sum(part.bytes for part in parts)
        if found != size:
            raise IncompleteResult(
                f"of {size} bytes only {found} came to {target.parent}: the executors write to another filesystem",
                hint="name a folder on a filesystem that they share, or a folder for a file a partition",
            )
        yield [Path(folder, part.name) for part in parts], written
    finally:
        run.end()


def _chunks(parts: Sequence[Path]) -> Iterator[bytes]:
    for part in parts:
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
        part.unlink()  # so that the disk never holds the whole log twice
