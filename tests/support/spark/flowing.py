"""A program with two streaming queries, to be killed: from a folder into a folder, and from a stream into a stream.

`python -m tests.support.spark.flowing FOLDER STREAMS`: runs until all that there is has been written. The checkpoints
are in the folder, too.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(folder: Path, streams: str) -> None:
    from construct_messages.spark import local_session, register
    from tests.support.spark.flows import stream

    spark = local_session(
        "local[2]",
        {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "600m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(folder / "local"),
        },
    )
    register(spark)
    files = stream(spark, folder / "in", maxFilesPerTrigger=2, maxPartitionBytes=400)
    elements = stream(spark, f"{streams}/source", maxOffsetsPerTrigger=20, maxPartitionMessages=15)
    queries = [
        frame.writeStream.format("rdfm")
        .option("checkpointLocation", str(folder / f"checkpoint-{number}"))
        .trigger(availableNow=True)
        .start(to)
        for number, (frame, to) in enumerate(
            ((files, str(folder / "out")), (elements, f"{streams}/target"))
        )
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
