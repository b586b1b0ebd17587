"""Real SPARQL engines, each over an RDF file, on loopback.

How each is started, told to behave as its public installations do, and ended; nothing here asks them anything. Each
function is a context manager that gives the endpoint's URL. All files of an engine lie in the folder it is given.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple

import pyoxigraph as ox

NODE: Final = "CONSTRUCT_MESSAGES_NODE"
"""The environment variable that names the folder which `npm install --prefix FOLDER` filled."""

DEFAULT_GRAPH: Final = "urn:default"
"""Virtuoso has no unnamed graph: what a file says outside of graphs goes here, and queries are asked of it."""

_PIP: Final = "pip install 'construct-messages[test]'"
_APT: Final = "apt-get install virtuoso-opensource-7-bin"
_SECONDS: Final = 300.0


class Missing(LookupError):
    """An engine's program is not on this machine."""


class NotStarted(RuntimeError):
    """An engine does not run, or not over the data it was given."""


def program(name: str, install: str) -> str:
    """The path of a program: beside the interpreter, in npm's folder, or on the PATH.

    Raises:
        Missing: it is nowhere; says the command that installs it.
    """
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    if folder := os.environ.get(NODE):
        places.insert(0, str(Path(folder) / "node_modules" / ".bin"))
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        raise Missing(f"{name} is not installed: {install}")
    return found


def node_program(name: str, package: str) -> str:
    """`program` of an npm package."""
    return program(
        name, f"npm install --prefix FOLDER {package}, and {NODE}=FOLDER in the environment"
    )


# below those that systems give to connections and to whoever asks for any, above the last that browsers and Node.js
# refuse to fetch from (10080), and each for one process of pytest-xdist
_PORTS: Final = iter(
    SystemRandom().sample(
        range(10_096 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16, 32_000, 16),
        1_000,
    )
)


def free_port() -> int:
    """A port of loopback that nothing listens to, and that nobody else takes before the server it is for."""
    for port in _PORTS:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("all ports are taken")


@contextmanager
def running(
    command: Sequence[str | Path],
    ports: Sequence[int],
    place: Path,
    environment: dict[str, str] | None = None,
) -> Iterator[None]:
    """A server and all its children, from when it listens to its ports until the end of the block."""
    with open(place / "output.txt", "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _SECONDS
        for port in ports:
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NotStarted(
                        f"{command[0]} does not listen: {(place / 'output.txt').read_text()}"
                    )
                time.sleep(0.05)
        yield
    finally:
        with suppress(ProcessLookupError):  # it ended by itself
            os.killpg(process.pid, signal.SIGKILL)  # nothing that it holds is wanted any more
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def oxigraph(data: Path, place: Path) -> Iterator[str]:
    """The Oxigraph server over a store directory."""
    executable, port = program("oxigraph", _PIP), free_port()
    store = place / "store"
    subprocess.run(
        [executable, "load", "--location", store, "--file", data], check=True, capture_output=True
    )
    with running(
        [executable, "serve-read-only", "--location", store, "--bind", f"127.0.0.1:{port}"],
        [port],
        place,
    ):
        yield f"http://127.0.0.1:{port}/query"


@contextmanager
def rdflib(data: Path, place: Path) -> Iterator[str]:
    """rdflib-endpoint, which evaluates with rdflib in memory."""
    executable, port = program("rdflib-endpoint", _PIP), free_port()
    with running(
        [executable, "serve", data, "--host", "127.0.0.1", "--port", str(port)], [port], place
    ):
        yield f"http://127.0.0.1:{port}/"


def _jars(engine: str) -> Path:
    """The folder of what Maven copied for an engine, which an environment variable names."""
    variable = f"CONSTRUCT_MESSAGES_{engine.upper()}"
    folder = Path(os.environ.get(variable, "nowhere"))
    if not folder.is_dir():
        raise Missing(
            f"{engine} is not installed: mvn -f tests/support/engines/{engine}.xml dependency:copy-dependencies "
            f"-DoutputDirectory=FOLDER, and {variable}=FOLDER in the environment"
        )
    return folder


def _java(*settings: str) -> list[str]:
    java = program("java", "apt-get install openjdk-17-jdk-headless")
    options = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    # older engines than this Java look into its classes
    return [java, *options, "--add-opens=java.base/java.lang=ALL-UNNAMED", *settings]


@contextmanager
def fuseki(data: Path, place: Path) -> Iterator[str]:
    """Apache Jena Fuseki, over the file in memory."""
    command, port = [*_jena(), "org.apache.jena.fuseki.main.cmds.FusekiMainCmd"], free_port()
    with running(
        [*command, "--localhost", "--port", str(port), "--file", data, "/data"], [port], place
    ):
        yield f"http://127.0.0.1:{port}/data"


def _jena() -> list[str]:
    """The beginning of a command that runs a class with the libraries of Fuseki.

    Raises:
        Missing: Java or Fuseki.
    """
    return [*_java(), "-cp", f"{_jars('fuseki')}/*"]


class Arq:
    """Jena's reference evaluator of SPARQL 1.1, as a process: see `Arq.java`.

    Attributes:
        count: the number of solutions so far.
        defects: the number of queries that failed within Jena, for example by a null pointer in its joins.

    Raises:
        Missing: Java or Fuseki, whose libraries have it.
    """

    def __init__(self) -> None:
        self.count = self.defects = 0
        self._process = subprocess.Popen(
            [*_jena(), Path(__file__).parent / "Arq.java"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def solutions(self, nquads: bytes, select: str) -> list[dict[str, str]] | None:
        """The solutions of a SELECT over a dataset: the terms of the bound variables. None: a defect of Jena."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests
        assert answers
        for data in (nquads, select.encode()):
            requests.write(len(data).to_bytes(4) + data)
        requests.flush()
        answer = answers.read(int.from_bytes(answers.read(4))).decode()
        if answer.startswith("!java.lang.NullPointerException"):
            self.defects += 1
            return None
        assert answer[:1] != "!", f"Jena: {answer}"
        names, *rows = (line.split("\t") for line in answer.split("\n")[:-1])
        self.count += len(rows)
        return [{name: term for name, term in zip(names, row, strict=True) if term} for row in rows]

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def _war(engine: str, place: Path, ready: str, *settings: str) -> Iterator[str]:
    """A web application in Jetty, which listens before it has `ready`, a path of the application; gives its URL."""
    folder, port = _jars(engine), free_port()
    (runner,), (war,) = folder.glob("jetty-runner-*.jar"), folder.glob("*.war")
    address = ["--host", "127.0.0.1", "--port", str(port), "--path", f"/{engine}"]
    command: list[str | Path] = [
        *_java(f"-Djava.io.tmpdir={place}", *settings),
        "-jar",
        runner,
        *address,
        war,
    ]
    url = f"http://127.0.0.1:{port}/{engine}"
    with running(command, [port], place):
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                _send("GET", f"{url}/{ready}")
            except urllib.error.HTTPError as error:
                if time.monotonic() > deadline:
                    raise NotStarted(f"{url} answers {error.status}") from error
                time.sleep(0.05)
            else:
                break
        yield url


def _send(method: str, url: str, body: bytes | None = None, media_type: str = "") -> None:
    request = urllib.request.Request(url, body, {"Content-Type": media_type}, method=method)
    with urllib.request.urlopen(request, timeout=_SECONDS):
        pass


_RDF4J_REPOSITORY: Final = b"""
@prefix repository: <http://www.openrdf.org/config/repository#> .
@prefix sail: <http://www.openrdf.org/config/sail#> .
[] a repository:Repository ; repository:repositoryID "%s" ; repository:repositoryImpl [
  repository:repositoryType "openrdf:SailRepository" ;
  <http://www.openrdf.org/config/repository/sail#sailImpl> [ sail:sailType "openrdf:MemoryStore" ] ] .
"""


@contextmanager
def rdf4j(data: Path, place: Path) -> Iterator[str]:
    """RDF4J's server, over the file in memory."""
    with _war("rdf4j", place, "protocol", f"-Dorg.eclipse.rdf4j.appdata.basedir={place}") as url:
        yield _rdf4j_repository(f"{url}/repositories/data0", data)


def _rdf4j_repository(before: str, data: Path) -> str:
    """Loads a file into a repository of its own, beside the one whose URL is given."""
    repository, number = _numbered(before)
    settings = _RDF4J_REPOSITORY % f"data{number}".encode()
    _send("PUT", repository, settings, "text/turtle")
    # of the formats that it reads, the one that has all the others, and RDF-star
    _send("PUT", f"{repository}/statements", data.read_bytes(), "application/x-trigstar")
    return repository


def _numbered(before: str) -> tuple[str, int]:
    """The URL after one that has a number, and its number."""
    base, number, rest = re.split(r"(?<=/data)([0-9]+)", before)
    return f"{base}{int(number) + 1}{rest}", int(number) + 1


_BLAZEGRAPH: Final = """\
com.bigdata.rdf.store.AbstractTripleStore.quads=true
com.bigdata.rdf.store.AbstractTripleStore.statementIdentifiers=false
com.bigdata.rdf.sail.truthMaintenance=false
com.bigdata.rdf.store.AbstractTripleStore.axiomsClass=com.bigdata.rdf.axioms.NoAxioms
"""


@contextmanager
def blazegraph(data: Path, place: Path) -> Iterator[str]:
    """Blazegraph, in memory; of a file with graphs, which it cannot read as TriG."""
    settings = place / "blazegraph.properties"
    settings.write_text(f"com.bigdata.journal.AbstractJournal.bufferMode=MemStore\n{_BLAZEGRAPH}")
    named = f"-Dcom.bigdata.rdf.sail.webapp.ConfigParams.propertyFile={settings}"
    with _war("blazegraph", place, "sparql", named) as url:
        yield _blazegraph_namespace(f"{url}/namespace/data0/sparql", data)


def _blazegraph_namespace(before: str, data: Path) -> str:
    """Loads a file into a namespace of its own, beside the one whose URL is given."""
    endpoint, number = _numbered(before)
    settings = f"com.bigdata.rdf.sail.namespace=data{number}\n{_BLAZEGRAPH}"
    _send("POST", endpoint.partition("/data")[0], settings.encode(), "text/plain")
    quads = ox.serialize(ox.parse(path=data), format=ox.RdfFormat.N_QUADS)
    assert quads is not None
    _send("POST", endpoint, quads, "text/x-nquads; charset=utf-8")
    return endpoint


# The kinds of terms that a mapping can tell apart: each has a table, as a column has one type.
_ONTOP_OBJECTS: Final = {
    "iri": "<{o}>",
    "blank": "_:{o}",
    "string": "{o}",
    "en": "{o}@en",
    "de": "{o}@de",
    "integer": "{o}^^xsd:integer",
    "date": "{o}^^xsd:date",
}


def _ontop_kind(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> str:
    match term:
        case ox.NamedNode():
            return "iri"
        case ox.BlankNode():
            return "blank"
        case ox.Literal(language=str(tag)):
            return tag
        case ox.Literal():
            return term.datatype.value.rpartition("#")[2]
    raise NotStarted(f"no column holds {term}")


@contextmanager
def ontop(data: Path, place: Path) -> Iterator[str]:
    """Ontop over H2: the triples of a file, in a table for each kind of object and of subject."""
    jars, port = _jars("ontop"), free_port()
    tables: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for quad in ox.parse(path=data):
        kinds = (
            "blank" if isinstance(quad.subject, ox.BlankNode) else "iri",
            _ontop_kind(quad.object),
        )
        terms = (quad.subject, quad.predicate, quad.object)
        tables.setdefault(kinds, []).append(tuple(str(term.value) for term in terms))
    script, mappings = [], []
    for (subject, kind), rows in tables.items():
        table, file = f"{subject}_{kind}", place / f"{subject}_{kind}.csv"
        with open(file, "w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerows([("s", "p", "o"), *rows])
        column = {"integer": "INT", "date": "DATE"}.get(kind, "VARCHAR(200)")
        script.append(
            f"CREATE TABLE {table}(s VARCHAR(200), p VARCHAR(200), o {column}) "
            f"AS SELECT * FROM CSVREAD('{file}', NULL, 'charset=UTF-8');"
        )
        node = "<{s}>" if subject == "iri" else "_:{s}"
        mappings.append(
            f"mappingId\t{table}\ntarget\t{node} <{{p}}> {_ONTOP_OBJECTS[kind]} .\n"
            f"source\tSELECT s, p, o FROM {table}\n"
        )
    (place / "tables.sql").write_text("\n".join(script))
    (place / "mapping.obda").write_text(
        "[PrefixDeclaration]\nxsd:\thttp://www.w3.org/2001/XMLSchema#\n\n"
        "[MappingDeclaration] @collection [[\n" + "\n".join(mappings) + "]]\n"
    )
    database = f"jdbc:h2:{place / 'database'}"
    (place / "database.properties").write_text(
        f"jdbc.url={database}\njdbc.driver=org.h2.Driver\njdbc.user=sa\njdbc.password=\n"
    )
    java = [*_java(f"-Djava.io.tmpdir={place}"), "-cp", f"{jars}/*"]
    subprocess.run(
        [
            *java,
            "org.h2.tools.RunScript",
            "-url",
            database,
            "-user",
            "sa",
            "-script",
            place / "tables.sql",
        ],
        check=True,
    )
    options = (
        f"--mapping={place / 'mapping.obda'}",
        f"--properties={place / 'database.properties'}",
        f"--port={port}",
        "--server.address=127.0.0.1",
    )
    main = "it.unibz.inf.ontop.endpoint.OntopEndpointApplication"
    with running([*java, main, *options], [port], place):
        yield f"http://127.0.0.1:{port}/sparql"


# The limits are DBpedia's; the buffers are for little data.
_VIRTUOSO_INI: Final = """
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
[TempDatabase]
DatabaseFile = temporary.db
TransactionFile = temporary.trx
[Parameters]
ServerPort = 127.0.0.1:{sql}
DirsAllowed = {place}
NumberOfBuffers = 20000
MaxDirtyBuffers = 12000
CheckpointInterval = 0
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerRoot = {place}
[SPARQL]
ResultSetMaxRows = 10000
MaxQueryExecutionTime = 120
MaxQueryCostEstimationTime = 1500
"""


@contextmanager
def virtuoso(data: Path, place: Path) -> Iterator[str]:
    """Virtuoso 7, limited as DBpedia's is, its default graph set as DBpedia's is."""
    executable, isql = program("virtuoso-t", _APT), program("isql-vt", _APT)
    sql, http = free_port(), free_port()
    quads = place / "data.nq"
    ox.serialize(
        ox.parse(path=data), quads, ox.RdfFormat.N_QUADS
    )  # which keeps graphs, in a syntax it reads
    (place / "virtuoso.ini").write_text(_VIRTUOSO_INI.format(sql=sql, http=http, place=place))
    (place / "load.sql").write_text(
        # 512: as N-Quads
        f"DB.DBA.TTLP_MT(file_to_string_output('{quads}'), '', '{DEFAULT_GRAPH}', 512);\n"
        f"INSERT INTO DB.DBA.SYS_SPARQL_HOST (SH_HOST, SH_GRAPH_URI) VALUES ('%', '{DEFAULT_GRAPH}');\n"
    )
    command = [executable, "+configfile", "virtuoso.ini", "+foreground"]
    with running(command, [sql, http], place):
        loaded = subprocess.run(
            [isql, f"127.0.0.1:{sql}", "dba", "dba", "load.sql"],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        if "Error" in loaded.stdout + loaded.stderr:  # its exit status says nothing
            raise NotStarted(f"Virtuoso did not load {data.name}: {loaded.stdout}{loaded.stderr}")
        yield f"http://127.0.0.1:{http}/sparql"


# It has no option for the address, and would listen to every interface. Its own program compiles the engine from its
# configuration, in two processes of ten seconds each; the package has the same one compiled.
_COMUNICA: Final = """
const { Server } = require('net');
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) { return listen.call(this, port, '127.0.0.1', ...rest); };
const own = require('module').createRequire(require('fs').realpathSync(process.argv[1]));
const { QueryEngine } = own('@comunica/query-sparql-file');
own('@comunica/actor-init-query').QueryEngineFactoryBase.prototype.create = async () => new QueryEngine();
"""


@contextmanager
def comunica(data: Path, place: Path) -> Iterator[str]:
    """Comunica 4, over the file."""
    executable = node_program("comunica-sparql-file-http", "@comunica/query-sparql-file@4")
    port = free_port()
    (place / "before.js").write_text(_COMUNICA)
    environment = {"NODE_OPTIONS": f"--require {place / 'before.js'}"}
    # a query that it refuses is never over for it: a minute later it would restart, and refuse connections meanwhile
    command: list[str | Path] = [executable, "-p", str(port), "-t", str(24 * 3600), data]
    with running(command, [port], place, environment):
        yield f"http://127.0.0.1:{port}/sparql"


class Engine(NamedTuple):
    """An engine.

    Args:
        start: runs it over a file, in a folder.
        profile: under which it is asked.
        rdf_1_2: whether it reads triple terms.
        load: gives it a further file, beside the last one at a URL, where one that runs can have several.
    """

    start: Callable[[Path, Path], AbstractContextManager[str]]
    profile: str
    rdf_1_2: bool = False
    load: Callable[[str, Path], str] | None = None


ENGINES: Final = {
    "oxigraph": Engine(oxigraph, "oxigraph", rdf_1_2=True),
    "rdflib": Engine(rdflib, "rdflib"),
    "virtuoso": Engine(virtuoso, "virtuoso"),
    "comunica": Engine(comunica, "generic"),
}
"""Those that `docs/reference/engines.md` compares."""

ALL: Final = ENGINES | {
    "fuseki": Engine(fuseki, "fuseki"),
    "rdf4j": Engine(rdf4j, "rdf4j", load=_rdf4j_repository),
    "blazegraph": Engine(blazegraph, "blazegraph", load=_blazegraph_namespace),
    "ontop": Engine(ontop, "ontop"),
}


Serve = Callable[[Path], str]
"""Starts an engine over an RDF file, once in a test session, and gives its endpoint's URL."""
