"""The numbers of lines: tasks read parts of files, and do not know them.

They are counted by a second reading: of the file, after a job has failed, or of a dump, for its quarantine. No RDF
here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT_SHOWN: Final = 1000
"""The characters of a line that an error shows."""

_WILD: Final = re.compile(r"[{}\[\]*?\\]")


def shown_line(value: str) -> str:
    """SQL of a line as an error shows it: its beginning, with replacement characters for bytes that are not UTF-8."""
    return f"left(make_valid_utf8({value}), {TEXT_SHOWN})"


def line_number(spark: SparkSession, uri: str, text: str) -> int | None:
    """Returns the number (from 1) of the first line of a file, by its URI, that is shown as this text; None: no such
    line.
    """
    path = _WILD.sub(r"\\\g<0>", unquote(uri))
    lines = numbered(spark.read.option("recursiveFileLookup", True).text(path))
    is_shown = F.expr(shown_line("value")) == F.lit(text)
    (first,) = lines.filter(is_shown).agg(F.min("line").alias("line")).collect()
    return None if first["line"] is None else int(first["line"])


def numbered(text: DataFrame) -> DataFrame:
    """Returns the lines of text files (`value`), each with its `file` and its number in it (`line`, from 1).

    The text is read twice, to count the lines of each block of a file first.
    """
    lines = text.selectExpr(
        "value",
        "input_file_name() AS file",
        "_metadata.file_block_start AS block",
        "monotonically_increasing_id() AS id",  # they increase by one within a block
    )
    blocks = lines.groupBy("file", "block").agg(
        F.min("id").alias("first"), F.count("id").alias("lines")
    )
    above = Window.partitionBy("file").orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum("lines").over(above), F.lit(0))
    shifts = blocks.select("file", "block", (before + 1 - F.col("first")).alias("shift"))
    joined = lines.join(F.broadcast(shifts), ["file", "block"])
    return joined.selectExpr("value", "file", "id + shift AS line")
