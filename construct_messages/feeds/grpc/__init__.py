"""Streams of Jelly's gRPC service. Needs the extra `grpc`."""
