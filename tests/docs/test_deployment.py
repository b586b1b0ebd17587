"""The texts of the guide for production: the unit of systemd, the Containerfile and the services are held to the code.

No container engine is asked: the instructions are read, and whatever they say of this project is compared with it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from construct_messages.cli import build_parser
from construct_messages.server.config import Config
from construct_messages.server.runtime.settings import load_config
from tests.support.docs import BLOCKS
from tests.support.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXTS = {
    block.language: block.text for block in BLOCKS if block.page == "docs/guides/production.md"
}


def parsed(command: str) -> None:
    """Has the command line take a command apart, whatever folder the program is in."""
    program, *arguments = shlex.split(command)
    assert Path(program).name == "construct-messages"
    build_parser().parse_args(arguments)


def settings(variables: dict[str, str]) -> Config:
    """The settings of a server with these variables in its environment."""
    return load_config(
        None, variables | {"CONSTRUCT_MESSAGES_SOURCE": "https://example.org/sparql"}, {}
    )


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    unit = ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign] # names of settings are not folded
    unit.read_string(TEXTS["ini"])
    service = unit["Service"]
    parsed(service["ExecStart"])
    assert service["RestartPreventExitStatus"] == "2"
    assert float(service["TimeoutStopSec"]) > settings({}).shutdown_seconds
    if program := shutil.which("systemd-analyze"):
        own = tmp_path / "construct-messages.service"
        # the program need not be installed to verify the rest
        own.write_text(
            re.sub("ExecStart=[^ ]*", "ExecStart=/bin/true", TEXTS["ini"]), encoding="utf-8"
        )
        done = subprocess.run(
            [program, "verify", str(own)], capture_output=True, text=True, check=False, timeout=240
        )
        assert [line for line in done.stderr.splitlines() if own.name in line] == []


def test_the_containerfile() -> None:
    instructions = [line.split(" ", 1) for line in TEXTS["dockerfile"].splitlines()]
    names = [name for name, _ in instructions]
    assert names == ["FROM", "COPY", "RUN", "USER", "ENV", "EXPOSE", "ENTRYPOINT"]
    values = dict(instructions)
    version = re.fullmatch(r"python:3\.(\d+)-slim", values["FROM"])
    assert version is not None
    assert f"Programming Language :: Python :: 3.{version[1]}" in PROJECT["classifiers"]
    _, folder = values["COPY"].split()
    extra = re.search(rf"'{folder}\[(\w+)\]'", values["RUN"])
    assert extra is not None
    assert extra[1] in PROJECT["optional-dependencies"]
    assert re.search(r"useradd .*\b(\w+)$", values["RUN"])[1] == values["USER"]  # type: ignore[index] # fails as it should
    variables = dict(pair.split("=", 1) for pair in values["ENV"].split())
    config = settings(variables)
    assert config.bind.endswith(f":{values['EXPOSE']}")
    assert config.log_format == "json"
    parsed(shlex.join(yaml.safe_load(values["ENTRYPOINT"])))


def test_the_services() -> None:
    services = yaml.safe_load(TEXTS["yaml"])["services"]
    entry = yaml.safe_load(
        dict(line.split(" ", 1) for line in TEXTS["dockerfile"].splitlines())["ENTRYPOINT"]
    )
    parsed(f"{shlex.join(entry)} {services['messages']['command']}")
    assert services["messages"]["ports"] == ["8080:8080"]
