"""Logs as data: `spark.read.format("rdfm")` and `frame.write.format("rdfm")`, once `register` has been called.

A log is read as rows (file, block, ordinal, message). `blocks` cuts logs into what a task reads, `splitting` finds the
messages of a range of bytes, `texts` converts messages to strings and back, `committer` writes logs from many tasks;
only `source` knows Spark's data sources. RDF Messages, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Registers the data source `rdfm` in a session; may be called again.

    Reading gives the columns `file` (a URI), `block` (where in the file the part begins that one task has read, in
    bytes), `ordinal` (of the message in its block, from 0) and `message` (its statements as canonical N-Quads lines
    joined by LF, empty for an empty message). (file, block, ordinal) is the order of the messages; `with_sequence`
    counts them through. Blank nodes of different logs have different labels. Its options, all of which may be left out:

    - `format`, `messages`, `base`, `contexts` (as JSON), `messageBytes`: as for `read_log`
    - `maxPartitionBytes`: how large the parts are of N-Triples and N-Quads logs that are not packed, and how many bytes
      of smaller logs a task takes; 128 MiB. All other logs are read whole, each by one task.

    Paths are files, folders and patterns, of any filesystem that pyarrow knows.

    Writing needs a column `message` and a mode, `"append"` or `"overwrite"`. Each partition becomes a log in the
    folder; their names are in the order of the partitions, and behind those that were there. Its options:

    - `format` (N-Quads), `messages`, `prefixes` (as JSON), `graphs`: as for `write_log`
    - `compression`: `gzip`, `bzip2`, `xz`, `zstd` or `none`
    - `single`: `true` makes one log of all partitions in their order, at the path, which the driver puts together

    Nothing has its name before all tasks have ended, and a job that fails leaves nothing.

    Args:
        spark: a session, whose workers need this package: installed, or shipped to them as a `.zip` of its wheel
            (`--py-files`, `addArtifacts(…, pyfile=True)`) beside what it depends on.
    """
    from pyspark.sql import SparkSession

    from construct_messages.spark.logs.source import LogSource

    spark.dataSource.register(LogSource)
    # where a frame is written, Spark looks for its format in whatever session was used last
    if (active := SparkSession.getActiveSession()) is not None:
        active.dataSource.register(LogSource)
