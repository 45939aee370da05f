"""Kafka Streams with exactly_once_v2: a word count through kill -9 of the application and of the broker has exact counts."""

import pytest
from tests.support.apache_kafka import ApacheKafka
from tests.support.ottla_server import StartServer
from tests.support.word_count import run


def test_counts_are_exact_through_a_kill(start_server: StartServer, kafka_ecosystem: ApacheKafka) -> None:
    report = run(start_server, kafka_ecosystem, kills=1)
    assert report.problems == []
    assert report.application_kills == report.broker_kills == 1
    assert report.words > 400


@pytest.mark.slow
def test_counts_are_exact_through_three_kills(start_server: StartServer, kafka_ecosystem: ApacheKafka) -> None:
    report = run(start_server, kafka_ecosystem, kills=3, seed=2)
    assert report.problems == []
    assert report.application_kills == report.broker_kills == 3
    assert report.words > 1200
