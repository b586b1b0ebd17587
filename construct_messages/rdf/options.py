"""Options as values. Each option states its name, type, bounds, default and meaning once, in a class.

The fields of an option class, a frozen data class, are its options, and `Args:` of its docstring has their meanings.
The command line, the settings of the server, the data source of Spark and the tables of the reference are made from
them. A value is checked when it is made, and never changes. No I/O; the packages that read an option define its effect.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import wraps
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from construct_messages.errors import UsageError
from construct_messages.rdf.arguments import checked, evaluated, plain, types_in
from construct_messages.rdf.terms import iri

_T = TypeVar("_T")

# --- option classes -------------------------------------------------------------------------------

REQUIRED: Final[Any] = MISSING
"""The default of an option that must be given."""
_MEANINGS: Final = re.compile(r"^Args:\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
_MEANING: Final = re.compile(
    r"^ {4}(\w[\w, \n]*?):\s+(.*?)(?=\n {4}\S|\Z)", re.DOTALL | re.MULTILINE
)
_ELSEWHERE: Final = re.compile(r"see `(\w+)`\.")


class Bound(NamedTuple):
    """The bounds of a number: at least `least`, above `above`, at most `most`."""

    least: float | None = None
    above: float | None = None
    most: float | None = None

    def admits(self, value: float) -> bool:
        """Whether a number is within the bounds."""
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        if self.above is not None:
            return f" above {self.above:g}"
        return "" if self.least is None else f" of at least {self.least:g}"


Count: TypeAlias = Annotated[int, Bound(least=1)]
Size: TypeAlias = Annotated[int, Bound(least=0)]
Seconds: TypeAlias = Annotated[float, Bound(above=0)]


class Option(NamedTuple):
    """One option of a class; `meaning` is Markdown, without a full stop."""

    name: str
    type: Any
    default: Any
    meaning: str

    @property
    def types(self) -> list[Any]:
        """The types that its value may have, without bounds."""
        return types_in(plain(self.type))

    @property
    def bound(self) -> Bound:
        """The bounds of a value that is a number."""
        bounds = [
            each.__metadata__[0] for each in types_in(self.type) if hasattr(each, "__metadata__")
        ]
        return bounds[0] if bounds else Bound()

    def admits(self, value: Any) -> bool:
        """Whether a value of the right type is within the bounds, or one of the choices."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self.bound.admits(value)
        choices = [choice for each in self.types for choice in get_args(each) if is_choice(each)]
        return not isinstance(value, str) or not choices or str in self.types or value in choices

    def described(self, none: str = "None") -> str:
        """Its values in words; `none` stands for None, which is left out if it is empty.

        >>> options_of(Requests)["page_size"].described(), options_of(Grouping)["order"].described()
        ('a whole number of at least 1 or "auto" or None', '"appearance" or "sorted"')
        """
        return " or ".join(filter(None, (self._described(each, none) for each in self.types)))

    def _described(self, kind: Any, none: str) -> str:
        words = {
            NoneType: none,
            bool: "true or false",
            int: f"a whole number{self.bound}",
            float: f"a number{self.bound}",
            dict: "a table of strings",
            tuple: "a list of strings",
        }
        if is_choice(kind):
            return " or ".join(f'"{value}"' for value in sorted(get_args(kind)))
        if get_origin(kind) is tuple and get_args(kind)[0] in _OPTIONS:
            return "a list of tables"
        return words.get(get_origin(kind) or kind, "a string")


_OPTIONS: Final[dict[Any, dict[str, Option]]] = {}


def option_class(kind: type[_T]) -> type[_T]:
    """Returns a data class as an option class: its fields are checked when one is made.

    A meaning "see `Name`." is that of the same option of the class `Name`.
    """
    init = vars(kind)["__init__"]
    # signatures show `int | None`, and not the name of a type with bounds
    init.__annotations__ |= {
        each.name: plain(_type_of(kind, each)) or each.type
        for each in fields(kind)  # type: ignore[arg-type] # it is a data class
    }
    create: Callable[..., None] = checked(init)

    @wraps(create)
    def create_checked(self: Any, *arguments: Any, **named: Any) -> None:
        create(self, *arguments, **named)
        for name, each in options_of(kind).items():
            if not each.admits(value := getattr(self, name)):
                raise UsageError(f"{name}={value!r} must be {each.described()}")

    setattr(kind, "__init__", create_checked)  # noqa: B010 - mypy allows no assignment to a method
    _OPTIONS[kind] = {}
    return kind


def options_of(kind: type[Any]) -> Mapping[str, Option]:
    """The options of an option class, or other data class, by name."""
    if not (found := _OPTIONS.setdefault(kind, {})):
        meanings = _meanings(kind)
        for each in fields(kind):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            found[each.name] = Option(
                each.name,
                _type_of(kind, each),
                default,
                meanings.get(each.name, ""),
            )
    return found


def _type_of(kind: type[Any], field: Field[Any]) -> Any:
    """The type of a field; None: its name is imported for type checkers only."""
    # a field may be inherited from a class of another module
    owner = next(each for each in kind.__mro__ if field.name in each.__annotations__)
    return evaluated(cast("Any", field.type), owner.__module__)


def _meanings(kind: type[Any]) -> dict[str, str]:
    """The meanings of options in `Args:` of the docstring of a class."""
    found = {}
    # Python 3.13 has removed the indentation already
    args = _MEANINGS.search(inspect.cleandoc(kind.__doc__ or ""))
    for names, text in _MEANING.findall(args[1] if args else ""):
        other = _ELSEWHERE.fullmatch(text)
        for name in re.split(r",\s+", names):
            found[name] = (
                options_of(evaluated(other[1], kind.__module__))[name].meaning
                if other
                else " ".join(text.split()).removesuffix(".")
            )
    return found


def is_option_class(kind: Any) -> bool:
    """Whether a type is an option class."""
    return kind in _OPTIONS


def is_choice(kind: Any) -> bool:
    """Whether a type is one of several texts."""
    return get_origin(kind) is Literal


# --- the options of queries -----------------------------------------------------------------------

UNION: Final = "union"
"""In place of the IRIs of default graphs: the merge of all graphs of the source."""
GROUP_LIMIT: Final = 1_000_000
DISTINCT_LIMIT: Final = 10_000_000  # each takes about 100 bytes
RETRIES: Final = 3


@option_class
@dataclass(frozen=True)
class Grouping:
    """Which solutions form one message.

    Args:
        by: one message for all solutions with the same ?v; several variables are combined.
        order: the order of groups: that of their first solutions, which holds all solutions in memory, or that of the
            variables, by which the source sorts.
        limit: hold at most N solutions for groups; more are an error. Without effect on Spark.

    Raises:
        UsageError: an unknown order, or a limit below 1.

    >>> Grouping("?country", order="sorted")
    Grouping(by=('country',), order='sorted', limit=1000000)
    """

    by: str | Sequence[str] = ()
    order: Literal["appearance", "sorted"] = "appearance"
    limit: Count = GROUP_LIMIT

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", tuple(name.lstrip("?$") for name in _texts(self.by)))

    @classmethod
    def of(cls, group_by: Grouping | str | Sequence[str]) -> Grouping:
        """Returns the value itself, or that of variables in the default order.

        >>> Grouping.of(["a", "b"]).by
        ('a', 'b')
        """
        return group_by if isinstance(group_by, Grouping) else cls(group_by)

    @property
    def is_sorted(self) -> bool:
        """Whether the source sorts by the variables."""
        return bool(self.by) and self.order == "sorted"


@option_class
@dataclass(frozen=True)
class Dataset:
    """The RDF dataset of a query, in place of its FROM clauses (SPARQL 1.1 Protocol, section 2.1.4).

    Args:
        default_graph: use this graph, or union for all graphs, as the default graph; several are merged.
        named_graphs: a named graph of the dataset.

    >>> Dataset("union"), Dataset(named_graphs=["urn:g"])
    (Dataset(default_graph=('union',), named_graphs=()), Dataset(default_graph=(), named_graphs=('urn:g',)))
    """

    default_graph: str | Sequence[str] = ()
    named_graphs: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "default_graph", tuple(_texts(self.default_graph)))
        object.__setattr__(self, "named_graphs", tuple(_texts(self.named_graphs)))


@option_class
@dataclass(frozen=True)
class MessageOptions:
    """Which messages of a query are written, and how their blank nodes are named.

    Args:
        distinct: leave out messages that equal an earlier one.
        distinct_limit: compare at most N messages; more are an error.
        skip_empty: leave out empty messages.
        skolemize: replace blank nodes of the data by IRIs under this one.
        label_prefix: begin labels of blank nodes with PREFIX: a lower-case letter, then lower-case letters or digits;
            default: random, which no two logs share.
        max_messages: end the log after N messages.

    Raises:
        UsageError: a value beyond its bounds.
        TermError: `skolemize` is not an absolute IRI.
    """

    distinct: bool = False
    distinct_limit: Count = DISTINCT_LIMIT
    skip_empty: bool = False
    skolemize: str | None = None
    label_prefix: str | None = None
    max_messages: Size | None = None

    def __post_init__(self) -> None:
        if self.skolemize is not None:
            iri(self.skolemize)


OF_DUCKDB: Final = ("engine", "memory_limit", "threads", "spill")
"""The options of `Requests` for sources that DuckDB queries."""


@option_class
@dataclass(frozen=True)
class Requests:
    """How a source is opened and asked.

    Files, directories and tables have `timeout`, `source_format`, `allow_stale`, `engine`, `memory_limit`, `threads`
    and `spill`. The others are for endpoints only.

    Args:
        timeout: stop if the whole answer takes longer.
        page_size: request N solutions at a time, for endpoints that limit their answers; auto: few, then more, by the
            times of pages.
        page_key: request pages by the IRIs of ?v, not by OFFSET: ?v is an IRI in every solution.
        strict: make warnings errors: blank nodes that occur in several pages.
        method: the HTTP method for an endpoint.
        headers: send an additional request header.
        results: the results format to request; auto: that of the profile.
        profile: the kind of endpoint, such as virtuoso.
        retries: repeat a request up to N times after temporary failures, with growing pauses; 0: never.
        allow_stale: read a store directory while another process writes to it; the data may be outdated.
        source_format: the format of files; default: that of the extension; of standard input, detected from the first
            bytes.
        read_seconds: stop if an endpoint sends nothing for this long; inf: never; default: 600 of watch, else inf.
        engine: the engine of queries over files: duckdb reads them for each query, in less memory; auto: Oxigraph, in
            memory; tables are always queried by DuckDB.
        memory_limit: memory of DuckDB, as in 1500MB; default: four fifths of all.
        threads: threads of DuckDB; default: one for each core.
        spill: folder for DuckDB's data beyond the memory; default: a temporary one.
        contact: an address by which the endpoint's operator can reach you, for the User-Agent.
        resume: keep the pages that have come in this file, and begin with those that it has.

    Raises:
        UsageError: a value beyond its bounds, or `page_key` or `resume` without `page_size`.

    >>> Requests(profile="virtuoso", page_size=0)
    Traceback (most recent call last):
    construct_messages.errors.UsageError: page_size=0 must be a whole number of at least 1 or "auto" or None
    """

    timeout: Seconds | None = None
    page_size: Count | Literal["auto"] | None = None
    page_key: str | None = None
    strict: bool = False
    method: Literal["get", "post"] = "post"
    headers: Mapping[str, str] | None = None
    results: Literal["auto", "json", "xml", "tsv"] = "auto"
    profile: str = "generic"
    retries: Size = RETRIES
    allow_stale: bool = False
    source_format: str | None = None
    read_seconds: Seconds | None = None
    engine: Literal["auto", "oxigraph", "duckdb"] = "auto"
    memory_limit: str | None = None
    threads: Count | None = None
    spill: str | None = None
    contact: str | None = None
    resume: str | None = None

    def __post_init__(self) -> None:
        for name in ("page_key", "resume"):
            if getattr(self, name) is not None and self.page_size is None:
                raise UsageError(
                    f"{name}={getattr(self, name)!r} needs page_size",
                    hint="set the number of solutions per request, or auto",
                )

    @property
    def opening(self) -> dict[str, Any]:
        """The arguments of `open_source` among them.

        >>> Requests(profile="qlever", timeout=5).opening["profile"]
        'qlever'
        """
        of_queries = ("timeout", "page_size", "page_key", "strict")
        return {name: value for name, value in vars(self).items() if name not in of_queries}


# --- the options of streams -----------------------------------------------------------------------


@option_class
@dataclass(frozen=True, kw_only=True)
class TransportOptions:
    """How a stream is read or written, by any transport.

    Args:
        message_bytes: refuse messages of more than N bytes.
        retries: repeat a request up to N times in a row after temporary failures.
        idle_seconds: count a connection as lost if nothing came for this long.
        create: create the stream if it does not exist.
    """

    message_bytes: Count = 1 << 28
    retries: Size = 10  # for about a minute
    idle_seconds: Seconds = 60.0
    create: bool = False


def _texts(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given
