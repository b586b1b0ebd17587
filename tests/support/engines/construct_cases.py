"""One table of CONSTRUCT queries for every engine and every way to it, and where an engine differs, with the reason.

Each case says the query as a user writes it, and by hand what `reference.py` needs: the template as data, and the
SELECT, which is `SELECT *` with what follows the template unless told otherwise. Differences between engines are data
too: what the engine gives instead, or how it fails. A case that an engine mends fails, so that the table stays true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from construct_messages import ConstructMessagesError
from construct_messages.errors import (
    GroupError,
    LimitExceeded,
    NotConstruct,
    QueryError,
    SourceError,
    UnsupportedQuery,
)

DECLARED: Final = (
    "PREFIX ex: <http://example.org/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
)

# name, object as Turtle writes it
VALUES: Final = {
    "iri": "ex:thing",
    "iri-percent": "<http://example.org/a%20b%41>",
    "iri-non-ascii": "<http://example.org/é/国>",
    "iri-punctuation": "<http://example.org/x(1)?a=b&c='d';e,f#g>",
    "iri-urn": "<urn:isbn:0-330-25864-8>",
    "string": '"plain"',
    "string-empty": '""',
    "string-spaces": '"  two  spaces  "',
    "string-escapes": r'"q\" b\\ s\u0027 t\t"',
    "string-lines": r'"one\ntwo\r\nthree\r"',
    "string-delimiters": r'"\n# @message\nMESSAGE\n"',
    "string-like-a-term": '"<urn:a> _:b \\"c\\"@en ."',
    "string-unicode": r'"é 国 😀 e\u0301 \u00A0 \u2028"',
    "string-controls": r'"\u0001\b\f\u007F"',
    "language": '"chat"@fr',
    "language-region": '"colour"@en-gb',
    "integer": "42",
    "integer-negative": "-7",
    "integer-zeros": '"007"^^xsd:integer',
    "decimal": "1.50",
    "double": "1.5e0",
    "double-nan": '"NaN"^^xsd:double',
    "double-infinite": '"-INF"^^xsd:double',
    "boolean": "true",
    "boolean-digit": '"1"^^xsd:boolean',
    "int": '"5"^^xsd:int',
    "date": '"2020-02-29"^^xsd:date',
    "dateTime": '"2020-02-29T12:30:00.125+02:00"^^xsd:dateTime',
    "gYear": '"2020"^^xsd:gYear',
    "duration": '"P1Y2M"^^xsd:duration',
    "custom-datatype": '"x"^^ex:datatype',
    "ill-typed": '"many"^^xsd:integer',
}

DATA: Final = """\
@prefix ex: <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:acme a ex:Company ; ex:location ex:be, ex:nl ; ex:name "Acme"@en ; ex:staff 120 .
ex:bolt a ex:Company ; ex:location ex:be ; ex:name "Bolt"@en, "Boulon"@fr ; ex:staff 7 .
ex:corp a ex:Company ; ex:location "somewhere" ; ex:founded _:event .
ex:dale a ex:Company ; ex:location _:valley ; ex:founded _:event .
_:event ex:year 1999 ; ex:by ex:acme .
_:valley ex:label "Dale" .
ex:be ex:label "België"@nl, "Belgium"@en ; ex:population 11500000 ; ex:part ex:eu .
ex:nl ex:label "Nederland"@nl ; ex:part ex:eu .
ex:eu ex:part ex:world .
<urn:g1> { ex:acme ex:rating ex:five . ex:bolt ex:rating ex:three . }
<urn:g2> { ex:acme ex:rating ex:four . ex:acme ex:seen _:visit . _:visit ex:place ex:be . }
""" + "".join(f"ex:{name} ex:value {value} .\n" for name, value in VALUES.items())

RDF_1_2: Final = """\
@prefix ex: <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:claim ex:says <<( ex:acme ex:location ex:be )>> ; ex:by ex:ann .
ex:deep ex:says <<( ex:ann ex:says <<( ex:bolt ex:name "Bolt"@en )>> )>> .
ex:rtl ex:value "\u05e9\u05dc\u05d5\u05dd"@he--rtl .
ex:huge ex:value 123456789012345678901234567890 .
"""
"""What only an engine of RDF 1.2 with exact lexical forms holds."""


class Fails(NamedTuple):
    """The query is refused, or its answer cannot be whole.

    Args:
        error: the class, when the package asks the engine itself.
        status: the HTTP status, when a server is asked instead.
        words: what the error says.
    """

    error: type[ConstructMessagesError]
    status: int
    words: str


class Gives(NamedTuple):
    """Other messages than the reference's: each as quads in the words of a template without variables."""

    messages: Sequence[Sequence[str]]


class Differs(NamedTuple):
    """What an engine does instead, and why that is the engine's own."""

    reason: str
    instead: Fails | Gives


class Case(NamedTuple):
    """One query.

    Args:
        name: its id.
        query: the text behind `DECLARED`.
        template: for `reference.messages`.
        select: for `reference.messages`.
        options: of `construct_messages`.
        ordered: whether the order of the messages counts.
        data: the name of the data: `"1.1"` or `"1.2"`.
        fails: what happens instead of messages, with every engine.
        differs: by the name of an engine.
    """

    name: str
    query: str
    template: Sequence[str] = ()
    select: str = ""
    options: Mapping[str, Any] = {}
    ordered: bool = False
    data: str = "1.1"
    fails: Fails | None = None
    differs: Mapping[str, Differs] = {}


def case(
    name: str,
    construct: str,
    template: Sequence[str],
    rest: str,
    *,
    select: str | None = None,
    **more: Any,
) -> Case:
    """A case whose query is `construct` with `rest` behind it, and whose SELECT has the same rest."""
    return Case(
        name,
        f"CONSTRUCT {construct} {rest}",
        template,
        f"SELECT * {rest}" if select is None else select,
        ordered="ORDER BY" in rest and more.get("options", {}).get("group_order") != "sorted",
        **more,
    )


CHANGED: Final[Mapping[str, Mapping[str, str]]] = {
    "oxigraph": {
        "integer-zeros": "7",
        "decimal": "1.5",
        "double": '"1.5"^^xsd:double',
        "boolean-digit": "true",
        "int": "5",
    },
    "rdflib": {
        "integer-zeros": "7",
        "double": '"1.5"^^xsd:double',
        "double-nan": '"nan"^^xsd:double',
        "double-infinite": '"-inf"^^xsd:double',
        "boolean-digit": "true",
        "dateTime": '"2020-02-29T12:30:00.125000+02:00"^^xsd:dateTime',
    },
    "virtuoso": {
        "integer-zeros": "7",
        "decimal": "1.5",
        "double": '"1.5"^^xsd:double',
        "boolean": '"1"^^xsd:boolean',
        "duration": '"14"^^xsd:duration',
        "ill-typed": "0",
    },
}
"""What comes back instead of some of `VALUES`, by engine."""


def is_value(value: str) -> str:
    """A quad for `reference.messages`, whose parts hold no spaces."""
    return f"ex:x ex:is {value}".replace(value, value.replace(" ", r"\u0020"))


ON_SPARK: Final = {
    "group_by",
    "group_order",
    "distinct",
    "skip_empty",
    "max_messages",
    "default_graph",
    "named_graphs",
}
"""The options of the cases that are options on Spark, too."""

EACH: Final = "WHERE { ?c ex:location ?l FILTER(isIRI(?l)) } ORDER BY ?c ?l"
RATED: Final = "WHERE { GRAPH ?g { ?c ex:rating ?r } } ORDER BY ?g ?c"

_CASES: Final[Sequence[Case]] = (
    # --- the kinds of terms ---
    *(
        case(
            f"term {name}",
            "{ ex:x ex:is ?v }",
            [is_value(value)],
            f"WHERE {{ ex:{name} ex:value ?v }}",
            differs={
                engine: Differs(
                    "it stores the value, not the lexical form", Gives([[is_value(changed[name])]])
                )
                for engine, changed in CHANGED.items()
                if name in changed
            },
        )
        for name, value in VALUES.items()
    ),
    case(
        "constants of every kind",
        '{ ?c ex:p 1, -2.50, 1e6, true, \'it\\\'s\'@en-GB, """a"b\nc""", "x"^^ex:t, <http://example.org/é>, ex:a\\~b }',
        [
            f"?c ex:p {value}"
            for value in (
                *("1", "-2.50", "1e6", "true", '"it\'s"@en-gb', r'"a\"b\nc"', '"x"^^ex:t'),
                *("<http://example.org/é>", "<http://example.org/a~b>"),
            )
        ],
        "WHERE { ?c ex:name 'Acme'@en }",
    ),
    case(
        "blank nodes of the data",
        "{ ?c ex:founded ?e . ?e ex:year ?y }",
        ["?c ex:founded ?e", "?e ex:year ?y"],
        "WHERE { ?c ex:founded ?e . ?e ex:year ?y } ORDER BY ?c",
    ),
    case(
        "blank nodes of the template",
        "{ ?c ex:in _:place . _:place ex:at ?l ; ex:same _:place }",
        ["?c ex:in _:p", "_:p ex:at ?l", "_:p ex:same _:p"],
        EACH,
    ),
    case(
        "blank node property lists",
        "{ ?c ex:in [ ex:at ?l ; ex:sure [] ] . [ ex:of ?c ] }",
        ["?c ex:in _:a", "_:a ex:at ?l", "_:a ex:sure _:b", "_:c ex:of ?c"],
        EACH,
    ),
    case(
        "a list",
        "{ ?c ex:list (?l 1 ()) }",
        [
            "?c ex:list _:1",
            "_:1 rdf:first ?l",
            "_:1 rdf:rest _:2",
            "_:2 rdf:first 1",
            "_:2 rdf:rest _:3",
            "_:3 rdf:first rdf:nil",
            "_:3 rdf:rest rdf:nil",
        ],
        EACH,
    ),
    case("an unbound variable", "{ ?c ex:at ?l ; ex:none ?none }", ["?c ex:at ?l"], EACH),
    case(
        "a literal subject is left out",
        "{ ?l ex:of ?c . ?c ex:at ?l }",
        ["?l ex:of ?c", "?c ex:at ?l"],
        "WHERE { ?c ex:location ?l } ORDER BY ?c",
        # the order of ?l within ?c is not given
    )._replace(ordered=False),
    case(
        "nothing but empty messages",
        "{ ?n ex:of ?c }",
        ["?n ex:of ?c"],
        "WHERE { ?c ex:name ?n }",
    ),
    case(
        "triple terms of the data",
        "{ ?s ex:said ?t }",
        ["?s ex:said ?t"],
        "WHERE { ?s ex:says ?t } ORDER BY ?s",
        data="1.2",
    ),
    case(
        "triple terms of the template",
        "{ ?s ex:says <<( ?by ex:wrote ?s )>> }",
        ["?s ex:says <<(?by,ex:wrote,?s)>>"],
        "WHERE { ?s ex:by ?by }",
        data="1.2",
    ),
    case(
        "base direction",
        "{ ?s ex:is ?v }",
        ["?s ex:is ?v"],
        "WHERE { BIND(ex:rtl AS ?s) ?s ex:value ?v }",
        data="1.2",
    ),
    case(
        "a huge integer",
        "{ ?s ex:is ?v }",
        ["?s ex:is ?v"],
        "WHERE { BIND(ex:huge AS ?s) ?s ex:value ?v }",
        data="1.2",
    ),
    # --- graphs ---
    case(
        "GRAPH ?g in WHERE",
        "{ ?c ex:rated ?r ; ex:in ?g }",
        ["?c ex:rated ?r", "?c ex:in ?g"],
        RATED,
    ),
    case(
        "GRAPH in WHERE and in the template",
        "{ GRAPH ?g { ?c ex:rated ?r } }",
        ["?c ex:rated ?r ?g"],
        RATED,
    ),
    case(
        "GRAPH with a constant beside the default graph",
        "{ ?c a ex:Rated . GRAPH <urn:out> { ?c ex:rated ?r . ?r ex:of _:b } GRAPH ?c { _:b ex:in ?g } }",
        [
            "?c rdf:type ex:Rated",
            "?c ex:rated ?r <urn:out>",
            "?r ex:of _:b <urn:out>",
            "_:b ex:in ?g ?c",
        ],
        RATED,
    ),
    case(
        "GRAPH with a literal is left out",
        "{ GRAPH ?l { ?c ex:at ?l } ?c a ex:Thing }",
        ["?c ex:at ?l ?l", "?c rdf:type ex:Thing"],
        "WHERE { ?c ex:location ?l }",
    ),
    case(
        "a named graph by its name",
        "{ ?c ex:rated ?r }",
        ["?c ex:rated ?r"],
        "WHERE { GRAPH <urn:g1> { ?c ex:rating ?r } } ORDER BY ?c",
    ),
    case(
        "blank nodes of a named graph",
        "{ GRAPH ?g { ?c ex:seen ?v . ?v ex:place ?p } }",
        ["?c ex:seen ?v ?g", "?v ex:place ?p ?g"],
        "WHERE { GRAPH ?g { ?c ex:seen ?v . ?v ex:place ?p } }",
    ),
    case(
        "named graphs are not in the default graph",
        "{ ?c ex:rated ?r }",
        ["?c ex:rated ?r"],
        "WHERE { ?c ex:rating ?r }",
    ),
    case(
        "FROM",
        "{ ?c ex:rated ?r }",
        ["?c ex:rated ?r"],
        "FROM <urn:g1> FROM <urn:g2> WHERE { ?c ex:rating ?r }",
    ),
    case(
        "FROM NAMED",
        "{ ?c ex:rated ?r ; ex:in ?g }",
        ["?c ex:rated ?r", "?c ex:in ?g"],
        "FROM NAMED <urn:g2> WHERE { GRAPH ?g { ?c ex:rating ?r } }",
    ),
    case(
        "default-graph-uri",
        "{ ?c ex:rated ?r }",
        ["?c ex:rated ?r"],
        "WHERE { ?c ex:rating ?r }",
        options={"default_graph": ("urn:g2",)},
    ),
    case(
        "named-graph-uri",
        "{ ?c ex:rated ?r ; ex:in ?g }",
        ["?c ex:rated ?r", "?c ex:in ?g"],
        "WHERE { GRAPH ?g { ?c ex:rating ?r } }",
        options={"named_graphs": ("urn:g1",)},
    ),
    # --- forms of the query ---
    Case(
        "CONSTRUCT WHERE",
        "CONSTRUCT WHERE { ?c ex:staff ?n }",
        ["?c ex:staff ?n"],
        "SELECT * { ?c ex:staff ?n }",
    ),
    Case(
        "CONSTRUCT WHERE with a blank node, ordered",
        "CONSTRUCT WHERE { ?c ex:founded [ ex:by ?b ] } ORDER BY ?c",
        ["?c ex:founded _:e", "_:e ex:by ?b"],
        "SELECT * { ?c ex:founded [ ex:by ?b ] } ORDER BY ?c",
        ordered=True,
    ),
    case(
        "a comment, a string and an IRI that look like syntax",
        '{ ?c ex:at ?l ; ex:says "} WHERE { #" ; ex:see <http://example.org/#WHERE> # } WHERE {\n }',
        [
            "?c ex:at ?l",
            r'?c ex:says "}\u0020WHERE\u0020{\u0020#"',
            "?c ex:see <http://example.org/#WHERE>",
        ],
        EACH,
    ),
    case(
        "lower case keywords, $ variables",
        "{ $c ex:at ?l }",
        ["?c ex:at ?l"],
        EACH.lower().replace("isiri", "isIRI"),
    )._replace(ordered=True),
    case("an empty template", "{ }", [], EACH),
    case("a constant template", "{ ex:a ex:b ex:c }", ["ex:a ex:b ex:c"], EACH),
    case(
        "no variables at all",
        "{ ex:a ex:b ex:c }",
        ["ex:a ex:b ex:c"],
        "WHERE { ex:acme ex:location ex:be }",
    ),
    case("no pattern at all", "{ ex:a ex:b [] }", ["ex:a ex:b _:c"], "WHERE { }"),
    case("no solutions", "{ ?c ex:at ?l }", ["?c ex:at ?l"], "WHERE { ?c ex:nowhere ?l }"),
    case(
        "equal triples of one solution count once",
        "{ ?c ex:at ?l . ?c ex:at ?l , ?l }",
        ["?c ex:at ?l"],
        EACH,
    ),
    # --- patterns ---
    case(
        "OPTIONAL",
        "{ ?c ex:at ?l . ?c ex:of ?p }",
        ["?c ex:at ?l", "?c ex:of ?p"],
        "WHERE { ?c ex:location ?l OPTIONAL { ?l ex:part ?p } FILTER(isIRI(?l) || isLiteral(?l)) }",
    ),
    case(
        "UNION",
        "{ ?c ex:named ?n ; ex:big ?s }",
        ["?c ex:named ?n", "?c ex:big ?s"],
        "WHERE { { ?c ex:name ?n } UNION { ?c ex:staff ?s } }",
    ),
    case(
        "UNION keeps duplicates",
        "{ ?c a ex:C }",
        ["?c rdf:type ex:C"],
        "WHERE { { ?c ex:staff ?s } UNION { ?c ex:staff ?s } }",
    ),
    case(
        "MINUS",
        "{ ?c a ex:C }",
        ["?c rdf:type ex:C"],
        "WHERE { ?c a ex:Company MINUS { ?c ex:staff ?s } } ORDER BY ?c",
    ),
    case(
        "FILTER NOT EXISTS",
        "{ ?c a ex:C }",
        ["?c rdf:type ex:C"],
        "WHERE { ?c a ex:Company FILTER NOT EXISTS { ?c ex:founded ?e } } ORDER BY ?c",
    ),
    case(
        "VALUES with UNDEF",
        "{ ?c ex:in ?l ; ex:tag ?t }",
        ["?c ex:in ?l", "?c ex:tag ?t"],
        "WHERE { VALUES (?c ?t) { (ex:acme 'a'@en) (ex:bolt UNDEF) } ?c ex:location ?l }",
    ),
    case(
        "VALUES behind the query",
        "{ ?c ex:in ?l }",
        ["?c ex:in ?l"],
        "WHERE { ?c ex:location ?l } VALUES ?l { ex:nl ex:eu }",
    ),
    case(
        "BIND and functions",
        "{ ?u ex:of ?c ; ex:n ?s }",
        ["?u ex:of ?c", "?u ex:n ?s"],
        'WHERE { ?c ex:staff ?n BIND(IRI(CONCAT(STR(?c), "/é")) AS ?u) BIND(CONCAT(STR(?n), "!") AS ?s) }',
    ),
    case(
        "an unknown function",
        "{ ?c ex:p ?x }",
        ["?c ex:p ?x"],
        "WHERE { ?c ex:staff ?n BIND(ex:unknown(?n) AS ?x) }",
        select="SELECT ?c { ?c ex:staff ?n }",
    ),
    case(
        "arithmetic of dates",  # issue 13, 28
        "{ ?c ex:long ?n }",
        ["?c ex:long ?n"],
        "WHERE { ?c ex:staff ?n VALUES (?s ?e) { ('2020-01-01'^^xsd:date '2020-03-01'^^xsd:date) } "
        "FILTER(?e - ?s > 'P30D'^^xsd:dayTimeDuration) }",
        select="SELECT ?c { ?c ex:founded ?e FILTER(false) }",
    ),
    case(
        "duplicates of an alternative path",  # issue 13, 28
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        "WHERE { ?c (ex:location|ex:location) ?l }",
        select="SELECT * { { ?c ex:location ?l } UNION { ?c ex:location ?l } }",
    ),
    case(
        "NaN is less than no number",  # issue 13, 28
        "{ ?s ex:not ?v }",
        ["?s ex:not ?v"],
        "WHERE { ?s ex:value ?v FILTER(sameTerm(?v, 'NaN'^^xsd:double) && !(?v < 1)) }",
        select="SELECT * { ?s ex:value ?v FILTER(sameTerm(?v, 'NaN'^^xsd:double)) }",
    ),
    case(
        "NaN is not equal to itself",  # issue 13, 28
        "{ ?s ex:same ?v }",
        ["?s ex:same ?v"],
        "WHERE { ?s ex:value ?v FILTER(sameTerm(?v, 'NaN'^^xsd:double) && ?v <= ?v) }",
        select="SELECT * { ?s ex:value ?v FILTER(false) }",
    ),
    case(
        "the truth of a string with a language",  # issue 26, 39; here and below as SPARQL 1.1 has it
        "{ ?c ex:named ?n }",
        ["?c ex:named ?n"],
        "WHERE { ?c ex:name ?n FILTER(?n) }",
        select="SELECT * { ?c ex:name ?n }",
    ),
    case(
        "the truth of an ill-typed number",
        "{ ex:ill-typed ex:false ?v }",
        ["ex:ill-typed ex:false ?v"],
        "WHERE { ex:ill-typed ex:value ?v FILTER(!?v) }",
        select="SELECT * { ex:ill-typed ex:value ?v }",
    ),
    case(
        "VALUES in each named graph",
        "{ ?g ex:has ?v }",
        ["?g ex:has ?v"],
        "WHERE { GRAPH ?g { VALUES ?v { ex:a ex:b } } }",
        select="SELECT * { GRAPH ?g { } VALUES ?v { ex:a ex:b } }",
    ),
    case(
        "VALUES in a graph that there is not",
        "{ ex:x ex:has ?v }",
        ["ex:x ex:has ?v"],
        "WHERE { GRAPH <urn:none> { VALUES ?v { ex:a ex:b } } }",
        select="SELECT * { VALUES ?v { ex:a ex:b } FILTER(false) }",
    ),
    case(
        "a path of length zero from a constant that is nowhere",
        "{ ex:nowhere ex:in ?o }",
        ["ex:nowhere ex:in ?o"],
        "WHERE { ex:nowhere ex:part* ?o }",
        select="SELECT * { VALUES ?o { ex:nowhere } }",
    ),
    case(
        "a sub-select with its own LIMIT",
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        "WHERE { { SELECT ?c { ?c ex:staff ?s } ORDER BY DESC(?s) LIMIT 1 } ?c ex:location ?l } ORDER BY ?l",
    ),
    case(
        "DISTINCT in a sub-select",
        "{ ?l a ex:Place }",
        ["?l rdf:type ex:Place"],
        "WHERE { SELECT DISTINCT ?l { ?c ex:location ?l FILTER(isIRI(?l)) } } ORDER BY ?l",
    ),
    case(
        "aggregates in a sub-select",
        "{ ?l ex:companies ?n }",
        ["?l ex:companies ?n"],
        "WHERE { SELECT ?l (COUNT(?c) AS ?n) { ?c ex:location ?l FILTER(isIRI(?l)) } GROUP BY ?l } ORDER BY ?l",
    ),
    case(
        "GROUP BY and HAVING",
        "{ ?l a ex:Busy }",
        ["?l rdf:type ex:Busy"],
        "WHERE { ?c ex:location ?l FILTER(isIRI(?l)) } GROUP BY ?l HAVING (COUNT(?c) > 1)",
        select="SELECT ?l { ?c ex:location ?l FILTER(isIRI(?l)) } GROUP BY ?l HAVING (COUNT(?c) > 1)",
    ),
    case(
        "a sequence path",
        "{ ?c ex:in ?u }",
        ["?c ex:in ?u"],
        "WHERE { ?c ex:location/ex:part ?u }",
    ),
    case(
        "a path of any length",
        "{ ?l ex:within ?u }",
        ["?l ex:within ?u"],
        "WHERE { ?l ex:part+ ?u }",
    ),
    case(
        "an alternative and an inverse path",
        "{ ?a ex:with ?b }",
        ["?a ex:with ?b"],
        "WHERE { ?a (ex:name|^ex:by) ?b FILTER(isLiteral(?b)) }",
    ),
    # --- modifiers, pages ---
    case(
        "ORDER BY DESC",
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        EACH.replace("?c ?l", "DESC(?c) DESC(?l)"),
    ),
    case("LIMIT and OFFSET", "{ ?c ex:at ?l }", ["?c ex:at ?l"], f"{EACH} LIMIT 2 OFFSET 1"),
    case("OFFSET past the end", "{ ?c ex:at ?l }", ["?c ex:at ?l"], f"{EACH} OFFSET 100"),
    case("LIMIT 0", "{ ?c ex:at ?l }", ["?c ex:at ?l"], f"{EACH} LIMIT 0"),
    *(
        case(
            f"pages of {size}",
            "{ ?c ex:at ?l ; ex:b [] }",
            ["?c ex:at ?l", "?c ex:b _:b"],
            EACH,
            options={"page_size": size},
        )
        for size in (1, 2, 3, 100)
    ),
    case(
        "pages and an own LIMIT",
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        f"{EACH} LIMIT 3 OFFSET 1",
        options={"page_size": 2},
    ),
    case(
        "pages without ORDER BY",
        "{ ?l ex:label ?n }",
        ["?l ex:label ?n"],
        "WHERE { ?l ex:label ?n FILTER(isIRI(?l)) }",
        options={"page_size": 2},
    ),
    case(
        "pages and blank nodes",
        "{ ?c ex:founded ?e . ?e ex:year ?y }",
        ["?c ex:founded ?e", "?e ex:year ?y"],
        "WHERE { ?c ex:founded ?e . ?e ex:year ?y } ORDER BY ?c",
        options={"page_size": 1},
    ),
    case(
        "pages of a query with aggregates",
        "{ ?l ex:companies ?n }",
        ["?l ex:companies ?n"],
        "WHERE { SELECT ?l (COUNT(?c) AS ?n) { ?c ex:location ?l FILTER(isIRI(?l)) } GROUP BY ?l } ORDER BY ?l",
        options={"page_size": 1},
    ),
    # --- grouping and other options ---
    case(
        "groups by appearance",
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        EACH.replace("?c ?l", "?l ?c"),
        options={"group_by": ("c",)},
    ),
    case(
        "groups, sorted",
        "{ ?c ex:at ?l ; ex:by [] }",
        ["?c ex:at ?l", "?c ex:by _:b"],
        "WHERE { ?c ex:location ?l FILTER(isIRI(?l)) }",
        options={"group_by": ("l",), "group_order": "sorted"},
    ),
    case(
        "groups by two variables, sorted, one of them unbound",
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        "WHERE { ?c ex:location ?l OPTIONAL { ?l ex:part ?p } FILTER(isIRI(?l) || isLiteral(?l)) }",
        options={"group_by": ("p", "c"), "group_order": "sorted"},
    ),
    case(
        "groups over pages",
        "{ ?c ex:at ?l }",
        ["?c ex:at ?l"],
        EACH,
        options={"group_by": ("c",), "group_order": "sorted", "page_size": 2},
    ),
    case(
        "distinct messages",
        "{ ?l a ex:Place }",
        ["?l rdf:type ex:Place"],
        EACH,
        options={"distinct": True},
    ),
    case(
        "skip_empty",
        "{ ?l ex:of ?c }",
        ["?l ex:of ?c"],
        "WHERE { ?c ex:location ?l }",
        options={"skip_empty": True},
    ),
    case("max_messages", "{ ?c ex:at ?l }", ["?c ex:at ?l"], EACH, options={"max_messages": 2}),
    # --- refused ---
    Case(
        "an undeclared prefix",
        "CONSTRUCT { ?s no:p ?o } WHERE { ?s ?p ?o }",
        fails=Fails(QueryError, 400, "line 3, column 16"),
    ),
    Case(
        "a template without its end",
        "CONSTRUCT { ?s ex:p ?o",
        fails=Fails(QueryError, 400, "line 3"),
    ),
    Case(
        "a path in the template",
        "CONSTRUCT { ?s ex:p/ex:q ?o } WHERE { ?s ?p ?o }",
        fails=Fails(QueryError, 400, "line 3, column 20"),
    ),
    Case("SELECT", "SELECT * { ?s ?p ?o }", fails=Fails(NotConstruct, 400, "got SELECT")),
    Case("an update", "DELETE WHERE { ?s ?p ?o }", fails=Fails(NotConstruct, 400, "got UPDATE")),
    Case("no query", "", fails=Fails(QueryError, 400, "there is no CONSTRUCT")),
    Case(
        "a WHERE that the engine refuses",
        "CONSTRUCT { ?s ex:p ?o } WHERE { ?s ?p }",
        fails=Fails(SourceError, 400, "refuse[sd] the query"),
    ),
    Case(
        "groups over pages by blank nodes",
        "CONSTRUCT { ?c ex:founded ?e } WHERE { ?c ex:founded ?e } ORDER BY ?c",
        options={"group_by": ("e",), "page_size": 1},
        fails=Fails(GroupError, 422, "blank node"),
    ),
    Case(
        "group_limit",
        "CONSTRUCT { ?c ex:at ?l } WHERE { ?c ex:location ?l }",
        options={"group_by": ("c",), "group_limit": 2},
        fails=Fails(LimitExceeded, 413, "more than 2 solutions"),
    ),
)

_NO_PARAMETERS: Final = "ignores default-graph-uri and named-graph-uri"
_UNKNOWN: Final = "refuses the query instead of leaving the variable unbound (section 17.6)"
_DATES: Final = "subtracts dates and compares durations, as extensions of SPARQL 1.1 (section 17.3)"
_LONG: Final = (["ex:acme ex:long 120"], ["ex:bolt ex:long 7"])
_ALTERNATIVES: Final = (
    "returns each solution of an alternative path once, not once per branch (section 18.4)"
)
_LOCATIONS: Final = (
    *(["ex:acme ex:at ex:be"], ["ex:acme ex:at ex:nl"], ["ex:bolt ex:at ex:be"]),
    *(["ex:corp ex:at 'somewhere'"], ["ex:dale ex:at _:valley"]),
)
_NAN: Final = "evaluates NaN < 1 as an error or as true, not as false"
_EQUAL: Final = "evaluates NaN <= NaN as true for equal terms"
_NO_TRUTH: Final = (
    "evaluates it as an error, as drafts of SPARQL 1.2 do, not as {} (SPARQL 1.1, section 17.2.2)"
)
_NO_GRAPH: Final = "evaluates VALUES outside of graphs, so that the graph is unbound (section 18.6)"
_ANY_GRAPH: Final = "evaluates VALUES outside of graphs (section 18.6)"
_BOTH: Final = (["ex:x ex:has ex:a"], ["ex:x ex:has ex:b"])
_NOWHERE: Final = "finds only terms of the graph at the ends of such a path (section 18.4)"
_ALL_RATED: Final = (
    ["ex:acme ex:rated ex:five", "ex:acme ex:in <urn:g1>"],
    ["ex:bolt ex:rated ex:three", "ex:bolt ex:in <urn:g1>"],
    ["ex:acme ex:rated ex:four", "ex:acme ex:in <urn:g2>"],
)

DIFFERENCES: Final[Mapping[str, Mapping[str, Differs]]] = {
    "named graphs are not in the default graph": {
        "rdflib": Differs(
            "takes the union of all graphs as the default graph",
            Gives([[rated] for rated, _ in _ALL_RATED]),
        ),
    },
    "a named graph by its name": {
        "virtuoso": Differs(
            "with a default graph, finds a graph by name only with FROM NAMED", Gives([])
        ),
    },
    "FROM NAMED": {
        "comunica": Differs(
            "fails on GRAPH ?g with a dataset",
            Fails(SourceError, 400, "requires an operation with source annotation"),
        ),
    },
    "default-graph-uri": {
        "rdflib": Differs(_NO_PARAMETERS, Gives([[rated] for rated, _ in _ALL_RATED])),
        "comunica": Differs(_NO_PARAMETERS, Gives([])),
    },
    "named-graph-uri": {
        "rdflib": Differs(_NO_PARAMETERS, Gives(_ALL_RATED)),
        "comunica": Differs(_NO_PARAMETERS, Gives(_ALL_RATED)),
    },
    "an unknown function": {
        "oxigraph": Differs(_UNKNOWN, Fails(SourceError, 502, "is not supported")),
        "embedded": Differs(_UNKNOWN, Fails(QueryError, 400, "is not supported")),
        "virtuoso": Differs(_UNKNOWN, Fails(SourceError, 502, "Undefined procedure")),
        "comunica": Differs(
            _UNKNOWN, Fails(SourceError, 400, "no configured actor was able to evaluate function")
        ),
        **dict.fromkeys(
            ("duckdb", "spark"),
            Differs(_UNKNOWN, Fails(UnsupportedQuery, 501, "is not supported")),
        ),
    },
    "arithmetic of dates": {
        "oxigraph": Differs(_DATES, Gives(_LONG)),
        "embedded": Differs(_DATES, Gives(_LONG)),
        "virtuoso": Differs(_DATES, Gives(_LONG)),
        "comunica": Differs(_DATES, Gives(_LONG)),
        **dict.fromkeys(
            ("duckdb", "spark"),
            Differs(
                "refuses what is an error in each solution",
                Fails(UnsupportedQuery, 501, "durations have no order"),
            ),
        ),
    },
    "duplicates of an alternative path": {
        "oxigraph": Differs(_ALTERNATIVES, Gives(_LOCATIONS)),
        "virtuoso": Differs(_ALTERNATIVES, Gives(_LOCATIONS)),
    },
    "NaN is less than no number": {
        "oxigraph": Differs(_NAN, Gives([])),
        "embedded": Differs(_NAN, Gives([])),
        "rdflib": Differs(_NAN, Gives([])),
        "virtuoso": Differs(_NAN, Gives([])),
    },
    "NaN is not equal to itself": {
        "oxigraph": Differs(_EQUAL, Gives([["ex:double-nan ex:same 'NaN'^^xsd:double"]])),
        "embedded": Differs(_EQUAL, Gives([["ex:double-nan ex:same 'NaN'^^xsd:double"]])),
    },
    "the truth of a string with a language": {
        engine: Differs(_NO_TRUTH.format("true"), Gives([])) for engine in ("oxigraph", "embedded")
    },
    "the truth of an ill-typed number": {
        **{
            engine: Differs(_NO_TRUTH.format("false"), Gives([]))
            for engine in ("oxigraph", "embedded", "rdflib")
        },
        "virtuoso": Differs("stores 0 instead", Gives([["ex:ill-typed ex:false 0"]])),
    },
    "VALUES in each named graph": {
        engine: Differs(_NO_GRAPH, Gives([[], []]))
        for engine in ("oxigraph", "virtuoso", "comunica")
    },
    "VALUES in a graph that there is not": {
        engine: Differs(_ANY_GRAPH, Gives(_BOTH))
        for engine in ("oxigraph", "embedded", "rdflib", "virtuoso", "comunica")
    },
    "a path of length zero from a constant that is nowhere": {
        engine: Differs(_NOWHERE, Gives([])) for engine in ("oxigraph", "embedded")
    },
    "a path of any length": {
        "virtuoso": Differs(
            "requires that one end of such a path is bound",
            Fails(SourceError, 502, "transitive start not given"),
        ),
        "spark": Differs(
            "requires that one end of such a path is bound, or `allow_full_closure`",
            Fails(UnsupportedQuery, 501, "neither end of the path"),
        ),
    },
    "groups by two variables, sorted, one of them unbound": {
        "comunica": Differs(
            "does not keep the order of equal literals",
            Fails(GroupError, 422, "came back after it was closed"),
        ),
    },
    "a WHERE that the engine refuses": {
        **dict.fromkeys(
            ("duckdb", "spark"),
            Differs(
                "does not ask an engine: this package parses the query",
                Fails(QueryError, 400, "expected a variable or an RDF term"),
            ),
        ),
    },
    "groups over pages by blank nodes": {
        engine: Differs(
            "uses the same label for a node in every response",
            Gives([["ex:corp ex:founded _:e", "ex:dale ex:founded _:e"]]),
        )
        for engine in ("oxigraph", "virtuoso")
    },
}
"""The differences of engines from the recommendation, by the name of the case."""

CASES: Final = [
    found._replace(differs={**found.differs, **DIFFERENCES.get(found.name, {})}) for found in _CASES
]
