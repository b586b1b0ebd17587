"""The arguments of `construct_messages` from a table of cases, where each option has a name of its own."""

from collections.abc import Mapping
from typing import Any, Final

from construct_messages.rdf.options import Dataset, Grouping, Requests, options_of

_REQUESTS: Final = frozenset(options_of(Requests))
_DATASET: Final = frozenset(options_of(Dataset))
_GROUPING: Final = {"group_order": "order", "group_limit": "limit"}


def arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """The option values of these options, and the other options as they are.

    >>> arguments({"distinct": True, "page_size": 2})["requests"].page_size
    2
    """
    found = dict(options)

    def take(names: Mapping[str, str]) -> dict[str, Any]:
        return {names[name]: found.pop(name) for name in list(found) if name in names}

    if grouping := take(_GROUPING):
        found["group_by"] = Grouping(found.pop("group_by", ()), **grouping)
    if dataset := take(dict(zip(_DATASET, _DATASET, strict=True))):
        found["dataset"] = Dataset(**dataset)
    if requests := take(dict(zip(_REQUESTS, _REQUESTS, strict=True))):
        found["requests"] = Requests(**requests)
    return found
