"""NDJSON-LD logs, and what JSON-LD documents mean, which YAML-LD shares. JSON-LD 1.1. No I/O."""
