"""Configurations of clients: flags, properties, defaults, in this order."""

import click
import pytest

from ottla.cli.common.clients import consumer_config, producer_config
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
