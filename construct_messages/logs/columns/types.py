r"""The types of typed columns: their datatypes, and the conversion of lexical forms to their values.

A type has a fast conversion by pyarrow for columns of usual forms, and a plain conversion of single forms; they agree
(tests/logs/columns/test_types.py). XML Schema 1.1 Part 2, section 3 (lexical forms). Nothing about terms or variables
here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from construct_messages.errors import UsageError
from construct_messages.rdf.terms import RDF, XSD, unescape
from construct_messages.rdf.terms.natives import native
from construct_messages.rdf.terms.values import microseconds_of_date_time

# --- arrow ----------------------------------------------------------------------------------------
# Imports pyarrow, and the libraries that use its tables, on first use.


@cache
def arrow(module: str = "") -> Any:
    """Returns pyarrow, or one of its modules.

    >>> arrow().schema([("age", arrow().int64())]).names, arrow("parquet").__name__
    (['age'], 'pyarrow.parquet')
    """
    return needed(
        f"pyarrow.{module}" if module else "pyarrow", "pip install 'construct-messages[arrow]'"
    )


def joined(arrays: Sequence[Any]) -> Any:
    """Returns arrays of strings as one, which is no slice of another array; a single one is not copied otherwise.

    >>> joined([arrow().array(["a"]), arrow().array(["b"])]).to_pylist(), len(joined([]))
    (['a', 'b'], 0)
    """
    if len(arrays) == 1 and arrays[0].nbytes == arrays[0].get_total_buffer_size():
        return arrays[0]
    return arrow().concat_arrays(arrays) if arrays else arrow().nulls(0, arrow().string())


def needed(module: str, install: str) -> Any:
    """Returns a module of another library.

    >>> needed("pyarrows", "pip install pyarrows")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: columns need pyarrows, which is not installed
      hint: pip install pyarrows
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"columns need {error.name}, which is not installed", hint=install
        ) from error


def warn(message: str, *values: object) -> None:
    """Logs a notice about a column."""
    import logging  # imported here because most programs do not need it

    logging.getLogger("construct_messages.logs.columns").warning(message, *values)


# --- characters -----------------------------------------------------------------------------------
# The characters of terms by column: IRIs without brackets, literals without quotes, and the kind of each term.
#
# A column whose terms are all of one kind, as usual, is converted at once. RDF 1.2 Concepts, section 3. No types.


class TermKind(NamedTuple):
    # `"iri"`, `"blank node"`, `"triple term"` or `"literal"`
    name: str
    # the IRI of the datatype of literals
    datatype: str | None = None
    # the language tag of literals, with `--` and the base direction if there is one
    language: str | None = None


IRI: Final = TermKind("iri")
BLANK: Final = TermKind("blank node")
TRIPLE: Final = TermKind("triple term")
_MOST_KINDS: Final = (
    1 << 12
)  # the most kinds that are cached: a source may have a different datatype for each value


class Characters:
    """A column of terms as characters and kinds. `array`: an array of Arrow of the characters of IRIs and literals, the
    labels of blank nodes with `_:`, and triple terms as they are; null is unbound. `kind`: the kind of all bound terms;
    None: there are several kinds, or no bound terms. `kinds`: the kind of each term; None: all have the same kind.
    """

    def __init__(
        self, array: Any, kind: TermKind | None, kinds: list[TermKind | None] | None = None
    ) -> None:
        self.array, self.kind, self._kinds = array, kind, kinds

    def __len__(self) -> int:
        return len(self.array)

    @property
    def forms(self) -> list[str | None]:
        """The characters of each term; None: unbound."""
        forms: list[str | None] = self.array.to_pylist()
        return forms

    @property
    def kinds(self) -> list[TermKind | None]:
        """The kind of each term; None: unbound."""
        if self._kinds is None:
            self._kinds = (
                [None if form is None else self.kind for form in self.forms]
                if self.array.null_count
                else [self.kind] * len(self)
            )
        return self._kinds

    @property
    def counts(self) -> dict[TermKind, int]:
        """The number of terms of each kind."""
        if self._kinds is None and self.kind is not None:
            return {self.kind: len(self) - self.array.null_count}
        return Counter(kind for kind in self.kinds if kind is not None)


def term_array(terms: Sequence[bytes]) -> Any:
    """Returns terms as an array of Arrow; the empty string is unbound, and null there.

    >>> term_array([b"<urn:a>", b""]).to_pylist()
    ['<urn:a>', None]
    """
    pa, compute = arrow(), arrow("compute")
    array = pa.array(terms, pa.binary())
    if compute.min(compute.binary_length(array)).as_py() == 0:
        array = compute.if_else(compute.equal(array, b""), None, array)
    # checking the UTF-8 of all terms at once is faster than one by one
    return array.cast(pa.string())


def held(array: Any) -> bytes:
    """Returns the joined characters of an array of strings that is not a slice of another one."""
    data = array.buffers()[2]
    return b"" if data is None else bytes(data)


def characters(terms: Any) -> Characters:
    r"""Converts a column of terms to characters and kinds.

    >>> column = characters(term_array([b'"1"^^<http://www.w3.org/2001/XMLSchema#int>', b""]))
    >>> column.forms, column.kind.datatype
    (['1', None], 'http://www.w3.org/2001/XMLSchema#int')
    >>> characters(term_array([b'"a\\"b"@en', b"_:b", b"<urn:x>"])).forms
    ['a"b', '_:b', 'urn:x']
    """
    pa = arrow()
    if terms.null_count == len(terms):
        return Characters(terms, None, [None] * len(terms))
    found = _one_kind(terms)
    if found is None:
        return _of_several_kinds(terms)
    size, kind = found
    # slices of bytes take a third of the time of those of characters
    array = arrow("compute").binary_slice(terms.view(pa.binary()), 1, -size)
    return Characters(array.view(pa.string()), kind)


def _one_kind(terms: Any) -> tuple[int, TermKind] | None:
    """The bytes after the characters of terms, and their kind; None: there may be several kinds."""
    compute = arrow("compute")

    data = held(terms)
    if data.startswith(b"<"):
        are_iris = b"<<(" not in data and compute.all(compute.starts_with(terms, "<")).as_py()
        return (1, IRI) if are_iris else None
    if data.startswith(b'"') and b"\\" not in data:
        first = next(filter(None, map(_text, terms)))
        ending = first[first.rindex('"') :]
        # literals have no quotes inside, as these are escaped, and IRIs have none
        if compute.all(compute.ends_with(terms, ending)).as_py():
            return len(ending.encode()), kind_of(ending.encode())
    return None


def _text(scalar: Any) -> str | None:
    text: str | None = scalar.as_py()
    return text


def _of_several_kinds(terms: Any) -> Characters:
    forms: list[str | None] = []
    kinds: list[TermKind | None] = []
    known: dict[str, TermKind] = {}
    for term in terms.to_pylist():
        form: str | None = term
        kind: TermKind | None = None
        if term is None:
            pass
        elif term.startswith('"'):
            end = term.rindex('"')
            form, ending = unescape(term[1:end]), term[end:]
            kind = known.get(ending)
            if kind is None:
                kind = kind_of(ending.encode())
                if len(known) < _MOST_KINDS:
                    known[ending] = kind
        elif term.startswith("<<("):
            kind = TRIPLE
        elif term.startswith("<"):
            form, kind = term[1:-1], IRI
        else:
            kind = BLANK
        forms.append(form)
        kinds.append(kind)
    different = {kind for kind in kinds if kind is not None}
    array = arrow().array(forms, arrow().string())
    return Characters(array, different.pop() if len(different) == 1 else None, kinds)


def kind_of(ending: bytes) -> TermKind:
    """Returns the kind of literals by their text from the last quote on.

    >>> kind_of(b'"@ar--rtl')
    TermKind(name='literal', datatype='http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString', language='ar--rtl')
    """
    text = ending.decode()
    if text == '"':
        return TermKind("literal", f"{XSD}string")
    if text.startswith('"@'):
        name = "dirLangString" if "--" in text else "langString"
        return TermKind("literal", RDF + name, text[2:])
    return TermKind("literal", text[4:-1])


# --- types ----------------------------------------------------------------------------------------

STRING: Final = "string"
RAW: Final = "raw"
_SPACE: Final = " \t\n\r"
_DIGITS: Final = (38, 18)
"""The digits of decimals: 18 after the point, as in Oxigraph; XML Schema requires 18 in total of all processors."""
_DAY: Final = 86_400_000_000
_ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
_HAS_ZONE: Final = re.compile(rf"{_ZONE}[{_SPACE}]*\Z")
_TOO_FINE: Final = re.compile(r"[.][0-9]{6}[0-9]*[1-9]")


class Usual(NamedTuple):
    """Lexical forms that pyarrow's cast from strings reads like XML Schema, or rejects."""

    alphabet: bytes
    # the minimal length: the cast also reads times without minutes
    least: int = 0
    # the end of each of them
    ending: str = ""
    # the maximal length: the cast does not detect all decimals that exceed 128 bits
    most: int | None = None

    def fits(self, forms: Any) -> bool:
        """Whether all forms match."""
        compute = arrow("compute")
        if held(forms).translate(None, self.alphabet):
            return False
        if self.most is not None:
            longest = compute.max(compute.binary_length(forms)).as_py() or 0
            if longest > self.most:
                return False
        if self.least and (compute.min(compute.binary_length(forms)).as_py() or 0) < self.least:
            return False
        return not self.ending or bool(compute.all(compute.ends_with(forms, self.ending)).as_py())


@dataclass(frozen=True)
class ColumnType:
    """A type of columns.

    >>> column_type("int64").value(" +5 "), column_type("decimal(5,2)").name
    (5, 'decimal(5,2)')
    """

    # its name in options and errors
    name: str
    # returns the type of Arrow
    make: Callable[[], Any]
    # converts a lexical form to a value for `values`
    value: Callable[[str], Any]
    # forms that pyarrow's cast from strings reads as this type, or None
    usual: Usual | None = None
    # the type of Arrow of the results of `value`, if it differs
    stored: Callable[[], Any] | None = None

    def array(self, column: Characters) -> Any:
        """Returns the column of lexical forms."""
        if self.usual is not None and self.usual.fits(column.array):
            try:
                return column.array.cast(self.make())
            except arrow().ArrowInvalid:
                pass  # such as a day that its month does not have: the plain conversion raises the error
        return self.values([None if form is None else self.value(form) for form in column.forms])

    def values(self, values: list[Any]) -> Any:
        """Returns the column of results of `value`; None is null."""
        pa = arrow()
        if self.stored is None:
            return pa.array(values, self.make())
        return pa.array(values, self.stored()).cast(self.make())


def has_zone(form: str) -> bool:
    """Whether the lexical form of a date or a time has a time zone.

    >>> has_zone("2024-05-01"), has_zone("2024-05-01Z"), has_zone("2024-05-01T12:00:00-05:00")
    (False, True, True)
    """
    return _HAS_ZONE.search(form) is not None


def _of(datatype: str) -> Callable[[str], Any]:
    return partial(_native, f"{XSD}{datatype}")


def _native(datatype: str, form: str) -> Any:
    return native(form, datatype)


def _int64(form: str) -> int:
    value: int = native(form, f"{XSD}integer")
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("out of the range of int64")
    return value


def _decimal(precision: int, scale: int, form: str) -> Any:
    value = native(form, f"{XSD}decimal")
    _, digits, exponent = value.as_tuple()  # normalizing would round to the digits of the context
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    if digits == (0,):
        return value * 0
    if -exponent > scale:
        raise ValueError(f"more than {scale} digits after the point")
    if len(digits) + exponent > precision - scale:
        raise ValueError(f"more than {precision - scale} digits before the point")
    return value


def _microseconds(form: str, *, zone: str) -> int:
    """The microseconds since 1970 of a lexical form; `zone` is added to forms without a time zone."""
    form = form.strip(_SPACE)
    if _TOO_FINE.search(form):
        raise ValueError("more digits than microseconds have")
    value = microseconds_of_date_time(form if has_zone(form) else f"{form}{zone}")
    if value is None:
        raise ValueError("no xsd:dateTime")
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("out of the range of timestamps")
    return value


def _timestamp(form: str) -> int:
    if has_zone(form):
        raise ValueError("it has a time zone, and the column is of times without one")
    return _microseconds(form, zone="Z")


def _zoned(form: str) -> int:
    if not has_zone(form):
        raise ValueError("it has no time zone, and the column is of times with one")
    return _microseconds(form, zone="Z")


def _date(form: str) -> int:
    form = form.strip(_SPACE)
    if has_zone(form):
        raise ValueError("it has a time zone, and the column is of dates without one")
    value = microseconds_of_date_time(f"{form}T00:00:00Z")
    if value is None:
        raise ValueError("no xsd:date")
    days = value // _DAY
    if not -(1 << 31) <= days < 1 << 31:
        raise ValueError("out of the range of dates")
    return days


def _time(form: str) -> int:
    if _TOO_FINE.search(form):
        raise ValueError("more digits than microseconds have")
    value = native(form, f"{XSD}time")
    if value.tzinfo is not None:
        raise ValueError("it has a time zone, and the column is of times without one")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return int(seconds * 1_000_000 + value.microsecond)


def _duration(form: str) -> int:
    if _TOO_FINE.search(form):
        raise ValueError("more digits than microseconds have")
    value = native(form, f"{XSD}dayTimeDuration")
    microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    if not -(1 << 63) <= microseconds < 1 << 63:
        raise ValueError("out of the range of durations")
    return int(microseconds)


def _decimals(precision: int, scale: int, name: str = "decimal") -> ColumnType:
    return ColumnType(
        name,
        lambda: arrow().decimal128(precision, scale),
        partial(_decimal, precision, scale),
        Usual(b"0123456789.+-", most=_DIGITS[0] - scale),
    )


TYPES: Final = {
    each.name: each
    for each in (
        ColumnType(STRING, lambda: arrow().string(), str),
        ColumnType(RAW, lambda: arrow().string(), str),
        ColumnType("boolean", lambda: arrow().bool_(), _of("boolean"), Usual(b"aeflrstu01")),
        ColumnType("int64", lambda: arrow().int64(), _int64, Usual(b"0123456789-")),
        ColumnType(
            "double",
            lambda: arrow().float64(),
            _of("double"),
            Usual(b"0123456789.eE+-"),
        ),
        _decimals(*_DIGITS),
        ColumnType(
            "date", lambda: arrow().date32(), _date, Usual(b"0123456789-"), lambda: arrow().int32()
        ),
        ColumnType(
            "timestamp",
            lambda: arrow().timestamp("us"),
            _timestamp,
            Usual(b"0123456789-:.T", 19),
            lambda: arrow().int64(),
        ),
        ColumnType(
            "timestamptz",
            lambda: arrow().timestamp("us", "UTC"),
            partial(_microseconds, zone="Z"),
            Usual(b"0123456789-:.TZ", 20, "Z"),
            lambda: arrow().int64(),
        ),
        ColumnType("time", lambda: arrow().time64("us"), _time, None, lambda: arrow().int64()),
        ColumnType(
            "duration", lambda: arrow().duration("us"), _duration, None, lambda: arrow().int64()
        ),
    )
}
"""All types except decimals of other sizes."""

ZONED_TIMES: Final = replace(TYPES["timestamptz"], value=_zoned)
"""The type of times with a time zone; if it is declared, times without one are in UTC."""

LARGE_INTEGERS: Final = _decimals(38, 0, "decimal(38,0)")
"""The type of integers beyond int64."""

_SIZED: Final = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)")


def column_type(name: str) -> ColumnType:
    """Returns the type with a name.

    >>> column_type("Decimal(10, 2)").name
    'decimal(10,2)'
    """
    written = "".join(name.lower().split())
    if written in TYPES:
        return TYPES[written]
    if match := _SIZED.fullmatch(written):
        precision, scale = int(match[1]), int(match[2])
        if 0 < precision <= 38 and scale <= precision:
            return _decimals(precision, scale, written)
    raise UsageError(
        f"{name!r} is no type of a column",
        hint=f"choose {', '.join(TYPES)}, or decimal(P,S) with at most 38 digits",
    )


_INTEGERS: Final = (
    "integer long int short byte unsignedLong unsignedInt unsignedShort unsignedByte "
    "nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger"
)
CATEGORIES: Final = {
    **{f"{XSD}{name}": "integer" for name in _INTEGERS.split()},
    f"{XSD}decimal": "decimal",
    f"{XSD}double": "double",
    f"{XSD}float": "double",
    f"{XSD}boolean": "boolean",
    f"{XSD}date": "date",
    f"{XSD}dateTime": "dateTime",
    f"{XSD}dateTimeStamp": "dateTime",
    f"{XSD}time": "time",
    f"{XSD}dayTimeDuration": "duration",
}
"""The category of each datatype with its own type; values of one category fit into the same column."""

NUMBERS: Final = ("integer", "decimal", "double")
"""The categories of numbers; a column of one can hold values of the previous ones."""
