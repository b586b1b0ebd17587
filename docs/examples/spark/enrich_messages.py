"""Add figures of a table to the messages of a query, and write them as a log."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import construct_messages, load_quads
from construct_messages.spark import terms as T

EMPLOYEES = [("Solvay", 9000), ("Sony", 113000)]
QUERY = """
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX schema: <http://schema.org/>
CONSTRUCT { ?company a dbo:Company ; schema:numberOfEmployees ?number }
WHERE { ?company a dbo:Company ; schema:numberOfEmployees ?number } ORDER BY ?number
"""

spark = SparkSession.builder.getOrCreate()
employees = spark.createDataFrame(EMPLOYEES, "name STRING, number INT")
figures = employees.select(
    T.iri(F.concat(F.lit("http://dbpedia.org/resource/"), "name")).alias("subject"),
    T.iri(F.lit("http://schema.org/numberOfEmployees")).alias("predicate"),
    T.to_term("number").alias("object"),
    F.lit(None).cast("string").alias("graph"),
)
quads = load_quads(spark, "queries/data/companies.ttl").unionByName(figures)
print(construct_messages(QUERY, quads).write_file("companies.ttl"))
with open("companies.ttl", encoding="utf-8") as log:
    print(log.read(), end="")
