"""The Jelly encoder: a frame is a message, after its length.

`frames.py` writes the content of a frame, or `template.py` for a template's solutions.

Jelly 1.1, serialization; RDF Messages section 3.
"""

from __future__ import annotations

from construct_messages.errors import UnsupportedByFormat
from construct_messages.formats import Format, Syntax
from construct_messages.logs import EncoderOptions
from construct_messages.logs.jelly.frames import FrameWriter
from construct_messages.logs.jelly.options import JellyOptions, PhysicalType
from construct_messages.logs.jelly.tags import options_row
from construct_messages.logs.jelly.template import TemplateFrames
from construct_messages.logs.jelly.wire import delimited
from construct_messages.logs.layout import is_laid_out
from construct_messages.logs.plain_encoder import PlainTemplateEncoder
from construct_messages.message import Message
from construct_messages.template import Template
from construct_messages.terms import iri


class JellyEncoder:
    """Writes messages as Jelly.

    The first frame contains the options, and each frame is a message. A log without messages is a frame of the options
    twice, which no frame of a message is.

    Args:
        options: what the `JellyOptions` among them leave open is chosen by the others; the prefixes are for namespace
            declarations, where those ask for them.

    Attributes:
        options: of the stream, none of them open.

    Raises:
        UsageError: options that cannot be written.
        TermError: a prefix for what is no IRI.

    >>> from construct_messages.message import Quad
    >>> from construct_messages.formats import JELLY
    >>> from construct_messages.terms import Term
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
        """One message as a frame, after its length if the stream is delimited.

        Raises:
            UnsupportedByFormat: a base direction, a named graph in a stream of triples, a term where the options allow
                none, triple terms too deep in each other, a statement that outgrows a table, or a second message
                where the stream is not delimited.
        """
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
        """One message as a frame with its own options and tables, without its length; see `Encoder.encode_document`.

        It has all namespace declarations of the stream.

        Raises:
            UnsupportedByFormat: as `encode`.
        """
        alone = FrameWriter(self.options, self._namespaces, self._frames.message_count)
        self._frames.message_count += 1
        return alone.write(message)

    def finish(self) -> bytes:
        """Returns no bytes, or the only frame of a log without messages: pyjelly takes an empty file for damaged."""
        if self._frames.is_open:
            return b""
        frame = options_row(self.options) * 2
        return delimited(frame) if self.options.delimited else frame

    def for_template(self, template: Template) -> PlainTemplateEncoder | TemplateFrames:
        """The encoder specialised for a template."""
        graphs = self.options.physical_type is PhysicalType.GRAPHS
        if graphs or not self.options.delimited or not is_laid_out(template):
            return PlainTemplateEncoder(self.encode, template)
        return TemplateFrames(self._frames, template)
