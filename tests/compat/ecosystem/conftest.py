"""Fixtures for the tests of programs that use Kafka's clients: Streams, Connect, MirrorMaker."""

from pathlib import Path

import pytest
from tests.conftest import Unavailable
from tests.support.servers.apache_kafka import ApacheKafka, KafkaUnavailable
from tests.support.servers.java_programs import JavaPrograms


@pytest.fixture(scope="session")
def kafka_ecosystem(apache_kafka: ApacheKafka) -> ApacheKafka:
    """Apache Kafka with its jars of Streams, Connect and MirrorMaker."""
    try:
        return ApacheKafka.obtain(["streams", "connect", "mirror"])
    except KafkaUnavailable as reason:
        raise Unavailable(str(reason)) from None


@pytest.fixture
def programs(kafka_ecosystem: ApacheKafka, tmp_path: Path) -> JavaPrograms:
    """Starts Java programs."""
    return JavaPrograms(kafka_ecosystem, tmp_path / "classes")
