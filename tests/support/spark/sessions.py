"""Sessions and plans of Spark, for tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNCOMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For short queries: compiling them takes longer than running them."""

QUICK = {**UNCOMPILED, "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
"""For data of a few quads: nothing compiled, nothing adapted, one partition."""

SHORT_LIVED = {
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 --conf "
    "'spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
}
"""The environment of programs as users write them: of a session that soon ends, nothing is optimized."""

PLANNED = "planned"
"""The property of a test that tells the seconds of planning; the longest are told at the end of a run."""

LARGEST = 350
"""Operators of a logical plan before anything is shared; one of two patterns from text has 60."""

UNBROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
"""Plans as for much data: nothing is known to be small."""

OTHER = {
    **UNCOMPILED,
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.session.timeZone": "Pacific/Apia",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
}
"""Other than the defaults wherever SQL could come to mean something else."""


CONNECTOR: Final = "CONSTRUCT_MESSAGES_SPARK_KAFKA"
"""The environment variable that names the folder of the jars of Spark's connector for Kafka."""

NO_CONNECTOR: Final = (
    "Spark's connector for Kafka is not installed: mvn -f tests/support/engines/spark-kafka.xml "
    f"dependency:copy-dependencies -DoutputDirectory=FOLDER, and {CONNECTOR}=FOLDER in the environment"
)


def connectors() -> dict[str, str]:
    """The setting of a new session that has Spark's connector for Kafka; empty where that is not installed."""
    folder = os.environ.get(CONNECTOR)
    return {"spark.driver.extraClassPath": f"{folder}/*"} if folder else {}


def new_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session beside another, with settings of its own."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def activate(spark: SparkSession) -> None:
    """Makes a session the active one, as `createDataFrame` does."""
    type(spark)._activeSession = spark
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


def executed(frame: DataFrame) -> str:
    """The text of the plan that is executed; after an action of an adaptive one the last and the first."""
    return str(_execution(frame).executedPlan().toString())


def optimized(frame: DataFrame) -> str:
    """The text of the logical plan, after the optimizer."""
    return str(_execution(frame).optimizedPlan().toString())


def size(frame: DataFrame) -> int:
    """The operators of the logical plan, after the optimizer."""
    return optimized(frame).count("\n")


def _execution(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()  # type: ignore[operator]  # Java's, to which no public way leads
