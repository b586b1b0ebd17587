"""Take each name in Japanese, or else in English."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import load_quads
from construct_messages.spark import terms as T

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"

spark = SparkSession.builder.getOrCreate()
labels = load_quads(spark, "queries/data/companies.ttl").filter(F.col("predicate") == LABEL)
names = labels.select(
    "subject", T.term_value("object").alias("name"), T.language("object").alias("language")
)
by_language = names.groupBy("subject").pivot("language", ["ja", "en"]).agg(F.first("name"))
chosen = by_language.select(F.coalesce("ja", "en").alias("name")).dropna()
chosen.orderBy(F.desc("name")).show(3)
