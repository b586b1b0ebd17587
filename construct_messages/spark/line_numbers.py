"""The number of a line in an error message: tasks read parts of files, and do not know line numbers.

After a job has failed, its file is read again up to the line with the text of the error. No RDF here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT_SHOWN: Final = 1000
"""The characters of a line that an error shows."""

_WILD: Final = re.compile(r"[{}\[\]*?\\]")


def shown_line(value: str) -> str:
    """Returns SQL of a line as an error shows it: its beginning, with replacement characters for bytes that are not
    UTF-8.

    >>> shown_line("value")
    'left(make_valid_utf8(value), 1000)'
    """
    return f"left(make_valid_utf8({value}), {TEXT_SHOWN})"


def line_number(spark: SparkSession, uri: str, text: str) -> int | None:
    """Returns the number of the first line of a file whose beginning is shown as the given text.

    Args:
        spark: reads the file.
        uri: of the file, as `input_file_name()` has it.
        text: see `shown_line`.

    Returns:
        the number, counted from 1; None: there is no such line.
    """
    path = _WILD.sub(r"\\\g<0>", unquote(uri))
    place = F.struct(
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("id"),
    )
    lines = (
        spark.read.option("recursiveFileLookup", True)
        .text(path)
        .select("value", place.alias("place"))
    )
    is_shown = F.expr(shown_line("value")) == F.lit(text)
    (first,) = lines.agg(F.min(F.when(is_shown, F.col("place"))).alias("place")).collect()
    if first["place"] is None:
        return None
    # numbers increase within a block; rows of different blocks are distinguished by their blocks
    reached = F.struct(
        F.lit(first["place"]["block"]).alias("block"), F.lit(first["place"]["id"]).alias("id")
    )
    return int(lines.filter(F.col("place") <= reached).count())
