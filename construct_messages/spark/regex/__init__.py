"""Regular expressions of XPath as patterns of Java, with which Spark matches. No SQL and no pyspark here."""
