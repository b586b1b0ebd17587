"""Selects elements by the parameters of a URL: `last`, `after`, `before`, `since`, `until`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from multidict import MultiMapping

from construct_messages.rdf.errors import ProtocolError
from construct_messages.rdf.wire import Parameter
from construct_messages.streams.element import Element, State
from construct_messages.streams.store import StreamStore

UPPER_BOUNDS: Final = (Parameter.BEFORE, Parameter.UNTIL)
_MICROSECOND: Final = timedelta(microseconds=1)


def selecting(query: MultiMapping[str]) -> dict[str, str]:
    """Returns the parameters of a URL that select elements.

    Raises:
        ProtocolError: a parameter is repeated.
    """
    given = {name: query.getall(name) for name in Parameter if name in query}
    for name, values in given.items():
        if len(values) > 1:
            raise ProtocolError(f"{name} is given {len(values)} times", hint="give it once")
    return {name: values[0] for name, values in given.items()}


class Selection(NamedTuple):
    """A range of elements.

    Args:
        after: the sequence before the first one.
        last: the sequence of the last one; less than `after + 1` if the range is empty.
    """

    after: int
    last: int


def select(store: StreamStore, state: State, parameters: Mapping[str, str]) -> Selection:
    """Returns the selected elements: those that fulfil all conditions; without conditions, all retained elements.

    Args:
        store: the store of the stream.
        state: the state of the stream.
        parameters: values by `Parameter`: `last`, the number of newest elements; `after` and `before`, sequences, both
            exclusive; `since` and `until`, times with a zone, both inclusive.

    Raises:
        ProtocolError: a value that is not a whole number, or not a time with a zone.
        NotFound: no element with the sequence `after` exists yet.
    """
    first, last = state.first, state.last
    if (after := parameters.get(Parameter.AFTER)) is not None:
        first = sequence_parameter(Parameter.AFTER, after) + 1
        if first > state.next:  # as after a stream was deleted and created again
            store.check_position(state.name, first - 1)
    if (since := parameters.get(Parameter.SINCE)) is not None:
        first = max(first, store.sequence_at(state.name, _time(Parameter.SINCE, since)))
    if (until := parameters.get(Parameter.UNTIL)) is not None:
        last = store.sequence_at(state.name, _time(Parameter.UNTIL, until) + _MICROSECOND) - 1
    if (before := parameters.get(Parameter.BEFORE)) is not None:
        last = min(last, sequence_parameter(Parameter.BEFORE, before) - 1)
    if (newest := parameters.get(Parameter.LAST)) is not None:
        first = max(first, last + 1 - sequence_parameter(Parameter.LAST, newest))
    return Selection(first - 1, last)


async def selected(
    store: StreamStore, stream: str, selection: Selection
) -> AsyncGenerator[list[Element]]:
    """Yields pages of the elements of a selection."""
    if selection.last <= selection.after:
        return
    async with aclosing(store.apages(stream, selection.after)) as pages:
        async for page in pages:
            if page[-1].sequence >= selection.last:
                yield page[: selection.last - page[0].sequence + 1]
                return
            yield page


def sequence_parameter(name: str, value: str) -> int:
    """Returns the whole number in a URL's parameter.

    >>> sequence_parameter("after", "12")
    12
    """
    # parsing more digits than a sequence can have would take long
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        raise ProtocolError(
            f"{name}={value[:40]} is no whole number", hint=f"write it as {name}=10"
        )
    return int(value)


def _time(name: str, value: str) -> datetime:
    hint = f"write it as {name}=2026-11-22T12:00:00Z"
    try:
        # an unescaped + of the zone was decoded as a space
        time = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
        if time.tzinfo is None:
            raise ProtocolError(f"{name}={value[:40]} has no time zone", hint=hint)
        # some times overflow in UTC, or with the next microsecond
        return (time + _MICROSECOND).astimezone(UTC) - _MICROSECOND
    except (ValueError, OverflowError):
        raise ProtocolError(f"{name}={value[:40]} is no time", hint=hint) from None
