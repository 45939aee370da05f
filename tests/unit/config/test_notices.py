"""The warnings at a node's start about settings without effect."""

import pytest

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.notices import PLUGINS, REMOVED, notices


def test_settings_with_effect_give_no_notice() -> None:
    assert notices({"num.partitions": "3", "log.retention.ms": "5", "listener.name.a.max.connections": "1"}) == []


def test_settings_without_effect_share_one_sentence() -> None:
    assert notices({"num.network.threads": "3", "num.io.threads": "8", "node.id": "1"}) == [
        "accepted, but without effect here: num.io.threads, num.network.threads"
    ]


def test_removed_settings_name_their_successor() -> None:
    told = notices({"zookeeper.connect": "a:2181", "advertised.host.name": "b", "password.encoder.secret": "x"})
    assert [sentence.partition(" is a setting of older Kafkas and has no effect: ")[::2] for sentence in told] == [
        ("advertised.host.name", "use advertised.listeners"),
        ("password.encoder.secret", "stored passwords are not encoded any more; drop it"),
        ("zookeeper.connect", "ZooKeeper is gone: use process.roles with controller.quorum.bootstrap.servers"),
    ]


def test_an_unknown_name_gets_a_hint() -> None:
    assert notices({"num.partition": "3", "my.own.thing": "1"}) == [
        "my.own.thing is no broker setting of Kafka 4.3 and has no effect",
        "num.partition is no broker setting of Kafka 4.3 and has no effect; did you mean num.partitions?",
    ]


def test_a_topic_setting_gets_the_brokers_name_for_it() -> None:
    assert notices({"segment.ms": "3"}) == [
        "segment.ms is no broker setting of Kafka 4.3 and has no effect; did you mean log.roll.ms?"
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("log.segment.ms", "log.roll.ms (for one topic: segment.ms)"),
        ("log.segment.hours", "log.roll.hours"),
        ("log.max.message.bytes", "message.max.bytes (for one topic: max.message.bytes)"),
        ("log.min.insync.replicas", "min.insync.replicas"),
        ("log.retention.days", "log.retention.hours"),
    ],
)
def test_a_name_like_that_of_a_neighbour_gets_the_right_one(name: str, meant: str) -> None:
    (told,) = notices({name: "3"})
    assert told.endswith(f"did you mean {meant}?")


def test_settings_of_the_authorizer_have_no_effect_without_its_class() -> None:
    (told,) = notices({"super.users": "User:admin"})
    assert told.startswith("super.users has no effect without authorizer.class.name: every client that can connect may do")
    (told,) = notices({"super.users": "", "allow.everyone.if.no.acl.found": "false", "authorizer.class.name": " "})
    assert told.startswith("allow.everyone.if.no.acl.found and super.users have no effect without")
    assert notices({"super.users": "User:admin", "authorizer.class.name": "StandardAuthorizer"}) == []


def test_settings_of_plugins_are_known_and_without_effect() -> None:
    names = [
        "client.quota.callback.static.produce",
        "config.providers.env.class",
        "metrics.jmx.include",
        "rlmm.config.remote.log.metadata.topic.num.partitions",
        "tiers.bucket",
    ]
    settings = {"remote.log.storage.manager.impl.prefix": "tiers.", **dict.fromkeys(names, "x")}
    assert notices(settings) == [
        "accepted, but without effect here: " + ", ".join(sorted([*names, "remote.log.storage.manager.impl.prefix"]))
    ]
    (told,) = notices({"confluent.support.metrics.enable": "true"})
    assert told.startswith("confluent.support.metrics.enable is no broker setting of Kafka 4.3")


def test_no_value_is_shown() -> None:
    assert "hunter2" not in " ".join(
        notices({"password.encoder.secret": "hunter2", "ssl.key.password": "hunter2", "x": "hunter2"})
    )


def test_plugin_settings_are_in_no_other_list() -> None:
    assert [name for name in PLUGINS if name in BROKER_KEYS] == []


def test_removed_settings_are_not_in_the_table() -> None:
    assert [name for name in REMOVED if name in BROKER_KEYS] == []
