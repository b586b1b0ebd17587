"""Which elements a request asks for, by the parameters of its URL: `last`, `after`, `before`, `since`, `until`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from multidict import MultiMapping

from construct_messages.errors import ProtocolError
from construct_messages.net.wire import Parameter
from construct_messages.streams.element import Element, State
from construct_messages.streams.store import StreamStore

UPPER_BOUNDS: Final = (Parameter.BEFORE, Parameter.UNTIL)
_MICROSECOND: Final = timedelta(microseconds=1)


def selecting(query: MultiMapping[str]) -> dict[str, str]:
    """The parameters of a URL that select elements.

    Raises:
        ProtocolError: one is given more than once.
    """
    given = {name: query.getall(name) for name in Parameter if name in query}
    for name, values in given.items():
        if len(values) > 1:
            raise ProtocolError(f"{name} is given {len(values)} times", hint="give it once")
    return {name: values[0] for name, values in given.items()}


class Selection(NamedTuple):
    """A run of elements.

    Args:
        after: the sequence before the first.
        last: the sequence of the last; below `after + 1` there are none.
    """

    after: int
    last: int


def select(store: StreamStore, state: State, parameters: Mapping[str, str]) -> Selection:
    """The elements that are asked for: those that fulfil all conditions, and all that are kept without any.

    Args:
        store: where the stream is.
        state: its state.
        parameters: of `Parameter`: `last`, how many of the newest; `after` and `before`, sequences, both exclusive;
            `since` and `until`, times with a zone, both inclusive.

    Raises:
        ProtocolError: a value that is no whole number, or no time with a zone.
        NotFound: there was no element of the sequence `after` yet.
    """
    first, last = state.first, state.last
    if (after := parameters.get(Parameter.AFTER)) is not None:
        first = sequence_parameter(Parameter.AFTER, after) + 1
        if first > state.next:  # as for a stream that was deleted and made again
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
    """Pages of the elements of a selection."""
    if selection.last <= selection.after:
        return
    async with aclosing(store.apages(stream, selection.after)) as pages:
        async for page in pages:
            if page[-1].sequence >= selection.last:
                yield page[: selection.last - page[0].sequence + 1]
                return
            yield page


def sequence_parameter(name: str, value: str) -> int:
    """A whole number of a URL's parameter.

    >>> sequence_parameter("after", "12")
    12
    """
    # more digits than a sequence ever has would take long to read
    if not (value.isascii() and value.isdigit() and len(value) < 20):
        raise ProtocolError(
            f"{name}={value[:40]} is no whole number", hint=f"write it as {name}=10"
        )
    return int(value)


def _time(name: str, value: str) -> datetime:
    hint = f"write it as {name}=2026-11-22T12:00:00Z"
    try:
        # an unescaped + of the zone has become a blank
        time = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
        if time.tzinfo is None:
            raise ProtocolError(f"{name}={value[:40]} has no time zone", hint=hint)
        # in UTC, and with the next microsecond, some are no dates
        return (time + _MICROSECOND).astimezone(UTC) - _MICROSECOND
    except (ValueError, OverflowError):
        raise ProtocolError(f"{name}={value[:40]} is no time", hint=hint) from None
