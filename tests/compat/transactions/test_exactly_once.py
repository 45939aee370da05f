"""Consume, transform, produce while broker and workers are killed at random: nothing lost, nothing doubled."""

import pytest
from tests.compat.transactions.exactly_once_load import Report, run
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.ottla_server import StartServer, start_ottla


def check(report: Report, harms_min: int) -> None:
    assert report.problems == []
    assert len(report.starved) <= 1, report.starved
    assert report.done.total() >= harms_min
    assert report.done["worker killed"] > 0
    assert report.records > 500


def test_through_random_kills(start_server: StartServer, server_kind: str) -> None:
    """Apache Kafka's broker is not killed: see `exactly_once_load`."""
    report = run(start_server, seconds=8, seed=1, broker_too=server_kind == "ottla")
    check(report, 5)
    assert (report.done["broker killed"] > 0) == (server_kind == "ottla")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("seed", [2, 3])
def test_through_a_minute_of_kills(apache_kafka: ApacheKafka, seed: int, protocol: str) -> None:
    """One worker is Kafka's own Java client."""
    check(run(start_ottla, 60, seed, protocol, apache_kafka), 30)
