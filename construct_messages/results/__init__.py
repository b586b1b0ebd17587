"""SPARQL results bytes in, batches of solutions out: incremental, strict, and without I/O."""
