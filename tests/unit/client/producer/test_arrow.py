"""Arrow data through `send_many`: the broker stores the same bytes as from single sends."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import fields

from ottla.client.producer import asynchronous
from ottla.client.producer.arrow import record_columns
from ottla.client.producer.sync import Producer
from ottla.errors import SerializationError
from ottla.records.kernels import pack_headers
from ottla.testing import Broker

HANG_S = 60
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
kinds = st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()])
texts = st.none() | st.text(max_size=30)
text_kinds = st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
pairs = st.lists(st.tuples(st.text(max_size=9), fields), max_size=3)
rows = st.lists(
    st.tuples(texts, fields, st.none() | pairs, st.none() | st.integers(0, 5), st.none() | st.integers(0, 2**42)), max_size=20
)


def table_of(items: list[Any], value_kind: Any, key_kind: Any, headers_kind: Any) -> pa.Table:
    keys, values, headers, partitions, stamps = zip(*items, strict=True) if items else ((),) * 5
    pairs = [None if each is None else [{"key": name, "value": value} for name, value in each] for each in headers]
    if pa.types.is_map(headers_kind):
        pairs = [None if each is None else list(each) for each in headers]
    key_array = pa.array(keys, pa.string())
    return pa.table(
        {
            "value": pa.array(values, value_kind),
            "key": key_array.dictionary_encode() if pa.types.is_dictionary(key_kind) else key_array.cast(key_kind),
            "headers": pa.array(pairs, headers_kind),
            "partition": pa.array(partitions, pa.int32()),
            "timestamp": pa.array(stamps, pa.timestamp("ms")),
        }
    )


@given(
    rows,
    kinds,
    text_kinds,
    st.sampled_from([HEADERS, pa.large_list(HEADERS.value_type), pa.map_(pa.string(), pa.binary())]),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_every_layout_and_slice_has_the_records(
    items: list[Any], value_kind: Any, key_kind: Any, headers_kind: Any, skipped: int, fewer: int
) -> None:
    table = table_of(items, value_kind, key_kind, headers_kind)
    part = table.slice(skipped, max(0, len(items) - skipped - fewer))
    expected = [
        (
            -1 if partition is None else partition,
            7 if stamp is None else stamp,
            None if key is None else key.encode(),
            value,
            pack_headers(headers or ()),
        )
        for key, value, headers, partition, stamp in items[skipped : skipped + part.num_rows]
    ]
    found = []
    for batch in part.to_batches():
        columns = record_columns(batch)
        found += [columns.record(row, -1, 7) for row in range(columns.rows)]
    assert found == expected


def stored(broker: Broker, count: int) -> list[Any]:
    records = broker.await_records("t", count, timeout=HANG_S)
    return sorted((each.partition, each.timestamp, each.key, each.value, tuple(each.headers)) for each in records)


def test_a_table_is_stored_like_single_sends(broker: Broker) -> None:
    count = 5_000
    values = [b"%d" % number * (number % 40) for number in range(count)]
    keys = [None if number % 7 == 0 else f"key-{number % 90}" for number in range(count)]
    headers = [[("n", b"%d" % number)] * (number % 3) for number in range(count)]
    table = pa.table(
        {
            "value": values,
            "key": keys,
            "headers": pa.array([[{"key": key, "value": value} for key, value in each] for each in headers], HEADERS),
            "timestamp": pa.array([1_000 + number for number in range(count)], pa.int64()),
            "partition": pa.array([1 if key is None else None for key in keys]),
        }
    )
    with Producer(broker.bootstrap_servers, batch_size=2_000, buffer_memory=50_000) as producer:
        deliveries = producer.send_many("t", pa.concat_tables([table[:1_000], table[1_000:]]))
        assert deliveries.wait(HANG_S) == count
        assert producer._core.accumulator.memory.used == 0
        results = deliveries.result()
    many = stored(broker, count)
    assert [each.timestamp for each in results] == [1_000 + number for number in range(count)]
    by_place = {(each.partition, each.offset): number for number, each in enumerate(results)}
    for record in broker.await_records("t", count, timeout=HANG_S):
        assert record.value == values[by_place[record.partition, record.offset]]
    broker.delete_topic("t")
    broker.create_topic("t", partitions=3)
    with Producer(broker.bootstrap_servers, key_serializer="str") as producer:
        for number in range(count):
            partition = 1 if keys[number] is None else None
            producer.send(
                "t", values[number], keys[number], partition=partition, timestamp=1_000 + number, headers=headers[number]
            )
    assert stored(broker, count) == many


def test_arrays_batches_readers_and_foreign_data(broker: Broker) -> None:
    class Foreign:
        def __init__(self, table: pa.Table) -> None:
            self._table = table

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
            return self._table.__arrow_c_stream__(requested_schema)

    batch = pa.record_batch({"value": pa.array([b"b"]), "key": pa.nulls(1)})
    with Producer(broker.bootstrap_servers) as producer:
        for each in (batch, pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])):
            producer.send_many("t", each, partition=0)
        producer.send_many("t", pa.array(["a", None]), pa.chunked_array([["k"], ["l"]]), partition=1, timestamp=5)
        producer.send_many("t", Foreign(pa.table({"value": ["f"], "offset": [3], "topic": ["old"]})), partition=2)
        assert len(producer.send_many("t", batch.slice(0, 0))) == 0
    found = stored(broker, 6)
    assert [(partition, value) for partition, _, _, value, _ in found] == [
        (0, b"b"),
        (0, b"b"),
        (0, b"b"),
        (1, b"a"),
        (1, None),
        (2, b"f"),
    ]
    assert [record[1] for record in found if record[0] == 1] == [5, 5]


def test_asyncio_and_serializers(broker: Broker) -> None:
    table = pa.table(
        {
            "value": pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])),
            "key": ["x", "y"],
            "headers": pa.array([[{"key": "h", "value": b"v"}], None], HEADERS),
            "timestamp": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
        }
    )

    async def run() -> list[Any]:
        servers = broker.bootstrap_servers
        async with asynchronous.Producer(servers, value_serializer="json", key_serializer="str") as producer:
            return list(await (await producer.send_many("t", table, partition=0, timestamp=4)))

    assert [(each.offset, each.timestamp) for each in asyncio.run(run())] == [(0, 1_704_067_200_000), (1, 4)]
    assert [record[2:] for record in stored(broker, 2)] == [(b"y", None, ()), (b"x", b'{"a":1}', (("h", b"v"),))]


@pytest.mark.parametrize(
    ("columns", "kind", "says"),
    [
        ({"values": [b"a"]}, ValueError, "knows no column values"),
        ({"partition": [1]}, ValueError, "needs a column that is called value or key"),
        ({"value": [1.5]}, TypeError, "column value is double"),
        ({"value": [b"a"], "partition": ["1"]}, TypeError, "column partition is string: it must be integers"),
        ({"value": [b"a"], "timestamp": [1.5]}, TypeError, "column timestamp is double"),
        ({"value": [b"a"], "headers": [["h"]]}, TypeError, "must hold structs of key and value"),
        ({"value": [b"a"], "headers": ["h"]}, TypeError, "list of structs of key and value, or a map"),
        ({"value": [b"a", b"b"], "partition": [0, 3]}, ValueError, "has no partition 3"),
        ({"value": [b"a", b"b"], "partition": [0, -1]}, ValueError, "row 1: its partition is negative"),
        ({"value": [b"a", b"b"], "timestamp": [0, -1]}, ValueError, "row 1: its timestamp is negative"),
    ],
)
def test_wrong_columns_are_named(broker: Broker, columns: dict[str, Any], kind: type[Exception], says: str) -> None:
    with Producer(broker.bootstrap_servers) as producer, pytest.raises(kind, match=says):
        producer.send_many("t", pa.table(columns))


def test_wrong_pairs_of_arrays_are_refused(broker: Broker) -> None:
    values = pa.array([b"a"])
    with Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(ValueError, match="1 values and 2 keys"):
            producer.send_many("t", values, pa.array([b"k", b"l"]))
        with pytest.raises(TypeError, match="the keys are list"):
            producer.send_many("t", values, [b"k"])
        with pytest.raises(TypeError, match="the values are list"):
            producer.send_many("t", [b"a"], values)
        with pytest.raises(ValueError, match="a column of the table that is called key"):
            producer.send_many("t", pa.table({"value": values}), values)
    with Producer(broker.bootstrap_servers, value_serializer="int") as producer, pytest.raises(SerializationError):
        producer.send_many("t", pa.table({"value": ["text"]}))
