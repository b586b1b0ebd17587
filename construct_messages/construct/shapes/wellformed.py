"""Rejects shapes graphs that are not well-formed, with the position and the fix, before any message is read.

SHACL, appendix A (syntax rules), and errors that a processor would silently ignore: misspelt properties of SHACL,
shapes that are not defined, and graphs without a target. The library checks patterns and queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Final

from construct_messages.construct.shapes.graph import (
    NIL,
    RDFS,
    TYPE,
    ShapesGraph,
    Triple,
    local,
    sh,
    shown,
)
from construct_messages.rdf.errors import ShapesError
from construct_messages.rdf.terms import XSD, Term, is_blank, is_literal, literal_parts


def _is_iri(term: Term) -> bool:
    return term.startswith("<") and not term.startswith("<<")


def _is_node(term: Term) -> bool:
    return _is_iri(term) or is_blank(term)


def _is_count(term: Term) -> bool:
    return is_literal(term) and term.endswith(f"^^<{XSD}integer>") and term[1] in "+0123456789"


def _is_boolean(term: Term) -> bool:
    return is_literal(term) and term.endswith(f"^^<{XSD}boolean>") and term[1] in "tf01"


def _is_string(term: Term) -> bool:
    return is_literal(term) and literal_parts(term)[1:3] == (None, None)


def _is_text(term: Term) -> bool:
    return is_literal(term) and literal_parts(term)[1] in (None, f"{RDFS}langString")


_COUNT: Final = ("a whole number from 0, such as 1", _is_count)
_BOOLEAN: Final = ("true or false", _is_boolean)
_IRI: Final = ("an IRI", _is_iri)
_NODE: Final = ("an IRI or a blank node", _is_node)
_STRING: Final = ('a string, such as "^[a-z]+$"', _is_string)
_TEXT: Final = ('a text, such as "the name is missing"@en', _is_text)
_LITERAL: Final = ("a literal, such as 0", is_literal)
_ANY: Final[tuple[str, Callable[[Term], bool]]] = ("anything", lambda _: True)

_KINDS: Final[Mapping[str, tuple[str, Callable[[Term], bool]]]] = {
    "qualifiedMinCount qualifiedMaxCount": _COUNT,
    "uniqueLang qualifiedValueShapesDisjoint uniqueMembers singleLine reificationRequired": _BOOLEAN,
    "targetClass targetSubjectsOf targetObjectsOf severity rootClass": _IRI,
    "property node not qualifiedValueShape memberShape someValue reifierShape and or xone class": _NODE,
    "ignoredProperties path datatype": _NODE,
    "alternativePath inversePath zeroOrMorePath oneOrMorePath zeroOrOnePath": _NODE,
    "pattern flags": _STRING,
    "message": _TEXT,
    "minInclusive maxInclusive minExclusive maxExclusive": _LITERAL,
    # the library checks these
    "minCount maxCount minLength maxLength minListLength maxListLength in languageIn": _ANY,
    "equals disjoint lessThan lessThanOrEquals": _ANY,
    "closed deactivated nodeKind hasValue targetNode target targetWhere subsetOf uniqueValuesFor entailment": _ANY,
    "sparql select ask prefixes declare prefix namespace parameter optional labelTemplate": _ANY,
    "validator nodeValidator propertyValidator expression nodeByExpression": _ANY,
    "nodes this filterShape union intersection exists if then else count distinct limit offset orderBy desc": _ANY,
    "min max sum concat sparqlExpr shape": _ANY,
    # not used in validation
    "name description order group defaultValue values rule condition subject predicate object construct": _ANY,
    "shapesGraph suggestedShapesGraph detail conformanceDisallows returnType": _ANY,
    "annotationProperty annotationValue annotationVarName resultAnnotation": _ANY,
    "editor viewer unit codeIdentifier agentInstruction intent": _ANY,
}
_VALUES: Final = {name: kind for names, kind in _KINDS.items() for name in names.split()}
"""The properties of SHACL: the description of their values, and a check."""

_UNSUPPORTED: Final = frozenset({"js", "jsLibrary", "jsLibraryURL", "jsFunctionName"})
_ONCE: Final = frozenset(
    (
        *("minCount", "maxCount", "minLength", "maxLength", "datatype", "nodeKind"),
        *("pattern", "flags", "closed", "uniqueLang", "languageIn", "in", "path"),
        *("minInclusive", "maxInclusive", "minExclusive", "maxExclusive", "deactivated"),
        *("severity", "qualifiedMinCount", "qualifiedMaxCount", "ignoredProperties"),
    )
)
# the library checks the other lists
_LISTS: Final = frozenset({"and", "or", "xone", "ignoredProperties"})
_ON_PATHS: Final = frozenset(
    {"minCount", "maxCount", "uniqueLang", "lessThan", "lessThanOrEquals", "qualifiedValueShape"}
)
_PATHS: Final = (
    "inversePath",
    "alternativePath",
    "zeroOrMorePath",
    "oneOrMorePath",
    "zeroOrOnePath",
)


def check_graph(graph: ShapesGraph) -> None:
    """Rejects a shapes graph that is not well-formed, or has no target."""
    shapes = graph.shapes()
    for triple in graph:
        name = local(triple[1])
        if name is not None and not shapes.isdisjoint(graph.above(triple[0])):
            _check_value(graph, triple, name)
    for node in shapes:
        _check_shape(graph, node)
    if not any(_has_target(graph, node) for node in shapes):
        raise ShapesError(
            f"{', '.join(graph.files)}: no shape has a target, so nothing would be checked",
            hint="add sh:targetClass, sh:targetNode, sh:targetSubjectsOf or sh:targetObjectsOf to a shape",
        )


def refused(graph: ShapesGraph, triple: Triple, reason: str, hint: str) -> ShapesError:
    """Returns the error of a triple: its file, its position and the shape that it is part of."""
    file, position = graph.position(triple)
    name = graph.named(triple[0])
    shape = "" if name is None else f"shape {name}: "
    return ShapesError(f"{file}: {shape}{reason}", position=position, hint=hint)


def _check_value(graph: ShapesGraph, triple: Triple, name: str) -> None:
    subject, predicate, object = triple
    if name in _UNSUPPORTED:
        raise refused(
            graph,
            triple,
            f"sh:{name} is not supported",
            "write the constraint with sh:sparql, or leave it out",
        )
    if name not in _VALUES:
        close = get_close_matches(name, _VALUES, 1, 0.7)
        raise refused(
            graph,
            triple,
            f"sh:{name} is not a known property of SHACL",
            f"write sh:{close[0]}" if close else "see the properties in the reference of shapes",
        )
    wanted, fits = _VALUES[name]
    if name in ("closed", "deactivated") and not is_blank(object) and object != sh("ByTypes"):
        wanted, fits = _BOOLEAN
    if not fits(object):
        raise refused(graph, triple, f"sh:{name} is {shown(object)}", f"write {wanted}")
    values = graph.objects[subject][predicate]
    if name in _ONCE and len(values) > 1:
        raise refused(
            graph,
            (subject, predicate, values[1]),
            f"it has {len(values)} values of sh:{name}: {', '.join(map(shown, values))}",
            "keep one; write alternatives with sh:or",
        )
    if name in _LISTS and graph.members(object) is None:
        raise refused(
            graph,
            triple,
            f"sh:{name} is not a list",
            f"write the values in parentheses: sh:{name} (…)",
        )
    if name in ("property", "node", "not", "qualifiedValueShape"):
        _check_defined(graph, triple, object)
    if name == "property" and sh("path") not in graph.objects[object]:
        raise refused(graph, triple, "a property shape has no sh:path", "add sh:path to it")
    for member in graph.members(object) or () if name in ("and", "or", "xone") else ():
        _check_defined(graph, triple, member)
    if name == "path":
        _check_path(graph, triple, object)


def _check_defined(graph: ShapesGraph, triple: Triple, shape: Term) -> None:
    if not _is_node(shape):
        raise refused(
            graph,
            triple,
            f"{shown(shape)} is not a shape",
            "name a shape by its IRI, or write it in […]",
        )
    if shape not in graph.objects and _is_iri(shape):
        raise refused(
            graph,
            triple,
            f"the shape {shape} is not defined",
            "correct its name, or pass the file that defines it as another --shapes",
        )


def _check_shape(graph: ShapesGraph, node: Term) -> None:
    properties = graph.objects.get(node, {})
    is_property = sh("PropertyShape") in properties.get(TYPE, ())
    has_path = sh("path") in properties
    for name in _ON_PATHS if not has_path else ():
        for object in properties.get(sh(name), ()):
            raise refused(
                graph,
                (node, sh(name), object),
                f"sh:{name} needs an sh:path in the same shape",
                "write it in sh:property [ sh:path …; … ]",
            )
    if is_property and not has_path:
        raise refused(
            graph,
            (node, TYPE, sh("PropertyShape")),
            "the property shape has no sh:path",
            "add sh:path",
        )
    if has_path and sh("NodeShape") in properties.get(TYPE, ()):
        raise refused(
            graph,
            (node, TYPE, sh("NodeShape")),
            "a node shape has no sh:path",
            "type it sh:PropertyShape",
        )


def _check_path(graph: ShapesGraph, triple: Triple, path: Term) -> None:
    """Refuses the paths that the library reads as others: an empty list, and a node with several kinds of path."""
    count = sum(len(graph.objects[path][sh(name)]) for name in _PATHS) if is_blank(path) else 1
    if path == NIL or count > 1:
        hint = "write a property, (first second), [ sh:inversePath … ], [ sh:alternativePath (…) ] or the like"
        found = "an empty list" if path == NIL else f"{count} paths in one node"
        raise refused(graph, triple, f"sh:path is {found}", hint)


def _has_target(graph: ShapesGraph, node: Term) -> bool:
    properties = graph.objects.get(node, {})
    types = properties.get(TYPE, ())
    is_class = any(
        kind in (f"<{RDFS}Class>", "<http://www.w3.org/2002/07/owl#Class>", sh("ShapeClass"))
        for kind in types
    )
    return is_class or any(
        (local(predicate) or "").startswith("target") for predicate in properties
    )
