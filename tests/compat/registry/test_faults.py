"""Registries beside each other, lost answers, killed leaders, lost records: ids are never shared, every answer holds."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from tests.support.cases.registry_load import RegistryLoad, check_answers, numbered_schema
from tests.support.servers.kafka_server import HANG_S

from ottla import Producer
from ottla.config.client import admin_settings
from ottla.registry.errors import RegistryError
from ottla.registry.records import TOPIC
from ottla.registry.server import RegistryThread
from ottla.schemas import RegistryRefusedError, SchemaRegistry
from ottla.testing import Broker, Cluster

LEVEL = {"compatibility": "NONE"}


@contextmanager
def registries(servers: str, count: int) -> Iterator[list[str]]:
    """Registries beside each other in front of one cluster."""
    with ExitStack() as closing:
        threads = [RegistryThread(admin_settings(servers, config={}, keywords={})) for _ in range(count)]
        for each in threads:
            each.start()
            closing.callback(each.close)
        yield [each.url for each in threads]


def test_registries_beside_each_other_share_no_id() -> None:
    with Broker() as broker, registries(broker.bootstrap_servers, 3) as urls:
        SchemaRegistry(urls[0]).call("PUT", "/config", LEVEL)
        load = RegistryLoad(urls)
        load.grow(60)
        load.stop()
        assert not load.refusals
        check_answers(urls, load.answers)


def test_an_answer_that_was_lost_stores_a_schema_once() -> None:
    with Broker() as broker, registries(broker.bootstrap_servers, 2) as urls:
        SchemaRegistry(urls[0]).call("PUT", "/config", LEVEL)
        fault = broker.faults.lose_reply("Produce", topic=TOPIC, times=10)
        load = RegistryLoad(urls)
        fault.await_hits(10, timeout=HANG_S)
        load.grow(10)
        load.stop()
        check_answers(urls, load.answers)


def test_an_answer_is_given_only_once_a_schema_is_stored() -> None:
    with Broker() as broker, registries(broker.bootstrap_servers, 1) as (url,):
        registry = SchemaRegistry(url, timeout_s=HANG_S)
        registry.register("before", numbered_schema(1))
        fault = broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic=TOPIC, times=3)
        assert registry.register("after", numbered_schema(2)).id == 2
        assert fault.hits == 3
        refused = pytest.raises(RegistryRefusedError, match="topic _schemas cannot be written")
        with broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=TOPIC), refused:
            registry.register("never", numbered_schema(3))
        assert registry.subjects() == ["after", "before"]
        assert registry.register("again", numbered_schema(3)).id == 3


def test_a_producer_that_the_broker_has_forgotten_is_no_way_around_the_fence() -> None:
    settings = {"producer.id.expiration.ms": 200, "producer.id.expiration.check.interval.ms": 50}
    with Broker(settings) as broker, registries(broker.bootstrap_servers, 2) as urls:
        SchemaRegistry(urls[0]).call("PUT", "/config", LEVEL)
        answers = []
        for number in range(1, 6):
            load = RegistryLoad(urls)
            load.grow(8)
            load.stop()
            answers += load.answers
            time.sleep(0.4)  # longer than the broker remembers
            found = SchemaRegistry(urls[number % 2]).register("s0", numbered_schema(1000 + number))
            answers.append(("s0", found.version, found.id, 1000 + number))
        check_answers(urls, answers)


def test_records_of_others_are_passed_over() -> None:
    with Broker() as broker, registries(broker.bootstrap_servers, 1) as (url,):
        registry = SchemaRegistry(url, timeout_s=HANG_S)
        registry.register("s", numbered_schema(1))
        with Producer(broker.bootstrap_servers) as producer:
            for key in (
                b"no json",
                b"[]",
                b'{"keytype":"NOOP","magic":0}',
                b'{"keytype":"SCHEMA","magic":1}',
                b'{"keytype":"X"}',
            ):
                producer.send(TOPIC, b"{}", key=key)
            producer.flush()
            taken = {"subject": "t", "version": 1, "id": 1, "schema": '"int"', "deleted": False}
            key = b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}'
            producer.send(TOPIC, json.dumps(taken).encode(), key=key).result(HANG_S)
        assert registry.register("s2", numbered_schema(2)).id == 2
        assert registry.subjects() == ["s", "s2"]
        assert registry.schema(1).text == json.dumps(json.loads(numbered_schema(1).text), separators=(",", ":"))


def test_a_topic_that_is_made_again_is_read_again() -> None:
    with Broker() as broker, registries(broker.bootstrap_servers, 1) as (url,):
        registry = SchemaRegistry(url, timeout_s=HANG_S)
        registry.register("s", numbered_schema(1))
        broker.delete_topic(TOPIC)
        broker.create_topic(TOPIC, config={"cleanup.policy": "compact"})
        deadline = time.monotonic() + HANG_S
        while registry.subjects():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert SchemaRegistry(url, timeout_s=HANG_S).register("t", numbered_schema(2)).id == 1


def test_a_registry_reads_what_another_one_left() -> None:
    with Broker() as broker:
        answers = []
        for number in range(3):
            with registries(broker.bootstrap_servers, 1) as (url,):
                registry = SchemaRegistry(url)
                registry.call("PUT", "/config", LEVEL)
                found = registry.register("s", numbered_schema(number))
                answers.append(("s", found.version, found.id, number))
                check_answers([url], answers)


def test_a_topic_that_is_not_compacted_is_refused_with_the_command_that_mends_it() -> None:
    with Broker() as broker:
        broker.create_topic(TOPIC)
        told = r"cleanup\.policy=delete.*ottla configs alter --topic _schemas --set cleanup.policy=compact"
        with pytest.raises(RegistryError, match=told), registries(broker.bootstrap_servers, 1):
            pass


def test_a_topic_with_several_partitions_is_refused() -> None:
    with Broker() as broker:
        broker.create_topic(TOPIC, 2, config={"cleanup.policy": "compact"})
        told = "has 2 partitions, and a registry needs exactly one"
        with pytest.raises(RegistryError, match=told), registries(broker.bootstrap_servers, 1):
            pass


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_leaders_killed_between_append_and_answer(kills: int) -> None:
    """The leader stores a batch, loses the answer and is killed; the next one decides what became of it."""
    with Cluster() as cluster, registries(cluster.bootstrap_servers, 2) as urls:
        SchemaRegistry(urls[0], timeout_s=HANG_S).call("PUT", "/config", LEVEL)
        cluster.wait_until_healthy()
        load = RegistryLoad(urls)
        try:
            for _ in range(kills):
                load.grow(6)
                leader = cluster.leader(TOPIC)
                leader.faults.lose_reply("Produce", topic=TOPIC, times=1).await_hits(1, timeout=HANG_S)
                leader.kill()
                load.grow(2)
                leader.start()
                cluster.wait_until_healthy(HANG_S)
        finally:
            load.stop()
        check_answers(urls, load.answers)
        again: Any = [(subject, version, schema_id, number) for subject, version, schema_id, number in load.answers[-20:]]
        with registries(cluster.bootstrap_servers, 1) as others:  # one that reads everything from the topic
            check_answers(others, again)
