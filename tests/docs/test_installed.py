"""The wheel and the sdist hold what they need: the wheel runs outside of the checkout, and the sdist builds it."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.places import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]

PACKAGE = {
    str(path.relative_to(ROOT))
    for path in (ROOT / "construct_messages").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
}
SOURCES = {name for name in PACKAGE if name.endswith((".c", ".h"))}
"""What the compiled module is made of."""
MODULE = "construct_messages/rdf/compiled/_wire.abi3.so"


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= variables
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(project: Path, target: str, place: Path, **variables: str) -> Path:
    """The wheel or sdist of a project."""
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        target,
        "--directory",
        str(place),
        cwd=project,
        **variables,
    )
    (built,) = place.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that the sdist builds, as where no wheel is to be had."""
    place = tmp_path_factory.mktemp("wheel")
    return build(unpacked(sdist, place), "wheel", place, CONSTRUCT_MESSAGES_COMPILED="1")


def unpacked(sdist: Path, place: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    return place / sdist.name.removesuffix(".tar.gz")


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    assert names_in(wheel) == PACKAGE - SOURCES | {MODULE}


def test_without_a_compiler_the_wheel_is_of_python_alone(sdist: Path, tmp_path: Path) -> None:
    project = unpacked(sdist, tmp_path)
    wheel = build(project, "wheel", tmp_path, CC="false", CONSTRUCT_MESSAGES_COMPILED="")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert names_in(wheel) == PACKAGE - SOURCES
    with pytest.raises(AssertionError, match="CompileError"):
        build(project, "wheel", tmp_path / "needed", CC="false", CONSTRUCT_MESSAGES_COMPILED="1")


def test_the_sdist_holds_what_tests_and_documentation_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert names >= PACKAGE | pages
    assert names >= {
        "LICENSE",
        "Makefile",
        "README.md",
        "mkdocs.yml",
        "pyproject.toml",
        "queries/data/companies.ttl",
    }
    assert "tests/docs/test_installed.py" in names
    assert not any(name.startswith("site/") for name in names)


def test_the_wheel_runs_outside_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own, which has the libraries of this one, and this package by its wheel only."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    python = home / "bin" / "python"
    assert run(
        python, "-c", "import construct_messages as c; print(c.__file__)", cwd=tmp_path
    ).startswith(str(packages))
    compiled = "from construct_messages.rdf import compiled; print(compiled.wire.__file__)"
    assert run(python, "-c", compiled, cwd=tmp_path) == f"{packages / MODULE}\n"

    pages = "from construct_messages.server.pages.endpoint import static_files as f; print(*sorted(f()))"
    assert {"index.html", "main.js", "page.css"} <= set(
        run(python, "-c", pages, cwd=tmp_path).split()
    )

    (tmp_path / "data.ttl").write_text("<urn:a> <urn:p> 1 . <urn:b> <urn:p> 2 .", encoding="utf-8")
    command = (python, "-m", "construct_messages")
    query = "CONSTRUCT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o } ORDER BY ?s"
    run(
        *command,
        "run",
        "--query",
        query,
        "--source",
        "data.ttl",
        "--output",
        "log.nq",
        cwd=tmp_path,
    )
    run(*command, "convert", "log.nq", "log.jelly", cwd=tmp_path)
    assert (
        run(*command, "validate", "log.jelly", cwd=tmp_path)
        == "log.jelly: ok, 2 messages, 2 quads\n"
    )
    assert "source" in run(
        *command, "serve", "--source", "data.ttl", "--check-config", cwd=tmp_path
    )
