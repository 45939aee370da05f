"""Outages of a pipeline's brokers, without Spark; tests/spark/pipelines/test_outages.py runs a pipeline through one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.late_broker import LateBroker

from ottla.cli.pipeline import run
from ottla.cli.pipeline.run import Outages
from ottla.errors import UnreachableError
from ottla.spark.pipelines.spec import Spec, read_spec


@pytest.fixture
def late() -> Iterator[LateBroker]:
    with LateBroker() as made:
        yield made


@pytest.fixture
def spec(tmp_path: Path, late: LateBroker) -> Spec:
    assert run_cli("pipeline", "init", tmp_path / "shop", "-b", late.address).rc == 0
    return read_spec(tmp_path / "shop")


def test_outage_is_told_when_it_begins_and_ends(spec: Spec, late: LateBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    heard = threading.Semaphore(0)

    def hear(text: str) -> None:
        said.append(text)
        heard.release()

    monkeypatch.setattr(run, "LOOK_EVERY_S", 0.1)
    monkeypatch.setattr(run, "warn", hear)
    with Outages(spec, 0).told():
        assert heard.acquire(timeout=HANG_S)
        late.broker.start()
        assert heard.acquire(timeout=HANG_S)
    lost, back = said
    assert lost.startswith(f"lost the brokers at {late.address}, the flows wait for them: no broker can be reached: nothing")
    assert back.startswith(f"{late.address} answers again after ")


def test_broken_flow_waits_for_brokers_that_are_away(spec: Spec, late: LateBroker, capsys: pytest.CaptureFixture[str]) -> None:
    failure = Exception("the flow broke")
    assert not Outages(spec, 0).wait_for_end(failure)
    with pytest.raises(UnreachableError):
        Outages(spec, 0.1).wait_for_end(failure)
    with late.started_by_a_message() as messages:
        assert Outages(spec, 120).wait_for_end(failure)
    assert capsys.readouterr().err == "ottla: the flow broke; it goes on when the brokers are back\n" * 2
    assert messages[-1].startswith(f"{late.address} answers after ")
    assert not Outages(spec, 120).wait_for_end(failure)  # the broker is there: it broke of something else
