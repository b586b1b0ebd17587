"""Messages beyond one machine: CONSTRUCT over RDF dumps on Spark, by native plans.

A small house of its own. Its lower rooms (`algebra`, `statistics`, `plan`, `optimize`, `values`, `regex`,
`functions`, `aggregates`, `expressions`) know no pyspark and need no Java; the rooms from `session` on import pyspark,
so this module loads them only when a name of theirs is asked for.
"""
