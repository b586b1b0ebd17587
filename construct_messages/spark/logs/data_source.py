"""The class of the data source `rdfm`, from which Spark makes readers and writers of tables and of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StringType, StructType

from construct_messages.errors import UsageError
from construct_messages.feeds.table import kinds_for
from construct_messages.spark.logs.options import (
    FolderStreamOptions,
    ReadOptions,
    ServerOptions,
    ServerStreamOptions,
    WriteOptions,
)
from construct_messages.spark.logs.sinks import FolderWriter, LogJob, ServerWriter
from construct_messages.spark.logs.source import SCHEMA, LogReader

_ELEMENTS: Final = (
    StructType().add("stream", "string").add("sequence", "long").add("message", "string")
)
_OF_QUERY: Final = ("checkpointlocation", "queryname")
"""The options of a streaming query itself, which its sink gets as well."""


class LogSource(DataSource):
    """Logs and streams as a data source; see `register`."""

    # settings of the session for S3, as options: a data source sees only its own options
    session: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return "rdfm"

    def schema(self) -> StructType:
        return _ELEMENTS if self._is_stream else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._is_stream:
            raise UsageError(
                f"{self._path} is a stream, which is read by readStream",
                hint='readStream.format("rdfm").load(…), with trigger(availableNow=True) for what there is',
            )
        self._check_schema(schema)
        return LogReader(ReadOptions.of(self._given))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            from construct_messages.spark.logs.streams import (
                FolderStreamReader,
                ServerStreamReader,
            )
        except ImportError as error:  # of the limits of batches
            raise UsageError(
                f"streams are read by pyspark 4.2 or later, and this is {pyspark.__version__}",
                hint="pip install 'pyspark>=4.2', in the version of the cluster",
            ) from error
        self._check_schema(schema)
        if not self._is_stream:
            return FolderStreamReader(FolderStreamOptions.of(self._given))
        if not self._path.lower().startswith(("http:", "https:")):
            raise UsageError(
                f"{self._path} is not a stream of a server of this package",
                hint="read topics of Kafka by Spark's own connector, and from_rdfm(value, headers)",
            )
        return ServerStreamReader(ServerStreamOptions.of(self._given, "read a stream"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        self._check_messages(schema)
        if not self._is_stream and "batchid" not in self.options:
            return LogJob.begin(WriteOptions.of(self._given), overwrite=overwrite)
        if overwrite:
            raise UsageError(
                "a stream, or a folder of micro-batches, only grows", hint='write by mode("append")'
            )
        return self._sink()

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        self._check_messages(schema)
        if overwrite:
            raise UsageError(
                "messages are appended, and the whole result is asked for",
                hint='outputMode("append")',
            )
        return self._sink()

    def _sink(self) -> FolderWriter | ServerWriter:
        if self._is_stream:
            return ServerWriter(ServerOptions.of(self._given))
        return FolderWriter.of(WriteOptions.of(self._given))

    @property
    def _given(self) -> Mapping[str, str]:
        given = {**self.session, **self.options}
        return {name: given[name] for name in given if name not in _OF_QUERY}

    @property
    def _path(self) -> str:
        return self.options.get("path", "")

    @property
    def _is_stream(self) -> bool:
        return bool(kinds_for(self._path))

    def _check_schema(self, schema: StructType) -> None:
        if schema != self.schema():
            raise UsageError(
                "logs have a fixed schema",
                hint="leave schema() out, and select what you need",
            )

    def _check_messages(self, schema: StructType) -> None:
        if "message" not in schema.names or not isinstance(schema["message"].dataType, StringType):
            raise UsageError(
                f"no column `message` of strings among {', '.join(schema.names)}",
                hint="give each message as lines of N-Quads in a column of that name",
            )
