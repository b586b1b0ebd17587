"""What the guide for production offers: the unit of systemd, the Containerfile, services, Kubernetes, the dashboard.

No container engine is asked: what they have of this project is compared with it. `test_image.py` tries the image.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from configparser import ConfigParser
from pathlib import Path

import aiohttp
import pyoxigraph as ox
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from construct_messages.cli import build_parser
from construct_messages.server.config import BridgeSettings, Config, StreamsSettings
from construct_messages.server.runtime.settings import load_config
from tests.support.docs import BLOCKS
from tests.support.http.serving import serving
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


FOLDER = ROOT / "docs" / "container"
CONTAINERFILE = re.sub(
    r"^ *#.*\n|\\\n", "", (FOLDER / "Containerfile").read_text("utf-8"), flags=re.MULTILINE
)
SERVICES = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)


def test_the_containerfile() -> None:
    base, extras = (value.partition("=")[2] for value in instructions("ARG"))
    version = re.search(r"python:3\.(\d+)-slim$", base)
    assert version is not None
    assert f"Programming Language :: Python :: 3.{version[1]}" in PROJECT["classifiers"]
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    for copied in instructions("COPY"):
        *names, _ = copied.split()
        assert all(
            name.startswith("--") or (ROOT / name.lstrip("/")).exists() for name in names
        ) or ("--from=build" in names)
    (environment,) = instructions("ENV")
    config = settings(dict(re.findall(r"(CONSTRUCT_MESSAGES_\w+)=(\S+)", environment)))
    assert [config.bind.rpartition(":")[2]] == instructions("EXPOSE")
    assert config.log_format == "json"
    (user,) = instructions("USER")
    assert f"--owner={user.partition(':')[0]} " in instructions("RUN")[-1]
    parsed(shlex.join([*entry(), *yaml.safe_load(instructions("CMD")[-1])]))


def entry() -> list[str]:
    (point,) = instructions("ENTRYPOINT")
    return list(yaml.safe_load(point))


def test_the_services(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its settings are valid where the paths are those of the container."""
    messages = SERVICES["messages"]
    assert messages["depends_on"] == [name for name in SERVICES if name != "messages"]
    assert (messages["read_only"], messages["user"]) == (True, instructions("USER")[0])
    parsed(shlex.join([*entry(), *messages["command"]]))
    (file, place), (data, there) = (
        (FOLDER / volume.split(":")[0], volume.split(":")[1]) for volume in messages["volumes"][:2]
    )
    assert messages["command"][-1] == place
    text = file.read_text(encoding="utf-8").replace(there, str(data.resolve()))
    text = text.replace(messages["volumes"][2].split(":")[1], str(tmp_path))
    (tmp_path / "server.toml").write_text(text, encoding="utf-8")
    for name in messages["environment"]:
        monkeypatch.setenv(name, "secret")
    config = load_config(tmp_path / "server.toml", os.environ, {})
    assert config.streams is not None
    (bridge,) = config.streams.bridges.values()
    assert bridge.target is not None
    assert bridge.target.split("/")[2] in SERVICES


def test_kubernetes(tmp_path: Path) -> None:
    """Its settings, command, port and probes are those of the server, and it is not root."""
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    settings_map, deployment, service = yaml.safe_load_all(text)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    parsed(shlex.join([*entry(), *container["args"]]))
    (name, written) = next(iter(settings_map["data"].items()))
    place = next(each for each in container["volumeMounts"] if each["name"] == "settings")
    assert container["args"][-1] == f"{place['mountPath']}/{name}"
    (tmp_path / name).write_text(written, encoding="utf-8")
    config = load_config(tmp_path / name, {}, {})
    assert pod["terminationGracePeriodSeconds"] > config.shutdown_seconds
    (port,) = container["ports"]
    assert [str(port["containerPort"])] == instructions("EXPOSE")
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert container["livenessProbe"]["httpGet"]["path"] in CONTAINERFILE
    assert {each["name"] for each in pod["volumes"]} == {
        each["name"] for each in container["volumeMounts"]
    }
    assert pod["securityContext"]["runAsNonRoot"]
    # a name could not be seen to be no root
    assert instructions("USER")[0].split(":")[0].isdigit()


async def test_the_dashboard_shows_the_metrics_that_there_are(tmp_path: Path) -> None:
    """Each metric of a server with streams and a bridge, and no other; with labels that it has."""
    board = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    streams = StreamsSettings(
        file=str(tmp_path / "streams.db"),
        bridges={"a": BridgeSettings(target="http://127.0.0.1:9/streams/a")},
    )
    source = ROOT / "queries" / "data" / "companies.ttl"
    store = ox.Store(str(tmp_path / "store"))
    store.load(path=str(source))
    store.flush()
    del store
    async with (
        serving(tmp_path / "store", settings={"streams": streams}) as server,
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}/metrics") as got,
    ):
        text = await got.text()
    families = {each.name: each for each in text_string_to_metric_families(text)}
    labels = {
        name: {label for sample in each.samples for label in sample.labels}
        for name, each in families.items()
    }
    shown = set()
    for query in queries:
        (name,) = re.findall(r"construct_messages_\w+", query)
        family = re.sub(r"_total$|_bucket$", "", name)
        assert family in families, query
        assert name == family + {"counter": "_total", "histogram": "_bucket"}.get(
            families[family].type, ""
        )
        shown.add(family)
        by = re.search(r"by \(([^)]*)\)", query)
        assert by is not None
        if labels[family]:
            assert {*by[1].split(", "), "endpoint"} <= labels[family], query
    assert shown == {name for name in families if not name.endswith("_created")}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    assert all(
        target["legendFormat"] and target["datasource"]["uid"] == "${datasource}"
        for panel in board["panels"]
        for target in panel.get("targets", ())
    )
