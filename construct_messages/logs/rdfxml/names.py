"""Names of elements and attributes: converts expat's names to IRIs, and sorts attributes by their function.

RDF 1.2 XML Syntax, sections 5.1.2, 5.1.4 and 6.2.2 to 6.2.7. `productions.py` defines the meaning of attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, NoReturn

from construct_messages.logs.rdfxml.canonical import SEPARATOR
from construct_messages.rdf.terms import RDF

_XML: Final = "http://www.w3.org/XML/1998/namespace"
_ITS: Final = "http://www.w3.org/2005/11/its"
XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"

# Attributes that make no statement; IRIs contain no separator
_RESERVED, BASE, LANGUAGE, DIRECTION, VERSION = (
    f"{SEPARATOR}{name}" for name in ("", "base", "lang", "dir", "version")
)
_CONTEXT: Final = {
    (_XML, "base"): BASE,
    (_XML, "lang"): LANGUAGE,
    (_ITS, "dir"): DIRECTION,
    (_ITS, "version"): _RESERVED,
    (RDF, "version"): VERSION,
}

# section 6.2.2 to 6.2.7, by local name
CORE: Final = frozenset(
    (
        "RDF",
        "ID",
        "about",
        "annotation",
        "annotationNodeID",
        "parseType",
        "resource",
        "nodeID",
        "datatype",
        "version",
    )
)
OLD: Final = frozenset(("aboutEach", "aboutEachPrefix", "bagID"))
_UNQUALIFIED: Final = frozenset(("ID", "about", "parseType", "resource", "type", "version"))
"""Attributes without a namespace that are read as those of RDF (section 5.1.4)."""

_MOST_NAMES: Final = 1 << 12


class Attributes(NamedTuple):
    """The attributes of an element: those of its context, those of the syntax by local name, and properties."""

    context: dict[str, str]
    syntax: dict[str, str]
    properties: list[tuple[str, str]]


NONE: Final = Attributes({}, {}, [])


class Names:
    """Reads the names of one document.

    Args:
        fail: called with an error message; raises.
    """

    def __init__(self, fail: Callable[[str], NoReturn]) -> None:
        self._fail = fail
        self._elements: dict[str, str] = {}
        self._attributes: dict[str, str] = {}

    def element(self, name: str) -> str:
        """The IRI of an element."""
        return self._elements.get(name) or self._name_of_element(name)

    def attributes(self, attributes: Mapping[str, str]) -> Attributes:
        """The attributes of one element, by their function."""
        context: dict[str, str] = {}
        syntax: dict[str, str] = {}
        properties: list[tuple[str, str]] = []
        for key, value in attributes.items():
            name = self._attributes.get(key) or self._name_of_attribute(key)
            if name.startswith(SEPARATOR):
                context[name] = value
            elif name.startswith(RDF) and (local := name[len(RDF) :]) in CORE:
                if local in syntax:
                    self._fail(f"{local} and rdf:{local} on one element")
                syntax[local] = value
            else:
                properties.append((name, value))
        return Attributes(context, syntax, properties)

    def _name_of_element(self, name: str) -> str:
        namespace, *rest = name.split(SEPARATOR)
        if not rest:
            self._fail(
                f"the element {shortened(name)} is in no namespace: declare its prefix, or a default one"
            )
        local, *prefix = rest
        if prefix and prefix[0].lower().startswith("xml"):
            self._fail(f"the element {prefix[0]}:{local}: names that begin with xml are reserved")
        return self._remember(self._elements, name, namespace + local)

    def _name_of_attribute(self, name: str) -> str:
        """The IRI of an attribute; for attributes that make no statement, one of `BASE`, `LANGUAGE` … instead."""
        namespace, *rest = name.split(SEPARATOR)
        if not rest:
            if name.lower().startswith("xml"):
                return self._remember(self._attributes, name, _RESERVED)
            if name not in _UNQUALIFIED:
                self._fail(
                    f"the attribute {shortened(name)} is in no namespace: declare a prefix, and write it"
                )
            namespace, local, prefix = RDF, name, []
        else:
            local, *prefix = rest
        if (namespace, local) in _CONTEXT:
            read = _CONTEXT[namespace, local]
        elif namespace == _XML or (prefix and prefix[0].lower().startswith("xml")):
            read = _RESERVED
        elif namespace == RDF and local in OLD:
            self._fail(f"rdf:{local} was withdrawn from RDF/XML: leave it out")
        elif namespace == RDF and local in ("Description", "li"):
            self._fail(f"rdf:{local} is an element, not an attribute")
        else:
            read = namespace + local
        return self._remember(self._attributes, name, read)

    def _remember(self, names: dict[str, str], name: str, read: str) -> str:
        if len(names) >= _MOST_NAMES:
            names.clear()
        names[name] = read
        return read


def shortened(text: str) -> str:
    """The beginning of a text, for an error message."""
    return text if len(text) <= 60 else f"{text[:60]}…"
