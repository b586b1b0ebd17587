"""Trees of algebra nodes at random, and the SPARQL text that means the same: what other engines can be asked.

The patterns bind few variables to few terms, so that solutions meet, and leave many unbound.
"""

from __future__ import annotations

from hypothesis import strategies as st

from construct_messages.query.algebra.nodes import (
    Bgp,
    Call,
    Constant,
    Distinct,
    Exists,
    Expression,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Node,
    Project,
    Triple,
    Union,
    Values,
    Var,
    VarOrTerm,
)
from construct_messages.rdf.message import Quad
from construct_messages.rdf.terms import Term

VARIABLES = tuple(map(Var, "xyz"))
TERMS = tuple(Term(f"<urn:{name}>") for name in "abc")
P, Q, GRAPH = Term("<urn:p>"), Term("<urn:q>"), Term("<urn:g>")
QUADS = tuple(
    Quad(*(Term(f"<urn:{name}>") for name in names[:3]), GRAPH if names[3:] else None)
    for names in ("apb", "bpc", "apc", "cqc", "aqa", "bqa", "apbg", "cpag", "bqbg")
)

_terms = st.sampled_from(TERMS)
_variables = st.sampled_from(VARIABLES)


@st.composite
def _values(draw: st.DrawFn) -> Values:
    variables = draw(st.lists(_variables, min_size=1, max_size=3, unique=True))
    solution = st.tuples(*[st.none() | _terms] * len(variables))
    return Values(tuple(variables), tuple(draw(st.lists(solution, max_size=4))))


_places = _variables | _variables | _terms
_bgps = st.builds(
    lambda graph, patterns: Bgp(tuple(Triple(s, p, o, graph) for s, p, o in patterns)),
    st.sampled_from((None, None, None, GRAPH)),
    st.lists(st.tuples(_places, st.sampled_from((P, Q)), _places), min_size=1, max_size=2),
)
_leaves = _values() | _bgps
_simple: st.SearchStrategy[Expression] = st.builds(
    Call, st.just("BOUND"), st.tuples(_variables)
) | st.builds(
    Call,
    st.sampled_from(("=", "!=")),
    st.tuples(_variables, _variables | st.builds(Constant, _terms)),
)


def _conditions(bodies: st.SearchStrategy[Node] | None) -> st.SearchStrategy[Expression]:
    leaves = _simple if bodies is None else _simple | st.builds(Exists, bodies)
    negated = st.builds(Call, st.just("!"), st.tuples(leaves))
    return (
        leaves
        | negated
        | st.builds(Call, st.sampled_from(("&&", "||")), st.tuples(leaves, negated))
    )


def _extended(pattern: Node, name: Var, expression: Expression) -> Node:
    return pattern if name in pattern.possible else Extend(pattern, name, expression)


def _projected(pattern: Node, kept: frozenset[Var]) -> Node:
    return Distinct(Project(pattern, tuple(sorted(kept & pattern.possible))))


def trees(
    bodies: st.SearchStrategy[Node] | None = None, *, minus: bool = True
) -> st.SearchStrategy[Node]:
    """Patterns of every operator that joins or narrows, with EXISTS of some bodies if any are given."""
    conditions = _conditions(bodies)

    def grown(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        return (
            st.builds(Join, nodes, nodes)
            | st.builds(LeftJoin, nodes, nodes, st.none() | conditions)
            | st.builds(Union, nodes, nodes)
            | (st.builds(Minus, nodes, nodes) if minus else st.nothing())
            | st.builds(Filter, nodes, conditions)
            | st.builds(_extended, nodes, _variables, conditions | _variables)
            | st.builds(_projected, nodes, st.frozensets(_variables, max_size=2))
        )

    return st.recursive(_leaves, grown, max_leaves=6)


def written(node: Node) -> str:
    """A group graph pattern that means what the node does."""
    match node:
        case Bgp(patterns):
            triples = " . ".join(
                " ".join(map(_place, pattern.positions[:3])) for pattern in patterns
            )
            graph = patterns[0].graph
            return (
                f"{{ {triples} }}"
                if graph is None
                else f"{{ GRAPH {_place(graph)} {{ {triples} }} }}"
            )
        case Values(variables, solutions):
            rows = " ".join(
                f"({' '.join(term or 'UNDEF' for term in solution)})" for solution in solutions
            )
            return f"{{ VALUES ({' '.join(map(_place, variables))}) {{ {rows} }} }}"
        case Join(left, right):
            return f"{{ {written(left)} {written(right)} }}"
        case LeftJoin(left, right, condition):
            narrowed = "" if condition is None else f" FILTER({_expression(condition)})"
            return f"{{ {written(left)} OPTIONAL {{ {written(right)}{narrowed} }} }}"
        case Union(left, right):
            return f"{{ {written(left)} UNION {written(right)} }}"
        case Minus(left, right):
            return f"{{ {written(left)} MINUS {written(right)} }}"
        case Filter(pattern, condition):
            return f"{{ {written(pattern)} FILTER({_expression(condition)}) }}"
        case Extend(pattern, variable, expression):
            return f"{{ {written(pattern)} BIND({_expression(expression)} AS {_place(variable)}) }}"
        case Distinct(Project(pattern, kept)):
            # a variable that nothing binds, where nothing is projected
            return f"{{ SELECT DISTINCT {' '.join(map(_place, kept)) or '?nothing'} {written(pattern)} }}"
    raise AssertionError(f"no tree holds {node}")


def _place(position: VarOrTerm | None) -> str:
    return f"?{position.name}" if isinstance(position, Var) else str(position)


def _expression(expression: Expression) -> str:
    match expression:
        case Var():
            return _place(expression)
        case Constant(term):
            return term
        case Exists(pattern):
            return f"EXISTS {written(pattern)}"
        case Call("!", (argument,)):
            return f"!({_expression(argument)})"
        case Call("BOUND", (argument,)):
            return f"BOUND({_expression(argument)})"
        case Call(name, (left, right)):
            return f"({_expression(left)} {name} {_expression(right)})"
    raise AssertionError(f"no tree holds {expression}")
