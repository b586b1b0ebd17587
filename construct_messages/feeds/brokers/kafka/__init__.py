"""Topics of Apache Kafka, by confluent-kafka: `client` requests data about a topic, `reader` reads it, `writer`
writes to it.
"""
