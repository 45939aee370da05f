"""Records sent by real clients arrive as they were sent: keys, values, headers, timestamps, in order, with all settings."""

import pytest
from tests.support.peers.clients import (
    CLIENTS,
    CODECS,
    CREATE_TIME,
    LOG_APPEND_TIME,
    ClientLibrary,
    ConsumerOptions,
    Headers,
    Incoming,
    Outgoing,
    ProducerOptions,
    Receipt,
)
from tests.support.peers.topics import await_true, describe_topic, make_topic
from tests.support.servers.kafka_server import KafkaServer

JUNE_2020_MS = 1_592_000_000_000


@pytest.fixture(params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> ClientLibrary:
    return CLIENTS[request.param]()


def read_all(client: ClientLibrary, cluster: KafkaServer, topic: str, count: int, partition: int = 0) -> list[Incoming]:
    return client.consume(cluster.bootstrap, topic, [partition], -2, count, ConsumerOptions())


def numbered(count: int, size_bytes: int = 10) -> list[Outgoing]:
    return [Outgoing(b"%0*d" % (size_bytes, number), partition=0) for number in range(count)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(cluster: KafkaServer, topic: str, client: ClientLibrary, acks: int | str) -> None:
    make_topic(cluster.bootstrap, topic)
    sent = numbered(50)
    outcomes = client.produce(cluster.bootstrap, topic, sent, ProducerOptions(acks=acks))
    if acks != 0:
        assert outcomes == [Receipt(0, offset) for offset in range(50)]
    rows = read_all(client, cluster, topic, 50)
    assert [(row.offset, row.value) for row in rows] == [(number, sent[number].value) for number in range(50)]


def test_idempotent(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic)
    options = ProducerOptions(idempotent=True, batch_bytes=2000)
    assert client.produce(cluster.bootstrap, topic, numbered(500), options) == [Receipt(0, at) for at in range(500)]
    assert [row.value for row in read_all(client, cluster, topic, 500)] == [b"%010d" % number for number in range(500)]


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(cluster: KafkaServer, topic: str, client: ClientLibrary, codec: str) -> None:
    make_topic(cluster.bootstrap, topic)
    sent = [Outgoing(b"value %d " % number * 40, key=b"key", partition=0) for number in range(200)]
    outcomes = client.produce(cluster.bootstrap, topic, sent, ProducerOptions(codec=codec))
    assert outcomes == [Receipt(0, offset) for offset in range(200)]
    for reader in CLIENTS.values():
        rows = read_all(reader(), cluster, topic, 200)
        assert [(row.key, row.value) for row in rows] == [(record.key, record.value) for record in sent]


def test_headers_nulls_and_timestamps(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic)
    null_header: Headers = (("null", None),) if client.name != "kafka-python" else ()  # this client refuses to send them
    last_headers = (("empty", b""), *null_header)
    sent = [
        Outgoing(
            b"v", key=b"k", partition=0, timestamp_ms=JUNE_2020_MS, headers=(("a", b"1"), ("a", b"2"), ("é", b"\x00\xff"))
        ),
        Outgoing(b"no key", partition=0, timestamp_ms=JUNE_2020_MS + 5),
        Outgoing(None, key=b"no value", partition=0, timestamp_ms=JUNE_2020_MS - 7),
        Outgoing(b"", key=b"", partition=0, timestamp_ms=JUNE_2020_MS + 1, headers=last_headers),
    ]
    outcomes = client.produce(cluster.bootstrap, topic, sent, ProducerOptions())
    assert outcomes == [Receipt(0, offset) for offset in range(4)]
    rows = read_all(client, cluster, topic, 4)
    assert rows == [
        Incoming(0, offset, each.value, each.key, each.timestamp_ms or 0, CREATE_TIME, each.headers)
        for offset, each in enumerate(sent)
    ]


def test_many_batches(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, 2)
    sent = [Outgoing(b"%050d" % number, partition=number % 2) for number in range(4000)]
    outcomes = client.produce(cluster.bootstrap, topic, sent, ProducerOptions(batch_bytes=1000))
    assert outcomes == [Receipt(number % 2, number // 2) for number in range(4000)]
    for partition in (0, 1):
        values = [row.value for row in read_all(client, cluster, topic, 2000, partition)]
        assert values == [record.value for record in sent if record.partition == partition]


def test_large_record(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, configs={"max.message.bytes": 6_000_000})
    value = bytes(range(256)) * 20_000
    options = ProducerOptions(request_bytes_max=8_000_000)
    small, large = Outgoing(b"small", partition=0), Outgoing(value, partition=0)
    outcomes = client.produce(cluster.bootstrap, topic, [small, large, small], options)
    assert outcomes == [Receipt(0, 0), Receipt(0, 1), Receipt(0, 2)]
    rows = client.consume(cluster.bootstrap, topic, [0], -2, 3, ConsumerOptions(partition_bytes_max=100_000, bytes_max=100_000))
    assert [row.value for row in rows] == [b"small", value, b"small"], "a fetch returns one whole batch, even above its limits"


def test_append_time(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, configs={"message.timestamp.type": "LogAppendTime"})
    sent = [Outgoing(b"v", partition=0, timestamp_ms=JUNE_2020_MS)] * 3
    assert client.produce(cluster.bootstrap, topic, sent, ProducerOptions()) == [Receipt(0, offset) for offset in range(3)]
    rows = read_all(client, cluster, topic, 3)
    assert {row.timestamp_type for row in rows} == {LOG_APPEND_TIME}
    assert all(row.timestamp_ms > JUNE_2020_MS for row in rows)


def test_automatic_topic(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    sent = [Outgoing(b"first", key=b"k")]
    (outcome,) = client.produce(cluster.bootstrap, topic, sent, ProducerOptions())
    assert isinstance(outcome, Receipt)
    assert outcome.offset == 0
    assert len(describe_topic(cluster.bootstrap, topic).partitions) == 3, "as num.partitions says"
    assert read_all(client, cluster, topic, 1, outcome.partition)[0].value == b"first"


def test_keys_go_to_the_same_partitions_from_all_clients(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 5)
    sent = [Outgoing(b"v", key=b"key-%d" % number) for number in range(40)]
    chosen = {}
    for name, make in CLIENTS.items():
        options = ProducerOptions(partitioner="murmur2_random" if name == "confluent" else "")
        outcomes = make().produce(cluster.bootstrap, topic, sent, options)
        chosen[name] = [outcome.partition for outcome in outcomes if isinstance(outcome, Receipt)]
    assert chosen["confluent"] == chosen["kafka-python"] == chosen["aiokafka"]
    assert sorted(set(chosen["confluent"])) == [0, 1, 2, 3, 4]


def test_compression_by_the_broker(cluster: KafkaServer, topic: str, client: ClientLibrary) -> None:
    make_topic(cluster.bootstrap, topic, configs={"compression.type": "gzip"})
    sent = [Outgoing(b"a" * 1000, partition=0, timestamp_ms=JUNE_2020_MS + number) for number in range(100)]
    client.produce(cluster.bootstrap, topic, sent, ProducerOptions(linger_ms=50))
    rows = read_all(client, cluster, topic, 100)
    assert [(row.value, row.timestamp_ms) for row in rows] == [(each.value, each.timestamp_ms) for each in sent]
    folders = list(cluster.data_dir.parent.glob(f"*/{topic}-0"))
    await_true(lambda: sum(path.stat().st_size for path in folders[0].glob("*.log")) < 20_000, "the log to be small")
