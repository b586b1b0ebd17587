"""A syntax tree of tuples: the base class of its nodes, and a walk through them, independent of their classes.

`nodes.py` has the nodes of SPARQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class SyntaxTuple(tuple[Any, ...]):
    """A tuple whose parts are named by the annotations of its class, like a `NamedTuple`.

    With `typing.NamedTuple`, the forty classes here would make the start of the command line four times as long.

    >>> from construct_messages.query.syntax.nodes import IriNode
    >>> IriNode(0, 5, "<s:a>"), IriNode(0, 5, "<s:a>").written
    (IriNode(0, 5, '<s:a>'), '<s:a>')
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        names = tuple(cls.__annotations__)
        setattr(cls, "__match_args__", names)  # noqa: B010 - mypy makes it from the annotations
        for place, name in enumerate(names):
            setattr(cls, name, property(itemgetter(place)))

    def __new__(cls, *parts: Any) -> Self:
        return tuple.__new__(cls, parts)

    def __repr__(self) -> str:
        return type(self).__name__ + super().__repr__()


def walk(*nodes: Any, closed: tuple[type, ...] = ()) -> Iterator[Any]:
    """Yields nodes and all nodes in them, those of `SyntaxNode`, each before its parts, in the order of the text.

    Args:
        nodes: nodes, None, or tuples of these.
        closed: the classes of nodes whose parts are left out.

    >>> from construct_messages.query.syntax.nodes import AliasNode, BindPattern, VariableNode
    >>> alias = AliasNode(4, 9, VariableNode(5, 7, "a"), VariableNode(8, 9, "b"))
    >>> [node.name for node in walk(BindPattern(0, 9, alias)) if isinstance(node, VariableNode)]
    ['a', 'b']
    """
    left: list[Any] = [nodes]
    while left:
        node = left.pop()
        if type(node) is not tuple:
            yield node
        if not isinstance(node, closed):
            left.extend([part for part in reversed(node) if isinstance(part, tuple)])
