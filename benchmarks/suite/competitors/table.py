"""The one table of competitors: their commands, versions, and what they print."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from benchmarks.suite.competitors.printing import printed_groups
from benchmarks.suite.competitors.server import serving
from benchmarks.suite.records import Competitor, Job, Service

_HERE: Final = Path(__file__).parent
_PACKAGE: Final = __name__.rpartition(".")[0]
_ROOT: Final = _HERE.parents[2]
_NODE: Final = "CONSTRUCT_MESSAGES_NODE"
"""The environment variable that names the folder which `npm install --prefix FOLDER` filled."""

_MODULES: Final = Path(os.environ.get(_NODE, _ROOT)) / "node_modules"
ENVIRONMENT: Final = {"PYTHONPATH": str(_ROOT), "NODE_PATH": str(_MODULES)}


def python(*packages: str) -> Callable[[], str | None]:
    """The versions of Python packages."""

    def found() -> str | None:
        try:
            return ", ".join(f"{package} {version(package)}" for package in packages)
        except PackageNotFoundError:
            return None

    return found


def npm(*packages: str) -> Callable[[], str | None]:
    """The versions of npm packages."""

    def found() -> str | None:
        manifests = [_MODULES / package / "package.json" for package in packages]
        if not shutil.which("node") or not all(manifest.is_file() for manifest in manifests):
            return None
        versions = [
            json.loads(manifest.read_text(encoding="utf-8"))["version"] for manifest in manifests
        ]
        return ", ".join(
            f"{package} {each}" for package, each in zip(packages, versions, strict=True)
        )

    return found


def _pip(*packages: str) -> str:
    return f"pip install {' '.join(packages)}"


def _npm_install(*packages: str) -> str:
    return (
        f"npm install --prefix FOLDER {' '.join(packages)}, and {_NODE}=FOLDER in the environment"
    )


def _curl() -> str | None:
    return None if shutil.which("curl") is None else python("construct-messages")()


def _java() -> str | None:
    return None if shutil.which("java") is None else python("construct-messages", "pyspark")()


def _oxigraph() -> str:
    return (
        shutil.which(
            "oxigraph",
            path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        )
        or ""
    )


def _by_hand(job: Job) -> str:
    """The file with what the user wrote by hand for the job's query."""
    from benchmarks.suite.competitors.construct import (
        write,
    )  # with rdflib, which no competitor is to load for it

    return str(write(job.query, job.workdir))


def _module(name: str) -> list[str]:
    return [sys.executable, "-m", f"{_PACKAGE}.{name}"]


def _over_endpoint(name: str, *options: str) -> Callable[[Job], list[str]]:
    return lambda job: [*_module(name), _by_hand(job), str(job.endpoint), *options]


def _script(name: str) -> Callable[[Job], list[str]]:
    """A program in JavaScript, over the endpoint if there is one."""
    return lambda job: ["node", str(_HERE / name), _by_hand(job), job.endpoint or str(job.data)]


def _select(engine: str) -> Callable[[Job], list[str]]:
    return lambda job: [*_module("select"), _by_hand(job), engine, job.endpoint or str(job.data)]


# the options that the manual names for each kind of endpoint
_PROFILES: Final = {
    "oxigraph": ("--profile", "oxigraph"),
    "virtuoso-dbpedia": ("--profile", "virtuoso", "--page-size", "10000"),
}


def _served(endpoint: str, engine: str) -> AbstractContextManager[Service]:
    return serving(endpoint, *_PROFILES.get(engine, ()))


def _curl_asks(job: Job) -> list[str]:
    accept = "Accept: application/n-triples; messages=rdfm"
    query = ["--data-urlencode", f"query@{job.query_path}", "--header", accept]
    return ["curl", "--silent", "--show-error", "--fail-with-body", *query, str(job.endpoint)]


def _run(job: Job) -> list[str]:
    source = job.endpoint or str(job.data)
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "run",
        str(job.query_path),
        "--source",
        source,
        "--quiet",
    ]
    return [*command, *_PROFILES.get(job.engine, ())]


def _spark(job: Job) -> list[str]:
    log = job.workdir / "log"
    command = [
        sys.executable,
        "-m",
        "construct_messages",
        "spark",
        "run",
        str(job.query_path),
        "--quiet",
    ]
    options = [
        "--quads",
        str(job.data),
        "--output",
        str(log),
        "--conf",
        "spark.driver.memory=1200m",
    ]
    # the log is a folder of parts
    return [
        "sh",
        "-c",
        f'"$@" && cat {log}/*/part-*',
        "sh",
        *command,
        *options,
        "--master",
        "local[2]",
    ]


_RDFM: Final = b"\n# @message\n"  # the second message begins: the first is complete

COMPETITORS: Final = (
    Competitor(
        "ours", "construct-messages run, file", "ours", "file", True, python("construct-messages"),
        _pip("."), _run, printed_groups, _RDFM, "renamed", ENVIRONMENT,
    ),
    Competitor(
        "ours-duckdb", "construct-messages run --engine duckdb, file", "ours", "file", True,
        python("construct-messages", "duckdb"), _pip("'.[duckdb]'"), lambda job: [*_run(job), "--engine", "duckdb"],
        printed_groups, _RDFM, "renamed", ENVIRONMENT,
    ),
    Competitor(
        "ours-endpoint", "construct-messages run, endpoint", "ours", "oxigraph", False, python("construct-messages"),
        _pip("."), _run, printed_groups, _RDFM, "renamed", ENVIRONMENT,
    ),
    Competitor(
        "ours-server", "construct-messages serve, curl", "ours", "oxigraph", False, _curl,
        "apt-get install curl; pip install '.[server]'",
        _curl_asks, printed_groups, _RDFM, "renamed", ENVIRONMENT, service=_served,
    ),
    Competitor(
        "ours-python", "construct-messages, Message objects", "ours", "file", True, python("construct-messages"),
        _pip("."), lambda job: [*_module("messages"), str(job.query_path), str(job.data)],
        printed_groups, blank="renamed", environment=ENVIRONMENT,
    ),
    Competitor(
        "ours-spark", "construct-messages spark run", "ours", "file", True, _java,
        "apt-get install openjdk-17-jre-headless; pip install '.[spark]'", _spark,
        printed_groups, _RDFM, "renamed", ENVIRONMENT, smallest=1_000_000,
    ),
    Competitor(
        "flat-cbd", "flat CONSTRUCT + CBD", "flat", "oxigraph", False, python("pyoxigraph"),
        _pip("pyoxigraph"), _over_endpoint("cbd"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "flat-scbd", "flat CONSTRUCT + symmetric CBD", "flat", "oxigraph", False, python("pyoxigraph"),
        _pip("pyoxigraph"), _over_endpoint("cbd", "--symmetric"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "flat-shape", "flat CONSTRUCT + extract-cbd-shape", "flat", "oxigraph", False,
        npm("extract-cbd-shape", "rdf-stores", "n3"),
        _npm_install("extract-cbd-shape@0.1.14", "rdf-stores@2.5.0", "n3@2.13.12"),
        _script("shape.cjs"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "flat-rdflib", "flat CONSTRUCT + pattern again, rdflib", "flat", "oxigraph", False, python("rdflib"),
        _pip("rdflib"), _over_endpoint("rematch", "rdflib"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "flat-pyoxigraph", "flat CONSTRUCT + pattern again, pyoxigraph", "flat", "oxigraph", False,
        python("pyoxigraph"), _pip("pyoxigraph"), _over_endpoint("rematch", "pyoxigraph"),
        printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "select-sparqlwrapper", "SELECT + own code, SPARQLWrapper", "select", "oxigraph", False,
        python("SPARQLWrapper"), _pip("SPARQLWrapper"), _select("sparqlwrapper"),
        printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "select-pages", "SELECT + own code, SPARQLWrapper in pages of 10,000", "select", "oxigraph", False,
        python("SPARQLWrapper"), _pip("SPARQLWrapper"), _select("pages"),
        printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "select-rdflib", "SELECT + own code, rdflib", "select", "file", True, python("rdflib"),
        _pip("rdflib"), _select("rdflib"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "select-pyoxigraph", "SELECT + own code, pyoxigraph", "select", "file", True, python("pyoxigraph"),
        _pip("pyoxigraph"), _select("pyoxigraph"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "oxigraph-cli", "SELECT + own code, Oxigraph's command line", "select", "file", True, python("oxigraph"),
        _pip("oxigraph"), lambda job: [*_select("oxigraph")(job), _oxigraph()],
        printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "entities", "one query for each entity", "entities", "oxigraph", False, lambda: sys.version.split()[0],
        "Python alone", _over_endpoint("entities"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "comunica", "SELECT + own code, Comunica", "select", "file", True,
        npm("@comunica/query-sparql-file", "n3"), _npm_install("@comunica/query-sparql-file@4.5.0", "n3@2.13.12"),
        _script("comunica.cjs"), printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "comunica-cli", "Comunica's command line + pattern again, pyoxigraph", "flat", "file", True,
        npm("@comunica/query-sparql-file"), _npm_install("@comunica/query-sparql-file@4.5.0"),
        lambda job: [*_module("comunica"), _by_hand(job), str(job.data), str(job.query_path), str(_MODULES)],
        printed_groups, environment=ENVIRONMENT,
    ),
    Competitor(
        "ldkit", "LDkit", "entities", "oxigraph", False, npm("ldkit"), _npm_install("ldkit@2.7.1"),
        _script("ldkit.cjs"), printed_groups, environment=ENVIRONMENT,
    ),
)  # fmt: skip


def competitor(name: str) -> Competitor:
    """The competitor of a name."""
    return next(each for each in COMPETITORS if each.name == name)
