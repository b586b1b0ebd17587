"""Server-sent events over HTTP."""
