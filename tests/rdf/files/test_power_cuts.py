"""Power cuts: nothing that was acknowledged is missing afterwards, and nothing half looks whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import msgspec
import pytest

from construct_messages.errors import ConstructMessagesError
from tests.support.power.disk import Recorded, record
from tests.support.power.subjects import SUBJECTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_was_acknowledged_survives(
    tmp_path: Path, pytestconfig: pytest.Config, subject: str
) -> None:
    recorded = record(["tests.support.power.subjects", subject], tmp_path)
    for number in range(pytestconfig.getoption("cuts")):
        _cut(recorded, subject, number)
    # the check can see: on a disk that heeds no sync, there are losses
    lost = 0
    for number in range(60):
        try:
            _cut(recorded, subject, number, syncs=False)
        except (AssertionError, ConstructMessagesError, msgspec.DecodeError):
            lost += 1
    assert lost


def _cut(recorded: Recorded, subject: str, number: int, *, syncs: bool = True) -> None:
    acknowledged = recorded.cut(Random(number), syncs=syncs)
    SUBJECTS[subject][1](recorded.folder, acknowledged)
