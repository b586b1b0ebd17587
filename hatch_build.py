"""Builds the compiled module beside its sources, and takes it into the wheel; `python hatch_build.py` does the former.

Without a compiler the wheel is one of Python alone, which does the same, more slowly:
docs/decisions/090-a-compiled-module.md.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FOLDER: Final = "construct_messages/rdf/compiled"
_NEEDED: Final = "CONSTRUCT_MESSAGES_COMPILED"
"""The environment variable that makes it an error, if it is set to anything, that the module cannot be built."""


class CompiledModule(BuildHookInterface):  # type: ignore[type-arg] # of any configuration
    """Builds the module for a wheel, also for one of an installation that can be edited."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Adds the module and the tag of its platform to what hatchling builds."""
        if sys.version_info < (3, 11):  # noqa: UP036
            return  # pip builds first, and then says in one line that another Python is required
        try:
            build(Path(self.root))
        except Exception as error:
            if os.environ.get(_NEEDED):
                raise
            self.app.display_warning(f"{_FOLDER} was not compiled, Python does its work: {error}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["pure_python"] = False
        build_data["artifacts"].append(f"{_FOLDER}/_wire.*")


def build(root: Path) -> None:
    """Compiles the sources in this checkout."""
    from contextlib import chdir  # of Python 3.11

    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    # paths of sources are relative; a process that imports the module meanwhile finds the old one or the new one
    folder = Path(_FOLDER)
    with chdir(root), TemporaryDirectory(dir=folder) as built:
        extension = Extension(
            f"{_FOLDER.replace('/', '.')}._wire",
            sorted(map(str, folder.glob("*.c"))),
            depends=[f"{_FOLDER}/wire.h"],
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra"],
            py_limited_api=True,
        )
        command = build_ext(Distribution({"ext_modules": [extension]}))
        command.build_lib = command.build_temp = built
        command.force = True
        command.ensure_finalized()
        command.run()
        (module,) = map(Path, command.get_outputs())
        for old in folder.glob("_wire.*"):
            if old.name != module.name:
                old.unlink()
        module.replace(folder / module.name)


if __name__ == "__main__":
    build(Path(__file__).parent)
