"""The values of options: made from what callers pass, and never changed."""

import copy
import pickle
import sys
from dataclasses import replace

import pytest

from construct_messages import Dataset, Grouping, Requests
from construct_messages.errors import UsageError

OPTIONS = [
    (Grouping("?a", order="sorted", limit=5), {"limit": 9}),
    (Dataset("union", ["urn:g"]), {"named_graphs": ("urn:h",)}),
    (Requests(5.0, page_size=10, headers=None), {"timeout": None}),
]


@pytest.mark.parametrize(("value", "changes"), OPTIONS, ids=repr)
def test_copies_and_changed_copies(
    value: Grouping | Dataset | Requests, changes: dict[str, object]
) -> None:
    for same in (copy.copy(value), pickle.loads(pickle.dumps(value)), replace(value)):
        assert same == value
        assert hash(same) == hash(value)
        assert repr(same) == repr(value)
    changed = replace(value, **changes)  # type: ignore[arg-type] # the fields are not known here
    assert changed != value
    assert {name: getattr(changed, name) for name in changes} == changes
    if sys.version_info >= (3, 13):
        assert copy.replace(value, **changes) == changed


def test_options_never_change() -> None:
    options = Requests()
    with pytest.raises(AttributeError, match="timeout"):
        options.timeout = 3  # type: ignore[misc]


def test_a_changed_copy_is_checked() -> None:
    with pytest.raises(UsageError, match="page_size=0 must be a whole number of at least 1"):
        replace(Requests(page_size=3), page_size=0)
