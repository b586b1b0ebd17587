"""HTTP as every endpoint needs it: the application, errors, sending, the request log, metrics. Nothing about SPARQL."""
