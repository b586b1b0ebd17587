"""The parts of gRPC over HTTP/2 that client and server share: messages, statuses, and connection settings."""
