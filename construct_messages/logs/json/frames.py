"""Compiled frames: the conditions for matching nodes, and the embedded properties.

JSON-LD 1.1 Framing, section 4 (https://www.w3.org/TR/json-ld11-framing/), over frames that PyLD has expanded. Frames
with features that are not compiled here are left to PyLD. No messages here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.terms import Term

EMBEDS: Final = ("@once", "@always", "@never")
ANY_VALUE: Final[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = (({},), (), ())
"""The pattern of `{"@value": {}}`."""
_FLAGS: Final = ("@embed", "@explicit", "@requireAll", "@omitDefault", "@default")
_COMPILED: Final = {"@id", "@type", *_FLAGS, "@value", "@language", "@list"}


class NotCompiled(Exception):
    """Raised for a feature of a frame or context that is left to PyLD; it does not leave this folder."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of a frame (section 4.1.1); an implied frame has the flags of the enclosing one."""

    embed: str = "@once"
    explicit: bool = False
    require_all: bool = False


@dataclass(frozen=True, slots=True)
class NodeFrame:
    """A frame for nodes and values."""

    # the flags of the frame
    flags: Flags = Flags()
    # the IRIs that match; empty: any; None: the frame has no `@id`
    ids: frozenset[Term] | None = None
    # the types that match; None: the frame has no `@type`
    types: frozenset[Term] | None = None
    # whether nodes with any type match (`"@type": {}`)
    any_type: bool = False
    # the types of nodes without one
    default_types: tuple[Term, ...] = ()
    # the frames of properties by predicate, in order
    properties: Mapping[Term, NodeFrame | None] = field(default_factory=dict)
    # the frame of the items of a list
    items: NodeFrame | None = None
    # the pattern of literals: `@value`, `@type` and `@language`, each with its listed values
    value: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]] | None = None
    # the JSON value of a property without values; Ellipsis: the frame has no `@default`
    default: Any = ...
    # whether such a property is left out
    omit_default: bool = False
    # whether it is only for literals: it has `@value`
    is_value: bool = False
    # whether it consists of `@id`
    is_reference: bool = False

    def implied(self) -> NodeFrame:
        """Returns the frame for values of a property that it does not mention."""
        return NodeFrame(self.flags)


def compile_frame(expanded: Any, default_flags: Flags = Flags()) -> NodeFrame:
    """Compiles a frame.

    >>> frame = compile_frame([{"@type": ["urn:A"], "urn:p": [{"@embed": ["@never"]}]}])
    >>> sorted(frame.types), frame.properties["<urn:p>"].flags.embed
    (['<urn:A>'], '@never')
    """
    if not isinstance(expanded, list) or len(expanded) != 1 or not isinstance(expanded[0], dict):
        raise NotCompiled
    frame = expanded[0]
    if not all(key in _COMPILED for key in frame if key.startswith("@")):
        raise NotCompiled
    for keyword in ("@id", "@type"):
        for name in _values(frame, keyword):
            if isinstance(name, str) and name.startswith("_:"):
                raise UsageError(
                    f'the frame has "{keyword}": "{name}"',
                    hint="blank nodes have no names: write an IRI, or {} for any",
                )
    flags = Flags(
        _embed(_first(frame, "@embed", default_flags.embed)),
        _first(frame, "@explicit", default_flags.explicit),
        _first(frame, "@requireAll", default_flags.require_all),
    )
    types, default_types = _types(frame)
    value = tuple(tuple(_values(frame, key)) for key in ("@value", "@type", "@language"))
    default = ...
    if "@default" in frame:
        default = _first(frame, "@default", "@null")
        if isinstance(default, (dict, list)):
            raise NotCompiled
    properties: dict[Term, NodeFrame | None] = {}
    for key in sorted(frame):
        if not key.startswith("@"):
            inner = frame[key]
            if (isinstance(inner, list) and len(inner) > 1) or key.startswith("_:"):
                raise NotCompiled
            properties[Term(f"<{key}>")] = compile_frame(inner) if inner else None
    return NodeFrame(
        flags,
        _ids(frame),
        types,
        _values(frame, "@type") == [{}],
        default_types,
        properties,
        compile_frame(frame["@list"]) if "@list" in frame else None,
        value if any(value) else None,  # type: ignore[arg-type] # three of them
        default,
        bool(_first(frame, "@omitDefault", False)),
        is_value="@value" in frame,
        is_reference=set(frame) == {"@id"},
    )


def _ids(frame: Mapping[str, Any]) -> frozenset[Term] | None:
    """Returns the IRIs that match; empty: any; None: the frame has no `@id`."""
    if "@id" not in frame:
        return None
    given = _values(frame, "@id")
    if not all(isinstance(each, str) or each == {} for each in given):
        raise NotCompiled
    if given[:1] == [{}]:
        return frozenset()
    return frozenset(Term(f"<{each}>") for each in given if each != {})


def _types(frame: Mapping[str, Any]) -> tuple[frozenset[Term] | None, tuple[Term, ...]]:
    """Returns the types that match, and the default type of nodes without one."""
    if "@type" not in frame:
        return None, ()
    given = list(_values(frame, "@type"))
    if given == [{}]:
        return frozenset(), ()
    default: tuple[Term, ...] = ()
    if given and isinstance(given[0], dict):
        names = given.pop(0).get("@default")
        if not (isinstance(names, list) and names and all(map(_is_name, names))):
            raise NotCompiled
        default = (Term(f"<{names[0]}>"),)
    if not all(isinstance(each, str) for each in given):
        raise NotCompiled
    return frozenset(Term(f"<{name}>") for name in given), default


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and ":" in value


def _values(frame: Mapping[str, Any], key: str) -> list[Any]:
    values = frame.get(key, [])
    return values if isinstance(values, list) else [values]


def _first(frame: Mapping[str, Any], key: str, otherwise: Any) -> Any:
    values = _values(frame, key)
    return values[0] if values else otherwise


def _embed(value: Any) -> str:
    if isinstance(value, bool):
        return "@once" if value else "@never"
    if value not in EMBEDS:
        raise UsageError(
            f'the frame has "@embed": {value!r}', hint=f"choose one of {', '.join(EMBEDS)}"
        )
    return str(value)
