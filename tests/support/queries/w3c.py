"""The W3C's query evaluation tests: what they ask, what they expect, and when an answer is right.

An answer is right if it holds the same solutions the same number of times, up to the labels of blank nodes, in the
same order where the test gives one. Numbers are compared as canonical lexical forms of the same datatype (`1.0` and
`1.00` are one xsd:decimal), since SPARQL says which value an operation has, not how it is written; all other
terms are compared as they stand.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pyoxigraph as ox

from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.terms import Term, from_pyoxigraph, iri, literal, literal_parts

SUITES: Final = ("sparql10", "sparql11")
LEFT_OUT: Final = {
    "entailment": "asks for an entailment regime",
    "service": "asks for other endpoints",
}

BASE: Final = "http://example.org/w3c/"
_MF: Final = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT: Final = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RS: Final = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_KINDS: Final = {_MF + "QueryEvaluationTest", _MF + "CSVResultFormatTest"}
_FORMATS: Final = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".nt": ox.RdfFormat.N_TRIPLES,
}
_RESULTS: Final = {
    ".srx": ox.QueryResultsFormat.XML,
    ".srj": ox.QueryResultsFormat.JSON,
    ".tsv": ox.QueryResultsFormat.TSV,
}

Solution: TypeAlias = tuple[Term, ...]
"""A value per variable; the empty string is unbound."""


class Case(NamedTuple):
    """One test.

    Args:
        name: `suite/folder/name`, unique.
        query: its file.
        data: the files of the default graph.
        named: the files of the named graphs, each named by its IRI.
        result: the file of the expected result.
        lax: whether each solution may come fewer times, but once (REDUCED).
    """

    name: str
    query: Path
    data: tuple[Path, ...]
    named: tuple[Path, ...]
    result: Path
    lax: bool

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def text(self) -> str:
        return self.query.read_text(encoding="utf-8")

    @property
    def base(self) -> str:
        return _iri_of(self.query)

    @property
    def _from(self) -> frozenset[Path]:
        """Files that FROM and FROM NAMED mention, where the test itself gives no data."""
        if self.data or self.named:
            return frozenset()
        found = re.findall(r"FROM\s+(?:NAMED\s+)?<([^>]*)>", self.text, re.IGNORECASE)
        return frozenset(self.query.parent / name for name in found)

    def quads(self) -> list[Quad]:
        """The dataset; files that the query itself mentions are named graphs."""
        quads = [quad for path in self.data for quad in _read(path, None)]
        for path in sorted({*self.named, *self._from}):
            quads += _read(path, iri(_iri_of(path)))
        return quads


@dataclass(frozen=True)
class Answer:
    """What a query gives: solutions, truth, or triples.

    Args:
        variables: the names, in order; none for ASK and CONSTRUCT.
        solutions: for SELECT.
        truth: for ASK.
        triples: for CONSTRUCT.
        ordered: whether the order of the solutions counts.
        typed: whether terms are told apart by kind and datatype (CSV does not).
    """

    variables: tuple[str, ...] = ()
    solutions: tuple[Solution, ...] | None = None
    truth: bool | None = None
    triples: frozenset[Quad] | None = None
    ordered: bool = False
    typed: bool = True


# --- manifests ----------------------------------------------------------------------------------------------------


def cases(root: Path) -> list[Case]:
    """The tests below a folder that holds `SUITES`, in the order of their names."""
    found = [
        case
        for suite in SUITES
        for manifest in sorted((root / suite).glob("*/manifest.ttl"))
        if manifest.parent.name not in LEFT_OUT
        for case in _of_manifest(suite, manifest)
    ]
    return sorted(found)


def _of_manifest(suite: str, manifest: Path) -> Iterator[Case]:
    store = ox.Store()
    store.bulk_load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=_iri_of(manifest))

    def values(
        subject: ox.NamedNode | ox.BlankNode, name: str
    ) -> list[ox.NamedNode | ox.BlankNode | ox.Literal]:
        return [quad.object for quad in store.quads_for_pattern(subject, ox.NamedNode(name), None)]  # type: ignore[misc]  # no triple terms here

    def path(node: object) -> Path:
        assert isinstance(node, ox.NamedNode)
        return manifest.parent / node.value.removeprefix(_iri_of(manifest.parent) + "/")

    rest = next(
        (
            quad.object
            for quad in store.quads_for_pattern(None, ox.NamedNode(_MF + "entries"), None)
        ),
        None,
    )
    while isinstance(
        rest, ox.BlankNode
    ):  # a test that is described but not in the list has been withdrawn
        (test,) = values(rest, _RDF + "first")
        (rest,) = values(rest, _RDF + "rest")
        assert isinstance(test, ox.NamedNode)
        if not _KINDS.isdisjoint(kind.value for kind in values(test, _RDF + "type")):
            (action,) = values(test, _MF + "action")
            assert isinstance(action, ox.BlankNode)
            (query,) = values(action, _QT + "query")
            yield Case(
                name=f"{suite}/{manifest.parent.name}/{test.value.rpartition('#')[2]}",
                query=path(query),
                data=tuple(sorted(path(node) for node in values(action, _QT + "data"))),
                named=tuple(sorted(path(node) for node in values(action, _QT + "graphData"))),
                result=path(*values(test, _MF + "result")),
                lax=bool(values(test, _MF + "resultCardinality")),
            )


def _iri_of(path: Path) -> str:
    """Where the suites' files would be found, whatever folder they lie in."""
    index = max(path.parts.index(suite) for suite in SUITES if suite in path.parts)
    return BASE + "/".join(path.parts[index:])


def _read(path: Path, graph: Term | None) -> list[Quad]:
    parsed = ox.parse(
        path=str(path),
        format=_FORMATS[path.suffix],
        base_iri=_iri_of(path),
        rename_blank_nodes=True,
    )
    return [
        Quad(
            from_pyoxigraph(quad.subject),
            from_pyoxigraph(quad.predicate),
            from_pyoxigraph(quad.object),
            graph,
        )
        for quad in parsed
    ]


# --- expected results ---------------------------------------------------------------------------------------------


def expected(case: Case) -> Answer:
    """The result as the test gives it."""
    suffix = case.result.suffix
    if suffix == ".csv":
        with case.result.open(encoding="utf-8", newline="") as lines:
            names, *records = csv.reader(lines)
        return Answer(
            tuple(names), tuple(tuple(map(Term, record)) for record in records), typed=False
        )
    if suffix in _RESULTS:
        with case.result.open("rb") as file:
            results = ox.parse_query_results(file, format=_RESULTS[suffix])
            if isinstance(results, ox.QueryBoolean):
                return Answer(truth=bool(results))
            variables = [variable.value for variable in results.variables]
            return Answer(
                tuple(variables),
                tuple(tuple(_term(solution[name]) for name in variables) for solution in results),
                ordered=_orders(case.text),
            )
    quads = _read(case.result, None)
    is_set = Term(f"<{_RS}ResultSet>")
    if not any(quad.object == is_set for quad in quads):
        return Answer(triples=frozenset(quads))
    return _result_set(quads)


def _result_set(quads: list[Quad]) -> Answer:
    """A result in the vocabulary of result sets."""

    def values(subject: Term, name: str) -> list[Term]:
        return [
            quad.object
            for quad in quads
            if quad.subject == subject and quad.predicate == f"<{_RS}{name}>"
        ]

    (top,) = {quad.subject for quad in quads if quad.object == f"<{_RS}ResultSet>"}
    if truth := values(top, "boolean"):
        return Answer(truth=literal_parts(truth[0])[0] == "true")
    variables = tuple(sorted(literal_parts(name)[0] for name in values(top, "resultVariable")))
    found = []
    ordered = False
    for node in values(top, "solution"):
        bound = {
            literal_parts(values(binding, "variable")[0])[0]: values(binding, "value")[0]
            for binding in values(node, "binding")
        }
        index = values(node, "index")
        ordered = ordered or bool(index)
        solution = tuple(bound.get(name, Term("")) for name in variables)
        found.append((int(literal_parts(index[0])[0]) if index else 0, solution))
    found.sort(key=lambda pair: pair[0])
    return Answer(variables, tuple(solution for _, solution in found), ordered=ordered)


def _orders(text: str) -> bool:
    return re.search(r"ORDER\s+BY", text, re.IGNORECASE) is not None


def _term(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None) -> Term:
    return Term("") if term is None else from_pyoxigraph(term)


# --- the oracle ---------------------------------------------------------------------------------------------------


def ask_oxigraph(case: Case) -> Answer:
    """pyoxigraph's answer, which is over canonical literals (the store makes them so).

    Raises:
        SyntaxError: it cannot read the query.
    """
    store = ox.Store()
    store.extend(Message(case.quads()).to_pyoxigraph())
    results = store.query(case.text, base_iri=case.base)
    if isinstance(results, ox.QueryBoolean):
        return Answer(truth=bool(results))
    if isinstance(results, ox.QueryTriples):
        return Answer(
            triples=frozenset(
                Quad(
                    from_pyoxigraph(t.subject),
                    from_pyoxigraph(t.predicate),
                    from_pyoxigraph(t.object),
                    None,
                )
                for t in results
            )
        )
    variables = tuple(variable.value for variable in results.variables)
    solutions = tuple(tuple(_term(solution[name]) for name in variables) for solution in results)
    return Answer(variables, solutions, ordered=_orders(case.text))


# --- comparison ---------------------------------------------------------------------------------------------------


def agree(answer: Answer, wanted: Answer, *, lax: bool = False) -> bool:
    """Whether an answer is the wanted one, by the rule at the head of this module."""
    if wanted.truth is not None or answer.truth is not None:
        return answer.truth == wanted.truth
    if wanted.triples is not None or answer.triples is not None:
        if answer.triples is None or wanted.triples is None:
            return False
        ours, theirs = (
            [quad._replace(object=canonical(quad.object)) for quad in a]
            for a in (answer.triples, wanted.triples)
        )
        return Message(ours).isomorphic(Message(theirs))
    assert answer.solutions is not None
    assert wanted.solutions is not None
    if sorted(answer.variables) != sorted(wanted.variables):
        return False
    form: Callable[[Term], Term] = canonical if wanted.typed else _untyped
    ours = _arranged(answer, form)
    theirs = _arranged(wanted, form if wanted.typed else Term)
    if lax:
        counts, most = Counter(ours), Counter(theirs)
        return counts.keys() == most.keys() and all(
            counts[solution] <= most[solution] for solution in counts
        )
    if len(ours) != len(theirs):
        return False
    ordered = wanted.ordered and answer.ordered
    return Message(_as_quads(ours, ordered)).isomorphic(Message(_as_quads(theirs, ordered)))


def _arranged(answer: Answer, form: Callable[[Term], Term]) -> list[Solution]:
    """The solutions with their variables in the order of the names."""
    assert answer.solutions is not None
    order = sorted(range(len(answer.variables)), key=answer.variables.__getitem__)
    return [tuple(form(solution[index]) for index in order) for solution in answer.solutions]


def _as_quads(solutions: Sequence[Solution], ordered: bool) -> list[Quad]:
    """Solutions as a graph, so that blank nodes are compared by what they stand in.

    Equal solutions are one node each; without an order they get the number of their kind, so that bags are compared.
    """
    quads = []
    seen: Counter[Solution] = Counter()
    for number, solution in enumerate(solutions):
        seen[solution] += 1
        node = Term(f"_:solution{number}")
        place = number if ordered else seen[solution]
        quads.append(Quad(node, Term("<urn:place>"), literal(str(place)), None))
        for index, term in enumerate(solution):
            if term:
                quads.append(Quad(node, Term(f"<urn:value:{index}>"), term, None))
    return quads


def canonical(term: Term) -> Term:
    """A number in the canonical form of its value; any other term as it is.

    >>> canonical(Term('"01.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'))
    '"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    if not term.startswith('"'):
        return term
    text, datatype, *_ = literal_parts(term)
    if datatype is None or not datatype.startswith(_XSD):
        return term
    name = datatype.removeprefix(_XSD)
    if name == "integer" and re.fullmatch(r"[+-]?[0-9]+", text):
        return literal(str(int(text)), datatype=datatype)
    if name == "decimal" and re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text):
        plain = format(Decimal(text), "f")
        plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
        return literal("0" if plain == "-0" else plain, datatype=datatype)
    if name in ("double", "float") and re.fullmatch(
        r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text
    ):
        return literal(repr(float(text)), datatype=datatype)
    if name == "boolean" and text in ("0", "1"):
        return literal("true" if text == "1" else "false", datatype=datatype)
    return term


def _untyped(term: Term) -> Term:
    """A term as CSV writes it."""
    if term.startswith("<"):
        return Term(term[1:-1])
    return Term(literal_parts(term)[0]) if term.startswith('"') else term
