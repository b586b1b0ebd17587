"""CONSTRUCT queries as data: their templates and SELECTs, and what is refused of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from construct_messages.query.rewrite import ConstructQuery
from construct_messages.rdf.template import (
    Blank,
    Constant,
    Nested,
    Pattern,
    Slot,
    Template,
    Variable,
)

BASE = "http://e/"
PREFIXES = {"": "http://e/", "e": "http://e/"}
NOTHING = "(1 AS ?solution)"

SHORT = [
    (r"<http://www\.w3\.org/1999/02/22-rdf-syntax-ns#type>", "a"),
    (r"<http://www\.w3\.org/1999/02/22-rdf-syntax-ns#(\w+)>", r"rdf:\1"),
    (r"<http://www\.w3\.org/2001/XMLSchema#(\w+)>", r"xsd:\1"),
    (r"<http://e/([^>]*)>", r":\1"),
]


def shown(template: Template) -> list[str]:
    """The patterns in short, as in `?s :p _:0`; the name of the graph stands behind an @."""
    return [_pattern(pattern, template) for pattern in template.patterns]


def _pattern(pattern: Pattern, template: Template) -> str:
    parts = [_slot(slot, template) for slot in pattern if slot is not None]
    return " ".join(parts[:3]) + (f" @{parts[3]}" if len(parts) > 3 else "")


def _slot(slot: Slot, template: Template) -> str:
    match slot:
        case Variable(index):
            return f"?{template.variables[index]}"
        case Blank(index):
            return f"_:{index}"
        case Nested():
            return f"<<( {' '.join(_slot(part, template) for part in slot)} )>>"
        case Constant(term):
            text = str(term)
            for long, short in SHORT:
                text = re.sub(long, short, text)
            return text


def parse(text: str) -> ConstructQuery:
    return ConstructQuery.parse(text, base=BASE, prefixes=PREFIXES)


class Case(NamedTuple):
    id: str
    text: str
    select: str
    patterns: list[str]


def template(id: str, inside: str, *patterns: str, variables: str = NOTHING) -> Case:
    """A case that is about the template alone."""
    used = [prefix for prefix in PREFIXES if re.search(rf"(?<![\w:<@\\]){prefix}:(?!//)", inside)]
    prologue = "".join(f"PREFIX {prefix}: <http://e/> " for prefix in used)
    select = f"BASE <http://e/> {prologue}SELECT {variables} WHERE {{}}"
    return Case(id, f"CONSTRUCT {{ {inside} }} WHERE {{}}", select, list(patterns))


REIFIED = "rdf:reifies <<( :s :p :o )>>"

TEMPLATES = [
    # terms
    template("variables", "?s $p ?o . ?o ?p ?x", "?s ?p ?o", "?o ?p ?x", variables="?s ?p ?o ?x"),
    template("empty", ""),
    template("a", "<x> a <y>", ":x a :y"),
    template("integers", "<x> :p 1, +1, -1", *(f':x :p "{n}"^^xsd:integer' for n in ("1", "+1", "-1"))),
    template("decimals", "<x> :p .5, 1.0.", ':x :p ".5"^^xsd:decimal', ':x :p "1.0"^^xsd:decimal'),
    template("doubles", "<x> :p 1e0, -1.E+2", ':x :p "1e0"^^xsd:double', ':x :p "-1.E+2"^^xsd:double'),
    template("an integer, then a full stop", "<x> :p 1.", ':x :p "1"^^xsd:integer'),
    template("booleans", "<x> :p true, FaLSE", ':x :p "true"^^xsd:boolean', ':x :p "false"^^xsd:boolean'),
    template(
        "booleans around a full stop",
        "<x> :p true.false :p :o",
        ':x :p "true"^^xsd:boolean',
        '"false"^^xsd:boolean :p :o',
    ),
    template(
        "strings",
        """<x> :p "a", 'b', '''c''d''', \"\"\"e"f\\"\"\"\", "", ''""",
        *(f":x :p {text}" for text in ('"a"', '"b"', "\"c''d\"", r'"e\"f\""', '""', '""')),
    ),
    template("string escapes", r'''<x> :p "\t\\\"\'\u00E9\U0001F600"''', r''':x :p "\t\\\"'é😀"'''),
    template(
        "languages",
        '<x> :p "a"@EN, "b"@en-GB, "c" @en--ltr',
        ':x :p "a"@en',
        ':x :p "b"@en-gb',
        ':x :p "c"@en--ltr',
    ),
    template("datatypes", '<x> :p "a"^^:t, "b" ^^ <u>', ':x :p "a"^^:t', ':x :p "b"^^:u'),
    template("xsd:string", '<x> :p "a"^^<http://www.w3.org/2001/XMLSchema#string>', ':x :p "a"'),
    template("local names with full stops", "e:a e:b.c e:d..e.", ":a :b.c :d..e"),
    template(
        "local names",
        "e:a e:b e:1, e:d:e, e:, e:%41-x, e:é, e:_",
        *(f":a :b :{name}" for name in ("1", "d:e", "", "%41-x", "é", "_")),
    ),
    template("local name escapes", r"e:a e:b e:x\-y\,z\~, e:\&", ":a :b :x-y,z~", ":a :b :&"),
    template("no white space", '<x>a<C>;:p"a"@en,?v,[],1.<y>a<D>', ":x a :C", ':x :p "a"@en', ":x :p ?v",
             ":x :p _:0", ':x :p "1"^^xsd:integer', ":y a :D", variables="?v"),
    template("codepoint escapes in names", r"e:\u0061 :\U00000062 ?\u0063, ?c", *[":a :b ?c"] * 2, variables="?c"),
    template("codepoint escapes in IRIs", r"<\u0061> :p </b/\u00e9>", ":a :p :b/é"),
    template("relative IRIs", "<> :p <a/../b>, <//x/y>, <#z>, <?q>", ": :p :b",
             ": :p <http://x/y>", ": :p :#z", ": :p :?q"),
    template("blank nodes", "_:a :p _:b.c, [], [ ] . _:b.c :p _:a", "_:0 :p _:1", "_:0 :p _:2", "_:0 :p _:3",
             "_:1 :p _:0"),
    template("literal subject", '"a" :p 1 . true :p :o', '"a" :p "1"^^xsd:integer', '"true"^^xsd:boolean :p :o'),
    # lists and brackets
    template("semicolons", ":s :p :o ;; a :C ; .", ":s :p :o", ":s a :C"),
    template("property list", "[ :p 'a' ; :q [ a :C ] ] .", '_:0 :p "a"', "_:0 :q _:1", "_:1 a :C"),
    template("property list as subject and object", "[ :p :a ] :q [ :p :b ]", "_:0 :p :a", "_:0 :q _:1", "_:1 :p :b"),
    template("collection", ":s :p (:a ?b)", ":s :p _:0", "_:0 rdf:first :a", "_:0 rdf:rest _:1",
             "_:1 rdf:first ?b", "_:1 rdf:rest rdf:nil", variables="?b"),
    template("collection alone", "(:a) .", "_:0 rdf:first :a", "_:0 rdf:rest rdf:nil"),
    template("collection as subject", "((:a)) :p ()", "_:0 rdf:first _:1", "_:1 rdf:first :a", "_:1 rdf:rest rdf:nil",
             "_:0 rdf:rest rdf:nil", "_:0 :p rdf:nil"),
    template("nil as subject", "() :p ( )", "rdf:nil :p rdf:nil"),
    # triple terms
    template("triple term", ":x :p <<( :s :p :o )>>", ":x :p <<( :s :p :o )>>"),
    template("triple term with variable", ":x :p <<(:s a <<(?s :p _:b)>>)>>", ":x :p <<( :s a <<( ?s :p _:0 )>> )>>",
             variables="?s"),
    template("triple term as subject", "<<( :s :p :o )>> :p :o", "<<( :s :p :o )>> :p :o"),
    template("illegal triple term", ":x :p <<( 'a' :p :o )>>", ':x :p <<( "a" :p :o )>>'),
    template("reified triple", "<< :s :p :o >> :q 'a'", f"_:0 {REIFIED}", '_:0 :q "a"'),
    template("reified triple alone", "<< :s :p :o ~ >> . << :s :p :o ~ :r >>", f"_:0 {REIFIED}", f":r {REIFIED}"),
    template("reified triple as object", ":x :p << :s :p :o ~ ?r >>", ":x :p ?r", f"?r {REIFIED}", variables="?r"),
    template("reified triples nested", "<< << :s :p :o >> :q <<(:s :p :o)>> ~ _:r >> a :C", f"_:0 {REIFIED}",
             "_:1 rdf:reifies <<( _:0 :q <<( :s :p :o )>> )>>", "_:1 a :C"),
    template("reifiers", ":s :p :o ~ :r1 ~ ~ [], 'a'", ":s :p :o", f":r1 {REIFIED}", f"_:0 {REIFIED}",
             f"_:1 {REIFIED}", ':s :p "a"'),
    template("annotation", ":s :p :o {| a :C ; :q 'a' |} .", ":s :p :o", f"_:0 {REIFIED}", "_:0 a :C", '_:0 :q "a"'),
    template("annotations and reifiers", ":s :p :o ~ :r {| a :C |} {| a :D |} ~ ?r", ":s :p :o", f":r {REIFIED}",
             ":r a :C", f"_:0 {REIFIED}", "_:0 a :D", f"?r {REIFIED}", variables="?r"),
    template("annotation in an annotation", ":s :p :o {| a :C ~ :r |}", ":s :p :o", f"_:0 {REIFIED}", "_:0 a :C",
             ":r rdf:reifies <<( _:0 a :C )>>"),
    # Jena's quads templates
    template("graphs", "?s a :A . GRAPH ?g { ?s a :B } . graph :g { ?s a :C . }", "?s a :A", "?s a :B @?g",
             "?s a :C @:g", variables="?s ?g"),
    template("graphs without full stops", "?s a :A GRAPH _:g { ?s a _:g } { ?s a :C } ?s a :D", "?s a :A",
             "?s a _:0 @_:0", "?s a :C", "?s a :D", variables="?s"),
    template("empty graphs", "GRAPH :g {} {} GRAPH [] { :s a [ a :C ] }", ":s a _:1 @_:0", "_:1 a :C @_:0"),
]  # fmt: skip

WHOLE = [
    Case(
        "lines stay",
        "CONSTRUCT\n{\n  ?s ?p ?o\n}\nFROM <urn:g>\nWHERE { ?s ?p ?o }",
        "BASE <http://e/> SELECT ?s ?p ?o\n\n\n\nFROM <urn:g>\nWHERE { ?s ?p ?o }",
        ["?s ?p ?o"],
    ),
    Case("no white space", "CONSTRUCT{?s a ?o}{?s a ?o}", "BASE <http://e/> SELECT ?s ?o {?s a ?o}", ["?s a ?o"]),
    Case("no WHERE", "CONSTRUCT {} FROM <g> {}", "BASE <http://e/> SELECT (1 AS ?solution) FROM <g> {}", []),
    Case(
        "a free name",
        "CONSTRUCT {} { ?solution ?solution0 1 }",
        "BASE <http://e/> SELECT (1 AS ?solution1) { ?solution ?solution0 1 }",
        [],
    ),
    Case(
        "everything behind",
        "construct { ?s a ?t } where { ?s ?t [] } order by ?x limit 5 offset 2 values ?s { <a> } # end",
        "BASE <http://e/> SELECT ?s ?t where { ?s ?t [] } order by ?x limit 5 offset 2 values ?s { <a> } # end",
        ["?s a ?t"],
    ),
    Case(
        "short form",
        "CONSTRUCT WHERE { ?s :p _:b . [ :p ?o ] }",
        "BASE <http://e/> PREFIX : <http://e/> SELECT ?s ?o WHERE { ?s :p _:b . [ :p ?o ] }",
        ["?s :p _:0", "_:1 :p ?o"],
    ),
    Case(
        "short form FROM",
        "CONSTRUCT FROM <a> FROM NAMED <b> WHERE{?s ?p ?o;.}LIMIT 1",
        "BASE <http://e/> SELECT ?s ?p ?o FROM <a> FROM NAMED <b> WHERE{?s ?p ?o;.}LIMIT 1",
        ["?s ?p ?o"],
    ),
    Case("short form, empty", "CONSTRUCT WHERE {}", "BASE <http://e/> SELECT (1 AS ?solution) WHERE {}", []),
    Case(
        "short form with graphs",
        "CONSTRUCT WHERE { ?s a ?t . GRAPH ?g { ?s ?p ?o } { ?a ?b ?c } }",
        "BASE <http://e/> SELECT ?s ?t ?g ?p ?o ?a ?b ?c WHERE { ?s a ?t . GRAPH ?g { ?s ?p ?o } { ?a ?b ?c } }",
        ["?s a ?t", "?s ?p ?o @?g", "?a ?b ?c"],
    ),
    Case(
        "the text's own prologue overrides",
        "BASE <sub/> PREFIX e: <#> VERSION '1.2' PREFIX : <x#> CONSTRUCT { e:a :b <c> } {}",
        "BASE <http://e/> BASE <sub/> PREFIX e: <#> VERSION '1.2' PREFIX : <x#> SELECT (1 AS ?solution) {}",
        [":sub/#a :sub/x#b :sub/c"],
    ),
    Case(
        "a prefix declared twice",
        "PREFIX e: <a#> PREFIX e: <b#> CONSTRUCT { e:x a e:y } {}",
        "BASE <http://e/> PREFIX e: <a#> PREFIX e: <b#> SELECT (1 AS ?solution) {}",
        [":b#x a :b#y"],
    ),
    Case(
        "keywords as prefixes, in IRIs and comments",
        "PREFIX select: <http://e/ask#> # CONSTRUCT {\nCONSTRUCT { select:where a <construct> } WHERE {}",
        "BASE <http://e/> PREFIX select: <http://e/ask#> # CONSTRUCT {\nSELECT (1 AS ?solution) WHERE {}",
        [":ask#where a :construct"],
    ),
    Case(
        "pragmas first",
        "DEFINE input:inference 'e' define sql:x 1\nCONSTRUCT { e:a a ?t } { ?t ?p bif:x option(transitive) }",
        "DEFINE input:inference 'e' define sql:x 1 BASE <http://e/> PREFIX e: <http://e/> "
        "\nSELECT ?t { ?t ?p bif:x option(transitive) }",
        [":a a ?t"],
    ),
    Case(
        "a pragma with two values",
        "DEFINE input:g <a>, <b> DEFINE x:y 1 CONSTRUCT { } { }",
        "DEFINE input:g <a>, <b> DEFINE x:y 1 BASE <http://e/>  SELECT (1 AS ?solution) { }",
        [],
    ),
    Case(
        "Blazegraph's named sub-queries",
        "CONSTRUCT { ?s a ?t } WITH { SELECT ?s { ?s a ?t } } AS %q WHERE { INCLUDE %q hint:Query hint:x ?y }",
        "BASE <http://e/> SELECT ?s ?t WITH { SELECT ?s { ?s a ?t } } AS %q WHERE { INCLUDE %q hint:Query hint:x ?y }",
        ["?s a ?t"],
    ),
    Case(
        "GROUP BY",
        "CONSTRUCT { ?a a ?b . ?a a ?c . ?d a <<( ?a a ?e )>> } { } GROUP BY ?a (?x + 1 AS ?b) STR(?c) (?d) (?e + 1)",
        "BASE <http://e/> SELECT ?a ?b ?d { } GROUP BY ?a (?x + 1 AS ?b) STR(?c) (?d) (?e + 1)",
        ["?a a ?b"],
    ),
    Case(
        "HAVING alone",
        "CONSTRUCT { ?a a ?b . <x> a <y> } { ?a a ?b } HAVING (COUNT(*) > 1)",
        "BASE <http://e/> SELECT (1 AS ?solution) { ?a a ?b } HAVING (COUNT(*) > 1)",
        [":x a :y"],
    ),
    Case(
        "an aggregate in ORDER BY",
        "CONSTRUCT { ?a a ?b . <x> a <y> } { ?a a ?b } ORDER BY DESC(count(*))",
        "BASE <http://e/> SELECT (1 AS ?solution) { ?a a ?b } ORDER BY DESC(count(*))",
        [":x a :y"],
    ),
    Case(
        "GROUP BY in a sub-select",
        "CONSTRUCT { ?a a ?n } { { SELECT ?a (COUNT(*) AS ?n) { ?a a ?b } GROUP BY ?a HAVING (?n > 1) } }",
        "BASE <http://e/> SELECT ?a ?n { { SELECT ?a (COUNT(*) AS ?n) { ?a a ?b } GROUP BY ?a HAVING (?n > 1) } }",
        ["?a a ?n"],
    ),
    Case(
        "GROUP BY without a key in the template",
        "CONSTRUCT { <x> a ?b } { ?a a ?b } GROUP BY ?a",
        "BASE <http://e/> SELECT (1 AS ?solution) { ?a a ?b } GROUP BY ?a",
        [],
    ),
    Case(
        "braces in strings, IRIs and comments",
        "CONSTRUCT { <x> :p '}' , \"\"\"{\"\"\" } # }\n WHERE { # {\n FILTER('}' = \"{\" && ?a<?b && ?a>'''}''') }",
        f"BASE <http://e/> PREFIX : <http://e/> SELECT {NOTHING} # }}\n"
        " WHERE { # {\n FILTER('}' = \"{\" && ?a<?b && ?a>'''}''') }",
        [':x :p "}"', ':x :p "{"'],
    ),
]  # fmt: skip
CASES = TEMPLATES + WHOLE


# --- what is refused ------------------------------------------------------------------------------------------------


class Refused(NamedTuple):
    id: str
    text: str
    line: int
    column: int
    words: str


REFUSED = [
    Refused("an undeclared prefix", "CONSTRUCT { ?s x:p 1 } {}", 1, 16, "prefix x: is not declared"),
    Refused("a datatype's prefix", "CONSTRUCT { ?s a 1 .\n ?s a '1'^^x:p } {}", 2, 12, "prefix x: is not declared"),
    Refused("a directive", "CONSTRUCT { PREFIX e: <x> e:a a 1 } {}", 1, 13, "expected a variable or an RDF term"),
    Refused("a missing full stop", "CONSTRUCT { ?s a 1 ?s a 2 } {}", 1, 20, "expected a full stop"),
    Refused("two full stops", "CONSTRUCT { ?s a 1 . . } {}", 1, 22, "expected a variable or an RDF term"),
    Refused("a full stop first", "CONSTRUCT { . ?s a 1 } {}", 1, 13, "found ."),
    Refused("a comma last", "CONSTRUCT { ?s a 1, } {}", 1, 21, "expected a variable or an RDF term, found }"),
    Refused("a lonely subject", "CONSTRUCT { ?s } {}", 1, 16, "expected a predicate"),
    Refused("a lonely []", "CONSTRUCT { [] . } {}", 1, 16, "expected a predicate"),
    Refused("a lonely ()", "CONSTRUCT { () . } {}", 1, 16, "expected a predicate"),
    Refused("no object", "CONSTRUCT { ?s a } {}", 1, 18, "expected a variable or an RDF term"),
    Refused("A", "CONSTRUCT { ?s A 1 } {}", 1, 16, "expected a predicate"),
    Refused("a as subject", "CONSTRUCT { a a 1 } {}", 1, 13, "expected a variable or an RDF term"),
    Refused("a literal predicate", "CONSTRUCT { ?s 'p' 1 } {}", 1, 16, "expected a predicate"),
    Refused("a blank predicate", "CONSTRUCT { ?s _:p 1 } {}", 1, 16, "expected a predicate"),
    Refused("[] as predicate", "CONSTRUCT { ?s [] 1 } {}", 1, 16, "expected a predicate"),
    Refused("a path", "CONSTRUCT { ?s <p>/<q> 1 } {}", 1, 19, "property paths are not allowed in a template"),
    Refused("an inverse path", "CONSTRUCT { ?s ^<p> 1 } {}", 1, 16, "property paths"),
    Refused("a path in the short form", "CONSTRUCT WHERE { ?s <p>* 1 }", 1, 25, "property paths"),
    Refused("FILTER", "CONSTRUCT { ?s a 1 . FILTER(?s) } {}", 1, 22, "found FILTER"),
    Refused("FILTER in the short form", "CONSTRUCT WHERE\n { ?s a 1 FILTER(?s) }", 2, 11, "found FILTER"),
    Refused("OPTIONAL", "CONSTRUCT { OPTIONAL { ?s a 1 } } {}", 1, 13, "found OPTIONAL"),
    Refused("an expression", "CONSTRUCT { ?s a (concat(?a) as ?b) } {}", 1, 19, "found concat"),
    Refused("a placeholder", "CONSTRUCT { ?s a ${x} } {}", 1, 18, "found $"),
    Refused("a placeholder with %", "CONSTRUCT { ?s a %x% } {}", 1, 18, "found %"),
    Refused("a no-break space", "CONSTRUCT { ?s\u00a0a 1 } {}", 1, 15, "expected a predicate"),
    Refused("an unclosed string", "CONSTRUCT { ?s a 'x }\n } {}", 1, 18, "found an unclosed string"),
    Refused("an unknown escape", r"CONSTRUCT { ?s a '\x' } {}", 1, 18, "unknown escape"),
    Refused("a surrogate", r"CONSTRUCT { ?s a '\uD800' } {}", 1, 18, "not a character"),
    Refused("a surrogate in a name", r"CONSTRUCT { ?s a ?\uD800 } {}", 1, 18, "not a character"),
    Refused("an escaped space", r"CONSTRUCT { ?s a ?x\u0020y } {}", 1, 18, "is not allowed there"),
    Refused("an escaped bracket", r"CONSTRUCT { ?s a <x\u003Ey> } {}", 1, 18, "cannot be resolved"),
    Refused("an unresolvable IRI", "CONSTRUCT { ?s a <//[x> } {}", 1, 18, "cannot be resolved"),
    Refused("a direction", "CONSTRUCT { ?s a 'x'@en--LTR } {}", 1, 21, "neither ltr nor rtl"),
    Refused("an unclosed bracket", "CONSTRUCT { ?s a [ a 1 } {}", 1, 24, "expected ]"),
    Refused("an unclosed collection", "CONSTRUCT { ?s a ( 1 } {}", 1, 22, "found }"),
    Refused("a collection in a reified triple", "CONSTRUCT { << ?s a () >> a 1 } {}", 1, 21, "a collection"),
    Refused("a bracket in a reified triple", "CONSTRUCT { << [ a 1 ] a 1 >> } {}", 1, 16, "found ["),
    Refused("a reified triple in a triple term", "CONSTRUCT { ?s a <<( <<?s a 1>> a 1 )>> } {}", 1, 22, "found <<"),
    Refused("an unclosed reified triple", "CONSTRUCT { << ?s a 1 . } {}", 1, 23, "expected >>"),
    Refused("an unclosed triple term", "CONSTRUCT { ?s a <<( ?s a 1 >> } {}", 1, 29, "expected )>>"),
    Refused("an empty annotation", "CONSTRUCT { ?s a 1 {| |} } {}", 1, 23, "expected a predicate"),
    Refused("a literal reifier", "CONSTRUCT { ?s a 1 ~ 2 } {}", 1, 22, "expected a full stop"),
    Refused("an annotation in a collection", "CONSTRUCT { ?s a (1 ~ <r>) } {}", 1, 21, "found ~"),
    Refused("a literal graph", "CONSTRUCT { GRAPH 'g' { ?s a 1 } } {}", 1, 19, "as the name of the graph"),
    Refused("a nested graph", "CONSTRUCT { GRAPH ?g { GRAPH ?h {} } } {}", 1, 24, "expected }"),
    Refused("a graph's missing full stop", "CONSTRUCT { GRAPH ?g { ?s a 1 ?s a 2 } } {}", 1, 31, "expected }"),
    Refused("deep brackets", f"CONSTRUCT {{ ?s a {'[ a ' * 101} 1 {']' * 101} }} {{}}", 1, 418, "more than 100 deep"),
    Refused("an unclosed template", "CONSTRUCT { ?s a 1 WHERE { ?s a 1 }", 1, 11, "this { is never closed"),
    Refused("an unclosed group", "CONSTRUCT { ?s a 1 }\nWHERE { { ?s a 1 }", 2, 7, "this { is never closed"),
    Refused("a brace too many", "CONSTRUCT { ?s a 1 }\n} WHERE { ?s a 1 }", 2, 1, "this } closes nothing"),
    Refused("no WHERE", "CONSTRUCT { ?s a 1 }", 1, 21, "there is no WHERE group"),
    Refused("no template", "CONSTRUCT", 1, 10, "expected { or WHERE"),
    Refused("no template but a pattern", "CONSTRUCT FROM <g> { ?s a 1 }", 1, 20, "expected WHERE"),
    Refused("13.2: a projection", "CONSTRUCT { ?s a 1 } (COUNT(*) AS ?n) { ?s a 1 }", 1, 22, "or {, found ("),
    Refused("13.2: a variable", "CONSTRUCT { ?s a 1 }\n?x { ?s a 1 }", 2, 1, "expected FROM, WHERE or {, found ?x"),
    Refused("13.2: $WHERE", "CONSTRUCT { ?s a 1 } $WHERE { ?s a 1 }", 1, 22, "found $WHERE"),
    Refused("13.2: a full stop", "CONSTRUCT { ?s a 1 } . { ?s a 1 }", 1, 22, "found ."),
    Refused("13.2: an asterisk", "CONSTRUCT { ?s a 1 } * { ?s a 1 }", 1, 22, "found *"),
    Refused("13.2: WHERE twice", "CONSTRUCT { ?s a 1 } WHERE WHERE { ?s a 1 }", 1, 28, "expected { after WHERE"),
    Refused("13.2: FROM behind WHERE", "CONSTRUCT { ?s a 1 } WHERE FROM <g> { }", 1, 28, "expected { after WHERE"),
    Refused("13.2: FROM a variable", "CONSTRUCT { ?s a 1 } FROM ?g { ?s a 1 }", 1, 27, "expected the IRI of a graph"),
    Refused("13.2: FROM nothing", "CONSTRUCT { ?s a 1 } FROM NAMED { ?s a 1 }", 1, 33, "expected the IRI of a graph"),
    Refused("13.2: two IRIs", "CONSTRUCT { ?s a 1 } FROM <g> <h> { ?s a 1 }", 1, 31, "found <h>"),
    Refused("13.2: VALUES", "CONSTRUCT { ?s a 1 } VALUES ?s { 1 } { ?s a 1 }", 1, 22, "found VALUES"),
    Refused("13.2: the short form", "CONSTRUCT FROM <g> ?x WHERE { ?s a 1 }", 1, 20, "found ?x"),
    Refused("13.2: nothing behind FROM", "CONSTRUCT { ?s a 1 } FROM", 1, 26, "there is no WHERE group"),
    Refused("13.2: a name without sign", "CONSTRUCT { ?s a 1 } WITH { } AS n { ?s a 1 }", 1, 34, "as in %name"),
    Refused("DISTINCT", "CONSTRUCT DISTINCT { ?s a 1 } {}", 1, 11, "found DISTINCT"),
    Refused("no query", "PREFIX e: <x>\n{ CONSTRUCT }", 2, 14, "there is no CONSTRUCT"),
    Refused("nothing", "", 1, 1, "there is no CONSTRUCT"),
]  # fmt: skip
