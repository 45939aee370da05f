"""The records that `send_many` is given, before they are sent."""

import threading
from typing import Any

import pyarrow
import pytest

from ottla.client.producer import many
from ottla.client.producer.deliveries import Deliveries
from ottla.client.producer.intake import Intake, pack
from ottla.client.producer.sync import Producer
from ottla.errors import SerializationError
from ottla.testing import Broker

HANG_S = 60


@pytest.fixture
def plain() -> Any:
    with Producer("localhost:1") as producer:
        yield producer._intake


@pytest.fixture
def texts() -> Any:
    with Producer("localhost:1", value_serializer="str", key_serializer="int") as producer:
        yield producer._intake


def test_lists_are_taken_as_they_are(plain: Intake) -> None:
    (source,) = many.sources("t", plain, [b"a", b"b"], (b"k", None))
    assert source.count == 2
    assert source.record(0, -1, 5) == (-1, 5, b"k", b"a", b"\x00")
    assert source.record(1, 2, 6) == (2, 6, None, b"b", b"\x00")
    assert source.given(0) == (b"k", b"a")
    assert source.stamps(0, 5) == 5


def test_iterables_are_taken_in_chunks(plain: Intake) -> None:
    taken: list[int] = []

    def values() -> Any:
        for number in range(many.CHUNK + 1):
            taken.append(number)
            yield b"v"

    found = many.sources("t", plain, values(), None)
    assert next(found).count == many.CHUNK
    assert len(taken) == many.CHUNK
    assert [source.count for source in found] == [1]


def test_serializers_run_before_the_kernel_and_own_objects_reach_partitioners(texts: Intake) -> None:
    (source,) = many.sources("t", texts, ["a", None], [7, 8])
    assert source.record(0, -1, 5) == (-1, 5, (7).to_bytes(8, "big"), b"a", b"\x00")
    assert source.given(0) == (7, "a")


def test_each_record_has_its_own_headers(plain: Intake) -> None:
    shared = [("trace", b"1")]
    headers = [shared, shared, None, (), {"a": None}, (("a", b"b"), ("a", b"c"))]
    (source,) = many.sources("t", plain, [b"v"] * 6, None, headers)
    packed = [source.record(number, -1, 5)[4] for number in range(6)]
    expected = [shared, shared, (), (), [("a", None)], [("a", b"b"), ("a", b"c")]]
    assert packed == [pack(each) for each in expected]
    assert packed[0] is packed[1], "shared headers are packed once"


def test_headers_of_an_iterable_are_taken_in_chunks(plain: Intake) -> None:
    headers = ([("n", b"%d" % number)] for number in range(many.CHUNK + 1))
    first, second = many.sources("t", plain, (b"v" for _ in range(many.CHUNK + 1)), None, headers)
    assert first.record(0, -1, 5)[4] == pack([("n", b"0")])
    assert second.record(0, -1, 5)[4] == pack([("n", b"%d" % many.CHUNK)])
    with pytest.raises(ValueError, match=r"fewer headers than values: 1 records have both"):
        list(many.sources("t", plain, iter([b"a", b"b"]), None, [None]))


def test_serializers_get_the_headers_of_their_record() -> None:
    class Tagged:
        def serialize(self, topic: str, headers: Any, value: Any) -> bytes:
            return b"%s %d" % (value, len(headers))

    with Producer("localhost:1", value_serializer=Tagged()) as producer:
        (source,) = many.sources("t", producer._intake, [b"a", b"b"], None, [[("h", b"1"), ("h", b"2")], None])
        assert [source.record(number, -1, 5)[3] for number in range(2)] == [b"a 2", b"b 0"]


@pytest.mark.parametrize("headers", [[("trace", b"1")], (("trace", b"1"),), {"trace": b"1"}, "trace", ["trace"]])
def test_one_list_of_headers_for_all_records_is_refused(plain: Intake, headers: Any) -> None:
    with pytest.raises(TypeError, match=r"one entry for each record"):
        list(many.sources("t", plain, [b"a"], None, headers))


def test_headers_that_are_too_few_or_beside_arrow_data_are_refused(plain: Intake) -> None:
    with pytest.raises(ValueError, match=r"2 values and 1 headers"):
        many.sources("t", plain, [b"a", b"b"], None, [None])
    with pytest.raises(ValueError, match=r"column of a table that is called headers"):
        many.sources("t", plain, pyarrow.array([b"a"]), None, [None])


@pytest.mark.parametrize("keys", [[b"k"], [b"k"] * 3])
def test_lists_of_other_lengths_are_refused_before_anything_is_sent(plain: Intake, keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"2 values and \d keys"):
        many.sources("t", plain, [b"a", b"b"], keys)


def test_wrong_values_are_named(plain: Intake) -> None:
    with pytest.raises(ValueError, match="fewer keys than values: 1"):
        list(many.sources("t", plain, iter([b"a", b"b"]), iter([b"k"])))
    with pytest.raises(TypeError, match="not one bytes"):
        list(many.sources("t", plain, b"ab", None))
    with pytest.raises(TypeError, match="an iterable of values or Arrow data, not None"):
        many.sources("t", plain, None, None)
    (source,) = many.sources("t", plain, ["text"], None)
    with pytest.raises(SerializationError, match="value_serializer"):
        source.record(0, -1, 0)


def test_records_that_the_kernel_cannot_add_are_handed_to_the_caller(plain: Intake) -> None:
    deliveries = Deliveries()
    checks: list[int] = []
    source = many.sources("t", plain, [b"a", bytearray(b"b")], [b"k", None])
    waiting = many.append_all(lambda: None, source, (2, lambda: 7), deliveries, lambda: checks.append(deliveries.places.count))
    assert list(waiting) == [
        (2, (7, b"k", b"a", b"\x00"), (b"k", b"a")),
        (2, (7, None, b"b", b"\x00"), (None, bytearray(b"b"))),
    ]
    assert len(checks) == 2, "before each record it is asked whether anything can be sent"


def test_rows_have_their_own_partition_and_time(texts: Intake) -> None:
    source = many.RowSource("t", texts, [(1, 9, 7, "a", [("h", b"x")]), (None, None, None, None, None)])
    assert source.record(0, -1, 5)[:2] == (1, 9)
    assert source.record(1, -1, 5) == (-1, 5, None, None, b"\x00")
    stamp = source.stamps(0, 5)
    assert callable(stamp)
    assert [stamp(0), stamp(1)] == [9, 5]
    with pytest.raises(ValueError, match="no partition -1"):
        many.RowSource("t", texts, [(-1, None, None, None, None)]).record(0, -1, 5)


def test_threads_share_batches_and_buffers_without_mixing_records(broker: Broker) -> None:
    """Small batches in little memory: buffers are used again all the time, while two threads fill them."""
    counts = 4_000
    found: dict[int, Any] = {}

    def send(number: int, producer: Producer[Any, Any]) -> None:
        values = [b"%d-%06d" % (number, each) * (1 + each % 9) for each in range(counts)]
        keys = [b"%d" % (each % 50) for each in range(counts)] if number % 2 else None
        parts = [slice(at, at + 500) for at in range(0, counts, 500)]
        found[number] = (values, [producer.send_many("t", values[part], keys and keys[part]) for part in parts])

    with Producer(broker.bootstrap_servers, batch_size=3_000, buffer_memory=40_000, linger_ms=0) as producer:
        threads = [threading.Thread(target=send, args=(number, producer)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        producer.flush(HANG_S)
        assert producer._core.accumulator.memory.used == 0
    stored = {(each.partition, each.offset): each.value for each in broker.await_records("t", 3 * counts, timeout=HANG_S)}
    assert len(stored) == 3 * counts
    for values, calls in found.values():
        results = [metadata for call in calls for metadata in call.result(HANG_S)]
        assert [stored[each.partition, each.offset] for each in results] == values
        for partition in range(3):
            offsets = [each.offset for each in results if each.partition == partition]
            assert offsets == sorted(offsets)
