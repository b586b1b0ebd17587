"""The options of columns: the layout, the types of variables, and what happens to values that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypedDict

from construct_messages.errors import UsageError
from construct_messages.logs import FormatOptions
from construct_messages.logs.columns.types import RAW, STRING, column_type
from construct_messages.rdf.options import Count, option_class

BATCH_ROWS: Final = 1 << 16
"""The default maximal number of rows of a batch, or of a row group of Parquet."""


class ColumnArguments(TypedDict, total=False):
    """The fields of `ColumnOptions`, as keyword arguments."""

    layout: Literal["solutions", "quads", "nested"] | None
    raw: bool
    types: Mapping[str, str]
    languages: Sequence[str]
    decimals: Literal["decimal", "double"]
    invalid: Literal["error", "null", "string"]
    batch_rows: int


@option_class
@dataclass(frozen=True)
class ColumnOptions(FormatOptions):
    """The options of columns, in memory and in files of Parquet, Arrow and CSV.

    Args:
        layout: `"solutions"`, a row for each solution and a column for each variable; `"quads"`, a row for each quad
            with the number of its message; or `"nested"`, a row for each message with the list of its quads. None:
            `"solutions"` for the messages of a query, and `"quads"` for those of a log.
        raw: whether terms are N-Triples text: in all columns of `"solutions"`, or in place of the columns `object`,
            `datatype` and `language` of the other layouts.
        types: the types of variables by name (`?age` or `age`), for `"solutions"`: `"boolean"`, `"int64"`, `"double"`,
            `"decimal"` or `"decimal(P,S)"`, `"date"`, `"timestamp"`, `"timestamptz"`, `"time"`, `"duration"`,
            `"string"` (the characters of any term, as SPARQL's STR returns them) or `"raw"` (N-Triples). The type of
            another variable is decided by the datatypes of the first batch.
        languages: variables with an additional column, `NAME_language`, for the language tags of their values.
        decimals: the type of columns of decimals: `"decimal"` is exact; `"double"` can be multiplied by floats.
        invalid: the handling of values that do not fit into their column: `"error"`; `"null"`, which is counted; or
            `"string"`, which makes a column of such values one of strings, unless its type is declared. For that, the
            whole result is held in memory before the types are decided.
        batch_rows: the largest number of rows of a batch; a batch of large values, or of many columns, has fewer.

    Raises:
        UsageError: an unknown layout or type, or options that the layout does not have.

    >>> ColumnOptions("solutions", types={"?age": "int64"}).in_words()
    'layout solutions, types age=int64'
    >>> ColumnOptions.of({"layout": "nested", "raw": "true"}).raw
    True
    >>> ColumnOptions("table")
    Traceback (most recent call last):
    construct_messages.errors.UsageError: layout='table' must be "nested" or "quads" or "solutions" or None
    """

    _SHOWN = "columns"

    layout: Literal["solutions", "quads", "nested"] | None = None
    raw: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    languages: Sequence[str] = ()
    decimals: Literal["decimal", "double"] = "decimal"
    invalid: Literal["error", "null", "string"] = "error"
    batch_rows: Count = BATCH_ROWS

    def __post_init__(self) -> None:
        languages = (self.languages,) if isinstance(self.languages, str) else self.languages
        object.__setattr__(self, "languages", tuple(map(_name, languages)))
        object.__setattr__(
            self,
            "types",
            {_name(name): column_type(each).name for name, each in self.types.items()},
        )
        if self.raw and self.types:
            raise UsageError(
                "raw keeps all terms as they are, and types are given",
                hint='leave one of them out: the type "raw" is for one variable',
            )
        for name in self.languages:
            if self.raw or self.types.get(name, STRING) != STRING:
                raise UsageError(
                    f"?{name} gets a column of languages, and its type is {self.types.get(name, RAW)}",
                    hint="leave one of them out: languages are those of strings",
                )
        if self.layout in ("quads", "nested") and (self.types or self.languages):
            raise UsageError(
                f"types and languages of variables are for the layout solutions, and not for {self.layout}",
                hint="leave them out",
            )

    @property
    def is_flat(self) -> bool:
        """Whether a blank node label is one node in the whole log, as in `rdfm`."""
        return True

    def for_writing(
        self,
        source: ColumnOptions | None = None,
        *,
        graphs: bool = True,  # noqa: ARG002 - what other formats decide by
        triple_terms: bool = False,  # noqa: ARG002
        generalized: bool = True,  # noqa: ARG002
    ) -> ColumnOptions:
        """Returns the options themselves, or those of a log whose layout is to be kept."""
        return source if source is not None and self == ColumnOptions() else self

    def in_words(self) -> str:
        """Returns a line that describes the options."""
        types = ", ".join(f"{name}={each}" for name, each in self.types.items())
        words = {
            f"layout {self.layout}": self.layout is not None,
            "terms as N-Triples": self.raw,
            f"types {types}": bool(types),
            f"languages of {', '.join(self.languages)}": bool(self.languages),
            "decimals as doubles": self.decimals == "double",
            f"{self.invalid} for values that do not fit": self.invalid != "error",
        }
        return ", ".join(word for word, is_so in words.items() if is_so)


def _name(variable: str) -> str:
    return variable.lstrip("?$")
