"""The warnings at a node's start about settings without effect."""

from ottla.config.broker_keys import BROKER_KEYS
from ottla.config.notices import REMOVED, notices


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


def test_an_authorizer_without_effect_gets_its_own_notice() -> None:
    assert (
        "may do everything" in notices({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"})[0]
    )


def test_no_value_is_shown() -> None:
    assert "hunter2" not in " ".join(
        notices({"password.encoder.secret": "hunter2", "ssl.key.password": "hunter2", "x": "hunter2"})
    )


def test_removed_settings_are_not_in_the_table() -> None:
    assert [name for name in REMOVED if name in BROKER_KEYS] == []
