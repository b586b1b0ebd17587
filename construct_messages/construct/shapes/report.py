"""The results of validating one message: as values, as JSON, as RDF and as text.

SHACL, section 3.6 (validation report). A report as RDF also has the number of its message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from construct_messages.construct.shapes.graph import TYPE, Triple, sh, shown
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, boolean, is_blank, literal, number

REPORT_GRAPH: Final = Term("<urn:x-construct-messages:report>")
"""The graph of the report in a dead letter."""

MESSAGE_NUMBER: Final = Term("<urn:x-construct-messages:message>")
"""The property of a report that has the number of its message."""


class ValidationResult(NamedTuple):
    """A result (SHACL, section 3.6.2).

    Args:
        focus_node: the node that was validated.
        path: as in SPARQL, such as `<urn:p>/<urn:q>`; None: the constraint is on the node itself.
        value: the value that violates the constraint, or None.
        component: the IRI of the constraint component.
        constraint: the constraint as written in the shapes file, such as `sh:minCount 1`.
        severity: an IRI, such as that of `sh:Violation`.
        messages: the literals of `sh:message`.
        shape: the nearest shape that has an IRI, or None.
        source_shape: the shape itself, if it has an IRI.
        place: the file and the line of the shape, if they are known.
        path_node, path_triples: the path as RDF.

    >>> from construct_messages import iri
    >>> print(ValidationResult(iri("urn:s"), "<urn:p>", None, sh("MinCountConstraintComponent"), "sh:minCount 1",
    ...                        sh("Violation"), (), iri("urn:S"), iri("urn:S"), "shapes.ttl:2"))
    <urn:s> <urn:p>: sh:minCount 1 (shape <urn:S>, shapes.ttl:2)
    """

    focus_node: Term
    path: str | None
    value: Term | None
    component: Term
    constraint: str
    severity: Term
    messages: tuple[Term, ...]
    shape: Term | None
    source_shape: Term | None
    place: str | None
    path_node: Term | None = None
    path_triples: tuple[Triple, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Returns the result as JSON; terms are N-Triples, and parts that are absent are left out."""
        document = {
            "focusNode": self.focus_node,
            "path": self.path,
            "value": self.value,
            "constraint": self.constraint,
            "component": self.component[1:-1],
            "severity": self.severity[1:-1],
            "messages": list(self.messages) or None,
            "shape": self.shape,
            "place": self.place,
        }
        return {name: value for name, value in document.items() if value is not None}

    def __str__(self) -> str:
        text = " ".join(filter(None, (self.focus_node, self.path, self.value)))
        reasons = "; ".join(shown(each) for each in self.messages) or self.constraint
        where = ", ".join(filter(None, (self.shape and f"shape {self.shape}", self.place)))
        kind = "" if self.severity == sh("Violation") else f"{shown(self.severity)}: "
        return f"{kind}{text}: {reasons}" + (f" ({where})" if where else "")


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """The report of one message. It is true if the message conforms.

    Attributes:
        conforms: whether the message conforms to the shapes.
        results: the results, in a stable order.
        failure: the reason why the message could not be validated, and does not conform; None if it was validated.
        number: the number of the message, from 1; None if a single message was validated.

    >>> report = ValidationReport(False, failure="shapes nested too deep", number=3)
    >>> bool(report), report.as_json()["failure"]
    (False, 'shapes nested too deep')
    """

    conforms: bool
    results: tuple[ValidationResult, ...] = ()
    failure: str | None = None
    number: int | None = None

    def __bool__(self) -> bool:
        return self.conforms

    def as_json(self) -> dict[str, Any]:
        """Returns the report as JSON: `message`, `conforms`, and `results` or `failure`."""
        document: dict[str, Any] = {} if self.number is None else {"message": self.number}
        document["conforms"] = self.conforms
        if self.failure is not None:
            document["failure"] = self.failure
        document["results"] = [result.as_json() for result in self.results]
        return document

    def as_message(self) -> Message:
        """Returns the report as RDF: one `sh:ValidationReport`, with the number of the message."""
        return Message(Quad(*triple, None) for triple in self._triples())

    def __str__(self) -> str:
        """Returns the report as text, with a line for each result."""
        begin = "" if self.number is None else f"message {self.number}: "
        if self.failure is not None:
            return f"{begin}cannot be validated: {self.failure}"
        return "\n".join(f"{begin}{result}" for result in self.results) or f"{begin}conforms"

    def _triples(self) -> Iterator[Triple]:
        # equal reports have equal labels, so that a dead letter that is stored again is the same message
        labels, made = Labels.at(str(self.as_json())), 0

        def new() -> Term:
            nonlocal made
            made += 1
            return labels.of_template(0, made)

        report = new()
        yield report, TYPE, sh("ValidationReport")
        yield report, sh("conforms"), boolean("true" if self.conforms else "false")
        if self.number is not None:
            yield report, MESSAGE_NUMBER, number(str(self.number))
        if self.failure is not None:
            yield report, sh("resultMessage"), literal(self.failure)
        for result in self.results:
            node = new()
            yield report, sh("result"), node
            yield node, TYPE, sh("ValidationResult")
            yield node, sh("focusNode"), result.focus_node
            if result.path_node is not None:
                names: dict[Term, Term] = {}
                for each in (result.path_node, *(term for t in result.path_triples for term in t)):
                    if is_blank(each) and each not in names:
                        names[each] = new()
                yield node, sh("resultPath"), names.get(result.path_node, result.path_node)
                for subject, predicate, object in result.path_triples:
                    yield names.get(subject, subject), predicate, names.get(object, object)
            if result.value is not None:
                yield node, sh("value"), result.value
            yield node, sh("sourceConstraintComponent"), result.component
            yield node, sh("resultSeverity"), result.severity
            if result.source_shape is not None:
                yield node, sh("sourceShape"), result.source_shape
            for text in result.messages:
                yield node, sh("resultMessage"), text


def dead_letter(message: Message, report: ValidationReport) -> Message:
    """Returns a message that does not conform, together with its report, in the graph `REPORT_GRAPH`.

    >>> letter = dead_letter(Message(), ValidationReport(False, failure="too deep", number=3))
    >>> {quad.graph for quad in letter}
    {'<urn:x-construct-messages:report>'}
    >>> without_report(letter)
    <Message, empty>
    """
    quads = [*message, *(Quad(s, p, o, REPORT_GRAPH) for s, p, o, _ in report.as_message())]
    made = Message(quads)
    made.checked = message.checked
    return made


def without_report(message: Message) -> Message:
    """Returns a message without the report of an earlier validation, so that dead letters can be sent again."""
    if not any(graph == REPORT_GRAPH for _, _, _, graph in message.statements):
        return message
    made = Message(quad for quad in message if quad.graph != REPORT_GRAPH)
    made.checked = message.checked
    return made
