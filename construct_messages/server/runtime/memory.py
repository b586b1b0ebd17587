"""The memory that an evaluating process may use by default: a share of the available memory.

That is the machine's memory, or less in a container or a systemd unit: the smallest `memory.max` of the control groups
(https://docs.kernel.org/admin-guide/cgroup-v2.html, "Memory Interface Files"), or the limit of version 1. Sets no
limit.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from construct_messages.server.config import Config

LEAST: Final = 512 << 20
"""The minimal number of bytes for a process: an evaluation over a few million quads needs them."""

_SHARE: Final = 2
"""The divisor for the share of all evaluators; the rest is for the server, the page cache and other programs."""


def available_bytes(root: Path = Path("/")) -> int:
    """Returns the memory that this process may use, in bytes.

    Args:
        root: the directory in which `proc` and `sys` are mounted.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _limit_files(root):
        try:
            text = file.read_text().strip()
        except OSError:  # the control group does not exist, or cannot be read
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
            # the limits of all parent groups apply as well
            files += [groups / part / "memory.max" for part in (Path(path), *Path(path).parents)]
        elif "memory" in controllers.split(","):
            files.append(groups / "memory" / path / "memory.limit_in_bytes")
    return files


def evaluator_bytes(evaluators: int, available: int) -> int:
    """Returns the limit of each of several evaluating processes, in bytes.

    >>> evaluator_bytes(8, 24 << 30) >> 20, evaluator_bytes(8, 2 << 30) >> 20
    (1536, 512)
    """
    return max(LEAST, available // _SHARE // evaluators)


def bounded(config: Config) -> Config:
    """Returns the settings with a number for each `evaluator_bytes` that is `"auto"`: all evaluators share the memory.

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
