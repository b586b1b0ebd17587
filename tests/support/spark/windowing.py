"""A program with a streaming query over windows, to be killed: from a folder into a folder.

`python -m tests.support.spark.windowing FOLDER`: runs until all that there is has been written. Its checkpoint is in
the folder, too.
"""

from __future__ import annotations

import sys
from pathlib import Path

QUERY = """CONSTRUCT { [] <urn:from> ?from ; <urn:number> ?number }
FROM NAMED WINDOW <urn:w> ON <urn:in> [RANGE PT10S STEP PT10S] WHERE {
  { SELECT (MIN(?m) AS ?from) (COUNT(*) AS ?number) { WINDOW <urn:w> { ?m <urn:p> ?o } } } }"""
"""Over messages of `flows.quad`, whose numbers are the seconds of their times."""


def main(folder: Path) -> None:
    from construct_messages.spark import construct_windows, local_session, register
    from tests.support.spark.flows import stream

    spark = local_session(
        "local[2]",
        {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "600m",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.shuffle.partitions": "1",
            "spark.local.dir": str(folder / "local"),
        },
    )
    register(spark)
    messages = stream(spark, folder / "in", maxFilesPerTrigger=2).selectExpr(
        "message", "timestamp_seconds(bigint(regexp_extract(message, 'm([0-9]+)>', 1))) AS time"
    )
    construct_windows(
        QUERY,
        messages,
        str(folder / "out"),
        checkpoint=str(folder / "checkpoint"),
        trigger={"availableNow": True},
    ).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
