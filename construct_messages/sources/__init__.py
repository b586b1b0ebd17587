"""Sources of solutions: anything that answers a SELECT with batches of solutions.

Does I/O. Never imports `logs`, and knows neither templates nor messages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from construct_messages.labels import Labels
from construct_messages.query.select import Select
from construct_messages.solutions import Solutions
from construct_messages.terms import Lenience

UNION = "union"
"""In `Request.default_graphs`: the default graph is the merge of all graphs of the source."""

REWRITTEN = "lines are those of your query; on the line of CONSTRUCT, columns are those of the rewritten SELECT"
"""The hint about an engine's own position in a query that it refuses."""


class Validators(NamedTuple):
    """A source's own words for the state of its data (RFC 9110, section 8.8).

    Args:
        etag: ETag.
        modified: Last-Modified, where a later change shows in it.
    """

    etag: str | None = None
    modified: str | None = None


@dataclass
class Condition:
    """Asks for solutions only where the data changed (RFC 9110, section 13), and takes what the source says of it.

    Args:
        known: what the source said with the solutions that are known.

    Attributes:
        said: what it says with those of its answer.
        unchanged: whether it says that nothing changed, and gives no solutions.
    """

    known: Validators
    said: Validators = field(default=Validators(), init=False)
    unchanged: bool = field(default=False, init=False)

    @property
    def headers(self) -> dict[str, str]:
        """What makes a request one under this condition."""
        if self.known.etag is not None:
            return {"If-None-Match": self.known.etag}
        return {} if self.known.modified is None else {"If-Modified-Since": self.known.modified}


@dataclass(frozen=True)
class Request:
    """One SELECT to answer, with the SPARQL Protocol's dataset and the caller's bounds.

    Args:
        select: the query.
        default_graphs: IRIs (without brackets) of the graphs to merge into the default graph; `("union",)` for all.
        named_graphs: IRIs of the named graphs.
        page_size: solutions per page, where the source is to be read in pages.
        timeout: seconds for the whole answer.
        parameters: further parameters for an endpoint, in order.
        headers: further request headers for an endpoint; names as in `Accept`.
        lenience: what passes and counts malformed IRIs and language tags of the source; None: they are errors.
        labels: make those of the data's blank nodes, which are to meet no others (`labels.of_data` is the scope that
            `terms.blank` and what reads other libraries' terms take).
        condition: heeded by endpoints that are asked by GET, and not in pages; None: there is none.
    """

    select: Select
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    page_size: int | None = None
    timeout: float | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    lenience: Lenience | None = None
    labels: Labels = field(default_factory=Labels, compare=False)
    condition: Condition | None = field(default=None, compare=False)


class Source(Protocol):
    """Anything that answers a SELECT.

    Attributes:
        predefined: prefixes that queries may use here without declaring them.
        stable_blank_nodes: whether a blank node label means the same node in every response.
    """

    @property
    def predefined(self) -> Mapping[str, str]: ...

    @property
    def stable_blank_nodes(self) -> bool: ...

    def solutions(self, request: Request) -> Generator[Solutions]:
        """The solutions in order, in batches as soon as they exist; each batch's columns are `select.variables`.

        Labels of blank nodes are those that `request.labels` makes, so that they meet those of no other stream.

        Closing the generator cancels the evaluation.

        Raises:
            QueryError: the source's parser refuses the query.
            SourceError: no answer.
            SourceTimeout: `request.timeout` passed.
            IncompleteResult: an answer that is not whole; never a clean end.
        """
        ...

    def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """The same for asyncio."""
        ...

    def close(self) -> None:
        """Closes what the source itself opened (not what the caller passed)."""
        ...
