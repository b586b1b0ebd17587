"""The command `serve`: options, output, exit statuses. How a server runs: `server/runtime/test_supervisor.py`."""

import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from construct_messages.cli import main
from tests.support.places import ROOT

pytestmark = pytest.mark.process

DATA = str(ROOT / "queries" / "data" / "companies.ttl")
URL = "https://example.org/sparql"


class Done(NamedTuple):
    status: int
    output: str
    errors: str


@pytest.fixture
def serve(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """`construct-messages serve` in this process, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONSTRUCT_MESSAGES_SOURCE", raising=False)

    def run(*arguments: str) -> Done:
        try:
            status = main(["serve", *arguments])
        except SystemExit as exit:  # argparse's way out
            status = int(exit.code or 0)
        return Done(status, *capfd.readouterr())

    return run


def test_the_settings_that_count_are_shown(
    serve: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.toml").write_text(
        f'workers = 2\n[endpoints.d]\nsource = "{URL}"\ntoken_variable = "TOKEN"\n'
    )
    monkeypatch.setenv("TOKEN", "hunter2")
    monkeypatch.setenv("CONSTRUCT_MESSAGES_SERVER_ENDPOINTS__D__RATE", "5")
    done = serve(
        *(
            "--config",
            "server.toml",
            "--source",
            DATA,
            DATA,
            "--bind",
            "[::1]:80",
            "--log-queries",
            "--check-config",
        )
    )
    assert (done.status, done.errors) == (0, "")
    assert "hunter2" not in done.output
    shown = tomllib.loads(done.output)
    assert (shown["workers"], shown["bind"], shown["log_queries"]) == (2, "[::1]:80", True)
    assert shown["endpoint"]["source"] == [DATA, DATA]
    assert (shown["endpoints"]["d"]["rate"], shown["endpoints"]["d"]["token_variable"]) == (
        5.0,
        "TOKEN",
    )


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        ([], "no endpoint is named", "give --source"),
        (
            ["--config", "no.toml"],
            "cannot read the settings no.toml: No such file or directory",
            None,
        ),
        (
            ["--config", "bad.toml"],
            "bad.toml: wokers: there is no setting 'wokers'",
            "did you mean workers?",
        ),
        (["--config", "torn.toml"], "line 1, column 8: torn.toml is not TOML", "toml.io"),
        (
            ["--source", URL, "--workers", "none"],
            "--workers must be a whole number of at least 1",
            "workers = 1",
        ),
        (
            ["--source", URL, "--bind", "80"],
            "--bind: '80' is no address to listen at",
            "127.0.0.1:8080",
        ),
        (
            ["--source", URL, "--profile", "oracle"],
            "--profile: there is no endpoint profile 'oracle'",
            "virtuoso",
        ),
        (["--source", DATA, "--profile", "virtuoso"], "--profile is for URLs only", "leave it out"),
        (["--source", "no.ttl"], "--source: no.ttl: no such file", "check the path"),
        (["--page-size", "5"], "--page-size is set, but not endpoint.source", "--source"),
        (["--prot", "80"], "unrecognized arguments: --prot 80", "--help"),
    ],
    ids=lambda value: (
        " ".join(value).replace(DATA, "data.ttl") if isinstance(value, list) else None
    ),
)
@pytest.mark.parametrize("check", [[], ["--check-config"]], ids=["start", "check"])
def test_bad_settings(
    serve: Callable[..., Done],
    tmp_path: Path,
    arguments: list[str],
    check: list[str],
    error: str,
    hint: str | None,
) -> None:
    (tmp_path / "bad.toml").write_text(f'wokers = 2\nendpoint.source = "{URL}"\n')
    (tmp_path / "torn.toml").write_text("bind = ,")
    done = serve(*arguments, *check)
    assert (done.status, done.output) == (2, "")
    first, *rest = done.errors.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert "".join(rest).startswith("hint: ") if hint else not rest
    assert hint is None or hint in rest[0]


def test_a_private_address_is_allowed_by_a_flag(serve: Callable[..., Done]) -> None:
    command = [
        "--source",
        "http://virtuoso:8890/sparql",
        "--profile",
        "virtuoso",
        "--allow-private",
    ]
    shown = tomllib.loads(serve(*command, "--check-config").output)
    assert shown["endpoint"]["allow_private"] is True
    command.remove("--allow-private")
    assert (
        tomllib.loads(serve(*command, "--check-config").output)["endpoint"]["allow_private"]
        is False
    )


def test_without_the_extra() -> None:
    program = (
        "import sys; sys.modules['structlog'] = None\n"
        "from construct_messages.cli import main\n"
        f"sys.exit(main(['serve', '--source', {URL!r}, '--check-config']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: the server needs structlog, which is not installed\nhint: pip install 'construct-messages[server]'\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_while_files_are_loaded(quiet: bool) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [
            *(
                sys.executable,
                "-m",
                "construct_messages",
                "serve",
                "--source",
                DATA,
                "--bind",
                "127.0.0.1:0",
            ),
            *(["--quiet"] if quiet else []),
        ],
        stderr=theirs,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"},
    )
    with process:
        os.close(theirs)
        shown = b""
        while not re.search(
            rb'timestamp=\S+ level=info event="listening on http://127\.0\.0\.1:\d+"\r\n', shown
        ):
            shown += os.read(ours, 4096)
        assert (b"loading /sparql" in shown) is not quiet
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    os.close(ours)
