"""Messages as structs and as JSON documents, in Spark's Python workers.

The fields of structs are those of `logs/columns`, the documents those of `logs/json`. No pyspark here: a worker imports
this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from construct_messages.logs import EncoderOptions
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.quads import QUADS, SPLIT, WHOLE, MessageRows
from construct_messages.logs.columns.types import arrow
from construct_messages.logs.json.documents import JsonEncoder
from construct_messages.logs.lines.decoder import to_messages
from construct_messages.rdf.formats import JSON_DOCUMENTS
from construct_messages.spark.tables.columns import Mapped

DOCUMENTS: Final = "document STRING"
"""The schema of JSON documents."""


def structs_schema(raw: bool) -> str:
    """Returns the schema of messages as structs.

    >>> structs_schema(True)
    'quads ARRAY<STRUCT<subject: STRING, predicate: STRING, object: STRING, graph: STRING>>'
    """
    fields = ", ".join(f"{name}: STRING" for name in (WHOLE if raw else SPLIT))
    return f"{QUADS} ARRAY<STRUCT<{fields}>>"


def structs(raw: bool) -> Mapped:
    """Returns a function that yields batches of `structs_schema` for batches of messages."""
    options = ColumnOptions("nested", raw=raw)

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = MessageRows(options, {})
            made = []
            for message in to_messages(batch.column(0).to_pylist(), 1):
                made += rows.add(message)
            for each in (*made, *rows.finish()):
                yield each.select([QUADS])

    return make


def json_documents(options: EncoderOptions) -> Mapped:
    """Returns a function that yields batches of JSON documents for batches of messages.

    Raises:
        UsageError: a frame or context that has no meaning.
    """

    def encoder() -> JsonEncoder:
        assert JSON_DOCUMENTS.own is not None
        return JsonEncoder(JSON_DOCUMENTS, JSON_DOCUMENTS.own, options)

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        encode = encoder().encode_document
        for batch in batches:
            messages = to_messages(batch.column(0).to_pylist(), 1)
            documents = [encode(message).decode() for message in messages]
            yield arrow().RecordBatch.from_pydict({"document": documents})

    encoder()  # refuses the options here, before a job runs
    return make
