"""The text of a query as the embedded engine, pyoxigraph 0.5, evaluates it by the specification.

Prefixed names with several full stops are written as IRIs: it refuses `ex:a.b.c` after `ex:a.b` (SPARQL 1.2 Query,
section 19.8, [PN_LOCAL]). Alternatives of paths are written as UNION: it gives a solution of several of them once, not
once for each (section 18.4). In `GRAPH ?g`, it takes ?g for a variable that both sides of MINUS share (section 18.6),
hides it in sub-selects that do not project it (section 13.3), does not bind it where no triple is matched directly,
as in `GRAPH ?g { GRAPH ?h { … } }`, and binds it before what is in the group, as
in `GRAPH ?g { … OPTIONAL { ?g … } }`. In
`?s ?p ?x { ?s ?q ?o FILTER EXISTS { ?x … } }`, EXISTS sees ?x, which the group of the FILTER does not bind (section
18.2.2.2). The rest of the text is unchanged, and so are the columns of other lines.

Its ORDER BY compares literals of two kinds by their texts and numbers by their values. This is no total order: 9 < 10
and "10" < "5" < "9". Where the sort notices, it ends the process. So each sort key becomes several, each of which only
compares values of one kind (section 15.1). They are computed once for each solution, in a group around the query.
Nothing is evaluated here.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise, product
from typing import Any, Final

from construct_messages.errors import QueryError
from construct_messages.query.prologue import Prologue
from construct_messages.query.syntax import nodes as syntax
from construct_messages.query.syntax.nodes import (
    aggregates,
    group_keys,
    in_scope,
    values_variables,
    walk,
)
from construct_messages.query.syntax.parser import Query, parse
from construct_messages.query.tokens import QueryText, error, spliced, tokenize

# --- embedded -------------------------------------------------------------------------------------

_SUSPECT: Final = re.compile(r":(?:[\w%\-]|\\.)*\.(?:[\w%\-.]|\\.)*\.[\w%\-\\]")


def names_in_full(text: str) -> str:
    """Returns the query with such names written as IRIs.

    >>> names_in_full("PREFIX ex: <urn:> ASK { ?s ex:a.b ex:a.b.c . }")
    'PREFIX ex: <urn:> ASK { ?s ex:a.b <urn:a.b.c> . }'
    """
    if not _SUSPECT.search(text):
        return text
    tokens = tokenize(text)
    first_group = next(
        (index for index, token in enumerate(tokens) if token.is_mark("{")), len(tokens)
    )
    prologue = Prologue.read(text, tokens[:first_group], base=None, prefixes={})
    names = []
    for token in tokens:
        if token.kind == "pname" and token.text.partition(":")[2].count(".") > 1:
            try:
                name = prologue.iri(text, token.text, token.start)
            except QueryError:
                continue  # the engine reports the error
            names.append((token.start, token.end, name))
    return spliced(text, names)


_NO_LINE_BREAK: Final = re.compile(r"[^\r\n]")
_ALTERNATIVE: Final = re.compile(r"[^|]\|[^|]")
_EXISTS: Final = re.compile(r"(?i)\bEXISTS\b")
_WITHIN_GRAPH: Final = re.compile(r"(?i)\bGRAPH\b")
_MOST_WAYS: Final = 64


@lru_cache(maxsize=16)  # a continuous query is evaluated again and again
def for_embedded(text: str) -> str:
    """The text to pass to the embedded engine; a query that it would evaluate wrongly, or that is too deep for it, is
    an error.

    >>> for_embedded("SELECT * { ?s <urn:p>|<urn:q>/<urn:r> ?o }")
    'SELECT * { { ?s <urn:p> ?o . } UNION { ?s (<urn:q>)/(<urn:r>) ?o . } }'
    >>> for_embedded("SELECT * { GRAPH ?g { ?s ?p ?o MINUS { ?x ?q ?y } } }")
    'SELECT * { GRAPH ?g { ?s ?p ?o  } }'
    >>> for_embedded("SELECT * { GRAPH ?g { VALUES ?x { 1 2 } } }")
    'SELECT * { GRAPH ?g { { FILTER(true) } VALUES ?x { 1 2 } } }'
    >>> for_embedded("SELECT ?s ?g { GRAPH ?g { ?s ?p ?o OPTIONAL { ?g ?p ?x } } }")
    'SELECT ?s ?g { { GRAPH ?g { ?s ?p ?o OPTIONAL { ?g_0 ?p ?x } } FILTER(!BOUND(?g_0) || SAMETERM(?g_0, ?g)) } }'
    >>> for_embedded("SELECT ?s { ?s ?p ?x { ?s ?q ?o FILTER EXISTS { ?x ?q ?o } } }")
    'SELECT ?s { ?s ?p ?x { ?s ?q ?o FILTER EXISTS { ?x_0 ?q ?o } } }'
    >>> for_embedded("SELECT ?s { ?s ?p ?o } ORDER BY DESC(?o) LIMIT 5").partition(" BIND")[0]
    'SELECT ?s WHERE { { SELECT ?s ?o WHERE { ?s ?p ?o } }'
    >>> for_embedded("SELECT ?s { ?s ?p ?o } ORDER BY STR(?s)")
    'SELECT ?s { ?s ?p ?o } ORDER BY STR(?s)'
    """
    text = _spliced(_with_graphs_apart(_with_exists_apart(names_in_full(text))))
    if not _ORDER.search(text):
        return text
    ordered = _TotalOrders(parse(text)).text()
    if ordered != text:
        check_depth(ordered)
    return ordered


def _form(text: str) -> Any:
    """The query as a tree. None: it has an error, which the engine reports."""
    try:
        return parse(text).form
    except QueryError:
        return None


def _free_name(name: str, text: str) -> str:
    """The name of a variable that the query does not have."""
    return next(free for number in count() if (free := f"{name}_{number}") not in text)


def _spliced(text: str) -> str:
    if not (_ALTERNATIVE.search(text) or _WITHIN_GRAPH.search(text)):
        return text
    if (form := _form(text)) is None:
        return text
    return spliced(
        text,
        (
            (start, end, new + _NO_LINE_BREAK.sub("", text[start:end]))
            for start, end, new in _splices(text, form)
        ),
    )


def _splices(text: str, form: Any) -> Iterator[tuple[int, int, str]]:
    """The text between two offsets that is replaced, and by what."""
    blocks = [node for node in walk(form) if isinstance(node, syntax.TriplesBlock)]
    left: list[tuple[Any, str]] = [(form, "")]
    while left:
        node, graph = left.pop()
        match node:
            case syntax.TriplesBlock():
                if (written := _without_alternatives(text, node, blocks)) is not None:
                    yield node.start, node.end, written
                continue
            case syntax.GraphPattern(name=syntax.VariableNode(name=name), group=group):
                graph = f"?{name}"
                if group.elements and not _binds_graph(group.elements):
                    yield group.start + 1, group.start + 1, " { FILTER(true) }"
            case syntax.GraphPattern() | syntax.ServicePattern():
                graph = ""
            case syntax.SelectForm() if graph:
                yield from with_graph(text, node, graph)
            case syntax.GroupPattern(elements=elements) if graph:
                for place, minus in enumerate(elements):
                    if isinstance(minus, syntax.MinusPattern):
                        if _excludes_nothing(text, elements[:place], minus, graph):
                            yield minus.start, minus.end, ""
                        else:
                            left.append((minus, graph))
                left += [
                    (each, graph) for each in elements if not isinstance(each, syntax.MinusPattern)
                ]
                continue
        left += [(part, graph) for part in node if isinstance(part, tuple)]


# --- EXISTS in nested groups ----------------------------------------------------------------------------------------


def _with_exists_apart(text: str) -> str:
    """The query with other variables in EXISTS for those which its FILTER cannot see, but are bound further outside."""
    if not _EXISTS.search(text) or (form := _form(text)) is None:
        return text
    # an EXISTS in another one has its variables twice
    unseen = sorted({*_unseen(form, frozenset())})
    new = {name: _free_name(name, text) for *_, name in unseen}
    return spliced(text, ((start, end, f"?{new[name]}") for start, end, name in unseen))


def _unseen(
    node: Any,
    around: frozenset[str],
    values: frozenset[str] = frozenset(),
    beside: frozenset[str] = frozenset(),
) -> Iterator[tuple[int, int, str]]:
    """Where EXISTS has a variable that is bound around the group of its condition, but not for the condition.

    `around` are the variables of all groups around, `values` those that an EXISTS around has values for, `beside` those
    that OPTIONAL adds for its own conditions.
    """
    match node:
        case syntax.GroupPattern(elements=elements):
            known = values | beside | in_scope(node).keys()
            around |= in_scope(node).keys()
            for place, element in enumerate(elements):
                match element:
                    case syntax.OptionalPattern(group=group):
                        left = frozenset(in_scope(*elements[:place]))
                        yield from _unseen(group, around, values, left)
                    case syntax.FilterPattern() | syntax.BindPattern():
                        yield from _unseen(element, around, known)
                    case _:
                        yield from _unseen(element, around, values)
        case syntax.ExistsNode(group=group):
            for each in walk(group):
                if isinstance(each, syntax.VariableNode) and each.name in around - values:
                    yield each.start, each.end, each.name
            yield from _unseen(group, around, values)
        case _:
            inner = (syntax.GroupPattern, syntax.ExistsNode)
            for each in walk(node, closed=inner):
                if isinstance(each, inner):
                    yield from _unseen(each, around, values)


# --- variables of graphs --------------------------------------------------------------------------------------------


def _with_graphs_apart(text: str) -> str:
    """The query with another variable in `GRAPH ?g { … }` for ?g where it matters that ?g is bound after the group.

    The group's solutions are joined with the graph (section 18.6), but the engine knows the graph while it evaluates
    OPTIONAL, MINUS, BIND and conditions in it.
    """
    while _WITHIN_GRAPH.search(text):
        if (form := _form(text)) is None:
            return text
        graph = next(
            (
                node
                for node in walk(form)
                if isinstance(node, syntax.GraphPattern)
                and isinstance(node.name, syntax.VariableNode)
                and _notices(node.group.elements, node.name.name)
            ),
            None,
        )
        if graph is None:
            return text
        text = spliced(text, sorted(_apart(text, form, graph)))
    return text


def _apart(text: str, form: Any, graph: syntax.GraphPattern) -> Iterator[tuple[int, int, str]]:
    name = graph.name.name  # type: ignore[union-attr] # a variable
    new = _free_name(name, text)
    yield graph.start, graph.start, "{ "
    for node in walk(graph.group):
        if isinstance(node, syntax.VariableNode) and node.name == name:
            yield node.start, node.end, f"?{new}"
    yield graph.end, graph.end, f" FILTER(!BOUND(?{new}) || SAMETERM(?{new}, ?{name})) }}"
    for select in walk(form):
        # the other variable is in no solution
        if isinstance(select, syntax.SelectForm) and select.projection is None:
            if not select.where.start <= graph.start < select.where.end:
                continue
            star = next(
                token
                for token in tokenize(text)
                if token.text == "*" and token.start > select.start
            )
            names = " ".join(f"?{each}" for each in in_scope(select.where))
            yield star.start, star.end, names


def _notices(elements: Sequence[Any], name: str) -> bool:
    """Whether solutions of a group may differ where a variable is bound before."""
    bound, conditions = False, []
    for element in elements:
        match element:
            case syntax.FilterPattern():
                conditions.append(element)
            case syntax.TriplesBlock():
                bound = bound or name in in_scope(element)
            case syntax.GroupPattern(elements=inner):
                if _notices(inner, name):
                    return True
                bound = bound or name in _certain([element])
            case syntax.UnionPattern(groups=groups):
                if any(_notices(each.elements, name) for each in groups):
                    return True
                bound = bound or name in _certain([element])
            case syntax.GraphPattern(name=graph, group=group):
                if _notices(group.elements, name):
                    return True
                is_name = isinstance(graph, syntax.VariableNode) and graph.name == name
                bound = bound or is_name or name in _certain([element])
            case syntax.OptionalPattern(group=group) | syntax.MinusPattern(group=group):
                if _mentions(group, name) and (not bound or _notices(group.elements, name)):
                    return True
            case syntax.BindPattern():
                if not bound and _mentions(element, name):
                    return True
    return not bound and any(_mentions(each, name) for each in conditions)


def _mentions(node: Any, name: str) -> bool:
    return any(isinstance(each, syntax.VariableNode) and each.name == name for each in walk(node))


def _binds_graph(elements: Sequence[Any]) -> bool:
    """Whether the engine binds the variable of a graph to each graph in which a group has solutions.

    It does so by triples, and in sub-selects by `with_graph`. A group of others, such as another GRAPH or VALUES, gets
    a filter that is true, which it evaluates in every graph.
    """
    for element in elements:
        match element:
            case syntax.TriplesBlock() | syntax.SelectForm():
                return True
            case syntax.GroupPattern(elements=inner) if _binds_graph(inner):
                return True
            case syntax.UnionPattern(groups=groups) if all(
                _binds_graph(each.elements) for each in groups
            ):
                return True
    return False


# --- MINUS ----------------------------------------------------------------------------------------------------------


def _excludes_nothing(
    text: str, before: Sequence[Any], minus: syntax.MinusPattern, graph: str
) -> bool:
    """Whether a MINUS within the graph of a variable shares no variable with what is before it."""
    if _certain(before) & _certain(minus.group.elements):
        return False
    shared = in_scope(*before).keys() & in_scope(minus.group).keys()
    if not shared:
        return True
    names = ", ".join(f"?{name}" for name in sorted(shared))
    raise error(
        text,
        minus.start,
        f"the embedded engine would compare {graph} in this MINUS, too, where {names} may be unbound",
        f"write FILTER NOT EXISTS, or MINUS behind GRAPH {graph} {{ … }}",
    )


def _certain(elements: Sequence[Any]) -> frozenset[str]:
    """Some of the variables that all solutions of a group bind."""
    names: set[str] = set()
    for element in elements:
        match element:
            case syntax.TriplesBlock():
                names |= in_scope(element).keys()
            case syntax.GroupPattern(elements=inner):
                names |= _certain(inner)
            case syntax.GraphPattern(group=group):
                names |= _certain(group.elements)
            case syntax.UnionPattern(groups=groups):
                names |= frozenset.intersection(*(_certain(each.elements) for each in groups))
    return frozenset(names)


# --- sub-selects ----------------------------------------------------------------------------------------------------


def with_graph(text: str, select: syntax.SelectForm, graph: str) -> Iterator[tuple[int, int, str]]:
    """What a sub-select within the graph of a variable needs so that the engine evaluates it in each graph by itself.

    It projects the variable and groups by it: for the engine, patterns bind it like any other variable. Yields what is
    replaced, as start, end and new text.
    """
    name, items = graph[1:], select.projection or ()
    named = {
        item.variable.name if isinstance(item, syntax.AliasNode) else item.name
        for item in items
        if not isinstance(item, syntax.Unknown)
    }
    inside = in_scope(select.where)
    is_projected = name in named or (select.projection is None and name in inside)
    groups = next((each for each in select.clauses if isinstance(each, syntax.GroupClause)), None)
    slices = next((each for each in select.clauses if isinstance(each, syntax.SliceClause)), None)
    if slices is not None:
        raise error(
            text,
            slices.start,
            f"the embedded engine would apply this {slices.keyword} to all graphs together, not to each {graph}",
            "select by a value, such as MAX, or name one graph",
        )
    if groups is None and (
        group_keys(select.clauses) is not None or next(aggregates(*items), None) is not None
    ):
        raise error(
            text,
            select.start,
            f"the embedded engine would make one group of all graphs, not one of each {graph}",
            f"project {graph}, and write GROUP BY {graph}, which leaves out graphs without solutions",
        )
    if not is_projected and any(
        isinstance(node, syntax.VariableNode) and node.name == name for node in walk(select)
    ):
        raise error(
            text,
            select.start,
            f"the embedded engine would take {graph} in this sub-select for the graph",
            f"rename it in the sub-select, or project {graph}",
        )
    if not is_projected and items:
        yield items[-1].end, items[-1].end, f" {graph}"
    elif not is_projected:
        names = " ".join(f"?{each}" for each in (*inside, name))
        yield select.start, select.where.start, f"SELECT {select.modifier} {names} WHERE "
    if groups is not None and name not in (group_keys(select.clauses) or ()):
        yield groups.end, groups.end, f" {graph}"


# --- alternatives ---------------------------------------------------------------------------------------------------


def _without_alternatives(
    text: str, block: syntax.TriplesBlock, blocks: Sequence[syntax.TriplesBlock]
) -> str | None:
    """Triples with UNIONs in place of alternatives; None: there are none, or none that can be replaced.

    Blank nodes stay in one group: triples that share them are part of each operand.
    """
    ways = [
        [triple.predicate]
        if isinstance(triple.predicate, syntax.VariableNode)
        else list(_ways(triple.predicate))
        for triple in block.triples
    ]
    if all(len(each) == 1 for each in ways):
        return None
    labels = _labels(block)
    if any(other is not block and labels & _labels(other) for other in blocks) or any(
        isinstance(node, syntax.TripleTermNode) for node in walk(block)
    ):
        return None
    plain, unions = "", list[str]()
    for places in _connected(block.triples):
        choices = list(product(*(ways[place] for place in places)))
        if len(choices) > _MOST_WAYS:
            return None
        groups = [
            "".join(
                _triple(text, block.triples[place], path, number)
                for place, path in zip(places, choice, strict=True)
            )
            for number, choice in enumerate(choices)
        ]
        if len(groups) == 1:
            plain += groups[0]
        else:
            unions.append(" UNION ".join(f"{{ {group}}}" for group in groups))
    return plain + " ".join(unions)


def _ways(path: syntax.PathNode) -> Iterator[syntax.PathNode]:
    """The alternatives of a path, none of which has alternatives outside of `?`, `*` and `+`, whose ends are sets."""
    match path:
        case syntax.PathAlternative(paths=paths):
            for one in paths:
                yield from _ways(one)
        case syntax.PathSequence(start, end, paths):
            for parts in product(*map(_ways, paths)):
                yield syntax.PathSequence(start, end, parts)
        case syntax.PathInverse(start, end, inner):
            for one in _ways(inner):
                yield syntax.PathInverse(start, end, one)
        case syntax.PathNegation(start, end, members):
            inverse = tuple(one for one in members if isinstance(one, syntax.PathInverse))
            forward = tuple(one for one in members if isinstance(one, syntax.IriNode))
            if inverse and forward:
                yield syntax.PathNegation(start, end, forward)
                yield syntax.PathNegation(start, end, inverse)
            else:
                yield path
        case _:
            yield path


def _connected(triples: Sequence[syntax.TripleNode]) -> list[list[int]]:
    """The numbers of the triples, by sets that share blank nodes."""
    found: list[tuple[set[str], list[int]]] = []
    for number, triple in enumerate(triples):
        labels, numbers = _labels(triple), [number]
        others = []
        for known in found:
            if known[0] & labels:
                labels |= known[0]
                numbers = known[1] + numbers
            else:
                others.append(known)
        found = [*others, (labels, numbers)]
    return [numbers for _, numbers in found]


def _labels(node: Any) -> set[str]:
    return {each.label for each in walk(node) if isinstance(each, syntax.BlankNode)}


def _triple(
    text: str, triple: syntax.TripleNode, predicate: syntax.PathNode | syntax.VariableNode, way: int
) -> str:
    parts = (triple.subject, predicate, triple.object)
    return " ".join(_written(text, part, way) for part in parts) + " . "


def _written(text: str, node: Any, way: int) -> str:
    match node:
        case syntax.BlankNode(label=label):
            return f"_:way{way}.{label.lstrip('.')}"
        case syntax.IriNode(written=written):
            return str(written)
        case syntax.PathSequence(paths=paths):
            return "/".join(f"({_written(text, path, way)})" for path in paths)
        case syntax.PathAlternative(paths=paths):
            return "|".join(f"({_written(text, path, way)})" for path in paths)
        case syntax.PathInverse(path=syntax.IriNode(written=written)):
            return f"^{written}"
        case syntax.PathInverse(path=path):
            return f"^({_written(text, path, way)})"
        case syntax.PathRepetition(path=path, modifier=modifier):
            return f"({_written(text, path, way)}){modifier}"
        case syntax.PathNegation(members=members):
            names = (_written(text, member, way) for member in members)
            return f"!({'|'.join(names)})"
    return text[node.start : node.end]


# --- ORDER BY ---------------------------------------------------------------------------------------------------------

_ORDER: Final = re.compile(r"(?i)\border\b")
_DIRECTION: Final = re.compile(r"(?i)(?:asc|desc)\b")

# functions whose results the engine compares by a total order: texts, which IRIs come before, and integers
_TEXTS: Final = frozenset(
    ("STR", "LANG", "LANGDIR", "DATATYPE", "IRI", "URI", "UCASE", "LCASE", "CONCAT", "GROUP_CONCAT")
)
_INTEGERS: Final = frozenset(("COUNT", "STRLEN", "YEAR"))
_NAMESPACES: Final = {
    "<xsd:": "<http://www.w3.org/2001/XMLSchema#",
    "<rdf:": "<http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
_KEY_VARIABLE: Final = re.compile(r"\?([a-z]+)")
# By the name of each further key: its expression, of ?key, and of those before it. Triple terms (only they have a
# ?subject) are the last and compared by their parts, where triple terms within triple terms are equal.
_KEYS: Final[Mapping[str, str]] = {
    "subject": "SUBJECT(?key)",
    "predicate": "PREDICATE(?key)",
    "term": "IF(isTRIPLE(?key), OBJECT(?key), ?key)",
    # Blank nodes and IRIs as they are, numbers as doubles, times as an instant in UTC, all others as texts. The engine
    # has no integers above 64 bits. A year is where it begins; durations count from a day of XML Schema's definition of
    # their order, and by a difference since the engine can only subtract them.
    "value": """IF(isLITERAL(?term),
        IF(DATATYPE(?term) IN (<xsd:string>, <rdf:langString>), STR(?term), COALESCE(
            IF(isNUMERIC(?term), <xsd:double>(?term), ?none),
            IF(DATATYPE(?term) IN (<xsd:integer>, <xsd:nonNegativeInteger>, <xsd:positiveInteger>,
                <xsd:nonPositiveInteger>, <xsd:negativeInteger>, <xsd:unsignedLong>, <xsd:decimal>),
                <xsd:double>(STR(?term)), ?none),
            ADJUST(COALESCE(
                IF(DATATYPE(?term) IN (<xsd:dateTime>, <xsd:date>), <xsd:dateTime>(?term), ?none),
                IF(DATATYPE(?term) = <xsd:time>, <xsd:dateTime>(CONCAT("1972-12-31T", STR(?term))), ?none),
                IF(DATATYPE(?term) = <xsd:gYear>,
                    <xsd:dateTime>(REPLACE(STR(?term), "^(-?[0-9]+)", "$1-01-01T00:00:00")), ?none),
                IF(DATATYPE(?term) = <xsd:gYearMonth>,
                    <xsd:dateTime>(REPLACE(STR(?term), "^(-?[0-9]+-[0-9]+)", "$1-01T00:00:00")), ?none),
                "1696-09-01T00:00:00Z"^^<xsd:dateTime> - ("PT0S"^^<xsd:dayTimeDuration> - ?term)
            ), "PT0S"^^<xsd:dayTimeDuration>),
            STR(?term))),
        IF(isTRIPLE(?term), ?none, ?term))""",
    "kind": """IF(isLITERAL(?value),
        IF(isNUMERIC(?value), 1,
        IF(DATATYPE(?value) = <xsd:string>, 4,
        IF(DATATYPE(?term) IN (<xsd:duration>, <xsd:yearMonthDuration>, <xsd:dayTimeDuration>), 3, 2))), ?none)""",
    # doubles do not tell all integers and decimals apart, and other literals are equal if all of them is
    "rest": """IF(isLITERAL(?term), IF(isNUMERIC(?value), COALESCE(<xsd:decimal>(?term), <xsd:decimal>(STR(?term))),
        CONCAT(STR(DATATYPE(?term)), " ", LANG(?term), " ", LANGDIR(?term))), ?none)""",
}
_SORTED: Final = ("subject", "predicate", "kind", "value", "rest")


class _TotalOrders:
    """Rewrites the queries and sub-selects of a text that sort by keys of several kinds."""

    def __init__(self, query: Query) -> None:
        self._text = query.text
        inside = [
            node
            for node in walk(query.form, closed=(syntax.ServicePattern,))  # another engine's
            if isinstance(node, syntax.FormNode)
        ]
        self._check(query)
        self._forms = [
            (form, order)
            for form in inside
            for order in form.clauses
            if isinstance(order, syntax.OrderClause)
            and any(_total(each.expression) is None for each in order.conditions)
        ]
        for item in (item for form, _ in self._forms for item in _items(form)):
            if isinstance(item, syntax.Unknown):
                raise query.refusal(item)
        self._starts = [form.start for form, _ in self._forms]
        names = {node.name for node in walk(query.form) if isinstance(node, syntax.VariableNode)}
        self._prefix = next(
            prefix
            for prefix in ("order" + "_" * length for length in count())
            if not any(name.startswith(prefix) for name in names)
        )
        self._numbers = count(1)

    def text(self) -> str:
        """The whole text."""
        return self._copied(0, len(self._text))

    def _check(self, query: Query) -> None:
        """Refuses text that may hold an ORDER BY which is not in the tree."""
        tokens = QueryText(self._text).tokens
        known = [
            (node.start, node.end)
            for node in walk(query.form)
            if isinstance(node, syntax.OrderClause | syntax.ServicePattern)
        ]
        for token, following in pairwise(tokens):
            if (token.keyword, following.keyword) != ("ORDER", "BY"):
                continue
            if not any(start <= token.start < end for start, end in known):
                raise query.unknown() or error(
                    self._text, token.start, "ORDER BY is not allowed here"
                )

    def _copied(self, start: int, end: int, instead: Mapping[int, tuple[int, str]] = {}) -> str:
        """The text between two offsets, rewritten; `instead` has ends and other texts by starts."""
        pieces, done = [], start
        places = {
            form.start: (form.end, form, order)
            for form, order in self._forms[bisect_left(self._starts, start) :]
            if form.end <= end
        }
        for place in sorted({*places, *instead}):
            if place < done:
                continue
            pieces.append(self._text[done:place])
            if place in instead:
                done, text = instead[place]
            else:
                done, form, order = places[place]
                text = self._ordered(form, order)
            pieces.append(text)
        return "".join((*pieces, self._text[done:end]))

    def _of(self, node: Any) -> str:
        return self._copied(node.start, node.end)

    def _ordered(self, form: Any, order: syntax.OrderClause) -> str:
        """A form that sorts by the keys: around its solutions, from a sub-select with all that the keys need."""
        level = _Level.of(form)
        # without names, all solutions are equal
        if level is None or not level.names:
            outside = self._copied(form.start + 1, order.start), self._copied(order.end, form.end)
            return self._text[form.start] + "".join(outside)
        items = [self._of(item) for item in level.items] or [f"?{name}" for name in level.names]
        bindings, sorts = [], []
        for condition in order.conditions:
            key = self._new()
            bindings.append(f"BIND({self._expression(condition, level, items)} AS ?{key})")
            names = [key]
            if _total(condition.expression) is None:
                names = self._keys(key, bindings)
            sorts += [f"DESC(?{name})" if condition.descending else f"?{name}" for name in names]
        aggregation = self._clauses(form, (syntax.GroupClause, syntax.HavingClause))
        values, slices = (
            self._clauses(form, syntax.ValuesPattern),
            self._clauses(form, syntax.SliceClause),
        )
        return (
            f"{self._head(form, level.names)}WHERE {{ {{ SELECT {' '.join(items)} WHERE {self._of(form.where)}"
            f"{aggregation}{values} }} {' '.join(bindings)} }} ORDER BY {' '.join(sorts)}{slices}"
        )

    def _head(self, form: Any, names: Sequence[str]) -> str:
        dataset = "".join(f"{self._of(each)} " for each in form.dataset)
        if isinstance(form, syntax.SelectForm):
            projection = " ".join(f"?{name}" for name in names)
            return f"SELECT {form.modifier and form.modifier + ' '}{projection} {dataset}"
        if isinstance(
            form, syntax.ConstructForm
        ):  # the pattern of the short form is also its template
            return f"CONSTRUCT {self._of(form.template or form.where)} {dataset}"
        targets = [self._of(each) for each in form.targets or ()] or [f"?{name}" for name in names]
        return f"DESCRIBE {' '.join(targets)} {dataset}"

    def _clauses(self, form: Any, kind: type | tuple[type, ...]) -> str:
        return "".join(f" {self._of(each)}" for each in form.clauses if isinstance(each, kind))

    def _expression(self, condition: syntax.OrderCondition, level: _Level, items: list[str]) -> str:
        """The expression of a condition, outside of the sub-select, whose projection gets what it needs."""
        instead: dict[int, tuple[int, str]] = {}
        if level.keys is None:
            missing: list[syntax.AggregateNode | syntax.VariableNode] = [
                node for node in walk(condition) if isinstance(node, syntax.VariableNode)
            ]
        else:
            missing = [
                node
                for node in walk(condition, closed=(syntax.AggregateNode, syntax.GroupPattern))
                if isinstance(node, syntax.AggregateNode | syntax.VariableNode)
            ]
        for node in missing:
            if isinstance(node, syntax.AggregateNode):
                added, value = self._new(), self._of(node)
            elif node.name in level.projected or node.name not in level.bound:
                continue
            elif level.keys is None or node.name in level.keys:
                level.projected.add(node.name)
                items.append(f"?{node.name}")
                continue
            else:  # section 18.2.4.1: a variable that is no key is a sample of the group
                added, value = self._new(), f"SAMPLE(?{node.name})"
            items.append(f"({value} AS ?{added})")
            instead[node.start] = (node.end, f"?{added}")
        start = condition.start
        if _DIRECTION.match(self._text, start):
            start = self._text.index("(", start)
        return self._copied(start, condition.end, instead)

    def _keys(self, key: str, bindings: list[str]) -> list[str]:
        """Binds the further keys of a key; returns the names of those to sort by."""
        names = {"key": key, "none": f"{self._prefix}0"}
        for name, expression in _KEYS.items():
            names[name] = self._new()
            text = _KEY_VARIABLE.sub(lambda found: f"?{names[found[1]]}", expression)
            for prefix, namespace in _NAMESPACES.items():
                text = text.replace(prefix, namespace)
            bindings.append(f"BIND({text} AS ?{names[name]})")
        return [names[name] for name in _SORTED]

    def _new(self) -> str:
        return f"{self._prefix}{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class _Level:
    """A query or sub-select."""

    names: tuple[str, ...]  # the variables of its solutions
    items: tuple[
        syntax.VariableNode | syntax.AliasNode, ...
    ]  # the projection; empty for all of these
    projected: set[str]  # the names that its sub-select projects
    bound: Collection[str]  # the variables of the pattern
    keys: Collection[str] | None  # those of its groups; None: it does not group

    @classmethod
    def of(cls, form: Any) -> _Level | None:
        """The level of a form; None if sorting it has no meaning."""
        if isinstance(form, syntax.AskForm) or form.where is None:
            return None
        added = values_variables(form.clauses)
        bound = in_scope(form.where) | dict.fromkeys(added)
        keys = group_keys(form.clauses)
        items = _items(form)
        if items and keys is None and next(aggregates(*items), None) is not None:
            keys = ()
        if keys is not None and not items:
            return None
        names = tuple(
            item.name if isinstance(item, syntax.VariableNode) else item.variable.name
            for item in items
        )
        names = names or tuple(bound)
        return cls(names, items, set(names), bound, None if keys is None else {*keys, *added})


def _items(form: Any) -> tuple[Any, ...]:
    """The projection; empty for all variables."""
    return form.projection or () if isinstance(form, syntax.SelectForm) else ()


def _total(expression: syntax.ExpressionNode) -> str | None:
    """What an expression can only be, if the engine compares this by a total order; None: anything."""
    match expression:
        case (
            syntax.CallNode(function="COALESCE", arguments=parts)
            | syntax.CallNode(function="IF", arguments=(_, *parts))
        ):
            kinds = {_total(part) for part in parts}
            return kinds.pop() if len(kinds) == 1 else None
        case syntax.CallNode(function=name) | syntax.AggregateNode(name=name) if name in _TEXTS:
            return "texts"
        case syntax.CallNode(function=name) | syntax.AggregateNode(name=name) if name in _INTEGERS:
            return "integers"
        case syntax.LiteralNode(datatype=None):
            return "texts"
    return None


# --- depth ----------------------------------------------------------------------------------------
# Rejects queries that would overflow the stack of the embedded engine, which parses and plans by recursion.
#
# An overflow ends the process. Nested brackets make a query deep, and so do many parts in a row: `a UNION b UNION c`
# is read as `(a UNION b) UNION c` (SPARQL 1.2 Query, section 18.2.2).

MOST_NESTED: Final = 500
"""The most nested brackets, and the most `!` in a row."""

MOST_JOINED: Final = 4000
"""The most operators that join the parts of one group or expression; those that take more stack count twice."""

_OPENING: Final = frozenset(("{", "(", "[", "<<", "<<(", "{|"))
_CLOSING: Final = frozenset(("}", ")", "]", ">>", ")>>", "|}"))
_JOINING: Final = {
    "UNION": 1,
    "FILTER": 1,
    "OPTIONAL": 2,
    "MINUS": 2,
    "BIND": 2,
    "LATERAL": 2,
} | dict.fromkeys("|&+-*/", 1)
_HINT: Final = "nest less, or split the query into several"


@lru_cache(maxsize=16)  # a continuous query is evaluated again and again
def check_depth(text: str) -> None:
    """Checks that a query is neither nested nor joined more than the embedded engine can take.

    >>> check_depth("ASK { FILTER(" + 100 * "(" + "1" + 100 * ")" + ") }")
    >>> check_depth("ASK { FILTER(" + 1000 * "(" + "1" + 1000 * ")" + ") }")
    Traceback (most recent call last):
    construct_messages.errors.QueryError: line 1, column 511: the query nests more than 500 deep
      hint: nest less, or split the query into several
    """
    if len(text) <= MOST_NESTED:
        return
    joined, negations = [0], 0
    for kind, written, start in tokenize(text):
        negations = negations + 1 if written == "!" else 0
        if kind == "mark" and written in _OPENING:
            joined.append(0)
        elif kind == "mark" and written in _CLOSING:
            if len(joined) > 1:
                joined.pop()
        elif kind in ("other", "word"):
            joined[-1] += _JOINING.get(written.upper(), 0)
            if joined[-1] > MOST_JOINED:
                raise error(
                    text, start, f"the query joins more than {MOST_JOINED} parts in a row", _HINT
                )
        if len(joined) > MOST_NESTED or negations > MOST_NESTED:
            raise error(text, start, f"the query nests more than {MOST_NESTED} deep", _HINT)
