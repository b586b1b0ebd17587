"""How large each message is in a piece of a log that an encoder here has just written.

The log itself tells, so that nothing is encoded again: an encoder with tables, or with prefixes that come once, would
not write the same a second time. What others wrote is for decoders to read; here no delimiter stands within a
statement, since encoders escape line ends. RDF Messages, section 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from construct_messages.formats import JELLY, NDJSON_LD, RDF_XML, YAML_LD, Format, Syntax
from construct_messages.logs.jelly.wire import read_varint

_DELIMITERS: Final = {NDJSON_LD: rb"\n", RDF_XML: rb"\n", YAML_LD: rb"(?m)^(?=---)"}
"""Of the formats in lines that delimit messages by themselves."""


def sizes(format: Format, syntax: Syntax, chunk: bytes) -> list[int]:
    """The sizes of messages in bytes, each with its delimiter.

    Args:
        format, syntax: the log's.
        chunk: what `Encoder.encode` gave for one message, or `TemplateEncoder.encode` for a batch.

    >>> from construct_messages.formats import N_TRIPLES, RDFM
    >>> sizes(N_TRIPLES, RDFM, b"# @message\\n# @message\\n<urn:s> <urn:p> <urn:o> .\\n")
    [11, 37]
    """
    if format == JELLY:
        ends = list(_ends_of_frames(chunk))
    else:
        delimiter = _DELIMITERS.get(format)
        if delimiter is None:
            written = re.escape(syntax.delimiter).encode()
            delimiter = b"(?m)^(?=%b)" % written if syntax.delimiter_first else b"(?m)^%b" % written
        ends = [match.end() for match in re.finditer(delimiter, chunk)]
        if ends[:1] == [0]:  # delimiters that stand before each message
            ends = [*ends[1:], len(chunk)]
    return [end - start for start, end in pairwise([0, *ends])]


def _ends_of_frames(chunk: bytes) -> Iterator[int]:
    end = 0
    while end < len(chunk):
        length, start = read_varint(chunk, end)
        end = start + length
        yield end
