"""Validates messages in transit: those that do not conform are reported, dropped, or raise an error."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Literal, TypeAlias

from construct_messages.construct.shapes.engine import Shapes
from construct_messages.construct.shapes.report import ValidationReport, without_report
from construct_messages.errors import DoesNotConform
from construct_messages.rdf.arguments import checked
from construct_messages.rdf.message import Message

OnInvalid: TypeAlias = Literal["report", "drop", "stop"]
"""The handling of messages that do not conform: they are passed on, left out, or raise an error."""


class Validation:
    """Validates messages in transit.

    Args:
        shapes: the shapes to validate against.
        on_invalid: `"report"` passes on messages that do not conform, `"drop"` leaves them out, and `"stop"` raises an
            error at the first one.
        on_report: called with each message that has results and its report.

    Attributes:
        messages: the number of validated messages.
        invalid: the number of messages that do not conform.
        results: the number of results.

    >>> from construct_messages import Quad, iri, literal
    >>> import io, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "shapes.ttl")
    ...     _ = path.write_text("@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:S> sh:targetSubjectsOf <urn:p> ;"
    ...                         "sh:property [ sh:path <urn:p> ; sh:minLength 2 ] .")
    ...     validation = Validation(Shapes(path), on_invalid="drop")
    >>> messages = [Message([Quad(iri("urn:s"), iri("urn:p"), literal(text))]) for text in ("a", "ab", "abc")]
    >>> len(list(validation.passed(messages))), validation.messages, validation.invalid
    (2, 3, 1)
    """

    @checked
    def __init__(
        self,
        shapes: Shapes,
        *,
        on_invalid: OnInvalid = "report",
        on_report: Callable[[Message, ValidationReport], object] | None = None,
    ) -> None:
        self._shapes, self._on_invalid, self._on_report = shapes, on_invalid, on_report
        self.messages = self.invalid = self.results = 0

    def passed(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Returns the messages that are passed on, in order.

        The report of an earlier validation in a dead letter is removed first.

        Raises:
            DoesNotConform: a message does not conform, and `on_invalid` is `"stop"`.
        """
        for message in messages:
            yield from self._passed(message)

    async def apassed(self, messages: AsyncIterable[Message]) -> AsyncIterator[Message]:
        """Returns the same as `passed`, for asyncio."""
        async for message in messages:
            for each in self._passed(message):
                yield each

    def _passed(self, message: Message) -> Iterator[Message]:
        self.messages += 1
        message = without_report(message)
        report = self._shapes.validate(message, number=self.messages)
        if report.conforms and not report.results:
            yield message
            return
        self.results += len(report.results)
        self.invalid += not report.conforms
        if self._on_report is not None:
            self._on_report(message, report)
        if not report.conforms and self._on_invalid == "stop":
            raise does_not_conform(report)
        if report.conforms or self._on_invalid == "report":
            yield message


def does_not_conform(report: ValidationReport) -> DoesNotConform:
    """Returns the error of a message that does not conform."""
    first, *others = str(report).splitlines()
    more = f", and {len(others)} more" if others else ""
    subject, colon, reason = first.partition(": ") if report.number else ("message", ": ", first)
    return DoesNotConform(
        f"{subject} does not conform to the shapes{colon}{reason}{more}",
        number=report.number or 1,
        report=report.as_json(),
        hint="correct the message or the shapes, or drop messages that do not conform",
    )
