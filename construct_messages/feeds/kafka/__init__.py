"""Topics of Apache Kafka, by confluent-kafka: `client` asks about a topic, `reader` reads it, `writer` writes to it."""
