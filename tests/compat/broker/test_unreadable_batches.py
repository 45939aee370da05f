"""Compressed batches that nobody can read are refused, so that consumers of every library pass them."""

from random import Random

import pytest
from tests.support.hostile.hostile_requests import make_crc_right
from tests.support.logs.batches import make_batch
from tests.support.peers.clients import CLIENTS, ConsumerOptions
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer

from ottla.records.compression import Codec, compress
from ottla.records.layout import COUNT_AT, HEADER_SIZE, LAST_OFFSET_DELTA_AT
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CODECS = [codec for codec in Codec if codec is not Codec.NONE]


def code_of(client: RawClient, topic: str, records: bytes) -> int:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    answer = client.request(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def with_payload(codec: Codec, payload: bytes) -> bytes:
    batch = make_batch(b"value", codec=codec)[:HEADER_SIZE] + payload
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    make_crc_right(batch)
    return bytes(batch)


def with_count(codec: Codec, count: int) -> bytes:
    batch = make_batch(b"value", codec=codec)
    batch[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4] = (count - 1).to_bytes(4, "big")
    batch[COUNT_AT : COUNT_AT + 4] = count.to_bytes(4, "big")
    make_crc_right(batch)
    return bytes(batch)


@pytest.mark.parametrize("codec", CODECS)
def test_consumers_read_on_after_somebody_has_sent_what_nobody_can_read(cluster: KafkaServer, topic: str, codec: Codec) -> None:
    make_topic(cluster.bootstrap, topic)
    chance = Random(codec)
    unreadable = [
        with_payload(codec, chance.randbytes(3000)),
        with_payload(codec, bytes(compress(codec, b"these are no records, " * 99))),
        with_payload(codec, bytes(compress(codec, chance.randbytes(9000)))[:-500]),
        with_count(codec, 2),
        with_count(codec, 2**31 - 1),
    ]
    with RawClient.to(cluster.bootstrap) as client:
        for number, records in enumerate(unreadable):
            assert code_of(client, topic, bytes(make_batch(b"%d" % number, codec=codec))) == 0
            assert code_of(client, topic, records) != 0
    for reader in CLIENTS.values():
        rows = reader().consume(cluster.bootstrap, topic, [0], -2, len(unreadable), ConsumerOptions())
        assert [(row.offset, row.value) for row in rows] == [(number, b"%d" % number) for number in range(len(unreadable))]
