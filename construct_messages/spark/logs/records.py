"""Records of brokers on Spark: columns of bytes and headers as messages, and messages as such columns.

For streams and tables of Spark's own connectors, such as that of Kafka. RDF Messages, section 3: the value of a record
is one message, and a header names its media type; a value may also be a log, if its media type is that of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BinaryType, StringType

from construct_messages.errors import LimitExceeded, LogError, UsageError, shown
from construct_messages.feeds.transport import TYPE_HEADERS
from construct_messages.logs import MESSAGE_BYTES, DecoderOptions
from construct_messages.logs.documents import (
    CONTEXTS,
    DocumentReader,
    document_format,
    document_syntax,
    document_writer,
    implied_context,
)
from construct_messages.logs.lines.decoder import to_messages, to_text
from construct_messages.rdf.formats import FORMATS, N_QUADS
from construct_messages.rdf.formats.lookup import find_format
from construct_messages.rdf.formats.media_types import read_media_type
from construct_messages.rdf.labels import Labels

MALFORMED: Final = ("fail", "null")
"""The values of `malformed`, for records that are not messages."""


def from_rdfm(
    value: Column | str,
    headers: Column | str | None = None,
    *,
    media_type: str | None = None,
    identity: Column | str | Sequence[Column | str] = (),
    base: str | None = None,
    message_bytes: int = MESSAGE_BYTES,
    malformed: str = "fail",
) -> Column:
    """Returns a column of the messages in a column of bytes: an array of texts like those of the data source `rdfm`.

    A document is an array of one message, a log one of all its messages. NULL stays NULL; `explode` leaves it out.

    Args:
        value: the bytes, such as the column `value` of Spark's source for Kafka.
        headers: the headers, an array of structs of `key` and `value`, such as the column `headers` of that source with
            the option `includeHeaders`. They name the media type of the value: `RDF-Message-Content-Type`, or else
            `content-type`.
        media_type: the media type of values without one in their headers.
        identity: columns that identify a record, such as topic, partition and offset. Blank nodes of records with
            another identity have other labels. Without it, only those of records with equal bytes have equal labels.
        base: resolve relative IRIs against this IRI.
        message_bytes: refuse messages of more bytes.
        malformed: for values that are not messages: `"fail"` ends the job, `"null"` makes them NULL.

    Raises:
        UsageError: an unknown media type, or value of `malformed`.
        LogError: a malformed value; raised by `session.translated()` around an action.

    >>> records = spark.createDataFrame([(b"<urn:a> <urn:p> 1, 2 .",)], "value BINARY")
    >>> messages = records.select(F.explode(from_rdfm("value", media_type="text/turtle")).alias("message"))
    >>> print(messages.collect()[0]["message"].replace("^^<http://www.w3.org/2001/XMLSchema#integer>", ""))
    <urn:a> <urn:p> "1" .
    <urn:a> <urn:p> "2" .
    """
    if malformed not in MALFORMED:
        raise UsageError(
            f"malformed={malformed!r} is unknown", hint=f"choose one of {', '.join(MALFORMED)}"
        )
    if media_type is not None:
        _reader(media_type, base, message_bytes)
    elif headers is None:
        raise UsageError(
            "nothing names the media type of the values",
            hint="pass the column of headers, or media_type=",
        )
    fails = malformed == "fail"

    def read(values: pa.Array, types: pa.Array, identities: pa.Array) -> pa.Array:
        rows = values.to_pylist(), types.to_pylist(), identities.to_pylist()
        texts = _read(*rows, base, message_bytes, fails)
        return pa.array(texts, pa.list_(pa.string()))

    columns = [identity] if isinstance(identity, Column | str) else identity
    named = _type_in(headers) if headers is not None else F.lit(None)
    return arrow_udf(read, ArrayType(StringType()))(  # type: ignore[no-any-return,call-overload] # as documented
        value,
        F.coalesce(named, F.lit(media_type)).cast("string"),
        F.concat_ws(" ", *(F.col(c) if isinstance(c, str) else c for c in columns)),
    )


def to_rdfm(message: Column | str, media_type: str | None = None) -> Column:
    """Returns a column of records of messages: a struct of `value` and `headers`, as Spark's sink for Kafka needs them.

    Args:
        message: texts like those of the data source `rdfm`: canonical N-Quads lines joined by LF.
        media_type: the media type of the values; None: N-Quads.

    Raises:
        UsageError: an unknown media type.
        LogError: a text that is not a message; UnsupportedByFormat: the format cannot carry it. Both are raised by
            `session.translated()` around an action.

    >>> messages = spark.createDataFrame([("<urn:a> <urn:p> <urn:b> .",)], ["message"])
    >>> record = messages.select(to_rdfm("message", "text/turtle").alias("record")).collect()[0]["record"]
    >>> print(bytes(record["value"]).decode().strip(), record["headers"][0]["key"])
    <urn:a> <urn:p> <urn:b> . RDF-Message-Content-Type
    """
    format = N_QUADS if media_type is None else document_format(media_type)
    written = format.document_type if media_type is None else media_type
    name = format.name

    def write(messages: pa.Array) -> pa.Array:
        return pa.array(_written(messages.to_pylist(), name), pa.binary())

    value = arrow_udf(write, BinaryType())(message)  # type: ignore[call-overload] # as documented
    named = F.lit(written).cast("binary")
    headers = [
        F.struct(F.lit(header).alias("key"), named.alias("value")) for header in TYPE_HEADERS
    ]
    return F.struct(value.alias("value"), F.array(*headers).alias("headers"))


def _type_in(headers: Column | str) -> Column:
    """Returns the media type that headers name, whose names are case-insensitive."""
    column = F.col(headers) if isinstance(headers, str) else headers

    def of(name: str) -> Column:
        found = F.filter(column, lambda header: F.lower(header["key"]) == name.lower())
        return F.get(found, F.lit(0))["value"].cast("string")

    return F.coalesce(*map(of, TYPE_HEADERS))


@lru_cache(maxsize=32)  # a header can name any number of types
def _reader(media_type: str, base: str | None, message_bytes: int) -> DocumentReader:
    name, parameters = read_media_type(media_type) or ("", {})
    context = implied_context(name, parameters)
    if any(name in format.documents for format in FORMATS):
        format = document_format(media_type)
        syntax = document_syntax(media_type, format)
    else:  # of a log
        format, syntax = find_format(media_type)
    options = DecoderOptions(
        base=base, contexts=CONTEXTS, context=context, message_bytes=message_bytes, comments=False
    )
    return DocumentReader(format, options, syntax)


def _read(
    values: Sequence[bytes | None],
    types: Sequence[str | None],
    identities: Sequence[str],
    base: str | None,
    message_bytes: int,
    fails: bool,
) -> list[list[str] | None]:
    first = types[0] if len({*types}) == 1 else None
    if first is not None and None not in values:
        # all together, if they are lines with labels of this package: several times as fast
        lines = _reader(first, base, message_bytes).lines(cast("Sequence[bytes]", values))
        if lines is not None:
            return [[each[:-1].decode()] for each in lines]
    read = list[list[str] | None]()
    for value, media_type, identity in zip(values, types, identities, strict=True):
        try:
            read.append(_messages(value, media_type, identity, base, message_bytes))
        except (LogError, LimitExceeded, UsageError) as error:
            if fails:
                number, position = (
                    (error.number, error.position) if isinstance(error, LogError) else (1, None)
                )
                raise LogError(
                    f"in the record {identity or shown(repr(value))}: {error.message}",
                    number=number,
                    position=position,
                    hint=error.hint,
                ) from error
            read.append(None)
    return read


def _messages(
    value: bytes | None, media_type: str | None, identity: str, base: str | None, message_bytes: int
) -> list[str] | None:
    if value is None:
        return None
    if media_type is None:
        raise UsageError(
            "no header names a media type", hint="pass the one that values have: media_type="
        )
    reader = _reader(media_type, base, message_bytes)
    if not value and reader.syntax is None:
        return [""]
    place = identity or blake2b(value, digest_size=16).hexdigest()
    options = replace(reader.options, labels=Labels.at(f"{place} {media_type}"))
    return [*map(to_text, replace(reader, options=options).messages(value))]


def _written(texts: Sequence[str | None], name: str) -> list[bytes | None]:
    write = document_writer(next(format for format in FORMATS if format.name == name))
    messages = iter(to_messages([text for text in texts if text is not None]))
    return [None if text is None else write(next(messages)) for text in texts]
