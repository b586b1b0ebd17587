"""Report the quality of a dump: for each predicate its values, their kinds, languages and numbers."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import load_quads
from construct_messages.spark import terms as T

spark = SparkSession.builder.getOrCreate()
quads = load_quads(spark, "queries/data/companies.ttl")
value, kind = T.term_value("object"), T.term_kind("object")
report = quads.groupBy(
    F.substring_index(T.term_value("predicate"), "/", -1).alias("predicate")
).agg(
    F.count("object").alias("values"),
    F.count_distinct("subject").alias("subjects"),
    F.count_if(kind == "iri").alias("IRIs"),
    F.count_if(kind == "blank node").alias("nodes"),
    F.count_distinct(T.language("object")).alias("languages"),
    F.count_if(value.try_cast("double").isNotNull()).alias("numbers"),
)
report.orderBy("predicate").show(truncate=False)
