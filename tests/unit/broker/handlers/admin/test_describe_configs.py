"""Describing settings: values, sources, synonyms, secrets, documentation. Apache: tests/compat/test_config_changes.py."""

import pytest
from tests.support.cases.config_cases import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    NONE,
    SET,
    TOPIC,
    Case,
    incremental_request,
)
from tests.support.cases.config_views import describe_request, entries
from tests.support.nodes.config_node import ConfigNode

from ottla.broker.handlers.admin import describe_configs
from ottla.config.broker_docs import documentation
from ottla.config.topic_keys import TOPIC_KEYS
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import APIS
from ottla.wire.codec import decode_all, encode, join_parts
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse
from ottla.wire.messages.metadata_records import ConfigRecord

TOPIC_OWN, DYNAMIC, DYNAMIC_ALL, STATIC, DEFAULT, LOGGER, METRICS_OWN, GROUP_OWN = range(1, 9)


def changed(*cases: Case, static: dict[str, str] | None = None) -> ConfigNode:
    node = ConfigNode(static)
    for entry in node.ask(incremental_request(*cases, validate_only=False)).responses:
        assert entry.error_code == NONE, entry.error_message
    return node


def test_topic_setting_lists_its_synonyms_by_priority() -> None:
    node = changed(
        Case(NONE, TOPIC, "t", [("retention.ms", SET, "1")]),
        Case(NONE, BROKER, "1", [("log.retention.ms", SET, "2")]),
        Case(NONE, BROKER, "", [("log.retention.ms", SET, "3")]),
        static={"log.retention.ms": "4", "log.retention.hours": "5"},
    )
    shown = entries(node.ask(describe_request(TOPIC, "t", ["retention.ms"])))
    assert shown["retention.ms"] == {
        "value": "1",
        "read_only": False,
        "source": TOPIC_OWN,
        "sensitive": False,
        "synonyms": [
            ("retention.ms", "1", TOPIC_OWN),
            ("log.retention.ms", "2", DYNAMIC),
            ("log.retention.ms", "3", DYNAMIC_ALL),
            ("log.retention.ms", "4", STATIC),
            ("log.retention.hours", "5", STATIC),
            ("log.retention.hours", "168", DEFAULT),
        ],
        "type": 5,
        "documented": False,
    }


def test_secrets_are_never_shown() -> None:
    node = ConfigNode({"ssl.key.password": "hunter2", "my.plugins.setting": "hunter2"})
    node.replay(ConfigRecord(resource_type=TOPIC, resource_name="t", name="from.a.newer.kafka", value="hunter2"))
    for request in (describe_request(BROKER, "1"), describe_request(TOPIC, "t")):
        response = node.ask(request)
        assert b"hunter2" not in join_parts(encode(response, APIS[response.KEY].newest))
    shown = entries(node.ask(describe_request(BROKER, "1")))
    assert (shown["ssl.key.password"]["value"], shown["ssl.key.password"]["sensitive"]) == (None, True)
    assert (shown["my.plugins.setting"]["source"], shown["my.plugins.setting"]["sensitive"]) == (STATIC, True)
    assert entries(node.ask(describe_request(TOPIC, "t")))["from.a.newer.kafka"]["source"] == TOPIC_OWN


def test_empty_broker_name_shows_only_dynamic_defaults() -> None:
    node = changed(
        Case(NONE, BROKER, "", [("max.connections", SET, "7")]), Case(NONE, BROKER, "1", [("max.connections", SET, "8")])
    )
    shown = entries(node.ask(describe_request(BROKER, "")))
    assert sorted(shown) == ["max.connections", "min.insync.replicas"]
    assert shown["max.connections"]["synonyms"] == [("max.connections", "7", DYNAMIC_ALL)]
    assert shown["max.connections"]["value"] == "7"


def test_no_names_mean_all_settings_and_unknown_names_are_skipped() -> None:
    node = ConfigNode()
    everything = len(entries(node.ask(describe_request(TOPIC, "t", None))))
    assert everything == len([key for key in TOPIC_KEYS.values() if not key.internal])
    assert len(entries(node.ask(describe_request(TOPIC, "t", [])))) == everything
    assert entries(node.ask(describe_request(TOPIC, "t", ["nope"]))) == {}


def test_documentation_says_whether_a_setting_has_an_effect() -> None:
    node = ConfigNode()
    response = node.ask(describe_request(BROKER, "1", documentation=True))
    words = {config.name: config.documentation for config in response.results[0].configs}
    assert words["num.partitions"] == documentation()["num.partitions"]
    assert words["num.io.threads"] == "Accepted, since Kafka has it; without effect here."
    assert all(words.values())
    response = node.ask(describe_request(TOPIC, "t", documentation=True))
    words = {config.name: config.documentation for config in response.results[0].configs}
    assert words["retention.ms"] == TOPIC_KEYS["retention.ms"].documentation
    assert words["preallocate"] == TOPIC_KEYS["preallocate"].documentation + " Without effect yet."
    assert all(words.values())


def test_groups_metrics_and_loggers() -> None:
    node = changed(
        Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
        Case(NONE, CLIENT_METRICS, "m", [("interval.ms", SET, "1000")]),
    )
    group = entries(node.ask(describe_request(GROUP, "g")))
    assert group["consumer.session.timeout.ms"]["synonyms"] == [
        ("consumer.session.timeout.ms", "50000", GROUP_OWN),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT),
    ]
    metrics = entries(node.ask(describe_request(CLIENT_METRICS, "m")))
    assert (metrics["interval.ms"]["source"], metrics["match"]["source"]) == (METRICS_OWN, DEFAULT)
    loggers = entries(node.ask(describe_request(BROKER_LOGGER, "1")))
    assert {name: (entry["value"], entry["source"]) for name, entry in loggers.items()} == {
        "root": ("INFO", LOGGER),
        "ottla.log": ("INFO", LOGGER),
    }


def test_a_value_stored_by_another_kafka_is_shown_as_it_is() -> None:
    node = ConfigNode()
    node.replay(ConfigRecord(resource_type=TOPIC, resource_name="t", name="compression.type", value="brotli"))
    assert entries(node.ask(describe_request(TOPIC, "t")))["compression.type"]["value"] == "brotli"
    assert node.settings.topic_config("t").compression_type == "producer"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_version_can_be_written(version: int) -> None:
    node = ConfigNode()
    resources = [
        DescribeConfigsResource(resource_type=type_, resource_name=name) for type_, name in ((TOPIC, "t"), (BROKER, "1"))
    ]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True, include_documentation=True)
    frame = join_parts(encode(node.ask(request, version), version))
    again = decode_all(DescribeConfigsResponse, version, frame)
    assert [len(result.configs) > 30 for result in again.results] == [True, True]


def test_one_refused_resource_does_not_affect_the_others() -> None:
    node = ConfigNode()
    resources = [DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in ("nowhere", "t")]
    results = node.ask(DescribeConfigsRequest(resources=resources)).results
    assert [result.error_code for result in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NONE]


def test_a_failed_request_is_refused_resource_by_resource() -> None:
    request = describe_request(TOPIC, "t")
    response = describe_configs.refuse(None, request, KafkaError(ErrorCode.INVALID_REQUEST, "no"))  # type: ignore[arg-type]
    assert [(result.resource_name, result.error_code) for result in response.results] == [("t", ErrorCode.INVALID_REQUEST)]
