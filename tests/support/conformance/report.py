"""Print the implementation report: what of RDF Messages is implemented, and the tests that show it.

The cases are those of RDF Messages Tests, by id and name. The requirements are the normative sentences of the draft and
of its tests, in short words. `python -m tests.support.conformance.report` prints the report; tests compare the cases
with the suite, and the names with the tests.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import construct_messages

DATE: Final = "24 November 2026"

_LOGS: Final = "tests/logs/test_rdf_messages_cases.py"
_FEEDS: Final = "tests/feeds/test_cases.py"
_PUSH: Final = "tests/server/streams/test_push.py"
_PARSE: Final = (f"{_LOGS}::test_parse",)
_ERROR: Final = (f"{_LOGS}::test_error",)
_ROUND_TRIP: Final = (f"{_LOGS}::test_round_trip",)
_KAFKA: Final = "tests/feeds/brokers/kafka/test_cases.py"
_MQTT: Final = "tests/feeds/brokers/mqtt/test_cases.py"
_NATS: Final = "tests/feeds/brokers/nats/test_cases.py"
_GRPC: Final = "tests/feeds/grpc/test_peers.py"
_GRPC_SERVER: Final = "tests/server/streams/grpc/test_peers.py"


class Case(NamedTuple):
    """A case of RDF Messages Tests, and the tests that run it as given."""

    id: str
    name: str
    tests: tuple[str, ...]


class Requirement(NamedTuple):
    """A normative sentence in short words: its section, its keyword, and the tests that show it."""

    section: str
    keyword: str
    text: str
    tests: tuple[str, ...]


CASES: Final = (
    Case(
        "1.1.1",
        "SSE with JSON-LD context link",
        (f"{_FEEDS}::test_events_whose_context_is_in_a_header",),
    ),
    Case(
        "1.1.2",
        "WebSocket subprotocol negotiation",
        (f"{_FEEDS}::test_frames_as_given", f"{_PUSH}::test_the_case_of_the_specification"),
    ),
    Case(
        "1.1.3",
        "Kafka records",
        (f"{_KAFKA}::test_records_are_read", f"{_KAFKA}::test_records_are_written"),
    ),
    Case(
        "1.1.4",
        "MQTT 5 PUBLISH packets",
        (f"{_MQTT}::test_as_given", f"{_MQTT}::test_as_given_from_here"),
    ),
    Case(
        "1.1.5",
        "other broker messages",
        (f"{_NATS}::test_as_given", f"{_NATS}::test_as_given_from_here"),
    ),
    Case(
        "1.1.6",
        "Jelly gRPC frames",
        (
            f"{_GRPC}::test_subscribe",
            f"{_GRPC}::test_publish",
            f"{_GRPC_SERVER}::test_subscribe",
            f"{_GRPC_SERVER}::test_publish",
        ),
    ),
    Case("1.1.7", "SSE rejects direct binary payloads", (f"{_FEEDS}::test_binary_events",)),
    Case("1.2.1", "single message without delimiter", _PARSE),
    Case("1.2.2", "two messages with MESSAGE", _PARSE),
    Case("1.2.3", "two messages with @message .", _PARSE),
    Case("1.2.4", "empty first message", _PARSE),
    Case("1.2.5", "empty message between non-empty messages", _PARSE),
    Case("1.2.6", "final delimiter creates no extra message", _PARSE),
    Case("1.2.7", "N-Quads messages preserve graph names", _PARSE),
    Case("1.2.8", "default graph and named graph quads in one message", _PARSE),
    Case("1.2.9", "blank node labels are scoped per message", _PARSE),
    Case("1.2.10", "repeated prefixes across messages", _PARSE),
    Case("1.2.11", "boundary after a graph block", _PARSE),
    Case("1.3.1", "context message followed by data message", _PARSE),
    Case("1.3.2", "empty message keeps the active context", _PARSE),
    Case("1.3.3", "context switch", _PARSE),
    Case("1.3.4", "local context is wrapped by the active context", _PARSE),
    Case("1.3.5", "data message without prior context", _PARSE),
    Case("1.4a", "round trip with an empty message", _ROUND_TRIP),
    Case("1.4b", "round trip with named graphs", _ROUND_TRIP),
    Case("1.5.1", "delimiter without announcement", _ERROR),
    Case("1.5.2", "@message without trailing dot", _ERROR),
    Case("1.5.3", "delimiter inside an open graph block", _ERROR),
)

_LINES: Final = "tests/logs/lines/test_lines.py"
_TURTLE: Final = "tests/logs/turtle/test_decoder.py"
_JSON: Final = "tests/logs/jsonld/test_lines.py"
_YAML: Final = "tests/logs/yamlld/test_yamlld.py"
_XML: Final = "tests/logs/rdfxml/test_rdfxml.py"
_JELLY: Final = "tests/logs/jelly/test_jelly.py"
_TYPES: Final = "tests/logs/test_media_types.py"
_ACCEPT: Final = "tests/rdf/formats/test_negotiation.py::test_accept"
_WRITTEN: Final = "tests/server/sparql/test_formats.py::test_serve_answers_what_run_writes"

_SKOLEM: Final = "tests/construct/test_query_messages.py::test_skolemize"

DRAFT: Final = (
    Requirement("RDF Messages", "–", "A message is a dataset, and may be empty.", _ROUND_TRIP),
    Requirement(
        "Scope of RDF Messages",
        "should",
        "Messages are not combined, unless a profile asks for it.",
        _PARSE,
    ),
    Requirement(
        "RDF Message Stream Producers and Consumers",
        "may",
        "Protocols have any delivery guarantees, order and flow control.",
        (f"{_PUSH}::test_a_follower_that_reads_nothing_for_a_while",),
    ),
    Requirement(
        "RDF Message Logs", "–", "Blank node identifiers are scoped to their message.", _PARSE
    ),
    Requirement(
        "RDF Message Logs",
        "recommended",
        "IRIs or skolemization link messages: the option `skolemize`.",
        (_SKOLEM,),
    ),
    Requirement(
        "Version labels",
        "–",
        "`1.2-messages`, `1.2-basic-messages` and `1.1-messages` announce messages.",
        (f"{_LINES}::test_reading", f"{_TURTLE}::test_reads"),
    ),
    Requirement(
        "Version labels",
        "–",
        "Data of `1.1`, `1.2-basic` and `1.2` are valid as data of the label with `-messages`.",
        (f"{_LINES}::test_documents_are_logs_of_one_message",),
    ),
    Requirement(
        "Version labels",
        "should",
        "The label is announced in `Content-Type`, asked for in `Accept`, and in the document.",
        (_ACCEPT, _WRITTEN),
    ),
    Requirement(
        "Serializing and parsing RDF Message Logs",
        "MUST",
        "Each serialization has a way to group quads into messages.",
        _ROUND_TRIP,
    ),
    Requirement(
        "Version announcement",
        "–",
        "`VERSION` in N-Triples and N-Quads; also `@version` in Turtle and TriG.",
        (f"{_LINES}::test_reading", f"{_TURTLE}::test_reads"),
    ),
    Requirement(
        "Version announcement",
        "should",
        "A parser without support rejects the label: all three are supported, others are errors.",
        (f"{_LINES}::test_reading", f"{_TURTLE}::test_errors_stand_where_they_are"),
    ),
    Requirement("Message delimiters", "MUST", "Each triple or quad is part of a message.", _PARSE),
    Requirement(
        "Message delimiters",
        "MUST",
        "Triples and quads are added to the current message until a delimiter or the end.",
        _PARSE,
    ),
    Requirement(
        "Message delimiters",
        "MUST",
        "A delimiter ends the message; a triple, a quad or another delimiter opens the next.",
        (*_PARSE, f"{_TURTLE}::test_a_message_comes_with_its_delimiter"),
    ),
    Requirement(
        "Message delimiters",
        "MUST",
        "A delimiter before any triple or quad: the first message is empty.",
        _PARSE,
    ),
    Requirement("Message delimiters", "MUST", "The end of the file ends the message.", _PARSE),
    Requirement(
        "Repeated PREFIX and BASE directives",
        "–",
        "They are allowed, and hold for the rest of the document.",
        (*_PARSE, f"{_TURTLE}::test_reads"),
    ),
    Requirement(
        "JSON-LD",
        "MUST",
        "Each line is one JSON object; blank lines are not allowed.",
        (f"{_JSON}::test_errors",),
    ),
    Requirement(
        "JSON-LD",
        "MUST",
        "A line is a context, an empty message, or data.",
        (*_PARSE, f"{_JSON}::test_errors"),
    ),
    Requirement("JSON-LD", "may", "Contexts appear anywhere, and replace the one before.", _PARSE),
    Requirement(
        "JSON-LD",
        "MAY",
        "Data may have a context of their own, which does not stay.",
        (f"{_JSON}::test_a_local_context_does_not_stay",),
    ),
    Requirement(
        "JSON-LD",
        "MUST",
        "Parsers keep the active context, and read data as its `@graph`.",
        (*_PARSE, f"{_JSON}::test_reads_what_others_write"),
    ),
    Requirement("YAML-LD", "–", "Each YAML document is a message.", (f"{_YAML}::test_boundaries",)),
    Requirement(
        "RDF/XML", "–", "Each message is an XML document on a line.", (f"{_XML}::test_bytes",)
    ),
    Requirement(
        "Other formats",
        "–",
        "Each frame of Jelly is a message.",
        (
            f"{_JELLY}::test_what_is_written_is_read_again",
            f"{_JELLY}::test_a_label_is_of_its_frame",
        ),
    ),
)

TESTS: Final = (
    Requirement(
        "Introduction",
        "MUST",
        "Implementations provide conformance tests of logs.",
        (f"{_LOGS}::test_no_case_is_left_out",),
    ),
    Requirement(
        "Introduction", "MUST", "A parser emits one dataset for each completed message.", _PARSE
    ),
    Requirement(
        "Introduction",
        "MUST",
        "Empty messages are preserved at the beginning and between delimiters.",
        _PARSE,
    ),
    Requirement(
        "Introduction",
        "MUST, MUST NOT",
        "A delimiter at the end ends its message and creates no other.",
        _PARSE,
    ),
    Requirement(
        "Introduction",
        "MUST",
        "A label in two messages of one input is two blank nodes.",
        (*_PARSE, f"{_JSON}::test_blank_nodes_are_of_their_message"),
    ),
    Requirement(
        "Introduction",
        "MUST, MUST NOT",
        "Delimiters occur at the top level only; in a graph block they are an error.",
        _ERROR,
    ),
    Requirement(
        "Introduction",
        "should",
        "A log that was serialized is read as the same messages and quads.",
        _ROUND_TRIP,
    ),
    Requirement(
        "Introduction",
        "should not",
        "Conformance tests require no spelling of delimiters: they compare messages.",
        _ROUND_TRIP,
    ),
    Requirement(
        "Error tests",
        "must",
        "Without an announcement, a delimiter is an error.",
        (*_ERROR, f"{_TYPES}::test_a_delimiter_of_the_other_draft_is_an_error"),
    ),
)

LIVE: Final = (
    Requirement(
        "Server-sent events",
        "–",
        "The header `RDF-Message-Content-Type` names the type; each `rdf-message` event is a message.",
        (f"{_FEEDS}::test_events_of_every_format", f"{_PUSH}::test_events"),
    ),
    Requirement(
        "Server-sent events",
        "–",
        "A JSON-LD context comes by the header `Link`.",
        (f"{_FEEDS}::test_events_whose_context_is_in_a_header",),
    ),
    Requirement(
        "Server-sent events",
        "–",
        "A binary type is refused.",
        (f"{_FEEDS}::test_binary_events", f"{_PUSH}::test_a_binary_format_has_no_events"),
    ),
    Requirement(
        "WebSocket",
        "–",
        "A subprotocol such as `rdfm.n-triples` names the format; each frame is a message.",
        (f"{_FEEDS}::test_frames_of_every_format", f"{_PUSH}::test_frames"),
    ),
    Requirement(
        "Kafka",
        "–",
        "The header `RDF-Message-Content-Type` of a record names the type.",
        (f"{_KAFKA}::test_records_are_read", f"{_KAFKA}::test_records_are_written"),
    ),
    Requirement(
        "MQTT 5",
        "–",
        "The property Content Type names the type.",
        (f"{_MQTT}::test_as_given", f"{_MQTT}::test_every_format"),
    ),
    Requirement(
        "Other brokers",
        "–",
        "A header of the message names the type.",
        (f"{_NATS}::test_as_given", f"{_NATS}::test_every_format"),
    ),
    Requirement(
        "Jelly gRPC",
        "–",
        "Each frame is a message.",
        (f"{_GRPC}::test_subscribe", f"{_GRPC_SERVER}::test_subscribe"),
    ),
    Requirement(
        "All of them",
        "–",
        "Blank nodes are scoped to the message of the protocol.",
        (f"{_FEEDS}::test_frames_as_given", f"{_LOGS}::test_each_frame_is_a_document"),
    ),
)

FIRST: Final = (
    Requirement(
        "RDF Message Streams",
        "MAY",
        "A producer writes only when a consumer is ready: the server waits for slow followers.",
        (f"{_PUSH}::test_a_follower_that_reads_nothing_for_a_while",),
    ),
    Requirement(
        "N-Triples, N-Quads, Turtle and TriG",
        "–",
        "The media type parameter `messages=rdfm` announces messages.",
        (f"{_TYPES}::test_a_media_type_with_messages", _ACCEPT),
    ),
    Requirement(
        "N-Triples, N-Quads, Turtle and TriG",
        "MUST",
        "Each triple is part of a message; a delimiter at the beginning opens the first message.",
        (f"{_LINES}::test_reading", f"{_TURTLE}::test_reads"),
    ),
    Requirement(
        "N-Triples, N-Quads, Turtle and TriG",
        "MUST",
        "A delimiter, a comment that matches `/^\\s*@message/`, ends a message and opens the next.",
        (f"{_LINES}::test_reading", f"{_TURTLE}::test_reads"),
    ),
    Requirement(
        "N-Triples, N-Quads, Turtle and TriG",
        "–",
        "Other clients read the log as plain RDF.",
        (f"{_LINES}::test_plain_parsers_read_the_union",),
    ),
)


def _table(requirements: tuple[Requirement, ...]) -> list[str]:
    return [
        "| section | keyword | requirement | result | tests |",
        "|---|---|---|---|---|",
        *(
            f"| {section} | {keyword} | {text} | implemented | {_named(tests)} |"
            for section, keyword, text, tests in requirements
        ),
    ]


def _named(tests: tuple[str, ...]) -> str:
    return ", ".join(f"`{test}`" for test in tests)


def page() -> str:
    """The report, as Markdown."""
    return "\n".join(
        [
            "# Implementation report",
            "",
            "This report is for the editors of [RDF Messages](https://w3c-cg.github.io/rsp/spec/messages) and of",
            "[RDF Messages Tests](https://w3c-cg.github.io/rsp/spec/messages-tests), who may copy it.",
            "",
            f"- **Implementation:** construct-messages {construct_messages.__version__}, in Python, Apache-2.0",
            f"- **Date:** {DATE}",
            "- **Drafts:** RDF Messages Tests of 25 September 2026 (cases), RDF Messages at revision 09500e5 of its",
            "  repository (requirements), and the first draft, in which comments delimit messages",
            f"- **Result:** {len(CASES)} of {len(CASES)} cases pass; all requirements below are implemented",
            "",
            "Every run of the continuous integration runs the tests. Each case is run as given: logs whole and byte by",
            "byte, brokers and servers as real programs over sockets. No case is skipped or expected to fail.",
            "",
            "## Cases",
            "",
            "| case | name | result | tests |",
            "|---|---|---|---|",
            *(f"| {id} | {name} | passes | {_named(tests)} |" for id, name, tests in CASES),
            "",
            "## RDF Messages",
            "",
            "A sentence without a keyword of RFC 2119 has a dash.",
            "",
            *_table(DRAFT),
            "",
            "## RDF Messages Tests",
            "",
            *_table(TESTS),
            "",
            "## Live streams",
            "",
            "As section 1.1 of RDF Messages Tests describes them.",
            "",
            *_table(LIVE),
            "",
            "## The first draft",
            "",
            *_table(FIRST),
            "",
            _REST,
        ]
    )


_REST: Final = """\
## Extensions

These go beyond the drafts. None of them changes the meaning of a log or stream that conforms.

- Each solution of a SPARQL CONSTRUCT query becomes a message. Solutions may also be grouped by variables.
- A solution whose triples are all dropped becomes an empty message, unless the user skips empty messages.
- Logs may be compressed (gzip, bzip2, xz, Zstandard), or be tar archives with a document for each message.
- NDJSON-LD is written as `application/x-ld+ndjson`, and read as `application/x-ndjson` as well.
- Documents of YAML-LD end with `...`, so that a reader notices a message that was cut.
- `messages=rdfm` is accepted for the formats that delimit messages by themselves.
- Streams have sequences: the `id` of an event, `?after=` of a WebSocket, the offset or sequence of a broker, and
  metadata of a frame of gRPC. A reader resumes after the last message that it has stored.
- Messages of brokers have a key, so that a message that is sent again is stored once, and a time.
- Readers of brokers put records that are no messages into a dead-letter place, or stop, as the user decides.

## Open

The drafts leave these open. The behaviour of this implementation is in brackets.

- Profiles of streams are not defined yet (none is implemented).
- The media types of NDJSON-LD and YAML-LD are not settled (`application/x-ld+ndjson`, `application/rdfm+yaml`).
- YAML-LD of the JSON-LD Working Group makes an array of a stream of documents (a document is a message).
- A log that announces messages and has neither delimiter nor statement (no message).
- Two announcements that differ, in the media type and in the document (an error).
- How a reader resumes: `Last-Event-ID` of server-sent events has a meaning, but the drafts name none for the others.
- Triple terms in NDJSON-LD, YAML-LD and RDF/XML, and named graphs in RDF/XML (refused, never dropped).
"""


if __name__ == "__main__":
    print(page(), end="")
