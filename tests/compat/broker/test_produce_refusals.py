"""Produce requests that a broker refuses, and their errors: through real clients, or plain requests where clients hide them."""

import pytest
from tests.support.logs.batches import make_batch
from tests.support.peers.clients import CLIENTS, ClientLibrary, ConsumerOptions, Outgoing, ProducerOptions, Receipt, Refused
from tests.support.peers.raw_client import ConnectionClosed, RawClient
from tests.support.peers.topics import describe_topic, make_topic
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

INVALID_TOPIC, MESSAGE_TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP = 17, 10, 87, 32
CORRUPT_MESSAGE, UNKNOWN_TOPIC, INVALID_ACKS, INVALID_REQUEST, UNSUPPORTED_CODEC = 2, 3, 21, 42, 76
UNKNOWN_TOPIC_ID, TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 100, 53


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> ClientLibrary:
    return CLIENTS[request.param]()


def produce_request(topic: str, records: bytes | None, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def produce_code(cluster: KafkaServer, request: ProduceRequest, version: int = 9) -> int:
    with RawClient.to(cluster.bootstrap) as raw:
        (topic,) = raw.request(request, version).responses
    return int(topic.partition_responses[0].error_code)


def test_too_large_for_the_topic(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, configs={"max.message.bytes": 2000})
    sent = [Outgoing(b"x" * 100, partition=0), Outgoing(b"x" * 5000, partition=0)]
    options = ProducerOptions(linger_ms=0, batch_bytes=1000)
    outcomes = [client.produce(cluster.bootstrap, topic, [record], options)[0] for record in (*sent, sent[0])]
    assert outcomes == [Receipt(0, 0), Refused(MESSAGE_TOO_LARGE), Receipt(0, 1)]
    rows = client.consume(cluster.bootstrap, topic, [0], -2, 2, ConsumerOptions())
    assert [row.value for row in rows] == [sent[0].value] * 2, "the refused record left no trace"


def test_compacted_topic_refuses_records_without_keys(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, configs={"cleanup.policy": "compact"})
    (without,) = client.produce(cluster.bootstrap, topic, [Outgoing(b"v", partition=0)], ProducerOptions())
    (with_key,) = client.produce(cluster.bootstrap, topic, [Outgoing(b"v", key=b"k", partition=0)], ProducerOptions())
    assert without == Refused(-1 if client.name == "aiokafka" else INVALID_RECORD), "aiokafka does not know that code"
    assert with_key == Receipt(0, 0)


def test_compacted_topic_names_the_records_without_keys(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, configs={"cleanup.policy": "compact"})
    with RawClient.to(cluster.bootstrap) as raw:
        response = raw.request(produce_request(topic, bytes(make_batch(b"one", b"two", b"three"))), 9)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == INVALID_RECORD
    assert answer.error_message
    assert [error.batch_index for error in answer.record_errors] == [0, 1, 2]
    assert answer.base_offset == -1


def test_timestamps_out_of_bounds(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, configs={"message.timestamp.before.max.ms": 60_000})
    (old,) = client.produce(cluster.bootstrap, topic, [Outgoing(b"v", partition=0, timestamp_ms=1000)], ProducerOptions())
    (new,) = client.produce(cluster.bootstrap, topic, [Outgoing(b"v", partition=0)], ProducerOptions())
    assert old == Refused(INVALID_TIMESTAMP)
    assert new == Receipt(0, 0)


def test_invalid_topic_name(cluster: KafkaServer) -> None:
    (outcome,) = CLIENTS["confluent"]().produce(
        cluster.bootstrap, "not/a/topic", [Outgoing(b"v", partition=0)], ProducerOptions(timeout_s=5)
    )
    assert isinstance(outcome, Refused)
    topic = describe_topic(cluster.bootstrap, "not/a/topic")
    assert topic.error_code == INVALID_TOPIC


@pytest.mark.parametrize("version", [3, 7, 9, 12])
def test_unknown_topic_and_partition(cluster: KafkaServer, topic: str, version: int) -> None:
    make_topic(cluster.bootstrap, topic, 2)
    batch = bytes(make_batch(b"v"))
    assert produce_code(cluster, produce_request(f"{topic}-none", batch), version) == UNKNOWN_TOPIC
    assert produce_code(cluster, produce_request(topic, batch, partition=2), version) == UNKNOWN_TOPIC
    assert produce_code(cluster, produce_request(topic, batch, partition=1), version) == 0


def test_unknown_topic_id(cluster: KafkaServer, topic: str) -> None:
    request = produce_request("", bytes(make_batch(b"v")))
    request.topic_data[0].topic_id = b"\x01" * 16
    assert produce_code(cluster, request, 13) == UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("acks", [2, -2, 7])
def test_other_acks(cluster: KafkaServer, topic: str, acks: int) -> None:
    make_topic(cluster.bootstrap, topic)
    assert produce_code(cluster, produce_request(topic, bytes(make_batch(b"v")), acks=acks)) == INVALID_ACKS


def test_damaged_batch(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    batch = bytearray(make_batch(b"some value"))
    batch[-3] ^= 1
    assert produce_code(cluster, produce_request(topic, bytes(batch))) == CORRUPT_MESSAGE


def test_two_batches_in_one_request(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    assert produce_code(cluster, produce_request(topic, bytes(make_batch(b"a")) + bytes(make_batch(b"b")))) == INVALID_RECORD


def test_internal_topics_are_not_for_clients(cluster: KafkaServer) -> None:
    name = "__consumer_offsets"
    if describe_topic(cluster.bootstrap, name).error_code:
        make_topic(cluster.bootstrap, name)
    assert produce_code(cluster, produce_request(name, bytes(make_batch(b"v")))) == INVALID_TOPIC


def test_error_without_acks_closes_the_connection(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    with RawClient.to(cluster.bootstrap) as raw:
        raw.send(produce_request(topic, bytes(make_batch(b"v")), acks=0), 9)
        raw.send(produce_request(f"{topic}-none", bytes(make_batch(b"v")), acks=0), 9)
        with pytest.raises(ConnectionClosed):
            raw.receive_frame()


def test_several_partitions_some_refused(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 3)
    request = produce_request(topic, bytes(make_batch(b"v")))
    request.topic_data[0].partition_data = [
        PartitionProduceData(index=index, records=bytes(make_batch(b"v"))) for index in (2, 5, 0)
    ]
    with RawClient.to(cluster.bootstrap) as raw:
        (answer,) = raw.request(request, 9).responses
    found = {part.index: (part.error_code, part.base_offset) for part in answer.partition_responses}
    assert found == {2: (0, 0), 5: (UNKNOWN_TOPIC, -1), 0: (0, 0)}


def produced(cluster: KafkaServer, topic: str, batches: dict[int, bytes], acks: int = -1) -> dict[int, tuple[int, int, int]]:
    """The response for each partition: error code, base offset, log start offset."""
    request = produce_request(topic, None, acks=acks)
    request.topic_data[0].partition_data = [PartitionProduceData(index=index, records=data) for index, data in batches.items()]
    with RawClient.to(cluster.bootstrap) as raw:
        (answer,) = raw.request(request, 9).responses
    return {part.index: (part.error_code, part.base_offset, part.log_start_offset) for part in answer.partition_responses}


OF_A_TRANSACTION = bytes(make_batch(b"t", producer=(1, 0, 0), transactional=True))


@pytest.mark.parametrize("place", [1, 7], ids=["of a partition", "of no partition"])
@pytest.mark.parametrize("acks", [-1, 5])
def test_a_transaction_without_id_refuses_the_whole_request(cluster: KafkaServer, topic: str, acks: int, place: int) -> None:
    make_topic(cluster.bootstrap, topic, 3)
    whole = bytes(make_batch(b"v"))
    refused = (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1, -1)
    assert produced(cluster, topic, {0: whole, place: OF_A_TRANSACTION, 2: whole}, acks) == {
        0: refused,
        place: refused,
        2: refused,
    }
    assert produced(cluster, topic, {0: whole, 2: whole}) == {0: (0, 0, 0), 2: (0, 0, 0)}, "nothing was appended before"


def test_malformed_transactional_batch_refuses_only_its_partition(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 3)
    whole = bytes(make_batch(b"v"))
    batches = {0: whole, 1: OF_A_TRANSACTION[:66], 2: whole + OF_A_TRANSACTION}
    expected = {0: (0, 0, 0), 1: (INVALID_RECORD, -1, -1), 2: (INVALID_RECORD, -1, -1)}
    assert produced(cluster, topic, batches) == expected


def test_malformed_batch_is_refused_before_invalid_acks(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 3)
    whole = bytes(make_batch(b"v"))
    damaged = bytearray(whole)
    damaged[-3] ^= 1
    expected = {0: INVALID_ACKS, 1: INVALID_RECORD, 2: INVALID_ACKS, 7: UNKNOWN_TOPIC}
    found = produced(cluster, topic, {0: whole, 1: whole + whole, 2: bytes(damaged), 7: whole}, acks=2)
    assert found == {index: (code, -1, -1) for index, code in expected.items()}
