"""The Turtle and TriG encoder: prefixed names, quads grouped by graph, subject and predicate in order of appearance.

RDF 1.2 Turtle section 2 and TriG section 2 for the syntax, RDF Messages section 3 for the delimiters. Each predicate
has a line and strings are escaped, so a line that begins like a delimiter is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from construct_messages.logs import EncoderOptions
from construct_messages.logs.text_encoder import TextEncoder, Texts
from construct_messages.rdf import compiled
from construct_messages.rdf.formats import Format, Syntax
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import (
    PN_BASE,
    PN_CHARS,
    RDF,
    XSD,
    Term,
    grammar,
    is_iri,
    is_triple,
    triple_parts,
)

_PREFIX: Final = f"(?:[{PN_BASE}](?:[{PN_CHARS}.]*[{PN_CHARS}])?)?"
# PN_LOCAL without backslash escapes, and the empty name; an IRI that needs an escape is written in full
_LOCAL: Final = (
    f"(?:(?:[{PN_BASE}_:0-9]|%[0-9A-Fa-f]{{2}})"
    f"(?:(?:[{PN_CHARS}.:]|%[0-9A-Fa-f]{{2}})*(?:[{PN_CHARS}:]|%[0-9A-Fa-f]{{2}}))?)?"
)
# Lexical forms that every parser keeps: no needless sign or zero, and only the canonical exponent
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


class TurtleEncoder(TextEncoder):
    """Writes messages as Turtle or TriG. `syntax`: the delimiters of messages, and the RDF version of the log.
    `prefixes`: namespace IRIs by prefix, in the order to write them. Those that Turtle cannot declare are omitted: a
    prefix such as `1a`, or a namespace that is not an absolute IRI.

    >>> from construct_messages.rdf.formats import RDFM, TURTLE
    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, number
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
        self._namespaces = {
            prefix: value
            for prefix, value in (options.prefixes or {}).items()
            if grammar.compiled(_PREFIX, prefix.isascii()).fullmatch(prefix) and is_iri(value)
        }
        super().__init__(format, syntax)
        self._notation = _Notation(self._namespaces)
        self._packed = "".join(
            f"{iri}\0{prefix}\0" for iri, prefix in self._notation.namespaces
        ).encode()
        self._head = _declarations(self._namespaces)
        self._before, self._after = "", syntax.delimiter
        if syntax.delimiter_first:
            self._before, self._after = self._after, ""

    def start(self) -> bytes:
        if self.syntax.delimiter_first:
            # this delimiter must precede everything else, so the prefixes wait for the first message
            return b""
        head, self._head = self._head, ""
        return f"{self.syntax.announcement}{head}".encode()

    def encode(self, message: Message) -> bytes:
        if compiled.wire is not None:
            statements = compiled.wire.turtle_statements(
                message.statements, self._packed, self.format.graphs
            )
            if statements is not None:
                self.capabilities.count(1)
                head, self._head = self._head, ""
                return b"%b%b%b" % (
                    f"{self._before}{head}".encode(),
                    statements,
                    self._after.encode(),
                )
        return super().encode(message)

    def declare(self, texts: list[str]) -> None:
        """Declares the prefixes in the first message, after the delimiter before it."""
        if self._head:
            texts[0] = f"{self._before}{self._head}{texts[0].removeprefix(self._before)}"
            self._head = ""

    def write(self, message: Message) -> str:
        """Writes the statements of one message, and its delimiter."""
        return f"{self._before}{_statements(message, self._notation)}{self._after}"

    def write_document(self, message: Message) -> str:
        """Writes the statements of one message with the prefixes that it uses; see `Encoder.encode_document`."""
        notation = _Notation(self._namespaces)
        statements = _statements(message, notation)
        used = {
            prefix: value for prefix, value in self._namespaces.items() if prefix in notation.used
        }
        return f"{_declarations(used)}{statements}"


def _declarations(namespaces: Mapping[str, str]) -> str:
    declarations = "".join(f"PREFIX {prefix}: <{value}>\n" for prefix, value in namespaces.items())
    return f"{declarations}\n" if declarations else ""


def _statements(message: Message, notation: _Notation) -> str:
    graphs: dict[Term | None, dict[Term, dict[Term, list[Term]]]] = {}
    for subject, predicate, object, graph in message:
        graphs.setdefault(graph, {}).setdefault(subject, {}).setdefault(predicate, []).append(
            object
        )
    return "".join(
        _of_subjects(subjects, "", notation)
        if graph is None
        else f"{notation.term(graph)} {{\n{_of_subjects(subjects, '    ', notation)}}}\n"
        for graph, subjects in graphs.items()
    )


def _of_subjects(
    subjects: Mapping[Term, Mapping[Term, list[Term]]], indent: str, notation: _Notation
) -> str:
    term, verb, separator = notation.term, notation.verb, f" ;\n{indent}    "
    statements = []
    for subject, predicates in subjects.items():
        pairs = [
            f"{verb(predicate)} {' , '.join(map(term, objects))}"
            for predicate, objects in predicates.items()
        ]
        statements.append(f"{indent}{term(subject)} {separator.join(pairs)} .\n")
    return "".join(statements)


class _Notation:
    """The Turtle notation of terms."""

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        # if several namespaces match an IRI, the longest one shortens it most
        # these IRIs and their prefixes, the longest first
        self.namespaces = sorted(
            ((value, prefix) for prefix, value in namespaces.items()), key=lambda n: -len(n[0])
        )
        # the prefixes in these texts
        self.used: set[str] = set()
        # returns the text of a term
        self.term: Callable[[Term], str] = Texts(self._term).__getitem__

    def verb(self, term: Term) -> str:
        return "a" if term == _TYPE else self.term(term)

    def _term(self, term: Term) -> str:
        if term.startswith('"'):
            return self._literal(term)
        if is_triple(term):
            subject, predicate, object = triple_parts(term)
            return f"<<( {self.term(subject)} {self.verb(predicate)} {self.term(object)} )>>"
        local = grammar.compiled(_LOCAL, term.isascii())
        for namespace, prefix in self.namespaces:  # none of these begins a blank node
            if term.startswith(namespace, 1) and local.fullmatch(
                term, len(namespace) + 1, len(term) - 1
            ):
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
        return term[: end + 3] + self.term(datatype)
