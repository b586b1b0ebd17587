"""Converts terms of pyoxigraph and rdflib to terms, and back, for the public interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pyoxigraph as ox

from construct_messages.errors import TermError, UsageError
from construct_messages.rdf.arguments import wrong_type
from construct_messages.rdf.terms.canonical import Term, blank, iri, literal, triple
from construct_messages.rdf.terms.parsing import (
    TERM_HINT,
    is_blank,
    is_literal,
    is_triple,
    literal_parts,
    triple_parts,
)
from construct_messages.rdf.terms.wellformed import Lenience

if TYPE_CHECKING:
    import rdflib


# --- quads ----------------------------------------------------------------------------------------
# Quads as rows of four terms: in a flat sequence, by a pattern, and from and to pyoxigraph and rdflib.
#
# `libraries.py` has the terms of these libraries.

Row: TypeAlias = tuple[Term, Term, Term, Term | None]
"""Subject, predicate, object, and graph; None is the default graph."""

R = TypeVar("R", bound=Row)

_PARTS: Final = ("subject", "predicate", "object", "graph")


def rows_in(terms: Iterable[Term | None]) -> Iterator[tuple[Term | None, ...]]:
    """The rows of a flat sequence of terms: subject, predicate, object, graph, subject …

    >>> list(rows_in([Term("<urn:s>"), Term("<urn:p>"), Term("<urn:o>"), None]))
    [('<urn:s>', '<urn:p>', '<urn:o>', None)]
    """
    row = iter(terms)
    return zip(row, row, row, row, strict=True)


def check_terms(row: Row) -> None:
    for name, term in zip(_PARTS, row, strict=True):
        if not isinstance(term, str) and not (name == "graph" and term is None):
            hint = "make terms by iri(), literal(), blank() and triple()"
            raise wrong_type("Quad", name, term, "a Term", hint)


def matching(
    rows: Iterable[R], subject: Term | None, predicate: Term | None, object: Term | None
) -> Iterator[R]:
    """Returns the rows with a subject, a predicate and an object; None matches any.

    >>> list(matching([(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), None)], None, Term("<urn:q>"), None))
    []
    """
    for term in (subject, predicate, object):
        if term is not None and not term.startswith(("<", '"', "_:")):
            raise UsageError(
                f"{term!r} is no term", hint="make it by iri(…), literal(…) or blank(…)"
            )
    for row in rows:
        if subject in (None, row[0]) and predicate in (None, row[1]) and object in (None, row[2]):
            yield row


def html_table(rows: Sequence[Row]) -> str:
    """The table of rows in HTML; without rows, nothing.

    >>> html_table([(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), None)])
    '<table><tr><td>&lt;urn:s&gt;</td><td>&lt;urn:p&gt;</td><td>&quot;o&quot;</td><td></td></tr></table>'
    """
    from html import escape

    lines = (
        "".join(f"<td>{'' if term is None else escape(term)}</td>" for term in row) for row in rows
    )
    return f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>" if rows else ""


def row_of_pyoxigraph(quad: ox.Quad | ox.Triple) -> Row:
    """The terms of pyoxigraph's quad or triple.

    >>> row_of_pyoxigraph(ox.Triple(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal("o")))
    ('<urn:s>', '<urn:p>', '"o"', None)
    """
    if not isinstance(quad, ox.Quad | ox.Triple):
        raise wrong_type(
            "from_pyoxigraph",
            "quads",
            quad,
            "an iterable of pyoxigraph's quads",
            "see pyoxigraph.parse",
        )
    graph = quad.graph_name if isinstance(quad, ox.Quad) else ox.DefaultGraph()
    return (
        from_pyoxigraph(quad.subject),
        from_pyoxigraph(quad.predicate),
        from_pyoxigraph(quad.object),
        None if isinstance(graph, ox.DefaultGraph) else from_pyoxigraph(graph),
    )


def pyoxigraph_quad(row: Row) -> ox.Quad:
    """The quad of pyoxigraph for a row.

    >>> pyoxigraph_quad((Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), None)).object
    <Literal value=o datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>
    """
    subject, predicate, object, graph = row
    try:
        # pyoxigraph checks the kinds of the parts itself
        return ox.Quad(
            to_pyoxigraph(subject),  # type: ignore[arg-type]
            to_pyoxigraph(predicate),  # type: ignore[arg-type]
            to_pyoxigraph(object),
            ox.DefaultGraph() if graph is None else to_pyoxigraph(graph),  # type: ignore[arg-type]
        )
    except TypeError as error:
        shown = " ".join(term for term in row if term is not None)
        raise TermError(
            f"{shown} . is no quad of RDF: {error}", hint="literals and triple terms are objects"
        ) from error


def rows_of_rdflib(graph: rdflib.Graph) -> Iterator[Row]:
    """The rows of an `rdflib.Graph`, or of all graphs of an `rdflib.Dataset`, in their order.

    >>> import rdflib
    >>> list(rows_of_rdflib(rdflib.Graph().parse(data="<urn:s> <urn:p> <urn:o> .")))
    [('<urn:s>', '<urn:p>', '<urn:o>', None)]
    """
    import rdflib
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    if not isinstance(graph, rdflib.Graph):
        raise wrong_type(
            "from_rdflib",
            "graph",
            graph,
            "rdflib.Graph",
            "parse it: rdflib.Graph().parse(data=…)",
        )
    default = {None, DATASET_DEFAULT_GRAPH_ID}
    quads: Iterable[Any] = ((*triple, None) for triple in graph)
    if isinstance(graph, rdflib.ConjunctiveGraph):  # which a Dataset is
        quads = graph.quads()
        if not isinstance(graph, rdflib.Dataset):
            default.add(graph.default_context.identifier)
    for subject, predicate, object, context in quads:
        name: Any = context.identifier if isinstance(context, rdflib.Graph) else context
        yield (
            from_rdflib(subject),
            from_rdflib(predicate),
            from_rdflib(object),
            None if name in default else from_rdflib(name),
        )


def rdflib_dataset(rows: Iterable[Row]) -> rdflib.Dataset:
    """The `rdflib.Dataset` of rows.

    >>> len(rdflib_dataset([(Term("<urn:s>"), Term("<urn:p>"), Term('"o"'), None)]))
    1
    """
    import rdflib

    dataset = rdflib.Dataset()
    for *terms, name in rows:
        triple: Any = tuple(map(to_rdflib, terms))
        graph = dataset if name is None else dataset.graph(to_rdflib(name))
        graph.add(triple)
    return dataset


# --- libraries ------------------------------------------------------------------------------------

OxTerm: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


def from_pyoxigraph(term: OxTerm, scope: str = "", lenience: Lenience | None = None) -> Term:
    """Converts a pyoxigraph term, whose `str()` is canonical N-Triples already. `term`: a term that pyoxigraph has
    checked, unless it was lenient. `lenience`: for a term that was parsed leniently, which is then checked here; see
    `iri`.

    >>> from_pyoxigraph(ox.Literal(1))
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    if isinstance(term, ox.BlankNode):
        return blank(term.value, scope)
    if isinstance(term, ox.Triple):
        subject, predicate, object = (from_pyoxigraph(part, scope, lenience) for part in term)
        return triple(subject, predicate, object)
    if lenience is None:
        return Term(str(term))
    if isinstance(term, ox.NamedNode):
        return iri(term.value, lenience=lenience)
    if term.language:
        direction = term.direction and str(term.direction)
        return literal(term.value, language=term.language, direction=direction, lenience=lenience)
    return literal(term.value, datatype=term.datatype.value, lenience=lenience)


def to_pyoxigraph(term: Term) -> OxTerm:
    """Converts a term to a pyoxigraph object.

    >>> to_pyoxigraph(iri("urn:x"))
    <NamedNode value=urn:x>
    """
    if not isinstance(term, str):  # of a quad that a caller made
        raise TermError(f"{term!r} is no term", hint=TERM_HINT)
    try:
        if is_blank(term):
            return ox.BlankNode(term[2:])
        if is_literal(term):
            value, datatype, language, direction = literal_parts(term)
            if language:
                return ox.Literal(
                    value,
                    language=language,
                    direction=ox.BaseDirection(direction) if direction else None,
                )
            return ox.Literal(value, datatype=ox.NamedNode(datatype) if datatype else None)
        if is_triple(term):
            subject, predicate, object = (to_pyoxigraph(part) for part in triple_parts(term))
            # pyoxigraph checks the kinds of the parts itself
            return ox.Triple(subject, predicate, object)  # type: ignore[arg-type]
        return ox.NamedNode(_iri_of(term))
    except TermError:
        raise
    except (ValueError, TypeError) as error:
        raise TermError(f"{term} is no term for pyoxigraph: {error}", hint=TERM_HINT) from error


def _iri_of(term: Term) -> str:
    if not (term.startswith("<") and term.endswith(">")):
        raise TermError(f"{term!r} is not an RDF term", hint=TERM_HINT)
    return term[1:-1]


def from_rdflib(term: Any, scope: str = "", lenience: Lenience | None = None) -> Term:
    """Converts an rdflib term; `scope` and `lenience` as for `parse_term`.

    >>> import rdflib
    >>> from_rdflib(rdflib.Literal("chat", lang="fr"))
    '"chat"@fr'
    """
    import rdflib

    if isinstance(term, rdflib.URIRef):
        return iri(str(term), encode=True, lenience=lenience)
    if isinstance(term, rdflib.Literal):
        datatype = str(term.datatype) if term.datatype else None
        return literal(str(term), datatype=datatype, language=term.language, lenience=lenience)
    if isinstance(term, rdflib.BNode):
        return blank(str(term), scope)
    raise TermError(f"rdflib's {type(term).__name__} {term!r} is not an RDF term")


def to_rdflib(term: Term) -> Any:
    """Converts a term to an rdflib object (`rdflib.term.Identifier`).

    >>> to_rdflib(Term('"7"^^<http://www.w3.org/2001/XMLSchema#integer>'))
    rdflib.term.Literal('7', datatype=rdflib.term.URIRef('http://www.w3.org/2001/XMLSchema#integer'))
    """
    import rdflib

    if is_blank(term):
        return rdflib.BNode(term[2:])
    if is_literal(term):
        value, datatype, language, direction = literal_parts(term)
        if direction:
            raise TermError(
                f"rdflib has no literals with a base direction: {term}", hint="use to_pyoxigraph()"
            )
        # normalize=False: rdflib would rewrite "01" to "1"
        return rdflib.Literal(
            value,
            lang=language,
            datatype=rdflib.URIRef(datatype) if datatype else None,
            normalize=False,
        )
    if is_triple(term):
        raise TermError(f"rdflib has no triple terms: {term}", hint="use to_pyoxigraph()")
    return rdflib.URIRef(_iri_of(term))
