"""Logs as data: `spark.read.format("rdfm")` and `frame.write.format("rdfm")`, once `register` has been called.

A log is read as rows (file, block, ordinal, message). `source` cuts logs into parts for tasks, and `streams` reads them
as they appear. `sinks` writes logs from many tasks, which count by the records of `runs`. `records` converts records of
brokers. `data_source` is the class that Spark knows. RDF Messages, section 3.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REGISTERING: Final = Lock()


def register(spark: SparkSession) -> None:
    """Registers the data source `rdfm` in a session. Repeated calls are allowed.

    Reading returns the columns `file` (a URI), `block` (the byte offset of the part that one task has read), `ordinal`
    (the number of the message in its block, from 0) and `message` (canonical N-Quads lines joined by LF, empty for an
    empty message). (file, block, ordinal) is the order of the messages; `with_sequence` numbers them. Blank nodes of
    different logs have different labels. All options are optional:

    - `format`, `messages`, `base`, `contexts` (as JSON), `messageBytes`, `sharedLabels`: as for `read_log`
    - `maxPartitionBytes`: the size of the parts of uncompressed N-Triples and N-Quads logs, and of the smaller logs
      that one task reads; 128 MiB. Every other log is read by one task.

    Paths are files, folders and patterns, of any filesystem that pyarrow supports. S3 (`s3a:`) is reached by the
    settings that the session has for Hadoop when this is called (`spark.hadoop.fs.s3a.access.key` and so on), or by
    options such as `fs.s3a.endpoint`.

    Writing needs a column `message` and a mode, `"append"` or `"overwrite"`. Each partition becomes a log in the
    folder. The names of the logs have the order of the partitions, and follow those of existing logs. Options:

    - `format` (N-Quads), `messages`, `prefixes` (as JSON), `graphs`: as for `write_log`
    - `compression`: `gzip`, `bzip2`, `xz`, `zstd` or `none`
    - `alone`: `true` is an error if the folder already contains other logs when these logs get their names
    - `single`: `true` writes one log of all partitions in their order, which the driver assembles at the path

    Each job writes a folder of its own into the folder, and its logs count when all tasks have ended. A failed job
    leaves nothing; the files of a killed job are removed by the next job. Reading a folder leaves out the logs of jobs
    that have not ended. `_SUCCESS` names the last job, and `verify_folder` compares the logs with their records.

    Args:
        spark: a session whose workers have this package: installed, or shipped as a `.zip` of its wheel (`--py-files`,
            `addArtifacts(…, pyfile=True)`), and its dependencies.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> register(spark)
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.nq").write_text("# @message\\n<urn:a> <urn:p> <urn:b> .\\n")
    ...     spark.read.format("rdfm").load(f"{folder}/log.nq").select("message").collect()
    [Row(message='<urn:a> <urn:p> <urn:b> .')]
    """
    from construct_messages.spark.logs.data_source import LogSource
    from construct_messages.spark.logs.files import s3_settings

    session = {f"fs.s3a.{name}": value for name, value in s3_settings(spark)}

    # Spark also looks for a format in the session that was active last: this makes `spark` the active one. If another
    # session has the format, registering fails; if it does not have it, writing fails.
    with _REGISTERING:  # another thread could make its session the active one in between
        spark.createDataFrame([], "a INT")
        spark.dataSource.register(type("LogSource", (LogSource,), {"session": session}))
