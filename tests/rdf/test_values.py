"""Values, beside frozen data classes of the same fields."""

import copy
import pickle
from dataclasses import dataclass
from dataclasses import field as data_field

import pytest

from construct_messages.rdf.values import Value, field


class Place(Value):
    name: str
    seats: int = 2
    notes: list[str] = field(default_factory=list, compare=False)


class Room(Place, kw_only=True):
    floor: int


@dataclass(frozen=True)
class PlaceOfData:
    name: str
    seats: int = 2
    notes: list[str] = data_field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class RoomOfData(PlaceOfData):
    floor: int


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Place("a"), PlaceOfData("a")),
        (Place("a", seats=3, notes=["b"]), PlaceOfData("a", seats=3, notes=["b"])),
        (Room(name="a", floor=1), RoomOfData(name="a", floor=1)),
    ],
    ids=repr,
)
def test_like_a_data_class(value: Place, data: PlaceOfData) -> None:
    assert repr(value) == repr(data).replace("OfData", "")
    assert vars(value) == vars(data)
    assert hash(value) == hash(data)
    assert type(value).__match_args__[:2] == type(data).__match_args__[:2]
    assert value == value.replace(notes=["other"]) != value.replace(seats=0)
    assert value != data
    for same in (copy.copy(value), pickle.loads(pickle.dumps(value))):
        assert same == value
        assert vars(same) == vars(value)


def test_each_object_has_its_own_value_of_a_factory() -> None:
    assert Place("a").notes is not Place("a").notes


def test_a_value_never_changes() -> None:
    place = Place("a")
    with pytest.raises(AttributeError, match=r"Place\.seats cannot be changed"):
        place.seats = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match=r"Place\.seats cannot be deleted"):
        del place.seats
    assert place == Place("a")


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1, [], 2), {}), (("a",), {"doors": 1}), (("a",), {"name": "b"})],
)
def test_fields_that_are_missing_unknown_or_there_twice(
    values: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(TypeError, match=r"^Place\(\) takes name, seats, notes, not "):
        Place(*values, **named)  # type: ignore[arg-type]
