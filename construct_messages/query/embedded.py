"""The text of a query as the embedded engine, pyoxigraph 0.5, evaluates it by the specification.

Prefixed names with several full stops are written as IRIs: it refuses `ex:a.b.c` after `ex:a.b` (SPARQL 1.2 Query,
section 19.8, [PN_LOCAL]). Alternatives of paths are written as UNION: it gives a solution of several of them once, not
once for each (section 18.4). In `GRAPH ?g`, it takes ?g for a variable that both sides of MINUS share (section 18.6),
hides it in sub-selects that do not project it (section 13.3), does not bind it where no triple is matched directly,
as in `GRAPH ?g { GRAPH ?h { … } }`, and binds it before what is in the group, as
in `GRAPH ?g { … OPTIONAL { ?g … } }`. In
`?s ?p ?x { ?s ?q ?o FILTER EXISTS { ?x … } }`, EXISTS sees ?x, which the group of the FILTER does not bind (section
18.2.2.2). It gives the variables of `SELECT *` in alphabetical order, other engines give them in that of the text.

The rest of the text is unchanged, and so are the columns of other lines. Its ORDER BY is mended in `total_orders.py`.
Nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count, product
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
from construct_messages.query.syntax.parser import parse
from construct_messages.query.tokens import Token, error, spliced, tokenize
from construct_messages.query.total_orders import ORDER, TotalOrders

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
_COUNT: Final = re.compile(r"(?i)\bCOUNT\s*+\(\s*+(?:DISTINCT\b\s*+)?+(?!\*|[?$]\w++\s*+\))")
_NESTED: Final = re.compile(r"\{[^}]*\{")
_EXPRESSION: Final = re.compile(r"(?i)\b(AS|BIND|EXISTS|FILTER|BY|HAVING)\b")
_WITHIN_GRAPH: Final = re.compile(r"(?i)\bGRAPH\b")
_MOST_WAYS: Final = 64


@lru_cache(maxsize=16)  # a continuous query is evaluated again and again
def for_embedded(text: str) -> str:
    """The text to pass to the embedded engine; a query that it would evaluate wrongly, or that is too deep for it, is
    an error.

    >>> for_embedded("SELECT * { ?s ?p ?o }")
    'SELECT ?s ?p ?o { ?s ?p ?o }'
    >>> for_embedded("SELECT ?s ?o { ?s <urn:p>|<urn:q>/<urn:r> ?o }")
    'SELECT ?s ?o { { ?s <urn:p> ?o . } UNION { ?s (<urn:q>)/(<urn:r>) ?o . } }'
    >>> for_embedded("SELECT ?s { GRAPH ?g { ?s ?p ?o MINUS { ?x ?q ?y } } }")
    'SELECT ?s { GRAPH ?g { ?s ?p ?o  } }'
    >>> for_embedded("SELECT ?x { GRAPH ?g { VALUES ?x { 1 2 } } }")
    'SELECT ?x { GRAPH ?g { { FILTER(true) } VALUES ?x { 1 2 } } }'
    >>> for_embedded("SELECT ?s ?g { GRAPH ?g { ?s ?p ?o OPTIONAL { ?g ?p ?x } } }")
    'SELECT ?s ?g { { GRAPH ?g { ?s ?p ?o OPTIONAL { ?g_0 ?p ?x } } FILTER(!BOUND(?g_0) || SAMETERM(?g_0, ?g)) } }'
    >>> for_embedded("SELECT ?s { ?s ?p ?x { ?s ?q ?o FILTER EXISTS { ?x ?q ?o } } }")
    'SELECT ?s { ?s ?p ?x { ?s ?q ?o FILTER EXISTS { ?x_0 ?q ?o } } }'
    >>> for_embedded("SELECT ?s { ?s ?p ?x OPTIONAL { ?s ?q ?o BIND(STR(?x) AS ?y) } }")
    'SELECT ?s { ?s ?p ?x OPTIONAL { ?s ?q ?o BIND(STR(?x_0) AS ?y) } }'
    >>> for_embedded("SELECT (COUNT(1 / ?o) AS ?n) { ?s ?p ?o }")
    'SELECT (COUNT(?count_14_0) AS ?n) { ?s ?p ?o  BIND(1 / ?o AS ?count_14_0)}'
    >>> for_embedded("SELECT ?s { ?s ?p ?o } ORDER BY DESC(?o) LIMIT 5").partition(" BIND")[0]
    'SELECT ?s WHERE { { SELECT ?s ?o WHERE { ?s ?p ?o } }'
    >>> for_embedded("SELECT ?s { ?s ?p ?o } ORDER BY STR(?s)")
    'SELECT ?s { ?s ?p ?o } ORDER BY STR(?s)'
    """
    text = _with_expressions_apart(_with_counts_apart(names_in_full(text)))
    text = _spliced(_with_graphs_apart(text))
    if ORDER.search(text):
        ordered = TotalOrders(parse(text)).text()
        if ordered != text:
            check_depth(ordered)
        text = ordered
    return _with_variables_named(
        text
    )  # at the end: positions of errors are those of the written query


@lru_cache(maxsize=1)  # most steps leave the text as it is
def _form(text: str) -> Any:
    """The query as a tree. None: it has an error, which the engine reports."""
    try:
        return parse(text).form
    except QueryError:
        return None


def _with_variables_named(text: str) -> str:
    """The query with the variables of `SELECT *` in the order of the text; not in sub-selects, where none shows."""
    if "*" not in text.partition("{")[0] or not isinstance(form := _form(text), syntax.SelectForm):
        return text
    if form.projection is not None or group_keys(form.clauses) is not None:
        return text
    names = in_scope(form.where) | dict.fromkeys(values_variables(form.clauses))
    # unknown text may bind others
    if not names or any(isinstance(node, syntax.Unknown) for node in walk(form)):
        return text
    star = _star(text, form)
    return spliced(text, [(star.start, star.end, " ".join(f"?{name}" for name in names))])


def _star(text: str, select: syntax.SelectForm) -> Token:
    """The `*` that a SELECT has as its projection."""
    return next(
        token for token in tokenize(text) if token.text == "*" and token.start > select.start
    )


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


# --- expressions in nested groups -------------------------------------------------------------------------------------


def _with_expressions_apart(text: str) -> str:
    """The query with other variables in expressions for those which are not bound there, but further outside."""
    if not (_NESTED.search(text) and _EXPRESSION.search(text)) or (form := _form(text)) is None:
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
    """Where an expression has a variable that is bound around its group, but not for the expression.

    `around` are the variables of all groups around, `values` those that an EXISTS around has values for, `beside` those
    that OPTIONAL adds for its own conditions.
    """
    match node:
        case syntax.GroupPattern(elements=elements):
            inside = in_scope(node).keys()
            around |= inside
            before: set[str] = set()
            for element in elements:
                match element:
                    case syntax.OptionalPattern(group=group):
                        yield from _unseen(group, around, values, frozenset(before))
                    case syntax.FilterPattern(condition=condition):
                        yield from _unseen_in([condition], around, values | beside | inside)
                    case syntax.BindPattern(alias=alias):
                        yield from _unseen_in([alias.expression], around, values | before)
                    case _:
                        yield from _unseen(element, around, values)
                before |= in_scope(element).keys()
        case syntax.SelectForm(where=where, projection=projection, clauses=clauses):
            if projection is not None:  # the others are variables of their own
                values &= {
                    item.name for item in projection if isinstance(item, syntax.VariableNode)
                }
            yield from _unseen(where, around, values)
            known = values | in_scope(where).keys()
            keys, later = _conditions(clauses)
            yield from _unseen_in(keys, around, known)
            later += [item for item in projection or () if isinstance(item, syntax.AliasNode)]
            known |= {each.variable.name for each in later if isinstance(each, syntax.AliasNode)}
            known |= {*values_variables(clauses), *(group_keys(clauses) or ())}
            yield from _unseen_in(later, around, known)
        case syntax.ExistsNode(group=group):
            for each in walk(group):
                if isinstance(each, syntax.VariableNode) and each.name in around - values:
                    yield each.start, each.end, each.name
            yield from _unseen(group, around, values)
        case _:
            inner = (syntax.GroupPattern, syntax.SelectForm)
            for each in walk(node, closed=inner):
                if isinstance(each, inner):
                    yield from _unseen(each, around, values)


def _conditions(clauses: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The expressions of GROUP BY, and those of HAVING and ORDER BY."""
    keys: list[Any] = []
    later: list[Any] = []
    for clause in clauses:
        match clause:
            case syntax.GroupClause(conditions=conditions):
                for each in conditions:
                    if not isinstance(each, syntax.VariableNode):
                        keys.append(each.expression if isinstance(each, syntax.AliasNode) else each)
            case syntax.HavingClause(conditions=conditions):
                later += conditions
            case syntax.OrderClause(conditions=conditions):
                later += [each.expression for each in conditions]
    return keys, later


def _unseen_in(
    expressions: Sequence[Any], around: frozenset[str], known: frozenset[str]
) -> Iterator[tuple[int, int, str]]:
    hidden = around - known
    for each in walk(*expressions, closed=(syntax.ExistsNode,)):
        if isinstance(each, syntax.VariableNode) and each.name in hidden:
            yield each.start, each.end, each.name
        elif isinstance(each, syntax.ExistsNode):
            yield from _unseen(each, around, known)


# --- COUNT of expressions ---------------------------------------------------------------------------------------------


def _with_counts_apart(text: str) -> str:
    """The query with COUNT of a variable for COUNT of an expression: an error would leave the engine's count unbound.

    Errors are not counted (section 18.5.1.2), and BIND leaves its variable unbound where there is one.
    """
    if not _COUNT.search(text) or (form := _form(text)) is None:
        return text
    selects = [each for each in walk(form) if isinstance(each, syntax.SelectForm)]
    return spliced(text, sorted(each for select in selects for each in _counts(text, select)))


def _counts(text: str, select: syntax.SelectForm) -> Iterator[tuple[int, int, str]]:
    keys = [each for each in select.clauses if isinstance(each, syntax.GroupClause)]
    aliases = [each.variable.name for each in walk(*keys) if isinstance(each, syntax.AliasNode)]
    names: dict[str, str] = {}
    for each in aggregates(select.projection or (), select.clauses):
        if each.name != "COUNT" or isinstance(each.argument, syntax.VariableNode | None):
            continue
        if any(_mentions(each.argument, alias) for alias in aliases):
            continue  # it is not bound in the group
        start, end = each.argument.start, each.argument.end
        name = f"?{_free_name(f'count_{start}', text)}"
        yield start, end, names.setdefault(text[start:end], name)
    where = select.where
    binds = "".join(f" BIND({expression} AS {name})" for expression, name in names.items())
    if binds and any(isinstance(each, syntax.SelectForm) for each in where.elements):
        yield where.start, where.start, "{ "
        yield where.end, where.end, f"{binds} }}"
    elif binds:
        yield where.end - 1, where.end - 1, binds


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
            star = _star(text, select)
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
