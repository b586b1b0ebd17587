"""This package measured part by part, beside its engines: `python -m benchmarks micro NAME`.

Each module measures one thing and has a `main`; the names below are what the command knows.
"""

NAMES = {
    "brokers": "messages through Mosquitto and the NATS server, against the client library alone",
    "continuous": "windows over streams, beside npm's rsp-js",
    "columns": "typed columns, quads and nested messages as Parquet, against pyarrow",
    "doubles": "jobs that are done in two ways: the second is faster, or the run fails",
    "dumps": "CONSTRUCT over a dump on one machine: embedded, DuckDB, and SQL by hand",
    "embedded": "the embedded engine",
    "grpc": "streams by Jelly gRPC, and grpclib alone with the same frames",
    "kafka": "a broker of Kafka, written and read, beside its client libraries alone",
    "memory": "100,000 against 1,000,000 solutions",
    "page": "the page in Chromium: the first card, the longest frame, memory",
    "paging": "what pages of a result cost an engine, by OFFSET and by a key, beside no pages",
    "parsing": "SPARQL text read, against rdflib's parser",
    "proxy": "through `construct-messages serve`, against a direct download",
    "resuming": "`run --resume`, against the same pages by a plain client",
    "shapes": "logs as other people write them, of 21 shapes, read beside n3, pyoxigraph, jsonld.js, PyLD, pyjelly",
    "shacl": "messages against SHACL shapes, against pySHACL",
    "spark": "CONSTRUCT over a dump on Spark, against loading it into Oxigraph",
    "spark_joins": "queries of the shape of SP2Bench's in a kept session of Spark, beside Oxigraph",
    "spark_streams": "Structured Streaming from and to folders and streams, beside Spark's text stream",
    "publishing": "single messages by POST, WebSocket and logs that are acknowledged on the way",
    "start": "short runs of the command line, beside scripts over pyoxigraph and SPARQLWrapper",
    "stream_server": "200 followers of a live stream (`followers`), or a long log (`million`)",
    "transfer": "bytes and connections between endpoints and the client, compressed and not",
    "windows_soak": "windows for 10,000,000 messages, in this process or at a server: rate, CPU, memory",
}
