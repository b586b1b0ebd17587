"""Sessions of Spark, hostile terms, random queries, and the W3C's tests on Spark."""
