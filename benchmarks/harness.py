"""The one harness of all benchmarks: runs processes and functions, times them in turn, checks and reports.

What is measured, over which data and against what, is the business of the benchmarks (`micro/`, `suite/`).
"""

from __future__ import annotations

import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal

import pyoxigraph as ox
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
_LOAD = os.getloadavg()  # before the benchmark makes its own
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# seconds between two samples of memory, or twenty times the CPU seconds that a sample takes, or a hundredth of the run
_SAMPLE = 0.02
_SHORT = 0.002  # seconds between two looks at the memory of the first process alone, or a fiftieth of its run
_CHUNK = 1 << 18
_ERRORS = 4000  # the last characters of standard error that are kept

Ending = Literal["ok", "failed", "timeout", "memory"]

# --- processes ---


@dataclass(frozen=True)
class Run:
    """What one process, with all that it started, took and wrote.

    Args:
        ending: "failed" for an exit status but 0; "timeout" and "memory" where it was killed at a limit.
        seconds: wall time from its start to its end.
        first_seconds: wall time until `first` was on its standard output; None where it never was.
        cpu_seconds: of all its processes, user and system.
        peak_bytes: the most that all its processes had resident together; pages they share count for each.
        code: its exit status.
        stdout: what it wrote, empty where that went to a file.
        stderr: the end of its standard error.
    """

    ending: Ending
    seconds: float
    first_seconds: float | None
    cpu_seconds: float
    peak_bytes: int
    code: int
    stdout: bytes
    stderr: str


def run(
    command: Sequence[str],
    *,
    output: Path | None = None,
    first: bytes | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    beside: Sequence[int] = (),
) -> Run:
    """Runs a command in a fresh process and measures it and everything it starts.

    Args:
        command: the program and its arguments.
        output: the file for its standard output; None keeps it in memory.
        first: the bytes that complete the first result on its standard output.
        timeout: seconds after which the process and all below it are killed.
        memory: resident bytes above which they are killed.
        env: its environment; None for that of this process.
        cwd: its working directory.
        beside: processes that were started before and work for it: what they and all below them hold, and the CPU
            seconds that they take meanwhile, count; they are not killed.
    """
    kept = bytearray()
    before = sum(used for _, _, used in tree(*beside))
    with TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=cwd,
            start_new_session=True,
        )  # fmt: skip
        watch = _Watch(process.pid, started, timeout, memory, beside)
        try:
            assert process.stdout is not None
            if output is None:
                arrived = _read(process.stdout, kept.extend, first)
            else:
                with output.open("wb") as file:
                    arrived = _read(process.stdout, file.write, first)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            meanwhile = sum(used for _, _, used in tree(*beside)) - before
        finally:
            watch.stop()
            kill_tree(process.pid)  # whatever outlived it
            process.stdout.close()  # type: ignore[union-attr]
            if process.returncode is None:
                process.returncode = -1  # waited for above, or killed: subprocess need not wait
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(max(0, errors.tell() - _ERRORS))
        stderr = errors.read().decode(errors="replace")
    return Run(
        watch.ending or ("failed" if process.returncode else "ok"),
        seconds,
        None if arrived is None else arrived - started,
        # processes that were killed or never waited for are in the samples alone
        max(usage.ru_utime + usage.ru_stime, watch.cpu_seconds) + meanwhile,
        _peak(watch.peak, usage.ru_maxrss * 1024),
        process.returncode,
        bytes(kept),
        stderr,
    )


def _peak(sampled: int, reported: int) -> int:
    """The peak of memory: what was sampled, or what the system reports of the largest process, if that is its own.

    A process is charged with what this one had resident when it started it.
    """
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return max(sampled, reported) if reported > inherited or not sampled else sampled


def completed(command: Sequence[str], *, env: Mapping[str, str] | None = None) -> Run:
    """Runs a command as `run` does.

    Raises:
        SystemExit: where it failed.
    """
    done = run(command, env=env)
    if done.code:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done


def _read(stream: IO[bytes], write: Callable[[bytes], object], first: bytes | None) -> float | None:
    """Reads to the end; when `first` had come."""
    arrived, tail = None, b""
    descriptor = stream.fileno()
    while chunk := os.read(descriptor, _CHUNK):
        if first is not None and arrived is None:
            if first in tail + chunk:
                arrived = time.perf_counter()
            tail = (tail + chunk)[-len(first) :]
        write(chunk)
    return arrived


class _Watch:
    """Samples the memory of a process and all below it, and kills them at a limit, on a thread of its own."""

    def __init__(
        self,
        root: int,
        started: float,
        timeout: float | None,
        memory: int | None,
        beside: Sequence[int],
    ) -> None:
        self.ending: Ending | None = None
        self.peak = 0
        self.cpu_seconds = 0.0
        self._root, self._memory, self._beside = root, memory, beside
        self._end = None if timeout is None else started + timeout
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        """Looks once at least, however short the run: what works beside it counts, too."""
        started = time.perf_counter()
        while True:
            began = time.thread_time()
            held, cpu, highest = 0, 0.0, 0
            for process, resident, used in tree(self._root):
                held += resident
                cpu += used
                highest = max(highest, _high_water(process))
            others = sum(resident for _, resident, _ in tree(*self._beside))
            self.peak = max(self.peak, held + others, highest + others)
            self.cpu_seconds = max(self.cpu_seconds, cpu)
            if self._end is not None and time.perf_counter() >= self._end:
                self.ending = "timeout"
            elif self._memory is not None and held + others > self._memory:
                self.ending = "memory"
            if self.ending:
                kill_tree(self._root)
                return
            ended = time.perf_counter()
            due = ended + max(_SAMPLE, 20 * (time.thread_time() - began), (ended - started) / 100)
            # one process alone is quickly looked at: often where it has just begun, as it may soon end
            while (now := time.perf_counter()) < due:
                self.peak = max(self.peak, _high_water(self._root) + others)
                if self._done.wait(min(max(_SHORT, (now - started) / 50), due - now)):
                    return
            if self._done.is_set():
                return


def tree(*roots: int) -> Iterator[tuple[int, int, float]]:
    """The processes of the sessions that `roots` lead, and all below them: pid, resident bytes, CPU seconds so far.

    The CPU seconds are with those of children that have ended and were waited for.
    """
    parents: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    found: dict[int, tuple[int, float]] = {}
    spaces: dict[
        int, tuple[str, int]
    ] = {}  # a place in memory that each program draws, and the size of all of it
    waiting = [*roots]
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        process = int(entry)
        parents[process] = int(fields[1])
        children.setdefault(parents[process], []).append(process)
        found[process] = int(fields[21]) * _PAGE, sum(map(int, fields[11:15])) / _TICKS
        spaces[process] = fields[45], int(fields[20])
        if int(fields[3]) in roots:  # its session: also processes whose parent has ended
            waiting.append(process)
    seen: set[int] = set()
    while waiting:
        process = waiting.pop()
        if process in seen or process not in found:
            continue
        seen.add(process)
        resident, used = found[process]
        parent = spaces.get(parents[process])
        if resident and parent is not None and _is_same(spaces[process], parent):
            resident = _PAGE  # it has not begun its program: what it has is its parent's; a page says that it lives
        yield process, resident, used
        waiting += children.get(process, [])


def _is_same(child: tuple[str, int], parent: tuple[str, int]) -> bool:
    # the two are not read at one moment
    return child[0] == parent[0] and abs(child[1] - parent[1]) <= parent[1] / 100


def _high_water(process: int) -> int:
    """The most bytes that one process has had resident: what a short run holds between two samples."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended since
    return 0  # a zombie has no memory


def kill_tree(root: int) -> None:
    """Kills a process, its session and all below it, until none is left."""
    # one in a session of its own is below nobody once its parent has ended, which may be before it ends itself
    known = {root}
    while alive := [process for process, resident, _ in tree(*known) if resident]:
        known.update(alive)
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.001)  # a killed process keeps its pages for a moment


# --- functions, and tables of both ---


@dataclass(frozen=True)
class Figure:
    """One line of a table: seconds are the median of the rounds, the ratio is of medians within one run."""

    what: str
    seconds: float
    ratio: float | None = None
    goal: str = ""


def alternate(
    rounds: int,
    runs: Sequence[Callable[[], object]],
    clock: Callable[[], float] = time.perf_counter,
    before_each: Callable[[], object] = lambda: None,
) -> list[float]:
    """Median seconds of each run, taken in turn so that what the machine does meanwhile meets all alike.

    Args:
        rounds: how often each is measured.
        runs: what is measured.
        clock: `time.process_time` for the CPU seconds of all threads.
        before_each: what is done before each run, unmeasured.
    """
    seconds: list[list[float]] = [[] for _ in runs]
    for run in runs:
        run()  # once unmeasured: caches, allocator
    for _ in range(rounds):
        for index, run in enumerate(runs):
            before_each()
            started = clock()
            run()
            seconds[index].append(clock() - started)
    return [statistics.median(each) for each in seconds]


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keeps all cores but one busy with other processes; threads of this process still run wherever they may."""
    cores = os.sched_getaffinity(0)
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in cores - {min(cores)}
    ]
    try:
        for other, core in zip(others, cores - {min(cores)}, strict=True):
            os.sched_setaffinity(other.pid, {core})
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextmanager
def one_core() -> Iterator[None]:
    """Leaves one core to all threads of this process."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # threads inherit it
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def check_log(chunks: Iterable[bytes], messages: int, quads: int) -> None:
    """Reads an rdfm log back with pyoxigraph and compares the counts; a benchmark that is wrong prints nothing."""
    log = b"".join(chunks)
    found = sum(line == b"# @message" for line in log.split(b"\n"))
    read = sum(1 for _ in ox.parse(log, ox.RdfFormat.N_QUADS))
    if (found, read) != (messages, quads):
        raise SystemExit(
            f"wrong log: {found} messages with {read} quads instead of {messages} with {quads}"
        )


def report(name: str, title: str, figures: Sequence[Figure]) -> None:
    """Prints the table, and writes it with the machine's description to benchmarks/results/NAME.json."""
    busy = f"load average when this began: {_LOAD[0]:.1f}, of {os.cpu_count()} cores"
    table = Table(title=title, caption=busy)
    for column in ("", "median", "ratio", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} ×"
        table.add_row(figure.what, f"{figure.seconds:.3f} s", ratio, figure.goal)
    Console(width=120).print(table)
    record(name, figures)


def record(name: str, rows: Sequence[Any]) -> None:
    """Writes rows (dataclasses) with the machine's description to benchmarks/results/NAME.json."""
    written = {
        "benchmark": name,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "load": [round(load, 1) for load in _LOAD],
        "versions": {
            package: version(package)
            for package in ("construct-messages", "pyoxigraph", "msgspec", "aiohttp")
        },
        "figures": [asdict(row) for row in rows],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(written, indent=2) + "\n")
