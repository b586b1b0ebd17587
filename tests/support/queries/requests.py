"""What a source is asked."""

from __future__ import annotations

from construct_messages.query.select import Select
from construct_messages.sparql.sources import Request


def request(variables: str, group: str, **options: object) -> Request:
    names = tuple(variables.split())
    head = f"SELECT {' '.join(f'?{name}' for name in names)} "
    return Request(Select("", head, names, "WHERE ", group), **options)  # type: ignore[arg-type]
