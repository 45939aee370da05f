"""The produced bytes on which Apache Kafka and Ottla are compared: valid batches, and batches damaged in known ways.

`produce_cases()` yields `Case`s; tools/golden_records/make.py writes down what Apache Kafka answers to them, and
tests/unit/records/test_validate.py holds Ottla to that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import pack_into

from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.compression import Codec, compress
from ottla.records.kernels import Record
from ottla.records.layout import HEADER_SIZE
from ottla.records.patch import set_crc

NOW = 1_700_000_000_000
HOUR = 3_600_000

CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT, SEQUENCE_AT, COUNT_AT = 17, 21, 23, 27, 35, 53, 57


@dataclass(frozen=True)
class Case:
    """Bytes to be produced, and to what kind of topic."""

    name: str
    data: bytes
    settings: dict[str, str] = field(default_factory=dict)
    version: int = 12
    now_ms: int = NOW

    @property
    def line(self) -> str:
        """As Produce.java reads it."""
        settings = ";".join(f"{key}={value}" for key, value in self.settings.items()) or "-"
        return f"{self.name} {self.version} {self.now_ms} {settings} {self.data.hex()}"


def three(**options: object) -> bytearray:
    """A good batch of three records."""
    records = [
        Record(0, NOW - 10, b"a", b"first"),
        Record(1, NOW, b"b", b"second", (("h", b"x"),)),
        Record(2, NOW - 5, b"c", None),
    ]
    return build_batch(records, **options)  # type: ignore[arg-type]  # options are build_batch's own


def stamped(*timestamps: int, **options: object) -> bytearray:
    """A batch of records with these timestamps."""
    records = [Record(index, timestamp, b"k", b"v") for index, timestamp in enumerate(timestamps)]
    return build_batch(records, **options)  # type: ignore[arg-type]  # options are build_batch's own


def changed(batch: bytearray, position: int, form: str, value: int, *, crc: bool = True) -> bytearray:
    """`batch` with one field of its header overwritten and, unless `crc` says otherwise, a CRC that matches."""
    pack_into(">" + form, batch, position, value)
    if crc:
        set_crc(batch, 0, len(batch))
    return batch


def with_payload(payload: bytes, count: int, attributes: int = 0) -> bytearray:
    """A batch whose records are `payload`, valid or not."""
    batch = three()[:HEADER_SIZE] + payload
    pack_into(">i", batch, 8, len(batch) - 12)
    pack_into(">h", batch, ATTRIBUTES_AT, attributes)
    pack_into(">i", batch, LAST_DELTA_AT, count - 1)
    pack_into(">i", batch, COUNT_AT, count)
    set_crc(batch, 0, len(batch))
    return batch


def produce_cases() -> Iterator[Case]:
    """Every case, named."""
    for name, data, *more in [*_good(), *_headers(), *_timestamps(), *_keys(), *_records(), *_recompressed()]:
        settings, version = {}, 12
        for extra in more:
            if isinstance(extra, int):
                version = extra
            else:
                settings = extra
        yield Case(name, bytes(data), settings, version)


def _good() -> Iterator[tuple]:  # type: ignore[type-arg]  # (name, data, settings?, version?)
    yield "good", three()
    for codec in Codec:
        yield f"good-{codec.title}", three(codec=codec)
    yield "idempotent", three(producer_id=7, producer_epoch=0, base_sequence=0)
    yield "leader-epoch-set", three(leader_epoch=99)
    yield "append-time-topic", three(), {"message.timestamp.type": "LogAppendTime"}
    yield "append-time-topic-zstd", three(codec=Codec.ZSTD), {"message.timestamp.type": "LogAppendTime"}
    yield "version-3", three(), 3
    yield "zstd-version-6", three(codec=Codec.ZSTD), 6
    yield "zstd-version-7", three(codec=Codec.ZSTD), 7


def _headers() -> Iterator[tuple]:  # type: ignore[type-arg]
    yield "no-bytes", b""
    yield "short-header", three()[:50]
    yield "short-batch", three()[:-1]
    yield "two-batches", three() + three()
    yield "trailing-garbage", three() + b"garbage"
    yield "trailing-long-garbage", three() + bytes(80)
    yield "length-negative", changed(three(), 8, "i", -1)
    yield "length-below-header", changed(three(), 8, "i", 48)
    yield "length-13", changed(three(), 8, "i", 13)
    for magic in (0, 1, 3, -1, 127):
        yield f"magic-{magic}", changed(three(), 16, "b", magic, crc=False)
    yield "bad-crc", changed(three(), CRC_AT, "I", 12345, crc=False)
    yield "base-offset-5", changed(three(), 0, "q", 5)
    yield "base-offset-minus-1", changed(three(), 0, "q", -1)
    for codec in (5, 6, 7):
        yield f"codec-{codec}", changed(three(), ATTRIBUTES_AT, "h", codec)
    yield "high-attribute-bits", changed(three(), ATTRIBUTES_AT, "h", 0x7F00)
    yield "delete-horizon-bit", changed(three(), ATTRIBUTES_AT, "h", 0x40)
    yield "control", three(control=True)
    yield "transactional-without-producer", three(transactional=True)
    yield "count-0", changed(three(), COUNT_AT, "i", 0)
    yield "count-negative", changed(three(), COUNT_AT, "i", -1)
    yield "count-4", changed(three(), COUNT_AT, "i", 4)
    yield "last-delta-negative", changed(three(), LAST_DELTA_AT, "i", -1)
    yield "last-delta-5", changed(three(), LAST_DELTA_AT, "i", 5)
    yield "both-counts-2", changed(changed(three(), COUNT_AT, "i", 2), LAST_DELTA_AT, "i", 1)
    yield "both-counts-4", changed(changed(three(), COUNT_AT, "i", 4), LAST_DELTA_AT, "i", 3)
    yield "empty-batch", build_batch([], base_offset=0, last_offset_delta=0)
    yield "sequence-missing", three(producer_id=7, producer_epoch=0)
    yield "sequence-minus-2", three(producer_id=7, producer_epoch=0, base_sequence=-2)
    yield "epoch-missing", three(producer_id=7, base_sequence=0)
    yield "too-large", three(), {"max.message.bytes": "99"}
    yield "just-fits", three(), {"max.message.bytes": str(len(three()))}
    yield "too-large-and-bad-crc", changed(three(), CRC_AT, "I", 1, crc=False), {"max.message.bytes": "99"}


def _timestamps() -> Iterator[tuple]:  # type: ignore[type-arg]
    yield "in-an-hour", stamped(NOW + HOUR)
    yield "beyond-an-hour", stamped(NOW, NOW + HOUR + 1, NOW + HOUR + 2)
    yield "beyond-an-hour-gzip", stamped(NOW, NOW + HOUR + 1, codec=Codec.GZIP)
    yield "long-ago", stamped(0, NOW)
    yield "no-timestamp", stamped(-1)
    yield "negative-timestamp", changed(stamped(NOW), BASE_TIMESTAMP_AT, "q", -5)
    bounds = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "2000"}
    yield "within-bounds", stamped(NOW - 1000, NOW + 2000), bounds
    yield "before-bounds", stamped(NOW - 1001, NOW), bounds
    yield "after-bounds", stamped(NOW, NOW + 2001), bounds
    yield "no-timestamp-within-bounds", stamped(-1, NOW), bounds
    yield "bounds-do-not-matter", stamped(0, NOW * 2), bounds | {"message.timestamp.type": "LogAppendTime"}
    yield "append-time-from-client", stamped(NOW, append_time_ms=NOW), {}
    yield "append-time-from-client-far", stamped(NOW, append_time_ms=NOW + HOUR * 2), {}
    yield "append-time-from-client-none", stamped(NOW, append_time_ms=-1), {}
    yield (
        "append-time-from-client-to-append-time",
        stamped(NOW, append_time_ms=NOW),
        {"message.timestamp.type": "LogAppendTime"},
    )
    yield "max-timestamp-lies-low", changed(stamped(NOW - 5, NOW), MAX_TIMESTAMP_AT, "q", 1)
    yield "max-timestamp-lies-high", changed(stamped(NOW - 5, NOW), MAX_TIMESTAMP_AT, "q", NOW + 100)
    yield "max-timestamp-lies-far", changed(stamped(NOW - 5, NOW), MAX_TIMESTAMP_AT, "q", NOW + HOUR * 9)
    yield "max-timestamp-hides-far", changed(stamped(NOW - 5, NOW + HOUR * 9), MAX_TIMESTAMP_AT, "q", NOW)


def _keys() -> Iterator[tuple]:  # type: ignore[type-arg]
    keyless = [Record(0, NOW, None, b"v"), Record(1, NOW, b"k", b"v"), Record(2, NOW, None, b"v"), Record(3, NOW, b"", b"v")]
    compact = {"cleanup.policy": "compact"}
    yield "keyless", build_batch(keyless)
    yield "keyless-compacted", build_batch(keyless), compact
    yield "keyless-compacted-lz4", build_batch(keyless, codec=Codec.LZ4), compact
    yield "keyless-compacted-deleted", build_batch(keyless), {"cleanup.policy": "compact,delete"}
    late = [Record(0, NOW + HOUR * 2, None, b"v"), Record(1, NOW + HOUR * 2, b"k", b"v")]
    yield "keyless-and-late", build_batch(late), compact
    yield "many-keyless", build_batch([Record(index, NOW, None, b"v") for index in range(5)]), compact


def _records() -> Iterator[tuple]:  # type: ignore[type-arg]
    yield (
        "offsets-with-gaps",
        changed(build_batch([Record(0, NOW, b"a", b""), Record(2, NOW, b"b", b"")]), LAST_DELTA_AT, "i", 1),
    )
    gaps = build_batch([Record(0, NOW, b"a", b""), Record(2, NOW, b"b", b"")], codec=Codec.GZIP)
    yield "offsets-with-gaps-gzip", changed(gaps, LAST_DELTA_AT, "i", 1)
    yield "garbage-records", with_payload(b"\xff" * 40, 3)
    yield "garbage-gzip", with_payload(b"\xff" * 40, 3, attributes=1)
    yield "garbage-snappy", with_payload(b"\xff" * 40, 3, attributes=2)
    yield "garbage-lz4", with_payload(b"\xff" * 40, 3, attributes=3)
    yield "garbage-zstd", with_payload(b"\xff" * 40, 3, attributes=4)
    payload = bytes(BatchView(three()).payload)
    yield "left-over-byte", with_payload(payload + b"\x00", 3)
    yield "left-over-byte-gzip", with_payload(bytes(compress(Codec.GZIP, payload + b"\x00")), 3, attributes=1)
    yield "record-attributes-set", with_payload(payload[:1] + b"\x01" + payload[2:], 3)
    yield (
        "record-attributes-set-gzip",
        with_payload(bytes(compress(Codec.GZIP, payload[:1] + b"\x01" + payload[2:])), 3, attributes=1),
    )
    yield "raw-snappy-block", with_payload(_raw_snappy(payload), 3, attributes=2)
    yield (
        "gzip-two-members",
        with_payload(bytes(compress(Codec.GZIP, payload[:20])) + bytes(compress(Codec.GZIP, payload[20:])), 3, attributes=1),
    )
    yield (
        "zstd-two-frames",
        with_payload(bytes(compress(Codec.ZSTD, payload[:20])) + bytes(compress(Codec.ZSTD, payload[20:])), 3, attributes=4),
    )
    yield (
        "lz4-two-frames",
        with_payload(bytes(compress(Codec.LZ4, payload[:20])) + bytes(compress(Codec.LZ4, payload[20:])), 3, attributes=3),
    )
    yield "lz4-garbage-behind", with_payload(bytes(compress(Codec.LZ4, payload)) + b"garbage", 3, attributes=3)
    yield "gzip-garbage-behind", with_payload(bytes(compress(Codec.GZIP, payload)) + b"garbage", 3, attributes=1)
    yield (
        "snappy-two-streams",
        with_payload(
            bytes(compress(Codec.SNAPPY, payload[:20])) + bytes(compress(Codec.SNAPPY, payload[20:])), 3, attributes=2
        ),
    )
    yield "lz4-linked-blocks", with_payload(_linked_lz4(payload), 3, attributes=3)


def _recompressed() -> Iterator[tuple]:  # type: ignore[type-arg]
    for target in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        yield f"none-to-{target}", three(producer_id=7, producer_epoch=0, base_sequence=0), {"compression.type": target}
    yield "zstd-to-uncompressed", three(codec=Codec.ZSTD), {"compression.type": "uncompressed"}
    yield "zstd-to-gzip", three(codec=Codec.ZSTD), {"compression.type": "gzip"}
    yield "gzip-to-gzip", three(codec=Codec.GZIP), {"compression.type": "gzip"}
    stamp = {"message.timestamp.type": "LogAppendTime"}
    yield "gzip-to-uncompressed-append-time", three(codec=Codec.GZIP), {"compression.type": "uncompressed"} | stamp
    yield (
        "keyless-recompressed",
        build_batch([Record(0, NOW, None, b"v")]),
        {"compression.type": "zstd", "cleanup.policy": "compact"},
    )


def _raw_snappy(payload: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(payload))


def _linked_lz4(payload: bytes) -> bytes:
    import cramjam

    compressor = cramjam.lz4.Compressor(block_linked=True)
    compressor.compress(payload)
    return bytes(compressor.finish())
