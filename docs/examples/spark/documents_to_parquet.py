"""Make one JSON document of each country by a frame, and write them to Parquet as nested columns."""

import json
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import construct_messages, load_quads

QUERY = Path("queries/country-documents.rq").read_text(encoding="utf-8")
FRAME = json.loads(Path("queries/country-documents.json").read_text(encoding="utf-8"))
SCHEMA = "uri STRING, name STRING, companies ARRAY<STRUCT<uri: STRING, name: STRING>>"

spark = SparkSession.builder.getOrCreate()
quads = load_quads(spark, "queries/data/companies.ttl")
messages = construct_messages(QUERY, quads, group_by="?country")
documents = messages.documents(FRAME).select(F.from_json("document", SCHEMA).alias("country"))
documents.select("country.*").write.mode("overwrite").parquet("countries.parquet")

countries = spark.read.parquet("countries.parquet")
countries.select("name", F.col("companies.name").alias("companies")).orderBy("name").show()
