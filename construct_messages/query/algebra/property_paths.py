"""Property paths as frozen nodes: SPARQL 1.1 Query, section 18.1.7.

A path between two positions is `nodes.Path`. No evaluation here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from construct_messages.terms import Term


@dataclass(frozen=True, slots=True)
class Link:
    """A predicate."""

    predicate: Term


@dataclass(frozen=True, slots=True)
class Inverse:
    """`^path`."""

    path: PathExpression


@dataclass(frozen=True, slots=True)
class Sequence:
    """`a/b/…`, at least two."""

    paths: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """`a|b|…`, at least two."""

    paths: tuple[PathExpression, ...]


@dataclass(frozen=True, slots=True)
class Closure:
    """`path?`, `path*` and `path+`: a path of length zero (or one) to one (or any number); its ends are a set."""

    path: PathExpression
    kind: Literal["?", "*", "+"]


@dataclass(frozen=True, slots=True)
class Negated:
    """`!(a|^b|…)`: any predicate but some; `forward` or `backward` is None where no such member was written."""

    forward: tuple[Term, ...] | None
    backward: tuple[Term, ...] | None


PathExpression: TypeAlias = Link | Inverse | Sequence | Alternative | Closure | Negated
