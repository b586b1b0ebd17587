"""This package measured part by part, beside its engines: `python -m benchmarks micro NAME`.

Each module measures one thing and has a `main`; the names below are what the command knows.
"""

NAMES = {
    "brokers": "messages through Mosquitto and the NATS server, against the client library alone",
    "continuous": "windows over streams, beside npm's rsp-js",
    "documents": "JSON documents by a frame, against PyLD",
    "embedded": "the embedded engine",
    "endpoint": "an Oxigraph server over HTTP",
    "grpc": "streams by Jelly gRPC, and grpclib alone with the same frames",
    "hostile": "how long others wait while a server reads what a hostile endpoint sends",
    "jelly": "Jelly logs, written and read, against pyjelly",
    "jsonld": "NDJSON-LD logs, written and read, against PyLD",
    "kafka": "a broker of Kafka, written and read, beside its client libraries alone",
    "layouts": "logs written for a template, in all formats that are text",
    "lines": "N-Quads logs, read and written, against npm's n3",
    "log_memory": "logs of 10,000 against 1,000,000 messages",
    "message_memory": "one large message, read and converted: memory as a multiple of its size",
    "memory": "100,000 against 1,000,000 solutions",
    "page": "the page in Chromium: the first card, the longest frame, memory",
    "parsing": "SPARQL text read, against rdflib's parser",
    "proxy": "through `construct-messages serve`, against a direct download",
    "reading": "logs of several shapes, read and written, against npm's n3, pyoxigraph and pyjelly",
    "relay": "a relay from Kafka to NATS JetStream, with and without a state",
    "spark": "CONSTRUCT over a dump on Spark, against loading it into Oxigraph",
    "spark_floor": "the same query written by hand for that dump: what Spark takes at least, or so",
    "spark_joins": "queries of the shape of SP2Bench's in a kept session of Spark, beside Oxigraph",
    "spark_logs": "logs on Spark, against one process",
    "streams": "live streams: the store, beside SQLite alone, and over HTTP",
    "stream_server": "200 followers of a live stream (`followers`), or a long log (`million`)",
    "transform": "a CONSTRUCT over each message of a stream alone: together, and one by one",
    "turtle": "Turtle and TriG logs, written and read",
    "virtuoso": "a Virtuoso with DBpedia's limits (Debian's virtuoso-opensource-7-bin)",
    "watch": "a source that is watched, against its SELECT alone",
    "watch_log": "bytes written to append to the log of a watch, by its size",
    "windows_soak": "windows for 10,000,000 messages, in this process or at a server: rate, CPU, memory",
}
