"""Combinations of settings: refused with both names, or made to fit with a warning."""

from typing import Any

import pytest
from tests.support.cases.client_settings import REFUSED, STRICTER, TAKEN

from ottla.config.client.build import admin_settings, consumer_settings, producer_settings
from ottla.errors import ConfigError

BUILDERS = {"producer": producer_settings, "consumer": consumer_settings, "admin": admin_settings}


@pytest.mark.parametrize(("kind", "config", "words"), REFUSED + STRICTER)
def test_impossible_combinations_are_refused_with_all_names(kind: str, config: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        BUILDERS[kind]("127.0.0.1:1", config)
    assert [word for word in words if word not in str(refused.value)] == []


@pytest.mark.parametrize(("kind", "config"), TAKEN)
def test_combinations_that_apache_takes_are_taken(kind: str, config: dict[str, str]) -> None:
    assert BUILDERS[kind]("127.0.0.1:1", config).bootstrap_servers == (("127.0.0.1", 1),)


@pytest.mark.parametrize("given", [{"acks": "1"}, {"acks": 0}, {"retries": 0}])
def test_idempotence_is_turned_off_with_a_warning(given: dict[str, Any]) -> None:
    settings = producer_settings("a:1", given)
    assert settings.enable_idempotence is False
    [notice] = settings.notices
    assert notice.startswith(f"idempotence is off because of {next(iter(given))}=")


def test_idempotence_that_is_turned_off_by_hand_is_no_warning() -> None:
    config = {"acks": 1, "enable.idempotence": "false", "max.in.flight.requests.per.connection": 100}
    settings = producer_settings("a:1", config)
    assert settings.notices == ()
    assert settings.max_in_flight_requests_per_connection == 100


def test_a_transactional_producer_is_idempotent() -> None:
    assert producer_settings("a:1", {"transactional.id": "t"}).enable_idempotence is True


def test_the_default_delivery_timeout_grows_with_a_warning() -> None:
    settings = producer_settings("a:1", {"request.timeout.ms": 200_000})
    assert settings.delivery_timeout_ms == 200_005
    assert "delivery.timeout.ms is raised to 200005" in settings.notices[0]


def test_the_sum_of_timeouts_stays_in_32_bits() -> None:
    config = {"linger.ms": 2**40, "request.timeout.ms": 2**31 - 1, "delivery.timeout.ms": 2**31 - 1}
    assert producer_settings("a:1", config).delivery_timeout_ms == 2**31 - 1


def test_auto_commit_needs_a_group() -> None:
    with pytest.raises(ConfigError, match=r"enable\.auto\.commit=true without group\.id"):
        consumer_settings("a:1", {"enable.auto.commit": "true"})
    assert consumer_settings("a:1").enable_auto_commit is False
    assert consumer_settings("a:1", {"enable.auto.commit": False}).enable_auto_commit is False


def test_the_new_protocol_takes_its_own_settings() -> None:
    settings = consumer_settings("a:1", {"group.id": "g", "group.protocol": "Consumer", "group.remote.assignor": "range"})
    assert (settings.group_protocol, settings.group_remote_assignor) == ("consumer", "range")


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("PT1H", 3_600_000), ("P1DT1M", 86_460_000), ("pt0.5s", 500), ("P0D", 0), ("PT1.0009S", 1000)],
)
def test_offset_reset_by_duration(text: str, duration_ms: int) -> None:
    settings = consumer_settings("a:1", {"auto.offset.reset": f"by_duration:{text}"})
    assert (settings.auto_offset_reset, settings.auto_offset_reset_duration_ms) == ("by_duration", duration_ms)


def test_a_fetch_that_waits_longer_than_its_timeout_is_a_warning() -> None:
    [notice] = consumer_settings("a:1", {"fetch.max.wait.ms": 30_000}).notices
    assert notice.startswith("fetch.max.wait.ms=30000 is not less than request.timeout.ms=30000")


def test_a_reconnect_backoff_alone_does_not_grow() -> None:
    settings = consumer_settings("a:1", {"reconnect.backoff.ms": 70})
    assert settings.reconnect_backoff_max_ms == 70
    assert "reconnect.backoff.max.ms is set to reconnect.backoff.ms=70" in settings.notices[0]
    both = consumer_settings("a:1", {"reconnect.backoff.ms": 70, "reconnect.backoff.max.ms": 700})
    assert (both.reconnect_backoff_max_ms, both.notices) == (700, ())


def test_a_backoff_above_its_maximum_is_a_warning() -> None:
    [notice] = producer_settings("a:1", {"retry.backoff.ms": 5000}).notices
    assert notice.startswith("retry.backoff.ms=5000 is more than retry.backoff.max.ms=1000")


def test_an_admin_client_has_servers_or_controllers() -> None:
    assert admin_settings(None, {"bootstrap.controllers": "c:1"}).bootstrap_controllers == (("c", 1),)
    with pytest.raises(ConfigError, match=r"bootstrap\.servers and bootstrap\.controllers are both given"):
        admin_settings("a:1", {"bootstrap.controllers": "c:1"})
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        admin_settings()


def test_the_timeout_of_admin_calls_covers_a_request() -> None:
    with pytest.raises(ConfigError, match=r"default\.api\.timeout\.ms=1000 must be at least request\.timeout\.ms=30000"):
        admin_settings("a:1", {"default.api.timeout.ms": 1000})
    raised = admin_settings("a:1", {"request.timeout.ms": 90_000})
    assert raised.default_api_timeout_ms == 90_000
    assert raised.notices[0].startswith("default.api.timeout.ms is raised")
