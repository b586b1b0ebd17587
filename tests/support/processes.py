"""Processes: the commands of the package while a test talks to them, and what others are called."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

import psutil

from tests.support.places import ROOT
from tests.support.waiting import SECONDS


async def start(
    *arguments: str, standard_input: int | None = None, **variables: str
) -> asyncio.subprocess.Process:
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


def command_line(process: psutil.Process) -> list[str]:
    """The command line of a process; of one that has ended, nothing."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def below(pid: int) -> list[psutil.Process]:
    """The processes that a process started, and that these did."""
    return psutil.Process(pid).children(recursive=True)


def end_group(process: subprocess.Popen[Any]) -> None:
    """Kills a process and those of its group; Python workers have groups of their own, but end with their Java."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(SECONDS)
