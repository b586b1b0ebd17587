"""A broker of MQTT 5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines.brokers import Mosquitto
from tests.support.engines.servers import Missing
from tests.support.places import absent


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    """Mosquitto; skips the test where it is not installed."""
    try:
        with Mosquitto(tmp_path / "mosquitto") as broker:
            yield broker
    except Missing as missing:
        absent(str(missing))
