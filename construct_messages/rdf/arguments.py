"""Checks the arguments of public functions against their annotations, so that an error names the argument.

Functions check all other requirements of arguments. Annotations that cannot be evaluated, because their names are
imported for type checkers only, are not checked.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from functools import cache, reduce, wraps
from operator import or_
from types import NoneType, UnionType
from typing import (
    IO,
    Any,
    BinaryIO,
    Final,
    Literal,
    NewType,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from construct_messages.errors import QueryWarning, WrongType, shown

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Check = Callable[[Any], bool]

_PLAIN: Final = (str, bytes, NoneType)
_PACKAGE: Final = "construct_messages."
_COROUTINE: Final = 0x80  # `inspect.CO_COROUTINE`, without importing `inspect`
_MODULE: Final = re.compile(r"\b(?:[a-z_]\w*\.)+(?=\w)")


def checked(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Returns the function with a check of its arguments, which runs when it is called.

    >>> @checked
    ... def repeat(text: str, times: int = 2) -> str:
    ...     return text * times
    >>> repeat("a", times="2")
    Traceback (most recent call last):
    construct_messages.errors.WrongType: repeat(): times must be int, not '2' (str)
      hint: pass int, or leave it out
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    checks: dict[str, _Check] = {}
    in_order: list[_Check | None] = []

    def check_all(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if not checks:
            checks.update(_checks(function))
            in_order.extend(map(checks.get, names))
        for name, check, value in zip(names, in_order, arguments):  # noqa: B905 - there may be defaults, or *arguments
            if check is not None and not check(value):
                raise _wrong(function, name, value)
        for name, value in options.items():
            check = checks.get(name)
            if check is not None and not check(value):
                raise _wrong(function, name, value)

    @wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        check_all(arguments, options)
        return function(*arguments, **options)

    @wraps(function)
    async def call_later(*arguments: _P.args, **options: _P.kwargs) -> Any:
        check_all(arguments, options)
        return await cast("Callable[_P, Awaitable[Any]]", function)(*arguments, **options)

    return cast("Callable[_P, _T]", call_later) if code.co_flags & _COROUTINE else call


def checked_fields(kind: type[_T]) -> type[_T]:
    """Returns a dataclass whose fields are checked when one is made; see `checked`.

    >>> from dataclasses import dataclass
    >>> @checked_fields
    ... @dataclass
    ... class Room:
    ...     seats: int
    >>> Room("2")
    Traceback (most recent call last):
    construct_messages.errors.WrongType: Room(): seats must be int, not '2' (str)
      hint: pass int
    """
    setattr(kind, "__init__", checked(vars(kind)["__init__"]))  # noqa: B010 - mypy allows no assignment to a method
    return kind


def wrong_type(function: str, argument: str, value: object, expected: str, hint: str) -> WrongType:
    given = "None" if value is None else f"{shown(repr(value)[:150])} ({type(value).__name__})"
    return WrongType(f"{function}(): {argument} must be {expected}, not {given}", hint=hint)


def _wrong(function: Callable[..., object], name: str, value: object) -> WrongType:
    expected = _name(_annotation(function, name))
    if isinstance(value, bytes | bytearray) and "str" in expected:
        hint = "decode it: value.decode()"
    else:
        given = name in (function.__kwdefaults__ or {}) or name in _defaults(function)
        hint = f"pass {expected}, or leave it out" if given else f"pass {expected}"
    called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    return wrong_type(called, name, value, expected, hint)


def _defaults(function: Callable[..., object]) -> Sequence[str]:
    code = function.__code__
    count = len(function.__defaults__ or ())
    return code.co_varnames[code.co_argcount - count : code.co_argcount]


def _checks(function: Callable[..., object]) -> dict[str, _Check]:
    found = {}
    for name in function.__annotations__.keys() - {"return"}:
        annotation = _annotation(function, name)
        if annotation is not None and (check := _check(annotation)) is not None:
            found[name] = check
    return found or {"": lambda _: True}


def _annotation(function: Callable[..., object], name: str) -> Any:
    """The type that an argument is annotated with; None: it cannot be evaluated."""
    return plain(evaluated(function.__annotations__[name], function.__module__))


@cache
def evaluated(annotation: Any, module: str) -> Any:
    """The type of an annotation in a module; None: a name in it is imported for type checkers only."""
    # `get_type_hints` calls `compile`, whose first call takes nine million instructions
    try:
        while isinstance(annotation, str):  # an alias may be quoted
            annotation = eval(annotation, vars(sys.modules[module]))
    except NameError:
        return None
    return annotation


def types_in(annotation: Any) -> list[Any]:
    """The types of a union, or the type itself."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return list(get_args(annotation)) if is_union else [annotation]


def plain(annotation: Any) -> Any:
    """A type without what `Annotated` adds to it, or to the types of a union."""
    if hasattr(annotation, "__metadata__"):
        return annotation.__origin__
    types = types_in(annotation)
    parts = list(map(plain, types)) if len(types) > 1 else types
    return annotation if parts == types else reduce(or_, parts)


def _name(annotation: Any) -> str:
    """How a type is written.

    >>> _name(Mapping[str, str] | None), _name(str)
    ('Mapping[str, str] | None', 'str')
    """
    name = (
        annotation.__name__
        if isinstance(annotation, type) and not get_args(annotation)
        else str(annotation)
    )
    return _MODULE.sub("", name)


def _check(annotation: Any) -> _Check | None:
    """The check whether a value is of a type; None: any value is."""
    if annotation in (Any, object):
        return None
    if isinstance(annotation, NewType):
        return _check(annotation.__supertype__)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        if all(each in _PLAIN for each in inner):
            return lambda value: isinstance(value, inner)  # in one call
        return _any_of([_check(each) for each in inner])
    if origin is Literal:
        return _any_of([_check(type(each)) for each in inner])
    if annotation is None or annotation is NoneType:
        return lambda value: value is None
    if annotation is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if annotation is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    kind = annotation if origin is None else origin
    if kind is Iterable:
        return lambda value: hasattr(value, "__iter__") or hasattr(value, "__getitem__")
    if kind is AsyncIterable:
        return lambda value: hasattr(value, "__aiter__")
    if kind in (IO, BinaryIO):
        return lambda value: hasattr(value, "read") or hasattr(value, "write")
    if kind in (Sequence, Collection):
        return _collection(*(_check(each) for each in inner))
    if kind is Mapping:
        # an error about one value of many is the function's, which knows what they are
        is_plain = not any(get_args(part) for each in inner for part in get_args(each))
        return _mapping(*(_check(each) for each in inner if is_plain))
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return None
    return lambda value: isinstance(value, kind)


def _any_of(checks: Sequence[_Check | None]) -> _Check | None:
    known = [check for check in checks if check is not None]
    if len(known) < len(checks):
        return None

    def check_any(value: Any) -> bool:
        for check in known:  # noqa: SIM110 - `any` makes a generator for each call
            if check(value):
                return True
        return False

    return check_any


def _collection(of: _Check | None = None) -> _Check:
    return lambda value: (
        isinstance(value, Collection)
        and not isinstance(value, bytes | Mapping)
        and (of is None or all(map(of, value)))
    )


def _mapping(keys: _Check | None = None, values: _Check | None = None) -> _Check:
    return lambda value: (
        isinstance(value, Mapping)
        and (keys is None or all(map(keys, value)))
        and (values is None or all(map(values, value.values())))
    )


def warn(text: str) -> None:
    """Warns of a query at the place where a caller called this package: `warnings` shows it once for each place."""
    frame, level = sys._getframe().f_back, 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, QueryWarning, stacklevel=level)
