"""Sources of solutions: anything that answers a SELECT with batches of solutions.

Does I/O. Never imports `logs`, and knows neither templates nor messages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from construct_messages.labels import Labels
from construct_messages.query.select import Select
from construct_messages.results.tsv import TsvDecoder
from construct_messages.solutions import Solutions
from construct_messages.terms import Lenience


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
        """The request headers for this condition."""
        if self.known.etag is not None:
            return {"If-None-Match": self.known.etag}
        return {} if self.known.modified is None else {"If-Modified-Since": self.known.modified}


@dataclass(frozen=True)
class Request:
    """A SELECT query to answer, with the dataset of the SPARQL Protocol and the limits of the caller.

    Args:
        select: the query.
        default_graphs: IRIs (without brackets) of the graphs to merge into the default graph; `(UNION,)` for all.
        named_graphs: IRIs of the named graphs.
        page_size: solutions per page, if the source is to be read in pages.
        timeout: seconds for the whole answer.
        parameters: additional parameters for an endpoint, in order.
        headers: additional request headers for an endpoint; names as in `Accept`.
        lenience: passes and counts malformed IRIs and language tags of the source; None: they are errors.
        labels: create labels of the data's blank nodes that are unique to this request (`labels.of_data` is the scope
            for `terms.blank` and for the readers of other libraries' terms).
        condition: only used by endpoints that are asked by GET, and not in pages; None: no condition.
        page_key: the variable, an IRI in each solution, by whose texts pages follow each other; None: they follow each
            other by OFFSET.
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
    page_key: str | None = None

    def new_tsv_decoder(self) -> TsvDecoder:
        """Creates a decoder for a TSV document of these solutions, whose labels are of the data."""
        return TsvDecoder(self.select.variables, scope=self.labels.of_data, lenience=self.lenience)


class Source(Protocol):
    """The protocol of sources: everything that answers a SELECT query.

    Attributes:
        predefined: prefixes that queries may use without declaring them.
        stable_blank_nodes: whether a blank node label means the same node in every response.

    A source that has one solution for every query:

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

        Labels of blank nodes are made by `request.labels`, so that they do not collide with those of other results.
        Closing the generator cancels the evaluation.

        Raises:
            QueryError: the source's parser refuses the query.
            SourceError: the source failed.
            SourceTimeout: `request.timeout` passed.
            IncompleteResult: the answer is incomplete.
        """
        ...

    def asolutions(self, request: Request) -> AsyncGenerator[Solutions]:
        """Yields the solutions for asyncio; see `solutions`."""
        ...

    def close(self) -> None:
        """Closes what the source itself has opened, and not what the caller has passed."""
        ...
