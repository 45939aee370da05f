"""Settings: describe, change, list."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.client.admin.configs import (
    RESOURCES_PER_REQUEST,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
)
from ottla.errors import InvalidConfigurationError, UnknownTopicOrPartitionError
from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse, DescribeConfigsResult

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER


def test_settings_of_topics_and_brokers_are_described(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create([name])
    results = admin.describe_configs([("topic", name), ("broker", "1"), ConfigResource("topic", "missing-topic")])
    retention = results[TOPIC, name]["retention.ms"]
    assert retention.value == "604800000"
    assert retention.is_default
    assert retention.type is ConfigType.LONG
    assert retention.synonyms == ()
    assert retention.documentation is None
    node_id = results[BROKER, "1"]["node.id"]
    assert (node_id.value, node_id.is_read_only, node_id.source) == ("1", True, ConfigSource.STATIC_BROKER_CONFIG)
    assert isinstance(results.errors[TOPIC, "missing-topic"], UnknownTopicOrPartitionError)


def test_names_synonyms_and_documentation_are_given_if_asked_for(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create([name])
    found = admin.describe_configs(
        [("topic", name)], names=["retention.ms", "segment.bytes"], include_synonyms=True, include_documentation=True
    )[TOPIC, name]
    assert list(found) == ["retention.ms", "segment.bytes"]
    assert [each.name for each in found["segment.bytes"].synonyms] == ["log.segment.bytes"]
    assert found["retention.ms"].documentation


def test_settings_are_set_appended_and_deleted(
    admin: Any, name: str, create: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    create([name])
    key = (TOPIC, name)

    def value(setting: str) -> tuple[str, ConfigSource]:
        entry = admin.describe_configs([key])[key][setting]
        return entry.value, entry.source

    changes = {"retention.ms": 1000, "preallocate": True, "cleanup.policy": ConfigChange("append", "compact")}
    admin.alter_configs({("topic", name): changes}).raise_first()
    eventually(lambda: value("retention.ms"), ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG))
    assert value("preallocate") == ("true", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert set(value("cleanup.policy")[0].split(",")) == {"delete", "compact"}
    admin.alter_configs({key: {"retention.ms": None, "cleanup.policy": ConfigChange("subtract", "delete")}}).raise_first()
    eventually(lambda: value("retention.ms"), ("604800000", ConfigSource.DEFAULT_CONFIG))
    assert value("cleanup.policy")[0] == "compact"


def test_validate_only_changes_nothing_and_each_item_has_its_result(admin: Any, name: str) -> None:
    admin.create_topics([name]).raise_first()
    key = ConfigResource(TOPIC, name)
    admin.alter_configs({key: {"retention.ms": 1000}}, validate_only=True).raise_first()
    assert admin.describe_configs([key])[key]["retention.ms"].is_default
    results = admin.alter_configs({key: {"retention.ms": 7}, ("topic", "missing-topic"): {"retention.ms": 7}})
    assert results[key] is None
    assert list(results.errors) == [(TOPIC, "missing-topic")]
    assert isinstance(admin.alter_configs({key: {"retention.ms": "soon"}}).errors[key], InvalidConfigurationError)


def test_settings_of_one_broker_and_of_all_brokers(admin: Any, eventually: Callable[..., None]) -> None:
    one, every = ("broker", "1"), ("broker", "")

    def values() -> list[str | None]:
        own, common = admin.describe_configs([one, every]).values()
        return [own["log.cleaner.threads"].value, common["message.max.bytes"].value if "message.max.bytes" in common else None]

    admin.alter_configs({one: {"log.cleaner.threads": 2}, every: {"message.max.bytes": 2_000_000}}).raise_first()
    eventually(values, ["2", "2000000"])
    assert admin.describe_configs([one])[BROKER, "1"]["log.cleaner.threads"].source is ConfigSource.DYNAMIC_BROKER_CONFIG
    admin.alter_configs({one: {"log.cleaner.threads": None}, every: {"message.max.bytes": None}}).raise_first()
    eventually(values, ["1", None])


def test_client_metrics_subscription_is_created_listed_and_deleted(
    admin: Any, name: str, eventually: Callable[..., None]
) -> None:
    key = ("client_metrics", name)
    admin.alter_configs({key: {"metrics": "org.apache.kafka.", "interval.ms": 60_000}}).raise_first()
    eventually(lambda: name in admin.list_client_metrics_resources(), True)
    assert (ConfigResourceType.CLIENT_METRICS, name) in admin.list_config_resources()
    assert admin.describe_configs([key])[ConfigResourceType.CLIENT_METRICS, name]["interval.ms"].value == "60000"
    admin.alter_configs({key: {"metrics": None, "interval.ms": None}}).raise_first()
    eventually(lambda: name in admin.list_client_metrics_resources(), False)


def test_resources_are_listed_by_type(admin: Any, name: str, create: Callable[..., Any], needs: Callable[..., None]) -> None:
    needs(ApiKey.LIST_CONFIG_RESOURCES)
    create([name])
    listed = admin.list_config_resources(["topic"])
    assert (TOPIC, name) in listed
    assert {each.type for each in listed} == {TOPIC}


def test_resources_have_readable_names() -> None:
    assert str(ConfigResource(BROKER, "")) == "the brokers' defaults"
    assert str(ConfigResource("client_metrics", "m")) == "client metrics m"
    assert ConfigResource(ConfigResourceType.CLIENT_METRICS, "m").type_name == "client_metrics"


def test_many_resources_are_described_in_several_requests(scripted: Any, node: FakeNode) -> None:
    names = [f"topic-{number}" for number in range(RESOURCES_PER_REQUEST + 1)]
    node.handlers[DescribeConfigsRequest] = lambda request, version: DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                error_code=3 * (each.resource_name == names[0]),
            )
            for each in request.resources
        ]
    )
    results = scripted.describe_configs([("topic", name) for name in names])
    assert [name for _, name in results] == names
    assert [str(each) for each in results.errors.values()] == ["topic topic-0 does not exist"]
    assert [len(each.resources) for each in node.asked_for(DescribeConfigsRequest)] == [RESOURCES_PER_REQUEST, 1]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda admin: admin.describe_configs([("planet", "mars")]), ValueError, "resources: type is 'planet'"),
        (lambda admin: admin.describe_configs(["orders"]), TypeError, "resources: a resource is ConfigResource"),
        (lambda admin: admin.describe_configs([("broker", "one")]), ValueError, "resources: the name of a broker is its id"),
        (lambda admin: admin.describe_configs([("topic", "")]), ValueError, "resources: name must not be empty"),
        (lambda admin: admin.alter_configs({("topic", "a"): {"b": object()}}), TypeError, r"changes\[.*\]\['b'\] must be"),
        (lambda admin: admin.alter_configs({("topic", "a"): "b"}), TypeError, "changes.* must be a mapping"),
        (lambda admin: admin.alter_configs({("topic", "a"): {"b": ConfigChange("add", 1)}}), ValueError, "changes.*is 'add'"),
        (lambda admin: admin.list_config_resources(["planet"]), ValueError, "types is 'planet'"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call(scripted)
