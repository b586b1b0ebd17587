"""The solutions of a firing, what of them is given out (R2S), and the message of each.

RSP-QL compares the answers of one firing with those of the firing before. Here answers are solutions, as a multiset:
ISTREAM gives those that are there more often than before, DSTREAM those that are there less often, RSTREAM all. Each is
then instantiated to one message, by the template that every CONSTRUCT of this package has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import pyoxigraph as ox

from construct_messages.continuous.predicates import predicates_of
from construct_messages.continuous.timestamps import FUNCTION, timestamp
from construct_messages.labels import Labels
from construct_messages.message import Message, of_distinct
from construct_messages.query.continuous.values import ContinuousQuery, Operator
from construct_messages.query.full_names import names_in_full
from construct_messages.query.rewrite import ConstructQuery, query_form
from construct_messages.results.tsv import TsvDecoder
from construct_messages.rows import row_message
from construct_messages.sources import REWRITTEN
from construct_messages.sources.evaluators.evaluation import explain
from construct_messages.terms import Term, has_blank, map_blanks

Solution: TypeAlias = tuple[Term, ...]
Instantiate: TypeAlias = Callable[[Sequence[Solution], int], Iterator[Message]]


class Evaluation:
    """A query to ask of a store again and again.

    Args:
        query: its SPARQL.
        labels: make those of the blank nodes of templates.
        made: the scope (see `terms.blank`) of labels of blank nodes that the query itself makes, as BNODE() does.

    Attributes:
        variables: the names of the values of a solution.
        predicates: see `predicates_of`.
        instantiate: the messages of solutions; the number is that of the first of them among all.

    Raises:
        QueryError: the query is not legal.
    """

    def __init__(self, query: ContinuousQuery, labels: Labels, made: str) -> None:
        self._own, self._made = f"_:{labels.prefix}_", f"_:{made}"
        if query_form(query.query) == "CONSTRUCT":
            parsed = ConstructQuery.parse(query.query)
            template = parsed.template.labelled(labels)
            self._text = names_in_full(parsed.select)
            self.variables: tuple[str, ...] = template.variables

            def instantiate(solutions: Sequence[Solution], first: int) -> Iterator[Message]:
                columns = [list(column) for column in zip(*solutions, strict=True)]
                return map(of_distinct, template.instantiate_all(columns, first)) if columns else iter(())

            self.instantiate: Instantiate = instantiate
        else:
            self._text, self.variables = names_in_full(query.query), ()
            self.variables = tuple(variable.value for variable in self._ask(ox.Store()).variables)
            self.instantiate = lambda solutions, first: (
                row_message(self.variables, solution, labels, number)
                for number, solution in enumerate(solutions, first)
            )
        self._ask(ox.Store())  # for its errors
        self.predicates = predicates_of(self._text)

    def solutions(self, store: ox.Store) -> list[Solution]:
        """The solutions, in the order of the engine.

        Raises:
            QueryError: the engine refuses the query.
            SourceError: the evaluation failed.
        """
        result = self._ask(store)
        try:
            if not self.variables:
                return [() for _ in result]
            data = result.serialize(format=ox.QueryResultsFormat.TSV)
        except (OSError, RuntimeError) as error:
            raise explain(error, self._text, REWRITTEN) from error
        assert data is not None
        decoder = TsvDecoder(self.variables, scope="")
        solutions = [solution for batch in decoder.feed(data) for solution in batch]
        decoder.close()
        return list(map(self._labelled, solutions)) if b"_:" in data else solutions

    def _ask(self, store: ox.Store) -> ox.QuerySolutions:
        try:
            result = store.query(self._text, custom_functions={FUNCTION: partial(timestamp, store)})
        except (SyntaxError, OSError, RuntimeError) as error:
            raise explain(error, self._text, REWRITTEN) from error
        assert isinstance(result, ox.QuerySolutions)
        return result

    def key(self, solution: Solution) -> Solution:
        """Returns a key by which solutions are compared: their terms; nodes that the query creates by place."""
        if not any(self._made in term for term in solution):
            return solution
        names: dict[Term, Term] = {}

        def name(node: Term) -> Term:
            return names.setdefault(node, Term(f"_:{len(names)}")) if node.startswith(self._made) else node

        return tuple(map_blanks(term, name) if has_blank(term) else term for term in solution)

    def _labelled(self, solution: Solution) -> Solution:
        return tuple(map_blanks(term, self._label) if has_blank(term) else term for term in solution)

    def _label(self, node: Term) -> Term:
        return node if node.startswith(self._own) else Term(self._made + node[2:])


def given_out(
    operator: Operator, new: Sequence[Solution], old: Sequence[Solution], key: Callable[[Solution], Solution]
) -> list[Solution]:
    """The solutions of a firing that are given out, in their order; of equal ones the last.

    Args:
        operator: which.
        new: the solutions of the firing.
        old: those of the firing before.
        key: what is equal of two solutions that are.

    >>> given_out(Operator.ISTREAM, [("1",), ("1",), ("2",)], [("1",), ("3",)], tuple)
    [('1',), ('2',)]
    >>> given_out(Operator.DSTREAM, [("1",), ("1",), ("2",)], [("1",), ("3",)], tuple)
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
