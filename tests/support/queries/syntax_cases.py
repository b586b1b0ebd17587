"""The W3C's syntax tests of queries, and those of its evaluation tests: which texts are SPARQL, which are not.

SPARQL 1.0, 1.1 and 1.2. Tests of updates are left out: the package reads queries only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyoxigraph as ox

from tests.support.places import shared_path

_MF: Final = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT: Final = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_LEGAL: Final = {
    **{_MF + name: True for name in ("PositiveSyntaxTest", "PositiveSyntaxTest11")},
    **{_MF + name: False for name in ("NegativeSyntaxTest", "NegativeSyntaxTest11")},
    **{_MF + name: True for name in ("QueryEvaluationTest", "CSVResultFormatTest")},
}


class SyntaxCase(NamedTuple):
    """One test.

    Args:
        name: `suite/folder/name`, unique.
        query: its file.
        legal: whether it is SPARQL.
    """

    name: str
    query: Path
    legal: bool

    @property
    def text(self) -> str:
        return self.query.read_bytes().decode("utf-8")  # line ends as they are


def syntax_cases() -> list[SyntaxCase]:
    """The tests in the order of their names; skips the test where the suites are absent."""
    root = shared_path("suites/w3c/sparql")
    return sorted(
        {
            case.name: case
            for manifest in sorted(root.glob("sparql1[012]/*/manifest.ttl"))
            for case in _of_manifest(manifest)
        }.values()
    )


def _of_manifest(manifest: Path) -> Iterator[SyntaxCase]:
    base = "http://example.org/"
    store = ox.Store()
    store.bulk_load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=base)

    def values(subject: ox.NamedNode | ox.BlankNode, name: str) -> list[object]:
        return [quad.object for quad in store.quads_for_pattern(subject, ox.NamedNode(name), None)]

    listed = list(store.quads_for_pattern(None, ox.NamedNode(_MF + "entries"), None))
    rest: object = listed[0].object if listed else None
    while isinstance(rest, ox.BlankNode):  # a test that is not in the list has been withdrawn
        (test,) = values(rest, _RDF + "first")
        (rest,) = values(rest, _RDF + "rest")
        assert isinstance(test, ox.NamedNode)
        kinds = {
            kind.value for kind in values(test, _RDF + "type") if isinstance(kind, ox.NamedNode)
        }
        legal = {_LEGAL[kind] for kind in kinds & _LEGAL.keys()}
        if not legal:
            continue
        (action,) = values(test, _MF + "action")
        if isinstance(action, ox.BlankNode):
            (action,) = values(action, _QT + "query")
        assert isinstance(action, ox.NamedNode)
        path = manifest.parent / action.value.removeprefix(base)
        if path.suffix == ".rq":
            name = test.value.rpartition("#")[2]
            yield SyntaxCase(
                f"{manifest.parent.parent.name}/{manifest.parent.name}/{name}", path, legal.pop()
            )
