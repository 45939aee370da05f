"""Plain requests of and about producers get Apache Kafka's answers: InitProducerId, DescribeProducers."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

from ottla.wire.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NOW_MS = int(time.time() * 1000)
UNKNOWN_PARTITION, LOADING, INVALID_TOPIC, INVALID_REQUEST = 3, 14, 17, 42


@pytest.fixture
def raw(cluster: KafkaServer) -> Iterator[RawClient]:
    with RawClient.to(cluster.bootstrap) as client:
        yield client


def init(raw: RawClient, version: int = 5, **fields: object) -> tuple[int, int, int]:
    """(error code, producer id, epoch). Retries while the broker has no ids yet, as Apache has none at first."""
    answers: list[InitProducerIdResponse] = []

    def is_answered() -> bool:
        request = InitProducerIdRequest(transaction_timeout_ms=1000, **{"transactional_id": None, **fields})  # type: ignore[arg-type]
        answers.append(raw.request(request, version))
        return answers[-1].error_code != LOADING

    await_true(is_answered, "producer ids")
    return answers[-1].error_code, answers[-1].producer_id, answers[-1].producer_epoch


def test_every_producer_gets_an_id_of_its_own(raw: RawClient) -> None:
    given = [init(raw, version) for version in range(6) for _ in range(3)]
    assert {(code, epoch) for code, _, epoch in given} == {(0, 0)}
    assert len({producer_id for _, producer_id, _ in given}) == len(given)


def test_a_producer_with_an_id_gets_another(raw: RawClient) -> None:
    _, producer_id, _ = init(raw)
    code, other_id, epoch = init(raw, producer_id=producer_id, producer_epoch=0)
    assert (code, epoch) == (0, 0)
    assert other_id != producer_id


def test_init_producer_id_refusals(raw: RawClient) -> None:
    assert init(raw, producer_id=5) == init(raw, producer_epoch=5) == (INVALID_REQUEST, -1, -1)
    assert init(raw, transactional_id="") == (INVALID_REQUEST, -1, -1)


def test_blocks_of_ids_are_never_given_twice(start_server: StartServer, tmp_path: Path) -> None:
    """Over a kill and a clean shutdown: the rest of a block is lost."""
    given: list[int] = []
    for is_killed in (True, False, False):
        with start_server({}, data_dir=tmp_path) as server:
            with RawClient.to(server.bootstrap) as raw:
                given += [init(raw)[1] for _ in range(3)]
            if is_killed:
                server.kill()
    assert [producer_id % 1000 for producer_id in given] == [0, 1, 2] * 3
    assert len(set(given)) == 9


def describe(raw: RawClient, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    [described] = raw.request(request, 0).topics
    partitions: list[PartitionResponse] = described.partitions
    return partitions


def test_describe_producers(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, partitions=2)
    _, producer_id, _ = init(raw)
    for sequence, timestamp in ((0, NOW_MS), (2, NOW_MS + 50)):
        batch = bytes(make_batch(b"a", b"b", timestamp=timestamp, producer=(producer_id, 0, sequence)))
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        response = raw.request(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
    with_one, without, unknown = describe(raw, topic, 0, 1, 7)
    [found] = with_one.active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (producer_id, 0, 3)
    assert (found.last_timestamp, found.coordinator_epoch, found.current_txn_start_offset) == (NOW_MS + 51, -1, -1)
    assert (without.error_code, without.active_producers) == (0, [])
    assert (unknown.error_code, unknown.active_producers) == (UNKNOWN_PARTITION, [])


@pytest.mark.parametrize(
    ("name", "code"),
    [("no-such-topic", UNKNOWN_PARTITION), ("bad name", INVALID_TOPIC), ("", INVALID_TOPIC), ("x" * 300, INVALID_TOPIC)],
)
def test_describe_producers_refusals(raw: RawClient, name: str, code: int) -> None:
    [refused] = describe(raw, name, 0)
    assert (refused.error_code, refused.active_producers) == (code, [])
    assert refused.error_message
