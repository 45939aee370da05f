"""`ottla perf`: its actions, and Kafka's names of them."""

import pytest
from tests.support.servers.ottla_cli import run_cli


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
