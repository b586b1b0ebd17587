"""The solutions of a firing, the selection of those to return (R2S), and the message of each.

RSP-QL compares the answers of one firing with those of the previous one. Here answers are solutions, as a multiset:
ISTREAM returns those that are more frequent than before, DSTREAM those that are less frequent, RSTREAM all. The
template of the query then instantiates each of them to one message. A query also lists the predicates of the quads that
it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import pyoxigraph as ox

from construct_messages.errors import ConstructMessagesError
from construct_messages.query.algebra.nodes import Bgp, Node, Unit, Values, Var
from construct_messages.query.algebra.translation import translate
from construct_messages.query.checks import REWRITTEN
from construct_messages.query.continuous.values import TIMESTAMP, ContinuousQuery, Operator
from construct_messages.query.embedded import names_in_full
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.query.syntax.nodes import ExistsNode, walk
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, of_distinct
from construct_messages.rdf.template import row_message
from construct_messages.rdf.terms import XSD, OxTerm, Term, has_blank, map_blanks, parse_term
from construct_messages.rdf.terms.values import microseconds_of_date_time
from construct_messages.sparql.engine import StoreQuery
from construct_messages.streams.element import GENERATED_AT

# --- timestamps -----------------------------------------------------------------------------------
# C-SPARQL's function `timestamp(?s, ?p, ?o)`: the last time of a triple, in milliseconds since 1970 in UTC.
#
# It is found in the messages of the windows, by their context triples; if no message contains the triple, it has no
# value. C-SPARQL has no other functions of its own.

FUNCTION: Final = ox.NamedNode(TIMESTAMP)

_GENERATED_AT: Final = ox.NamedNode(GENERATED_AT)
_LONG: Final = ox.NamedNode(f"{XSD}long")


def timestamp(store: ox.Store, *triple: OxTerm) -> ox.Literal | None:
    """Returns the time of the last message that contains a triple.


    >>> store = ox.Store()
    >>> document = '''<urn:s/1> { <urn:a> <urn:p> 1 . <urn:s/1> <http://www.w3.org/ns/prov#generatedAtTime>
    ...     "1970-01-01T00:00:02Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> }'''
    >>> store.load(document, format=ox.RdfFormat.TRIG)
    >>> timestamp(store, ox.NamedNode("urn:a"), ox.NamedNode("urn:p"), ox.Literal(1)).value
    '2000'
    """
    if len(triple) != 3:
        return None
    subject, predicate, object = triple
    if isinstance(subject, ox.Literal) or not isinstance(predicate, ox.NamedNode):
        return None
    times = [
        microseconds_of_date_time(context.object.value)
        for quad in store.quads_for_pattern(subject, predicate, object, None)
        if isinstance(message := quad.graph_name, ox.NamedNode)
        for context in store.quads_for_pattern(message, _GENERATED_AT, None, message)
        if isinstance(context.object, ox.Literal)
    ]
    last = max((time for time in times if time is not None), default=None)
    return None if last is None else ox.Literal(str(last // 1000), datatype=_LONG)


# --- solutions ------------------------------------------------------------------------------------

_NOW: Final = parse_term('"1970-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')

Solution: TypeAlias = tuple[Term, ...]
Instantiate: TypeAlias = Callable[[Sequence[Solution], int], Iterator[Message]]


class SelectedMessages:
    """A query to be evaluated repeatedly.

    Args:
        query: its SPARQL.
        labels: create the labels of the template's blank nodes.
        made: the scope (see `terms.blank`) of labels of blank nodes that the query itself creates, as by BNODE().
        whole: whether solutions have the values of all variables of the pattern, not only of those of the template.

    Attributes:
        text: the SELECT, with names that the engine can parse.
        tree: the SELECT as a tree.
        variables: the names of the values of a solution.
        predicates: see `predicates_of`.
        makes_nodes: whether the messages of equal solutions differ, in blank nodes of the template.
        instantiate: returns the messages of solutions, given the number of the first of them among all.

    Raises:
        QueryError: the query is not legal.
    """

    def __init__(
        self, query: ContinuousQuery, labels: Labels, made: str, *, whole: bool = False
    ) -> None:
        self._own, self._made = f"_:{labels.prefix}_", f"_:{made}"
        if query_form(query.query) == "CONSTRUCT":
            parsed = ConstructQuery.parse(query.query, whole=whole)
            parsed.warn_of_unbound()
            template = parsed.template.labelled(labels)
            select, self.tree = parsed.select, parsed.rewritten.tree
            self.variables: tuple[str, ...] = template.variables
            self.makes_nodes = template.has_blanks

            def instantiate(solutions: Sequence[Solution], first: int) -> Iterator[Message]:
                columns = [list(column) for column in zip(*solutions, strict=True)]
                return (
                    map(of_distinct, template.instantiate_all(columns, first))
                    if columns
                    else iter(())
                )

            self.instantiate: Instantiate = instantiate
        else:
            select, self.tree, self.makes_nodes = query.query, parse(query.query), True
            self.instantiate = lambda solutions, first: (
                row_message(self.variables, solution, labels, number)
                for number, solution in enumerate(solutions, first)
            )
        self._query = StoreQuery(select, REWRITTEN, functions=_functions)
        self.variables = self._query.check()
        self.text = names_in_full(select)
        self.predicates = predicates_of(self.tree)

    def solutions(self, store: ox.Store) -> list[Solution]:
        """Returns the solutions, in the order of the engine."""
        solved = self._query.solve(store)
        if solved.solutions is None:
            return [()] * solved.total
        return list(
            map(self._labelled, solved.solutions) if solved.has_blanks else solved.solutions
        )

    def key(self, solution: Solution) -> Solution:
        """Returns a key to compare solutions: their terms, with created blank nodes by their positions."""
        if not any(self._made in term for term in solution):
            return solution
        names: dict[Term, Term] = {}

        def name(node: Term) -> Term:
            return (
                names.setdefault(node, Term(f"_:{len(names)}"))
                if node.startswith(self._made)
                else node
            )

        return tuple(map_blanks(term, name) if has_blank(term) else term for term in solution)

    def _labelled(self, solution: Solution) -> Solution:
        return tuple(
            map_blanks(term, self._label) if has_blank(term) else term for term in solution
        )

    def _label(self, node: Term) -> Term:
        return node if node.startswith(self._own) else Term(self._made + node[2:])


def _functions(store: ox.Store) -> Mapping[ox.NamedNode, Callable[..., Any]]:
    return {FUNCTION: partial(timestamp, store)}


def select_solutions(
    operator: Operator,
    new: Sequence[Solution],
    old: Sequence[Solution],
    key: Callable[[Solution], Solution],
) -> list[Solution]:
    """Returns the selected solutions of a firing, in their order; of equal ones the last.

    `key` returns the part of a solution that is compared.


    >>> select_solutions(Operator.ISTREAM, [("1",), ("1",), ("2",)], [("1",), ("3",)], tuple)
    [('1',), ('2',)]
    >>> select_solutions(Operator.DSTREAM, [("1",), ("1",), ("2",)], [("1",), ("3",)], tuple)
    [('3',)]
    """
    if operator is Operator.RSTREAM:
        return list(new)
    there, known = (new, old) if operator is Operator.ISTREAM else (old, new)
    return list(_more(there, known, key))


def _more(
    there: Iterable[Solution], known: Iterable[Solution], key: Callable[[Solution], Solution]
) -> Iterator[Solution]:
    counts = Counter(map(key, known))
    for solution in there:
        equal = key(solution)
        if counts[equal] > 0:
            counts[equal] -= 1
        else:
            yield solution


def predicates_of(select: Query) -> frozenset[str] | None:
    """Returns the predicates of all triple patterns of a query; None if quads with other ones may make a difference.

    A quad only contributes to a solution if it matches a triple pattern. So if each pattern has a constant predicate,
    quads with other predicates need not be stored. All quads are stored for queries that may read more (paths, names of
    graphs, EXISTS, `timestamp`), or that this package's algebra does not support.

    >>> predicates_of(parse("SELECT * { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> 1 } }")) == {
    ...     "<urn:p>", "<urn:q>"}
    True
    >>> predicates_of(parse("SELECT * { ?s ?p ?o }")), predicates_of(parse("SELECT * { ?s <urn:p>* ?o }"))
    (None, None)
    """
    if any(isinstance(node, ExistsNode) for node in walk(select.form)):
        return None
    try:
        pattern = translate(select, now=_NOW).pattern  # which refuses the function `timestamp`
    except ConstructMessagesError:
        return None
    found: set[str] = set()
    return frozenset(found) if _collect(pattern, found) else None


def _collect(node: Node, found: set[str]) -> bool:
    """Adds the predicates below a node; returns whether it only reads quads with these."""
    if node.children:
        return all(_collect(child, found) for child in node.children)
    if not isinstance(node, Bgp):
        return isinstance(node, (Unit, Values))
    for pattern in node.patterns:
        if isinstance(pattern.predicate, Var):
            return False
        found.add(pattern.predicate)
    return True
