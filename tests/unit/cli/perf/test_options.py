"""Topics named twice."""

from tests.support.servers.ottla_cli import run_cli


def test_topic_that_is_named_twice_is_refused() -> None:
    said = run_cli("perf", "produce", "one", "--topic", "two")
    assert said.rc == 2
    assert "the topic is named twice, one and two" in said.err
