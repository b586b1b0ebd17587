"""`logs/writing/__init__.py`: each message is in the log once, in every text format, whatever is left of an append."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from construct_messages import GrowingLog, Message, Quad, iri, read_log
from construct_messages.errors import UsageError
from construct_messages.options import JellyOptions
from construct_messages.rdf.formats import LOGS, LogType
from tests.support.logs.kinds import isomorphic
from tests.support.streams import numbered

TEXTS = [type for type in LOGS if not type.format.binary]
FIRST = {type.format: type for type in reversed(TEXTS)}.values()


def growing(path: Path, type: LogType) -> GrowingLog:
    return GrowingLog(path, type.format.extension, syntax=type.syntax.label or None)


def there(path: Path, type: LogType) -> list[Message]:
    return list(read_log(path, type.format.extension, syntax=type.syntax.label or None))


@pytest.mark.parametrize(
    "type",
    [
        pytest.param(
            type,
            marks=() if type in FIRST else pytest.mark.slow,
            id=f"{type.format.name}-{type.syntax.label}",
        )
        for type in TEXTS
    ],
)
@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    left=st.floats(0, 1),
    appends=st.booleans(),
    holds=st.booleans(),
)
def test_every_message_once(
    type: LogType,
    counts: list[int],
    left: float,
    appends: bool,
    holds: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The last of the parts was written in part, and after the restart comes again."""
    path, sent, at = tmp_path_factory.mktemp("log") / "log", list[Message](), 0
    for count in counts:
        part = [numbered(len(sent) + n) for n in range(count)]
        at = growing(path, type).size if sent else 0
        if appends:
            growing(path, type).append(part, at=at)
        else:
            with growing(path, type).opened(at) as log:
                for message in part:
                    log.write(message)
        sent += part
    whole = path.read_bytes()
    if appends:  # whole, and nobody was told
        growing(path, type).append(part, at=at)
    else:
        path.write_bytes(whole[: at + int(left * (len(whole) - at))])
        with growing(path, type).opened(at) as log:
            for message in part:
                (log.hold if holds else log.write)(message)
            log.sync()
            assert log.size == path.stat().st_size
            assert log.message_count == len(part)
    assert path.read_bytes() == whole
    assert isomorphic(there(path, type), sent)


def test_a_shorter_log(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "log.nq")
    size = log.append([numbered(1)])
    (tmp_path / "log.nq").write_bytes(b"")
    with pytest.raises(UsageError, match="is shorter than it was"), log.opened(size):
        pass
    with pytest.raises(UsageError, match="is shorter than it was"):
        log.append([numbered(2)], at=size)


def test_what_another_program_wrote_stays(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "log.nq")
    size = log.append([numbered(1)])
    with (tmp_path / "log.nq").open("ab") as file:
        file.write(b"# of another program\n")
    with pytest.raises(UsageError, match=f"by another program after byte {size}"):
        log.append([numbered(2)], at=size)
    assert (tmp_path / "log.nq").read_bytes().endswith(b"# of another program\n")


def test_nothing_is_appended_where_a_message_cannot_be_written(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "log.nt")
    size = log.append([numbered(1)])
    graph = Message([Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g"))])
    with pytest.raises(Exception, match="graph"):
        log.append([numbered(2), graph], at=size)
    assert log.size == size


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a growing log cannot be compressed"):
        GrowingLog(tmp_path / "log.nq.gz")
    with pytest.raises(UsageError, match="options"):
        GrowingLog(tmp_path / "log.nq", options=JellyOptions())
    jelly = GrowingLog(tmp_path / "log.jelly")
    with jelly.opened() as log:  # a binary log may grow, and not be continued
        log.write(numbered(1))
    with pytest.raises(UsageError, match="cannot be continued"):
        jelly.append([numbered(1)])
    with pytest.raises(UsageError, match="cannot be continued"), jelly.opened(1):
        pass
