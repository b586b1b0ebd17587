"""The SPARQL algebra, and the translation of query text to it. SPARQL 1.1 Query, section 18. No I/O, and no engine."""
