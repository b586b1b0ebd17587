"""The drop-in endpoint: HTTP in front of a source. Knows HTTP serving; what a message is, is decided below."""
