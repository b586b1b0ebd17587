"""The compiled module for what logs nearly always hold, where it was built; without it, Python alone does the same.

`Wire` describes its functions. Each has a twin in Python, named in its description, which also decides what is an
error: a compiled function returns None, or stops, where it meets anything that it does not know. This is the only place
that imports the module. Its sources are the C files in this folder; `hatch_build.py` builds it with the package.

docs/decisions/090-a-compiled-module.md
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

Term = TypeVar("Term", bound=str)
Statement: TypeAlias = tuple[Term, Term, Term, Term | None]

INTERFACE: Final = 8
"""The number of the interface that `Wire` describes; module.c has the same. Raise both with each change of it."""
PURE: Final = "CONSTRUCT_MESSAGES_PURE"
"""The environment variable that disables the compiled module, if it is set to anything."""


class Wire(Protocol):
    """The functions of the compiled module."""

    # the number of this description, which changes with it
    INTERFACE: int

    def are_distinct(self, terms: Sequence[Any], /) -> bool:
        """Whether no two statements are equal, by their hashes: `of_terms` of `rdf/message.py`."""
        ...

    def statements(
        self, lines: bytes, graphs: bool, triple_terms: bool, /
    ) -> tuple[list[str | None], list[int], list[str]] | None:
        """Takes lines apart: `read_lines` of `logs/lines/decoder.py`. None: they are not UTF-8."""
        ...

    def count_canonical(self, documents: list[bytes], graphs: bool, /) -> int | None:
        """Returns the number of lines of all documents together, if each is canonical lines, one or more, all
        different: `count_canonical` of `logs/lines/decoder.py`.
        """
        ...

    def columns(
        self, lines: bytes, graphs: bool, scope: bytes, /
    ) -> tuple[int, list[bytes], bytes, list[int]]:
        """Takes canonical lines apart: `Lines` of `sparql/relational/documents.py`.

        `scope` begins the labels of blank nodes. Returns the number of their statements; for each of their 3 or 4
        columns, the offsets and the bytes of Arrow's strings, and after these the bits of validity of the graphs; the
        other lines; and the numbers of these, from 0.
        """
        ...

    def lines_of(self, statements: Iterable[tuple[str, str, str, str | None]], /) -> bytes | None:
        """Writes statements as lines that are read as the same terms: `lines_read_back` of `logs/lines/decoder.py`.
        None: a term is not canonical, in another position than RDF allows, or a triple term.
        """
        ...

    def jelly_rows(
        self,
        frame: bytes,
        start: int,
        stop: int,
        statement: int,
        graphs: bool,
        last: list[Term | None],
        terms: list[Term | None],
        names: tuple[dict[int, str], int],
        prefixes: tuple[dict[int, str], int],
        iris: dict[int, dict[str, Term]],
        suffixes: dict[bytes, str],
        blank: Callable[[bytes], Term],
        most_made: int,
        begin: str,
        prefix: int,
        name: int,
        made: int,
        last_name: int,
        last_prefix: int,
        /,
    ) -> tuple[int, str, int, int, int, int, int]:
        """Reads rows of a frame: `Rows._rows` of `logs/jelly/decoder.py`, where `_compiled_rows` names what it returns.

        A statement's row has the tag `statement`. `graphs`: whether rows start and end graphs. `last`: the terms of the
        last statement, and the open graph; the empty string where there is none.
        """
        ...

    def jelly_statements(
        self,
        quads: Iterator[Statement[Term]],
        kind: int,
        triple_terms: bool,
        last: Statement[Term],
        prefix: int,
        name: int,
        iris: dict[Term, Any],
        named: dict[str, list[Term]],
        suffixes: dict[str, bytes],
        iri_of: Callable[[int, int], tuple[Any, ...]],
        names: tuple[dict[str, int], list[str], int, int],
        prefixes: tuple[dict[str, int], list[str], int, int],
        /,
    ) -> tuple[bytes, Statement[Term] | None, Statement[Term], int, int, int, int]:
        """Writes rows of statements: `FrameWriter._statements` of `logs/jelly/encoder.py`.

        A statement's row has the tag `kind`. If that is the tag of rows that start a graph, statements are triples, and
        rows that end and start graphs are added. Returns the rows, the statement that is not known (None: there is
        none), the last one before it with the open graph, the ids of the last IRI, and how many names and prefixes
        were entered.
        """
        ...

    def turtle_messages(
        self,
        text: bytes,
        is_whole: bool,
        graphs: bool,
        delimited: bool,
        by_comment: bool,
        restricted: bool,
        prefixes: dict[str, str],
        declared: dict[str, str],
        in_message: Callable[[int], dict[Term, Term]],
        in_log: Callable[[Term], Term] | None,
        mend: Callable[[str], str | None],
        base: str | None,
        graph: str,
        names: dict[Term, Term] | None,
        number: int,
        characters: int,
        most: int,
        least: int,
        /,
    ) -> tuple[
        list[list[Term | None]],
        list[Term | None],
        int,
        int,
        str | None,
        str,
        dict[Term, Term] | None,
        int,
    ]:
        """Reads the statements and delimiters that a text begins with, as far as they are known;
        `TurtleStatements.read` of `logs/turtle/decoder.py` reads any.

        `is_whole`: nothing follows that belongs to the last statement. `delimited`: delimiters end messages;
        `by_comment`: comments are or may be delimiters, instead of MESSAGE. `restricted`: triple terms and base
        directions are not known. `prefixes` and `declared` get the prefixes that are declared. `in_message` returns the
        names of the blank nodes of a message, by its number; `in_log`: the name of a label in the whole log, None: it
        has none; `mend` returns the canonical form of an IRI in brackets or of a language after its `@`, None: it is
        malformed. The open message has a `graph` that is open (empty: none, a brace: the default graph's), `names`
        (None: not asked for yet), a `number`, and `characters` of at most `most` as N-Quads; messages after it may have
        `least`.

        Returns subject, predicate, object and graph of each quad of the messages in turn, and of the message that is
        open then; the size of what was read; where that message begins; and its base, graph, names and characters.
        """
        ...

    def turtle_statements(
        self,
        statements: Iterable[tuple[str, str, str, str | None]],
        namespaces: bytes,
        graphs: bool,
        /,
    ) -> bytes | None:
        """Writes the statements of a message: `_statements` of `logs/turtle/encoder.py`. None: they are left to that.

        Namespaces are IRIs and prefixes in turn, the longest IRI first, each with a NUL after it.
        """
        ...


def _imported() -> Wire | None:
    if os.environ.get(PURE):
        return None
    try:
        module = import_module("construct_messages.rdf.compiled._wire")
    except ImportError:
        return None  # it was not built
    # one that was built from other sources may lack a function, or have one with other arguments
    return cast("Wire", module) if getattr(module, "INTERFACE", None) == INTERFACE else None


wire: Wire | None = _imported()
"""The compiled module; None: it was not built, was built from other sources, or is disabled."""
