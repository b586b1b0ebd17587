"""The grammar of RDF/XML: converts events of XML to statements of N-Triples.

RDF 1.2 XML Syntax, sections 5 and 6; the productions have its names. Annotated properties, base directions and triple
terms are read as well. No XML parsing here: names are those of expat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple, NoReturn

from construct_messages.errors import TermError
from construct_messages.rdf.terms import PN_BASE, PN_CHARS, RDF, escape, resolve
from construct_messages.rdf.terms.grammar import LANGTAG, SCHEME
from construct_messages.rdf.terms.wellformed import fault_of_iri

# --- canonical ------------------------------------------------------------------------------------
# Exclusive XML Canonicalization with comments, of the content of an element, from the parser's events.
#
# RDF 1.1 XML Syntax, section 7.2.17, and Exclusive XML Canonicalization 1.0 (https://www.w3.org/TR/xml-exc-c14n/)
# with an empty list of inclusive prefixes: a namespace is only declared where it is used. `xml.etree` can write
# canonical XML, but chooses the prefix itself if a namespace has two. No RDF here.

SEPARATOR: Final = "\x01"
"""Separates the parts of a name, as expat returns it: namespace, local name, prefix. No XML has this character."""

_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"})
_ATTRIBUTE: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;"}
)
_XML: Final = "http://www.w3.org/XML/1998/namespace"


class CanonicalContent:
    """The content of an element in canonical form. `spend`: called with the number of characters of each part that is
    written.

    >>> content = CanonicalContent(lambda characters: None)
    >>> content.start("urn:x\\x01br\\x01x", {})
    >>> content.end()
    >>> content.text("a < b")
    >>> content.value()
    '<x:br xmlns:x="urn:x"></x:br>a &lt; b'
    """

    def __init__(self, spend: Callable[[int], None]) -> None:
        # the number of open elements in it
        self.depth = 0
        self._spend = spend
        self._parts: list[str] = []
        # the namespaces in scope in the output, and for each open element, its name and the namespaces it changed
        self._declared: dict[str, str] = {"": "", "xml": _XML}
        self._open: list[tuple[str, list[tuple[str, str | None]]]] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Writes a start tag. `name`: as expat returns it, with its namespace and prefix."""
        namespace, prefix, shown = _parts(name)
        used = {prefix: namespace}
        written = []
        for key, value in attributes.items():
            namespace, prefix, shown_key = _parts(key)
            if prefix:  # an attribute without a prefix is in no namespace
                used[prefix] = namespace
            written.append(
                (
                    namespace,
                    shown_key.rpartition(":")[2],
                    f' {shown_key}="{value.translate(_ATTRIBUTE)}"',
                )
            )
        changed = []
        declarations = []
        for prefix, namespace in sorted(used.items()):
            if self._declared.get(prefix) != namespace:
                changed.append((prefix, self._declared.get(prefix)))
                self._declared[prefix] = namespace
                declared = f"xmlns:{prefix}" if prefix else "xmlns"
                declarations.append(f' {declared}="{namespace.translate(_ATTRIBUTE)}"')
        self._open.append((shown, changed))
        self.depth += 1
        self._write(
            "".join(("<", shown, *declarations, *(text for *_, text in sorted(written)), ">"))
        )

    def end(self) -> None:
        shown, changed = self._open.pop()
        for prefix, before in changed:
            if before is None:
                del self._declared[prefix]
            else:
                self._declared[prefix] = before
        self.depth -= 1
        self._write(f"</{shown}>")

    def text(self, text: str) -> None:
        """Writes characters, including those of CDATA sections."""
        self._write(text.translate(_TEXT))

    def comment(self, text: str) -> None:
        self._write(f"<!--{text}-->")

    def instruction(self, target: str, text: str) -> None:
        self._write(f"<?{target} {text}?>" if text else f"<?{target}?>")

    def value(self) -> str:
        return "".join(self._parts)

    def _write(self, text: str) -> None:
        self._spend(len(text))
        self._parts.append(text)


def _parts(name: str) -> tuple[str, str, str]:
    """The namespace and prefix of a name, empty if it has none, and the qualified name."""
    namespace, *rest = name.split(SEPARATOR)
    if not rest:
        return "", "", namespace
    local, *prefix = rest
    return namespace, *((prefix[0], f"{prefix[0]}:{local}") if prefix else ("", local))


# --- names ----------------------------------------------------------------------------------------
# Names of elements and attributes: converts expat's names to IRIs, and sorts attributes by their function.
#
# RDF 1.2 XML Syntax, sections 5.1.2, 5.1.4 and 6.2.2 to 6.2.7.

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
    def __init__(self, fail: Callable[[str], NoReturn]) -> None:
        self._fail = fail
        self._elements: dict[str, str] = {}
        self._attributes: dict[str, str] = {}

    def element(self, name: str) -> str:
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


# --- productions ----------------------------------------------------------------------------------

_NO_NODES: Final = {f"{RDF}{name}" for name in CORE | OLD | {"li"}}
_NO_PROPERTIES: Final = {f"{RDF}{name}" for name in CORE | OLD | {"Description"}}

_TYPE, _LI, _XML_LITERAL = f"{RDF}type", f"{RDF}li", f"{RDF}XMLLiteral"
_NCNAME: Final = re.compile(f"[{PN_BASE}_][{PN_CHARS}.]*")
_SCHEME: Final = re.compile(SCHEME)
_LANGTAG: Final = re.compile(LANGTAG)
_NOT_IN_TAG: Final = re.compile(r"[^\w\-]")
_NOT_IN_IRIREF: Final = re.compile(r'[\x00-\x20<>"{}|^`\\]')
DEEPEST: Final = 100
"""The most nested triple terms: readers use recursion."""


class _Kind(Enum):
    """The kind of an open element, which determines its allowed content."""

    DOCUMENT = auto()
    NODES = auto()  # rdf:RDF
    NODE = auto()
    PROPERTY = auto()  # with a node or text, depending on the next event
    EMPTY = auto()
    RESOURCE = auto()
    COLLECTION = auto()
    TRIPLE = auto()
    LITERAL = auto()
    IGNORED = auto()


_HOLDS_PROPERTIES: Final = (_Kind.NODE, _Kind.RESOURCE)


class _Context(NamedTuple):
    """The state that elements inherit (section 5.1.2)."""

    base: str | None = None
    language: str = ""
    direction: str = ""
    version: str = ""


@dataclass(slots=True)
class _Element:
    """An open element."""

    kind: _Kind
    # the state from its attributes and its ancestors
    context: _Context
    # the node of a node element; the subject of a property element
    subject: str = ""
    # the predicate of a property element
    predicate: str = ""
    object: str = ""
    datatype: str = ""
    reification: str = ""  # the IRI of rdf:ID
    annotations: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    members: int = 0  # rdf:li so far
    cell: str = ""  # the last one of a collection
    outside: list[tuple[str, str, str]] | None = (
        None  # the destination of the statements around a triple term
    )


class Productions:
    def __init__(
        self,
        base: str | None,
        # called with each statement: its subject, predicate and object in N-Triples
        state: Callable[[str, str, str], None],
        # called with the number of additional characters
        spend: Callable[[int], None],
        enter_base: Callable[[str], None],
        fail: Callable[[str], NoReturn],
        # called with a message about ignored syntax
        warn: Callable[[str], None],
        *,
        lenient: bool = False,
    ) -> None:
        # the content of the open XML literal, if any
        self.content: CanonicalContent | None = None
        self._state, self._spend, self._enter_base = state, spend, enter_base
        self._fail, self._warn, self._lenient = fail, warn, lenient
        self._elements = [_Element(_Kind.DOCUMENT, _Context(base))]
        self._collected: list[tuple[str, str, str]] | None = (
            None  # the statements of an open triple term
        )
        self._triple_terms = self._blank_nodes = 0
        self._ids: set[str] = set()
        self._names = Names(fail)

    # --- events of XML ----------------------------------------------------------------------------------------------

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self.content is not None:
            self.content.start(name, attributes)
            return
        parent = self._elements[-1]
        if parent.kind is _Kind.IGNORED:
            self._elements.append(_Element(_Kind.IGNORED, parent.context))
            return
        iri = self._names.element(name)
        found = self._names.attributes(attributes) if attributes else NONE
        context = self._changed(parent.context, found.context) if found.context else parent.context
        if parent.kind in _HOLDS_PROPERTIES:
            self._elements.append(self._property(parent, iri, context, found))
        elif parent.kind is _Kind.DOCUMENT and iri == f"{RDF}RDF":
            unread = [f"rdf:{name}" for name in found.syntax]
            # the location of a schema has no meaning in RDF
            unread += [f"<{name}>" for name, _ in found.properties if not name.startswith(XSI)]
            if unread:
                self._fail(f"rdf:RDF has the attribute {unread[0]}, which belongs to no node")
            self._elements.append(_Element(_Kind.NODES, context))
        else:
            self._elements.append(self._node(parent, iri, context, found))

    def end(self) -> None:
        if self.content is not None:
            if self.content.depth:
                self.content.end()
                return
            content, self.content = self.content, None
            element = self._elements.pop()
            self._complete(element, self._literal(content.value(), datatype=_XML_LITERAL))
            return
        element = self._elements.pop()
        kind = element.kind
        if kind is _Kind.PROPERTY:
            if element.object:
                self._complete(element, element.object)
            else:
                text = "".join(element.text)
                self._complete(element, self._literal(text, element.context, element.datatype))
        elif kind is _Kind.COLLECTION:
            if element.cell:
                self._make(element.cell, f"<{RDF}rest>", f"<{RDF}nil>")
            else:
                self._complete(element, f"<{RDF}nil>")
        elif kind is _Kind.TRIPLE:
            self._end_triple_term(element)

    def text(self, text: str) -> None:
        if self.content is not None:
            self.content.text(text)
            return
        element = self._elements[-1]
        if element.kind is _Kind.PROPERTY and not element.object:
            element.text.append(text)
        elif text.strip(" \t\r\n") and element.kind is not _Kind.IGNORED:
            where = {
                _Kind.PROPERTY: "beside a node",
                _Kind.EMPTY: "in a property whose value is an attribute",
            }.get(element.kind, "where elements stand")
            self._fail(f"the text {shortened(text.strip())!r} {where}")

    def comment(self, text: str) -> None:
        """Matches a comment, which is part of XML literals only."""
        if self.content is not None:
            self.content.comment(text)

    def instruction(self, target: str, text: str) -> None:
        """Matches a processing instruction, which is part of XML literals only."""
        if self.content is not None:
            self.content.instruction(target, text)

    # --- elements ---------------------------------------------------------------------------------------------------

    def _node(self, parent: _Element, iri: str, context: _Context, found: Attributes) -> _Element:
        """Production nodeElement."""
        if iri in _NO_NODES:
            self._fail(f"rdf:{iri.removeprefix(RDF)} is no node element")
        if parent.kind is _Kind.EMPTY:
            self._fail("an element in a property whose value is an attribute")
        if parent.kind is _Kind.PROPERTY:
            if parent.object:
                self._fail("a second node in a property, which has one value")
            if parent.datatype:
                self._fail("an element in a property with an rdf:datatype, whose value is text")
            if "".join(parent.text).strip(" \t\r\n"):
                self._fail(
                    f"an element next to the text {shortened(''.join(parent.text).strip())!r}"
                )
            parent.text.clear()
        syntax = found.syntax
        for name in syntax:
            if name not in ("ID", "nodeID", "about"):
                self._fail(f"rdf:{name} is an attribute of properties, not of nodes")
        if len(syntax) > 1:
            self._fail(f"{' and '.join(f'rdf:{name}' for name in syntax)}: a node has one name")
        if "about" in syntax:
            subject = self._iri(syntax["about"], context)
        elif "nodeID" in syntax:
            subject = self._named_blank("nodeID", syntax["nodeID"])
        else:
            subject = (
                self._identified(syntax["ID"], context) if "ID" in syntax else self._new_blank()
            )
        if parent.kind is _Kind.PROPERTY:
            parent.object = subject
        elif parent.kind is _Kind.COLLECTION:
            self._append(parent, subject)
        if iri != f"{RDF}Description":
            self._make(subject, f"<{_TYPE}>", self._absolute(iri))
        self._make_properties(subject, context, found.properties)
        return _Element(_Kind.NODE, context, subject)

    def _property(
        self, parent: _Element, iri: str, context: _Context, found: Attributes
    ) -> _Element:
        """Production propertyElt: chooses its alternative."""
        if iri in _NO_PROPERTIES:
            self._fail(f"rdf:{iri.removeprefix(RDF)} is no property element")
        if iri == _LI:
            parent.members += 1
            iri = f"{RDF}_{parent.members}"
        element = _Element(_Kind.PROPERTY, context, parent.subject, self._absolute(iri))
        syntax = found.syntax
        if not syntax and not found.properties:
            return element
        if "about" in syntax:
            self._fail("rdf:about is an attribute of nodes, not of properties")
        if (id := syntax.pop("ID", None)) is not None:
            element.reification = self._identified(id, context)
        if (annotation := syntax.pop("annotation", None)) is not None:
            element.annotations.append(self._iri(annotation, context))
        if (annotation := syntax.pop("annotationNodeID", None)) is not None:
            element.annotations.append(self._named_blank("annotationNodeID", annotation))
        others = [
            *(f"rdf:{name}" for name in syntax),
            *(f"<{property}>" for property, _ in found.properties),
        ]
        exclusive = {"parseType", "resource", "nodeID", "datatype"} & syntax.keys()
        if len(exclusive) > 1 or (exclusive & {"parseType", "datatype"} and len(others) > 1):
            self._fail(f"{' and '.join(others)}: a property has one value")
        if "datatype" in syntax:
            element.datatype = self._iri(syntax["datatype"], context)
        elif "parseType" in syntax:
            self._start_parse_type(element, syntax["parseType"])
        elif others:
            self._start_empty(element, syntax, found.properties)
        return element

    def _start_parse_type(self, element: _Element, parse_type: str) -> None:
        """Productions parseTypeResourcePropertyElt to parseTypeOtherPropertyElt."""
        if parse_type == "Resource":
            node = self._new_blank()
            self._complete(element, node)
            element.kind, element.subject = _Kind.RESOURCE, node
        elif parse_type == "Collection":
            element.kind = _Kind.COLLECTION
        elif parse_type == "Triple":
            if element.context.version < "1.2":
                # as in the W3C's test rdf12-xml-tt-01
                self._warn(
                    'rdf:parseType="Triple" is ignored: the document has no rdf:version="1.2"'
                )
                element.kind = _Kind.IGNORED
                return
            self._triple_terms += 1
            if self._triple_terms > DEEPEST:
                self._fail(f"triple terms are nested more than {DEEPEST} deep")
            element.kind, element.outside, self._collected = _Kind.TRIPLE, self._collected, []
        else:
            element.kind, self.content = _Kind.LITERAL, CanonicalContent(self._spend)

    def _start_empty(
        self, element: _Element, syntax: dict[str, str], properties: list[tuple[str, str]]
    ) -> None:
        """Production emptyPropertyElt, with a value."""
        if "resource" in syntax:
            object = self._iri(syntax["resource"], element.context)
        elif "nodeID" in syntax:
            object = self._named_blank("nodeID", syntax["nodeID"])
        else:
            object = self._new_blank()
        element.kind = _Kind.EMPTY
        self._complete(element, object)
        self._make_properties(object, element.context, properties)

    def _end_triple_term(self, element: _Element) -> None:
        collected, self._collected = self._collected, element.outside
        assert collected is not None
        self._triple_terms -= 1
        if len(collected) != 1:
            self._fail(f'rdf:parseType="Triple" contains {len(collected)} triples instead of one')
        self._complete(element, f"<<( {' '.join(collected[0])} )>>")

    # --- statements -------------------------------------------------------------------------------------------------

    def _complete(self, element: _Element, object: str) -> None:
        """Emits a property whose value is now known, and the statements about that statement (section 6.3)."""
        subject, predicate = element.subject, element.predicate
        self._make(subject, predicate, object)
        if statement := element.reification:
            self._make(statement, f"<{_TYPE}>", f"<{RDF}Statement>")
            for part, term in (("subject", subject), ("predicate", predicate), ("object", object)):
                self._make(statement, f"<{RDF}{part}>", term)
        for annotation in element.annotations:
            self._make(annotation, f"<{RDF}reifies>", f"<<( {subject} {predicate} {object} )>>")

    def _make(self, subject: str, predicate: str, object: str) -> None:
        if self._collected is None:
            self._state(subject, predicate, object)
        else:
            self._spend(len(subject) + len(predicate) + len(object))
            self._collected.append((subject, predicate, object))

    def _make_properties(
        self, subject: str, context: _Context, properties: list[tuple[str, str]]
    ) -> None:
        """Production propertyAttr."""
        for property, value in properties:
            object = (
                self._iri(value, context) if property == _TYPE else self._literal(value, context)
            )
            self._make(subject, self._absolute(property), object)

    def _append(self, collection: _Element, node: str) -> None:
        """Production parseTypeCollectionPropertyElt, for one of its nodes."""
        cell = self._new_blank()
        if collection.cell:
            self._make(collection.cell, f"<{RDF}rest>", cell)
        else:
            self._complete(collection, cell)
        self._make(cell, f"<{RDF}first>", node)
        collection.cell = cell

    # --- terms ------------------------------------------------------------------------------------------------------

    def _iri(self, reference: str, context: _Context) -> str:
        """The IRI of an attribute; if `lenient`, what is wrong with it is left to the reader of N-Triples."""
        if not _SCHEME.match(reference) and not (self._lenient and context.base is None):
            if context.base is None:
                self._fail(f"the IRI {shortened(reference)!r} is relative, and there is no base")
            try:
                reference = resolve(reference, context.base, lenient=self._lenient)[1:-1]
            except TermError as error:
                self._fail(error.message)
        elif not self._lenient and (fault := fault_of_iri(reference)):
            # checked here, as it may not be in a statement
            self._fail(f"the IRI {shortened(reference)!r}: {fault}")
        return self._absolute(reference)

    def _absolute(self, iri: str) -> str:
        if _NOT_IN_IRIREF.search(iri):
            iri = _NOT_IN_IRIREF.sub(lambda match: f"\\u{ord(match.group()):04X}", iri)
        return f"<{iri}>"

    def _identified(self, id: str, context: _Context) -> str:
        """The IRI of an rdf:ID, which must be unique for its base (section 6.2.4)."""
        if context.base is None and not self._lenient:
            self._fail(f"rdf:ID={shortened(id)!r} is relative, and there is no base")
        # RFC 3986, section 5.2.2, of a fragment alone
        base = (context.base or "").partition("#")[0]
        iri = self._absolute(f"{base}#{self._ncname('ID', id)}")
        if iri in self._ids:
            self._fail(f"rdf:ID={id!r} occurs twice in the document, for one base")
        self._ids.add(iri)
        return iri

    def _named_blank(self, attribute: str, label: str) -> str:
        # a name of XML may end with a dot, a label of N-Triples may not
        return f"_:n{self._ncname(attribute, label)}0"

    def _new_blank(self) -> str:
        self._blank_nodes += 1
        return f"_:b{self._blank_nodes}"

    def _ncname(self, attribute: str, name: str) -> str:
        if not _NCNAME.fullmatch(name):
            self._fail(
                f"rdf:{attribute}={shortened(name)!r} is no name: it has letters, digits, '.', '-' and '_'"
            )
        return name

    def _literal(self, text: str, context: _Context = _Context(), datatype: str = "") -> str:  # noqa: B008 - immutable
        quoted = f'"{escape(text)}"'
        if datatype:
            return f"{quoted}^^{datatype if datatype.startswith('<') else f'<{datatype}>'}"
        if not context.language:
            return quoted
        language = context.language
        if not _LANGTAG.fullmatch(language):
            if not self._lenient:
                self._fail(
                    f"xml:lang={shortened(language)!r} is no language tag, such as en or pt-BR"
                )
            language = f"_{_NOT_IN_TAG.sub('_', language)}"  # which no reader of N-Triples accepts
        return f"{quoted}@{language}{f'--{context.direction}' if context.direction else ''}"

    def _changed(self, context: _Context, attributes: dict[str, str]) -> _Context:
        base, language, direction, version = context
        version = attributes.get(VERSION, version)
        language = attributes.get(LANGUAGE, language)
        if BASE in attributes:
            base = self._iri(attributes[BASE], context)[1:-1]
            self._enter_base(base)
        if DIRECTION in attributes and version >= "1.2":
            direction = attributes[DIRECTION]
            if direction not in ("ltr", "rtl", ""):
                self._fail(f"its:dir={shortened(direction)!r} is not ltr, rtl or empty")
        return _Context(base, language, direction, version)
