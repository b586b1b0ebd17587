"""Hypothesis strategies for terms, templates and solutions, hostile on purpose."""

from __future__ import annotations

import re
from functools import cache

from hypothesis import strategies as st

from construct_messages.logs.jelly.options import JellyOptions, LogicalType, PhysicalType
from construct_messages.rdf import terms
from construct_messages.rdf.message import Message, Quad
from construct_messages.rdf.template import (
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
)
from construct_messages.rdf.terms import Term

TEXT = st.text(
    st.one_of(
        st.sampled_from(
            "\"'\\\n\r\t\b\f<>(){}@^_:#%.,;- \x00\x01\x7f\u0085\u2028\u00e9\u4e2d\U0001f600aN1"
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=8,
)
HOSTILE = st.sampled_from(
    [
        "# @message",
        "\n# @message\n",
        "MESSAGE",
        "\nMESSAGE\n",
        "<<( <urn:s>",
        ")>>",
        "_:t0b0",
        '"@en--ltr',
        "\n\n",
        "--rtl",
    ]
)
IRIS = st.builds(
    lambda local: terms.iri(f"http://example.org/{local}"),
    # a percent sign without two digits, or a second #, is no IRI to a strict parser
    st.lists(st.sampled_from([*"ab1.-_~:@é/?&=();,'", "%41"]), max_size=6).map("".join),
)
_CHARACTERS = (
    *"/?#[]%@:&=;,'()!$*+~._- <>{}|^`\"\\\n\t\r\x00\x7f\x85\xa0é日\ue000\ufdd0\ufff0\ufffd\ufffe\uffff\u202e",
    *"\U0001fffe\U000f0000\U000e0001\U0010ffff\ud800",
    *("%41", "%zz", "100%", "##", "://"),
)
HOSTILE_IRIS = st.one_of(
    st.builds(
        lambda scheme, host, rest: f"{scheme}{host}{''.join(rest)}",
        st.sampled_from(
            ["http://", "https://", "urn:", "a:", "", "//", "1:", "é:", "http:", "mailto:"]
        ),
        st.sampled_from(
            [
                "e",
                "e:80",
                "e:80x",
                "u@e",
                "u@v@e",
                "[::1]",
                "[::1",
                "[g]",
                "é.e",
                "",
                "e%zz",
                "e%20",
            ]
        ),
        st.lists(st.sampled_from(_CHARACTERS) | st.characters(), max_size=5),
    ),
    st.text(max_size=12),
)
"""Texts, some of which are absolute IRIs."""
HOSTILE_LANGUAGES = st.one_of(
    st.sampled_from(
        ["a", "abcdefghijk", "zh-classical", "en", "EN-us", "x-a", "i-klingon", "en-", "en_US", "é"]
    ),
    st.from_regex(r"[A-Za-z]{1,9}(-[A-Za-z0-9]{1,9}){0,4}", fullmatch=True),
    st.text(max_size=6),
)
"""Texts, some of which are language tags."""
FEW_IRIS = st.sampled_from([terms.iri(f"http://example.org/{name}") for name in "ab"])
DATATYPES = st.sampled_from(
    [terms.XSD + "integer", terms.XSD + "decimal", terms.XSD + "date", "http://example.org/dt"]
)
LITERALS = st.one_of(
    st.builds(terms.literal, TEXT | HOSTILE),
    st.builds(
        lambda value, language, direction: terms.literal(
            value, language=language, direction=direction
        ),
        TEXT,
        st.sampled_from(["en", "de-AT", "zh-hant"]),
        st.sampled_from([None, None, "ltr", "rtl"]),
    ),
    st.builds(lambda value, datatype: terms.literal(value, datatype=datatype), TEXT, DATATYPES),
    st.sampled_from(["0", "1", "-5", "1.50", "1e6", "true"]).map(
        lambda text: terms.boolean(text) if text == "true" else terms.number(text)
    ),
)
DATA_BLANKS = st.sampled_from([Term("_:da"), Term("_:db"), Term("_:d0.x-1")])
SIMPLE = st.one_of(IRIS, LITERALS, DATA_BLANKS)
TRIPLES = st.recursive(
    st.builds(terms.triple, st.one_of(IRIS, DATA_BLANKS), IRIS, SIMPLE),
    lambda inner: st.builds(terms.triple, st.one_of(IRIS, DATA_BLANKS), IRIS, inner),
    max_leaves=2,
)
TERMS = st.one_of(SIMPLE, SIMPLE, TRIPLES)

VARIABLES = ("a", "b", "c", "d")


def _slots(constants: st.SearchStrategy[Term]) -> st.SearchStrategy[Slot]:
    return st.one_of(
        st.builds(Variable, st.integers(0, len(VARIABLES) - 1)),
        st.builds(Variable, st.integers(0, len(VARIABLES) - 1)),
        st.builds(Constant, constants),
        st.builds(Constant, FEW_IRIS),
        st.builds(Blank, st.integers(0, 1)),
    )


def _nested(inner: st.SearchStrategy[Slot]) -> st.SearchStrategy[Slot]:
    # one variable at least: what has none is a constant
    return st.builds(Nested, st.builds(Variable, st.integers(0, 3)), _slots(IRIS), inner)


GROUND = st.one_of(IRIS, LITERALS)
SLOTS = st.one_of(
    _slots(GROUND), _slots(GROUND), st.recursive(_slots(GROUND), _nested, max_leaves=2)
)


# Made once: what is made while an example is drawn may or may not be the same object, as Hypothesis' cache has it, and
# of the same objects a union keeps one.
_PREDICATES = st.builds(Constant, FEW_IRIS) | _slots(IRIS)
_GRAPHS = {True: st.none() | SLOTS, False: st.none()}
_PATTERNS = {
    graphs: st.lists(st.builds(Pattern, SLOTS, _PREDICATES, SLOTS, _GRAPHS[graphs]), max_size=4)
    for graphs in _GRAPHS
}
_FEW_SLOTS = _slots(FEW_IRIS)
_FEW_CONSTANTS = st.builds(Constant, FEW_IRIS)


@st.composite
def templates(draw: st.DrawFn, graphs: bool = True) -> Template:
    """Templates over `VARIABLES`, now and then with two triples of which one turns the other around."""
    patterns = draw(_PATTERNS[graphs])
    if draw(st.booleans()):
        subject, object = draw(_FEW_SLOTS), draw(_FEW_SLOTS)
        predicate, graph = draw(_FEW_CONSTANTS), draw(_GRAPHS[graphs])
        patterns.insert(0, Pattern(subject, predicate, object, graph))
        patterns.append(Pattern(object, predicate, subject, graph))
    return Template(VARIABLES, tuple(patterns))


@st.composite
def _solutions(draw: st.DrawFn) -> list[tuple[Term, ...]]:
    # few different values in one example, so that triples coincide; the empty string is unbound
    few = draw(st.lists(st.one_of(IRIS, TERMS), min_size=1, max_size=2))
    kinds = [
        FEW_IRIS,
        st.sampled_from(few),
        st.sampled_from(few),
        TERMS,
        LITERALS,
        st.just(terms.UNBOUND),
    ]
    value = st.sampled_from(kinds).flatmap(
        lambda kind: kind
    )  # one_of would flatten TERMS, and so favour it
    solution = st.one_of(
        st.tuples(*(value for _ in VARIABLES)), FEW_IRIS.map(lambda term: (term,) * len(VARIABLES))
    )
    return draw(st.lists(solution, min_size=1, max_size=6))


SOLUTIONS = _solutions()


# --- messages: data of logs, from wherever -------------------------------------------------------------------------

# labels that a reader might give to other nodes, and labels at the edges of the grammar
BLANKS = st.sampled_from(
    [Term(f"_:{label}") for label in ("m1b0", "m2b0", "t0b0", "b0", "da", "0", "a.b-c", "é·", "_x")]
)
SCHEMES = st.sampled_from(
    [
        terms.iri(text)
        for text in (
            *(
                "urn:x",
                "ex:a",
                "mailto:a@b.example",
                "MESSAGE:x",
                "did:x:y#z",
                "http://example.org",
                "tag:e,2026:@type",
            ),
            *(
                "http://example.org/#a",
                "http://example.org/?a=b&c=%41",
                "http://exämple.org/é/\U0001f600",
                "a:",
                "x:/../a",
            ),
        )
    ]
)
# names of XML elements, as the predicates of RDF/XML have to end
NAMED = st.sampled_from(
    [
        terms.iri(text)
        for text in (
            *(
                "http://example.org/p",
                "http://example.org/ns#é-1.x",
                "urn:p",
                "ex:a",
                f"{terms.RDF}type",
                f"{terms.RDF}_1",
            ),
            *(f"{terms.RDF}{name}" for name in ("first", "rest", "value", "Seq", "language")),
        )
    ]
)
PRINTABLE = st.one_of(
    st.text(st.sampled_from("\"'\\\n\t<>&;]()@^_:#.,- é中\u2028\U0001f600aN1"), max_size=8),
    HOSTILE,
    st.sampled_from(
        [
            *(
                "]]>",
                "&lt;",
                "<!--",
                "---\n...",
                "--- a",
                "%YAML 1.2",
                '{"@id": 1}',
                "'''\n\"\"\"",
                "no",
                "~",
                "1_0",
            ),
            *(" a ", r"\u0041", "a: b", "- a", "@id", "\n\n \n", "\r\n", "# a", "|\n a", "<?xml?>"),
        ]
    ),
)

NODES = st.sampled_from([IRIS, SCHEMES, BLANKS, BLANKS]).flatmap(lambda kind: kind)
_DOT_SEGMENT = re.compile(r"[/:]\.{1,2}(?=[/?#>])")


def is_resolved(term: Term) -> bool:
    """Whether resolving leaves a term as it is, as readers of RDF/XML do with IRIs; for some IRIs False is wrong."""
    return _DOT_SEGMENT.search(term) is None


RESOLVED_NODES = NODES.filter(is_resolved)
_UP_TO = [st.integers(0, most) for most in range(5)]
PREDICATES = st.one_of(NAMED, IRIS, SCHEMES)


@cache
def _objects(
    *, triple_terms: bool, directions: bool, any_text: bool, any_predicate: bool, dot_segments: bool
) -> st.SearchStrategy[Term]:
    nodes = NODES if dot_segments else RESOLVED_NODES
    texts = PRINTABLE | TEXT if any_text else PRINTABLE
    languages, ways = (
        st.sampled_from(["en", "de-at", "zh-hant", "x-a-1"]),
        st.sampled_from(["ltr", "rtl"]),
    )
    lexical = st.sampled_from(
        ["1", "01", "1.0", "1e0", "true", "INF", "null", '{"a": [1]}', "<a>&amp;</a>"]
    )
    datatypes = [
        f"{terms.XSD}{name}" for name in ("integer", "double", "boolean", "dateTime", "anyURI")
    ]
    datatypes += [f"{terms.RDF}{name}" for name in ("JSON", "HTML", "XMLLiteral", "PlainLiteral")]
    kinds = [
        nodes,
        texts.map(terms.literal),
        st.builds(lambda text, tag: terms.literal(text, language=tag), texts, languages),
        st.builds(
            lambda text, datatype: terms.literal(text, datatype=datatype),
            texts | lexical,
            DATATYPES | st.sampled_from(datatypes),
        ),
    ]
    if directions:
        kinds.append(
            st.builds(
                lambda text, tag, way: terms.literal(text, language=tag, direction=way),
                texts,
                languages,
                ways,
            )
        )
    objects = st.sampled_from(kinds).flatmap(lambda kind: kind)
    if triple_terms:
        predicates = PREDICATES if any_predicate else NAMED
        inner = st.builds(terms.triple, nodes, predicates, objects)
        outer = st.builds(terms.triple, nodes, predicates, inner)
        objects = st.sampled_from([objects, objects, inner, outer]).flatmap(lambda kind: kind)
    return objects


@st.composite
def messages(
    draw: st.DrawFn,
    *,
    graphs: bool = True,
    triple_terms: bool = True,
    directions: bool = True,
    any_text: bool = True,
    any_predicate: bool = True,
    dot_segments: bool = True,
) -> list[Message]:
    """Messages of one log: hostile terms, labels that several of them use, named graphs, some messages empty or equal.

    Each of what may be is there in two examples of three, so that some examples have none of it.

    Args:
        graphs: whether quads may stand in named graphs.
        triple_terms: whether objects may be triple terms.
        directions: whether literals may have a base direction.
        any_text: whether literals may hold characters that XML has no way to write.
        any_predicate: whether predicates may be IRIs that end in no XML name.
        dot_segments: whether IRIs may have dot segments, which readers of RDF/XML resolve.
    """
    often = st.sampled_from([True, True, False])
    graphs, triple_terms, directions, any_text, any_predicate = (
        may and draw(often) for may in (graphs, triple_terms, directions, any_text, any_predicate)
    )
    objects = _objects(
        triple_terms=triple_terms,
        directions=directions,
        any_text=any_text,
        any_predicate=any_predicate,
        dot_segments=dot_segments,
    )
    nodes = NODES if dot_segments else RESOLVED_NODES
    predicates = PREDICATES if any_predicate else NAMED
    # few subjects and predicates in one example, so that statements belong together
    few = [(draw(nodes), draw(predicates)) for _ in range(draw(_UP_TO[2]) + 1)]
    drawn = []
    for _ in range(draw(_UP_TO[4])):
        quads = []
        for _ in range(draw(_UP_TO[4])):
            pair = draw(st.sampled_from(few)) if draw(often) else (draw(nodes), draw(predicates))
            quads.append(
                Quad(*pair, draw(objects), draw(nodes) if graphs and draw(often) else None)
            )
        drawn.append(Message(quads))
    return drawn + draw(st.sampled_from([[], [], drawn[:1], [Message()]]))


# tables so small that every message makes entries and loses some, and of a common size
JELLY_OPTIONS = st.builds(
    lambda physical, rdf_star, names, prefixes, datatypes: JellyOptions(
        physical,
        LogicalType.GRAPHS if physical is PhysicalType.TRIPLES else LogicalType.DATASETS,
        rdf_star,
        max_name_table_size=names,
        max_prefix_table_size=prefixes,
        max_datatype_table_size=datatypes,
    ),
    st.sampled_from(PhysicalType),
    st.booleans(),
    st.sampled_from([8, 16, 60, 4000]),
    st.sampled_from([0, 4, 150]),
    st.sampled_from([0, 1, 32]),
)
