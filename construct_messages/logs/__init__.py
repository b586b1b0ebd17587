"""Message logs: messages in, bytes out, one file a syntax. No I/O, and nothing about sources."""
