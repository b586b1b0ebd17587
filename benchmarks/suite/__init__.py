"""The suite: what people do today to get a CONSTRUCT's results one by one, against this package, over DBpedia."""
