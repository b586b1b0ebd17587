"""Completion in shells, and the examples that `--help` shows."""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from construct_messages.cli import build_parser
from construct_messages.cli.arguments import SHELLS, Parser
from tests.support.commands import Done
from tests.support.places import absent

Here = Callable[..., Done]


def parsers(parser: Parser) -> Iterator[Parser]:
    """The parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


COMMANDS = [parser for parser in parsers(build_parser()) if parser._defaults.get("command")]


@pytest.fixture
def shtab() -> None:
    if importlib.util.find_spec("shtab") is None:
        absent("shtab is not installed: pip install shtab")


@pytest.mark.parametrize("parser", COMMANDS, ids=lambda parser: parser.prog)
def test_help_shows_examples_that_can_be_parsed(parser: Parser) -> None:
    assert parser.prog in parser.examples[0]  # those behind it may show what follows
    for example in parser.examples:
        assert f"\n  {example}\n" in parser.format_all()  # on a line of its own, however long it is
        for command in example.split(" | "):
            program, *arguments = shlex.split(command)
            if program not in ("head", "jq"):
                assert program == "construct-messages"
                build_parser().parse_args(arguments)


@pytest.mark.usefixtures("shtab")
@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_accepted_by_the_shell(here: Here, shell: str, tmp_path: Path) -> None:
    done = here("--print-completion", shell)
    assert (done.status, done.errors) == (0, "")
    assert all(parser.prog.split()[-1] in done.log for parser in COMMANDS)
    script = tmp_path / "completions"
    script.write_text(done.log, encoding="utf-8")
    if program := shutil.which(shell):
        subprocess.run([program, "-n", str(script)], check=True, timeout=240)


@pytest.mark.usefixtures("shtab")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        pytest.param(["con"], ["convert"], id="a command"),
        pytest.param(
            ["run", "--group-"], ["--group-by", "--group-order", "--group-limit"], id="an option"
        ),
        pytest.param(["run", "--method", ""], ["get", "post"], id="a value"),
        pytest.param(["spark", "l"], ["load"], id="a command of a command"),
        pytest.param(["convert", "some"], ["some.nq"], id="a file"),
    ],
)
def test_bash_completes(here: Here, tmp_path: Path, words: list[str], completed: list[str]) -> None:
    script = tmp_path / "completions"
    script.write_text(here("--print-completion", "bash").log, encoding="utf-8")
    (tmp_path / "some.nq").touch()
    line = ["construct-messages", *words]
    ask = (
        f"source completions; COMP_WORDS=({' '.join(shlex.quote(word) for word in line)}); COMP_CWORD={len(words)};"
        " function=$(complete -p construct-messages | sed 's/.*-F \\([^ ]*\\).*/\\1/');"
        f" $function construct-messages {shlex.quote(line[-1])} {shlex.quote(line[-2])};"
        " printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.split() == completed


def test_other_shells_are_refused(here: Here) -> None:
    done = here("--print-completion", "csh")
    assert (done.status, done.log) == (2, "")
    assert done.errors == "error: there are no completions for csh\nhint: choose bash, zsh, fish\n"
