"""`benchmarks/`: they run, on little data, and a wrong log stops them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.micro import (
    continuous,
    data,
    doubles,
    embedded,
    readers,
    shapes,
    start,
    windows_soak,
)
from construct_messages import construct_messages

pytestmark = pytest.mark.slow


def test_the_data_are_the_same_for_a_seed() -> None:
    # blank nodes have labels of their own
    first, again, other = (list(map(str, data.generate(60, seed))) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert (
        sum("Company" in line or "Soci" in line or "Gesell" in line for line in first) == 60 + 2 + 1
    )


@pytest.mark.parametrize(
    "query", [data.SPECIFICATION, data.HOSTILE], ids=["specification", "hostile"]
)
def test_the_embedded_benchmark_runs(query: str) -> None:
    figures = embedded._measure("small", query, data.store(60), rounds=1)
    assert [figure.goal for figure in figures if figure.goal][:2] == ["≤ 1.25", "≤ 1.7"]
    assert all(figure.seconds > 0 for figure in figures)


@pytest.mark.parametrize("group", doubles.GROUPS)
def test_both_ways_of_a_job_give_the_same(group: str) -> None:
    figures = doubles.measure([group], 40, rounds=1)
    assert figures
    assert all(figure.seconds > 0 for figure in figures)


@pytest.mark.engine
def test_the_benchmark_of_short_runs_runs(tmp_path: Path) -> None:
    figures = start.measure(tmp_path, rounds=1)
    assert [figure.goal for figure in figures if figure.goal] == ["≤ 1.2", "≤ 1", "≤ 1"]
    assert all(figure.seconds > 0 for figure in figures)


@pytest.mark.parametrize("extension", shapes.PEERS)
def test_all_read_the_same_in_logs_as_others_write_them(extension: str, tmp_path: Path) -> None:
    peer = "pyjelly" if extension == "jelly" else "pyoxigraph"
    chosen = [shape for shape in shapes.SHAPES if shape in shapes.shapes_of(extension)]
    for shape in chosen:
        log = tmp_path / f"{shape}.{extension}"
        log.write_bytes(shapes.log(shape, extension, 2, 3))
        ours = readers.DUMPS["ours"](log, extension)
        assert len(ours) == (1 if shape == "document" else 3)
        if shape != "named":  # whose context pyoxigraph would have to fetch
            theirs = readers.DUMPS[peer](log, extension)
            shapes.compare(shape, {"ours": ours, peer: theirs})
    assert len(chosen) >= 5


@pytest.mark.parametrize("what", continuous.QUERIES)
def test_the_benchmark_of_windows_runs(what: str) -> None:
    construct, _, pattern = continuous.QUERIES[what]
    found = continuous.run(
        continuous.continuous_query(construct, pattern, "RSTREAM"), continuous.elements(1200)
    )
    assert found.messages == 1200
    assert 0 < len(found.firings) <= 11
    assert found.given >= len(found.firings)


def test_the_soak_of_windows_runs() -> None:
    lines = list(windows_soak.in_process(4000, 2000, 100))
    # of 1,000 messages, 49 have a value above 950; each is given once, the last ones when their second is over
    assert [(line.messages, line.given) for line in lines] == [(2000, 93), (4000, 98)]
    assert all(line.memory > 0 and line.p99 is not None for line in lines)


async def test_the_soak_of_a_registered_query_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await windows_soak.at_server(4000, 2000, 100, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["2,000", "4,000"]
    assert all(line.count(" MB") == 2 for line in lines)


def test_the_hostile_query_is_hostile() -> None:
    messages = list(construct_messages(data.HOSTILE, data.store(100), label_prefix="x"))
    sizes = {len(message) for message in messages}
    assert len(sizes) > 2, "triples are dropped, and equal ones counted once"
    assert any("_:x_d" in str(quad) for message in messages for quad in message)
