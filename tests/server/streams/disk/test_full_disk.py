"""A server of streams whose disk is full: a small one of its own, in a namespace of mounts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import aiohttp
import pytest

from construct_messages import Message, read_log
from tests.support.http.command import Running
from tests.support.streams import numbered
from tests.support.waiting import eventually

LOG = "application/n-quads; messages=rdfm"
pytestmark = [pytest.mark.slow, pytest.mark.process]


class Disk:
    """A few MiB at a path that the programs of a namespace see.

    Attributes:
        through: words before a command that is to see it.
        seen: its folder, as this process sees it.
    """

    def __init__(self, holder: int, folder: Path) -> None:
        namespaces = (
            ["--mount"] if os.getuid() == 0 else ["--mount", "--user", "--preserve-credentials"]
        )
        self.through = ["nsenter", f"--target={holder}", *namespaces]
        self.seen = Path(f"/proc/{holder}/root{folder}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with _mounted(tmp_path, 4) as disk:
        yield disk


@pytest.fixture
def larger_disk(tmp_path: Path) -> Iterator[Disk]:
    """32 MiB: the log of the database, which the reserve has to hold, is a part of them."""
    with _mounted(tmp_path, 32) as disk:
        yield disk


@contextmanager
def _mounted(folder: Path, mebibytes: int) -> Iterator[Disk]:
    unshare = (
        ["unshare", "--mount"]
        if os.getuid() == 0
        else ["unshare", "--mount", "--user", "--map-root-user"]
    )
    script = f'mount -t tmpfs -o size={mebibytes}m tmpfs "$0" && echo mounted && exec cat'
    try:
        holder = subprocess.Popen(
            [*unshare, "sh", "-c", script, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare(1)")
    with holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        assert holder.stdin is not None
        if holder.stdout.readline() != "mounted\n":
            # containers may be kept from it, whoever they run as
            pytest.skip(f"no disk can be mounted here: {holder.stderr.read().strip()}")
        try:
            yield Disk(holder.pid, folder)
        finally:
            holder.stdin.close()  # the end of the namespace, and of the disk


@pytest.mark.parametrize("size", [1, 60_000])
async def test_a_full_disk_loses_nothing(disk: Disk, tmp_path: Path, size: int) -> None:
    """507 until there is room; what was acknowledged is there before and after, also through a kill."""
    filler = disk.seen / "filler"
    filler.write_bytes(b"x" * (1 << 20))

    def start() -> Running:
        return Running(
            Path("/tmp"), "--streams", str(tmp_path / "streams.db"), through=disk.through
        )

    acknowledged: list[int] = []
    number = 0

    async def publish(session: aiohttp.ClientSession, url: str) -> int:
        nonlocal number
        number += 1
        headers = {"Content-Type": "application/n-quads"}
        body = numbered(number, size).lines
        async with session.post(f"{url}/streams/a/input", data=body, headers=headers) as response:
            answer = await response.json(content_type=None)
        if response.status == 201:
            acknowledged.append(number)
        else:
            assert "the disk is full" in answer["detail"], answer
            assert "free space" in answer["hint"]
        return response.status

    async def check(session: aiohttp.ClientSession, url: str) -> None:
        async with session.get(f"{url}/streams/a/output", headers={"Accept": LOG}) as response:
            assert response.status == 200
            read = list(read_log(await response.read(), LOG))
        assert read == [numbered(number, size) for number in acknowledged]
        async with session.get(f"{url}/health/ready") as response:
            assert response.status == 200, "it can be read"

    server = start()
    try:
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{server.url}/streams/a") as response:
                assert response.status == 201
            while await publish(session, server.url) == 201:
                pass
            assert acknowledged
            assert [await publish(session, server.url) for _ in range(3)] == [507] * 3
            await check(session, server.url)
            async with session.put(f"{server.url}/streams/b") as response:
                assert response.status in (201, 507)
            server.kill()
            server = start()
            await check(session, server.url)
            assert await publish(session, server.url) in (201, 507), "a kill may make room"
            filler.unlink()
            assert [await publish(session, server.url) for _ in range(5)] == [201] * 5
            await check(session, server.url)
    finally:
        server.kill()


@pytest.mark.parametrize("relief", ["a smaller retention", "deleting a stream"])
async def test_a_full_disk_is_relieved_through_the_server(
    larger_disk: Disk, tmp_path: Path, relief: str
) -> None:
    """The reserve is let go for it; what is kept is as it was, and there is room to publish."""
    settings = {"CONSTRUCT_MESSAGES_SERVER_STREAMS__RESERVE_BYTES": str(8 << 20)}
    server = Running(
        Path("/tmp"),
        "--streams",
        str(tmp_path / "streams.db"),
        through=larger_disk.through,
        **settings,
    )
    log = {"Accept": LOG}
    try:
        async with aiohttp.ClientSession() as session:
            for name in ("a", "b"):
                async with session.put(f"{server.url}/streams/{name}") as response:
                    assert response.status == 201

            async def publish(name: str, number: int) -> int:
                headers = {"Content-Type": "application/n-quads"}
                body = numbered(number, 300_000).lines
                url = f"{server.url}/streams/{name}/input"
                async with session.post(url, data=body, headers=headers) as response:
                    return response.status

            number = 0
            while await publish("ab"[number % 2], number) == 201:
                number += 1
            # the last bytes of the disk, too
            filler = larger_disk.seen / "filler"
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(b"x")
            assert await publish("a", number) == 507
            if relief == "deleting a stream":
                async with session.delete(f"{server.url}/streams/b") as response:
                    assert response.status == 204, await response.text()
            else:
                body = {"retainedElements": 3}
                async with session.put(f"{server.url}/streams/b", json=body) as response:
                    assert response.status == 204, await response.text()
            for each in range(number + 2, number + 20, 2):
                assert await publish("a", each) == 201
            async with session.get(f"{server.url}/streams/a/output", headers=log) as response:
                read = list(read_log(await response.read(), LOG))
            sent = [*range(0, number, 2), *range(number + 2, number + 20, 2)]
            assert read == [numbered(each, 300_000) for each in sent]
            if relief == "a smaller retention":
                async with session.get(f"{server.url}/streams/b/output", headers=log) as response:
                    read = list(read_log(await response.read(), LOG))
                assert read == [numbered(each, 300_000) for each in range(1, number, 2)][-3:]
    finally:
        server.kill()


async def test_publishers_that_go_on_do_not_spend_the_reserve(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Half of the rounds kill the server on its full disk, too."""
    for number in range(pytestconfig.getoption("rounds") * 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with _mounted(folder, 32) as disk:
            await _recover(disk, folder, Random(number), killed=number % 2 == 1)


async def _recover(disk: Disk, folder: Path, random: Random, *, killed: bool) -> None:
    """Fills a disk by nine publishers that never stop, and makes room twice."""
    settings = {"CONSTRUCT_MESSAGES_SERVER_STREAMS__RESERVE_BYTES": str(8 << 20)}

    def start() -> Running:
        arguments = ("--streams", str(folder / "streams.db"))
        return Running(Path("/tmp"), *arguments, through=disk.through, **settings)

    server = start()
    sent: dict[int, Message] = {}
    acknowledged: set[int] = set()
    refused = 0

    async def publish(session: aiohttp.ClientSession, name: str) -> None:
        nonlocal refused
        while True:
            number = len(sent)
            sent[number] = numbered(number, random.choice([1, 3000, 60_000, 300_000]))
            url = f"{server.url}/streams/{name}/input"
            headers = {"Content-Type": "application/n-quads"}
            try:
                async with session.post(url, data=sent[number].lines, headers=headers) as response:
                    assert response.status in (201, 404, 507), await response.text()
                    refused += response.status == 507
                    await asyncio.sleep(0.005 * (response.status == 507))
                    if response.status == 201 and name == "a":
                        acknowledged.add(number)
            except aiohttp.ClientError:
                await asyncio.sleep(0.01)  # until the server runs again

    try:
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as publishers:
            for name in "abc":
                async with session.put(f"{server.url}/streams/{name}") as response:
                    assert response.status == 201
            tasks = [publishers.create_task(publish(session, name)) for name in "abcabcabc"]
            for name in "bc":
                before = refused
                await eventually(lambda before=before: refused > before + 100)
                await asyncio.sleep(random.uniform(0, 3))  # periodic work comes each second
                if killed:
                    server.kill()
                    server = start()
                    before = refused
                    await eventually(lambda before=before: refused > before + 10)
                url = f"{server.url}/streams/{name}"
                relief = (
                    session.delete(url)
                    if random.random() < 0.5
                    else session.put(url, json={"retainedElements": 3})
                )
                async with relief as response:
                    assert response.status == 204, await response.text()
                kept = len(acknowledged)
                await eventually(lambda kept=kept: len(acknowledged) > kept + 5, 60)
            for task in tasks:
                task.cancel()
        log = {"Accept": LOG}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{server.url}/streams/a/output", headers=log) as response,
        ):
            read = set(read_log(await response.read(), LOG))
        assert {sent[number] for number in acknowledged} <= read
        assert len(read) <= len(sent)
    finally:
        server.kill()
