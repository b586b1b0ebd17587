"""Read a dump, and count its subjects by type."""

from pyspark.sql import SparkSession

from construct_messages.spark import load_quads
from construct_messages.spark import terms as T

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

spark = SparkSession.builder.getOrCreate()
quads = load_quads(spark, "queries/data/companies.ttl")
types = quads.filter(T.term_value("predicate") == TYPE)
types.groupBy(T.term_value("object").alias("type")).count().orderBy("type").show(truncate=False)
