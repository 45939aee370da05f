"""From records to a batch: bytes that are complete, CRC included, and ready to be sent or appended.

Two ways in. `build_batch` takes records that have offsets and keeps them: compaction, control batches, recompression.
`build_produce_batch` takes rows that have none yet, as a producer does, and numbers them from 0.

What the header says follows Kafka's builder: baseTimestamp is the first record's timestamp, or the delete horizon where there
is one; maxTimestamp is the largest, or the append time; lastOffsetDelta reaches to the last record unless the caller sets it. A
batch that compaction emptied has no records, no codec and baseTimestamp -1.
"""

from collections.abc import Sequence
from struct import error

from ottla.records import patch
from ottla.records.compression import Codec, compress
from ottla.records.kernels import Record, Row, encode_records, encode_rows
from ottla.records.layout import (
    APPEND_TIME,
    CODEC_MASK,
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
    max_timestamp: int | None = None,
) -> bytearray:
    """One batch of `records`, which keep the offsets they have.

    `base_offset` is the first record's unless given, `last_offset_delta` reaches to the last record unless given: compaction
    gives both, so that a batch goes on covering the offsets it lost. Without records both must be given, and
    `max_timestamp` may be, which is else computed.
    """
    if records:
        base = records[0].offset if base_offset is None else base_offset
        delta = records[-1].offset - base if last_offset_delta is None else last_offset_delta
        base_timestamp = records[0].timestamp
    elif base_offset is None or last_offset_delta is None:
        raise ValueError("a batch without records needs base_offset and last_offset_delta: it has no record to take them from")
    else:
        base, delta, base_timestamp, codec = base_offset, last_offset_delta, NO_TIMESTAMP, Codec.NONE
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    batch = bytearray(HEADER_SIZE)
    end, largest = encode_records(batch, HEADER_SIZE, records, base, base_timestamp)
    if append_time_ms is not None:
        largest = append_time_ms
    attributes = (
        codec
        | (APPEND_TIME if append_time_ms is not None else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    seal(
        batch,
        end,
        level,
        (base, leader_epoch, attributes, delta, base_timestamp, largest if max_timestamp is None else max_timestamp),
        (producer_id, producer_epoch, base_sequence, len(records)),
    )
    return batch


def build_produce_batch(
    rows: Sequence[Row],
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> bytearray:
    """One batch of `rows`, each (timestamp, key, value, headers), to be produced: base offset 0, offsets by position."""
    if not rows:
        raise ValueError("a batch to be produced needs at least one record: brokers refuse empty ones")
    batch = bytearray(HEADER_SIZE)
    base_timestamp = rows[0][0]
    end, max_timestamp = encode_rows(batch, HEADER_SIZE, rows, base_timestamp)
    seal(
        batch,
        end,
        level,
        (0, NO_LEADER_EPOCH, codec | (TRANSACTIONAL if transactional else 0), len(rows) - 1, base_timestamp, max_timestamp),
        (producer_id, producer_epoch, base_sequence, len(rows)),
    )
    return batch


def seal(
    batch: bytearray,
    end: int,
    level: int | None,
    place: tuple[int, int, int, int, int, int],
    producer: tuple[int, int, int, int],
) -> None:
    """Cut `batch` to its records, compress them as the attributes say, and write the header in front."""
    base_offset, leader_epoch, attributes, last_offset_delta, base_timestamp, max_timestamp = place
    del batch[end:]
    codec = attributes & CODEC_MASK
    if codec:
        with memoryview(batch) as whole, whole[HEADER_SIZE:] as records:
            payload = compress(Codec(codec), records, level)
        batch[HEADER_SIZE:] = payload
    length = len(batch) - LOG_OVERHEAD
    times = (base_timestamp, max_timestamp)
    try:
        HEADER.pack_into(
            batch, 0, base_offset, length, leader_epoch, MAGIC, 0, attributes, last_offset_delta, *times, *producer
        )
    except error as problem:
        raise ValueError(
            f"a batch of {len(batch)} bytes at offset {base_offset} has a field too large for it: {problem}"
        ) from None
    patch.set_crc(batch, 0, len(batch))
