"""One batch: its bytes, its split, and the result of each record."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.producer.batch import UNKNOWN_OFFSET, ProducerBatch, RecordMetadata, next_sequence
from ottla.errors import InvalidRecordError, NetworkError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.records.batch import BatchView
from ottla.records.compression import Codec
from ottla.records.kernels import NO_HEADERS, BufferMemory, pack_headers
from ottla.records.reader import read_records


def made(values: list[bytes], waiting: Any = None) -> ProducerBatch:
    batch = ProducerBatch(("t", 1), BufferMemory(1 << 20), 1_000, 1 << 20, 0, waiting)
    for index, value in enumerate(values):
        assert batch.append(100 + index, b"k", value, pack_headers([("h", value)]), None) == index
    return batch


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=20), st.sampled_from(Codec), st.booleans())
def test_sealed_bytes_are_a_valid_batch(values: list[bytes], codec: Codec, is_transactional: bool) -> None:
    batch = made(values)
    batch.seal(codec, None, is_transactional)
    for producer, sequence in (((5, 2), 7), ((5, 3), 0)):
        batch.set_producer(producer, sequence)
        batch.write_producer()
        view = BatchView(bytes(batch.payload))
        view.check()
        assert (view.producer_id, view.producer_epoch, view.base_sequence) == (*producer, sequence)
        assert (view.codec, view.is_transactional, view.base_timestamp) == (codec, is_transactional, 100)
        assert [record.value for record in read_records(view)] == values


def test_a_split_keeps_records_and_numbers() -> None:
    batch = made([b"%d" % number * 10 for number in range(9)])
    batch.seal(Codec.GZIP, None, False)
    batch.set_producer((5, 0), 0x7FFFFFFE)
    batch.attempts, batch.number = 3, 8
    parts = batch.split(200)
    assert sum(part.count for part in parts) == 9
    assert [first for first, _ in batch.parts] == [0, parts[0].count, parts[0].count + parts[1].count][: len(parts)]
    assert parts[1].base_sequence == next_sequence(0x7FFFFFFE, parts[0].count) < 10
    assert {(part.producer, part.attempts, part.number) for part in parts} == {((5, 0), 3, 8)}
    stored = []
    for offset, (first, part) in zip((50, 80, 90), batch.parts, strict=False):
        part.seal(Codec.NONE, None, False)
        part.write_producer()
        stored += [record.value for record in read_records(BatchView(bytes(part.payload)))]
        part.complete(offset, -1)
        assert batch.metadata_of(first, 7) == ("t", 1, offset, 7)
    assert stored == [b"%d" % number * 10 for number in range(9)]


def test_a_buffer_is_free_for_others_once_its_only_request_was_answered() -> None:
    def sealed() -> ProducerBatch:
        batch = made([b"a", b"b"])
        batch.seal(Codec.NONE, None, False)
        batch.write_producer()
        return batch

    stored, retried, unanswered, failed = (sealed() for _ in range(4))
    buffer = stored.buffer
    stored.complete(5, -1)
    assert stored.spare is buffer
    retried.attempts = 1  # the earlier request may still be on its way
    retried.complete(5, -1)
    unanswered.complete(-1, -1)  # acks=0
    failed.fail(NetworkError("gone"))
    assert [len(batch.spare) for batch in (retried, unanswered, failed)] == [0, 0, 0]


def test_results_have_offset_and_timestamp() -> None:
    batch = made([b"a", b"b"])
    batch.complete(40, -1)
    assert batch.result(1, 123, None) == batch.metadata_of(1, 123) == ("t", 1, 41, 123)
    stamped = made([b"a"])
    stamped.complete(40, 999)
    assert stamped.result(0, 123, None).timestamp == 999
    unknown = made([b"a"])
    unknown.complete(-1, -1)
    assert unknown.result(0, 123, None) == ("t", 1, -1, 123)


def test_an_error_is_raised_for_every_record() -> None:
    batch = made([b"a", b"b"])
    batch.fail(NetworkError("gone"))
    for index in (0, 1):
        with pytest.raises(NetworkError, match="gone"):
            batch.result(index, 0, None)
        assert batch.exception(index, None) is batch.error


def test_errors_of_single_records_are_told_apart() -> None:
    error = exception_of(ErrorCode.INVALID_RECORD)
    error.record_errors = ((1, "no key"),)
    batch = made([b"a", b"b"])
    batch.fail(error)
    assert "no key" in str(batch.error_of(1))
    assert "others in its batch" in str(batch.error_of(0))
    assert isinstance(batch.error_of(0), InvalidRecordError)


def test_waiters_are_called_once_the_result_is_there() -> None:
    batch = made([b"a"])
    seen: list[bool] = []
    batch.waiters.append(lambda: seen.append(batch.is_done))
    batch.complete(0, -1)
    assert seen == [True]
    assert batch.append(0, None, b"late", NO_HEADERS, None) == -1


def test_a_result_that_is_not_there_is_waited_for() -> None:
    class Waiting:
        def wait(self, batch: ProducerBatch, timeout_s: float | None) -> None:
            assert timeout_s == 3
            batch.complete(5, -1)

        async def wait_async(self, batch: ProducerBatch) -> None:
            batch.complete(6, -1)

    assert made([b"a"], Waiting()).result(0, 1, 3).offset == 5
    assert made([b"a"], Waiting()).exception(0, 3) is None
    assert asyncio.run(made([b"a"], Waiting()).await_result(0, 1)).offset == 6


def test_descriptions_name_place_and_state() -> None:
    batch = made([b"a"])
    assert batch.describe(0) == "t-1, waiting"
    batch.complete(5, -1)
    assert batch.describe(0) == "t-1, offset 5"
    failed = made([b"a"])
    failed.fail(NetworkError("gone"))
    assert failed.describe(0) == "t-1, failed: gone"


# The metadata of a stored record.


def test_metadata_is_a_tuple_with_names() -> None:
    metadata = RecordMetadata("t", 1, UNKNOWN_OFFSET, 5)
    assert metadata == ("t", 1, -1, 5)
    assert (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp) == metadata
