"""The commands of the package as processes that a test talks to while they run."""

from __future__ import annotations

import asyncio
import os
import sys

from tests.support.places import ROOT


async def start(*arguments: str, standard_input: int | None = None, **variables: str) -> asyncio.subprocess.Process:
    """A command that runs."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "construct_messages", *arguments),
        stdin=standard_input or asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
    )


async def run(*arguments: str, **variables: str) -> tuple[int, bytes, str]:
    """The status and both outputs of a command."""
    process = await start(*arguments, **variables)
    output, errors = await process.communicate()
    return process.returncode or 0, output, errors.decode()
