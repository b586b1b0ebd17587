"""Turtle and TriG logs: prefixed names, quads grouped by graph, subject and predicate in order of first appearance.

RDF 1.2 Turtle section 2 and TriG section 2 for the syntax, RDF Messages section 3 for the delimiters. Statements are
one line a predicate and strings are escaped, so a line that begins like a delimiter is one. Which quads a log cannot
carry is `carry.py`'s to say; `turtle_template.py` writes the messages of a template, `turtle_decoder.py` reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from construct_messages.formats import Format, Syntax
from construct_messages.logs import EncoderOptions
from construct_messages.logs.capabilities import Carrier
from construct_messages.logs.encoded import EncodedBatch, EncodedTexts
from construct_messages.logs.plain_encoder import ByMessage
from construct_messages.logs.turtle.template import TurtleTemplate, is_laid_out
from construct_messages.message import Message
from construct_messages.solutions import Solutions
from construct_messages.template import Template
from construct_messages.terms import PN_BASE, PN_CHARS, RDF, XSD, Term, is_blank, is_iri, is_triple, triple_parts

_PREFIX: Final = re.compile(f"(?:[{PN_BASE}](?:[{PN_CHARS}.]*[{PN_CHARS}])?)?")
# PN_LOCAL without backslash escapes, and the empty name; an IRI that needs an escape is written in full
_LOCAL: Final = re.compile(
    f"(?:(?:[{PN_BASE}_:0-9]|%[0-9A-Fa-f]{{2}})"
    f"(?:(?:[{PN_CHARS}.:]|%[0-9A-Fa-f]{{2}})*(?:[{PN_CHARS}:]|%[0-9A-Fa-f]{{2}}))?)?"
)
# Lexical forms that every parser gives back as they are: no needless sign or zero, no exponent but the canonical one
_ABBREVIATED: Final = {
    f"<{XSD}{name}>": re.compile(shape)
    for name, shape in {
        "integer": r"0|-?[1-9][0-9]*",
        "decimal": r"-?(?:0|[1-9][0-9]*)\.[0-9]+",
        "double": r"-?[0-9]\.[0-9]+E-?(?:0|[1-9][0-9]*)",
        "boolean": r"true|false",
    }.items()
}
_TYPE: Final = f"<{RDF}type>"
# texts to remember, and the length of the terms worth it
_MOST: Final = 1 << 15
_LONGEST: Final = 256


class TurtleEncoder:
    """Writes messages as Turtle or TriG.

    Args:
        format: Turtle or TriG.
        syntax: how messages are delimited, and which RDF version the log keeps to.
        prefixes: namespace IRIs by prefix, in the order to write them; what Turtle cannot declare is left out: a
            prefix such as `1a`, or a namespace that is no absolute IRI.

    >>> from construct_messages.formats import RDFM, TURTLE
    >>> from construct_messages.message import Quad
    >>> from construct_messages.terms import iri, number
    >>> encoder = TurtleEncoder(TURTLE, RDFM, EncoderOptions({"ex": "http://example.org/"}))
    >>> s, p = iri("http://example.org/s"), iri("http://example.org/p")
    >>> message = Message([Quad(s, p, number("1")), Quad(s, p, number("2.0"))])
    >>> log = encoder.start() + encoder.encode(message) + encoder.encode(Message()) + encoder.finish()
    >>> print(log.decode(), end="")
    # @message
    PREFIX ex: <http://example.org/>
    <BLANKLINE>
    ex:s ex:p 1 , 2.0 .
    # @message
    """

    def __init__(self, format: Format, syntax: Syntax, options: EncoderOptions) -> None:
        self._carrier = Carrier(format, syntax)
        self.format, self.syntax = format, syntax
        self._namespaces = {
            prefix: value
            for prefix, value in (options.prefixes or {}).items()
            if _PREFIX.fullmatch(prefix) and is_iri(value)
        }
        self._head = _head(self._namespaces)
        self._statements = _Statements(self._namespaces)
        self._before, self._after = "", syntax.delimiter
        if syntax.delimiter_first:
            self._before, self._after = self._after, ""

    def start(self) -> bytes:
        """What stands before the first message."""
        # a delimiter of `rdfm` must come ahead of everything, so there the prefixes wait for the first message
        return b"" if self.syntax.delimiter_first else (self.syntax.announcement + self._take_head()).encode()

    def encode(self, message: Message) -> bytes:
        """One message with its delimiter.

        Raises:
            UnsupportedByFormat: a quad the format or the version has no syntax for.
        """
        self._carrier.check(message)
        return bytes(self._batch([self._text(message)]))

    def encode_document(self, message: Message) -> bytes:
        """One message with the prefixes that it uses; see `Encoder.encode_document`.

        Raises:
            UnsupportedByFormat: as `encode`.
        """
        self._carrier.check(message)
        statements = _Statements(self._namespaces)
        text = statements.text(message)
        used = {prefix: value for prefix, value in self._namespaces.items() if prefix in statements.texts.used}
        return f"{_head(used)}{text}".encode()

    def finish(self) -> bytes:
        """What stands after the last message."""
        return b""

    def for_template(self, template: Template) -> ByMessage | TurtleBatches:
        """The encoder for batches of a template's solutions."""
        if not (self._carrier.carries_template(template) and is_laid_out(template)):
            return ByMessage(self.encode, template)
        return TurtleBatches(self, template)

    def _batch(self, texts: list[str]) -> EncodedTexts:
        """The texts of messages, once the prefixes are declared."""
        if self._head:  # behind the delimiter of the first message, where that stands before it
            texts[0] = f"{self._before}{self._head}{texts[0].removeprefix(self._before)}"
            self._head = ""
        return EncodedTexts(texts)

    def _text(self, message: Message) -> str:
        """One message with its delimiter."""
        return f"{self._before}{self._statements.text(message)}{self._after}"

    def _take_head(self) -> str:
        head, self._head = self._head, ""
        return head


def _head(namespaces: Mapping[str, str]) -> str:
    """The declarations of prefixes."""
    declarations = "".join(f"PREFIX {prefix}: <{value}>\n" for prefix, value in namespaces.items())
    return f"{declarations}\n" if declarations else ""


class TurtleBatches:
    """Encodes batches of a template's solutions; byte for byte what `encode(Message(instantiate(…)))` gives.

    Args:
        encoder: the log's.
        template: see `is_laid_out`.

    >>> from construct_messages.formats import RDFM, TURTLE
    >>> from construct_messages.template import Constant, Pattern, Variable
    >>> template = Template(("x",), (Pattern(Variable(0), Constant(Term(_TYPE)), Constant(Term("<urn:o>"))),))
    >>> batches = TurtleEncoder(TURTLE, RDFM, EncoderOptions({"u": "urn:"})).for_template(template)
    >>> print(bytes(batches.encode(Solutions.of([("<urn:a>",), ('"a literal"',)]), 0)).decode(), end="")
    # @message
    PREFIX u: <urn:>
    <BLANKLINE>
    u:a a u:o .
    # @message
    """

    def __init__(self, encoder: TurtleEncoder, template: Template) -> None:
        self._encoder, self._plain = encoder, ByMessage(encoder.encode, template)
        statements = encoder._statements
        self._template = TurtleTemplate(encoder._text, statements.texts, statements.verbs, template)

    def encode(self, solutions: Solutions, first: int) -> EncodedBatch:
        """Encodes a batch; see `TemplateEncoder.encode`."""
        if not len(solutions) or not self._encoder._carrier.carries_columns(solutions):
            return self._plain.encode(solutions, first)
        self._encoder._carrier.count(len(solutions))
        return self._encoder._batch(self._template.messages(solutions, first))


class _Statements:
    """The statements of messages, without delimiters.

    Args:
        namespaces: IRIs by prefix.

    Attributes:
        texts, verbs: what is written for terms, and for predicates.
    """

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        self.texts = _Texts(namespaces)
        self.verbs = _Verbs(self.texts)

    def text(self, message: Message) -> str:
        """The statements of one message, grouped by graph, subject and predicate."""
        graphs: dict[Term | None, dict[Term, dict[Term, list[Term]]]] = {}
        for subject, predicate, object, graph in message:
            graphs.setdefault(graph, {}).setdefault(subject, {}).setdefault(predicate, []).append(object)
        return "".join(
            self._of_subjects(subjects, "")
            if graph is None
            else f"{self.texts[graph]} {{\n{self._of_subjects(subjects, '    ')}}}\n"
            for graph, subjects in graphs.items()
        )

    def _of_subjects(self, subjects: Mapping[Term, Mapping[Term, list[Term]]], indent: str) -> str:
        texts, verbs, separator = self.texts, self.verbs, f" ;\n{indent}    "
        statements = []
        for subject, predicates in subjects.items():
            pairs = [
                f"{verbs[predicate]} {' , '.join([texts[object] for object in objects])}"
                for predicate, objects in predicates.items()
            ]
            statements.append(f"{indent}{texts[subject]} {separator.join(pairs)} .\n")
        return "".join(statements)


class _Texts(dict[Term, str]):
    """What Turtle writes for a term, remembered for the terms met lately.

    Attributes:
        used: the prefixes that any of them has.
    """

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        # of two namespaces that both begin an IRI, the longer one shortens it more
        self._namespaces = sorted(((value, prefix) for prefix, value in namespaces.items()), key=lambda n: -len(n[0]))
        self.used: set[str] = set()

    def __missing__(self, term: Term) -> str:
        if term.startswith('"'):
            text = self._literal(term)
        elif is_triple(term):
            subject, predicate, object = triple_parts(term)
            verb = "a" if predicate == _TYPE else self[predicate]
            text = f"<<( {self[subject]} {verb} {self[object]} )>>"
        elif is_blank(term):
            text = term
        else:
            text = self._iri(term)
        if len(term) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[term] = text
        return text

    def _iri(self, term: Term) -> str:
        for namespace, prefix in self._namespaces:
            if term.startswith(namespace, 1) and _LOCAL.fullmatch(term, len(namespace) + 1, len(term) - 1):
                self.used.add(prefix)
                return f"{prefix}:{term[len(namespace) + 1 : -1]}"
        return term

    def _literal(self, term: Term) -> str:
        if not term.endswith(">"):
            return term
        end = term.rindex('"')
        datatype = Term(term[end + 3 :])
        shape = _ABBREVIATED.get(datatype)
        if shape and shape.fullmatch(term, 1, end):
            return term[1:end]
        return term[: end + 3] + self[datatype]


class _Verbs(dict[Term, str]):
    """What Turtle writes for a predicate, remembered likewise."""

    def __init__(self, texts: Mapping[Term, str]) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, term: Term) -> str:
        text = "a" if term == _TYPE else self._texts[term]
        if len(self) >= _MOST:
            self.clear()
        self[term] = text
        return text
