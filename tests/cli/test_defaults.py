"""The user's own defaults of options, the help of one screen, and the manual page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from construct_messages.cli import build_parser, main
from construct_messages.cli.defaults import VARIABLE
from tests.support.docs import BLOCKS

QUERY = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o } ORDER BY ?o"


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of defaults; the working directory has data."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.ttl").write_text("<urn:a> <urn:p> 1, 2, 3 .")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "options.toml"))
    return tmp_path / "options.toml"


def ran(*arguments: str) -> int:
    return main(["run", "--query", QUERY, "--source", "data.ttl", *arguments])


def test_defaults_apply_and_are_overridden(
    options: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options.write_text('[run]\nformat = "ttl"\nmax-messages = 2\nno_prefixes = true\n[serve]\n')
    assert ran() == 0
    assert capsys.readouterr().out.count("# @message\n<urn:a> <urn:q> ") == 2
    assert ran("--max-messages", "1", "--format", "nt") == 0
    assert capsys.readouterr().out.count('"^^<http://www.w3.org/2001/XMLSchema#integer> .') == 1


def test_repeated_options_are_added(options: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options.write_text('[run]\nbind = ["s=<urn:a>"]\n')
    assert ran("--bind", "o=3") == 0
    assert capsys.readouterr().out.count("# @message\n") == 1


def test_what_does_not_apply_has_no_effect(
    options: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options.write_text(
        '[run]\nprofile = "virtuoso"\npage-size = 10\ngroup-order = "sorted"\nretries = 1\n'
    )
    assert ran() == 0
    assert capsys.readouterr().out.count("# @message\n") == 3
    # on the command line it is a mistake
    assert ran("--page-size", "5") == 2
    assert "--page-size" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[run]\npage-siz = 3", "run.page-siz is not an option\nhint: did you mean page-size?"),
        ("[rum]\nquiet = true", "rum is not the table of a command\nhint: did you mean run?"),
        ("quiet = true", "quiet is not the table of a command"),
        ("[run]\nquiet = 1", "run.quiet = 1 is neither true nor false"),
        ("[run]\nmax-messages = -1", "run.max-messages = -1: "),
        ("[run]\nmethod = 'put'", "run.method = 'put': invalid choice"),
        ("[run]\nformat = ['nq', 'nt']", "run.format = ['nq', 'nt'] is no value of --format"),
        ("[run]\nhelp = true", "run.help is not an option"),
        ("[run", "are no TOML: "),
    ],
)
def test_mistakes_name_the_file_and_the_key(
    options: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    options.write_text(text)
    assert ran() == 2
    error = capsys.readouterr().err
    assert str(options) in error
    assert why in error


def test_where_the_file_is(
    options: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran() == 2  # the variable names one that does not exist
    assert f"cannot read the options {options}: No such file" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, "")
    assert ran() == 0
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(options.parent))
    assert ran() == 0
    capsys.readouterr()
    (options.parent / "construct-messages").mkdir()
    (options.parent / "construct-messages" / "options.toml").write_text("[run]\nmax-messages = 1")
    assert ran() == 0
    assert capsys.readouterr().out.count("# @message\n") == 1


def test_the_file_of_the_page(options: Path) -> None:
    (block,) = (each for each in BLOCKS if each.title == "options.toml")
    options.write_text(block.text)
    assert ran("--output", "log.nq") == 0
    assert (
        main(["spark", "verify", "."]) == 3
    )  # a folder without logs, after the defaults were read


def test_the_help_of_run_fits_on_a_screen(
    options: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options.write_text("")
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="0"):
            main(["run", flag])
        shown[flag] = capsys.readouterr().out
    assert shown["--help"].count("\n") <= 28
    assert "--help-all" in shown["--help"]
    assert "options.toml" in shown["--help"]
    assert shown["--help-all"].count("\n") > 100
    assert "--skolemize IRI" in shown["--help-all"]


def test_the_manual_has_every_option(options: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options.write_text("")
    with pytest.raises(SystemExit, match="0"):
        main(["--man"])
    page = capsys.readouterr().out
    plain = page.replace("\\-", "-")
    todo, flags = [build_parser()], set[str]()
    while todo:
        for action in todo.pop()._actions:
            flags |= set(action.option_strings)
            if action.nargs == "A...":
                todo += action.choices.values()  # type: ignore[union-attr] # those of commands
    assert len(flags) > 100
    assert [flag for flag in flags if f"\\fB{flag}\\fR" not in plain] == []
    if shutil.which("groff") is None:
        return
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", "-K", "utf8"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
