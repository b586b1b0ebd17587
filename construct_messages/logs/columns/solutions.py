"""Converts batches of solutions to record batches with a typed column for each variable.

The first batch decides the schema. Batches are limited by rows, fields and bytes, to limit memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final

from construct_messages.errors import ColumnError, UsageError, shown
from construct_messages.logs.columns.options import ColumnOptions
from construct_messages.logs.columns.types import (
    CATEGORIES,
    LARGE_INTEGERS,
    NUMBERS,
    RAW,
    STRING,
    TYPES,
    ZONED_TIMES,
    Characters,
    ColumnType,
    TermKind,
    arrow,
    characters,
    column_type,
    has_zone,
    joined,
    term_array,
    warn,
)
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import RDF, XSD
from construct_messages.rdf.terms.natives import integer_bounds, native

# --- typed ----------------------------------------------------------------------------------------
# A typed column of one variable: its type, by the first terms or the caller, and its arrays.
#
# The datatypes of the first batch decide the type, because files and readers have the schema before the rows. A later
# value that does not fit is an error, or null: a type never changes. Only where the whole result is held first, for
# columns that become strings if need be, all batches decide it. No files here.

_TEXT: Final = "text"
_RESOURCE: Final = "resource"
_STRINGS: Final = {f"{XSD}string", f"{RDF}langString", f"{RDF}dirLangString"}
_SHORT_INTEGER: Final = 18
"""The maximal number of characters up to which all forms of integers are in the range of int64."""
_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]+\s*")
_PLAIN: Final = {
    "boolean": "boolean",
    "date": "date",
    "decimal": "decimal",
    "double": "double",
    "duration": "duration",
    "integer": "int64",
    "time": "time",
}
"""The type of a column whose values are all of one category, if it is determined by the category."""


class Census:
    """Counts the kinds of the terms of a column, on which its type depends. It is taken in batches, or in parts.

    Attributes:
        categories: the number of terms of each category.
        datatypes: the datatypes of literals.
        firsts: the first solution with a term of each category: its number, the term and its kind, as errors name them;
            the number is 0 where solutions have none.
        zones: the number of dates, times and dateTimes with a time zone (True) and without one (False), by category,
            and one of them.
        has_large_integers: whether integers are beyond int64.

    >>> from construct_messages.logs.columns.types import term_array
    >>> census, other = Census(), Census()
    >>> _ = census.add(term_array([b"<urn:a>"])), other.add(term_array([b'"b"', b"_:b"]))
    >>> census.update(other)
    >>> census.categories["resource"], census.firsts["text"]
    (2, (2, '"b"', 'a string'))
    """

    def __init__(self) -> None:
        self.categories, self.datatypes = Counter[str](), set[str]()
        self.firsts: dict[str, tuple[int, str, str]] = {}
        self.zones: dict[tuple[str, bool], tuple[int, str]] = {}
        self.has_large_integers = False
        self._count = 0

    def add(self, terms: Any) -> Characters:
        """Adds a batch of terms; see `term_array`. Returns their characters."""
        column = characters(terms)
        counts = column.counts
        for kind, count in counts.items():
            self.categories[_category(kind)] += count
            if kind.datatype is not None:
                self.datatypes.add(kind.datatype)
        categories = {_category(kind) for kind in counts}
        if not categories <= self.firsts.keys():
            self._add_firsts(terms, column, categories - self.firsts.keys())
        for category in categories & {"date", "time", "dateTime"}:
            self._add_zones(category, column)
        if "integer" in categories and not self.has_large_integers:
            self.has_large_integers = _has_large_integers(column)
        self._count += len(column)
        return column

    def update(self, other: Census) -> None:
        """Adds the census of the terms after these."""
        self.categories.update(other.categories)
        self.datatypes |= other.datatypes
        for category, (number, term, kind) in other.firsts.items():
            self.firsts.setdefault(category, (self._count + number, term, kind))
        for key, (count, example) in other.zones.items():
            before, first = self.zones.get(key, (0, example))
            self.zones[key] = before + count, first
        self.has_large_integers |= other.has_large_integers
        self._count += other._count

    def forget_numbers(self) -> None:
        """Makes errors name no numbers of solutions, because these have no order."""
        self.firsts = {category: (0, *first[1:]) for category, first in self.firsts.items()}

    def _add_firsts(self, terms: Any, column: Characters, missing: set[str]) -> None:
        for place, kind in enumerate(column.kinds):
            if kind is not None and (category := _category(kind)) in missing:
                number = self._count + place + 1
                self.firsts[category] = number, _shown(terms[place]), _named(kind)
                missing.remove(category)
                if not missing:
                    return

    def _add_zones(self, category: str, column: Characters) -> None:
        has_zones = category == "dateTime"
        usual = (ZONED_TIMES if has_zones else TYPES[category]).usual
        if column.kind is not None and usual is not None and usual.fits(column.array):
            size = len(column) - column.array.null_count
            example = next(filter(None, (form.as_py() for form in column.array)))
            self._count_zones(category, has_zones, size, example)
            return
        texts = [
            form
            for form, kind in zip(column.forms, column.kinds, strict=True)
            if form is not None and kind is not None and _category(kind) == category
        ]
        zoned = list(map(has_zone, texts))
        for has in {*zoned}:
            self._count_zones(category, has, zoned.count(has), texts[zoned.index(has)])

    def _count_zones(self, category: str, has: bool, count: int, example: str) -> None:
        before, first = self.zones.get((category, has), (0, example))
        self.zones[category, has] = before + count, first


def _has_large_integers(column: Characters) -> bool:
    compute = arrow("compute")
    if (compute.max(compute.binary_length(column.array)).as_py() or 0) <= _SHORT_INTEGER:
        return False
    # int() refuses thousands of digits, and Decimal does not
    return any(
        form is not None
        and kind is not None
        and len(form) > _SHORT_INTEGER
        and _category(kind) == "integer"
        and _INTEGER.fullmatch(form)
        and not -(1 << 63) <= Decimal(form) < 1 << 63
        for form, kind in zip(column.forms, column.kinds, strict=True)
    )


class TypedColumn:
    """The column of a variable.

    >>> from construct_messages.logs.columns.types import term_array
    >>> column = TypedColumn("n")
    >>> terms = term_array([b'"7"^^<http://www.w3.org/2001/XMLSchema#int>', b""])
    >>> column.decide(terms)
    >>> [array.to_pylist() for array in column.arrays(terms, 0)]
    [[7, None]]
    >>> column.arrays(term_array([b'"seven"']), 2)
    Traceback (most recent call last):
    construct_messages.errors.ColumnError: solution 3: ?n is "seven", a string, in a column of int64
      hint: declare a type that fits all values, as in n=string or n=raw (types, --column-type), or ask for null \
instead of them, or for a column of strings (invalid="null" or "string", --invalid-values null or string)
    """

    def __init__(
        self,
        variable: str,
        declared: ColumnType | None = None,
        *,
        # whether a column of language tags follows
        languages: bool = False,
        # whether decimals are doubles
        doubles: bool = False,
        invalid: str = "error",
    ) -> None:
        self.variable, self._declared, self._languages = variable, declared, languages
        self._doubles, self._is_lenient = doubles, invalid == "null"
        self._type = declared
        self._categories: frozenset[str] | None = None  # that fit; None: all
        self._metadata: dict[str, str] = {}
        self._first: Characters | None = None  # the characters and kinds of the first terms
        # the number of values that are null because they did not fit
        self.nulls = 0
        if declared is not None:
            self._metadata = {"type": declared.name}

    @classmethod
    def of(cls, variable: str, options: ColumnOptions, declared: str | None) -> TypedColumn:
        """Returns the column of a variable by the options; `declared`: the name of its type, if that is decided."""
        return cls(
            variable,
            None if declared is None else column_type(declared),
            languages=variable in options.languages,
            doubles=options.decimals == "double",
            invalid=options.invalid,
        )

    # --- the type ---------------------------------------------------------------------------------------------------

    def decide(self, *batches: Any) -> None:
        """Sets the type by the first batches of terms, unless it is declared."""
        if self._type is not None:
            return
        census = Census()
        for terms in batches:
            self._first = census.add(terms)
        if len(batches) != 1:
            self._first = None
        self.decide_by(census)

    def decide_by(self, census: Census) -> None:
        """Sets the type by the census of terms, unless it is declared."""
        if self._type is not None:
            return
        categories = Counter(census.categories)
        if numbers := [each for each in NUMBERS if each in categories]:  # the last holds them all
            categories[numbers[-1]] = sum(categories.pop(each) for each in numbers)
        fitting = set(categories)
        if len(fitting) > 1:
            if not self._is_lenient:
                raise self._mixed(census)
            fitting = {categories.most_common(1)[0][0]}
        category = fitting.pop() if fitting else None
        self._fix(category, census)
        datatypes = sorted(census.datatypes)
        self._metadata = {
            "term": "literal" if datatypes else "iri" if category == _RESOURCE else category or "",
            "datatypes": " ".join(datatypes),
        }

    def _fix(self, category: str | None, census: Census) -> None:
        """Sets the type for a category, and the categories that fit."""
        if category is None:
            # unbound in all: strings, of the first category with values
            self._type = TYPES[STRING]
            self._categories = frozenset()
            return
        self._categories = frozenset((category,))
        if category in NUMBERS:
            self._categories = frozenset(NUMBERS[: NUMBERS.index(category) + 1])
        if category == "dateTime":
            self._type = self._of_times(census)
        elif category in ("date", "time") and (category, True) in census.zones:
            self._type = TYPES[STRING]
        elif category == "integer" and census.has_large_integers:
            self._type = TYPES["double"] if self._doubles else LARGE_INTEGERS
        elif category == "decimal" and self._doubles:
            self._type = TYPES["double"]
        else:
            self._type = TYPES[_PLAIN.get(category, STRING)]

    def _of_times(self, census: Census) -> ColumnType:
        zoned, others = (census.zones.get(("dateTime", has)) for has in (True, False))
        if zoned is None or others is None:
            return TYPES["timestamp"] if zoned is None else ZONED_TIMES
        if self._is_lenient:
            return TYPES["timestamp"] if zoned[0] < others[0] else ZONED_TIMES
        raise ColumnError(
            f"?{self.variable} has times with a time zone, such as {shown(zoned[1])}, and without one, such as "
            f"{shown(others[1])}",
            variable=self.variable,
            hint=f"declare the type: {self.variable}=timestamptz takes those without a time zone for UTC, "
            f"{self.variable}=string keeps the characters (types, --column-type)",
        )

    def _mixed(self, census: Census) -> ColumnError:
        seen: dict[str, tuple[int, str, str]] = {}
        for category, found in sorted(census.firsts.items(), key=lambda item: item[1]):
            seen.setdefault("number" if category in NUMBERS else category, found)
        (first, one, name), (second, other, other_name), *_ = seen.values()
        if not first:
            message = f"?{self.variable} has {one}, {name}, and {other}, {other_name}"
            return ColumnError(message, variable=self.variable, hint=self._hint)
        return ColumnError(
            f"{other}, {other_name}, where solution {first} has {one}, {name}",
            number=second,
            variable=self.variable,
            hint=self._hint,
        )

    @property
    def _hint(self) -> str:
        name = self.variable
        return (
            f"declare a type that fits all values, as in {name}=string or {name}=raw (types, --column-type), "
            'or ask for null instead of them, or for a column of strings (invalid="null" or "string", '
            "--invalid-values null or string)"
        )

    @property
    def fields(self) -> list[Any]:
        """The fields of the schema; available after `decide`."""
        pa = arrow()
        assert self._type is not None
        found = [
            pa.field(
                self.variable,
                self._type.make(),
                metadata={name: value for name, value in self._metadata.items() if value},
            )
        ]
        if self._languages:
            found.append(pa.field(f"{self.variable}_language", pa.string()))
        return found

    # --- the values -------------------------------------------------------------------------------------------------

    def arrays(self, terms: Any, first: int) -> list[Any]:
        """Returns the arrays of a batch, one for each of `fields`. `terms`: of the batch; see `term_array`."""
        pa = arrow()
        assert self._type is not None
        if self._type.name == RAW:
            return [terms]
        column, self._first = self._first or characters(terms), None
        if column.kind is None or not self._fits(column.kind):
            column = self._fitting(terms, column, first)
        arrays = [self._values(terms, column, first)]
        if self._languages:
            arrays.append(
                pa.repeat(column.kind.language, len(column))
                if column.kind is not None and column.kind.language and not column.array.null_count
                else pa.array([kind and kind.language for kind in column.kinds], pa.string())
            )
        return arrays

    def whole(self, batches: Sequence[Any]) -> list[list[Any]]:
        """Returns the arrays of all batches of a result; where values do not fit, they are strings."""
        try:
            self.decide(*batches)
            return self._of_all(batches)
        except ColumnError as error:
            if self._declared is not None:
                raise
            reason = str(error).partition("\n")[0]
            warn("%s; therefore ?%s is a column of strings", reason, self.variable)
        self._declared = self._type = TYPES[STRING]
        self._metadata = {"type": STRING}
        return self._of_all(batches)

    def _of_all(self, batches: Sequence[Any]) -> list[list[Any]]:
        before = accumulate(map(len, batches), initial=0)
        return [self.arrays(terms, first) for terms, first in zip(batches, before, strict=False)]

    def _fits(self, kind: TermKind) -> bool:
        assert self._type is not None
        if self._declared is not None:
            return kind.name == "literal" or self._type.name == STRING
        category = _category(kind)
        if not self._categories:
            if category in CATEGORIES.values():
                return False
            self._categories = frozenset((category,))
        return category in self._categories

    def _fitting(self, terms: Any, column: Characters, first: int) -> Characters:
        """Returns the column with null in place of terms whose kinds do not fit."""
        fits: dict[TermKind, bool] = {}
        kept: list[str | None] = terms.to_pylist()
        for place, kind in enumerate(column.kinds):
            if kind is None:
                continue
            if kind not in fits:
                fits[kind] = self._fits(kind)
            if not fits[kind]:
                self._refuse(
                    terms[place],
                    first + place,
                    f"{_named(kind)}, in a column of {self._described()}",
                )
                kept[place] = None
        return (
            characters(arrow().array(kept, arrow().string())) if False in fits.values() else column
        )

    def _described(self) -> str:
        assert self._type is not None
        if self._type.name == STRING and self._declared is None:
            return {_RESOURCE: "IRIs", _TEXT: "strings"}.get(
                next(iter(self._categories or ()), _TEXT), "characters of another datatype"
            )
        return self._type.name

    def _values(self, terms: Any, column: Characters, first: int) -> Any:
        assert self._type is not None
        if self._type.name == STRING:
            return column.array
        try:
            found = self._type.array(column)
            if self._is_within(column, found):
                return found
        except (ValueError, OverflowError):
            pass  # the form is found below
        values: list[Any] = []
        for place, (form, kind) in enumerate(zip(column.forms, column.kinds, strict=True)):
            value = None
            if form is not None and kind is not None:
                try:
                    value = self._type.value(form)
                    if self._declared is None:
                        native(form, kind.datatype)
                except (ValueError, OverflowError) as error:
                    self._refuse(
                        terms[place],
                        first + place,
                        f"in a column of {self._type.name}: {error}",
                    )
            values.append(value)
        return self._type.values(values)

    def _is_within(self, column: Characters, values: Any) -> bool:
        """Whether all values are within the bounds of all datatypes of the column."""
        if self._declared is not None or self._categories is None:
            return True
        if "integer" not in self._categories:
            return True
        bounds = [integer_bounds(kind.datatype) for kind in column.counts]
        least, most = arrow("compute").min_max(values).as_py().values()
        return least is None or not any(
            (low is not None and least < low) or (high is not None and most > high)
            for low, high in bounds
        )

    def _refuse(self, term: Any, before: int, reason: str) -> None:
        """Counts a value that does not fit."""
        if not self._is_lenient:
            raise ColumnError(
                f"{_shown(term)}, {reason}",
                number=before + 1,
                variable=self.variable,
                hint=self._hint,
            )
        self.nulls += 1


def _category(kind: TermKind) -> str:
    """The common property of terms that fit into one column."""
    if kind.name in ("iri", "blank node"):
        return _RESOURCE
    if kind.datatype is None:
        return kind.name
    if kind.datatype in _STRINGS:
        return _TEXT
    return CATEGORIES.get(kind.datatype, kind.datatype)


def _named(kind: TermKind | None) -> str:
    """Describes the kind of a term."""
    assert kind is not None
    if kind.name == "iri":
        return "an IRI"
    if kind.datatype is None:
        return f"a {kind.name}"
    if kind.datatype in _STRINGS:
        return "a string"
    name = kind.datatype.removeprefix(XSD)
    return f"of xsd:{name}" if name != kind.datatype else f"of <{name}>"


def _shown(term: Any) -> str:
    """Returns a term of an array for errors; long ones are truncated."""
    text = shown(term.as_py())
    return text.replace(f"^^<{XSD}", "^^xsd:").removesuffix(">") if f"^^<{XSD}" in text else text


# --- solutions ------------------------------------------------------------------------------------

MOST_FIELDS: Final = 1 << 19
"""The maximal number of values of a batch."""
MOST_BYTES: Final = 1 << 25
"""The number of bytes of terms that are held before a batch is made of them."""
SCHEMA_VERSION: Final = "1"


def metadata(layout: str, raw: bool, origin: Mapping[str, str]) -> dict[str, str]:
    """Returns the metadata of a schema. `origin`: the query and the source, by these names, as far as they are known.

    >>> metadata("quads", False, {"source": "log.nq"})["construct_messages.source"]
    'log.nq'
    """
    known = {
        "version": SCHEMA_VERSION,
        "layout": layout,
        "terms": "n-triples" if raw else "values",
        **origin,
    }
    return {f"construct_messages.{name}": value for name, value in known.items()}


def warn_of_nulls(variable: str, count: int) -> None:
    """Logs the number of values that are null in a column."""
    warn(
        "null in place of %d value%s of ?%s that did not fit into the column",
        count,
        "" if count == 1 else "s",
        variable,
    )


def check_variables(variables: Sequence[str], options: ColumnOptions) -> None:
    """Raises `UsageError` for options of variables that there are not, and for names of columns that are taken."""
    for name in (*options.types, *options.languages):
        if name not in variables:
            raise UsageError(
                f"there is no column ?{name}",
                hint=f"the variables are {', '.join(f'?{each}' for each in variables)}",
            )
    for name in options.languages:
        if f"{name}_language" in variables:
            raise UsageError(
                f"?{name}_language is a variable, and would be the column of languages of ?{name}",
                hint="rename it in the query",
            )


class SolutionRows:
    """Solutions as rows of typed columns.

    >>> rows = SolutionRows(("s", "n"), ColumnOptions(), {})
    >>> rows.add(Solutions.of([("<urn:a>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>')]))
    []
    >>> [batch.to_pylist() for batch in rows.finish()]
    [[{'s': 'urn:a', 'n': 1}]]
    """

    def __init__(
        self,
        # their names, without `?`, in the order of the columns
        variables: Sequence[str],
        options: ColumnOptions,
        origin: Mapping[str, str],
        *,
        # whether columns have types; else all are strings, as for CSV
        typed: bool = True,
    ) -> None:
        check_variables(variables, options)
        otherwise = RAW if options.raw else None if typed else STRING
        self._columns = [
            TypedColumn.of(name, options, options.types.get(name, otherwise)) for name in variables
        ]
        self._metadata = metadata("solutions", options.raw, origin)
        self._most_rows = max(1, min(options.batch_rows, MOST_FIELDS // len(variables)))
        self._held: list[list[Any]] = [[] for _ in variables]  # the arrays of terms of each column
        self._rows = self._bytes = self._count = 0
        # the terms of all batches, one list for each batch; None: a batch is converted when it is complete
        self._whole: list[list[Any]] | None = [] if options.invalid == "string" else None
        self._schema: Any = None

    def add(self, solutions: Solutions) -> list[Any]:
        """Returns the record batches that further solutions complete."""
        batches = []
        while self._rows + len(solutions) > self._most_rows:
            room = self._most_rows - self._rows
            if room:
                self._hold(solutions.head(room))
                solutions = solutions.tail(len(solutions) - room)
            batches += self._batch()
        self._hold(solutions)
        if self._bytes > MOST_BYTES:
            batches += self._batch()
        return batches

    def finish(self) -> list[Any]:
        """Returns the last record batches, an empty one without solutions."""
        is_first = self._schema is None and not self._whole
        batches = self._batch() if self._rows or is_first else []
        if self._whole is not None:
            batches = self._of_whole(self._whole)
        for column in self._columns:
            if column.nulls:
                warn_of_nulls(column.variable, column.nulls)
        return batches

    def _hold(self, solutions: Solutions) -> None:
        if not len(solutions):
            return
        arrays = solutions.arrays or map(term_array, solutions.utf8)
        for held, terms in zip(self._held, arrays, strict=True):
            held.append(terms)
            self._bytes += terms.nbytes
        self._rows += len(solutions)

    def _batch(self) -> list[Any]:
        """Returns the record batch of the terms that are held, if it can be made already."""
        columns = list(map(joined, self._held))
        self._held = [[] for _ in columns]
        rows, self._rows, self._bytes = self._rows, 0, 0
        if self._whole is not None:
            self._whole.append(columns)
            return []
        if self._schema is None:
            for column, terms in zip(self._columns, columns, strict=True):
                column.decide(terms)
        arrays = [
            column.arrays(terms, self._count)
            for column, terms in zip(self._columns, columns, strict=True)
        ]
        self._count += rows
        return [self._record_batch(arrays)]

    def _of_whole(self, batches: list[list[Any]]) -> list[Any]:
        arrays = []
        for column in self._columns:
            arrays.append(column.whole([terms.pop(0) for terms in batches]))
        return [self._record_batch(columns) for columns in zip(*arrays, strict=True)]

    def _record_batch(self, columns: Sequence[Sequence[Any]]) -> Any:
        pa = arrow()
        if self._schema is None:
            fields = [field for column in self._columns for field in column.fields]
            self._schema = pa.schema(fields, metadata=self._metadata)
        arrays = [array for column in columns for array in column]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


_OTHER_ROWS: Final = 'choose the layout "quads" or "nested" (ColumnOptions, --layout)'


def no_solutions() -> UsageError:
    """Returns the error for messages without solutions."""
    return UsageError(
        "the layout solutions is for the solutions of a query, and these are messages",
        hint=f"{_OTHER_ROWS}, without types and languages",
    )


def other_solutions() -> UsageError:
    """Returns the error for solutions that are grouped or changed into messages."""
    return UsageError(
        "the layout solutions has a row for each solution, and here solutions are grouped, left out or changed",
        hint=_OTHER_ROWS,
    )
