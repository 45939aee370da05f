"""Settings described and changed on Apache Kafka 4.3.0 and on an Ottla node with the same file: the same answers.

Apache's server is started once; the Ottla node is only its settings and its controller.
"""

import time
from collections.abc import Iterator

import pytest
from tests.support.cases.config_cases import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    INCREMENTAL,
    INVALID_REQUEST,
    LEGACY,
    NONE,
    SET,
    TOPIC,
    Case,
    incremental_request,
    legacy_request,
)
from tests.support.cases.config_views import describe_request, entries
from tests.support.nodes.config_node import ConfigNode
from tests.support.peers.raw_client import RawClient
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S

from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest

pytestmark = pytest.mark.slow  # a start of Apache Kafka; test_config_live.py checks Ottla against the same codes

FILE = {
    "log.retention.hours": "5",
    "log.roll.ms": "7000",
    "log.flush.scheduler.interval.ms": "60000",
    "compression.type": "gzip ",
    "max.connections": "1000",
    "listener.name.controller.max.connections": "500",
    "log.initial.task.delay.ms": "100",
    "ssl.key.password": "hunter2",
    "my.own.setting": "1",
    "group.consumer.session.timeout.ms": "46000",
    "log.cleaner.min.cleanable.ratio": "1e-1",
    "metric.reporters": "",
}
CHANGES = [
    Case(NONE, TOPIC, "t", [("retention.ms", SET, "77"), ("cleanup.policy", SET, "compact, delete,compact")]),
    Case(NONE, TOPIC, "u", [("internal.segment.bytes", SET, "1000000")]),
    Case(NONE, BROKER, "", [("log.retention.ms", SET, "9"), ("max.connections", SET, "2000"), ("someones.setting", SET, "x")]),
    Case(NONE, BROKER, "1", [("max.connections", SET, "1500"), ("log.cleaner.threads", SET, "2"), ("my.other", SET, "x")]),
    Case(NONE, GROUP, "g", [("consumer.session.timeout.ms", SET, "50000"), ("share.auto.offset.reset", SET, "earliest")]),
    Case(NONE, CLIENT_METRICS, "m", [("interval.ms", SET, " 1000 "), ("match", SET, "client_id=a, client_source_port=1")]),
]  # fmt: skip
MORE_CHANGES = [
    Case(NONE, BROKER, "", [("log.flush.interval.ms", SET, "100"), ("leader.replication.throttled.rate", SET, "5")]),
    Case(NONE, BROKER, "1", [("listener.name.plaintext.max.connections", SET, "600"), ("message.max.bytes", SET, "2000")]),
    Case(NONE, TOPIC, "t", [("retention.ms", DELETE, None), ("compression.type", SET, "lz4")]),
]
RESOURCES = [
    (TOPIC, "t"), (TOPIC, "u"), (BROKER, "1"), (BROKER, ""), (GROUP, "g"), (GROUP, "nobody"), (CLIENT_METRICS, "m"),
    (CLIENT_METRICS, "n"),
]  # fmt: skip


@pytest.fixture(scope="module")
def apache(apache_kafka: ApacheKafka) -> Iterator[tuple[RawClient, ConfigNode]]:
    """A client of Apache's server, and an Ottla node with the same file."""
    with apache_kafka.start_server(FILE) as server, RawClient.to(server.bootstrap) as client:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("t", "u")]
        client.request(CreateTopicsRequest(topics=topics, timeout_ms=30_000), version=7)
        yield client, ConfigNode({name: str(value) for name, value in server.properties.items()})


@pytest.mark.parametrize("case", INCREMENTAL, ids=str)
def test_codes_of_incremental_changes(apache: tuple[RawClient, ConfigNode], case: Case) -> None:
    (entry,) = apache[0].request(incremental_request(case), version=1).responses
    assert entry.error_code == case.code, entry.error_message
    assert (entry.error_message is None) == (case.code == NONE)


@pytest.mark.parametrize("case", LEGACY, ids=str)
def test_codes_of_changes_of_the_older_kind(apache: tuple[RawClient, ConfigNode], case: Case) -> None:
    (entry,) = apache[0].request(legacy_request(case), version=2).responses
    assert entry.error_code == case.code, entry.error_message


def test_described_alike_before_and_after_changes(apache: tuple[RawClient, ConfigNode]) -> None:
    client, node = apache
    compare_all(client, node)
    for changes in (CHANGES, MORE_CHANGES):
        for asked in (
            client.request(incremental_request(*changes, validate_only=False), version=1),
            node.ask(incremental_request(*changes, validate_only=False)),
        ):
            assert [entry.error_code for entry in asked.responses] == [NONE] * len(changes)
        deadline = time.monotonic() + HANG_S
        while not is_applied(client, changes):
            assert time.monotonic() < deadline, f"Apache Kafka did not apply {changes} within {HANG_S} s"
            time.sleep(0.05)
        compare_all(client, node)


def is_applied(client: RawClient, changes: list[Case]) -> bool:
    """Whether Apache's broker, which answers before it has applied a change, shows them all."""
    for case in changes:
        shown = entries(client.request(describe_request(case.type, case.name), version=4))
        for name, operation, _value in case.changes:
            own = {TOPIC: 1, GROUP: 8, CLIENT_METRICS: 7}.get(case.type, 2 if case.name else 3)
            is_set = name in shown and any(source == own for _, _, source in shown[name]["synonyms"])
            if is_set != (operation == SET):
                return False
    return True


def compare_all(client: RawClient, node: ConfigNode) -> None:
    for type_, name in RESOURCES:
        for synonyms in (True, False):
            request = describe_request(type_, name, synonyms=synonyms)
            theirs, ours = entries(client.request(request, version=4)), entries(node.ask(request))
            assert sorted(ours) == sorted(theirs), (type_, name)
            different = {key: (ours[key], theirs[key]) for key in theirs if ours[key] != theirs[key]}
            assert different == {}, (type_, name)


def test_documented_alike(apache: tuple[RawClient, ConfigNode]) -> None:
    client, node = apache
    for type_, name in ((TOPIC, "t"), (BROKER, "1"), (GROUP, "g"), (CLIENT_METRICS, "m")):
        request = describe_request(type_, name, documentation=True)
        theirs, ours = entries(client.request(request, version=4)), entries(node.ask(request))
        missing = [key for key, entry in theirs.items() if entry["documented"] and not ours[key]["documented"]]
        assert [key for key in missing if not key.startswith("share.")] == []


def test_chosen_settings_and_loggers(apache: tuple[RawClient, ConfigNode]) -> None:
    client, node = apache
    for request in (
        describe_request(TOPIC, "t", ["retention.ms", "no.such.thing"]),
        describe_request(BROKER, "1", ["log.dirs", "my.own.setting", "unstable.api.versions.enable"]),
    ):
        assert entries(node.ask(request)) == entries(client.request(request, version=4))
    request = describe_request(BROKER_LOGGER, "1", ["root"])
    assert entries(node.ask(request))["root"] | {"value": ""} == entries(client.request(request, version=4))["root"] | {
        "value": ""
    }


@pytest.mark.parametrize(
    ("type_", "name"),
    [(TOPIC, "nowhere"), (TOPIC, "no such/topic"), (TOPIC, ""), (BROKER, "2"), (BROKER, "x"), (BROKER_LOGGER, ""),
     (BROKER_LOGGER, "2"), (GROUP, ""), (CLIENT_METRICS, ""), (3, "x")],
)  # fmt: skip
def test_codes_of_descriptions(apache: tuple[RawClient, ConfigNode], type_: int, name: str) -> None:
    client, node = apache
    request = describe_request(type_, name)
    (theirs,), (ours,) = client.request(request, version=4).results, node.ask(request).results
    assert (ours.error_code, ours.resource_type, ours.resource_name, ours.configs) == (
        theirs.error_code,
        theirs.resource_type,
        theirs.resource_name,
        theirs.configs,
    )


@pytest.mark.parametrize("types", [[], [TOPIC], [GROUP, CLIENT_METRICS], [BROKER, BROKER_LOGGER], [3], [CLIENT_METRICS] * 2])
def test_listed_alike(apache: tuple[RawClient, ConfigNode], types: list[int]) -> None:
    client, node = apache
    for version in (0, 1):
        request = ListConfigResourcesRequest(resource_types=types if version else [])
        theirs, ours = client.request(request, version), node.ask(request, version)
        assert ours.error_code == theirs.error_code
        assert [(each.resource_type, each.resource_name) for each in ours.config_resources] == [
            (each.resource_type, each.resource_name) for each in theirs.config_resources
        ]


def test_repeated_resources(apache: tuple[RawClient, ConfigNode]) -> None:
    case, other = Case(NONE, TOPIC, "t", [("retention.ms", SET, "5")]), Case(NONE, GROUP, "g", [])
    response = apache[0].request(incremental_request(case, other, case), version=1)
    assert [entry.error_code for entry in response.responses] == [INVALID_REQUEST, NONE, INVALID_REQUEST]
