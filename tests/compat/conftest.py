"""Fixtures of the tests beside Apache Kafka."""

from pathlib import Path

import pytest
from tests.support.apache_kafka import ApacheKafka
from tests.support.apache_logs import LogsFromApache, make_logs


@pytest.fixture(scope="session")
def logs_from_apache(
    apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> LogsFromApache:
    """Log directories that Apache Kafka wrote, made once for all pytest workers of this run."""
    base: Path = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    return make_logs(apache_kafka, shared / "logs-from-apache")
