"""Sources of solutions: anything that answers a SELECT with batches of solutions.

Does I/O. Never imports `logs`, and knows neither templates nor messages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from construct_messages.query.select import Select
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.solutions import Solutions
from construct_messages.rdf.terms import Lenience
from construct_messages.sparql.results.tsv import TsvDecoder


class Validators(NamedTuple):
    """The validators of a source's data (RFC 9110, section 8.8).

    Args:
        etag: ETag.
        modified: Last-Modified, unless a later change may have the same value.
    """

    etag: str | None = None
    modified: str | None = None


class Condition:
    """A conditional request for solutions (RFC 9110, section 13), and the validators of its answer.

    Args:
        known: the validators of the known solutions.

    Attributes:
        received: the validators of the answer.
        unchanged: whether the data is unchanged, so that the answer has no solutions.
    """

    def __init__(self, known: Validators) -> None:
        self.known, self.received, self.unchanged = known, Validators(), False

    @property
    def headers(self) -> dict[str, str]:
        """The request headers for this condition."""
        if self.known.etag is not None:
            return {"If-None-Match": self.known.etag}
        return {} if self.known.modified is None else {"If-Modified-Since": self.known.modified}


@dataclass(frozen=True, slots=True)
class Request:
    """A SELECT query to answer, with the dataset of the SPARQL Protocol and the limits of the caller.

    Args:
        select: the query.
        default_graphs: IRIs (without brackets) of the graphs to merge into the default graph; `(UNION,)` for all.
        named_graphs: IRIs of the named graphs.
        page_size: solutions per page, if the source is to be read in pages; "auto": as the source sees fit.
        timeout: the maximal time for the whole answer, in seconds.
        parameters: additional parameters for an endpoint, in order.
        headers: additional request headers for an endpoint; names as in `Accept`.
        lenience: accepts and counts terms of the source that are not RDF; None: they are errors.
        labels: create labels of the data's blank nodes that are unique to this request (`labels.of_data` is the scope
            for `terms.blank` and for the readers of other libraries' terms).
        condition: only used by endpoints for GET without pages; None: no condition.
        page_key: the variable, an IRI in each solution, whose strings order the pages; None: pages use OFFSET.
    """

    select: Select
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    page_size: int | Literal["auto"] | None = None
    timeout: float | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    lenience: Lenience | None = None
    labels: Labels = field(default_factory=Labels, compare=False, repr=False)
    condition: Condition | None = field(default=None, compare=False, repr=False)
    page_key: str | None = None

    def readable(self, batch: Solutions) -> Solutions:
        """Leaves out, and counts, the solutions with a term that `lenience` does not accept."""
        if self.lenience is None or not self.lenience.leaves_some_out:
            return batch
        left = batch.readable()
        self.lenience.left_out(len(batch) - len(left))
        return left

    def new_tsv_decoder(self) -> TsvDecoder:
        """Creates a decoder for a TSV document of these solutions, with blank node labels of the data."""
        return TsvDecoder(self.select.variables, scope=self.labels.of_data, lenience=self.lenience)


class Source(Protocol):
    """The protocol of sources, which answer SELECT queries.

    Attributes:
        predefined: prefixes that queries may use without declaring them.
        stable_blank_nodes: whether a blank node label means the same node in every response.

    A source with one solution for every query:

    >>> class Constant:
    ...     predefined, stable_blank_nodes = {}, True
    ...     def solutions(self, request):
    ...         yield Solutions([["<urn:a>"] for variable in request.select.variables])
    ...     async def asolutions(self, request):
    ...         for solutions in self.solutions(request):
    ...             yield solutions
    ...     def close(self):
    ...         pass
    >>> from construct_messages import construct_messages
    >>> list(construct_messages("CONSTRUCT { ?s a <urn:A> } WHERE { ?s ?p ?o }", Constant()))
    [<Message of 1 quad: <urn:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:A> .>]
    """

    @property
    def predefined(self) -> Mapping[str, str]: ...

    @property
    def stable_blank_nodes(self) -> bool: ...

    def solutions(self, request: Request) -> Generator[Solutions]:
        """Yields the solutions in order, in batches, as soon as they exist. The columns of each batch are
        `select.variables`.

        `request.labels` creates the labels of blank nodes, so that they do not collide with those of other results.
        Closing the generator cancels the evaluation.

        Raises:
            QueryError: the source's parser rejects the query.
            SourceError: the source failed.
            SourceTimeout: `request.timeout` passed.
            IncompleteResult: the answer is incomplete.
        """
        ...

    def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """Yields the solutions for asyncio; see `solutions`."""
        ...

    def close(self) -> None:
        """Closes the resources that the source itself opened; those that the caller passed stay open."""
        ...


# --- operations -----------------------------------------------------------------------------------
# Operations of the SPARQL Protocol that a source answers by itself, from the text to the bytes of the answer.
#
# The additional operations of a source that a server needs (SPARQL 1.1 Protocol, section 2). Reads no query.


@dataclass(frozen=True)
class Operation:
    """One operation."""

    text: str | None  # the query or update; None asks for the service description
    update: bool = False
    # IRIs of `default-graph-uri` (`using-graph-uri` of an update), in order; see also `Request`
    default_graphs: tuple[str, ...] = ()
    # IRIs of `named-graph-uri` (`using-named-graph-uri`), in order
    named_graphs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()  # all other parameters of the request, in order
    # `Accept`, and those of the client's headers that may be forwarded. Names as in `Accept`
    headers: Mapping[str, str] = field(default_factory=dict)
    head: bool = False  # whether only the status and headers are requested
    timeout: float | None = None  # the maximal time for the whole answer, in seconds


@dataclass(frozen=True)
class Answer:
    """The answer to an operation, to be sent to a client."""

    status: int
    headers: tuple[tuple[str, str], ...]  # in order; only headers for a client
    # the bytes; raises `SourceError` if they cannot be read completely. Its reader must close it, which cancels the
    # operation
    body: AsyncGenerator[bytes]


class Backend(Source, Protocol):
    """A source for a server: it also answers operations by itself."""

    async def answer(self, operation: Operation) -> Answer:
        """Returns the answer to an operation as soon as its status is known; see the errors of `Source`."""
        ...

    async def start(self) -> None:
        """Prepares resources that the first answer would otherwise wait for; may raise `SourceError`."""
        ...

    async def check(self) -> None:
        """Raises `SourceError` if the source does not answer."""
        ...

    async def aclose(self) -> None:
        """Cancels running operations, and closes connections and processes."""
        ...
