"""Runs the page's modules that touch no document, in Node.js."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from construct_messages.server.pages.endpoint import static_files
from tests.support.pages.browser import node_folder


class Modules:
    """A copy of the page's modules; Node.js takes `.js` for modules where a package says so."""

    def __init__(self, folder: Path) -> None:
        self._node, _ = node_folder()
        self._folder = folder
        (folder / "package.json").write_text('{"type": "module"}')
        for name, file in static_files().items():
            if name.endswith(".js"):
                (folder / name).write_bytes(file.body)

    def run(self, script: str, given: Any) -> Any:
        """What a module's function `main` returns, in JSON, for `given`."""
        entry = self._folder / "entry.mjs"
        entry.write_text(
            f"{script}\nlet given = '';\nprocess.stdin.setEncoding('utf8');\n"
            "for await (const piece of process.stdin) given += piece;\n"
            "process.stdout.write(JSON.stringify(await main(JSON.parse(given))));\n"
        )
        done = subprocess.run(
            [self._node, entry],
            input=json.dumps(given).encode(),
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)
