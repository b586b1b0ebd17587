"""Real SPARQL engines, each over an RDF file, on loopback.

How each is started, told to behave as its public installations do, and ended; nothing here asks them anything. Each
function is a context manager that gives the endpoint's URL. All files of an engine lie in the folder it is given.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple

import pyoxigraph as ox

NODE: Final = "CONSTRUCT_MESSAGES_NODE"
"""The environment variable that names the folder which `npm install --prefix FOLDER` filled."""

FUSEKI: Final = "CONSTRUCT_MESSAGES_FUSEKI"
"""The environment variable that names the folder of Fuseki's jars."""

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


# below those that systems give to connections and to whoever asks for any, and each for one process of pytest-xdist
_PORTS: Final = iter(
    SystemRandom().sample(
        range(10_000 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 16, 32_000, 16),
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
    java = program("java", "apt-get install openjdk-17-jdk-headless")
    folder = Path(os.environ.get(FUSEKI, "nowhere"))
    if not folder.is_dir():
        pom = "tests/support/engines/fuseki.xml"
        raise Missing(
            f"Fuseki is not installed: mvn -f {pom} dependency:copy-dependencies -DoutputDirectory=FOLDER, and "
            f"{FUSEKI}=FOLDER in the environment"
        )
    options = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [java, *options, "-cp", f"{folder}/*"]


class Arq:
    """Jena's reference evaluator of SPARQL 1.1, as a process: see `Arq.java`.

    Attributes:
        count: the number of solutions so far.

    Raises:
        Missing: Java or Fuseki, whose libraries have it.
    """

    def __init__(self) -> None:
        self.count = 0
        self._process = subprocess.Popen(
            [*_jena(), Path(__file__).parent / "Arq.java"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def solutions(self, nquads: bytes, select: str) -> list[dict[str, str]]:
        """The solutions of a SELECT over a dataset: the terms of the bound variables."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests
        assert answers
        for data in (nquads, select.encode()):
            requests.write(len(data).to_bytes(4) + data)
        requests.flush()
        answer = answers.read(int.from_bytes(answers.read(4))).decode()
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


# It has no option for the address, and would listen to every interface.
_LOOPBACK: Final = """
const { Server } = require('net');
const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) { return listen.call(this, port, '127.0.0.1', ...rest); };
"""


@contextmanager
def comunica(data: Path, place: Path) -> Iterator[str]:
    """Comunica 4, over the file."""
    executable = node_program("comunica-sparql-file-http", "@comunica/query-sparql-file@4")
    port = free_port()
    (place / "loopback.js").write_text(_LOOPBACK)
    environment = {"NODE_OPTIONS": f"--require {place / 'loopback.js'}"}
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
    """

    start: Callable[[Path, Path], AbstractContextManager[str]]
    profile: str
    rdf_1_2: bool = False


ENGINES: Final = {
    "oxigraph": Engine(oxigraph, "oxigraph", rdf_1_2=True),
    "rdflib": Engine(rdflib, "rdflib"),
    "virtuoso": Engine(virtuoso, "virtuoso"),
    "comunica": Engine(comunica, "generic"),
}
"""Those that `docs/reference/engines.md` compares."""

ALL: Final = ENGINES | {"fuseki": Engine(fuseki, "generic")}


Serve = Callable[[Path], str]
"""Starts an engine over an RDF file, once in a test session, and gives its endpoint's URL."""
