"""JSON documents, one for each message, by a JSON-LD frame. JSON-LD 1.1 Framing. Written only. No I/O."""
