"""Configurations of clients: flags, properties, defaults, in this order."""

import logging

import click
import pytest

from ottla.cli.common.clients import LOGGER, client_logs_shown, consumer_config, producer_config
from ottla.cli.common.settings import build_settings


def test_flags_win_over_properties_and_these_over_defaults() -> None:
    settings = build_settings("a:1", {"linger.ms": "7", "acks": "1"}, frozenset({"linger.ms", "acks"}))
    made = producer_config(settings, {"linger.ms": 1, "batch.size": 2}, {"acks": "all", "retries": None})
    assert made.config == {"bootstrap.servers": "a:1", "linger.ms": "7", "acks": "all", "batch.size": 2}


def test_settings_of_other_clients_and_conversions_are_left_out() -> None:
    names = {"linger.ms": "7", "key.deserializer": "string", "fetch.min.bytes": "3"}
    made = consumer_config(build_settings("a:1", names, frozenset(names)), {}, {})
    assert made.config == {"bootstrap.servers": "a:1", "fetch.min.bytes": "3"}


def test_impossible_settings_are_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match="acks"):
        producer_config(build_settings("a:1", {}), {}, {"acks": "2"})


def test_login_of_the_environment_is_used_if_sasl_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_SASL_USERNAME", "me")
    monkeypatch.setenv("OTTLA_SASL_PASSWORD", "secret")
    secure = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    assert producer_config(build_settings("a:1", {}), {}, {}).login == {}
    login = producer_config(build_settings("a:1", secure), {}, {}).login
    assert sorted(login.values()) == ["me", "secret"]


def test_warnings_are_printed_and_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[int] = []
    logger = logging.getLogger(f"{LOGGER}.producer")
    with client_logs_shown(lambda: calls.append(1)):
        logger.warning("node %d is lost", 1)
        logger.info("nothing to worry about")
    assert capsys.readouterr().err == "ottla: node 1 is lost\n"
    assert calls == [1]


def test_warnings_can_be_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    with client_logs_shown(show=shown.append):
        logging.getLogger(f"{LOGGER}.producer").warning("node %d is lost", 1)
    assert (shown, capsys.readouterr().err) == (["node 1 is lost"], "")


def test_nothing_is_printed_after_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(logging.getLogger(LOGGER).handlers)
    with client_logs_shown():
        pass
    assert logging.getLogger(LOGGER).handlers == before
