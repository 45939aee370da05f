"""Quotas of Apache Kafka: Ottla's clients wait as the broker says, lose nothing, and show how long they waited in metrics."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S, KafkaServer

from ottla import Admin
from ottla.client.admin.quotas import QuotaEntity

pytestmark = pytest.mark.slow
BYTES_PER_S = 20_000
RECORDS = [b"%04d" % index + b"x" * 996 for index in range(80)]


@pytest.fixture(scope="module")
def broker(apache_kafka: ApacheKafka) -> Iterator[KafkaServer]:
    """A broker that measures over 2 s instead of 11, with quotas for the clients that have one in their id."""
    with apache_kafka.start_server({"quota.window.num": 2, "quota.window.size.seconds": 1}) as server:
        with Admin(server.bootstrap) as admin:
            for side in ("producer", "consumer"):
                admin.alter_client_quotas(
                    {QuotaEntity(client_id=f"limited-{side}"): {f"{side}_byte_rate": BYTES_PER_S}}
                ).raise_first()
            await_true(lambda: len(admin.describe_client_quotas()) == 2, "the quotas")
        yield server


def throttle_ms(client: Any, group: str, name: str) -> float:
    """The longest time that a broker has held the client back; 0 if there was none in the last minute."""
    value = float(client.metrics()[group][f"{name}-throttle-time-max"])
    return 0.0 if math.isnan(value) else value


def test_producer_waits_for_its_quota(broker: KafkaServer, face: Faces, topic: str) -> None:
    make_topic(broker.bootstrap, topic)
    limited = face.producer(broker.bootstrap, client_id="limited-producer", linger_ms=0, batch_size=5000)
    free = face.producer(broker.bootstrap, client_id="free")
    sent = [limited.send(topic, value, partition=0) for value in RECORDS]
    free.send(topic, b"free").result(HANG_S)
    assert throttle_ms(free, "producer-metrics", "produce") == 0
    assert sorted(each.result(HANG_S).offset for each in sent) == [each.result(HANG_S).offset for each in sent]
    assert throttle_ms(limited, "producer-metrics", "produce") > 0
    consumer = face.consumer(broker.bootstrap, auto_offset_reset="earliest")
    consumer.assign((topic, 0))
    found: list[bytes] = []
    while len(found) <= len(RECORDS):
        found += [record.value for record in consumer.poll(1.0)]
    assert [value for value in found if value != b"free"] == RECORDS


def test_consumer_waits_for_its_quota(broker: KafkaServer, face: Faces, topic: str) -> None:
    make_topic(broker.bootstrap, topic)
    # Batches that fit into the quota: Kafka never hands out a larger one.
    producer = face.producer(broker.bootstrap, client_id="free", batch_size=5000)
    for value in RECORDS:
        producer.send(topic, value, partition=0)
    producer.flush()
    small = {"max_partition_fetch_bytes": 10_000, "fetch_max_bytes": 10_000}
    limited = face.consumer(broker.bootstrap, client_id="limited-consumer", auto_offset_reset="earliest", **small)
    limited.assign((topic, 0))
    found: list[bytes] = []
    while len(found) < len(RECORDS):
        found += [record.value for record in limited.poll(1.0)]
    assert found == RECORDS
    assert throttle_ms(limited, "consumer-fetch-manager-metrics", "fetch") > 0
