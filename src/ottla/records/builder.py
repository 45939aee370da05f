"""From records to a batch."""

from collections.abc import Sequence

from ottla.records import patch
from ottla.records.batch import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from ottla.records.compression import Codec, compress
from ottla.records.kernels import Record, encode_records


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = None,
    last_offset_delta: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """One batch of `records`, which keep the offsets they have.

    `base_offset` is the first record's unless given, `last_offset_delta` reaches to the last record unless given: compaction
    gives both, so that a batch goes on covering the offsets it lost. Without records both must be given.
    """
    if not records and (base_offset is None or last_offset_delta is None):
        raise ValueError("a batch without records needs base_offset and last_offset_delta: it has no record to take them from")
    start = records[0].offset if base_offset is None else base_offset
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    batch = bytearray(HEADER_SIZE)
    end, count, max_timestamp, last_offset = encode_records(batch, HEADER_SIZE, records, start, base_timestamp)
    del batch[end:]
    if codec != Codec.NONE:
        with memoryview(batch) as whole:
            payload = compress(codec, whole[HEADER_SIZE:], level)
        batch[HEADER_SIZE:] = payload
    attributes = int(codec)
    if append_time_ms is not None:
        attributes |= APPEND_TIME
        max_timestamp = append_time_ms
    if transactional:
        attributes |= TRANSACTIONAL
    if control:
        attributes |= CONTROL
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
    HEADER.pack_into(
        batch,
        0,
        start,
        len(batch) - LOG_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset - start if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    patch.set_crc(batch, 0, len(batch))
    return batch
