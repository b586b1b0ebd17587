"""The Jelly encoder: each message is a frame, after its length.

`frames.py` writes the content of frames.

Jelly 1.1, serialization; RDF Messages section 3.
"""

from __future__ import annotations

from construct_messages.logs import EncoderOptions
from construct_messages.logs.jelly.frames import FrameWriter
from construct_messages.logs.jelly.options import JellyOptions
from construct_messages.logs.jelly.tags import options_row
from construct_messages.logs.jelly.wire import delimited
from construct_messages.logs.text_encoder import PlainTemplateEncoder
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.template import Template
from construct_messages.rdf.terms import iri


class JellyEncoder:
    """Writes messages as Jelly. `options`: open `JellyOptions` among them are chosen by the others; the prefixes are
    for namespace declarations, if the options include them.

    The first frame contains the options, and each frame is a message. A log without messages is a frame with the
    options twice, which is never the frame of a message.

    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.formats import JELLY
    >>> from construct_messages.rdf.terms import Term
    >>> encoder = JellyEncoder(JELLY, JELLY.own, EncoderOptions(graphs=False))
    >>> s, p = iri("urn:s"), iri("urn:p")
    >>> first = encoder.encode(Message([Quad(s, p, s)]))
    >>> encoder.encode(Message([Quad(s, p, Term('"o"'))])).hex()
    '090a0712055a030a016f'
    >>> encoder.encode(Message()), encoder.finish()
    (b'\\x00', b'')
    """

    def __init__(self, _format: Format, _syntax: Syntax, options: EncoderOptions) -> None:
        own = options.own if isinstance(options.own, JellyOptions) else JellyOptions()
        # options: the options of the stream, without open ones
        self.options = own = own.for_writing(
            graphs=options.graphs, triple_terms=options.triple_terms
        )
        declared = options.prefixes or {} if own.namespace_declarations else {}
        self._namespaces = {prefix: iri(value) for prefix, value in declared.items()}
        self._frames = FrameWriter(own, self._namespaces)

    def start(self) -> bytes:
        """Returns no bytes: the options are in the first frame."""
        return b""

    def encode(self, message: Message) -> bytes:
        """Encodes one message as a frame, after its length if the stream is delimited."""
        if self.options.delimited:
            return delimited(self._frames.write(message))
        if self._frames.is_open:
            self._frames.message_count += 1
            raise UnsupportedByFormat(
                f"message {self._frames.message_count}: a stream that is not delimited is a single frame",
                hint="write a delimited stream, as is the default",
            )
        return self._frames.write(message)

    def encode_document(self, message: Message) -> bytes:
        """Encodes one message as a frame with its own options and tables, without its length; see
        `Encoder.encode_document`.

        The frame has all namespace declarations of the stream.
        """
        alone = FrameWriter(self.options, self._namespaces, self._frames.message_count)
        self._frames.message_count += 1
        return alone.write(message)

    def finish(self) -> bytes:
        """Returns no bytes, or the only frame of a log without messages: pyjelly considers an empty file damaged."""
        if self._frames.is_open:
            return b""
        frame = options_row(self.options) * 2
        return delimited(frame) if self.options.delimited else frame

    def for_template(self, template: Template) -> PlainTemplateEncoder:
        """Returns the encoder of a template's solutions."""
        return PlainTemplateEncoder(self.encode, template)
