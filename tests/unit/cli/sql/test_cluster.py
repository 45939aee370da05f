"""Topics of the cluster, and settings for Spark's clients."""

from __future__ import annotations

import pytest

from ottla.cli.common.settings import build_settings
from ottla.cli.sql.session import TopicsOfCluster, client_properties
from ottla.errors import TopicExistsError
from ottla.testing import Broker


def test_topics_are_listed_and_made() -> None:
    with Broker() as broker:
        cluster = TopicsOfCluster(build_settings(broker.bootstrap_servers, {}))
        assert cluster.topics() == {}
        cluster.create_topic("orders", 3)
        assert cluster.topics() == {"orders": 3}
        with pytest.raises(TopicExistsError):
            cluster.create_topic("orders", 3)


def test_login_of_the_environment_becomes_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_SASL_USERNAME", "ann")
    monkeypatch.setenv("OTTLA_SASL_PASSWORD", 'se"cret')
    plain = client_properties(build_settings("h:1", {}))
    assert "sasl.jaas.config" not in plain
    assert plain["bootstrap.servers"] == "h:1"
    secured = build_settings("h:1", {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"})
    login = client_properties(secured)["sasl.jaas.config"]
    assert login == ('org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="se\\"cret";')
