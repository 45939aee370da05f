"""What the broker checks of a produced batch, and what it changes before the batch is appended.

Two levels. From the header and the CRC alone: exactly one whole batch of magic 2, its size, its CRC, a codec that exists, a
count that agrees with the offsets, no control records, a sequence where there is a producer; and from the head of an LZ4 frame,
that Kafka's readers in Java can read its blocks. Then the records are walked, with
the kernel that makes no object of them, where that is cheap or decides something: always where they are not compressed (16 ns
each), and where they are compressed if keys are needed (compacted topics), if a timestamp may be out of bounds, or if the
topic wants another codec. Of the other compressed batches the frame's sizes are checked always, and the records within a
budget for the whole node (`inspection.py`): decompressing all of them, as Apache Kafka does, would cost most of its CPU.

So these are accepted here and refused there, in compressed batches only, and only by a node whose budget is used up or if the
batch unpacks to more than 4 MB: records in a right frame that do not match the header's count or are no records at all (their
readers get `CorruptRecords`), a maxTimestamp in the header that is not the records' own, and a record beyond
`message.timestamp.after.max.ms` under a header that hides it. Refused here and accepted there: bytes after the batch that are
no batch, offset deltas that are not 0, 1, 2... in an uncompressed batch, and more than 19 million records in a compressed one.

Answers are `KafkaError`s with the codes that Apache Kafka 4.3.0 gives (its answers are in tests/golden/records):

    INVALID_RECORD                no batch, more than one, magic 0 or 1, base offset not 0, wrong counts, damage inside, no key
    CORRUPT_MESSAGE               bad CRC, impossible length, a magic that never was
    MESSAGE_TOO_LARGE             more than max.message.bytes, before or after the topic's own compression
    UNSUPPORTED_COMPRESSION_TYPE  zstd before Produce version 7; a codec that never was (there: UNKNOWN_SERVER_ERROR)
    INVALID_TIMESTAMP             out of bounds, or marked as set by the broker

Damage inside that makes Apache Kafka stumble (UNKNOWN_SERVER_ERROR) is INVALID_RECORD here.

For a topic that wants another codec, `recompress` works in pieces. It ends when the result is too large or nobody waits for it
any more, and goes over to the codec's fastest level when it has taken `COMPRESSION_S_MAX`: a level is a wish, and two letters
in the right order take gzip level 9 three seconds for each megabyte.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.config.topic import LogConfig
from ottla.errors import CorruptRecords, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.records.batch import CODECS, BatchView
from ottla.records.compression import Codec, ExpandsTooFar, compress_in_pieces, decompress_large, fastest_level
from ottla.records.decline import Decline
from ottla.records.effort import COMPRESSION_S_MAX, FULL, Effort, TooExpensive, loop_compressed_bytes
from ottla.records.kernels import RecordScan, RecordWalk
from ottla.records.layout import (
    APPEND_TIME,
    BATCH_LENGTH_MIN,
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from ottla.records.patch import set_append_time, set_max_timestamp, set_shape
from ottla.records.produced.inspection import Inspection, cannot_hold
from ottla.records.reader import DECOMPRESSED_BYTES_MAX

TIMESTAMP_UNBOUNDED = 0x7FFFFFFFFFFFFFFF
ZSTD_REQUEST_VERSION_MIN = 7

_NONE, _LZ4, _ZSTD = (
    Codec.NONE,
    int(Codec.LZ4),
    int(Codec.ZSTD),
)  # looked up once: a member of an enum takes longer to reach than a module's name
CHECKED_BYTES_MIN = 32 << 20
CHECKED_FACTOR = 32
"""A batch may be decompressed to so many times max.message.bytes, and to so much at least."""

RECORDS_PER_PIECE = 250_000
"""So many records are walked in one go, which takes about 4 ms."""

ERRORS_NAMED_MAX = 1000
RECORDS_EXAMINED_MAX = 100_000
"""How many records at fault are named, and how many are looked at for that once it is certain that some are."""

_ANY_NUMBER = -0x8000000000000000
_LENGTH_MIN = 14
"""What the smallest message of any format has after its length; less than that was never one."""


class ValidBatch(NamedTuple):
    """A batch that may be appended once it has its base offset and leader epoch."""

    view: BatchView
    data: bytearray | memoryview
    """The bytes to append: those that came, changed in place, or others where the topic's codec is not the producer's."""
    max_timestamp: int
    """Of the batch as it is now."""
    append_time_ms: int
    """The timestamp that the broker set, or -1 if records keep their producer's."""


def validate_produced(
    data: bytearray | memoryview,
    config: LogConfig,
    *,
    now_ms: int,
    partition: str,
    from_client: bool = True,
    request_version: int = ZSTD_REQUEST_VERSION_MIN,
    decompressed_bytes_max: int | None = None,
    decline: Decline = Decline.HEADER,
    effort: Effort = FULL,
    inspection: Inspection | None = None,
) -> ValidBatch:
    """`data` as a batch for `partition`, whose settings are `config`; `KafkaError` if it must not be appended.

    With `from_client` off, for what the broker's own coordinators write, control records, sequences and offsets are theirs to
    get right. `data` may be changed (timestamp and CRC) only if it is accepted. Where a batch has to be decompressed, it may
    yield `decompressed_bytes_max`; by default a multiple of max.message.bytes. `TooExpensive`, with nothing changed, if the
    check needs more than `effort` allows: it has to be done elsewhere (docs/decisions/0009).

    `decline` is where the fast check (`kernel_batch.py`) of this batch stopped: what it has checked is not checked again.
    `inspection` chooses which compressed batches of clients are unpacked though no setting asks for it; None: all of them.
    """
    if decline is Decline.LOG:
        view = BatchView(data)
        return ValidBatch(view, data, view.max_timestamp, NO_TIMESTAMP)
    view = only_batch(data, partition, request_version)
    codec = _check_header(view, config, partition, from_client, decline)
    target = codec if config.compression_type == "producer" else _target_codec(view, codec, config)
    is_append_time = config.is_append_time
    max_timestamp = view.max_timestamp
    if (
        codec is _NONE
        or target is not codec
        or _records_matter(view, config, now_ms)
        or (from_client and (decline is Decline.RECORDS or not _passes(view, inspection, now_ms)))
    ):
        if effort.is_on_loop and target is not codec and view.size > loop_compressed_bytes(target, _level(target, config)):
            raise TooExpensive
        limit = expanded_bytes_max(config) if decompressed_bytes_max is None else decompressed_bytes_max
        plain, max_timestamp = _check_records(view, codec, config, now_ms, partition, limit, effort)
        if target is not codec:
            data = _recompressed(view, view.payload if plain is None else plain, target, config, partition, effort)
    if is_append_time:
        set_append_time(data, 0, now_ms)
        max_timestamp = now_ms
    elif max_timestamp != view.max_timestamp or view.attributes & APPEND_TIME:
        set_max_timestamp(data, 0, max_timestamp)
    if data is not view.buffer:
        view = BatchView(data)
    return ValidBatch(view, data, max_timestamp, now_ms if is_append_time else NO_TIMESTAMP)


def only_batch(data: bytearray | memoryview, partition: str, request_version: int) -> BatchView:
    """The one batch that `data` must be, in a codec that its request may use; `KafkaError` if it is not."""
    size = len(data)
    if size >= HEADER_SIZE:
        view = BatchView(data)
        if view.batch_length == size - LOG_OVERHEAD and view.magic == MAGIC:
            if view.attributes & CODEC_MASK == _ZSTD and request_version < ZSTD_REQUEST_VERSION_MIN:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    f"zstd for {partition} came in a Produce request of version {request_version}; it may be used from version "
                    f"{ZSTD_REQUEST_VERSION_MIN} on. Update the client or use another codec",
                )
            return view
    batch_length = int.from_bytes(data[LENGTH_AT:LOG_OVERHEAD], "big", signed=True) if size >= LOG_OVERHEAD else 0
    if size >= LOG_OVERHEAD and batch_length < _LENGTH_MIN:
        raise _corrupt(f"a batch for {partition} says it is {batch_length} bytes long, which no batch is")
    if size > MAGIC_AT and data[MAGIC_AT] != MAGIC:
        magic = data[MAGIC_AT]
        if magic > MAGIC:
            raise _corrupt(f"a batch for {partition} has magic {magic}, which no version of Kafka has")
        raise _invalid(
            f"a batch for {partition} has magic {magic}: Kafka 4 takes only magic 2, which every client since 0.11 writes"
        )
    if size < LOG_OVERHEAD + batch_length or size <= MAGIC_AT:
        raise _invalid(f"{size} bytes for {partition} are no whole batch; a produce request has exactly one per partition")
    if batch_length < BATCH_LENGTH_MIN:
        raise _corrupt(f"a batch for {partition} says it is {batch_length} bytes long, less than its own header")
    if size > LOG_OVERHEAD + batch_length:
        raise _invalid(
            f"{size - LOG_OVERHEAD - batch_length} bytes follow the batch for {partition}; a produce request has exactly one "
            "batch per partition"
        )
    return BatchView(data)


def _check_header(view: BatchView, config: LogConfig, partition: str, from_client: bool, decline: Decline) -> Codec:
    """Check everything but the records; returns the codec."""
    number = view.attributes & CODEC_MASK
    if from_client and view.base_offset != 0:
        raise _invalid(f"a batch for {partition} has base offset {view.base_offset}; in a produce request it is 0")
    if view.size > config.max_message_bytes:
        raise _too_large(view.size, config, partition)
    if decline is not Decline.RECORDS and (decline is Decline.CRC or view.computed_crc() != view.crc):
        raise _corrupt(
            f"a batch for {partition} does not match its CRC {view.crc:#010x}: damaged on its way, or a faulty client"
        )
    if number > _ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"a batch for {partition} has codec {number}, which Kafka does not define"
        )
    if number == _LZ4:
        from ottla.records.compression.lz4 import has_linked_blocks  # late: it brings the compression library

        if has_linked_blocks(view.payload):
            raise _invalid(
                f"the LZ4 blocks of a batch for {partition} depend on each other, which Kafka's readers in Java cannot take: "
                "have the client write independent blocks"
            )
    if from_client:
        if view.count <= 0 or view.count != view.last_offset_delta + 1:
            raise _invalid(
                f"a batch for {partition} says it has {view.count} records and last offset delta {view.last_offset_delta}, "
                "which cannot both be so"
            )
        if number and cannot_hold(number, view.payload, view.count):  # known without unpacking it
            raise _invalid(
                f"a batch for {partition} cannot be read: its {len(view.payload)} compressed bytes cannot hold the "
                f"{view.count} records that its header says"
            )
        if view.attributes & CONTROL:
            raise _invalid(f"a client tried to write control records to {partition}: only brokers may")
        if view.producer_id >= 0 and view.base_sequence < 0:
            raise _invalid(
                f"a batch for {partition} from producer {view.producer_id} has sequence {view.base_sequence}; they start at 0"
            )
    return CODECS[number]


def _target_codec(view: BatchView, codec: Codec, config: LogConfig) -> Codec:
    """How the batch is to be stored. Control records stay as they are."""
    wanted = config.compression_type
    if codec is _NONE and view.attributes & CONTROL:
        return codec
    return Codec.NONE if wanted == "uncompressed" else Codec[wanted.upper()]


def _records_matter(view: BatchView, config: LogConfig, now_ms: int) -> bool:
    """Whether the records of a compressed batch may be a reason to refuse it."""
    if config.compact or view.attributes & APPEND_TIME:
        return True
    if config.is_append_time:
        return False
    return (
        config.message_timestamp_before_max_ms != TIMESTAMP_UNBOUNDED
        or view.max_timestamp - now_ms > config.message_timestamp_after_max_ms
    )


def _passes(view: BatchView, inspection: Inspection | None, now_ms: int) -> bool:
    """Whether `inspection` finds nothing wrong with the records of a compressed batch."""
    number = view.attributes & CODEC_MASK
    return inspection is not None and inspection.passes(
        number, view.payload, view.count, view.base_timestamp, view.max_timestamp, now_ms
    )


def expanded_bytes_max(config: LogConfig) -> int:
    """To how much a batch of a topic may be decompressed."""
    return min(DECOMPRESSED_BYTES_MAX, max(CHECKED_BYTES_MIN, CHECKED_FACTOR * config.max_message_bytes))


def _check_records(
    view: BatchView,
    codec: Codec,
    config: LogConfig,
    now_ms: int,
    partition: str,
    decompressed_bytes_max: int,
    effort: Effort,
) -> tuple[bytes | bytearray | None, int]:
    """Walk the records; returns (them, if they had to be decompressed; their largest timestamp)."""
    plain: bytes | bytearray | None = None
    walk = RecordWalk()
    try:
        if codec is _NONE:
            start, end, data = view.position + HEADER_SIZE, view.position + view.size, view.buffer
        else:
            data = plain = _decompressed(view, codec, decompressed_bytes_max, effort)
            start, end = 0, len(plain)
        walk.begin(data, start, end, view.count)
        # In pieces: between them another thread can have the interpreter lock.
        for index in range(RECORDS_PER_PIECE, view.count, RECORDS_PER_PIECE):
            walk.go_on(data, end, index, view.base_timestamp)
        walk.go_on(data, end, view.count, view.base_timestamp)
    except CorruptRecords as damage:
        raise _invalid(f"a batch for {partition} cannot be read: {damage}") from None
    min_timestamp, max_timestamp = walk.min_timestamp, walk.max_timestamp
    displaced, keyless = walk.displaced, walk.keyless
    if view.attributes & APPEND_TIME:
        min_timestamp = max_timestamp = view.max_timestamp
    if displaced:
        raise _invalid(f"{displaced} records of a batch for {partition} are not numbered 0, 1, 2...")
    is_late_or_early = not config.is_append_time and not (
        now_ms - min_timestamp <= config.message_timestamp_before_max_ms
        and max_timestamp - now_ms <= config.message_timestamp_after_max_ms
    )
    is_keyless = config.compact and keyless > 0
    if is_keyless or is_late_or_early or view.attributes & APPEND_TIME:
        # Records without a timestamp are not early: they alone may turn out to be in order.
        is_certain = is_keyless or (is_late_or_early and min_timestamp > NO_TIMESTAMP)
        _refuse_records(view, view.payload if plain is None else plain, config, now_ms, partition, is_certain)
    return plain, max_timestamp if max_timestamp > NO_TIMESTAMP else NO_TIMESTAMP


def _decompressed(view: BatchView, codec: Codec, size_bytes_max: int, effort: Effort) -> bytes | bytearray:
    try:
        return decompress_large(codec, view.payload, min(size_bytes_max, effort.decompressed_bytes_max))
    except ExpandsTooFar:
        if effort.decompressed_bytes_max < size_bytes_max:
            raise TooExpensive from None
        raise


def _refuse_records(
    view: BatchView, plain: bytes | bytearray | memoryview, config: LogConfig, now_ms: int, partition: str, is_certain: bool
) -> None:
    """Raise the error that names the records at fault, if one is, as `is_certain` says: then not all have to be looked at."""
    append_time_ms = view.max_timestamp if view.attributes & APPEND_TIME else None
    earliest, latest = now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms
    errors: list[tuple[int, str]] = []
    is_time = False
    scan = RecordScan()  # makes no objects of records: one record can have millions of headers
    for index in range(view.count):
        if len(errors) >= ERRORS_NAMED_MAX or (is_certain and index >= RECORDS_EXAMINED_MAX):
            break
        scan.find(plain, view.count, view.base_timestamp, _ANY_NUMBER, _ANY_NUMBER, 1)
        timestamp = scan.timestamp if append_time_ms is None else append_time_ms
        if config.compact and scan.is_keyless:
            errors.append((index, f"the record has no key, and {partition} is compacted: every record needs one there"))
        elif not config.is_append_time and timestamp != NO_TIMESTAMP:
            if not earliest <= timestamp <= latest:
                is_time = True
                errors.append((index, f"timestamp {timestamp} is not within {earliest} to {latest}, which {partition} allows"))
        elif append_time_ms is not None:
            is_time = True
            errors.append((index, "the batch says that the broker has set its timestamps, which only the broker may say"))
    if errors:
        is_all = len(errors) < ERRORS_NAMED_MAX
        what = "have no place in it because of their timestamps" if is_time else "cannot be taken"
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP if is_time else ErrorCode.INVALID_RECORD,
            f"{len(errors)}{'' if is_all else ' or more'} of {view.count} records for {partition} {what}. The first, number "
            f"{errors[0][0]}: {errors[0][1]}",
            tuple(errors),
        )
    if is_certain:
        raise _invalid(
            f"records for {partition} cannot be taken, after the first {RECORDS_EXAMINED_MAX} of {view.count}: they have no "
            "key where every record needs one, or a timestamp out of bounds. Send smaller batches to learn which"
        )


def _recompressed(
    view: BatchView, plain: bytes | bytearray | memoryview, target: Codec, config: LogConfig, partition: str, effort: Effort
) -> bytearray:
    """The same batch in another codec. The records' own bytes do not change, nor does the producer's part of the header."""
    batch = bytearray(view.data[:HEADER_SIZE])
    recompress(batch, plain, target, _level(target, config), config.max_message_bytes, effort)
    if len(batch) > config.max_message_bytes:
        raise _too_large(len(batch), config, partition)
    set_shape(batch, 0, len(batch), target | view.attributes & (TRANSACTIONAL | CONTROL))
    return batch


def _level(codec: Codec, config: LogConfig) -> int | None:
    """The topic's compression level for `codec`; None if it has no levels."""
    if codec == Codec.GZIP:
        return config.compression_gzip_level
    if codec == Codec.LZ4:
        return config.compression_lz4_level
    return config.compression_zstd_level if codec == Codec.ZSTD else None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def _too_large(size: int, config: LogConfig, partition: str) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size} bytes for {partition} is larger than max.message.bytes, {config.max_message_bytes}. Send smaller "
        "batches, compress them, or raise the setting",
    )


Buffer = bytes | bytearray | memoryview


def recompress(batch: bytearray, plain: Buffer, codec: Codec, level: int | None, size_bytes_max: int, effort: Effort) -> None:
    """Append `plain`, compressed, to `batch`; stops early once that is larger than `size_bytes_max`."""
    if effort.is_on_loop and len(plain) > loop_compressed_bytes(codec, level):
        raise TooExpensive
    begin = len(batch)
    if _compress(batch, plain, codec, level, size_bytes_max, effort, COMPRESSION_S_MAX):
        return
    del batch[begin:]
    _compress(batch, plain, codec, fastest_level(codec), size_bytes_max, effort, None)


def _compress(
    batch: bytearray,
    plain: Buffer,
    codec: Codec,
    level: int | None,
    size_bytes_max: int,
    effort: Effort,
    seconds_max: float | None,
) -> bool:
    """False: it has taken longer than `seconds_max`."""
    until_s = None if seconds_max is None or effort.now_s is None else effort.now_s() + seconds_max
    for piece in compress_in_pieces(codec, plain, level):
        batch += piece
        if len(batch) > size_bytes_max:
            return True
        if not effort.is_wanted():
            raise TooExpensive
        if until_s is not None and effort.now_s is not None and effort.now_s() >= until_s:
            return False
    return True
