"""A program with streaming queries, to be killed: from a folder into a folder and into a topic of Kafka, by Spark's own
connector, and from a stream into a stream.

`python -m tests.support.spark.flowing FOLDER STREAMS [BROKER TOPIC]` runs until all that there is has been written. The
checkpoints are in the folder, too.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import functions as F


def main(folder: Path, streams: str, broker: str = "", topic: str = "") -> None:
    from construct_messages.spark import local_session, register, to_rdfm
    from tests.support.spark.flows import stream
    from tests.support.spark.sessions import connectors

    spark = local_session(
        "local[2]",
        {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "600m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(folder / "local"),
            **connectors(),
        },
    )
    register(spark)
    files = stream(spark, folder / "in", maxFilesPerTrigger=2, maxPartitionBytes=400)
    elements = stream(spark, f"{streams}/source", maxOffsetsPerTrigger=20, maxPartitionMessages=15)
    writers = [
        files.writeStream.format("rdfm").option("path", str(folder / "out")),
        elements.writeStream.format("rdfm").option("path", f"{streams}/target"),
    ]
    if topic:
        # by the key, readers recognise what came twice
        key = F.concat_ws(" ", "file", "block", "ordinal").cast("binary").alias("key")
        records = files.select(key, to_rdfm("message").alias("record")).select("key", "record.*")
        kafka = {"kafka.bootstrap.servers": broker, "topic": topic}
        writers.append(records.writeStream.format("kafka").options(**kafka))
    queries = [
        writer.option("checkpointLocation", str(folder / f"checkpoint-{number}"))
        .trigger(availableNow=True)
        .start()
        for number, writer in enumerate(writers)
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
