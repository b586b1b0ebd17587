"""A table of quads: the DataFrame that queries are evaluated over, with its statistics.

RDF 1.2 Concepts, section 4: an RDF dataset, a row a quad. The columns of a caller's DataFrame are checked here; files
are read and written by `loading`, patterns matched by `scans`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakSet

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from construct_messages.errors import QuadsError, UsageError
from construct_messages.query.optimizer.optimize import Statistics
from construct_messages.rdf.terms import Term
from construct_messages.spark.dialect import case, fail, literal
from construct_messages.spark.quads.checking import check_terms
from construct_messages.spark.session import translated

COLUMNS: Final = ("subject", "predicate", "object", "graph")

# One regular expression for a cell, with possessive quantifiers: they neither backtrack nor fill the stack
_IRI_CHAR: Final = r'\x00-\x20<>"{}|^`\\'
_IRI: Final = rf"<[^{_IRI_CHAR}:]*+:[^{_IRI_CHAR}]*+>"
_NODE: Final = r"_:[^\x00-\x20]++"
_LITERAL: Final = (
    r'"[^"\\\n\r]*+(?:\\(?:[tbnrf"' + r"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
    rf'[^"\\\n\r]*+)*+"(?:@[A-Za-z][A-Za-z0-9-]*+|\^\^{_IRI})?+'
)
_TRIPLE: Final = r"<<\( [^\n\r]* \)>>"
TERMS: Final = {
    "subject": (_IRI, _NODE),
    "predicate": (_IRI,),
    "object": (_LITERAL, _IRI, _NODE, _TRIPLE),
    "graph": (_IRI, _NODE),
}
_BLANK: Final = "a blank node (_:b)"
_KINDS: Final = {
    "subject": ("an IRI (<urn:a>)", _BLANK),
    "predicate": ("an IRI (<urn:a>)",),
    "object": ("an IRI (<urn:a>)", _BLANK, 'a literal ("Berlin", "1"^^<datatype>)'),
    "graph": ("an IRI (<urn:a>)", _BLANK, "NULL"),
}
_BREAK: Final = literal("\n")
_ESCAPED_BREAK: Final = literal("\\n")
_SHOWN: Final = 200  # characters of a cell in an error

_LOADED: Final[WeakSet[DataFrame]] = WeakSet()
"""Frames that a parser has made, whose cells are terms."""


@dataclass(frozen=True)
class QuadTable:
    """Quads as a DataFrame of the string columns `subject`, `predicate`, `object` and `graph`.

    A cell is a canonical N-Triples term (see `construct_messages.rdf.terms`); NULL as the graph is the default graph.
    `QuadTable.of` checks the terms when they are read, this class does not. `load_quads` makes such frames from RDF.

    Args:
        frame: a DataFrame with exactly these columns.
        statistics: the statistics of the table; `distinct` if it has no duplicates.
        repeated: the predicates of which it may have duplicates, if they are known.
        graphs: the tables of some named graphs, which are read for `GRAPH <name>` only.

    >>> frame = spark.createDataFrame([("<urn:a>", "<urn:p>", "<urn:b>")], ["s", "predicate", "object"])
    >>> QuadTable.of(frame, {"subject": "s"}).frame.columns
    ['subject', 'predicate', 'object', 'graph']
    """

    frame: DataFrame
    statistics: Statistics = field(default_factory=Statistics)
    repeated: frozenset[Term] | None = None
    graphs: Mapping[Term, QuadTable] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        frame: DataFrame,
        columns: Mapping[str, str] | None = None,
        assume_distinct: bool = False,
        assume_terms: bool = False,
        check: bool = False,
    ) -> QuadTable:
        """Uses a table, view or DataFrame as quads.

        Each row that a query reads is checked, so that text that is no term never becomes a part of a message, or is
        taken for a term that no pattern matches: `QuadsError`, raised by `session.translated()` around an action.

        Args:
            frame: any DataFrame, of any source.
            columns: the names of the columns for `subject`, `predicate`, `object` and `graph`, if they differ; a frame
                without a graph column contains triples of the default graph.
            assume_distinct: there are no duplicates; this is not checked. Otherwise each pattern of a query removes
                them.
            assume_terms: each cell is a term; this is not checked. Otherwise all rows of all columns are read and
                checked, also those that a Parquet file could skip, unless the frame is one of `load_quads`.
            check: check all rows now, once, instead of at each query, and strictly: each cell must be a term in
                canonical form, because others equal no term of a query.

        Raises:
            QuadsError: a column is missing or does not contain strings, or `columns` names an unknown position; with
                `check`, a cell that is not a canonical term.
            UsageError: terms are assumed, and checked.

        >>> frame = spark.createDataFrame([("<urn:a>", "<urn:p>", '"chat"@FR')], ["subject", "predicate", "object"])
        >>> QuadTable.of(frame, check=True)
        Traceback (most recent call last):
        construct_messages.errors.QuadsError: column 'object' holds "chat"@FR, which is not in canonical form, in the \
row (<urn:a>, <urn:p>, "chat"@FR, NULL)
          hint: write "chat"@fr
        """
        if check and assume_terms:
            raise UsageError("terms are assumed, and checked", hint="leave one of them out")
        names = dict(columns or {})
        terms = assume_terms or (not names and frame in _LOADED)
        if unknown := sorted(names.keys() - set(COLUMNS)):
            raise QuadsError(
                f"{unknown[0]!r} is not a position of a quad",
                hint=f"map {', '.join(COLUMNS)} to the names of columns",
            )
        types = {column.name: column.dataType for column in frame.schema.fields}

        def selected(position: str) -> Column:
            name = names.get(position, position)
            if position == "graph" and position not in names and name not in types:
                return F.lit(None).cast("string").alias(position)
            if name not in types:
                raise QuadsError(
                    f"the quads have no column {name!r} (there are {', '.join(types) or 'none'})",
                    hint=f"name the column of the {position}: QuadTable.of(frame, columns={{'{position}': …}})",
                )
            if not isinstance(types[name], StringType):
                raise QuadsError(
                    f"column {name!r} holds {types[name].simpleString()}",
                    hint="a column of quads holds terms in N-Triples syntax, as strings",
                )
            return F.col(quoted(name)).alias(position)

        wanted = [selected(position) for position in COLUMNS]
        if names or frame.columns != list(COLUMNS):
            frame = frame.select(*wanted)
        if check:
            with translated():
                check_terms(frame, names)
        elif not terms:
            frame = frame.filter(
                checked_terms({place: names.get(place, place) for place in COLUMNS})
            )
        return cls(frame, Statistics(distinct=assume_distinct))


def loaded(frame: DataFrame) -> DataFrame:
    """Returns a frame whose cells a parser has made: `QuadTable.of` does not check them again."""
    _LOADED.add(frame)
    return frame


def checked_terms(names: Mapping[str, str]) -> str:
    """Returns SQL over a table's columns: true, or the job ends with the row and the column (the caller's name) at
    fault.
    """
    sound = {
        place: f"coalesce({_is_term(place)}, {str(place == 'graph').lower()})" for place in COLUMNS
    }
    faults = ((f"NOT {sound[place]}", _fault(place, name)) for place, name in names.items())
    # Nothing is moved below SQL that depends on the partition: a file would skip rows that match no pattern, unchecked.
    # The text of the error is too long for Java to compile: it would make each row slow.
    return case(
        ("spark_partition_id() < 0", "false"),
        (" AND ".join(sound.values()), "true"),
        otherwise=f"zip_with(array(0), array(0), (zero, one) -> {case(*faults, otherwise='true')})[0]",
    )


def _is_term(place: str) -> str:
    """Returns SQL that tests whether a cell of a column is a term that may stand there; NULL where the cell is."""
    terms = literal(rf"^(?:{'|'.join(TERMS[place])})\z")
    return f"{place} RLIKE {terms}"


def _fault(place: str, name: str) -> str:
    cell, *row = (
        f"left(replace(coalesce({column}, 'NULL'), {_BREAK}, {_ESCAPED_BREAK}), {_SHOWN})"
        for column in (place, *COLUMNS)
    )
    *kinds, last = _KINDS[place]
    kind = f"{', '.join(kinds)} or {last}" if kinds else last
    hint = f"write {kind} in N-Triples syntax, or leave the row out"
    parts = (
        literal(f"column {name!r} holds "),
        cell,
        literal(f", which is not a term for a {place}, in the row ("),
        f"concat_ws(', ', {', '.join(row)})",
        literal(f")\n  hint: {hint}"),
    )
    return fail(QuadsError, f"concat({', '.join(parts)})")


def quoted(name: str) -> str:
    """Returns a column's name as Spark's resolver takes it verbatim.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"
