"""Shared by the transports of brokers: a record is one message, read and written as a document."""
