"""The bundle of CodeMirror in the page: made of pinned packages of npm, so that the same source gives the same bytes.

`python -m tests.support.pages.bundle` (`make editor`) writes it into the package; a test compares it with its source.
Needs Node.js with npm; the page itself needs neither.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from construct_messages.server.pages import endpoint

BUNDLE: Final = Path(endpoint.__file__).parent / "static" / "codemirror.js"
SOURCE: Final = Path(endpoint.__file__).parent / "editor"
_NAMES: Final = ("codemirror.js", "package.json", "package-lock.json")


def digest() -> str:
    """The SHA-256 of the source, which the bundle names."""
    return hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in _NAMES)).hexdigest()


def named_digest(bundle: bytes) -> str:
    """The digest of the source that a bundle names."""
    found = re.search(rb"source: ([0-9a-f]{64})", bundle)
    return "" if found is None else found[1].decode()


def bundled(folder: Path, *npm: str) -> bytes:
    """Makes the bundle.

    Args:
        folder: an empty folder for the packages.
        npm: further options of `npm ci`.

    Raises:
        subprocess.CalledProcessError: npm did not get the packages, or esbuild failed.
    """
    for name in _NAMES:
        shutil.copy(SOURCE / name, folder)
    _run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", *npm)
    esbuild = folder / "node_modules" / ".bin" / "esbuild"
    options = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--charset=utf8")
    _run(folder, str(esbuild), "codemirror.js", *options, "--outfile=out.js", "--metafile=m.json")
    inputs = json.loads((folder / "m.json").read_text(encoding="utf-8"))["inputs"]
    packages = sorted({match[1] for path in inputs if (match := _PACKAGE.match(path))})
    return f"/*!\n{_notices(folder, packages)}\n*/\n".encode() + (folder / "out.js").read_bytes()


_PACKAGE: Final = re.compile(r"node_modules/((?:@[^/]+/)?[^/]+)/")


def _notices(folder: Path, packages: list[str]) -> str:
    """What a bundle begins with: its source, the packages in it with their copyrights, and their one licence."""
    lines = [f"Written by `make editor`; source: {digest()}", "", "Contains, of npm:"]
    licences = set()
    for package in packages:
        place = folder / "node_modules" / package
        version = json.loads((place / "package.json").read_text(encoding="utf-8"))["version"]
        text = (place / "LICENSE").read_text(encoding="utf-8").removeprefix("MIT License\n\n")
        copyright, _, licence = text.partition("\n\n")
        lines.append(f"{package} {version}: {copyright}")
        licences.add(licence.strip())
    (licence,) = licences  # of all of them: the MIT License
    return "\n".join([*lines, "", "MIT License", "", licence])


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        BUNDLE.write_bytes(bundled(Path(made)))
    sys.stdout.write(f"{BUNDLE}: {BUNDLE.stat().st_size:,} bytes\n")
