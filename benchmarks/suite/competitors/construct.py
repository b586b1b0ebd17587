"""What the user of another tool writes by hand for a CONSTRUCT query, derived from its text.

A competitor is given the pieces its user would have written once, before anything runs: the SELECT with the same WHERE
clause, the template as a table, the variable at the root of the template, a query that finds the template again in a
flat result, a SHACL shape, an LDkit schema. `handwritten` derives them and `write` stores them as JSON, so that a
competitor in Python need not import rdflib and one in JavaScript can read them too. Imports nothing of
construct_messages, which is measured beside them. Terms are in SPARQL's syntax: `?v`, `<iri>`, `"literal"`, `_:b`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rdflib import BNode, Literal, URIRef, Variable
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import Node

from benchmarks.suite.competitors.printing import SLOT

Pattern = tuple[str, str, str]

TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

_LANGUAGES: Final = {
    "<http://www.w3.org/2000/01/rdf-schema#label>",
    "<http://www.w3.org/2000/01/rdf-schema#comment>",
    "<http://dbpedia.org/ontology/abstract>",
    "<http://xmlns.com/foaf/0.1/name>",
}
"""The predicates of which the user of LDkit knows that their values have languages."""

_TOKEN: Final = re.compile(
    r"""(?P<skip>\#[^\n]*|<[^<>"{}|^`\\\s]*>|\"{3}(?:.|\n)*?\"{3}|'{3}(?:.|\n)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<variable>[?$]\w+)|(?P<word>\w+)|(?P<mark>[{}()])""",
    re.VERBOSE,
)


def handwritten(text: str) -> dict[str, Any]:
    """The pieces for a query.

    Args:
        text: a CONSTRUCT query.

    Returns:
        `construct` (the text), `select`, `variables` (of the template), `template` (list of triples), `certain`
        (variables that every solution binds), `root` (a term of the template), `root_patterns` (triples that a root
        has in a flat result), `rematch` and `rematch_template`, `key`, `entities` and `entity` (or None), `shape`
        (Turtle), `ldkit` (a schema) and `ldkit_where` (a search), or `ldkit_reason`.
    """
    query = prepareQuery(text)
    assert query.algebra.name == "ConstructQuery", "not a CONSTRUCT query"
    triples = query.algebra.template or [
        triple for part in _parts(query.algebra.p, "BGP") for triple in part.triples
    ]
    template = [(_term(s), _term(p), _term(o)) for s, p, o in triples]
    variables = list(
        dict.fromkeys(term for triple in template for term in triple if term.startswith("?"))
    )
    select, where = _select(text, variables)
    certain = {f"?{variable}" for variable in _certain(query.algebra.p)} & set(variables)
    root = _root(template)
    own = [triple for triple in template if triple[0] == root]
    sure = [triple for triple in own if _is_certain(triple, certain)]
    rematch_template = [tuple(_matchable(term) for term in triple) for triple in template]
    key = root if root in certain else next((v for v in variables if v in certain), None)
    return {
        "construct": text,
        "select": select,
        "variables": variables,
        "template": template,
        "certain": sorted(certain),
        "root": root,
        "root_patterns": sure or own,
        "root_needs_all": bool(sure),
        "rematch": _rematch(text, rematch_template, certain, _subjects(query.algebra.p)),
        "rematch_template": rematch_template,
        "key": key,
        "entities": key and _select(text, [f"DISTINCT {key}"])[0],
        "entity": key and _entity(text, where),
        "shape": _shape(template, root),
    } | _ldkit(text, query.algebra, template, root, certain)


def write(text: str, folder: Path) -> Path:
    """Stores the pieces for a query in a folder, as `handwritten.json`."""
    path = folder / "handwritten.json"
    path.write_text(json.dumps(handwritten(text), indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def _term(term: Node) -> str:
    match term:
        case Variable():
            return f"?{term}"
        case BNode():
            return f"_:{term}"
        case URIRef():
            return f"<{term}>"
        case Literal():
            text = str(term).translate({92: "\\\\", 34: '\\"', 10: "\\n", 13: "\\r"})
            suffix = (
                f"@{term.language}"
                if term.language
                else f"^^<{term.datatype}>"
                if term.datatype
                else ""
            )
            return f'"{text}"{suffix}'
    raise ValueError(f"a template holds a {type(term).__name__}: {term}")


def _parts(part: Any, name: str) -> Iterator[CompValue]:
    """The nodes of a name in an algebra tree."""
    if isinstance(part, CompValue):
        if part.name == name:
            yield part
        for value in part.values():
            yield from _parts(value, name)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _parts(value, name)


def _certain(part: CompValue) -> set[Variable]:
    """The variables that every solution of an algebra tree binds."""
    match part.name:
        case "BGP":
            return {
                term for triple in part.triples for term in triple if isinstance(term, Variable)
            }
        case "Join":
            return _certain(part.p1) | _certain(part.p2)
        case "LeftJoin" | "Minus":
            return _certain(part.p1)
        case "Union":
            return _certain(part.p1) & _certain(part.p2)
        case "Extend":
            return _certain(part.p) | {part.var}
        case "Graph":
            return _certain(part.p) | {term for term in [part.term] if isinstance(term, Variable)}
        case "Project":
            return _certain(part.p) & set(part.PV)
        case "values":
            rows = [{v for v, value in row.items() if value != "UNDEF"} for row in part.res]
            return set.intersection(*rows) if rows else set()
        case "AggregateJoin":
            return {aggregate.res for aggregate in part.A}
    return _certain(part.p) if isinstance(part.get("p"), CompValue) else set()


def _is_certain(triple: Iterable[str], certain: set[str]) -> bool:
    return all(term in certain or not term.startswith("?") for term in triple)


def _root(template: Sequence[Pattern]) -> str:
    """The subject that is nobody's object, else the first subject."""
    objects = {o for s, _, o in template if s != o}
    return next((s for s, _, _ in template if s not in objects), template[0][0])


def _tokens(text: str) -> list[re.Match[str]]:
    return [match for match in _TOKEN.finditer(text) if match.lastgroup != "skip"]


def _closing(tokens: Sequence[re.Match[str]], opening: int) -> int:
    """The index of the token that closes the bracket at an index."""
    pairs, depth = {"{": "}", "(": ")"}, 0
    mark = tokens[opening][0]
    for index in range(opening, len(tokens)):
        depth += (tokens[index][0] == mark) - (tokens[index][0] == pairs[mark])
        if not depth:
            return index
    raise ValueError("unbalanced brackets")


def _select(text: str, variables: Sequence[str]) -> tuple[str, int]:
    """The SELECT with the same WHERE clause, and where in the CONSTRUCT the WHERE clause's group begins."""
    tokens = _tokens(text)
    construct = next(index for index, token in enumerate(tokens) if token[0].upper() == "CONSTRUCT")
    head = f"SELECT {' '.join(variables)} "
    if tokens[construct + 1][0] != "{":  # CONSTRUCT WHERE { … }
        where = next(token for token in tokens[construct:] if token[0] == "{")
        return text[: tokens[construct].start()] + head + text[
            tokens[construct].end() :
        ], where.end()
    close = _closing(tokens, construct + 1)
    where = next(token for token in tokens[close:] if token[0] == "{")
    return text[: tokens[construct].start()] + head + text[tokens[close].end() :], where.end()


def _entity(text: str, where: int) -> str:
    """The CONSTRUCT for one entity, without the modifiers, which were the first query's business."""
    tokens = _tokens(text)
    opening = next(index for index, token in enumerate(tokens) if token.end() == where)
    close = tokens[_closing(tokens, opening)].end()
    rest = re.sub(r"(?is)\b(ORDER\s+BY|LIMIT|OFFSET)\b.*", "", text[close:])
    head = text[:where]
    if re.search(
        r"(?i)\bCONSTRUCT\s+WHERE\b", head
    ):  # VALUES is not for the short form: the template is written out
        group = text[where : close - 1]
        head = re.sub(
            r"(?i)\bCONSTRUCT\s+WHERE\s*\{$", lambda _: f"CONSTRUCT {{{group}}} WHERE {{", head
        )
    return f"{head} {SLOT} {text[where:close]}{rest}"


def _matchable(term: str) -> str:
    return f"?blank_{term[2:]}" if term.startswith("_:") else term


def _subjects(part: CompValue) -> set[str]:
    """The variables that are subjects somewhere in an algebra tree, and so no literals."""
    return {_term(triple[0]) for bgp in _parts(part, "BGP") for triple in bgp.triples}


def _rematch(
    text: str, template: Sequence[tuple[str, ...]], certain: set[str], subjects: set[str]
) -> str:
    """A SELECT that finds each instance of the template in a flat result, with the filters of the original query.

    Triples with variables that may be unbound are in an OPTIONAL, one for those that share such a variable, and so is
    a triple whose subject may be a literal, which CONSTRUCT leaves out.
    """
    sure: list[tuple[str, ...]] = []
    groups: list[tuple[set[str], list[tuple[str, ...]]]] = []
    for triple in template:
        open_ = {
            term for term in triple if term.startswith("?") and not term.startswith("?blank_")
        } - certain
        if not open_:
            if triple[0] in certain - subjects:
                groups.append((set(), [triple]))
            else:
                sure.append(triple)
            continue
        joined = [group for group in groups if group[0] & open_]
        groups = [group for group in groups if not group[0] & open_]
        together = open_.union(*(group[0] for group in joined))
        groups.append((together, [*(each for group in joined for each in group[1]), triple]))
    at_top = {term for triple in sure for term in triple if term.startswith("?")}
    filters = _filters(text)
    lines = [f"  {s} {p} {o} ." for s, p, o in sure] + [
        f"  {text}" for used, text in filters if used <= at_top
    ]
    for open_, triples in groups:
        own = {term for triple in triples for term in triple if term.startswith("?")} | at_top
        inner = [f"{s} {p} {o} ." for s, p, o in triples]
        inner += [text for used, text in filters if used & open_ and used <= own]
        lines.append(f"  OPTIONAL {{ {' '.join(inner)} }}")
    used = dict.fromkeys(term for triple in template for term in triple if term.startswith("?"))
    prologue = "\n".join(re.findall(r"(?im)^\s*(?:PREFIX|BASE)\s[^\n]*", text))
    body = "\n".join(lines)
    return f"{prologue}\nSELECT DISTINCT {' '.join(used)} WHERE {{\n{body}\n}}"


def _filters(text: str) -> list[tuple[set[str], str]]:
    """The filters of the main group and of its OPTIONALs, with the variables that they use."""
    tokens, found, kinds = _tokens(text), [], list[str]()
    for index, token in enumerate(tokens):
        before = tokens[index - 1][0].upper() if index else ""
        match token[0].upper():
            case "{":
                kinds.append(before)
            case "}":
                kinds.pop()
            case "FILTER" if all(kind in ("WHERE", "OPTIONAL") for kind in kinds):
                opening = next(i for i in range(index, len(tokens)) if tokens[i][0] in "{(")
                words = {each[0].upper() for each in tokens[index:opening]}
                if "EXISTS" not in words:
                    close = _closing(tokens, opening)
                    used = {
                        f"?{each[0][1:]}"
                        for each in tokens[opening:close]
                        if each.lastgroup == "variable"
                    }
                    found.append((used, text[token.start() : tokens[close].end()]))
    return found


def _shape(template: Sequence[Pattern], root: str) -> str:
    """A SHACL shape with the paths of the template from its root, there and back; closed if it names all predicates."""
    paths = [triple for triple in template if not triple[1].startswith("?")]
    closed = "true" if len(paths) == len(template) else "false"
    names = {root: "<urn:shape:root>"}
    waiting, shapes = [root], []
    while waiting:
        node = waiting.pop()
        lines = [f"{names[node]} a sh:NodeShape ; sh:closed {closed}"]
        for triple in [triple for triple in paths if node in (triple[0], triple[2])]:
            paths.remove(triple)
            s, p, o = triple
            there, path = (o, p) if s == node else (s, f"[ sh:inversePath {p} ]")
            deeper = ""
            if there not in names and any(there in (s, o) for s, _, o in paths):
                names[there] = f"<urn:shape:{len(names)}>"
                waiting.append(there)
                deeper = f" ; sh:node {names[there]}"
            lines.append(f"  sh:property [ sh:path {path}{deeper} ]")
        shapes.append(" ;\n".join(lines) + " .")
    return "\n".join(["@prefix sh: <http://www.w3.org/ns/shacl#> .", *shapes]) + "\n"


def _ldkit(
    text: str, algebra: CompValue, template: Sequence[Pattern], root: str, certain: set[str]
) -> dict[str, Any]:
    """`ldkit`, the LDkit schema that asks for the same, and `ldkit_where`, its search; or `ldkit_reason`: why not."""
    others = [
        "Extend",
        "Union",
        "Slice",
        "OrderBy",
        "Distinct",
        "Group",
        "Minus",
        "Graph",
        "values",
    ]
    others += ["Builtin_NOTEXISTS", "Builtin_EXISTS"]
    if names := [name for name in others if next(_parts(algebra.p, name), None)]:
        return _no(
            f"a schema of LDkit has no place for {', '.join(name.removeprefix('Builtin_') for name in names)}"
        )
    triples = [triple for part in _parts(algebra.p, "BGP") for triple in part.triples]
    if any(not isinstance(term, Node) for triple in triples for term in triple):
        return _no("a schema of LDkit has no property paths")
    pattern = [(_term(s), _term(p), _term(o)) for s, p, o in triples]
    if any(p.startswith("?") for _, p, _ in pattern):
        return _no("a schema of LDkit has no variable predicates")
    if any(not o.startswith("?") and p != TYPE for _, p, o in pattern):
        return _no("a schema of LDkit has no constant objects but types")
    if any(not s.startswith("?") for s, _, _ in pattern) or not root.startswith("?"):
        return _no("a schema of LDkit describes resources by variables only")
    if sorted(pattern) != sorted(template):
        return _no("LDkit gives what its pattern matches; the template is another graph")
    used: list[Pattern] = []
    places: dict[str, list[str]] = {}

    def schema(node: str, place: list[str]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for index, (s, p, o) in enumerate(pattern):
            if s != node:
                continue
            used.append((s, p, o))
            if p == TYPE and not o.startswith("?"):
                made.setdefault("@type", []).append(o[1:-1])
                continue
            entry: dict[str, Any] = {"@id": p[1:-1], "@array": True}
            if p in _LANGUAGES:
                entry["@multilang"] = True
            if o not in certain:
                entry["@optional"] = True
            places[o] = [*place, f"p{index}"]
            if any(each == o for each, _, _ in pattern):
                entry["@schema"] = schema(o, places[o])
            made[f"p{index}"] = entry
        return made

    made = schema(root, [])
    if (
        len(used) != len(pattern)
        or root in places
        or len(places) != sum(o.startswith("?") for _, _, o in used)
    ):
        return _no("a schema of LDkit is a tree of properties from one resource")
    where: dict[str, Any] = {}
    for _, filter_ in _filters(text):
        for condition in (
            re.sub(r"(?i)^FILTER\s*", "", _expanded(filter_, text)).strip("() \n").split("&&")
        ):
            mentioned = re.findall(r"[?$](\w+)", condition)
            if len(mentioned) != 1 or "||" in condition or f"?{mentioned[0]}" not in places:
                return _no(
                    f"a search of LDkit is about one property at a time: {condition.strip()}"
                )
            inner = where
            for key in places[f"?{mentioned[0]}"]:
                inner = inner.setdefault(key, {})
            if "$filter" in inner:
                return _no("a search of LDkit has one filter for a property")
            balanced = condition + ")" * (condition.count("(") - condition.count(")"))
            inner["$filter"] = re.sub(r"[?$]\w+", "?value", balanced).strip()
    return {"ldkit": made, "ldkit_where": where}


def _no(reason: str) -> dict[str, Any]:
    return {"ldkit_reason": reason}


def _expanded(part: str, text: str) -> str:
    """A part of a query with its prefixed names written out."""
    prefixes = dict(re.findall(r"(?i)\bPREFIX\s+(\w*):\s*<([^>]*)>", text))
    pattern = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<[^<>\s]*>)|\b(\w*):(\w+)"""
    return re.sub(pattern, lambda m: m[1] or f"<{prefixes[m[2]]}{m[3]}>", part)
