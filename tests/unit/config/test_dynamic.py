"""Layers of settings: which may change at run time, and how they are merged. In a node: tests/unit/broker/test_settings.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.broker import BrokerConfig
from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.dynamic import Layers, broker_synonyms, merge, update_mode
from ottla.config.keys import UpdateMode
from ottla.config.values import InvalidConfig

STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
}


def layers(
    cluster: dict[str, str] | None = None, broker: dict[str, str] | None = None, static: dict[str, str] | None = None
) -> Layers:
    return Layers(STATIC | (static or {}), cluster or {}, broker or {}, "here")


def test_modes() -> None:
    assert update_mode("max.connections") is UpdateMode.CLUSTER_WIDE
    assert update_mode("listener.name.x.max.connections") is UpdateMode.CLUSTER_WIDE
    assert update_mode("listener.name.x.ssl.keystore.location") is UpdateMode.PER_BROKER
    assert update_mode("listeners") is UpdateMode.PER_BROKER
    assert update_mode("num.partitions") is UpdateMode.READ_ONLY
    assert update_mode("leader.replication.throttled.rate") is UpdateMode.CLUSTER_WIDE
    assert update_mode("somebodys.own") is None


def test_a_setting_hides_its_synonyms_in_earlier_layers() -> None:
    static = {
        "log.retention.hours": "5",
        "log.retention.minutes": "6",
        "log.flush.scheduler.interval.ms": "7",
        "num.partitions": "8",
    }
    assert merge(static) == static
    assert merge(static, {"log.retention.ms": "1"}) == {
        "log.retention.ms": "1",
        "log.flush.scheduler.interval.ms": "7",
        "num.partitions": "8",
    }
    assert "log.flush.scheduler.interval.ms" not in merge(static, {"log.flush.interval.ms": "1"})
    assert merge({"max.connections": "1"}, {"listener.name.a.max.connections": "2"}) == {
        "max.connections": "1",
        "listener.name.a.max.connections": "2",
    }


def test_synonyms() -> None:
    assert broker_synonyms("log.roll.hours") == ("log.roll.ms", "log.roll.hours")
    assert broker_synonyms("log.flush.scheduler.interval.ms") == ("log.flush.scheduler.interval.ms",)
    assert broker_synonyms("listener.name.a.max.connections") == ("listener.name.a.max.connections", "max.connections")


def test_a_dynamic_setting_overrides_the_file_in_another_unit() -> None:
    config = layers(cluster={"log.retention.ms": "9"}, static={"log.retention.hours": "5"}).config
    assert config.log.topic_defaults.retention_ms == 9


def test_a_contradicting_dynamic_setting_is_rejected_alone() -> None:
    mixed = layers(cluster={"log.cleaner.threads": "500", "max.connections": "5"}, broker={"max.connections.per.ip": "0"})
    assert sorted(mixed.rejected) == ["log.cleaner.threads", "max.connections.per.ip"]
    assert (mixed.config.log.log_cleaner_threads, mixed.config.max_connections) == (1, 5)
    assert mixed.cluster == {"max.connections": "5"}


def test_unknown_names_are_kept() -> None:
    kept = layers(cluster={"somebodys.own": "1"})
    assert (kept.cluster, kept.rejected) == ({"somebodys.own": "1"}, {})


def test_intervals_are_clamped_to_their_bounds() -> None:
    name = "group.consumer.assignment.interval.ms"
    bounds = {"group.consumer.min.assignment.interval.ms": "100", "group.consumer.max.assignment.interval.ms": "2000"}
    assert layers(cluster={name: "5000"}, static=bounds).config.group_consumer_assignment_interval_ms == 2000
    assert layers(broker={name: "5"}, static=bounds).config.group_consumer_assignment_interval_ms == 100
    assert layers(broker={name: "500"}, static=bounds).config.group_consumer_assignment_interval_ms == 500


def test_a_change_is_checked_against_the_other_layers() -> None:
    now = layers(cluster={"max.connections.per.ip.overrides": "a:1"})
    now.check_change({"max.connections.per.ip": "0"}, per_broker=True)
    with pytest.raises(InvalidConfig, match="would refuse every connection"):
        now.check_change({"max.connections.per.ip": "0"}, per_broker=False)


def test_counts_double_or_halve_at_most() -> None:
    now = layers(cluster={"num.io.threads": "10"})
    for text in ("5", "20"):
        now.check_change({"num.io.threads": text}, per_broker=False)
    for text in ("4", "21"):
        with pytest.raises(InvalidConfig, match="double or halve"):
            now.check_change({"num.io.threads": text}, per_broker=False)
    with pytest.raises(InvalidConfig, match="double or halve"):
        layers(broker={"num.io.threads": "32"}).check_change({}, per_broker=True)


VALUES = {
    "max.connections": st.sampled_from(["5", "7", "-1", "x"]),
    "log.cleaner.threads": st.sampled_from(["1", "2", "500", ""]),
    "log.retention.ms": st.sampled_from(["0", "1", "-1", "many"]),
    "num.partitions": st.sampled_from(["2", "0"]),
    "listeners": st.sampled_from(["PLAINTEXT://:1", "nonsense"]),
    "compression.type": st.sampled_from(["gzip", "brotli"]),
    "group.consumer.assignment.interval.ms": st.sampled_from(["5", "99999", "-5"]),
    "max.connections.per.ip": st.sampled_from(["0", "3"]),
    "listener.name.plaintext.max.connections": st.sampled_from(["1", "y"]),
    "ssl.keystore.location": st.just("z"),
    "unknown.name": st.text(max_size=3),
}
LAYER = st.fixed_dictionaries({}, optional=VALUES)


@given(LAYER, LAYER)
def test_any_stored_settings_give_a_valid_snapshot(cluster: dict[str, str], broker: dict[str, str]) -> None:
    now = layers(cluster=cluster, broker=broker)
    assert set(now.cluster) <= set(cluster)
    assert set(now.broker) <= set(broker)
    for name in {*cluster, *broker}:
        kept = now.broker.get(name, now.cluster.get(name))
        assert (kept is None) <= (name in now.rejected)
        key = BROKER_KEYS.get(name)
        if kept is not None and key is not None and name != "group.consumer.assignment.interval.ms":
            shown = now.config if key.attribute in BrokerConfig.__annotations__ else now.config.log
            if key.attribute in getattr(type(shown), "__annotations__", {}):
                assert getattr(shown, key.attribute) == key.parse(kept)
    assert 0 <= now.config.group_consumer_assignment_interval_ms <= 15_000
    # The remaining settings are valid by themselves: nothing more would be rejected.
    again = layers(cluster=now.cluster, broker=now.broker)
    assert (again.rejected, again.config) == ({}, now.config)
