"""The tutorial works as printed: its files are saved, its commands run in order, its server serves meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs import BLOCKS, TUTORIAL, printed
from tests.support.engines.servers import Missing, free_port, program
from tests.support.places import ROOT, absent

pytestmark = [pytest.mark.process, pytest.mark.slow]

SERVE = "construct-messages serve "


def test_the_tutorial(tmp_path: Path) -> None:
    """All but the installation, which `test_installed.py` does, and with a free port for 8080."""
    try:
        program("curl", "apt-get install curl")
    except Missing as missing:
        absent(str(missing))
    port = free_port()
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CURL_HOME": str(tmp_path),  # no settings of the user's
    }
    server: subprocess.Popen[str] | None = None
    commands = 0
    try:
        for block in (block for block in BLOCKS if block.page == TUTORIAL):
            if block.title:
                (tmp_path / block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "console":
                for session in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                    command, _, output = session.replace(":8080", f":{port}").partition("\n")
                    assert printed(command, tmp_path, environment) == output, (
                        f"{TUTORIAL}:{block.line}: {command}"
                    )
                    commands += 1
            elif block.text.startswith(SERVE):
                arguments = [*block.text.split(), "--bind", f"127.0.0.1:{port}"]
                server = subprocess.Popen(
                    arguments, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
                )
                assert server.stderr is not None
                assert any("listening on" in line for line in server.stderr)
    finally:
        if server is not None:
            server.terminate()
            server.communicate(timeout=120)
    assert server is not None
    assert server.returncode == 0
    assert commands > 10
