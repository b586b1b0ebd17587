"""Checks whole columns of a batch, and writes rows of literals a column at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import eq
from typing import Final, NamedTuple, TypeAlias

from construct_messages.logs.jelly.tags import OBJECT
from construct_messages.logs.jelly.wire import delimited, varint
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Term

_MOST_HEADS: Final = 1 << 10


class Literals(NamedTuple):
    """A column of literals of one kind without escapes.

    Attributes:
        lexical: their lexical forms.
        kind: the bytes of their language or datatype in an RdfLiteral.
    """

    lexical: list[bytes]
    kind: bytes

    def value(self, number: int) -> bytes:
        """Returns the RdfLiteral of a solution, after its length."""
        return delimited(b"\x0a" + delimited(self.lexical[number]) + self.kind)


class Batch:
    """The columns of one batch, and checks of a whole column at once."""

    def __init__(self, solutions: Solutions) -> None:
        self._columns = solutions.utf8
        # terms do not contain line breaks, so one search shows whether any has some beginning or end
        self._joined = [b"\n%b\n" % b"\n".join(column) for column in self._columns]

    def __len__(self) -> int:
        return len(self._columns[0])

    def has_all(self, index: int, forbidden: Sequence[str]) -> bool:
        """Returns whether a variable is bound in all solutions, to terms without the forbidden beginnings."""
        joined = self._joined[index]
        return b"\n\n" not in joined and not any(
            b"\n" + start.encode() in joined for start in forbidden
        )

    def literals(self, index: int, suffixes: Mapping[str, bytes]) -> Literals | None:
        """Returns the literals of a column; None: it has other terms, literals of several or unknown kinds, or
        escapes.
        """
        column, joined = self._columns[index], self._joined[index]
        suffix = column[0][column[0].rfind(b'"') :]
        kind = suffixes.get(suffix[1:].decode()) if suffix.startswith(b'"') else None
        if (
            kind is None
            or b"\\" in joined
            or not joined.startswith(b'\n"')
            or not joined.endswith(suffix + b"\n")
        ):
            return None
        lexical = joined[2 : -1 - len(suffix)].split(suffix + b'\n"')
        return Literals(lexical, kind) if len(lexical) == len(column) else None

    def has(self, index: int, term: Term) -> bool:
        """Returns whether a variable has this value in any solution."""
        return term.encode() in self._columns[index]

    def have_same(self, one: int, other: int) -> bool:
        """Returns whether two variables have the same value in any solution."""
        return any(map(eq, self._columns[one], self._columns[other]))


class LiteralHeads(dict[int, bytes]):
    """The bytes before the lexical form, in rows that end with a literal, by the length of the form.

    Args:
        kind: the kind of the row.
        body: the body of the row, up to its object.
        rest: the number of bytes of the literal after its lexical form.

    >>> LiteralHeads(b"\\x12", b"", 0)[1].hex()
    '0a0712055a030a01'
    """

    def __init__(self, kind: bytes, body: bytes, rest: int) -> None:
        super().__init__()
        self._kind, self._body, self._rest = kind, body + OBJECT.literal, rest

    def __missing__(self, size: int) -> bytes:
        start = b"\x0a" + varint(size)
        rest = size + self._rest
        body = self._body + varint(len(start) + rest) + start
        statement = self._kind + varint(len(body) + rest) + body
        head = b"\x0a" + varint(len(statement) + rest) + statement
        if len(self) < _MOST_HEADS:
            self[size] = head
        return head


Part: TypeAlias = "bytes | tuple[LiteralHeads, Literals]"


def spliced(parts: Iterable[Part], start: int, count: int) -> list[bytes]:
    """Joins rows, constant ones and those of literals, for each of `count` solutions from `start`."""
    pieces: list[Iterable[bytes]] = []
    for part in parts:
        if isinstance(part, bytes):
            pieces.append(repeat(part, count))
        else:
            heads, (lexical, kind) = part
            lexical = lexical[start : start + count]
            pieces += (map(heads.__getitem__, map(len, lexical)), lexical, repeat(kind, count))
    return list(map(b"".join, zip(*pieces, strict=True)))
