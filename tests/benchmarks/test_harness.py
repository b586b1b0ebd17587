"""`benchmarks/harness.py`: what a process and those below it take, and that none is left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness import alternate, check_log, completed, kill_tree, run, tree

pytestmark = pytest.mark.slow


def test_time_counts_what_processes_start() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    for program in (
        burn,
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])",
    ):
        done = run([sys.executable, "-c", program])
        assert done.ending == "ok"
        assert done.cpu_seconds >= 0.3
        assert done.seconds >= done.cpu_seconds / 2
        assert done.peak_bytes > 1_000_000


def test_memory_counts_what_processes_start() -> None:
    hold = "x = b'x' * 200_000_000; print(1, flush=True); input()"
    program = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {hold!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(1, flush=True); input(); child.communicate(b'\\n')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held = sum(resident for _, resident, _ in tree(process.pid))
        process.communicate(b"\n")
    # once, and not once for each of the two; the system's count may lag behind
    assert 150_000_000 < held < 390_000_000


def test_memory_does_not_count_a_process_that_has_not_begun_its_program() -> None:
    program = "import os, time\nx = b'x' * 200_000_000\nif os.fork(): print(1, flush=True); input()\ntime.sleep(300)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held = sum(resident for _, resident, _ in tree(process.pid))
        kill_tree(process.pid)
    assert 200_000_000 < held < 390_000_000


def test_what_works_beside_counts_meanwhile_and_lives_on() -> None:
    program = (
        "import sys, time\nx = b'x' * 200_000_000\n"
        "while time.process_time() < 1: pass\n"
        "print(1, flush=True)\n"
        "for _ in sys.stdin:\n    end = time.process_time() + 0.3\n    while time.process_time() < end: pass\n"
        "    print(1, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        ends = [f"/proc/{process.pid}/fd/{number}" for number in (0, 1)]
        ask = "import sys\nopen(sys.argv[1], 'w').write('\\n')\nopen(sys.argv[2]).readline()"
        done = run([sys.executable, "-I", "-S", "-c", ask, *ends], beside=[process.pid])
        assert done.ending == "ok"
        # within a tick of the system's clock for each of the figures that are added
        assert 0.25 <= done.cpu_seconds < 1, "what it took before does not count"
        assert done.peak_bytes > 150_000_000
        assert _alive(process.pid)
        process.stdin.close()


def test_the_first_result_is_seen_where_chunks_cut_it() -> None:
    program = (
        "import os, sys\n"
        "os.write(1, b'<s> <p> <o> .\\n# gr')\nsys.stdin.read()\nos.write(1, b'oup\\n')\nos.write(1, b'x' * 1000000)"
    )
    done = run([sys.executable, "-c", program], first=b"# group\n")
    assert done.first_seconds is not None
    assert done.first_seconds <= done.seconds
    assert len(done.stdout) == 1_000_022
    assert run([sys.executable, "-c", program], first=b"# message").first_seconds is None


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", "print('x' * 500000)"], output=tmp_path / "out")
    assert done.stdout == b""
    assert (tmp_path / "out").stat().st_size == 500_001


def _alive(process: int) -> bool:
    return any(resident for _, resident, _ in tree(process))


def test_a_limit_of_memory_ends_the_process_and_all_below_it(tmp_path: Path) -> None:
    # the limit is reached once both hold theirs: one that its parent leaves, and one that leaves the session
    hold = (
        "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); x = b'x' * 100_000_000; time.sleep(600)"
    )
    program = f"""
import os, sys, time
if not os.fork():
    if not os.fork():
        {hold}
    os._exit(0)
if not os.fork():
    os.setsid()
    {hold}
time.sleep(600)
"""
    done = run([sys.executable, "-c", program, str(tmp_path / "pids")], memory=180_000_000)
    assert done.ending == "memory"
    assert done.code < 0
    started = list(map(int, (tmp_path / "pids").read_text().split()))
    assert len(started) == 2
    assert not any(map(_alive, started))


def test_one_that_ends_late_in_a_session_of_its_own_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By then its parent has ended, and it is below nobody."""
    program = "import os, time\nif not os.fork():\n  os.setsid(); print(os.getpid(), flush=True)\ntime.sleep(600)"
    kill = os.kill
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        late = [child := int(process.stdout.readline())]

        def kill_late(pid: int, number: int) -> None:
            if pid in late:
                process.wait()
                late.remove(pid)
            else:
                kill(pid, number)

        monkeypatch.setattr(os, "kill", kill_late)
        kill_tree(process.pid)
        assert not _alive(child)


def test_a_limit_of_time_ends_the_process() -> None:
    done = run([sys.executable, "-c", "import time; time.sleep(600)"], timeout=0.5)
    assert done.ending == "timeout"
    assert 0.5 <= done.seconds < 300


def test_what_outlives_the_process_is_killed() -> None:
    program = "import subprocess, sys; print(subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL).pid)"
    done = run([sys.executable, "-c", program])
    assert done.ending == "ok"
    assert not _alive(int(done.stdout))


def test_a_failure_is_told_with_its_words() -> None:
    program = "import sys; sys.exit('no such thing')"
    done = run([sys.executable, "-c", program])
    assert (done.ending, done.code, done.stderr) == ("failed", 1, "no such thing\n")
    with pytest.raises(SystemExit, match="no such thing"):
        completed([sys.executable, "-c", program])


@pytest.mark.parametrize(("messages", "quads"), [(2, 1), (1, 2), (0, 1)])
def test_a_wrong_log_stops_a_benchmark(messages: int, quads: int) -> None:
    log = [b"# @message\n", b"<urn:s> <urn:p> <urn:o> .\n"]
    check_log(log, 1, 1)
    with pytest.raises(SystemExit, match="wrong log"):
        check_log(log, messages, quads)


def test_runs_are_taken_in_turn() -> None:
    taken: list[str] = []
    assert len(alternate(2, [lambda: taken.append("a"), lambda: taken.append("b")])) == 2
    assert taken == ["a", "b"] * 3
