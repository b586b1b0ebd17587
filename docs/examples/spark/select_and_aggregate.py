"""Select typed columns, and aggregate them."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import select

QUERY = """
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX dbp: <http://dbpedia.org/property/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?name ?population {
  ?country a dbo:Country ; rdfs:label ?name ; dbo:populationTotal|dbp:populationCensus ?population
  FILTER (LANG(?name) = "en")
}
"""

spark = SparkSession.builder.getOrCreate()
countries = select(spark, QUERY, "queries/data/companies.ttl")
print(dict(countries.dtypes))
countries.withColumn("millions", F.round(F.col("population") / 1e6, 1)).orderBy("name").show()
countries.agg(F.sum("population"), F.max_by("name", "population")).show()
