"""What a text makes the engine fetch: found wherever it hides, with the embedded engine itself as the oracle."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from construct_messages.errors import Forbidden, Position, QueryError, TermError
from construct_messages.query.rewrite import ConstructQuery
from construct_messages.query.service import (
    check_fetches,
    check_functions,
    check_loads,
    check_services,
    redirect_services,
    services,
)
from construct_messages.sparql.sources.http.profiles import PROFILES
from tests.support.growth import bounded_cpu

FOUND: dict[str, tuple[str, list[tuple[str | None, bool]]]] = {
    "none": ("SELECT * { ?s ?p ?o }", []),
    "constant": ("ASK { SERVICE <urn:a> {} }", [("urn:a", False)]),
    "silent": ("ASK { service  silent<urn:a>{} }", [("urn:a", True)]),
    "variable": ("ASK { SERVICE ?s {} SERVICE SILENT $s {} }", [(None, False), (None, True)]),
    "prefixed name": ("PREFIX e: <urn:> ASK { SERVICE e:a {} }", [("urn:a", False)]),
    "empty prefix": ("PREFIX : <urn:a> ASK { SERVICE : {} }", [("urn:a", False)]),
    "prefix declared twice": (
        "PREFIX e: <urn:> PREFIX e: <urn:x:> ASK { SERVICE e:a {} }",
        [("urn:x:a", False)],
    ),
    "prefix not declared": ("ASK { SERVICE e:a {} }", [(None, False)]),
    "prefix declared too late": ("ASK { SERVICE e:a {} } PREFIX e: <urn:>", [(None, False)]),
    "relative": ("BASE <http://e/x/> ASK { SERVICE <../a> {} }", [("http://e/a", False)]),
    "relative to nothing": ("ASK { SERVICE <a> {} }", [(None, False)]),
    "escaped": (r"ASK { SERVICE <urn:\u0061> {} }", [("urn:a", False)]),
    "nested": (
        "ASK { SERVICE <urn:a> { SERVICE <urn:b> {} } }",
        [("urn:a", False), ("urn:b", False)],
    ),
    "in a sub-query": ("ASK { { SELECT * { { SERVICE <urn:a> {} } } } }", [("urn:a", False)]),
    "in EXISTS": ("ASK { FILTER(1 < 2 && NOT EXISTS { SERVICE <urn:a> {} }) }", [("urn:a", False)]),
    "in OPTIONAL": ("ASK { OPTIONAL{SERVICE <urn:a> {}} }", [("urn:a", False)]),
    "in CONSTRUCT": (
        "CONSTRUCT { ?s ?p ?o } WHERE { SERVICE <urn:a> { ?s ?p ?o } }",
        [("urn:a", False)],
    ),
    "in an update": ("DELETE {} INSERT {} WHERE { SERVICE <urn:a> {} }", [("urn:a", False)]),
    "between updates": (
        "PREFIX e: <urn:> CLEAR ALL; PREFIX e: <urn:x:> INSERT {} WHERE { SERVICE e:a {} }",
        [("urn:x:a", False)],
    ),
    "over lines": ("ASK { SERVICE # <urn:x>\n SILENT # ?x\r<urn:a> {} }", [("urn:a", True)]),
    "behind a comment": ("ASK { # x\rSERVICE <urn:a> {} }", [("urn:a", False)]),
    "in a comment": ("ASK { # SERVICE <urn:a> {} \n }", []),
    "in strings": (
        """ASK { ?s ?p "SERVICE <urn:a> {}", '''a'SERVICE'b''', 'it\\'s SERVICE' }""",
        [],
    ),
    "in an IRI": ("ASK { ?s <urn:SERVICE> <http://e/service> }", []),
    "in names": ("PREFIX service: <urn:x> ASK { ?service service:service _:service }", []),
    "a graph": ("PREFIX service: <urn:x> ASK { GRAPH service:a { ?s ?p ?o } }", []),
    "as a language": ("ASK { ?s ?p 'a'@service }", []),
    "comparisons": ("ASK { FILTER(?a<?b || ?b<<#service>) }", [(None, False)]),
    "far IRIs in a list": ("ASK { ?s ?p (1 <http://e/#service> ?x <http://e/a(service)>) }", []),
    # an engine that has no tokens reads these, and Oxigraph is one
    "glued to SILENT": ("ASK { SERVICESILENT<urn:a>{} }", [("urn:a", True)]),
    "glued to a name": ("PREFIX e: <urn:> ASK { SERVICEe:a{} }", [(None, False)]),
    "glued to SILENT and a name": ("PREFIX e: <urn:> ASK { SERVICE SILENTe:a{} }", [(None, False)]),
    "glued to an empty prefix": ("PREFIX : <urn:> ASK { {}SERVICE:a{} }", [(None, False)]),
    "glued to what is before": ("ASK { ?s ?p trueSERVICE<urn:a>{} }", [("urn:a", False)]),
    "glued to a number": ("ASK { ?s ?p 1.SERVICE<urn:a>{} }", [("urn:a", False)]),
    "a glued declaration": (
        "PREFIX e: <urn:> PREFIXe: <urn:x:> ASK { SERVICE e:a {} }",
        [(None, False)],
    ),
    "a glued declaration, far": (
        "PREFIXe: <urn:x:> ASK { SERVICE <http://e/> {} }",
        [("http://e/", False)],
    ),
    "behind an unclosed string": ("ASK { VALUES ?x {'''a' } SERVICE <urn:a> {} }", [(None, False)]),
    "in a doubtful long string": (
        "ASK { VALUES ?x {'''a' } SERVICE <urn:a> {} #\\q'''\n }",
        [(None, False)],
    ),
    "in an operand": ("ASK { FILTER('1'<'>')SERVICE <urn:a>{} FILTER('1'<'>') }", [(None, False)]),
    "in a comment's string": (
        "ASK { FILTER(1<2#>'''\n)SERVICE <urn:a> {}#'''\n }",
        [(None, False)],
    ),
    "behind <<": ("ASK { FILTER(<a:b><<b:'>)SERVICE <urn:a>{} FILTER(1<'>') }", [(None, False)]),
    "in what looks like an IRI": (
        "PREFIX e: <urn:> ASK { FILTER(1<2)SERVICEe:a#>\n{} }",
        [(None, False)],
    ),
    # engines that decode escapes before they read
    "an escaped keyword": (r"ASK { SERV\u0049CE <urn:a> {} }", [(None, False)]),
    "an escaped bracket": (
        r"ASK { SERVICE \U0000003Curn:a\u003E {} }",
        [(None, False), (None, False)],
    ),
    "an escaped line break": (r"ASK { # \u000A SERVICE <urn:a> {}" + "\n }", [(None, False)]),
    "an escaped surrogate": (r"ASK { ?s ?p '\uD800' . SERVICE <urn:a> {} }", [("urn:a", False)]),
    "escapes elsewhere": (r"ASK { ?s ?p 'caf\u00e9' . SERVICE <urn:a> {} }", [("urn:a", False)]),
    # never raises
    "at the end": ("ASK { SERVICE", [(None, False)]),
    "silent at the end": ("ASK { SERVICE SILENT", [(None, True)]),
    "followed by rubbish": ("ASK { SERVICE 'a' {} SERVICE } SERVICE {", [(None, False)] * 3),
}


@pytest.mark.parametrize("case", FOUND)
def test_services(case: str) -> None:
    text, expected = FOUND[case]
    assert [(clause.iri, clause.silent) for clause in services(text)] == expected


# Issue 13, 21: each of these makes a Virtuoso or a Jena fetch, or may; tests/server/security/ asks a Virtuoso.
REACHING = {
    "a name": "SELECT (bif:http_get('http://e/') AS ?x) {}",
    "an IRI": "SELECT (<bif:http_get>('http://e/') AS ?x) {}",
    "in capitals": "SELECT (bif:HTTP_GET('http://e/') AS ?x) {}",
    "a prefix in capitals": "SELECT (BIF:http_get('http://e/') AS ?x) {}",
    "a prefix of one's own": "PREFIX x: <bif:> SELECT (x:http_get('http://e/') AS ?x) {}",
    "a prefix with part of the name": "PREFIX x: <bif:http_> SELECT (x:get('http://e/') AS ?x) {}",
    "a prefix with part of the namespace": "PREFIX x: <bi> SELECT (x:f:http_get('http://e/') AS ?x) {}",
    "an empty namespace": "PREFIX x: <> SELECT (x:bif:http_get('http://e/') AS ?x) {}",
    "a base": "BASE <bif:> SELECT (<http_get>('http://e/') AS ?x) {}",
    "a glued declaration": "PREFIXx:<bif:> SELECT (x:http_get('http://e/') AS ?x) {}",
    "a procedure": "SELECT (sql:FETCH_IT('http://e/') AS ?x) {}",
    "a procedure by its bare name": "SELECT (<FETCH_IT> ('http://e/') AS ?x) {}",
    "a file": "SELECT (bif:file_to_string('/etc/passwd') AS ?x) {}",
    "in a FILTER": "SELECT * { ?s ?p ?o FILTER(bif:http_get(?o) != 1) }",
    "in an ORDER BY": "SELECT * { ?s ?p ?o } ORDER BY bif:http_get(?o)",
    "in a pattern of a CONSTRUCT": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o BIND(bif:http_get(?o) AS ?x) }",
    "behind a safe one": "SELECT (bif:lower(bif:http_get(?o)) AS ?x) {}",
    "behind a comparison": "SELECT * { ?s ?p ?o FILTER(1<bif:http_get('http://e/')>0) }",
    "behind what looks like an IRI": "SELECT * { ?s ?p ?o FILTER(1<(bif:http_get('http://e/'))>0) }",
    "an escaped letter": r"SELECT (b\u0069f:http_get('http://e/') AS ?x) {}",
    "escaped in an IRI": r"SELECT (<b\u0069f:http_get>('http://e/') AS ?x) {}",
    "behind an unclosed string": "SELECT * { VALUES ?x {'''a' } BIND(bif:http_get('http://e/') AS ?x) }",
    "a class of Java": "SELECT (<java:java.lang.System.exit>(1) AS ?x) {}",
}
KEEPING = {
    "nothing": "SELECT * { ?s ?p ?o }",
    "safe ones": "SELECT * { ?s ?p ?o . ?o bif:contains 'a' . FILTER(<bif:st_intersects>(?a, ?b, 1)) }",
    "in a string": "SELECT * { ?s ?p 'bif:http_get(1)' # sql:x\n }",
    "functions of others": "SELECT (xsd:integer(?o) AS ?x) (<http://e/bif:f>(?o) AS ?y) {}",
    "relative IRIs": "SELECT * { <a> <b> <> }",
    "a relative function over a base": "BASE <http://e/> SELECT (<f>(?o) AS ?x) {}",
    "a prefix of another namespace": "PREFIX b: <http://e/> SELECT (b:if(?o) AS ?x) { ?bif b:sql ?sql }",
}
GENERIC = PROFILES["generic"]


@pytest.mark.parametrize("case", REACHING)
def test_functions_that_reach_out(case: str) -> None:
    with pytest.raises(Forbidden) as refused:
        check_functions(REACHING[case], GENERIC.unsafe_functions, GENERIC.safe_functions)
    assert refused.value.position
    assert refused.value.hint
    check_functions(REACHING[case], (), ())  # nothing is known of an engine without such functions


@pytest.mark.parametrize("case", KEEPING)
def test_functions_that_reach_nothing(case: str) -> None:
    check_functions(KEEPING[case], GENERIC.unsafe_functions, GENERIC.safe_functions)


@pytest.mark.parametrize(
    ("text", "policy", "column"),
    [
        ("LOAD <urn:a>", "allow", None),
        ("LOAD <urn:a>", "deny", 6),
        ("LOAD <urn:a>", {"urn:a"}, None),
        ("LOAD SILENT <urn:b> INTO GRAPH <urn:a>", {"urn:a"}, 13),
        ("PREFIX e: <urn:> LOAD e:a", {"urn:a"}, None),
        ("LOAD e:a", {"urn:a"}, 6),
        ("CLEAR ALL;load<urn:a>", "deny", 15),
        ("LOADSILENT<urn:a>", {"urn:a"}, 11),
        (r"LO\u0041D <urn:a>", "deny", 6),
        (r"LOAD <urn:\u0061>", {"urn:a"}, None),
        ("INSERT DATA { <urn:LOAD> <urn:p> 'LOAD <urn:a>' }", "deny", None),
        ("DELETE WHERE { ?load ?p ex:load }", "deny", None),
        ("LOAD", "deny", 5),
    ],
    ids=str,
)
def test_loads(text: str, policy: str | set[str], column: int | None) -> None:
    """A sibling of issue 13, 21: LOAD fetches, too."""
    if column is None:
        check_loads(text, policy)
        return
    with pytest.raises(Forbidden) as refused:
        check_loads(text, policy)
    assert refused.value.position == Position(1, column)


def test_place() -> None:
    (clause,) = services("ASK { SERVICE SILENT <urn:a> {} }")
    assert (clause.start, clause.end) == (21, 28)


@pytest.mark.parametrize(
    ("text", "policy", "place"),
    [
        ("ASK { SERVICE <urn:a> {} }", "allow", None),
        ("ASK { SERVICE ?a {} }", "allow", None),
        ("ASK {}", "deny", None),
        ("ASK { SERVICE <urn:a> {} }", "deny", (1, 15)),
        ("ASK {\n SERVICE SILENT <urn:a> {} }", "deny", (2, 17)),
        ("ASK { SERVICE <urn:a> {} }", ["urn:a"], None),
        ("PREFIX e: <urn:> ASK { SERVICE e:a {} SERVICE e:b {} }", ["urn:a", "urn:b"], None),
        ("ASK { SERVICE <urn:a> {} SERVICE <urn:b> {} }", {"urn:a"}, (1, 34)),
        ("ASK { SERVICE <urn:a/> {} }", {"urn:a"}, (1, 15)),
        ("ASK { SERVICE <URN:a> {} }", {"urn:a"}, (1, 15)),
        ("ASK { SERVICE ?a {} }", {"urn:a"}, (1, 15)),
        ("ASK { SERVICE e:a {} }", {"urn:a"}, (1, 15)),
    ],
    ids=str,
)
def test_policies(text: str, policy: object, place: tuple[int, int] | None) -> None:
    if place is None:
        check_services(text, policy)
        return
    with pytest.raises(Forbidden, match="SERVICE") as refused:
        check_services(text, policy)
    assert refused.value.status == 403
    assert refused.value.position == Position(*place)
    assert refused.value.hint


def test_redirection() -> None:
    text = "PREFIX e: <urn:> # SERVICE <urn:a>\nASK{SERVICE e:a{}SERVICE SILENT<urn:b>{SERVICE <urn:a> {}}SERVICE ?x{}}"
    assert redirect_services(text, {"urn:a": "urn:c"}) == (
        "PREFIX e: <urn:> # SERVICE <urn:a>\n"
        "ASK{SERVICE <urn:c>{}SERVICE SILENT<urn:b>{SERVICE <urn:c> {}}SERVICE ?x{}}"
    )
    assert redirect_services(text, {}) == text
    with pytest.raises(TermError, match="relative"):
        redirect_services(text, {"urn:a": "c"})


FETCHING = {
    "DEFINE get:soft 'soft' SELECT * {}": "get:soft",
    "define input:inference 'x'\ndefine Get:Soft \"replacing\" ASK {}": "Get:Soft",
    "DEFINE input:grab-all 'yes' ASK {}": "input:grab-all",
    "DEFINE input:default-graph-uri <urn:g> DEFINE input:grab-var 'x' ASK {}": "input:grab-var",
    "SELECT * FROM <urn:g> OPTION (get:soft 'soft', get:method 'GET') {}": "get:soft",
    "SELECT * FROM <urn:g> OPTION (sql:x (1), get:refresh '1') {}": "get:refresh",
    r"DEFIN\u0045 get:soft 'soft' ASK {}": "get:soft",
    r"DEFINE g\u0065t:soft 'soft' ASK {}": "get:soft",
    "DEFINE <get:soft> 'soft' ASK {}": "<get:soft>",
    "DEFINE x:y 'a\nDEFINE get:soft 'soft' ASK {}": "get:",
}
NOT_FETCHING = [
    "SELECT * { ?s ?p ?o }",
    "DEFINE input:inference 'x' SELECT * { ?s <get:soft> ?o }",
    "PREFIX get: <urn:> SELECT * { ?s get:soft ?o OPTION (TRANSITIVE) }",
    "# DEFINE get:soft 'soft'\nSELECT * { ?s ?p \"DEFINE get:soft\" }",
]


@pytest.mark.parametrize("text", FETCHING)
def test_pragmas_that_fetch(text: str) -> None:
    with pytest.raises(Forbidden, match=FETCHING[text]) as refused:
        check_fetches(text)
    assert refused.value.position


@pytest.mark.parametrize("text", NOT_FETCHING)
def test_other_pragmas(text: str) -> None:
    check_fetches(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "SERVICE ",
        "SERVICEe:a{",
        "SERVICE e:a ",
        "PREFIX e: <urn:> ",
        "e:a;PREFIX e:<urn:>SERVICE e:a ",
        "(1<'>",
        "'''",
    ],
)
def test_linear_time(part: str) -> None:
    text = part * (100_000 // len(part))
    with bounded_cpu():
        services(text)
        with suppress(Forbidden):
            check_fetches(f"{text} DEFINE x:y 'get:'")


class Listener:
    """What answers every SERVICE with one empty solution, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        body = b'{"head":{"vars":[]},"results":{"bindings":[{}]}}'
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/sparql-results+json\r\n"
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return  # closed
            with connection:
                self.paths.append(connection.recv(65536).split(b" ", 2)[1].decode())
                connection.sendall(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body))

    def asked(self, query: str) -> list[str]:
        """The paths that the embedded engine asks for when it evaluates the query; none where it refuses it."""
        self.paths.clear()
        store = ox.Store()
        store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal("o")))
        try:
            results = store.query(query)
            if not isinstance(results, ox.QueryBoolean):
                list(results)
        except (SyntaxError, OSError, RuntimeError, ValueError):
            pass  # what it asked for until then counts
        return list(self.paths)


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    listening = Listener()
    yield listening
    listening.socket.close()


def test_the_engine_reaches_out_by_service_alone(listener: Listener) -> None:
    url = listener.url
    assert listener.asked(f"ASK {{ SERVICE <{url}a> {{}} }}") == ["/a"]
    for text in (
        f"ASK FROM <{url}> {{}}",
        f"SELECT * FROM NAMED <{url}> {{ GRAPH ?g {{}} }}",
        f"DESCRIBE <{url}>",
    ):
        assert listener.asked(text) == []


UNREACHED = {
    *(
        "none",
        "variable",
        "prefix declared twice",
        "prefix not declared",
        "prefix declared too late",
        "relative",
    ),
    *(
        "relative to nothing",
        "escaped",
        "in an update",
        "between updates",
        "in a comment",
        "in strings",
        "in an IRI",
    ),
    *(
        "in names",
        "a graph",
        "as a language",
        "comparisons",
        "far IRIs in a list",
        "a glued declaration",
    ),
    *(
        "a glued declaration, far",
        "an escaped keyword",
        "an escaped bracket",
        "an escaped line break",
    ),
    *("an escaped surrogate", "at the end", "silent at the end", "followed by rubbish"),
}
"""Cases of `FOUND` that the embedded engine refuses, or in which it is not `urn:a` that it asks."""


@pytest.mark.parametrize("case", FOUND)
def test_the_table_against_the_engine(listener: Listener, case: str) -> None:
    text = (
        FOUND[case][0].replace("urn:a", f"{listener.url}a").replace("<urn:>", f"<{listener.url}>")
    )
    assert bool(listener.asked(text)) == (case not in UNREACHED)
    if case not in UNREACHED:
        with pytest.raises(Forbidden):
            check_services(text, "deny")


PIECES = st.sampled_from(
    [
        *("SERVICE", "service ", "SERVICESILENT", "SERVICE SILENT ", "SERV\\u0049CE "),
        *(
            "<U>",
            "<U\\u0061>",
            "<>",
            "<x>",
            "e:a",
            ":a",
            "?u",
            "{}",
            "{?s ?p ?o}",
            "{ ",
            " }",
            "{",
            "}",
        ),
        *(" ", "\n", ".", ";", "#", "# x\n", "#>\n", "#'''\n", "#\\q'''\n", "\r"),
        *(
            "FILTER(",
            "FILTER(1<2",
            "BIND(1 AS ?k)",
            "VALUES ?x {",
            "OPTIONAL{",
            "GRAPH ?g{",
            "UNION{",
            "EXISTS{",
        ),
        *(
            "FILTER EXISTS{",
            "{SELECT*{",
            "{SELECT * WHERE {",
            "MINUS{",
            "LATERAL{",
            "}}",
            ")",
            "(",
            "1",
            "1.",
            "true",
        ),
        *(
            "?s ?p ?o",
            "?s ?p ",
            "?s a ",
            "?s<urn:p>",
            "'",
            '"',
            "''",
            "'''",
            '"""',
            "'a'",
            "'>'",
            "<'>",
            "<",
            "<<",
            "<<(",
        ),
        *(
            ">",
            ">>",
            ")>>",
            "\\",
            "\\u0027",
            "@en",
            "^^",
            "_:b",
            "e:",
            "'a",
            "||",
            "&&",
            "=",
            "!",
            "UNDEF",
        ),
    ]
)
WHOLE = st.sampled_from(
    [
        *(
            "SERVICE<U>{}",
            "SERVICESILENT<U>{}",
            "SERVICEe:a{}",
            "SERVICE e:a{ }",
            "SERVICE:a{}",
            "SERVICE SILENTe:a{}",
        ),
        *(
            "FILTER(1<2)",
            "FILTER('1'<'>')",
            "FILTER(1<2#>'''\n)",
            "FILTER(<a:b><<b:'>)",
            "FILTER(1<2)#>\n",
            "?s ?p ?o.",
        ),
        *(
            "VALUES ?x {'''a' }",
            "VALUES ?x {'''a'''}",
            "VALUES ?x {'''a' 'b'''}",
            "VALUES ?x {'b'''}",
            "#\\q'''\n",
        ),
        *(
            "BIND('SERVICE' AS ?k)",
            "BIND(<urn:SERVICE> AS ?k)",
            "# SERVICE<U>{}\n",
            "{SELECT*{SERVICE<U>{}}}",
            "{}",
            " ",
        ),
        *(
            "FILTER EXISTS{SERVICE<U>{}}",
            "OPTIONAL{SERVICE<U>{}}",
            "'''",
            "'",
            '"',
            "VALUES(?a ?b){(1 <'>)}",
            "?s ?p 1",
        ),
        *(
            "FILTER('a'<'b'||1<<b:'>)",
            "FILTER(1<(2)||'a'>'')",
            "VALUES ?z {true'''#'''}",
            "?s ?p true",
        ),
    ]
)
PROLOGUES = st.sampled_from(
    [
        "PREFIX e: <U> PREFIX : <U> ",
        "BASE <U> PREFIX e: <urn:> PREFIX e: <a> PREFIX : <>",
        "PREFIX e: <urn:> PREFIXe: <U>PREFIX:<U>",
        "BASE <urn:x> BASE<U>PREFIX e:<>PREFIX :<b>",
        "",
    ]
)
HEADS = st.sampled_from(
    [
        *("SELECT*{", "ASK{", "SELECT (1<2 AS ?y) {", "DESCRIBE ?s {", "SELECT ('1'<'>' AS ?y) {"),
        *(
            "CONSTRUCT{?s ?p ?o}{",
            "CONSTRUCT WHERE{",
            "CONSTRUCT{?s ?p (1 <'>)}{",
            "CONSTRUCT{?s ?p <#>, '''\n'''}{",
        ),
    ]
)
GROUPS = (
    st.lists(WHOLE, max_size=8)
    | st.lists(PIECES, max_size=25)
    | st.lists(PIECES | WHOLE, max_size=12)
)
QUERIES = st.builds(
    lambda prologue, head, group: f"{prologue}{head}{''.join(group)}}}", PROLOGUES, HEADS, GROUPS
)


@settings(max_examples=3 * settings.default.max_examples)
@given(QUERIES)
def test_what_passes_reaches_nothing(listener: Listener, query: str) -> None:
    query = query.replace("<U", f"<{listener.url}")
    try:
        check_services(query, "deny")
    except Forbidden:
        return
    assert listener.asked(query) == []
    with suppress(QueryError):
        assert listener.asked(ConstructQuery.parse(query).select) == []


@settings(max_examples=3 * settings.default.max_examples)
@given(QUERIES)
def test_what_passes_reaches_what_it_may(listener: Listener, query: str) -> None:
    query = query.replace("<U", f"<{listener.url}")
    allowed = listener.url + "a"
    try:
        check_services(query, {allowed})
    except Forbidden:
        return
    assert set(listener.asked(query)) <= {"/a"}
    assert set(listener.asked(redirect_services(query, {allowed: listener.url + "gate"}))) <= {
        "/gate"
    }
