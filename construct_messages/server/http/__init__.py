"""HTTP for every kind of endpoint: the application, errors, sending, the request log, metrics. No SPARQL here."""
