"""The layers of a running node's settings: which layer wins, what changes, and invalid stored settings."""

import logging
from collections.abc import Mapping

import pytest

from ottla.broker.settings import BrokerSettings, SettingsChange
from ottla.config.values import InvalidConfig
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance, ResourceType
from ottla.wire.messages.metadata_records import ConfigRecord, RemoveTopicRecord, TopicRecord

STATIC = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "log.retention.hours": "2",
    "max.connections": "10",
}
ALL, ONE, OTHER = (ResourceType.BROKER, ""), (ResourceType.BROKER, "1"), (ResourceType.BROKER, "2")
TOPIC = (ResourceType.TOPIC, "t")
TOPIC_ID = b"t" * 16
HOUR_MS = 3_600_000


class Node:
    """Settings that follow an image, changed record by record."""

    def __init__(self, static: Mapping[str, str] = STATIC) -> None:
        self.settings = BrokerSettings(static, hostname="here")
        self.image = MetadataImage()

    def store(self, resource: tuple[int, str], **texts: str | None) -> SettingsChange:
        """Set (None: remove) settings of `resource` in the metadata log."""
        type_, name = resource
        return self.replay(
            *(
                ConfigRecord(resource_type=type_, resource_name=name, name=key.replace("_", "."), value=text)
                for key, text in texts.items()
            )
        )

    def replay(self, *records: ConfigRecord | TopicRecord | RemoveTopicRecord) -> SettingsChange:
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.image = delta.finish(Provenance())
        return self.settings.apply(delta, self.image)


def test_each_layer_wins_over_the_one_below_it() -> None:
    node = Node()
    assert node.settings.current.max_connections == 10
    node.store(ALL, max_connections="20")
    assert node.settings.current.max_connections == 20
    node.store(ONE, max_connections="30")
    assert node.settings.current.max_connections == 30
    node.store(OTHER, max_connections="40")
    assert node.settings.current.max_connections == 30
    node.store(ONE, max_connections=None)
    assert node.settings.current.max_connections == 20
    node.store(ALL, max_connections=None)
    assert node.settings.current.max_connections == 10


def test_apply_returns_what_changed() -> None:
    node = Node()
    assert node.store(ALL, max_connections="20") == SettingsChange(("max_connections",), brokers_changed=True)
    assert node.store(ALL, max_connections="20") == SettingsChange(brokers_changed=True)
    assert node.store(OTHER, max_connections="20") == SettingsChange()
    assert node.store(ONE, log_cleaner_threads="2") == SettingsChange(("log",), brokers_changed=True)
    change = node.store(ONE, log_retention_ms="5", message_max_bytes="77")
    assert change == SettingsChange(("message_max_bytes", "log"), True, brokers_changed=True)
    assert node.store(TOPIC, retention_ms="9") == SettingsChange(topics=("t",))


def test_what_changed_is_logged_by_the_names_that_were_set(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    with caplog.at_level(logging.INFO):
        node.store(ALL, log_cleaner_threads="3", num_io_threads="4")
        node.store(ALL, log_cleaner_threads="3", num_io_threads="4")
    assert caplog.messages == ["settings changed at run time: log.cleaner.threads, num.io.threads"]


def test_earlier_snapshot_does_not_change() -> None:
    node = Node()
    before = node.settings.current
    node.store(ALL, max_connections="20")
    assert before.max_connections == 10
    assert before is not node.settings.current


def test_topics_run_with_their_own_settings_over_the_brokers() -> None:
    node = Node()
    assert node.settings.topic_config("t").retention_ms == 2 * HOUR_MS
    node.store(ALL, log_retention_ms="5")
    assert node.settings.topic_config("t").retention_ms == 5
    node.store(TOPIC, retention_ms="9", segment_ms="100")
    assert node.settings.topic_config("t").retention_ms == 9
    assert node.settings.topic_config("other").retention_ms == 5
    node.store(ALL, log_roll_ms="1000")
    assert (node.settings.topic_config("t").segment_ms, node.settings.topic_config("other").segment_ms) == (100, 1000)
    node.store(TOPIC, retention_ms=None)
    assert node.settings.topic_config("t").retention_ms == 5
    assert node.settings.topic_config("t") is node.settings.topic_config("t")


def test_recreated_topic_does_not_inherit_settings() -> None:
    node = Node()
    node.replay(TopicRecord(name="t", topic_id=TOPIC_ID))
    node.store(TOPIC, retention_ms="9")
    assert node.settings.topic_config("t").retention_ms == 9
    node.replay(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert node.settings.topic_config("t").retention_ms == 2 * HOUR_MS


LEFT_OUT = [
    (ALL, "max.connections", "many", "must be a whole number"),
    (ALL, "max.connections", "-1", "must be at least 0"),
    (ALL, "num.partitions", "7", "cannot change while the node runs"),
    (ALL, "listeners", "PLAINTEXT://:1", "only for one broker at a time"),
    (ONE, "listeners", "PLAINTEXT://:1", "cannot change while the node runs"),
    (ONE, "ssl.keystore.location", "x", "only for one listener"),
    (ONE, "log.cleaner.threads", "1000", "leaves 1 MiB or less"),
    (ONE, "log.retention.ms", "0", "would delete everything"),
]


@pytest.mark.parametrize(("resource", "name", "text", "why"), LEFT_OUT, ids=[f"{row[1]}={row[2]}" for row in LEFT_OUT])
def test_invalid_stored_broker_setting_is_ignored_and_logged(
    resource: tuple[int, str], name: str, text: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node()
    with caplog.at_level(logging.WARNING):
        node.store(resource, **{name.replace(".", "_"): text, "background_threads": "11", "max_connections_per_ip": "3"})
        node.store(resource, num_io_threads="3")
    (warning,) = caplog.messages
    assert name in warning
    assert why in warning
    assert node.settings.current.max_connections_per_ip == 3
    assert node.settings.current.max_connections == 10


def test_invalid_stored_topic_setting_is_ignored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.store(TOPIC, retention_ms="soon", segment_ms="100", from_a_newer_kafka="1")
    assert node.settings.topic_config("t").segment_ms == 100
    assert node.settings.topic_config("t").retention_ms == 2 * HOUR_MS
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "the stored setting retention.ms of topic t is ignored"
    ]


def test_a_listeners_own_limit_can_change() -> None:
    node = Node()
    assert node.store(ALL, listener_name_plaintext_max_connections="4").attributes == ("listener_max_connections",)
    assert node.settings.current.max_connections_of("PLAINTEXT") == 4


def test_a_bad_file_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"node\.id is not set"):
        BrokerSettings({})
