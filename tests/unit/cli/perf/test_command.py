"""`ottla perf`: its actions, and Kafka's names of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.servers.kafka_server import free_ports
from tests.support.servers.ottla_cli import run_cli

from ottla.cli.perf import command
from ottla.cli.perf.command import PAUSE_S_MIN, REDRAW_S, Pace, Progress, finite_metrics, percentile, progress_line, ratio
from ottla.testing import Broker


def test_help_names_the_actions() -> None:
    said = run_cli("perf", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("produce", "consume", "latency", "ottla producer-perf-test"))


@pytest.mark.parametrize(
    ("tool", "action"), [("producer-perf-test", "produce"), ("consumer-perf-test", "consume"), ("e2e-latency", "latency")]
)
def test_kafkas_names_run_the_actions(tool: str, action: str) -> None:
    assert f"Usage: ottla {tool} [OPTIONS] [TOPIC]" in run_cli(tool, "--help").out
    assert run_cli(tool, "--help").out.splitlines()[2:] == run_cli("perf", action, "--help").out.splitlines()[2:]


def test_mistyped_tool_gets_a_suggestion() -> None:
    assert "did you mean producer-perf-test?" in run_cli("producer-perf-tst").err


@pytest.mark.parametrize("action", ["produce", "consume", "latency"])
def test_action_without_a_topic_says_how_to_name_one(action: str) -> None:
    said = run_cli("perf", action)
    assert (said.rc, said.out) == (2, "")
    assert f"name the topic, for example: ottla perf {action} load" in said.err


@given(st.lists(st.integers(0, 50), min_size=1), st.sampled_from([0.5, 0.95, 0.99, 0.999]))
def test_percentile_is_the_element_that_kafkas_tool_picks(values: list[int], share: float) -> None:
    histogram = {value: values.count(value) for value in values}
    assert percentile(histogram, share) == sorted(values)[int(share * len(values))]


def test_percentile_of_nothing_is_0() -> None:
    assert percentile({}, 0.5) == 0


def test_topic_that_is_named_twice_is_refused() -> None:
    said = run_cli("perf", "produce", "one", "--topic", "two")
    assert said.rc == 2
    assert "the topic is named twice, one and two" in said.err


def test_negative_rate_has_no_limit() -> None:
    assert Pace(-1, 0.0).due(10**9, 0.0) is None


def test_records_become_due_one_after_the_other() -> None:
    pace = Pace(5, 100.0)
    assert [pace.due(0, 100.0), pace.due(1, 100.0), pace.due(1, 100.21), pace.due(2, 101.01)] == [1, 0, 1, 4]
    assert pace.pause_s(1, 100.05) == 100.2 - 100.05
    assert pace.pause_s(1, 100.5) == PAUSE_S_MIN


@given(st.floats(0.5, 1e6), st.floats(0, 100), st.integers(0, 1000))
def test_after_the_pause_a_record_is_due(rate: float, start_s: float, sent: int) -> None:
    pace = Pace(rate, start_s)
    now_s = start_s
    now_s += pace.pause_s(sent, now_s)
    due = pace.due(sent, now_s + 1e-6)
    assert due is not None
    assert due >= 1


@pytest.mark.parametrize(("done", "share"), [(0, "0%"), (500, "50%"), (1000, "100%"), (1500, "100%")])
def test_progress_has_percent_and_rates(done: int, share: str) -> None:
    line = progress_line(done, 1000, 1024 * 1024, 2.0)
    assert f"{share}  {done:,} of 1,000  {done / 2:,.0f} records/s  0.5 MB/s" in line


def test_progress_is_a_line_for_each_interval_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(10, True, 0.0, interval_ms=1000)
    for now_s in (0.9, 1.1, 1.9, 2.2):
        progress.show(5, 100, now_s)
    progress.clear()
    assert capsys.readouterr().err.count("5 of 10") == 2


def test_json_has_null_for_what_is_no_number() -> None:
    assert finite_metrics({"producer-metrics": {"byte-rate": ratio(1, 0), "count": 1.5}}) == {
        "producer-metrics": {"byte-rate": None, "count": 1.5}
    }


def test_bar_is_redrawn_now_and_then_and_removed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = Progress(10, True, 0.0)
    for now_s in (REDRAW_S, REDRAW_S * 1.5, REDRAW_S * 2):
        bar.show(5, 100, now_s)
    bar.clear()
    assert capsys.readouterr().err.count("5 of 10") == 2


@pytest.mark.parametrize("action", ["produce", "consume", "latency"])
def test_cluster_that_is_not_there_is_an_error_with_advice(action: str) -> None:
    (port,) = free_ports(1)
    said = run_cli("perf", action, "x", "-b", f"localhost:{port}")
    assert said.rc == 1
    assert "Start a node with `ottla up`" in said.err


def test_missing_topic_is_an_error_if_brokers_create_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TOPIC_S", 0.2)
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        said = run_cli("perf", "produce", "nothing", "-b", broker.bootstrap_servers)
    assert (said.rc, said.out) == (1, "")
    assert "nothing" in said.err
    assert "`ottla topics list` shows the topics there are" in said.err
