"""Property flags with several values, and topics named twice."""

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla.cli.perf.options import repeat_flags


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--producer-props", "a=1", "b=2"], ["--producer-props", "a=1", "--producer-props", "b=2"]),
        (["--command-property", "a=1", "load"], ["--command-property", "a=1", "load"]),
        (["--command-property", "a=1", "--throughput", "-1"], ["--command-property", "a=1", "--throughput", "-1"]),
        (["--payload-delimiter", "a=b", "c=d"], ["--payload-delimiter", "a=b", "c=d"]),
        (["x", "--producer-props", "a=1", "load", "b=2"], ["x", "--producer-props", "a=1", "load", "b=2"]),
        ([], []),
    ],
)
def test_each_value_gets_its_flag(given: list[str], meant: list[str]) -> None:
    assert repeat_flags(given) == meant


def test_topic_that_is_named_twice_is_refused() -> None:
    said = run_cli("perf", "produce", "one", "--topic", "two")
    assert said.rc == 2
    assert "the topic is named twice, one and two" in said.err
