"""Commands that need a broker, and folders of this test's own for what is remembered."""

from pathlib import Path

import pytest
from tests.unit.cli.real_broker import broker, ottla, topic, topic_partitions

__all__ = ["broker", "ottla", "topic", "topic_partitions"]


@pytest.fixture(autouse=True)
def homes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
