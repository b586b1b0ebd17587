"""Writes framed trees as JSON documents.

JSON-LD 1.1 API, section 6.1 (the compaction algorithm), steps 7 to 12, for the containers that `notation.py` compiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from construct_messages.logs.json.framing import Default, Item, Items, Tree
from construct_messages.logs.json.notation import ContextNotation, Key, Kind
from construct_messages.logs.layout import Place
from construct_messages.rdf.errors import UnsupportedByFormat
from construct_messages.rdf.terms import Term


class DocumentWriter:
    """Writes the trees of a message.

    Args:
        notation: the notation of the context.
        place: returns the writer of terms.
    """

    def __init__(self, notation: ContextNotation, place: Place) -> None:
        self._notation, self._place = notation, place

    def document(self, trees: Sequence[Tree]) -> str:
        """Returns the document of the nodes that match a frame: a single node, or all of them under `@graph`."""
        if len(trees) == 1:
            return self._node(trees[0])
        if not trees:
            return "{}"
        return f"{{{self._notation.graph}:[{','.join(map(self._node, trees))}]}}"

    def _node(self, tree: Tree) -> str:
        notation, place = self._notation, self._place
        entries = []
        if tree.id is not None:
            entries.append(f"{notation.id}:{place('name')(tree.id)}")
        if tree.types:
            types = list(map(place("vocab"), tree.types))
            if len(types) == 1 and not notation.types_are_set:
                entries.append(f"{notation.type}:{types[0]}")
            else:
                entries.append(f"{notation.type}:[{','.join(types)}]")
        for predicate, items in tree.properties:
            entries += self._property(predicate, items)
        return f"{{{','.join(entries)}}}"

    def _property(self, predicate: Term, items: Iterable[Item]) -> Iterable[str]:
        found: dict[str, tuple[Key, list[tuple[str, str]]]] = {}
        for item in items:
            key, text = self._item(predicate, item)
            if key.name in found:
                found[key.name][1].append((key.language, text))
            else:
                found[key.name] = key, [(key.language, text)]
        for key, texts in found.values():
            arrays = key.is_set or predicate in self._notation.arrays
            if key.is_language and not (
                self._notation.maps_if_needed
                and all(language == self._notation.none for language, _ in texts)
            ):
                yield f"{key.text}{_map(texts, is_set=key.is_set)}"
            elif key.is_list:
                if len(texts) > 1:
                    raise UnsupportedByFormat(
                        f"{predicate} has {len(texts)} lists, and {key.text[:-1]} holds one",
                        hint='leave "@container": "@list" out of the context',
                    )
                yield f"{key.text}{texts[0][1]}"
            elif len(texts) == 1 and not arrays:
                yield f"{key.text}{texts[0][1]}"
            else:
                yield f"{key.text}[{','.join(text for _, text in texts if text != 'null')}]"

    def _item(self, predicate: Term, item: Item) -> tuple[Key, str]:
        """Returns the key and the text of a value."""
        notation = self._notation
        if isinstance(item, str):
            key, kind = notation.literal(predicate, item)
            return key, f"{key.before}{self._place(kind)(item)}{key.after}"
        if isinstance(item, Tree):
            key = notation.key(predicate, notation.kind_of_node(item.id), lambda: _sample(item))
            return key, self._tree(key, item)
        if isinstance(item, Default):
            value = "@null" if item.value is None else item.value
            key = notation.key(predicate, ("default", value), lambda: value)
            return key, "null" if value == "@null" else msgspec.json.encode(value).decode()
        kinds, samples = self._kinds(predicate, item)
        key = notation.key(predicate, ("list", *kinds), lambda: {"@list": samples})
        array = f"[{','.join(self._within(predicate, key, each) for each in item.items)}]"
        return key, array if key.is_list else f"{{{notation.list}:{array}}}"

    def _kinds(self, predicate: Term, items: Items) -> tuple[list[Kind], list[object]]:
        kinds: dict[Kind, object] = {}
        for item in items.items:
            if isinstance(item, str):
                kinds[self._notation.kind_of(item)] = self._notation.sample_of(predicate, item)
            elif isinstance(item, Tree):
                kinds[self._notation.kind_of_node(item.id)] = _sample(item)
            elif isinstance(item, Items):
                inner, samples = self._kinds(predicate, item)
                kinds["list", *inner] = {"@list": samples}
        return list(kinds), list(kinds.values())

    def _within(self, predicate: Term, key: Key, item: Item) -> str:
        """Returns the text of an item of a list, under the key of the list."""
        notation = self._notation
        if isinstance(item, str):
            own = notation.under(key, predicate, item)
            return f"{own.before}{self._place(notation.literal_kind(item))(item)}{own.after}"
        if isinstance(item, Tree):
            return self._tree(notation.under_node(key), item)
        assert isinstance(item, Items)
        array = f"[{','.join(self._within(predicate, key, each) for each in item.items)}]"
        return array if key.is_list else f"{{{notation.list}:{array}}}"

    def _tree(self, key: Key, tree: Tree) -> str:
        if tree.id is not None and not tree.types and not tree.properties:
            if key.reference is not None:
                return self._place(key.reference)(tree.id)
            return f"{{{self._notation.id}:{self._place('name')(tree.id)}}}"
        return self._node(tree)


def _sample(tree: Tree) -> dict[str, str]:
    if tree.id is None:
        return {}
    return {"@id": tree.id[1:-1] if tree.id[0] == "<" else tree.id}


def _map(texts: Iterable[tuple[str, str]], *, is_set: bool) -> str:
    """Returns the text of a language map."""
    languages: dict[str, list[str]] = {}
    for language, text in texts:
        languages.setdefault(language, []).append(text)
    entries = (
        f"{language}:{found[0] if len(found) == 1 and not is_set else '[' + ','.join(found) + ']'}"
        for language, found in languages.items()
    )
    return f"{{{','.join(entries)}}}"
