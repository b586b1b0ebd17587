"""Fixtures that several test modules use."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, closing
from functools import partial
from inspect import isfunction
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.combinations import chosen
from tests.support.commands import Done
from tests.support.engines.kafka import Kafka
from tests.support.engines.kafka import kafka as running_kafka
from tests.support.engines.servers import ALL, Arq, Missing, Serve
from tests.support.places import ROOT, absent
from tests.support.spark.sessions import (
    OTHER,
    PLANNED,
    QUICK,
    activate,
    connectors,
    new_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.engines.issuer import Issuer

# What an example takes says nothing where other work shares the machine; figures are the benchmarks' business. The same
# examples come in each run, so that a failure is the change's and not chance's: `make fuzz` tries others, and more.
_ANY_MACHINE = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("project", _ANY_MACHINE, derandomize=True, max_examples=50)
settings.register_profile("quick", _ANY_MACHINE, derandomize=True, max_examples=20)
settings.register_profile("long", _ANY_MACHINE, max_examples=2000)
settings.register_profile(
    "thousands", _ANY_MACHINE, max_examples=32_000
)  # of which a part on Spark
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--w3c",
        choices=("some", "all"),
        default="some",
        help="which of the W3C's query evaluation tests Spark is asked: every eighth, or all of them",
    )

    parser.addoption(
        "--kills",
        type=int,
        default=2,
        help="how often the server of streams is killed while it is published to",
    )

    parser.addoption(
        "--cuts", type=int, default=40, help="how many power cuts each kind of file is read after"
    )

    parser.addoption(
        "--messages", type=int, default=500, help="how many messages a log through a broker has"
    )

    parser.addoption(
        "--rounds",
        type=int,
        default=1,
        help="how often results are read in pages from Virtuoso, and two disks are filled",
    )

    parser.addoption(
        "--inputs", type=int, default=200, help="how many mutated logs every decoder is given"
    )

    parser.addoption(
        "--queries", type=int, default=20, help="how many random queries DuckDB is asked"
    )

    parser.addoption(
        "--tables",
        type=int,
        default=1,
        help="how many tables of 50,000 solutions every decoder of results is given",
    )

    parser.addoption(
        "--clients", type=int, default=60, help="how many clients ask a server at once"
    )

    parser.addoption(
        "--leavers", type=int, default=50, help="how many clients leave a server at a time"
    )

    parser.addoption(
        "--calls", type=int, default=300, help="how many calls the server for AI agents answers"
    )

    parser.addoption(
        "--image", metavar="FOLDER", help="the root file system of the container image to be tried"
    )

    parser.addoption("--screenshots", metavar="FOLDER", help="where screenshots of the page go")

    parser.addoption(
        "--combinations",
        action="store_true",
        help="run all combinations of the parameters of tests, not only those that `one_in` leaves",
    )

    parser.addoption(
        "--slow",
        action="store_true",
        help="run the slow tests, too; by default, where they are named only",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Heeds signals as in a terminal: what a background job ignores, the programs that it starts ignore, too.

    Without the slow tests, properties are tried on fewer examples.
    """
    if leaves_out_slow(config) and not config.getoption("--hypothesis-profile"):
        settings.load_profile("quick")
    for number, handler in (
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGINT, signal.default_int_handler),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def leaves_out_slow(config: pytest.Config) -> bool:
    """Whether neither an option nor a path on the command line asks for slow tests."""
    named = config.args_source == pytest.Config.ArgsSource.ARGS
    return not (named or config.getoption("--slow") or config.getoption("markexpr"))


_SLOW_MODULE = re.compile(r"^pytestmark = (?:\[[^\]]*)?pytest\.mark\.slow\b", re.MULTILINE)


def needed_marks(config: pytest.Config) -> set[str]:
    """The marks among *slow* and *spark* that each test of `-m` has, where it joins marks by *and* alone."""
    expression = config.getoption("markexpr")
    if "(" in expression or " or " in expression:
        return set()
    return {"slow", "spark"}.intersection(expression.split(" and "))


def may_have(mark: str, module: Path) -> bool:
    """Whether the path of a module, its text, or that of the fixtures of its folders, mentions a mark."""
    path = module.relative_to(ROOT)
    fixtures = [ROOT / folder / "conftest.py" for folder in path.parents if len(folder.parts) > 1]
    texts = (each.read_text(encoding="utf-8") for each in (module, *fixtures) if each.exists())
    return any(mark in text for text in (str(path), *texts))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out modules none of whose tests are run before they are loaded, which takes a third of the time of all."""
    if not collection_path.match("test_*.py"):
        return None
    if leaves_out_slow(config):
        return _SLOW_MODULE.search(collection_path.read_text(encoding="utf-8")) is not None or None
    return not all(may_have(mark, collection_path) for mark in needed_marks(config)) or None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, obj: object
) -> Generator[None, object, object]:
    """Leaves out slow tests before their cases are made, which takes long itself, and the slow cases of others."""
    found = yield
    if isinstance(found, list) and not collector.config.getoption("--combinations"):
        found = chosen(found)
    if not leaves_out_slow(collector.config):
        return found
    own = getattr(obj, "pytestmark", ()) if isfunction(obj) else ()
    if any(mark.name == "slow" for mark in [*collector.iter_markers("slow"), *own]):
        return []
    if isinstance(found, list):
        return [each for each in found if each.get_closest_marker("slow") is None]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects tests without the garbage collector, which would look through all of them time and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by the fixtures that they use."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures:
            item.add_marker("spark")
        if not {"serve_with", "kafka", "jena"}.isdisjoint(fixtures):
            item.add_marker("engine")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what was left out, and which of the W3C's queries took Spark longest to plan."""
    planned = sorted(
        (
            (seconds, report.nodeid.rpartition("[")[2].rstrip("]"))
            for outcome in ("passed", "failed")
            for report in terminalreporter.getreports(outcome)
            for name, seconds in report.user_properties
            if name == PLANNED and report.when == "call"
        ),
        reverse=True,
    )
    if planned:
        longest = ", ".join(f"{name} {seconds:.1f} s" for seconds, name in planned[:5])
        terminalreporter.write_line(f"{len(planned)} queries planned; the longest: {longest}")
    if leaves_out_slow(config):
        terminalreporter.write_line(
            "`make check` adds the slow tests: Spark, other engines and programs, faults at every byte, large inputs"
        )


@pytest.fixture
def screenshots(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder for screenshots of pages: a temporary one, or that of the documentation."""
    return Path(request.config.getoption("--screenshots") or tmp_path).absolute()


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """The command line in this process, where starting takes no time."""
    from construct_messages.cli import main  # tests of lower floors need not load it

    monkeypatch.delenv("CONSTRUCT_MESSAGES_SOURCE", raising=False)

    def run_here(*arguments: str) -> Done:
        try:
            status = main(arguments)
        except SystemExit as exit:  # argparse's way out
            status = int(exit.code or 0)
        return Done(status, *capfd.readouterr())

    return run_here


@pytest.fixture(scope="session")
def serve_with(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path], str]]:
    """`Serve` for each engine of `support/engines/servers.py` by its name; skips the test where it is missing."""
    with ExitStack() as stack:
        urls: dict[tuple[str, Path], str] = {}

        def serve(name: str, data: Path) -> str:
            if (name, data) not in urls:
                engine, before = (
                    ALL[name],
                    [url for (other, _), url in urls.items() if other == name],
                )
                try:
                    if before and engine.load is not None:
                        urls[name, data] = engine.load(before[-1], data)
                    else:
                        starting = engine.start(data, tmp_path_factory.mktemp(name))
                        urls[name, data] = stack.enter_context(starting)
                except Missing as missing:
                    absent(str(missing))
            return urls[name, data]

        yield serve


@pytest.fixture(scope="session")
def jena() -> Iterator[Arq]:
    """Jena's reference evaluator; skips the test where it is missing."""
    try:
        arq = Arq()
    except Missing as missing:
        absent(str(missing))
    with closing(arq):
        yield arq


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker of Kafka; skips the test where it is missing."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(running_kafka(tmp_path_factory.mktemp("kafka")))
        except Missing as missing:
            absent(str(missing))
        yield broker


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    """An issuer of tokens."""
    from tests.support.engines.issuer import issuing  # tests of lower floors need not load it

    async with issuing() as issuer:
        yield issuer


@pytest.fixture(scope="session")
def oxigraph_server(serve_with: Callable[[str, Path], str]) -> Serve:
    """The Oxigraph server."""
    return partial(serve_with, "oxigraph")


@pytest.fixture(scope="session")
def rdflib_server(serve_with: Callable[[str, Path], str]) -> Serve:
    """rdflib-endpoint, which evaluates with rdflib."""
    return partial(serve_with, "rdflib")


@pytest.fixture(scope="session")
def proxy() -> Iterator[Callable[..., str]]:
    """Puts the server before a source, once in a session for the same settings, and gives its endpoint's URL."""
    from tests.support.http.serving import serving  # tests of lower floors need not load the server

    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    thread = Thread(target=loop.run_forever)
    thread.start()
    urls: dict[str, str] = {}

    def serve(source: str, **options: Any) -> str:
        if (key := repr((source, options))) not in urls:
            starting = stack.enter_async_context(serving(source, allow_private=True, **options))
            urls[key] = asyncio.run_coroutine_threadsafe(starting, loop).result(240).sparql
        return urls[key]

    yield serve
    asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(240)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One small Spark session for all tests of a process; skips the test where pyspark or Java is missing."""
    from construct_messages.errors import SparkUnavailable
    from construct_messages.spark.session import local_session

    warehouse = tmp_path_factory.mktemp("spark")
    try:
        session = local_session(
            "local[2]",
            {
                "spark.driver.memory": "1g",
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.warehouse.dir": str(warehouse / "warehouse"),
                "spark.sql.ui.retainedExecutions": "100",  # plans are long, and nobody looks at those of other tests
                "spark.local.dir": str(warehouse / "local"),
                # many short queries: the quick compiler serves them better than the thorough one
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                **connectors(),
            },
        )
    except SparkUnavailable as unavailable:
        absent(str(unavailable))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _active_session(request: pytest.FixtureRequest) -> None:
    """The session that Spark calls active is the same for each test, whichever the tests before it used last."""
    if "spark" in request.fixturenames:
        activate(request.getfixturevalue("spark"))


@pytest.fixture(scope="session")
def quick(spark: SparkSession) -> SparkSession:
    """A session for data of a few quads."""
    return new_session(spark, QUICK)


@pytest.fixture(scope="session")
def other(spark: SparkSession) -> SparkSession:
    """A session whose settings differ from the defaults wherever SQL could come to mean something else."""
    return new_session(spark, OTHER)
