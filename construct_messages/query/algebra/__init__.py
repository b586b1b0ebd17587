"""From query text to the algebra: parse tree, patterns, groups and plan. SPARQL 1.1 Query, section 18. No I/O."""
