"""Rows as messages: a solution of SELECT in the vocabulary of SPARQL's own test suites.

`http://www.w3.org/2001/sw/DataAccess/tests/result-set#`: each message is a result set of one solution, which names all
its variables, so that those without a value are known, too. Templates of CONSTRUCT are in `template.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from construct_messages.rdf.errors import UsageError
from construct_messages.rdf.labels import Labels
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import RDF, Term, iri, literal

RS: Final = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"

_TYPE: Final = iri(f"{RDF}type")
_RESULT_SET: Final = iri(f"{RS}ResultSet")
_RESULT_VARIABLE: Final = iri(f"{RS}resultVariable")
_SOLUTION: Final = iri(f"{RS}solution")
_BINDING: Final = iri(f"{RS}binding")
_VARIABLE: Final = iri(f"{RS}variable")
_VALUE: Final = iri(f"{RS}value")


def row_message(
    variables: Sequence[str], solution: Sequence[Term], labels: Labels, number: int | str
) -> Message:
    """The message of one row. `solution`: a term for each of them; the empty string is unbound. `number`: of the
    solution, or its replacement: rows with the same number share their blank nodes.

    >>> for quad in row_message(("s", "o"), (Term("<urn:a>"), Term("")), Labels("x"), 7):
    ...     print(str(quad).replace(RS, "rs:"))
    _:x_t7b0 <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <rs:ResultSet> .
    _:x_t7b0 <rs:resultVariable> "s" .
    _:x_t7b0 <rs:resultVariable> "o" .
    _:x_t7b0 <rs:solution> _:x_t7b1 .
    _:x_t7b1 <rs:binding> _:x_t7b2 .
    _:x_t7b2 <rs:variable> "s" .
    _:x_t7b2 <rs:value> <urn:a> .
    """
    if len(variables) != len(solution):
        raise UsageError(f"{len(solution)} terms are no row of {len(variables)} variables")
    return Message(_quads([literal(name) for name in variables], solution, labels, number))


def _quads(
    names: Sequence[Term], solution: Sequence[Term], labels: Labels, number: int | str
) -> Iterator[Quad]:
    result_set, row = labels.of_template(number, 0), labels.of_template(number, 1)
    yield Quad(result_set, _TYPE, _RESULT_SET)
    for name in names:
        yield Quad(result_set, _RESULT_VARIABLE, name)
    yield Quad(result_set, _SOLUTION, row)
    for index, (name, term) in enumerate(zip(names, solution, strict=True), 2):
        if term:
            binding = labels.of_template(number, index)
            yield Quad(row, _BINDING, binding)
            yield Quad(binding, _VARIABLE, name)
            yield Quad(binding, _VALUE, term)
