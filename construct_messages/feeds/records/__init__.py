"""What the transports of brokers share: a record is one message, read and written as a document."""
