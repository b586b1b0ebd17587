"""Property paths as frozen nodes, and equal paths that are simpler to evaluate: SPARQL 1.1 Query, section 18.1.7.

A path between two positions is `nodes.Path`. No evaluation here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from construct_messages.rdf.terms import Term


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
    """`!(a|^b|…)`: any predicate except these; `forward` or `backward` is None if there are no such members."""

    forward: tuple[Term, ...] | None
    backward: tuple[Term, ...] | None


PathExpression: TypeAlias = Link | Inverse | Sequence | Alternative | Closure | Negated


def outward(path: PathExpression, inverse: bool = False) -> PathExpression:
    """Returns the same path with `^` before single predicates only.

    >>> written(outward(Inverse(Sequence((Link(Term("<urn:p>")), Closure(Link(Term("<urn:q>")), "+"))))))
    '(^<urn:q>+/^<urn:p>)'
    """
    match path:
        case Link():
            return Inverse(path) if inverse else path
        case Inverse(inner):
            return outward(inner, not inverse)
        case Sequence(paths):
            turned = tuple(outward(part, inverse) for part in paths)
            return Sequence(turned[::-1] if inverse else turned)
        case Alternative(paths):
            return Alternative(tuple(outward(part, inverse) for part in paths))
        case Closure(inner, kind):
            return Closure(outward(inner, inverse), kind)
        case Negated(forward, backward):
            return Negated(backward, forward) if inverse else path
        case _:
            assert_never(path)


def is_nullable(path: PathExpression) -> bool:
    """Returns whether the path joins each node with itself.

    >>> p = Link(Term("<urn:p>"))
    >>> is_nullable(Closure(p, "*")), is_nullable(Sequence((p, Closure(p, "*"))))
    (True, False)
    """
    match path:
        case Link() | Inverse() | Negated():
            return False
        case Sequence(paths):
            return all(map(is_nullable, paths))
        case Alternative(paths):
            return any(map(is_nullable, paths))
        case Closure(inner, kind):
            return kind != "+" or is_nullable(inner)
        case _:
            assert_never(path)


def step(path: PathExpression) -> PathExpression:
    """Returns a simpler path which, any number of times, reaches the same nodes: `a|b` for `(a*|b+)`.

    >>> written(step(Alternative((Closure(Link(Term("<urn:a>")), "*"), Closure(Link(Term("<urn:b>")), "+")))))
    '(<urn:a>|<urn:b>)'
    """
    match path:
        case Closure(inner):
            return step(inner)
        case Alternative(paths):
            return Alternative(tuple(map(step, paths)))
        case Sequence(paths) if is_nullable(path):
            return Alternative(tuple(map(step, paths)))
        case _:
            return path


def unbound_closure(path: PathExpression, start: bool, end: bool) -> PathExpression | None:
    """Returns the closure in a path, if any, that would start at every node.

    >>> unbound_closure(Closure(Link(Term("<urn:p>")), "+"), start=False, end=False)
    Closure(path=Link(predicate='<urn:p>'), kind='+')
    >>> unbound_closure(Closure(Link(Term("<urn:p>")), "+"), start=True, end=False)
    """
    match path:
        case Link() | Inverse() | Negated():
            return None
        case Alternative(paths):
            found = (unbound_closure(part, start, end) for part in paths)
        case Sequence(paths):
            first = first_part(paths, start, end)
            found = (
                unbound_closure(
                    part,
                    index > first or (index == 0 and start),
                    index < first or (index == len(paths) - 1 and end),
                )
                for index, part in enumerate(paths)
            )
        case Closure(inner, "?"):
            return unbound_closure(inner, start, end)
        case Closure(inner):
            return unbound_closure(step(inner), start=False, end=False) if start or end else path
        case _:
            assert_never(path)
    return next((closure for closure in found if closure is not None), None)


def first_part(paths: tuple[PathExpression, ...], start: bool, end: bool) -> int:
    """Returns the part of a sequence to begin with: at a bound end, or else one that need not start at every node.

    >>> p = Link(Term("<urn:p>"))
    >>> first_part((Closure(p, "*"), p), start=False, end=False)
    1
    """
    if start or end:
        return 0 if start else len(paths) - 1
    bounded = (
        index
        for index, part in enumerate(paths)
        if unbound_closure(part, start=False, end=False) is None
    )
    return next(bounded, 0)


def written(path: PathExpression) -> str:
    """Returns the path as SPARQL writes it.

    >>> written(Closure(Inverse(Link(Term("<urn:p>"))), "*"))
    '^<urn:p>*'
    """
    match path:
        case Link(predicate):
            return predicate
        case Inverse(inner):
            return f"^{written(inner)}"
        case Sequence(paths):
            return f"({'/'.join(map(written, paths))})"
        case Alternative(paths):
            return f"({'|'.join(map(written, paths))})"
        case Closure(inner, kind):
            return written(inner) + kind
        case Negated(forward, backward):
            return f"!({'|'.join([*(forward or ()), *(f'^{predicate}' for predicate in backward or ())])})"
        case _:
            assert_never(path)
