"""Batches that no producer would send, sent to Apache Kafka and to Ottla: both refuse the same ones.

`records/produced/validate.py` names the exceptions: where Apache Kafka fails with UNKNOWN_SERVER_ERROR, Ottla says what is
wrong. A busy Ottla does not unpack every batch; here it has little to do.
"""

from collections.abc import Iterator
from random import Random

import pytest
from tests.support.hostile.hostile_requests import make_crc_right, random_records
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla

from ottla.records.batch import BatchView
from ottla.records.layout import HEADER_SIZE
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPICS: dict[str, dict[str, object]] = {
    "plain": {},
    "keyed": {"cleanup.policy": "compact"},
    "small": {"max.message.bytes": 1000},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "gzip": {"compression.type": "gzip"},
    "uncompressed": {"compression.type": "uncompressed"},
    "bounded": {"message.timestamp.before.max.ms": 3_600_000},
}
STUMBLED, CORRUPT, UNSUPPORTED_CODEC, INVALID_RECORD, INVALID_TIMESTAMP = -1, 2, 76, 87, 32
SAME_ENOUGH = {(UNSUPPORTED_CODEC, CORRUPT), (UNSUPPORTED_CODEC, INVALID_RECORD), (CORRUPT, INVALID_RECORD)}
"""(Apache's answer, ours) where a batch has several faults and the two check them in another order."""


@pytest.fixture(scope="module")
def servers(apache_kafka: ApacheKafka) -> Iterator[tuple[KafkaServer, KafkaServer]]:
    with apache_kafka.start_server() as apache, start_ottla() as ottla:
        for server in (apache, ottla):
            for name, settings in TOPICS.items():
                make_topic(server.bootstrap, name, configs=settings)
        yield apache, ottla


def answer(client: RawClient, topic: str, records: bytes, version: int) -> int:
    part = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[part])])
    code = client.request(request, version).responses[0].partition_responses[0].error_code
    assert isinstance(code, int)
    return code


def without_producer(records: bytes) -> bytes:
    """Without producer id: sequences depend on earlier batches, so one difference would cause others."""
    if len(records) < HEADER_SIZE or BatchView(records).producer_id == -1:
        return records
    batch = bytearray(records)
    was_right = BatchView(records).computed_crc() == BatchView(records).crc
    batch[43:57] = b"\xff" * 14
    if was_right:
        make_crc_right(batch)
    return bytes(batch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_odd_batches(seed: int, servers: tuple[KafkaServer, KafkaServer]) -> None:
    random = Random(seed)
    apache, ottla = (RawClient.to(server.bootstrap) for server in servers)
    accepted = refused = 0
    wrong = []
    with apache, ottla:
        for number in range(400):
            topic, version = random.choice(list(TOPICS)), random.randint(3, 12)
            made = random_records(random)
            if made is None:
                continue  # Apache Kafka never replies to null records
            records = without_producer(made)
            theirs, ours = answer(apache, topic, records, version), answer(ottla, topic, records, version)
            accepted += ours == 0
            refused += ours != 0
            is_refused_alike = theirs == STUMBLED and ours != 0
            if theirs != ours and not is_refused_alike and (theirs, ours) not in SAME_ENOUGH:
                wrong.append(f"{number}: {topic} version {version}: {ours}, but Apache: {theirs}; {records[:80].hex()}")
    assert not wrong, "\n".join(wrong)
    assert accepted > 50
    assert refused > 50
