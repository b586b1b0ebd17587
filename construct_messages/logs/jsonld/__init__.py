"""NDJSON-LD logs, and the interpretation of JSON-LD documents, also for YAML-LD. JSON-LD 1.1. No I/O."""
