"""Every code block of the README and the docs does what the page says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from construct_messages.query.continuous.parse import parse_continuous
from construct_messages.query.rewrite import ConstructQuery
from tests.support.docs import BLOCKS, SPARK, TUTORIAL, Block, continues, printed
from tests.support.engines.servers import free_port
from tests.support.places import ROOT
from tests.support.spark.sessions import SHORT_LIVED
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]

# Blocks that other tests run, or that are no code: what a query gives, the syntax of a command, settings.
SHOWN = {
    "text",
    "py",
    "turtle",
    "sh",
    "toml",
    "nginx",
    "ini",
    "json",
    "dockerfile",
    "yaml",
    "html",
    "js",
    "ipython",
}


CLIENTS = "docs/reference/streams/clients.md"
"""Its programs run beside the server that they ask."""


def of(*languages: str) -> pytest.MarkDecorator:
    chosen = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize(
        "block", chosen, ids=[f"{block.page}:{block.line}" for block in chosen]
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder in which the pages' relative paths hold, and nothing that a block writes does harm."""
    (tmp_path / "queries").symlink_to(ROOT / "queries")
    return tmp_path


ENVIRONMENT = (
    os.environ
    | SHORT_LIVED
    | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
)


def shell(command: str, place: Path) -> str:
    """What a command prints on both outputs, and its exit status where that is not 0."""
    return printed(command, place, ENVIRONMENT)


@contextmanager
def started(command: str, place: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until the block ends."""
    with subprocess.Popen(
        command.split(), cwd=place, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_every_language_is_tested() -> None:
    assert {block.language for block in BLOCKS} - SHOWN <= {"console", "python", "rspql", "sparql"}


@pytest.mark.parametrize(
    "block",
    [
        block
        for block in BLOCKS
        if block.language == "console" and block.page not in (SPARK, TUTORIAL)
    ],
    ids=lambda block: f"{block.page}:{block.line}",
)
def test_console(block: Block, place: Path) -> None:
    prompt, *sessions = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert prompt == ""
    for session in sessions:
        command, _, output = session.partition("\n")
        assert shell(command, place) == output


@pytest.mark.parametrize(
    "page",
    sorted({block.page for block in BLOCKS if block.language == "python"} - {TUTORIAL, CLIENTS}),
)
def test_python(page: str, place: Path) -> None:
    """A page's Python blocks run one after the other, each a program where the page does not say that they are one.

    A text block behind one is its output. Settings with a title are a file.
    """
    of_page = [block for block in BLOCKS if block.page == page]
    programs: list[tuple[str, str]] = []  # each with what it prints
    for block, following in zip(of_page, [*of_page[1:], None], strict=True):
        if block.language == "python":
            output = (
                following.text if following is not None and following.language == "text" else ""
            )
            if programs and continues(block):
                program, before = programs.pop()
                programs.append((program + block.text, before + output))
            else:
                programs.append((block.text, output))
    for block in of_page:
        if block.language == "toml" and block.title:
            (place / block.title).write_text(block.text, encoding="utf-8")
    for program, output in programs:
        (place / "page.py").write_text(program, encoding="utf-8")
        assert shell("python page.py", place) == output


@of("sparql")
def test_sparql(block: Block) -> None:
    query = ConstructQuery.parse(block.text)
    assert query.template.patterns


@of("rspql")
def test_rspql(block: Block) -> None:
    assert parse_continuous(block.text).windows


def test_the_first_log_of_the_readme(place: Path) -> None:
    query, log = next(
        (q, t) for q, t in pairwise(BLOCKS) if (q.page, q.language) == ("README.md", "sparql")
    )
    assert log.language == "turtle"
    (place / "query.rq").write_text(query.text, encoding="utf-8")
    command = "construct-messages run query.rq --source queries/data/companies.ttl --format ttl"
    assert shell(command, place) == log.text


def test_the_two_commands_of_the_readme(place: Path) -> None:
    """Only what comes behind the installation runs here; `.ci/run` runs both as they stand."""
    run, test = (
        block.text.split(" && ")
        for block in BLOCKS
        if (block.page, block.language) == ("README.md", "sh")
    )
    assert run[:2] == ["python3 -m venv .venv", ".venv/bin/pip install ."]
    assert test == [
        "python3 -m venv .venv",
        ".venv/bin/pip install '.[test]'",
        ".venv/bin/pytest -n 3\n",
    ]
    (main_job,) = run[2:]
    assert shell(main_job.replace(".venv/bin/", ""), place).count("# @message\n") == 5
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_five_commands_of_the_live_stream(place: Path) -> None:
    """As they stand, but for the port; the last one until the file has what was published before and after a stop."""
    commands = [
        block.text.strip()
        for block in BLOCKS
        if (block.page, block.language) == ("docs/guides/streams.md", "sh")
    ][:5]
    port = free_port()
    serve, make, publish, see, follow = (
        command.replace(":8080", f":{port}") for command in commands
    )

    def copied() -> int:
        log = place / "companies.trig"
        return log.read_text(encoding="utf-8").count("# @message\n") if log.exists() else 0

    with started(f"{serve} --bind 127.0.0.1:{port}", place) as server:
        assert server.stderr is not None
        assert any("listening on" in line for line in server.stderr)
        shell(make, place)
        assert shell(publish, place) == ""
        assert shell(see, place).count("# @message\n") == 2
        # the page's Python goes on while the server runs
        test_python(CLIENTS, place)
        for count in (5, 10):
            with started(follow, place) as following:
                wait_until(lambda count=count: copied() == count)
                following.terminate()
                assert following.wait(120) == 0
            assert shell(publish, place) == ""


def test_a_query_registered_as_the_page_says(place: Path) -> None:
    """The commands of docs/guides/register-a-query.md."""
    of_page = [block for block in BLOCKS if block.page == "docs/guides/register-a-query.md"]
    (number,) = (number for number, block in enumerate(of_page) if block.title == "hot.rq")
    (place / "hot.rq").write_text(of_page[number].text, encoding="utf-8")
    commands = of_page[number + 1]
    assert commands.language == "sh"
    port = free_port()
    with started(
        f"construct-messages serve --streams streams.db --bind 127.0.0.1:{port}", place
    ) as server:
        assert server.stderr is not None
        assert any("listening on" in line for line in server.stderr)
        for command in commands.text.splitlines():
            quiet = command.replace("curl ", "curl --silent --show-error ").replace(
                ":8080", f":{port}"
            )
            assert "error" not in shell(quiet, place)
        for name in ("hot", "hot-rooms"):
            assert name in shell(
                f"curl --silent --fail http://127.0.0.1:{port}/streams/{name}", place
            )


def test_completions_are_installed_as_the_page_says(place: Path) -> None:
    (block,) = (
        block for block in BLOCKS if block.language == "sh" and "--print-completion" in block.text
    )
    assert shell(f"export HOME={place}\n{block.text}", place) == ""
    for file in (
        ".local/share/bash-completion/completions/construct-messages",
        ".zfunc/_construct-messages",
        ".config/fish/completions/construct-messages.fish",
    ):
        assert "construct-messages" in (place / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "query", sorted((ROOT / "queries").glob("*.rq")), ids=lambda path: path.name
)
def test_the_queries_give_messages(query: Path, place: Path) -> None:
    log = shell(
        f"construct-messages run queries/{query.name} --source queries/data/companies.ttl", place
    )
    assert log.startswith("# @message\n<http://dbpedia.org/resource/")
