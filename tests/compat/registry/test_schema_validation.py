"""Topics that check the schema ids of records: what is taken, what is refused and how, as producers of several kinds see it."""

import http.server
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError as TheirError
from confluent_kafka import Producer as TheirProducer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvro
from confluent_kafka.schema_registry.json_schema import JSONSerializer as TheirJson
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirProtobuf
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient

from ottla import Admin, Consumer, Producer
from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.schemas import AvroSerializer, Schema, SchemaRegistry
from ottla.testing import Broker
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NONE, CORRUPT_MESSAGE, NOT_ENOUGH_REPLICAS, INVALID_CONFIG, INVALID_RECORD = 0, 2, 19, 40, 87
PAGE = Path(__file__).parents[3] / "docs" / "schema-checks.md"
CHECKED = {"confluent.value.schema.validation": True}
STRATEGY = "io.confluent.kafka.serializers.subject."
names = count()


@dataclass
class Order:
    id: int
    customer: str


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        assert broker.schema_registry_url
        yield broker


@pytest.fixture
def registry(broker: Broker) -> SchemaRegistry:
    return SchemaRegistry(broker.schema_registry_url)


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders-{next(names)}"
    broker.create_topic(name, config=CHECKED)
    return name


def marked(schema_id: int, payload: bytes = b"x") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big", signed=True) + payload


def produce(broker: Broker, topic: str, batch: bytearray, version: int = 9) -> Any:
    data = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    with RawClient.to(broker.bootstrap_servers) as raw:
        return raw.request(request, version).responses[0].partition_responses[0]


def test_confluents_serializers_write_and_others_are_refused(broker: Broker) -> None:
    client = SchemaRegistryClient({"url": broker.schema_registry_url})
    title = json.dumps({"title": "Note", "type": "object", "properties": {"text": {"type": "string"}}})
    serializers = {
        "avro": (TheirAvro(client, '{"type":"record","name":"N","fields":[{"name":"n","type":"int"}]}'), {"n": 1}),
        "json": (TheirJson(title, client), {"text": "a"}),
        "protobuf": (TheirProtobuf(Timestamp, client, {"use.deprecated.format": False}), Timestamp(seconds=1)),
    }
    producer = TheirProducer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    outcomes: dict[str, TheirError | None] = {}
    for kind, (serializer, value) in serializers.items():
        name = f"theirs-{kind}"
        broker.create_topic(name, config=CHECKED)
        data = serializer(value, SerializationContext(name, MessageField.VALUE))
        for what, sent in (("written", data), ("tombstone", None), ("plain", b"hello")):
            key = f"{kind} {what}"
            producer.produce(name, sent, b"k", on_delivery=lambda error, _, key=key: outcomes.__setitem__(key, error))
            producer.flush(30)
    assert {key: error and error.code() for key, error in outcomes.items()} == {
        f"{kind} {what}": code
        for kind in serializers
        for what, code in (("written", None), ("tombstone", None), ("plain", INVALID_RECORD))
    }


def test_the_records_at_fault_are_named(broker: Broker, topic: str, registry: SchemaRegistry) -> None:
    good = registry.register(f"{topic}-value", Schema('"string"')).id
    other = registry.register("payments-value", Schema('"long"')).id
    batch = make_batch(marked(good), b"plain", marked(other), None, marked(999_999), marked(good))
    answer = produce(broker, topic, batch)
    assert (answer.error_code, answer.base_offset) == (INVALID_RECORD, -1)
    assert {each.batch_index: each.batch_index_error_message for each in answer.record_errors} == {
        1: "its value does not begin with a schema id: write it with a serializer of a schema registry",
        2: f"its value has schema id {other}, which is registered as payments-value, and not as {topic}-value",
        4: "its value has schema id 999999, which the schema registry does not know",
    }
    assert answer.error_message.startswith(f"3 records of 6 for {topic}-0 cannot be taken: the topic checks schema ids")
    assert broker.records(topic) == []


@pytest.mark.parametrize("version", [3, 7, 8, 9, 11, 12])
def test_every_version_of_the_request(broker: Broker, topic: str, registry: SchemaRegistry, version: int) -> None:
    good = registry.register(f"{topic}-value", Schema('"string"')).id
    assert produce(broker, topic, make_batch(marked(good)), version).error_code == NONE
    refused = produce(broker, topic, make_batch(marked(good), b"plain"), version)
    assert refused.error_code == INVALID_RECORD
    assert [each.batch_index for each in refused.record_errors] == ([1] if version >= 8 else [])


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed_batches_and_large_ones(broker: Broker, topic: str, registry: SchemaRegistry, codec: Codec) -> None:
    good = registry.register(f"{topic}-value", Schema('"string"')).id
    values = [marked(good, b"x" * 50)] * 2_000
    assert produce(broker, topic, make_batch(*values, codec=codec)).error_code == NONE
    refused = produce(broker, topic, make_batch(*values, marked(good + 10_000), codec=codec))
    assert (refused.error_code, [each.batch_index for each in refused.record_errors]) == (INVALID_RECORD, [2_000])


def test_damage_is_told_before_schemas(broker: Broker, topic: str) -> None:
    batch = make_batch(b"plain")
    batch[-3] ^= 1
    assert produce(broker, topic, batch).error_code == CORRUPT_MESSAGE, "which producers send again"


def test_ids_in_headers(broker: Broker, topic: str) -> None:
    url = broker.schema_registry_url
    with Producer(broker.bootstrap_servers, value_serializer=AvroSerializer(url, Order, in_header=True)) as producer:
        assert producer.send(topic, Order(1, "Ada"), headers=[]).result(30).offset == 0
    (record,) = broker.records(topic)
    assert [name for name, _ in record.headers] == ["__value_schema_id"]
    unknown = build_produce_batch([(1, None, b"bare", (("__value_schema_id", b"\x01" + bytes(16)),))])
    answer = produce(broker, topic, unknown)
    assert "schema GUID 00000000-0000-0000-0000-000000000000, which the schema registry does not know" in answer.error_message


def test_keys_are_checked_where_that_is_on(broker: Broker, registry: SchemaRegistry) -> None:
    broker.create_topic("keyed", config={"confluent.key.schema.validation": True})
    key, value = (
        registry.register(f"keyed-{side}", Schema(f'"{kind}"')).id for side, kind in (("key", "int"), ("value", "bytes"))
    )
    assert produce(broker, "keyed", make_batch(b"any", key=marked(key))).error_code == NONE
    assert produce(broker, "keyed", make_batch(b"any")).error_code == NONE, "a record without a key"
    refused = produce(broker, "keyed", make_batch(b"any", key=marked(value)))
    assert refused.error_code == INVALID_RECORD
    assert f"its key has schema id {value}, which is registered as keyed-value, and not as keyed-key" in refused.error_message


RECORD = '{"type":"record","name":"Order","namespace":"shop","fields":[]}'
PROTO = 'syntax = "proto3"; package shop; // message No {\nmessage Order { message Line { int32 n = 1; } Line line = 1; }'


@pytest.mark.parametrize("spelling", [STRATEGY, ""])
@pytest.mark.parametrize(
    ("strategy", "subject", "schema"),
    [
        ("RecordNameStrategy", "shop.Order", Schema(RECORD)),
        ("RecordNameStrategy", "shop.Order.Line", Schema(PROTO, "PROTOBUF")),
        ("TopicRecordNameStrategy", "TOPIC-shop.Order", Schema(RECORD)),
        ("TopicRecordNameStrategy", "TOPIC-Note", Schema('{"title":"Note"}', "JSON")),
    ],
)
def test_subjects_by_the_name_of_the_record(
    broker: Broker, registry: SchemaRegistry, strategy: str, subject: str, schema: Schema, spelling: str
) -> None:
    topic = f"named-{next(names)}"
    config = {**CHECKED, "confluent.value.subject.name.strategy": spelling + strategy}
    broker.create_topic(topic, config=config)
    for each in registry.subjects():  # of the other parameters: a schema that other subjects have too
        if each == subject:
            registry.call("DELETE", f"/subjects/{each}")
    right = registry.register(subject.replace("TOPIC", topic), schema).id
    wrong = registry.register(
        f"{topic}-value", Schema(f'{{"type":"record","name":"{topic.replace("-", "_")}","fields":[]}}')
    ).id
    assert produce(broker, topic, make_batch(marked(right))).error_code == NONE
    assert produce(broker, topic, make_batch(marked(wrong))).error_code == INVALID_RECORD


def test_an_unknown_strategy_is_refused(broker: Broker) -> None:
    with pytest.raises(Exception, match=r"confluent\.value\.subject\.name\.strategy=Mine: must be one of io.confluent.kafka"):
        broker.create_topic("mine", config={"confluent.value.subject.name.strategy": "Mine"})


def test_a_schema_that_was_refused_is_taken_once_it_is_registered(broker: Broker, topic: str, registry: SchemaRegistry) -> None:
    later = registry.register("elsewhere-value", Schema('"double"'))
    assert produce(broker, topic, make_batch(marked(later.id))).error_code == INVALID_RECORD
    assert registry.register(f"{topic}-value", Schema('"double"')).id == later.id
    assert produce(broker, topic, make_batch(marked(later.id))).error_code == NONE, "at once"


def test_transactions_and_several_batches(broker: Broker, topic: str) -> None:
    url = broker.schema_registry_url
    serializer = AvroSerializer(url, Order)
    address = broker.bootstrap_servers
    producer = Producer(address, transactional_id="t", value_serializer=serializer, batch_size=200)
    producer.init_transactions()
    with producer, producer.transaction():
        for number in range(100):
            producer.send(topic, Order(number, "Ada"))
    plain = Producer(address, transactional_id="u")
    plain.init_transactions()
    with plain, pytest.raises(Exception, match="does not begin with a schema id"), plain.transaction():
        plain.send(topic, b"plain").result(30)
    with Consumer(address, group_id="g", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.subscribe([topic])
        found: list[bytes | None] = []
        while len(found) < 100:
            found += [record.value for record in consumer.poll(timeout=30)]
    assert len(found) == 100


def test_it_can_be_turned_on_and_off(broker: Broker) -> None:
    broker.create_topic("changing")
    with Admin(broker.bootstrap_servers) as admin:
        assert produce(broker, "changing", make_batch(b"plain")).error_code == NONE
        for setting, code in (("true", INVALID_RECORD), ("false", NONE)):
            admin.alter_configs({("topic", "changing"): {"confluent.value.schema.validation": setting}}).raise_first()
            assert produce(broker, "changing", make_batch(b"plain")).error_code == code


def test_the_example_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(compile(example, "schema-checks.md", "exec"), {})
    (told,) = re.findall(r"print\(refused\)  # (.*)", example)
    assert told in capsys.readouterr().out


# The registry is away, slow, or no registry


class Slow(http.server.BaseHTTPRequestHandler):
    """A registry that has schema 7 in every topic, and answers when it may."""

    may_answer = threading.Event()
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        assert self.may_answer.wait(60)
        page: object = {"schema": '"string"'}
        if self.path.endswith("/subjects"):
            page = [f"slow-{index}-value" for index in range(3)]
        found = self.path.startswith("/schemas/ids/7")
        data = json.dumps(page if found else {"error_code": 40403}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def slow() -> Iterator[http.server.ThreadingHTTPServer]:
    Slow.asked = []
    Slow.may_answer.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    Slow.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_who_waits_for_the_registry_holds_up_nobody_else(slow: http.server.ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{slow.server_port}"
    with Broker({"confluent.schema.registry.url": url}) as broker:
        broker.create_topic("slow-0", config=CHECKED)
        broker.create_topic("free")

        def request(topic: str, payload: bytes) -> ProduceRequest:
            data = PartitionProduceData(index=0, records=bytes(make_batch(marked(7, payload))))
            return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])

        with RawClient.to(broker.bootstrap_servers) as first, RawClient.to(broker.bootstrap_servers) as second:
            ids = [
                first.send(request(name, payload), 9) for name, payload in (("slow-0", b"a"), ("slow-0", b"b"), ("free", b"c"))
            ]
            while not Slow.asked:
                time.sleep(0.001)
            answer = second.request(request("free", b"d"), 9).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (NONE, 0), "before the third request of the one that waits"
            waiting = second.send(request("slow-0", b"e"), 9)
            Slow.may_answer.set()
            found = [first.receive(0, 9, each).responses[0].partition_responses[0] for each in ids]
            assert [each.error_code for each in found] == [NONE] * 3
            assert found[0].base_offset < found[1].base_offset, "in the order of the connection"
            assert second.receive(0, 9, waiting).responses[0].partition_responses[0].error_code == NONE
        assert sorted(Slow.asked) == ["/schemas/ids/7", "/schemas/ids/7/subjects"], "once, whoever waits for it"


def test_known_ids_are_taken_while_the_registry_is_away(slow: http.server.ThreadingHTTPServer) -> None:
    Slow.may_answer.set()
    url = f"http://127.0.0.1:{slow.server_port}"
    with Broker({"confluent.schema.registry.url": url}) as broker:
        broker.create_topic("slow-1", config=CHECKED)
        assert produce(broker, "slow-1", make_batch(marked(7))).error_code == NONE
        slow.shutdown()
        slow.server_close()
        assert produce(broker, "slow-1", make_batch(marked(7))).error_code == NONE
        answer = produce(broker, "slow-1", make_batch(marked(8)))
        assert answer.error_code == NOT_ENOUGH_REPLICAS, "which producers try again"
        assert url in answer.error_message
        assert "Start it, or correct confluent.schema.registry.url" in answer.error_message


def test_a_broker_without_a_registry_says_so() -> None:
    with Broker() as broker:
        broker.create_topic("orders", config=CHECKED)
        answer = produce(broker, "orders", make_batch(marked(7)))
        assert answer.error_code == INVALID_CONFIG
        assert "has no schema registry to ask: set confluent.schema.registry.url" in answer.error_message


@pytest.mark.parametrize("url", ["localhost:8081", "http://user:secret@localhost:8081"])
def test_an_address_that_is_none_stops_the_start(url: str) -> None:
    with pytest.raises(Exception, match=r"confluent.schema.registry.url must be .* a login belongs into") as refused:
        Broker({"confluent.schema.registry.url": url}).start()
    assert "secret" not in str(refused.value)
