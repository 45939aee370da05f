"""`ottla pipeline run`, as far as it needs no Spark; tests/spark/pipelines/test_commands.py has the rest."""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cli import run_cli
from tests.unit.cli.late_broker import LateBroker

from ottla.cli.pipeline import run
from ottla.cli.pipeline.run import Outages, line_of, make_reporter, print_summary
from ottla.errors import UnreachableError
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.run import FlowProgress, Totals
from ottla.spark.pipelines.spec import Spec, read_spec
from ottla.testing import Broker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert run_cli("pipeline", "init", tmp_path / "shop").rc == 0
    return tmp_path / "shop"


def test_wrong_schedule_is_refused(folder: Path) -> None:
    said = run_cli("pipeline", "run", folder, "--schedule", "daily")
    assert (said.rc, said.err) == (
        1,
        "ottla: schedule is 'daily': it must be once, continuous, or every with a time, such as every 30s\n",
    )


def test_all_missing_topics_are_named(folder: Path) -> None:
    with Broker() as broker:
        said = run_cli("pipeline", "run", folder, "-b", broker.bootstrap_servers)
    assert said.rc == 1
    assert [line.split(" at ")[0] for line in said.err.splitlines()] == [
        "ottla: there is no topic orders",
        "ottla: there is no topic large-orders",
    ]


def test_broker_that_starts_late_is_waited_for(folder: Path) -> None:
    with LateBroker("large-orders") as late, late.started_by_a_message() as messages:
        said = run_cli("pipeline", "run", folder, "-b", late.address)
    assert messages[0].startswith(f"waiting for a broker at {late.address}")
    assert " of 5 min: " in messages[0]
    assert messages[-1].startswith(f"{late.address} answers after ")
    assert said.err.startswith(f"ottla: there is no topic orders at {late.address}: create it with ")


def test_reset_without_a_terminal_needs_yes(folder: Path) -> None:
    storage.make_folder(storage.checkpoint(read_spec(folder), "keep_large_orders"))
    with Broker() as broker:
        broker.create_topic("orders")
        broker.create_topic("large-orders")
        said = run_cli("pipeline", "run", folder, "--reset", "-b", broker.bootstrap_servers)
    assert said.rc == 2
    assert "--reset deletes the offsets, state and tables of shop: add --yes to say that you mean it" in said.err
    assert Path(storage.checkpoint(read_spec(folder), "keep_large_orders")).exists()


def test_second_run_at_the_same_time_is_refused(folder: Path) -> None:
    with Broker() as broker, storage.locked(read_spec(folder)):
        broker.create_topic("orders")
        broker.create_topic("large-orders")
        said = run_cli("pipeline", "run", folder, "-b", broker.bootstrap_servers)
    assert said.rc == 1
    assert said.err.startswith("ottla: the pipeline shop is already being run by process ")


ONE = FlowProgress("copy", 3, 500, 2000.0, 250, 1200)
TWO = FlowProgress("view\x1b[2J", 0, 1, 4.0, 250, None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_line_has_rate_time_and_lag_of_each_flow() -> None:
    assert line_of([ONE, TWO]) == (
        "copy: 2,000 rows/s, batch 3 in 0.2 s, lag 1,200  │  view\\x1b[2J: 4 rows/s, batch 0 in 0.2 s"
    )


def test_terminal_is_redrawn_in_place() -> None:
    screen = Terminal()
    with mock.patch.dict("os.environ", {"COLUMNS": "30"}), contextlib.redirect_stderr(screen), make_reporter(False) as report:
        report(ONE)
        report(ONE)
    assert screen.getvalue() == "\r\x1b[Kcopy: 2,000 rows/s, batch 3 …" * 2 + "\n"


def test_json_has_a_line_for_each_batch(capsys: pytest.CaptureFixture[str]) -> None:
    with make_reporter(True) as report:
        report(ONE)
    expected = {"flow": "copy", "batch": 3, "rows": 500, "rows_per_s": 2000.0, "batch_ms": 250, "lag": 1200}
    assert json.loads(capsys.readouterr().out) == expected


def test_pipe_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with make_reporter(False) as report:
        report(ONE)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(run, "LOG_INTERVAL_S", 0.0)
        report(ONE)
    assert capsys.readouterr().err == "copy: 2,000 rows/s, batch 3 in 0.2 s, lag 1,200\n"


def totals() -> Totals:
    made = Totals(seconds=2.0)
    made.add(FlowProgress("copy", 0, 5, 1.0, 100, 7))
    made.add(FlowProgress("copy", 1, 5, 1.0, 100, 0))
    made.add(FlowProgress("view", 0, 1, 1.0, 100, None))
    return made


def test_lines_add_up_the_batches(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(totals(), False)
    assert capsys.readouterr().out == "copy\t10 rows\t2 batches\tlag 0\nview\t1 rows\t1 batches\tlag -\n"


def test_json_has_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(totals(), True)
    flows = [
        {"flow": "copy", "rows": 10, "batches": 2, "lag": 0, "checks": []},
        {"flow": "view", "rows": 1, "batches": 1, "lag": None, "checks": []},
    ]
    assert json.loads(capsys.readouterr().out) == {"flows": flows, "seconds": 2.0}


def test_run_without_records_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(Totals(seconds=1.25), False)
    assert capsys.readouterr().out == "No new records; looked for 1.2 s.\n"


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
