"""One table of message cases: a query over a little data, options, and the quads of each message."""

from __future__ import annotations

from construct_messages.rdf import terms

PREFIX = "PREFIX ex: <http://example.org/>\n"
DATA = """
@prefix ex: <http://example.org/> .
ex:acme a ex:Company ; ex:location ex:be, ex:nl ; ex:name "Acme"@en .
ex:bolt a ex:Company ; ex:location ex:be ; ex:name "Bolt"@en, "Boulon"@fr .
ex:corp a ex:Company ; ex:location "somewhere" ; ex:founded _:event .
_:event ex:year 1999 .
ex:be ex:label "België"@nl ; ex:population 11500000 ; ex:open true ; ex:share 0.5 .
ex:nl ex:label "Nederland"@nl .
"""


XSD = terms.XSD


def quads(*short: str) -> list[str]:
    """Quads in short: IRIs below example.org by their last part, `a` for rdf:type, other terms as they are."""

    def term(position: int, part: str) -> str:
        if part[0] in '<"_':
            return part
        return (
            f"<{terms.RDF}type>" if (position, part) == (1, "a") else f"<http://example.org/{part}>"
        )

    return [
        " ".join([*(term(*item) for item in enumerate(quad.split(" "))), "."]) for quad in short
    ]


EACH = "{ ?c ex:location ?l } ORDER BY ?c ?l"

# name, query (without the prefix), options, the quads of each message
CASES: list[tuple[str, str, dict[str, object], list[list[str]]]] = [
    (
        "one message per solution",
        f"CONSTRUCT {{ ?c ex:in ?l }} {EACH}",
        {},
        [
            quads("acme in be"),
            quads("acme in nl"),
            quads("bolt in be"),
            quads('corp in "somewhere"'),
        ],
    ),
    (
        "dropped triples leave the rest, and empty messages stay",
        "CONSTRUCT { ?l ex:of ?c . ?l ex:label ?n } WHERE "
        "{ ?c ex:location ?l OPTIONAL { ?l ex:label ?n } } ORDER BY ?c ?l",
        {},
        [
            quads("be of acme", 'be label "België"@nl'),
            quads("nl of acme", 'nl label "Nederland"@nl'),
            quads("be of bolt", 'be label "België"@nl'),
            [],
        ],
    ),
    (
        "skip_empty",
        f"CONSTRUCT {{ ?l ex:of ?c }} {EACH}",
        {"skip_empty": True},
        [quads("be of acme"), quads("nl of acme"), quads("be of bolt")],
    ),
    (
        "group_by in order of appearance",
        "CONSTRUCT { ?c ex:in ?l } WHERE { ?c ex:location ?l } ORDER BY DESC(STR(?l)) ?c",
        {"group_by": ("?c",)},
        [quads('corp in "somewhere"'), quads("acme in nl", "acme in be"), quads("bolt in be")],
    ),
    (
        "group_by a variable outside the template",
        f"CONSTRUCT {{ ?c a ex:Thing }} {EACH}",
        {"group_by": ("l",)},
        [quads("acme a Thing", "bolt a Thing"), quads("acme a Thing"), quads("corp a Thing")],
    ),
    (
        "template blank nodes are fresh in each solution of a group",
        f"CONSTRUCT {{ ?c ex:has [ ex:place ?l ] }} {EACH} LIMIT 2",
        {"group_by": "?c"},
        [quads("acme has _:x_t0b0", "_:x_t0b0 place be", "acme has _:x_t1b0", "_:x_t1b0 place nl")],
    ),
    (
        "group_by sorted keeps the slice",
        f"CONSTRUCT {{ ?c ex:in ?l }} {EACH} LIMIT 3",
        {"group_by": ("?l",), "group_order": "sorted"},
        [quads("acme in be", "bolt in be"), quads("acme in nl")],
    ),
    (
        "distinct",
        f"CONSTRUCT {{ ?l ex:used true }} {EACH}",
        {"distinct": True},
        [quads(f'be used "true"^^<{XSD}boolean>'), quads(f'nl used "true"^^<{XSD}boolean>'), []],
    ),
    (
        "duplicates stay unless told otherwise",
        f"CONSTRUCT {{ ex:x ex:y ex:z }} {EACH}",
        {},
        [quads("x y z")] * 4,
    ),
    (
        "duplicates of one variable",
        "CONSTRUCT { ex:x ex:at ?l } WHERE { ?c ex:location ?l FILTER isIRI(?l) } ORDER BY ?l",
        {},
        [quads("x at be"), quads("x at be"), quads("x at nl")],
    ),
    (
        "13.1: solutions without a binding",
        "CONSTRUCT { ex:log ex:entry [ ex:name ?n ] } WHERE "
        '{ ?c a ex:Company OPTIONAL { ?c ex:name ?n FILTER (LANG(?n) = "fr") } } ORDER BY ?c',
        {},
        [
            quads("log entry _:x_t0b0"),
            quads('_:x_t1b0 name "Boulon"@fr', "log entry _:x_t1b0"),
            quads("log entry _:x_t2b0"),
        ],
    ),
    (
        "13.1: a variable that is never bound",
        "CONSTRUCT { ex:x ex:y ?never ; ex:z ex:w } WHERE { ?c a ex:Company }",
        {},
        [quads("x z w")] * 3,
    ),
    (
        "template blank nodes are fresh in each solution",
        f"CONSTRUCT {{ [] ex:at ?l }} {EACH} LIMIT 2",
        {},
        [quads("_:x_t0b0 at be"), quads("_:x_t1b0 at nl")],
    ),
    (
        "distinct compares template blank nodes by slot",
        f"CONSTRUCT {{ _:x ex:at ?l ; ex:same _:x }} {EACH} LIMIT 3",
        {"distinct": True},
        [
            quads("_:x_t0b0 at be", "_:x_t0b0 same _:x_t0b0"),
            quads("_:x_t1b0 at nl", "_:x_t1b0 same _:x_t1b0"),
        ],
    ),
    (
        "numbers and booleans are expanded",
        "CONSTRUCT { ex:be ex:v ?p, ?o, ?s } WHERE { ex:be ex:population ?p ; ex:open ?o ; ex:share ?s }",
        {},
        [
            quads(
                f'be v "11500000"^^<{XSD}integer>',
                f'be v "true"^^<{XSD}boolean>',
                f'be v "0.5"^^<{XSD}decimal>',
            )
        ],
    ),
    ("no solutions", "CONSTRUCT { ?x ex:b ex:c } WHERE { ?x a ex:Nothing }", {}, []),
    (
        "max_messages",
        f"CONSTRUCT {{ ?c ex:in ?l }} {EACH}",
        {"max_messages": 2},
        [quads("acme in be"), quads("acme in nl")],
    ),
    ("max_messages of none", f"CONSTRUCT {{ ?c ex:in ?l }} {EACH}", {"max_messages": 0}, []),
    (
        "the short form",
        "CONSTRUCT WHERE { ?l ex:label ?n }",
        {"group_by": ("?n",), "group_order": "sorted"},
        [quads('be label "België"@nl'), quads('nl label "Nederland"@nl')],
    ),
    (
        "initial bindings",
        "CONSTRUCT { ?c ex:in ?l } WHERE { ?c ex:location ?l } ORDER BY ?c",
        {"bindings": {"?l": "<http://example.org/be>"}},
        [quads("acme in be"), quads("bolt in be")],
    ),
    (
        "a sub-select's aggregates",
        "CONSTRUCT { ?l ex:companies ?n } WHERE "
        "{ SELECT ?l (COUNT(?c) AS ?n) { ?c ex:location ?l } GROUP BY ?l } ORDER BY DESC(?n) ?l",
        {"skip_empty": True},
        [quads(f'be companies "2"^^<{XSD}integer>'), quads(f'nl companies "1"^^<{XSD}integer>')],
    ),
    (
        "GROUP BY",
        "CONSTRUCT { ?l ex:used ?c } WHERE { ?c ex:location ?l } GROUP BY ?l ORDER BY ?l",
        {},
        [[], [], []],
    ),
    (
        "13.3: a trailing VALUES behind GROUP BY",
        "CONSTRUCT { ?l ex:called ?u ; ex:by ?c } WHERE { ?c ex:location ?l } GROUP BY ?l HAVING (COUNT(?c) > 0) "
        'ORDER BY DESC(COUNT(?c)) ?u VALUES (?l ?u) { (ex:nl "three") (ex:be "one") (ex:be "two") (ex:none "none") }',
        {},
        [quads('be called "one"'), quads('be called "two"'), quads('nl called "three"')],
    ),
    (
        "13.3: a trailing VALUES behind HAVING alone",
        "CONSTRUCT { ex:x ex:y ?u } WHERE { ?c ex:location ?l } HAVING (COUNT(*) = 4) ORDER BY ?u VALUES ?u { 1 2 }",
        {},
        [quads(f'x y "1"^^<{XSD}integer>'), quads(f'x y "2"^^<{XSD}integer>')],
    ),
    (
        "13.3: grouping by what a trailing VALUES binds",
        "CONSTRUCT { ?l ex:called ?u } WHERE { ?c ex:location ?l } GROUP BY ?l VALUES (?l ?u) { (ex:nl 1) (ex:be 1) }",
        {"group_by": "?u", "group_order": "sorted"},
        [quads(f'be called "1"^^<{XSD}integer>', f'nl called "1"^^<{XSD}integer>')],
    ),
    (
        "13.16: initial bindings of what BIND assigns",
        "CONSTRUCT { ?c ex:in ?place } WHERE { ?c ex:location ?l BIND(?l AS ?place) } ORDER BY ?c",
        {"bindings": {"place": "<http://example.org/be>"}},
        [quads("acme in be"), quads("bolt in be")],
    ),
    (
        "13.16: initial bindings of a plain value",
        "CONSTRUCT { ?l ex:people ?n } WHERE { ?l ex:population ?n }",
        {"bindings": {"n": 11500000}},
        [quads(f'be people "11500000"^^<{XSD}integer>')],
    ),
    (
        "a quads template",
        "CONSTRUCT { GRAPH ?c { ?l ex:label ?n } ?c ex:has ?l } WHERE "
        "{ ?c ex:location ?l . ?l ex:label ?n } ORDER BY ?c ?l LIMIT 1",
        {},
        [quads('be label "België"@nl acme', "acme has be")],
    ),
    (
        "a relative IRI and a prefix from outside",
        "CONSTRUCT { <here> my:ocal ?l } WHERE { ?l my:abel ?n } ORDER BY ?l LIMIT 1",
        # not the namespace of ex: rdflib knows one prefix for each
        {"base": "http://example.org/", "prefixes": {"my": "http://example.org/l"}},
        [quads("here local be")],
    ),
]
