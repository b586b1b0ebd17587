"""The memory that an evaluating process may use by default: a share of the available memory.

That is the machine's memory, or less in a container or a systemd unit: the smallest `memory.max` of the control groups
(https://docs.kernel.org/admin-guide/cgroup-v2.html, "Memory Interface Files"), or the limit of version 1. Sets none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from construct_messages.server.config import Config

LEAST: Final = 512 << 20
"""Bytes that a process gets at least: an evaluation over a few million quads needs them."""

_SHARE: Final = 2
"""One part in this many goes to evaluators; the rest is for the server, for files in the page cache and for others."""


def available_bytes(root: Path = Path("/")) -> int:
    """The memory that this process may use, in bytes.

    Args:
        root: where `proc` and `sys` are mounted.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _limit_files(root):
        try:
            text = file.read_text().strip()
        except OSError:  # no such control group, or none that may be read
            continue
        if text.isdecimal():  # else "max"
            limits.append(int(text))
    return min(limits)


def _limit_files(root: Path) -> list[Path]:
    groups = root / "sys/fs/cgroup"
    # in a container the group itself is mounted there
    files = [groups / "memory.max", groups / "memory/memory.limit_in_bytes"]
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return files
    for line in lines:
        _, controllers, group = line.split(":", 2)
        path = group.lstrip("/")
        if controllers == "":
            # a limit of any group above counts, too
            files += [groups / part / "memory.max" for part in (Path(path), *Path(path).parents)]
        elif "memory" in controllers.split(","):
            files.append(groups / "memory" / path / "memory.limit_in_bytes")
    return files


def evaluator_bytes(evaluators: int, available: int) -> int:
    """The bound of each of several evaluating processes, in bytes.

    >>> evaluator_bytes(8, 24 << 30) >> 20, evaluator_bytes(8, 2 << 30) >> 20
    (1536, 512)
    """
    return max(LEAST, available // _SHARE // evaluators)


def bounded(config: Config) -> Config:
    """The settings with a number for each `evaluator_bytes` that is `"auto"`: the evaluators of all endpoints share.

    >>> from construct_messages.server.config import EndpointSettings
    >>> bounded(Config(endpoints={"": EndpointSettings(source=("a.ttl",))})).endpoints[""].evaluator_bytes >= LEAST
    True
    """
    open_ended = [
        e for e in config.endpoints.values() if not e.is_remote and e.evaluator_bytes == "auto"
    ]
    if not open_ended:
        return config
    share = evaluator_bytes(sum(e.evaluators for e in open_ended), available_bytes())
    endpoints = {
        name: msgspec.structs.replace(endpoint, evaluator_bytes=share)
        if endpoint in open_ended
        else endpoint
        for name, endpoint in config.endpoints.items()
    }
    return msgspec.structs.replace(config, endpoints=endpoints)
