"""Writes messages as JSON documents, by a JSON-LD frame. JSON-LD 1.1 Framing. No I/O."""
