r"""SPARQL 1.1 and 1.2 Query Results JSON (https://www.w3.org/TR/sparql12-results-json/), as endpoints really send it.

The document is cut at the solutions of `results.bindings`, and each piece is decoded as a whole. A cut in the wrong
place (in a string, or in a nested array) makes a piece that is not JSON; a scanner of strings and brackets then finds
the right place. `json_frame.py` reads the rest of the document; `json_structs.py` decodes the solutions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from construct_messages.rdf.errors import IncompleteResult, TermError, shown
from construct_messages.rdf.regex import regex
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Lenience, Term
from construct_messages.sparql.results import excerpt
from construct_messages.sparql.results.json_frame import SPACE, Frame, Scanner
from construct_messages.sparql.results.json_structs import StructReader

# --- detecting solutions --------------------------------------------------------------------------------------------

_SPACES: Final = regex(rb"[%b]*+" % SPACE)
_BOUNDARY: Final = regex(rb"\}[%b]*+,[%b]*+\Z" % (SPACE, SPACE))
# the end of every solution contains one of these, as few other places do: without them, the scanner is not needed yet
_MAY_END: Final = regex(rb"[{}\]][%b]*+\}|\]" % SPACE)
# the error of msgspec for JSON that is no solution
_IN_SOLUTION: Final = regex(r"(.*) - at `\$\[([0-9]+)\]\.?(.*)`", re.DOTALL)
_OTHER_FORMAT: Final = 'the endpoint writes what no results document has: ask for another format, such as results="xml"'
# beyond this much white space, or this many braces of an incomplete solution, the scanner is used
_BOUNDARY_SPAN: Final = 64
_BOUNDARY_BRACES: Final = 100


def _last_boundary(data: bytearray, start: int) -> int:
    """Returns the end of the last solution after `start` that seems to precede another one; 0: none, -1: unknown."""
    brace = len(data)
    for _ in range(_BOUNDARY_BRACES):
        brace = data.rfind(b"{", start, brace)
        if brace <= 0:
            return 0
        if match := _BOUNDARY.search(data, max(0, brace - _BOUNDARY_SPAN), brace):
            return match.start() + 1
    return -1


class JsonDecoder:
    """See `NewDecoder`. Columns have terms; IRIs are percent-encoded if the endpoint omitted that.

    >>> decoder = JsonDecoder(("x", "n"))
    >>> [list(b) for b in decoder.feed(b'{"results":{"bindings":[{"x":{"type":"uri","value":"urn:a"}}')]
    [[('<urn:a>', '')]]
    >>> decoder.feed(b',{"x":'), decoder.close()
    Traceback (most recent call last):
    construct_messages.rdf.errors.IncompleteResult: the JSON result ends before its end, after 1 whole solutions
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        *,
        response: int = 0,
        scope: str = "d",
        lenience: Lenience | None = None,
    ) -> None:
        self._response = response
        self._scope, self._lenience = scope, lenience
        self._variables = variables
        self._frame = Frame(variables)
        self._reader: StructReader | None = None  # after the solutions began
        self._declared: Sequence[str] = ()
        self._is_behind = False  # whether they ended
        self._rest = bytearray()  # from the first undecoded solution on
        self._begin_solution()
        self._comma = False  # whether a comma came after the last solution
        self._count = 0

    def feed(self, data: bytes) -> list[Solutions]:
        """See `Decoder.feed`."""
        if self._reader is None:
            start = self._frame.feed(data)
            if start is None:
                return []
            self._declared = self._frame.declared()
            self._reader = StructReader(
                self._variables, self._declared, self._scope, self._lenience
            )
            data = data[start:]
        elif self._is_behind:
            self._frame.feed(data)
            return []
        self._rest += data
        return [self._batch(solutions) for solutions in self._take()]

    def close(self) -> list[Solutions]:
        """See `Decoder.close`; `feed` has returned all solutions."""
        if self._reader is None:
            raise self._frame.no_solutions()
        if not self._is_behind:
            raise IncompleteResult(
                f"the JSON result ends before its end, after {self._count} whole solutions"
            )
        self._frame.close(self._count)
        return []

    # --- cutting ---

    def _begin_solution(self) -> None:
        self._is_inside = False  # whether the rest begins with a solution
        self._guessed = 0  # the length of the rest in which no more cuts are guessed
        self._is_guessing = True
        self._scanned = 0  # the length of the rest in which no solution ends
        self._scanner = Scanner()

    def _take(self) -> Iterator[list[Any]]:
        """Yields the complete solutions, as `_reader` decodes them."""
        while self._is_inside or self._at_solution():
            end = _last_boundary(self._rest, self._guessed) if self._is_guessing else 0
            solutions = self._decode(end) if end > 0 else []
            if not solutions:
                # once for each solution: repeated attempts within a long one would cost quadratic time
                self._is_guessing = self._is_guessing and not end
                may_end = _MAY_END.search(self._rest, max(0, self._guessed - _BOUNDARY_SPAN))
                end = self._last_end() if may_end or not self._is_guessing else 0
                self._guessed = len(self._rest)
                if not end:
                    break
                solutions = self._decode(end, sure=True)
            del self._rest[:end]
            self._begin_solution()
            self._comma = False
            self._count += len(solutions)
            yield solutions

    def _at_solution(self) -> bool:
        """Skips the text between two solutions; returns whether another begins."""
        self._pass_spaces()
        if self._count and not self._comma and self._rest.startswith(b","):
            self._comma = True
            del self._rest[0]
            self._pass_spaces()
        if self._rest.startswith(b"{") and (self._comma or not self._count):
            self._is_inside = True
            return True
        if self._rest.startswith(b"]") and not self._comma:
            self._is_behind = True
            self._frame.feed(bytes(self._rest))
            self._rest.clear()
        elif self._rest:
            raise self._malformed(f"unexpected {excerpt(bytes(self._rest))}")
        return False

    def _pass_spaces(self) -> None:
        match = _SPACES.match(self._rest)
        assert match is not None
        del self._rest[: match.end()]

    def _last_end(self) -> int:
        """Returns the end of the last complete solution; 0 if there is none."""
        end, start = 0, self._scanned
        for place, token in self._scanner.tokens(bytes(self._rest[start:])):
            if self._scanner.depth == 0 and token in b"}]":
                end = start + place + 1
            elif self._scanner.depth < 0:
                break  # the array's own end
        self._scanned = len(self._rest)
        return end

    def _decode(self, end: int, *, sure: bool = False) -> list[Any]:
        assert self._reader is not None
        text = b"[" + self._rest[:end] + b"]"
        try:
            return self._reader.read(text)
        except ValueError as error:
            if sure:
                raise self._malformed(str(error)) from error
            return []  # either the cut or the JSON is wrong: `_last_end` decides

    def _malformed(self, reason: str) -> IncompleteResult:
        if match := _IN_SOLUTION.fullmatch(reason):
            number = self._count + int(match[2]) + 1
            member = f", in {shown(match[3])!r}" if match[3] else ""
            return IncompleteResult(
                f"solution {number} of the JSON result: {shown(match[1])}{member}",
                hint=_OTHER_FORMAT if match[3] and "unknown field" in reason else None,
            )
        return IncompleteResult(
            f"the JSON result is damaged after solution {self._count}: {shown(reason)}"
        )

    def _batch(self, solutions: list[Any]) -> Solutions:
        assert self._reader is not None
        columns = []
        for column in range(len(self._variables)):
            terms: list[Term] = []
            try:
                terms.extend(self._reader.terms(solutions, column))
            except TermError as error:
                number = self._count - len(solutions) + len(terms) + 1
                raise IncompleteResult(
                    f"solution {number} of the JSON result: {shown(error.message)}", hint=error.hint
                ) from error
            columns.append(terms)
        return Solutions(columns, response=self._response)
