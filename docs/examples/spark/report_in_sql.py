"""Ask SQL about what SPARQL selects, and write the answer as CSV."""

from pyspark.sql import SparkSession

from construct_messages.spark import select

QUERY = """
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?company ?name ?industry {
  ?company a dbo:Company ; rdfs:label ?name OPTIONAL { ?company dbo:industry ?industry }
}
"""
REPORT = """
SELECT coalesce(industry, 'unknown') AS industry, count(DISTINCT company) AS companies
FROM companies WHERE name_language = 'en' GROUP BY ALL ORDER BY companies DESC, industry
"""

spark = SparkSession.builder.getOrCreate()
companies = select(spark, QUERY, "queries/data/companies.ttl", languages=["name"])
companies.createOrReplaceTempView("companies")
spark.sql(REPORT).coalesce(1).write.mode("overwrite").csv("report.csv", header=True)
spark.read.csv("report.csv", header=True).show()
