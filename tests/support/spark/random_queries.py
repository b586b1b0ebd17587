"""Random datasets, and random queries over them that mostly find something.

A query is text for any engine, and what it is made of: each operator, and each pair of an operator and the one it
stands in, so that a run can say what it covered. Left out, because SPARQL leaves it open or the other engine has
it otherwise: order within GROUP_CONCAT, which one SAMPLE takes, LIMIT without an order over all variables, MIN
and MAX over values that do not compare, the variable of GRAPH within its own group. And what pyoxigraph does not
bind the variable of GRAPH for: groups that begin with another thing than triples, sub-selects, paths of no length. It
takes any term, also NaN or an IRI, to be neither less nor greater than itself, and `?x NOT IN ()` for `!?x`. An
alternative path gives it each pair once, so alternatives stand in paths of any length only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import pyoxigraph as ox

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
PREFIXES: Final = f"PREFIX : <http://example.org/>\nPREFIX xsd: <{_XSD}>\n"

SUBJECTS: Final = (":a", ":b", ":c", ":d", ":e", "_:x", "_:y")
PREDICATES: Final = (":p", ":q", ":r", ":s")
GRAPHS: Final = ("", "", "", ":g1", ":g2")
LITERALS: Final = (
    *(
        '""',
        '"one"',
        '"two"',
        '"Two"',
        '"1"',
        '"é😀"',
        r'"a \"quote\" \\ and\nline"',
        '"# @message"',
    ),
    *('"one"@en', '"one"@fr', '"colour"@en-gb', '"one"@nl', "true", "false"),
    *(
        "0",
        "1",
        "2",
        "-7",
        "42",
        "9007199254740993",
        "9007199254740992",
        "1.5",
        "-0.25",
        "1.0",
        "0.1",
    ),
    *(
        "1e0",
        "1.5e0",
        "2.5e300",
        "-0e0",
        '"NaN"^^xsd:double',
        '"INF"^^xsd:double',
        '"1"^^xsd:float',
        '"0.1"^^xsd:float',
    ),
    *(
        '"1"^^xsd:double',
        '"7"^^xsd:int',
        '"255"^^xsd:unsignedByte',
        '"many"^^xsd:integer',
        '"1.0"^^xsd:integer',
    ),
    *(
        '"2020-02-29T12:00:00Z"^^xsd:dateTime',
        '"2020-02-29T12:00:00"^^xsd:dateTime',
        '"2020-02-30"^^xsd:date',
    ),
    *(
        '"2020-02-29T13:00:00+01:00"^^xsd:dateTime',
        '"2020-02-29"^^xsd:date',
        '"2020-03-01Z"^^xsd:date',
    ),
    *('"x"^^:datatype', '"y"^^:datatype', '"P1D"^^xsd:dayTimeDuration'),
    *(
        '"-0.0"^^xsd:decimal',
        '"-0"^^xsd:float',
        '"NaN"^^xsd:float',
        '"1.50"^^xsd:float',
        '"01"^^xsd:integer',
    ),
    *(
        '"16777217"^^xsd:integer',
        '"16777216"^^xsd:float',
        '"2020-03-01T00:00:00"^^xsd:dateTime',
        '"2020-03-01"^^xsd:date',
    ),
)


def _stored(text: str) -> list[ox.Quad]:
    """Quads in TriG, in the canonical forms that pyoxigraph's store gives them, with their labels of blank nodes."""
    store = ox.Store()
    prologue = PREFIXES.replace("PREFIX", "@prefix").replace(">\n", "> .\n")
    store.extend(ox.parse(prologue + text, format=ox.RdfFormat.TRIG))  # `load` would draw labels
    return sorted(store, key=str)


CONSTANTS: Final = tuple(str(_stored(f":s :p {literal} .")[0].object) for literal in LITERALS)
"""The literals as they are stored: the other engine takes `1.0` in a query for `1`."""


def dataset(random: Random) -> list[ox.Quad]:
    """Some quads over few terms."""
    lines = []
    for _ in range(random.randint(8, 30)):
        object = random.choice(SUBJECTS if random.random() < 0.45 else LITERALS)
        statement = f"{random.choice(SUBJECTS)} {random.choice(PREDICATES)} {object} ."
        graph = random.choice(GRAPHS)
        lines.append(f"{graph} {{ {statement} }}" if graph else statement)
    return _stored("\n".join(lines))


def query_over(random: Random, quads: list[ox.Quad]) -> Query:
    """A query, drawn again most times that it finds nothing: an empty answer shows little."""
    store = ox.Store()
    store.extend(quads)
    while True:
        query = Grammar(random, quads).query()
        solutions = store.query(query.text)
        assert isinstance(solutions, ox.QuerySolutions)
        if next(solutions, None) is not None or random.random() < 0.01:
            return query


def template_over(random: Random, query: Query) -> str:
    """A template for the solutions of a query, with quads that its literals and unbound variables are no part of."""

    def term(variables: float, *constants: str) -> str:
        return (
            f"?{random.choice(query.variables)}"
            if random.random() < variables
            else random.choice(constants)
        )

    quads = []
    for _ in range(random.randint(1, 4)):
        quad = f"{term(0.6, ':a', '_:b', '[]')} {term(0.2, *PREDICATES)} {term(0.7, '_:b', *CONSTANTS)} ."
        quads.append(
            f"GRAPH {term(0.5, ':g1', '_:b')} {{ {quad} }}" if random.random() < 0.2 else quad
        )
    return f"{{ {' '.join(quads)} }}"


@dataclass
class Query:
    """A SELECT, built from the inside out.

    Args:
        select: the query, without its prologue.
        variables: what it projects.
        operators: what it is made of.
        pairs: (outer, inner) operators.
    """

    select: str
    variables: tuple[str, ...]
    operators: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)

    @property
    def text(self) -> str:
        return PREFIXES + self.select


class Grammar:
    """Draws queries from a `Random`."""

    def __init__(self, random: Random, quads: list[ox.Quad]) -> None:
        self._random = random
        self._quads = quads
        self._within: list[str] = []
        self._fresh = 0
        self.operators: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()

    def query(self) -> Query:
        """A SELECT query."""
        text, variables = self._select(depth=2, top=True)
        names = tuple(sorted(variables))
        return Query(text, names, self.operators, self.pairs)

    # --- groups ---------------------------------------------------------------------------------------------------

    def _enter(
        self, operator: str, make: Callable[[], tuple[str, set[str]]]
    ) -> tuple[str, set[str]]:
        self.operators.add(operator)
        if self._within:
            self.pairs.add((self._within[-1], operator))
        self._within.append(operator)
        try:
            return make()
        finally:
            self._within.pop()

    def _group(self, depth: int, about: frozenset[str] = frozenset()) -> tuple[str, set[str]]:
        """The inside of `{ … }`, and the variables in its scope; `about` are variables it had better mention."""
        random = self._random
        text, variables = self._first(depth, about)
        parts = [text]
        for _ in range(random.choice((0, 1, 1, 2, 2)) if depth else random.choice((0, 1))):
            kinds = ["bgp", "bgp", "filter", "filter", "filter", "filter", "bind", "bind", "values"]
            if depth:
                kinds += [
                    "optional",
                    "optional",
                    "optional",
                    "union",
                    "minus",
                    "exists",
                    "exists",
                    "path",
                    "graph",
                    "subselect",
                    "linked",
                    "linked",
                    "linked",
                ]
            if self._in_any_graph:
                kinds = [kind for kind in kinds if kind not in ("subselect", "linked")]
            kind = random.choice(kinds)
            more, added = self._element(kind, depth, variables)
            parts.append(more)
            variables = variables | added
        return " ".join(parts), variables

    @property
    def _in_any_graph(self) -> bool:
        return "GRAPH ?g" in self._within

    def _first(self, depth: int, about: frozenset[str]) -> tuple[str, set[str]]:
        kinds = ["bgp"] * 6
        if depth and not self._in_any_graph:
            kinds += ["union", "graph", "path", "values", "subselect", "group", "optional"]
        return self._element(self._random.choice(kinds), depth, set(about))

    def _element(self, kind: str, depth: int, known: set[str]) -> tuple[str, set[str]]:
        random = self._random
        about = frozenset(known)
        match kind:
            case "bgp":
                return self._enter("BGP", lambda: self._bgp(about))
            case "filter":
                return self._enter(
                    "FILTER", lambda: (f"FILTER({self._condition(about, 2)})", set())
                )
            case "bind":
                return self._enter("BIND", lambda: self._bind(about))
            case "values":
                return self._enter("VALUES", lambda: self._values(about))
            case "optional":
                text, names = self._enter("OPTIONAL", lambda: self._group(depth - 1, about))
                return f"OPTIONAL {{ {text} }}", names
            case "union":

                def sides() -> tuple[str, set[str]]:
                    left, some = self._group(depth - 1, about)
                    right, others = self._group(depth - 1, about)
                    return f"{{ {left} }} UNION {{ {right} }}", some | others

                return self._enter("UNION", sides)
            case "minus":
                text, _ = self._enter("MINUS", lambda: self._group(depth - 1, about))
                return f"MINUS {{ {text} }}", set()
            case "exists":
                text, _ = self._enter("EXISTS", lambda: self._group(depth - 1, about))
                return f"FILTER {random.choice(('', 'NOT '))}EXISTS {{ {text} }}", set()
            case "path":
                return self._enter("path", lambda: self._path(about))
            case "graph":
                if random.random() < 0.6:
                    text, names = self._enter("GRAPH", lambda: self._group(depth - 1, about))
                    return f"GRAPH {random.choice((':g1', ':g2'))} {{ {text} }}", names
                graph = self._new()
                text, names = self._enter("GRAPH ?g", lambda: self._group(depth - 1, about))
                return f"GRAPH ?{graph} {{ {text} }}", names | {graph}
            case "subselect":
                text, names = self._enter("SELECT", lambda: self._select(depth - 1))
                return f"{{ {text} }}", names
            case "linked":
                return self._linked(about)
        text, names = self._enter("group", lambda: self._group(depth - 1, about))
        return f"{{ {text} }}", names

    def _linked(self, about: frozenset[str]) -> tuple[str, set[str]]:
        """A part that nothing but an equality links to the rest, in one of the ways to say so."""
        random = self._random
        subject, object, more = self._new(), self._new(), self._new()
        predicate, other = random.sample(PREDICATES, 2)
        pattern = f"?{subject} {predicate} ?{object} ."
        left, right = f"?{self._variable(about)}", f"?{random.choice((subject, object, object))}"
        tests = (
            f"{left} = {right}",
            f"{right} = {left}",
            f"sameTerm({left}, {right})",
            f"STR({left}) = STR({right})",
        )
        condition = random.choice(tests)
        ways = {
            "group": f"{pattern} FILTER({condition})",
            "OPTIONAL": f"OPTIONAL {{ {pattern} FILTER({condition}) }}",
            "OPTIONAL, asked for": f"OPTIONAL {{ {pattern} }} FILTER({condition})",
            "not BOUND": f"OPTIONAL {{ {pattern} FILTER({condition}) }} FILTER(!BOUND(?{subject}))",
            "UNION": f"{{ {pattern} }} UNION {{ ?{subject} {other} ?{object} . }} FILTER({condition})",
            "EXISTS": f"FILTER EXISTS {{ {pattern} FILTER({condition}) }}",
            "NOT EXISTS of OPTIONAL": f"FILTER NOT EXISTS {{ {pattern} OPTIONAL {{ ?{object} {other} ?{more} . }} "
            f"FILTER({condition}) }}",
            "MINUS of OPTIONAL": f"MINUS {{ {pattern} OPTIONAL {{ ?{object} {other} {left} . }} }}",
        }
        way = random.choice(sorted(ways))
        binds = not way.endswith(("EXISTS", "of OPTIONAL"))
        return self._call(f"linked by {way}", ways[way]), {subject, object} if binds else set()

    def _new(self) -> str:
        self._fresh += 1
        return f"n{self._fresh}"

    # --- leaves ---------------------------------------------------------------------------------------------------

    def _variable(self, about: frozenset[str]) -> str:
        if about and self._random.random() < 0.7:
            return self._random.choice(sorted(about))
        return self._random.choice("uvwxyz")

    def _triple(self, about: frozenset[str]) -> tuple[str, set[str]]:
        """A pattern that some quad matches by itself."""
        random = self._random
        quad = random.choice(self._quads)
        names: set[str] = set()

        def position(term: object, chance: float) -> str:
            if isinstance(term, ox.BlankNode) or random.random() < chance:
                name = self._variable(about)
                names.add(name)
                return f"?{name}"
            return str(term)

        return (
            f"{position(quad.subject, 0.9)} {position(quad.predicate, 0.1)} {position(quad.object, 0.85)} .",
            names,
        )

    def _bgp(self, about: frozenset[str]) -> tuple[str, set[str]]:
        texts = []
        names: set[str] = set()
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3))):
            text, added = self._triple(about | names)
            texts.append(text)
            names |= added
        return " ".join(texts), names

    def _path(self, about: frozenset[str]) -> tuple[str, set[str]]:
        random = self._random
        p, q = random.sample(PREDICATES, 2)
        paths = [
            f"{p}/{q}",
            f"^{p}",
            f"{p}+",
            f"({p}|{q})+",
            f"({p}|^{q})+",
            f"!({p}|{q})",
            f"!{p}",
            f"!^{p}",
        ]
        if not self._in_any_graph:
            paths += [f"{p}?", f"{p}*", f"{p}/{q}?"]
        path = random.choice(paths)
        end = self._variable(about)
        if any(
            sign in path for sign in "?+*"
        ):  # one end bound: both open is asked for by an option
            start = random.choice(
                [
                    str(quad.subject)
                    for quad in self._quads
                    if isinstance(quad.subject, ox.NamedNode)
                ]
                or [":a"]
            )
            return f"{start} {path} ?{end} .", {end}
        start = self._variable(about)
        return f"?{start} {path} ?{end} .", {start, end}

    def _values(self, about: frozenset[str]) -> tuple[str, set[str]]:
        random = self._random
        names = sorted({self._variable(about), self._variable(about)})

        def value() -> str:
            if random.random() < 0.2:
                return "UNDEF"
            quad = random.choice(self._quads)
            term = random.choice((quad.subject, quad.object))
            return ":a" if isinstance(term, ox.BlankNode) else str(term)

        solutions = " ".join(
            f"({' '.join(value() for _ in names)})" for _ in range(random.randint(1, 4))
        )
        return f"VALUES ({' '.join('?' + name for name in names)}) {{ {solutions} }}", set(names)

    def _bind(self, about: frozenset[str]) -> tuple[str, set[str]]:
        name = self._new()
        return f"BIND({self._value(about, 2)} AS ?{name})", {name}

    # --- expressions ----------------------------------------------------------------------------------------------

    def _call(self, operator: str, text: str) -> str:
        self.operators.add(operator)
        if self._within:
            self.pairs.add((self._within[-1], operator))
        return text

    def _condition(self, about: frozenset[str], depth: int) -> str:
        random = self._random
        kind = random.choice(
            (
                "compare",
                "compare",
                "compare",
                "test",
                "test",
                "value",
                *(("and", "or", "not", "in") if depth else ()),
            )
        )
        match kind:
            case "compare":
                left, right = self._value(about, depth - 1), self._value(about, depth - 1)
                sign = random.choice(("=", "=", "!=", "<", ">", "<=", ">="))
                compared = self._call(sign, f"({left} {sign} {right})")
                return (
                    compared
                    if sign in ("=", "!=")
                    else f"(!sameTerm({left}, {right}) && {compared})"
                )
            case "test":
                name = random.choice(
                    (
                        "BOUND",
                        "isIRI",
                        "isBlank",
                        "isLiteral",
                        "isNumeric",
                        "REGEX",
                        "CONTAINS",
                        "LANGMATCHES",
                        "sameTerm",
                    )
                )
                variable = f"?{self._variable(about)}"
                pattern, flags = (
                    random.choice(("^o", "e$", "[a-z]+", "t.o")),
                    random.choice(("", "i")),
                )
                arguments = {
                    "REGEX": f'STR({variable}), "{pattern}", "{flags}"',
                    "CONTAINS": f'STR({variable}), "o"',
                    "LANGMATCHES": f'LANG({variable}), "{random.choice(("*", "en", "fr"))}"',
                    "sameTerm": f"{variable}, {self._value(about, 0)}",
                }
                return self._call(name.upper(), f"{name}({arguments.get(name, variable)})")
            case "and":
                return self._call(
                    "&&",
                    f"({self._condition(about, depth - 1)} && {self._condition(about, depth - 1)})",
                )
            case "or":
                return self._call(
                    "||",
                    f"({self._condition(about, depth - 1)} || {self._condition(about, depth - 1)})",
                )
            case "not":
                return self._call("!", f"(!{self._condition(about, depth - 1)})")
            case "in":
                members = ", ".join(self._value(about, 0) for _ in range(random.randint(1, 3)))
                return self._call(
                    "IN", f"({self._value(about, 0)} {random.choice(('', 'NOT '))}IN ({members}))"
                )
        return self._value(about, depth)

    def _value(self, about: frozenset[str], depth: int) -> str:
        random = self._random
        if depth <= 0 or random.random() < 0.5:
            if random.random() < 0.65:
                return f"?{self._variable(about)}"
            return random.choice(CONSTANTS)
        kind = random.choice(
            ("arithmetic", "arithmetic", "function", "function", "if", "coalesce", "cast")
        )
        inner = self._value(about, depth - 1)
        match kind:
            case "arithmetic":
                sign = random.choice("+-*")
                return self._call(sign, f"({inner} {sign} {self._value(about, depth - 1)})")
            case "if":
                condition = self._condition(about, depth - 1)
                return self._call(
                    "IF", f"IF({condition}, {inner}, {self._value(about, depth - 1)})"
                )
            case "coalesce":
                return self._call("COALESCE", f"COALESCE({inner}, {self._value(about, depth - 1)})")
            case "cast":
                name = random.choice(
                    ("integer", "decimal", "double", "float", "string", "boolean", "dateTime")
                )
                return self._call(f"xsd:{name}", f"xsd:{name}({inner})")
        name = random.choice(
            (
                "STR",
                "LANG",
                "DATATYPE",
                "STRLEN",
                "UCASE",
                "LCASE",
                "ABS",
                "CEIL",
                "FLOOR",
                "ROUND",
                "YEAR",
                "TZ",
                "CONCAT",
                "SUBSTR",
            )
        )
        arguments = {"CONCAT": f"{inner}, {self._value(about, 0)}", "SUBSTR": f"STR({inner}), 2"}
        return self._call(name, f"{name}({arguments.get(name, inner)})")

    # --- selects --------------------------------------------------------------------------------------------------

    def _select(self, depth: int, *, top: bool = False) -> tuple[str, set[str]]:
        random = self._random
        body, variables = self._group(depth)
        variables = variables or {"u"}
        if random.random() < 0.2:
            return self._enter("GROUP", lambda: self._grouped(body, variables))
        names = (
            sorted(variables)
            if top or random.random() < 0.5
            else sorted(random.sample(sorted(variables), 1))
        )
        projection = " ".join(f"?{name}" for name in names)
        distinct = random.choice(("", "", "DISTINCT ")) if top or random.random() < 0.5 else ""
        if distinct:
            self._call("DISTINCT", "")
        text = f"SELECT {distinct}{projection} WHERE {{ {body} }}"
        if random.random() < 0.2:
            self._call("ORDER BY", "")
            text += " ORDER BY " + " ".join(f"?{name}" for name in names)
        return text, set(names)

    def _grouped(self, body: str, variables: set[str]) -> tuple[str, set[str]]:
        random = self._random
        key = random.choice(sorted(variables))
        argument = random.choice(sorted(variables))
        name = self._new()
        aggregate = random.choice(
            (
                "COUNT(*)",
                f"COUNT(?{argument})",
                f"COUNT(DISTINCT ?{argument})",
                f"SUM(STRLEN(STR(?{argument})))",
            )
        )
        self._call(aggregate.partition("(")[0], "")
        text = f"SELECT ?{key} ({aggregate} AS ?{name}) WHERE {{ {body} }} GROUP BY ?{key}"
        if random.random() < 0.3:
            text += f" HAVING({self._call('HAVING', f'COUNT(*) > {random.randint(0, 2)}')})"
        return text, {key, name}
