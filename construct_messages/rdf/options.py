"""The option values of both `construct_messages`, embedded and on Spark: how solutions are grouped, the dataset of the
query, and how its source is asked.

The command line, the server and watches build the same values. A value is checked when it is made, and never changes.
No I/O; the packages that read an option define its effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from construct_messages.rdf.arguments import checked, checked_fields
from construct_messages.rdf.errors import UsageError

GROUP_LIMIT: Final = 1_000_000
"""The number of solutions that grouping holds by default."""
RETRIES: Final = 3
"""The number of times that a request is repeated by default."""
UNION: Final = "union"
"""In place of the IRIs of default graphs: the merge of all graphs of the source."""


@dataclass(frozen=True, slots=True, init=False)
class Grouping:
    """Which solutions form one message.

    Args:
        by: variables; solutions with equal terms for them form one message. None: each solution is a message.
        order: `"appearance"` keeps the order of first appearance and holds all solutions, up to `limit`; `"sorted"`
            lets the source sort by the variables and holds one group.
        limit: the maximal number of solutions to hold. On Spark it has no effect.

    Raises:
        UsageError: an unknown order, or a limit below 1.

    >>> Grouping("?country", order="sorted")
    Grouping(by=('country',), order='sorted', limit=1000000)
    """

    by: tuple[str, ...]
    order: str
    limit: int

    @checked
    def __init__(
        self, by: str | Sequence[str] = (), *, order: str = "appearance", limit: int = GROUP_LIMIT
    ) -> None:
        if order not in ("appearance", "sorted"):
            raise UsageError(f"order={order!r} is unknown", hint='choose "appearance" or "sorted"')
        _check_positive("limit", limit)
        names = tuple(name.lstrip("?$") for name in _texts(by))
        for name, value in (("by", names), ("order", order), ("limit", limit)):
            object.__setattr__(self, name, value)

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


@dataclass(frozen=True, slots=True, init=False)
class Dataset:
    """The RDF dataset of a query, in place of its FROM clauses (SPARQL 1.1 Protocol, section 2.1.4).

    Args:
        default_graph: `"union"` for all graphs of the source, or IRIs of graphs to merge. None: the source's own.
        named_graphs: IRIs of the graphs that `GRAPH` can see. None: the source's own.

    >>> Dataset("union"), Dataset(named_graphs=["urn:g"])
    (Dataset(default_graph=('union',), named_graphs=()), Dataset(default_graph=(), named_graphs=('urn:g',)))
    """

    default_graph: tuple[str, ...]
    named_graphs: tuple[str, ...]

    @checked
    def __init__(
        self, default_graph: str | Sequence[str] = (), named_graphs: str | Sequence[str] = ()
    ) -> None:
        object.__setattr__(self, "default_graph", tuple(_texts(default_graph)))
        object.__setattr__(self, "named_graphs", tuple(_texts(named_graphs)))


@checked_fields
@dataclass(frozen=True, slots=True)
class Requests:
    """How a source is opened and asked. All but `timeout` and `allow_stale` have an effect for endpoints only.

    Args:
        timeout: seconds for the whole answer; None: no limit.
        read_seconds: seconds in which an endpoint may send nothing; `math.inf`: no limit. None: ten minutes in `watch`,
            which nobody looks at, and no limit elsewhere.
        page_size: solutions per request, for endpoints that limit their answers; None: one request for all.
        page_key: a variable of the template that is an IRI in every solution: pages follow each other by its values
            instead of by OFFSET, so that the endpoint's order of other values does not matter.
        strict: raise an error instead of logging a warning if blank nodes occur in several pages, because labels are
            only valid within a response.
        method, headers, results, profile, retries, allow_stale, source_format: see `open_source`.

    Raises:
        UsageError: a size or time that is not more than 0, or `page_key` without `page_size`.

    >>> Requests(profile="virtuoso", page_size=0)
    Traceback (most recent call last):
    construct_messages.rdf.errors.UsageError: page_size=0 must be more than 0
    """

    timeout: float | None = None
    page_size: int | None = None
    page_key: str | None = None
    strict: bool = False
    method: str = "post"
    headers: Mapping[str, str] | None = None
    results: str = "auto"
    profile: str = "generic"
    retries: int = RETRIES
    allow_stale: bool = False
    source_format: str | None = None
    read_seconds: float | None = None

    def __post_init__(self) -> None:
        _check_positive("page_size", self.page_size)
        _check_positive("timeout", self.timeout)
        _check_positive("read_seconds", self.read_seconds)
        if self.page_key is not None and self.page_size is None:
            raise UsageError(
                f"page_key={self.page_key!r} needs page_size",
                hint="set the number of solutions per request",
            )

    @property
    def opening(self) -> dict[str, Any]:
        """The arguments of `open_source` among them.

        >>> Requests(profile="qlever", timeout=5).opening["profile"]
        'qlever'
        """
        of_queries = ("timeout", "page_size", "page_key", "strict")
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in of_queries
        }


def _texts(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given


def _check_positive(name: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise UsageError(f"{name}={value} must be more than 0")
