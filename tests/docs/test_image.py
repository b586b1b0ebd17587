"""The container image: its size, its user, a read-only root file system, a query and its health check.

`make image-test` builds the image and names its mounted root by `--image`. Each program runs as in a container: in that
root, read-only but for `/tmp`, as the user and with the variables and the command of the image.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import psutil
import pytest

from tests.support.engines.servers import free_port
from tests.support.places import ROOT

pytestmark = pytest.mark.process

MOST_BYTES = 320_000_000
# with a string, which the Python of Debian 12 reads wrongly by itself
QUERY = 'CONSTRUCT { ?s ?p ?o ; <urn:p> "a" } WHERE { ?s ?p ?o } LIMIT 3'


class Image:
    """The image that is mounted at a folder, and its configuration."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # `make image-test` writes it beside the root
        config: dict[str, Any] = json.loads(root.with_name("image.json").read_bytes())
        self.config: Mapping[str, Any] = config["Docker"]["config"]

    def command(self, *command: str, **variables: str) -> list[str]:
        """The command line that runs a command in the image, in mounts of its own."""
        environment = [
            *self.config["Env"],
            *(f"{name}={value}" for name, value in variables.items()),
        ]
        user, group = self.config["User"].split(":")
        root = shlex.quote(str(self.root))
        data = shlex.quote(str(ROOT / "queries" / "data"))
        inside = shlex.join(["env", "-i", *environment, *command])
        steps = (
            f"mount --bind {root} {root}",
            f"mount --bind {data} {root}/data",
            f"mount -t proc proc {root}/proc",
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount --bind /dev {root}/dev",
            f"mount -o remount,bind,ro {root} {root}",
            f"exec chroot --userspec={user}:{group} {root} {inside}",
        )
        return ["unshare", "--mount", "sh", "-ec", "\n".join(steps)]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*command), capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture(scope="module")
def image(pytestconfig: pytest.Config) -> Image:
    folder = pytestconfig.getoption("image")
    if folder is None:
        pytest.skip("no --image: `make image-test` builds and names it")
    return Image(Path(folder))


@pytest.fixture(scope="module")
def served(image: Image) -> Iterator[int]:
    """The server in the image, which has answered a query: its port."""
    port = free_port()
    command = [*image.config["Entrypoint"], "serve", "--source", "/data/companies.ttl"]
    bind = {"CONSTRUCT_MESSAGES_SERVER_BIND": f"127.0.0.1:{port}"}
    with subprocess.Popen(image.command(*command, **bind), stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        began = time.monotonic()
        for line in process.stderr:
            if b"listening on" in line:
                break
        ask = f"http://127.0.0.1:{port}/sparql?messages=rdfm&query={quote(QUERY)}"
        with urlopen(ask, timeout=60) as answer:
            assert answer.read().count(b"# @message") == 3
        took = time.monotonic() - began
        server = psutil.Process(process.pid)
        times = [each.cpu_times() for each in (server, *server.children(recursive=True))]
        # those of the process that loaded the files are in its parent's
        used = sum(each.user + each.system for each in times)
        used += times[0].children_user + times[0].children_system
        print(f"{took:.2f} s from its start to the answer, {used:.2f} s of a processor")
        yield port
        process.terminate()
        assert process.wait(60) == 0


def test_its_size(image: Image) -> None:
    done = subprocess.run(
        ["du", "--summarize", "--bytes", "--one-file-system", str(image.root)],
        capture_output=True,
        text=True,
        check=True,
    )
    size = int(done.stdout.split()[0])
    print(f"{size / 1e6:.0f} MB unpacked")
    assert size <= MOST_BYTES


def test_it_is_no_root_and_writes_only_to_tmp(image: Image) -> None:
    program = """
import os
print(os.getuid(), os.access("/tmp", os.W_OK))
for place in ("/opt/construct-messages/x", "/data/x", "/var/lib/construct-messages/x", "/x"):
    try:
        open(place, "w")
    except OSError:
        continue
    print("written:", place)
"""
    done = image.run("python3", "-c", program)
    assert (done.stdout, done.stderr) == ("65532 True\n", "")


def test_it_has_the_compiled_module_and_the_extras(image: Image) -> None:
    version = image.run("construct-messages", "--version").stdout
    assert version.startswith("construct-messages ")
    assert "pure Python" not in version
    modules = "aiomqtt, confluent_kafka, grpclib, joserfc, nats, shacl"
    assert image.run("python3", "-c", f"import {modules}").stderr == ""


def test_its_health_check(image: Image, served: int) -> None:
    kind, program, option, code = image.config["Healthcheck"]["Test"]
    assert kind == "CMD"
    healthy = image.run(program, option, code.replace("8080", str(served)))
    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert image.run(program, option, code.replace("8080", str(free_port()))).returncode == 1
