"""Values: classes of fields that never change, like frozen data classes, which take little time to define.

`dataclasses` imports `inspect`, and compiles the methods of each class when its module is imported: some five million
instructions a class, and a query at an endpoint near by needs thirty of them. Here all classes share their methods.
Modules that every query imports use this one; others use `dataclasses`. Fields are not checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Self, dataclass_transform

_NONE: Final[Any] = object()


class _Field:
    def __init__(self, default: Any, default_factory: Callable[[], Any] | None, compare: bool):
        self.default, self.default_factory, self.compare = default, default_factory, compare


def field(
    *,
    default: Any = _NONE,
    default_factory: Callable[[], Any] | None = None,
    compare: bool = True,
) -> Any:
    """Describes a field, as `dataclasses.field` does.

    Args:
        default: its value if none is passed.
        default_factory: creates that value for each object.
        compare: whether equality, `hash` and `repr` include it.
    """
    return _Field(default, default_factory, compare)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value:
    """An object that is its fields: the annotated names of its class, after those of its base class.

    Raises:
        TypeError: a field without a value or with two, or an unknown one.

    >>> class Place(Value):
    ...     name: str
    ...     seats: int = 2
    >>> Place("a"), Place("a") == Place("a", seats=2), Place("a").replace(seats=3)
    (Place(name='a', seats=2), True, Place(name='a', seats=3))
    >>> Place("a").seats = 3
    Traceback (most recent call last):
    AttributeError: Place.seats cannot be changed
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    _factories: ClassVar[dict[str, Callable[[], Any]]] = {}

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        own = [name for name, kind in cls.__annotations__.items() if "ClassVar" not in str(kind)]
        defaults, factories, left_out = dict(cls._defaults), dict(cls._factories), set[str]()
        for name in own:
            default = vars(cls).get(name, _NONE)
            if isinstance(default, _Field):
                delattr(cls, name)
                if not default.compare:
                    left_out.add(name)
                if default.default_factory is not None:
                    factories[name] = default.default_factory
                default = default.default
            if default is not _NONE:
                defaults[name] = default
        cls._compared += tuple(name for name in own if name not in left_out)
        cls._fields += tuple(own)
        setattr(cls, "__match_args__", cls._fields)  # noqa: B010 - mypy makes it from the annotations
        cls._defaults, cls._factories = defaults, factories

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self._fields
        given = dict(zip(names, values, strict=False)) | named
        is_ambiguous = len(given) < len(values) + len(named)  # too many, or a field twice
        for name, create in self._factories.items():
            if name not in given:
                given[name] = create()
        fields = self._defaults | given
        if is_ambiguous or fields.keys() != set(names):
            raise TypeError(
                f"{type(self).__name__}() takes {', '.join(names)}, not {', '.join(given)}"
            )
        vars(self).update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return tuple(map(vars(self).__getitem__, self._compared))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._compared)
        return f"{type(self).__qualname__}({fields})"

    def replace(self, **changes: Any) -> Self:
        """Returns a value of the same class with other values of some fields."""
        return type(self)(**{name: getattr(self, name) for name in self._fields} | changes)

    __replace__ = replace  # for `copy.replace`, from Python 3.13 on
