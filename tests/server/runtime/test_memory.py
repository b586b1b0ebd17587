"""The memory that evaluating processes share: of the machine, of a container, of a systemd unit."""

import os
from pathlib import Path

import pytest

from construct_messages.server.config import Config, EndpointSettings
from construct_messages.server.runtime.checks import LEAST, available_bytes, bounded

GIB = 1 << 30
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, MACHINE),
        ({"sys/fs/cgroup/memory.max": "max\n"}, MACHINE),
        ({"sys/fs/cgroup/memory.max": "1073741824\n"}, GIB),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}, GIB),
        # version 1 says that there is no limit by a large number
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, MACHINE),
        (
            {
                "proc/self/cgroup": "0::/system.slice/a.service\n",
                "sys/fs/cgroup/system.slice/a.service/memory.max": "4096",
            },
            4096,
        ),
        (
            {
                "proc/self/cgroup": "0::/system.slice/a.service\n",
                "sys/fs/cgroup/system.slice/a.service/memory.max": "max",
                "sys/fs/cgroup/system.slice/memory.max": "8192",
            },
            8192,
        ),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/other\n4:memory:/docker/x\n",
                "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "4096",
                "sys/fs/cgroup/memory/other/memory.limit_in_bytes": "1",
            },
            4096,
        ),
    ],
    ids=[
        "nothing",
        "no limit",
        "container",
        "container, version 1",
        "no limit, version 1",
        "unit",
        "slice",
        "group",
    ],
)
def test_what_limits_a_process(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_bytes(tmp_path) == expected


def test_evaluators_of_all_endpoints_share() -> None:
    """Issue 13, 24: one query took 4 GB where nothing was set."""
    files = EndpointSettings(source=("a.ttl",), evaluators=2)
    config = bounded(
        Config(
            endpoints={
                "a": files,
                "b": EndpointSettings(source=("b.ttl",), evaluators=6),
                "own": EndpointSettings(source=("c.ttl",), evaluator_bytes=1000),
                "all": EndpointSettings(source=("d.ttl",), evaluator_bytes=None),
                "url": EndpointSettings(source=("https://example.org/sparql",)),
            }
        )
    )
    share = max(LEAST, available_bytes() // 16)
    bounds = {name: endpoint.evaluator_bytes for name, endpoint in config.endpoints.items()}
    assert bounds == {"a": share, "b": share, "own": 1000, "all": None, "url": "auto"}
    assert bounded(config) == config
