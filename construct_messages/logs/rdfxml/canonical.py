"""Exclusive XML Canonicalization with comments, of the content of an element, from the parser's events.

RDF 1.1 XML Syntax, section 7.2.17, and Exclusive XML Canonicalization 1.0 (https://www.w3.org/TR/xml-exc-c14n/) with an
empty list of inclusive prefixes: a namespace is only declared where it is used. `xml.etree` can write canonical XML,
but chooses the prefix itself if a namespace has two. No RDF here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

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
        """Writes an end tag."""
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
        """Writes a comment."""
        self._write(f"<!--{text}-->")

    def instruction(self, target: str, text: str) -> None:
        """Writes a processing instruction."""
        self._write(f"<?{target} {text}?>" if text else f"<?{target}?>")

    def value(self) -> str:
        """The output."""
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
