"""Make RDF of a table: IRIs from a key, literals from typed columns, and write N-Quads."""

from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from construct_messages.spark import QuadTable
from construct_messages.spark import terms as T

ORDERS = [("A 1", date(2024, 5, 1), 12.5), ("B/2", date(2024, 5, 2), 7.0)]

spark = SparkSession.builder.getOrCreate()
orders = spark.createDataFrame(ORDERS, "id STRING, day DATE, price DOUBLE")
properties = {"day": "http://schema.org/orderDate", "price": "http://schema.org/price"}
quads = orders.select(
    T.iri(F.concat(F.lit("http://example.org/order/"), F.url_encode("id"))).alias("subject"),
    F.explode(
        F.array(
            *(
                F.struct(T.iri(F.lit(iri)).alias("predicate"), T.to_term(name).alias("object"))
                for name, iri in properties.items()
            )
        )
    ).alias("property"),
).select("subject", "property.*", T.iri(F.lit("http://example.org/orders")).alias("graph"))
table = QuadTable.of(quads, check=True)
lines = table.frame.select(F.concat_ws(" ", *table.frame.columns, F.lit(".")))
lines.coalesce(1).write.mode("overwrite").text("orders.nq")
for row in spark.read.text("orders.nq").orderBy("value").collect():
    print(row.value)
