"""Admission: the bound holds, turns are taken in order, and whoever leaves gives back what it had."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages.errors import SourceError
from construct_messages.server.http.endpoint import Admission


async def make_deterministic() -> None:
    """Lets every task run until it waits for something."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_turns_are_taken_in_order() -> None:
    admission = Admission(2, queue_seconds=60)
    order: list[int] = []
    leave = [asyncio.Event() for _ in range(6)]

    async def visit(number: int) -> None:
        async with admission.enter():
            order.append(number)
            await leave[number].wait()

    tasks = [asyncio.create_task(visit(number)) for number in range(6)]
    await make_deterministic()
    assert order == [0, 1]
    assert admission.waiting == 4
    for number in range(6):
        leave[number].set()
        await make_deterministic()
        assert order == list(range(min(number + 3, 6)))
    await asyncio.gather(*tasks)
    assert admission.waiting == 0


@pytest.mark.parametrize(
    ("queue_seconds", "queue_length"),
    [(0.0, 100), (60.0, 0), (0.01, 1)],
    ids=["no wait", "no queue", "too long a wait"],
)
async def test_past_the_bounds_is_503(queue_seconds: float, queue_length: int) -> None:
    admission = Admission(1, queue_seconds=queue_seconds, queue_length=queue_length)
    async with admission.enter():
        with pytest.raises(SourceError) as refused:
            async with admission.enter():
                pytest.fail("two at once")
    assert refused.value.status == 503
    assert refused.value.retry_after is not None
    assert refused.value.retry_after >= 1
    async with admission.enter():  # what was refused holds no place
        assert admission.waiting == 0


async def test_the_queue_is_bounded() -> None:
    admission = Admission(1, queue_seconds=60, queue_length=2)

    async def visit() -> None:
        async with admission.enter():
            pass

    async with admission.enter():
        waiting = [asyncio.create_task(visit()) for _ in range(2)]
        await make_deterministic()
        with pytest.raises(SourceError, match="1 requests are being answered, and 2 wait"):
            await visit()
    await asyncio.gather(*waiting)


async def test_an_error_gives_the_place_back() -> None:
    admission = Admission(1, queue_seconds=0)
    for _ in range(3):
        with pytest.raises(KeyError):
            async with admission.enter():
                raise KeyError


@given(
    st.lists(st.sampled_from(["come", "leave", "cancel the last", "cancel a holder"]), max_size=40)
)
def test_no_place_is_lost_or_doubled(steps: list[str]) -> None:
    """Whatever is cancelled when: never more than the bound are in, and in the end all places are free."""

    async def scenario() -> None:
        admission, inside, most = Admission(3, queue_seconds=60), 0, 0
        release: list[asyncio.Event] = []
        tasks: list[asyncio.Task[None]] = []

        async def visit(leave: asyncio.Event) -> None:
            nonlocal inside, most
            async with admission.enter():
                inside += 1
                most = max(most, inside)
                try:
                    await leave.wait()
                finally:
                    inside -= 1

        for step in steps:
            match step:
                case "come":
                    release.append(asyncio.Event())
                    tasks.append(asyncio.create_task(visit(release[-1])))
                case "leave" if release:
                    release[len(release) // 2].set()
                case "cancel the last" if tasks:
                    tasks[-1].cancel()
                case "cancel a holder" if tasks:
                    tasks[0].cancel()
            # not deterministic on purpose every time: cancellation may meet a wake-up under way
            await asyncio.sleep(0)
        for event in release:
            event.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= 3
        assert admission.waiting == 0
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await asyncio.wait_for(stack.enter_async_context(admission.enter()), 60)

    asyncio.run(scenario())
