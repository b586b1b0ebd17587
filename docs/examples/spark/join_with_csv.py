"""Join what a query selects with a table of another origin, by IRI."""

from pathlib import Path

from pyspark.sql import SparkSession

from construct_messages.spark import select

REVENUES = """company,revenue
http://dbpedia.org/resource/Solvay,4.7
http://dbpedia.org/resource/Sony,84.1
http://dbpedia.org/resource/Nintendo,7.9
"""
QUERY = """
PREFIX dbo: <http://dbpedia.org/ontology/>
SELECT ?company ?country { ?company dbo:location|dbo:locationCountry ?country }
"""

Path("revenues.csv").write_text(REVENUES, encoding="utf-8")
spark = SparkSession.builder.getOrCreate()
revenues = spark.read.csv("revenues.csv", header=True, inferSchema=True)
companies = select(spark, QUERY, "queries/data/companies.ttl")
joined = companies.join(revenues, "company").groupBy("country").sum("revenue")
joined.orderBy("country").show(truncate=False)
