"""Compare two versions of a dump: what came, what went, by predicate."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import load_quads
from construct_messages.spark import terms as T

OLD = Path("queries/data/companies.ttl").read_text(encoding="utf-8")
NEW = OLD.replace("11700000", "11800000") + 'dbr:Sony dbo:industry "games"@en .\n'

Path("old.ttl").write_text(OLD, encoding="utf-8")
Path("new.ttl").write_text(NEW, encoding="utf-8")
spark = SparkSession.builder.getOrCreate()
# the labels of blank nodes say nothing across files
old, new = (
    load_quads(spark, name).filter(
        ~F.col("subject").startswith("_:") & ~F.col("object").startswith("_:")
    )
    for name in ("old.ttl", "new.ttl")
)
added, removed = new.subtract(old), old.subtract(new)
changes = added.withColumn("change", F.lit("+")).union(removed.withColumn("change", F.lit("-")))
predicate = T.term_value("predicate").alias("predicate")
changes.groupBy(predicate).pivot("change").count().orderBy("predicate").show(truncate=False)
