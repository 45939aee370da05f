"""Kafka Streams with exactly_once_v2: a word count through kill -9 of the application and of the broker has exact counts."""

from pathlib import Path

import pytest
from tests.compat.ecosystem import word_count_cluster
from tests.compat.ecosystem.word_count import Report, run
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.ottla_server import StartServer


def check(report: Report, kills: int, server_kind: str) -> None:
    assert report.problems == []
    assert report.application_kills == kills
    assert report.broker_kills == (kills if server_kind == "ottla" else 0)
    assert report.words > 300 * kills


@pytest.mark.slow
def test_counts_are_exact_through_a_kill(start_server: StartServer, kafka_ecosystem: ApacheKafka, server_kind: str) -> None:
    check(run(start_server, kafka_ecosystem, kills=1, broker_too=server_kind == "ottla"), 1, server_kind)


@pytest.mark.slow
def test_counts_are_exact_through_three_kills(
    start_server: StartServer, kafka_ecosystem: ApacheKafka, server_kind: str
) -> None:
    check(run(start_server, kafka_ecosystem, kills=3, seed=2, broker_too=server_kind == "ottla"), 3, server_kind)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("minutes", [2, 10])
def test_counts_are_exact_while_nodes_of_three_are_killed(tmp_path: Path, kafka_ecosystem: ApacheKafka, minutes: int) -> None:
    report = word_count_cluster.run(tmp_path, kafka_ecosystem, minutes)
    print(report)
    assert report.problems == []
    assert report.broker_kills
    assert report.words > 100 * report.broker_kills
