"""The command `run`: what it writes where, its exit statuses, and how it stops.

Tables run `main` in this process, where starting takes no time; all else runs in processes of its own.
"""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
import pytest

from tests.support.commands import COMMAND, ENVIRONMENT, Done, interrupt, on_terminal, run
from tests.support.places import ROOT

pytestmark = pytest.mark.process

DATA = str(ROOT / "queries" / "data" / "companies.ttl")
COMPANIES = str(ROOT / "queries" / "companies.rq")

LABELS = "CONSTRUCT { ?s <urn:label> ?o } WHERE { ?s <urn:p> ?o }"
# 37 triples five times over, none of which passes: minutes without a solution
ENDLESS = """CONSTRUCT { ?a <urn:p> ?d } WHERE {
  ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o
  FILTER (STRLEN(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j), STR(?m))) = 0)
}"""
MANY = "CONSTRUCT { ?a ?b ?c . ?d ?e ?f } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.trig"
    path.write_text(
        "PREFIX : <http://example.org/>\n"
        ":a :p 1 , 2 . :b :p 1 ; :q [] . :c :p 'text'@en .\n"
        ":g { :a :p 3 } :h { :b :p 4 }\n",
        encoding="utf-8",
    )
    return str(path)


P = "PREFIX : <http://example.org/> CONSTRUCT { ?s :o ?o } WHERE { ?s :p ?o } ORDER BY ?s ?o"

# options → the log, with short names put in for the IRIs
OPTIONS = {
    "plain": (["--query", P], "@ a:1 @ a:2 @ b:1 @ c:'text'"),
    "max-messages": (["--query", P, "--max-messages", "2"], "@ a:1 @ a:2"),
    "max-messages 0": (["--query", P, "--max-messages", "0"], ""),
    "group-by": (["--query", P, "--group-by", "?s"], "@ a:1 a:2 @ b:1 @ c:'text'"),
    "group-by, sorted": (
        ["--query", P, "--group-by", "$o", "--group-order", "sorted"],
        "@ a:1 b:1 @ a:2 @ c:'text'",
    ),
    "bind": (["--query", P, "--bind", "s=<http://example.org/b>"], "@ b:1"),
    "bind a literal": (["--query", P, "--bind", "?o=1"], "@ a:1 @ b:1"),
    "default-graph": (["--query", P, "--default-graph", "http://example.org/g"], "@ a:3"),
    "default-graphs": (
        [
            "--query",
            P,
            "--default-graph",
            "http://example.org/g",
            "--default-graph",
            "http://example.org/h",
        ],
        "@ a:3 @ b:4",
    ),
    "default-graph union": (
        ["--query", P, "--default-graph", "union"],
        "@ a:1 @ a:2 @ a:3 @ b:1 @ b:4 @ c:'text'",
    ),
    "named-graph": (
        [
            "--query",
            P.replace("{ ?s :p ?o }", "{ GRAPH ?g { ?s :p ?o } }"),
            "--named-graph",
            "http://example.org/h",
        ],
        "@ b:4",
    ),
    "prefix": (
        [
            "--query",
            "CONSTRUCT { ?s e:o ?o } WHERE { ?s e:p ?o FILTER(?o = 1) } ORDER BY ?s",
            "--prefix",
            "e=http://example.org/",
        ],
        "@ a:1 @ b:1",
    ),
    "base": (
        [
            "--query",
            "CONSTRUCT { ?s <o> ?o } WHERE { ?s <p> ?o } ORDER BY ?s ?o",
            "--base",
            "http://example.org/",
        ],
        "@ a:1 @ a:2 @ b:1 @ c:'text'",
    ),
    "distinct": (
        ["--query", P.replace("?s :o ?o", ":x :o ?o"), "--distinct"],
        "@ x:1 @ x:2 @ x:'text'",
    ),
    "empty": (["--query", P.replace("?s :o ?o", "?o :o ?s")], "@ @ @ @"),
    "skip-empty": (["--query", P.replace("?s :o ?o", "?o :o ?s"), "--skip-empty"], ""),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case: str, data: str, here: Callable[..., Done]) -> None:
    arguments, expected = OPTIONS[case]
    done = here("run", *arguments, "--source", data, "--format", "nt")
    assert (done.status, done.errors) == (0, "")
    assert brief(done.log) == expected


def brief(log: str) -> str:
    shortened = []
    for line in log.splitlines():
        if line == "# @message":
            shortened.append("@")
            continue
        match = re.fullmatch(
            r'<http://example.org/(\w)> <http://example.org/o> "(\w+)"(@en|\^\^\S+integer>) \.',
            line,
        )
        assert match, line
        shortened.append(
            f"{match[1]}:'{match[2]}'" if match[3] == "@en" else f"{match[1]}:{match[2]}"
        )
    return " ".join(shortened)


def test_skolemize(data: str, here: Callable[..., Done]) -> None:
    query = P.replace(":p", ":q")
    done = here(
        "run",
        "--query",
        query,
        "--source",
        data,
        "--skolemize",
        "https://example.org/.well-known/genid/",
    )
    assert re.fullmatch(
        r"# @message\n\S+ \S+ <https://example\.org/\.well-known/genid/\w+> \.\n", done.log
    )


SYNTAXES = {
    "nq": (["--format", "nq"], '# @message\n<urn:s> <urn:p> "1" .\n'),
    "ttl": (["--format", "ttl"], '# @message\nPREFIX u: <urn:>\n\nu:s u:p "1" .\n'),
    "trig, labelled": (
        ["--format", "TriG", "--syntax", "1.1-messages"],
        'VERSION "1.1-messages"\nPREFIX u: <urn:>\n\nu:s u:p "1" .\nMESSAGE\n',
    ),
    "a media type": (
        ["--format", "application/n-triples; version=1.2-messages"],
        'VERSION "1.2-messages"\n<urn:s> <urn:p> "1" .\nMESSAGE\n',
    ),
}


@pytest.mark.parametrize("case", SYNTAXES)
def test_formats(case: str, here: Callable[..., Done]) -> None:
    arguments, log = SYNTAXES[case]
    query = 'PREFIX u: <urn:> CONSTRUCT { u:s u:p "1" } WHERE { ?a <http://dbpedia.org/ontology/location> ?b } LIMIT 1'
    assert here("run", "--query", query, "--source", DATA, *arguments) == Done(0, log, "")


def test_the_query_from_standard_input_and_the_source_from_the_environment() -> None:
    query = "\ufeff" + Path(COMPANIES).read_text(encoding="utf-8").replace("\n", "\r\n")
    done = run("run", "-", stdin=query, CONSTRUCT_MESSAGES_SOURCE=DATA)
    assert done == run("run", COMPANIES, "--source", DATA)
    assert done.log.count("# @message\n") == 5


def test_the_source_from_standard_input(data: str) -> None:
    query = "CONSTRUCT { ?s ?p ?n } WHERE { ?s ?p ?o BIND(isBlank(?o) AS ?n) }"
    arguments = [*COMMAND, "run", "--query", query, "--source"]
    content = Path(data).read_bytes()
    for given in (content, gzip.compress(content)):
        piped = subprocess.run(
            [*arguments, "-"], input=given, capture_output=True, env=ENVIRONMENT, check=True
        )
        named = subprocess.run([*arguments, data], capture_output=True, env=ENVIRONMENT, check=True)
        assert sorted(piped.stdout.splitlines()) == sorted(named.stdout.splitlines())
    both = subprocess.run(
        [*COMMAND, "run", "-", "--source", "-"], input=b"", capture_output=True, env=ENVIRONMENT
    )
    assert both.returncode == 2
    assert b"cannot both come from standard input" in both.stderr


def test_select_needs_no_source(here: Callable[..., Done]) -> None:
    done = here(
        "run",
        "--select",
        "--query",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o } LIMIT 1",
        "--group-by",
        "?s",
    )
    assert done == Done(0, "SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 1\n", "")


def test_version_and_help() -> None:
    assert re.fullmatch(
        r"construct-messages \d+\.\d+\.\d+\S*( \(pure Python.*\))?\n", run("--version").log
    )
    assert "--group-by" in run("run", "--help").log


# --- errors ---------------------------------------------------------------------------------------------------------

ANY = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
ERRORS = {
    "no command": ([], 2, "COMMAND", "--help"),
    "unknown option": (["run", "--nope"], 2, "--nope", "--help"),
    "not a number": (["run", "--query", ANY, "--max-messages", "x"], 2, "'x'", "--help"),
    "no query": (["run", "--source", DATA], 2, "QUERY-FILE", "before --source"),
    "two queries": (["run", COMPANIES, "--query", ANY], 2, "QUERY-FILE", "before --source"),
    "no such query": (["run", "nowhere.rq", "--source", DATA], 2, "nowhere.rq", None),
    "no source": (["run", "--query", ANY], 2, "source", "CONSTRUCT_MESSAGES_SOURCE"),
    "no such source": (["run", "--query", ANY, "--source", "nowhere.ttl"], 2, "nowhere.ttl", None),
    "illegal query": (
        ["run", "--query", "CONSTRUCT { ?s ?p } WHERE {}", "--source", DATA],
        2,
        "line 1, column",
        None,
    ),
    "the engine's own": (
        ["run", "--query", "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER }", "--source", DATA],
        2,
        "embedded engine",
        None,
    ),
    "another form": (
        ["run", "--query", "ASK {}", "--source", DATA],
        2,
        "got ASK",
        "only CONSTRUCT",
    ),
    "unknown format": (
        ["run", "--query", ANY, "--source", DATA, "--format", "docx"],
        2,
        "'docx'",
        "text/turtle",
    ),
    "unknown syntax": (
        ["run", "--query", ANY, "--source", DATA, "--syntax", "2"],
        2,
        "'2'",
        "--help",
    ),
    "malformed --bind": (
        ["run", "--query", ANY, "--source", DATA, "--bind", "s"],
        2,
        "'s' is not v=TERM",
        "--bind",
    ),
    "no term": (["run", "--query", ANY, "--source", DATA, "--bind", "s=x"], 2, "'x'", "<http://"),
    "a misspelt command": (["rnu"], 2, "invalid choice: 'rnu'", "did you mean run?"),
    "a misspelt option": (
        ["run", "--query", ANY, "--source", DATA, "--ouput", "x"],
        2,
        "unrecognized arguments: --ouput",
        "did you mean --output? Or see construct-messages run --help",
    ),
    "a misspelt query": (
        [
            "run",
            "--query",
            "PREFIX a: <urn:> CONSTUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
            "--source",
            DATA,
        ],
        2,
        "line 1, column 18: there is no CONSTRUCT",
        "did you mean CONSTRUCT?",
    ),
    "an address without a scheme": (
        ["run", "--query", ANY, "--source", "example.org/sparql"],
        2,
        "example.org/sparql: no such file",
        "write https://example.org/sparql or http://example.org/sparql",
    ),
    "options of endpoints": (
        ["run", "--query", ANY, "--source", DATA, "--profile", "virtuoso", "--page-size", "10"],
        2,
        "only endpoints have --page-size, --profile",
        "leave out --page-size, --profile",
    ),
    "options of groups": (
        ["run", "--query", ANY, "--source", DATA, "--group-order", "sorted"],
        2,
        "only groups have --group-order",
        "--group-by ?v",
    ),
    "malformed --header": (
        ["run", "--query", ANY, "--source", DATA, "--header", "a"],
        2,
        "'a' is not K:V",
        "--header",
    ),
    "nobody listens": (
        ["run", "--query", ANY, "--source", "http://127.0.0.1:9/sparql", "--retries", "0"],
        3,
        "127.0.0.1:9",
        None,
    ),
    "unknown profile": (
        ["run", "--query", ANY, "--source", "http://127.0.0.1:9/", "--profile", "x"],
        2,
        "'x'",
        "generic",
    ),
    "unknown results": (
        ["run", "--query", ANY, "--source", "http://127.0.0.1:9/", "--results", "csv"],
        2,
        "'csv'",
        "--help",
    ),
    "too much to group": (
        ["run", "--query", ANY, "--source", DATA, "--group-by", "?s", "--group-limit", "9"],
        4,
        "9",
        "raise the limit",
    ),
    "too much to tell apart": (
        [
            "run",
            "--query",
            ANY,
            "--source",
            DATA,
            "--distinct",
            "--distinct-limit",
            "9",
            "--output",
            "log.nq",
        ],
        4,
        "9",
        "distinct_limit",
    ),
    "an archive": (
        ["run", "--query", ANY, "--source", DATA, "--output", "log.tar.gz"],
        2,
        "archives are read, not written",
        ".nq.gz",
    ),
    "no place": (
        ["run", "--query", ANY, "--source", DATA, "--output", "no/where.nq"],
        1,
        "no/where.nq",
        None,
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(
    case: str, here: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, status, error, hint = ERRORS[case]
    monkeypatch.chdir(tmp_path)
    done = here(*arguments)
    first, *rest = done.errors.splitlines()
    assert (done.status, done.log) == (status, "")
    assert first.startswith("error: ")
    assert error in first
    assert len(rest) <= 1
    assert all(line.startswith("hint: ") for line in rest)
    assert hint is None or hint in rest[0]
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where(here: Callable[..., Done]) -> None:
    done = here("run", "--query", "ASK {}", "--source", DATA, "--debug")
    assert done.status == 2
    assert done.errors.startswith("Traceback (most recent call last):\n")
    assert "expected a CONSTRUCT query, got ASK" in done.errors


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "latin.rq").write_bytes("# é\n".encode("latin-1"))
    done = run("run", "latin.rq", "--source", DATA, cwd=tmp_path)
    assert done == Done(
        2, "", "error: the query latin.rq is not UTF-8 at byte 2\nhint: convert it to UTF-8\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_no_space_left() -> None:
    done = run("run", COMPANIES, "--source", DATA, "--output", "/dev/full")
    assert (done.status, done.errors) == (1, "error: cannot write: No space left on device\n")


class Endpoint(BaseHTTPRequestHandler):
    """Answers by path; `/cut` promises more than it sends."""

    requests: list[tuple[str, dict[str, list[str]], dict[str, str]]]

    def do_GET(self) -> None:
        self.answer(urlsplit(self.path).query)

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def answer(self, form: str) -> None:
        self.requests.append((self.command, parse_qs(form), dict(self.headers)))
        path = urlsplit(self.path).path
        one = '{"s":{"type":"uri","value":"urn:s"},"o":{"type":"literal","value":"o"}}'
        body = f'{{"head":{{"vars":["s","o"]}},"results":{{"bindings":[{one},{one}]}}}}'.encode()
        self.send_response(500 if path == "/broken" else 200)
        self.send_header("Content-Type", "application/sparql-results+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:-50] if path == "/cut" else body)

    def log_message(self, *_: object) -> None:
        """Nothing: the test's own assertions say what went wrong."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("method", ["get", "post"])
def test_endpoint(endpoint: str, method: str, here: Callable[..., Done]) -> None:
    header = ["--header", "X-Test: a:b"]
    done = here(
        "run", "--query", LABELS, "--source", f"{endpoint}/sparql", "--method", method, *header
    )
    assert done == Done(0, '# @message\n<urn:s> <urn:label> "o" .\n' * 2, "")
    ((verb, form, headers),) = Endpoint.requests
    assert (verb, headers["X-Test"]) == (method.upper(), "a:b")
    assert form["query"][0].startswith("SELECT ?s ?o")


def test_a_source_that_fails(endpoint: str, here: Callable[..., Done]) -> None:
    done = here("run", "--query", LABELS, "--source", f"{endpoint}/broken")
    assert (done.status, done.log) == (3, "")
    assert "500" in done.errors


def test_a_result_that_is_cut_short(endpoint: str, tmp_path: Path) -> None:
    done = run(
        "run", "--query", LABELS, "--source", f"{endpoint}/cut", "--output", "log.nt", cwd=tmp_path
    )
    assert done.status == 4
    assert done.errors.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_timeout() -> None:
    done = run("run", "--query", ENDLESS, "--source", DATA, "--timeout", "0.5")
    assert done.status == 3
    assert "time" in done.errors


def test_a_store_that_is_being_written(tmp_path: Path, here: Callable[..., Done]) -> None:
    store = ox.Store(tmp_path / "store")
    store.add(ox.Quad(ox.NamedNode("urn:s"), ox.NamedNode("urn:p"), ox.Literal("o")))
    store.flush()
    arguments = ("run", "--query", LABELS, "--source", str(tmp_path / "store"))
    refused = here(*arguments)
    assert (refused.status, refused.log) == (3, "")
    assert "hint: " in refused.errors
    assert here(*arguments, "--allow-stale") == Done(
        0, '# @message\n<urn:s> <urn:label> "o" .\n', ""
    )


# --- files ----------------------------------------------------------------------------------------------------------


def test_output_takes_format_and_packing_from_its_name(tmp_path: Path) -> None:
    done = run("run", COMPANIES, "--source", DATA, "--output", "log.trig.gz", cwd=tmp_path)
    assert done == Done(0, "", "")
    log = gzip.decompress((tmp_path / "log.trig.gz").read_bytes()).decode()
    assert log == run("run", COMPANIES, "--source", DATA, "--format", "trig").log
    assert [path.name for path in tmp_path.iterdir()] == ["log.trig.gz"]


def test_a_run_that_fails_leaves_the_old_log(tmp_path: Path) -> None:
    (tmp_path / "log.ttl").write_text("the old log", encoding="utf-8")
    query = str(ROOT / "queries" / "countries-by-graph.rq")
    done = run("run", query, "--source", DATA, "--output", "log.ttl", cwd=tmp_path)
    assert done.status == 2
    assert "message 1: Turtle has no named graphs" in done.errors
    assert [path.name for path in tmp_path.iterdir()] == ["log.ttl"]
    assert (tmp_path / "log.ttl").read_text(encoding="utf-8") == "the old log"


# --- stopping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupt_during_a_long_evaluation(
    by: signal.Signals, status: int, tmp_path: Path
) -> None:
    command = [*COMMAND, "run", "--query", ENDLESS, "--source", DATA, "--output", "log.nq"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 120
        while not list(tmp_path.iterdir()):  # the hidden file appears when the evaluation begins
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert process.poll() is None
        interrupt(process, by)
        assert process.stderr is not None
        assert (process.returncode, process.stderr.read()) == (status, b"")
    assert list(tmp_path.iterdir()) == []


def test_interrupt_while_messages_come() -> None:
    command = [*COMMAND, "run", "--query", MANY, "--source", DATA]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"# @message\n"
        interrupt(process)
        assert (process.returncode, process.stderr.read()) == (130, b"")


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [*COMMAND, "run", "--query", MANY, "--source", DATA]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"# @message\n"
        process.stdout.close()
        assert (process.wait(timeout=120), process.stderr.read()) == (0, b"")


# --- terminals ------------------------------------------------------------------------------------------------------


PROGRESS = re.compile(r"5 messages, [\d,]+ messages/s, 3\.\d kB\r\n\Z")


def test_progress_on_a_terminal() -> None:
    shown, log = on_terminal("run", COMPANIES, "--source", DATA)
    assert PROGRESS.search(shown)
    assert log == run("run", COMPANIES, "--source", DATA).log


def test_one_line_behind_a_log_on_the_same_terminal() -> None:
    shown, _ = on_terminal("run", COMPANIES, "--source", DATA, log_too=True)
    log = run("run", COMPANIES, "--source", DATA).log.replace("\n", "\r\n")
    assert shown.startswith(log)
    assert PROGRESS.fullmatch(shown.removeprefix(log))


def test_quiet() -> None:
    shown, _ = on_terminal("run", COMPANIES, "--source", DATA, "--quiet")
    assert shown == ""


def test_limit_0_of_an_endpoint_that_takes_it_for_none(here: Callable[..., Done]) -> None:
    """Issue 13, what users missed: a log is no longer than the query's own LIMIT."""
    from tests.support.http.fault_server import FaultServer, response

    solution = b'{"s":{"type":"uri","value":"urn:a"},"o":{"type":"uri","value":"urn:b"}}'
    body = (
        b'{"head":{"vars":["s","o"]},"results":{"bindings":[' + b",".join([solution] * 5) + b"]}}"
    )
    server = FaultServer()
    server.play(response(body))
    try:
        for limit, found in ((0, Done(0, "", "")), (5, None), (3, None)):
            done = here(
                "run",
                "--query",
                f"{LABELS} LIMIT {limit}",
                "--source",
                server.url,
                "--retries",
                "0",
            )
            assert done.log.count("# @message") <= limit
            if found is not None:
                assert done == found
            elif limit == 3:
                assert done.status == 4
                assert "LIMIT 3" in done.errors
    finally:
        server.close()


UNBOUND = "no solution binds {} of the template, so its triples are left out\n"
NOTHING = "no messages: the data have no solutions of the query\n"


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        (
            "CONSTRUCT { ?s <urn:q> ?oo } WHERE { ?s <http://example.org/p> ?o }",
            UNBOUND.format("?oo"),
        ),
        ("CONSTRUCT { ?s ?q ?t } WHERE { ?s <http://example.org/p> ?o }", UNBOUND.format("?q, ?t")),
        ("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:typo> ?o }", NOTHING),
        ("CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:typo> ?o } LIMIT 0", ""),
        (
            "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <http://example.org/q> [] OPTIONAL { ?s <urn:q> ?o } }",
            "",
        ),
    ],
)
def test_a_typo_does_not_look_like_success(
    query: str, errors: str, data: str, here: Callable[..., Done]
) -> None:
    command = ("run", "--query", query, "--source", data)
    for _ in range(2):
        done = here(*command)
        assert (done.status, done.errors) == (0, errors)
    assert here(*command, "--quiet").errors == ""


def test_a_variable_that_is_given_is_bound(data: str, here: Callable[..., Done]) -> None:
    query = "CONSTRUCT { ?s <urn:q> ?t } WHERE { ?s <http://example.org/p> ?o }"
    assert here("run", "--query", query, "--source", data, "--bind", "t=<urn:t>").errors == ""
