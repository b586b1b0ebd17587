"""Topics of brokers: Kafka, MQTT and NATS. A record is one message, read and written as a document."""
