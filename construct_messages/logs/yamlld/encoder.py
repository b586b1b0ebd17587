"""The YAML-LD encoder: one JSON-LD document in YAML for each message, each between `---` and `...`.

RDF Messages names YAML documents separated by `---`; a `...` after each marks it as complete, even without a next one.
`jsonld/encoder.py` converts messages to JSON-LD.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from construct_messages.logs.jsonld.encoder import NodesEncoder, Notation, Properties, nodes_of
from construct_messages.logs.text_encoder import Place, Texts, TextsByKind
from construct_messages.rdf.message import Message
from construct_messages.rdf.terms import Term

# strings that YAML quotes like JSON; others contain characters that are not printable to readers of YAML 1.1, or are
# escaped by libyaml
_AS_IN_JSON: Final = re.compile(
    r"[\b\t\n\f\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*"
)
_EMPTY: Final = "{}\n"
_LONGEST_KEY: Final = 128
"""The maximal length of a key without `?` before it, as in libyaml; from 1024 characters on it is required (YAML
1.2.2, 7.4.2).
"""


class YamlLdEncoder(NodesEncoder):
    """Writes messages as YAML-LD, in block style, every string in double quotes. `options`: their prefixes are for the
    context that the log begins with; see `context_of`.

    >>> from construct_messages.rdf.formats import YAML_LD
    >>> from construct_messages.logs import EncoderOptions
    >>> from construct_messages.rdf.message import Quad
    >>> from construct_messages.rdf.terms import iri, literal
    >>> encoder = YamlLdEncoder(YAML_LD, YAML_LD.own, EncoderOptions({"ex": "http://example.org/"}))
    >>> message = Message([Quad(iri("http://example.org/s"), iri("http://example.org/p"), literal("a", language="en"))])
    >>> log = encoder.start() + encoder.encode(message) + encoder.encode(Message()) + encoder.finish()
    >>> print(log.decode(), end="")
    ---
    "@context":
      "ex": "http://example.org/"
    ...
    ---
    "@id": "ex:s"
    "ex:p":
      "@value": "a"
      "@language": "en"
    ...
    --- {}
    ...
    """

    def start(self) -> bytes:
        return self.delimited(self.head(self._context)).encode() if self._context else b""

    @staticmethod
    def quote(text: str) -> str:
        return (
            msgspec.json.encode(text).decode()
            if _AS_IN_JSON.fullmatch(text)
            else _dump(text).rstrip("\n")
        )

    def texts_of(self, notation: Notation) -> TextsByKind:
        """Returns the texts of terms: as names, as keys, after keys, and in arrays of some indentation."""
        return _Texts(notation)

    def head(self, context: Mapping[str, Any] | None) -> str:
        """Returns the entry of a context."""
        return _dump({"@context": context})

    def document(self, message: Message, place: Place, head: str = "") -> str:
        """Returns a message as one object, without markers."""
        graphs = nodes_of(message)
        alone = (
            sum(len(subjects) if graph is None else 1 for graph, subjects in graphs.items()) == 1
        )
        indent = "" if alone else "  "
        top: list[str] = []
        for graph, subjects in graphs.items():
            if graph is None:
                top += [
                    _node(subject, properties, indent, place)
                    for subject, properties in subjects.items()
                ]
            else:
                deeper = f"{indent}  "
                nodes = [
                    _node(subject, properties, deeper, place)
                    for subject, properties in subjects.items()
                ]
                listed = "".join(f"\n{indent}- {node}" for node in nodes)
                top.append(f'"@id": {place("name")(graph)}\n{indent}"@graph":{listed}')
        if alone:
            return f"{head}{top[0]}\n"
        return "\n- ".join([f'{head}"@included":', *top]) + "\n" if top else _EMPTY

    def delimited(self, document: str) -> str:
        return f"--- {document}...\n" if document == _EMPTY else f"---\n{document}...\n"


def _node(subject: Term, properties: Properties, indent: str, place: Place) -> str:
    """Returns the entries of a node; the first one is not indented."""
    name, key, value, item = (
        place("name"),
        place(("key", indent)),
        place(("value", indent)),
        place(("item", indent)),
    )
    lines = [f'"@id": {name(subject)}']
    for predicate, objects in properties.items():
        if predicate is None:
            types = list(map(name, objects))
            lines += (
                [f'"@type": {types[0]}']
                if len(types) == 1
                else ['"@type":', *(f"- {type}" for type in types)]
            )
        elif len(objects) == 1:
            lines.append(f"{key(predicate)}:{value(objects[0])}")
        else:
            lines += [f"{key(predicate)}:", *(f"- {item(object)}" for object in objects)]
    return f"\n{indent}".join(lines)


class _Texts(dict[Any, Texts]):
    def __init__(self, notation: Notation) -> None:
        super().__init__({"name": notation.names})
        self._notation = notation

    def __missing__(self, place: tuple[str, str]) -> Texts:
        kind, indent = place
        names, value_of = self._notation.names, self._notation.value
        deeper = f"\n{indent}  "

        def key(term: Term) -> str:
            name = names[term]
            return name if len(name) <= _LONGEST_KEY else f"? {name}\n{indent}"

        def value(term: Term) -> str:
            found = value_of(term)
            return (
                f" {found}"
                if isinstance(found, str)
                else "".join(f'{deeper}"{key}": {found[key]}' for key in found)
            )

        def item(term: Term) -> str:
            return value(term).lstrip()

        self[place] = texts = Texts({"key": key, "item": item, "value": value}[kind])
        return texts


class _Dumper(yaml.CSafeDumper):
    """Quotes all strings, so that they do not depend on a reader's schema."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True

    def represent_string(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')


_Dumper.add_representer(str, _Dumper.represent_string)


def _dump(value: object) -> str:
    written: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        width=1 << 30,
    )
    return written
