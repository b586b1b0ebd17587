"""Jelly's gRPC service: the topics are the streams of the server. Needs the extra `grpc`."""
