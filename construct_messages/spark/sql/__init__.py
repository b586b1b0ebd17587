"""SPARQL expressions as Spark SQL text. No pyspark here."""
