"""Requests that no client would send: random ones that follow the schema, and valid ones with changed bytes.

`random_request` fills every field of any request with extreme values: limits, names that exist and impossible ones, nulls,
empty and repeated entries, unknown tagged fields. `tampered` changes the bytes of a request: wrong sizes, flipped bits, cut
ends, doubled parts. Both depend only on the `Random` they get.
"""

from random import Random
from typing import Any

from tests.support.logs.batches import make_batch

from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Struct
from ottla.wire.binding import Binding, binding_of
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.schema.model import INTEGER_RANGES, FieldSchema, StructSchema

TOPICS = ("one", "two", "keyed", "small")
"""Topics that exist; see `tests/fuzz/test_broker_fuzz.py`."""

NAMES = (
    *TOPICS,
    "absent",
    "",
    ".",
    "..",
    "not/valid",
    "x" * 249,
    "x" * 250,
    "é",
    "\0",
    "__consumer_offsets",
    "__cluster_metadata",
    "a b",
    "1",
    "0",
    "-1",
    "2147483648",
    "one,two",
    "retention.ms",
    "cleanup.policy",
    "../../etc",
    "%s",
    "𝕫",
)
SETTINGS = (
    *("retention.ms", "cleanup.policy", "max.message.bytes", "segment.bytes", "compression.type", "min.insync.replicas"),
    *("message.timestamp.type", "flush.messages", "no.such", "", "preallocate", "index.interval.bytes", "retention.bytes"),
    *("leader.replication.throttled.replicas", "message.timestamp.before.max.ms", "delete.retention.ms"),
)
VALUES = (
    "1",
    "0",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "x",
    "",
    "true",
    "compact",
    "delete",
    "compact,delete",
    " 5 ",
    "1e3",
    "0.5",
    "NaN",
    "gzip",
    "zstd",
    "lz4",
    "LogAppendTime",
    "*",
    "0:1",
    "٣",
    "1_000",
    "+5",
    "\n",
)
NUMBERS = (
    -(2**63),
    -(2**31),
    -32768,
    -129,
    -128,
    -101,
    -8,
    -7,
    -6,
    -5,
    -4,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    9,
    10,
    16,
    32,
    100,
    127,
    255,
    10_001,
    32767,
    65535,
    100_000_000,
    2**31 - 1,
    2**32,
    1_700_000_000_000,
    2**63 - 1,
)
WAIT_MS_MAX = 20
"""The limit for wait times, so that a request that is never answered is not mistaken for a parked one."""

LYING_SIZES = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\xff\xff\xff",
    b"\0\0\xff\xff",
    b"\x7f\xff",
    b"\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x80\x80",
    b"\xff",
    b"\0",
    b"\x01",
    b"\x7f",
)


def random_request(random: Random, api_key: int, version: int) -> bytes:
    """The frame of a well-formed request with extreme values."""
    client_id = random.choice([None, "", "odd", "é" * 9])
    return join_parts(encode_request(random_message(random, api_key, version), version, random.getrandbits(31), client_id))


def random_message(random: Random, api_key: int, version: int) -> Any:
    """A well-formed request with extreme values, not yet encoded."""
    binding = binding_of(APIS[api_key].request_class)
    message: Any = _struct(random, binding, binding.schema.root, version)
    for name in ("timeout_ms", "max_wait_ms"):
        if hasattr(message, name):
            setattr(message, name, min(getattr(message, name), WAIT_MS_MAX))
    if api_key == ApiKey.UPDATE_FEATURES and version >= 1:
        message.validate_only = True  # else the cluster may lose what later requests need
    return message


def _struct(random: Random, binding: Binding, schema: StructSchema, version: int) -> Struct:
    struct = binding.classes[schema.name]()
    for field in schema.fields:
        if version in field.versions and random.random() < 0.93:
            setattr(struct, field.attribute, _field(random, binding, field, version))
    if binding.schema.is_flexible(version) and random.random() < 0.05:
        struct.unknown_tags = [
            (1000 + number, random.randbytes(random.choice([0, 1, 5000]))) for number in range(random.randint(1, 3))
        ]
    return struct


def _field(random: Random, binding: Binding, field: FieldSchema, version: int) -> Any:
    if version in field.nullable and random.random() < 0.1:
        return None
    if not field.is_array:
        return _value(random, binding, field, version)
    items = [_value(random, binding, field, version) for _ in range(random.choice([0, 1, 1, 1, 2, 3]))]
    if items and random.random() < 0.1:
        items.append(random.choice(items))
    return items


def _value(random: Random, binding: Binding, field: FieldSchema, version: int) -> Any:
    if field.struct is not None:
        return _struct(random, binding, field.struct, version)
    if field.type in INTEGER_RANGES:
        low, high = INTEGER_RANGES[field.type]
        if random.random() < 0.4:
            return max(low, random.choice([0, 1, 2, 4, -1]))
        return min(high, max(low, random.choice(NUMBERS)))
    match field.type:
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.choice([0.0, -1.5, float("nan"), float("inf")])
        case "uuid":
            return random.choice([bytes(16), random.randbytes(16)])
        case "string":
            return _text(random, field)
        case "records":
            return random_records(random)
        case _:
            return random.randbytes(random.choice([0, 1, 60, 61, 200]))


def _text(random: Random, field: FieldSchema) -> str:
    name = field.attribute
    if name == "value":
        return random.choice(VALUES)
    if "config" in name or (name == "name" and random.random() < 0.3):
        return random.choice(SETTINGS)
    return random.choice(NAMES[:4] if random.random() < 0.5 else NAMES)


def random_records(random: Random) -> bytes | None:
    """Records for Produce: valid batches, batches with a wrong header, garbage, nothing."""
    kind = random.randrange(10)
    if kind == 0:
        return random.choice([None, b"", b"\0", bytes(61), bytes(200), random.randbytes(100)])
    producer = random.choice([0, 1, 2**62]), random.choice([0, 1, 32767]), random.choice([0, 1, 2**31 - 1])
    batch = make_batch(
        *[random.choice([None, b"", b"v", b"x" * 3000]) for _ in range(random.choice([1, 1, 2, 30]))],
        key=random.choice([None, b"", b"k"]),
        timestamp=random.choice([0, -1, 1_700_000_000_000, 2**62, 4_000_000_000_000]),
        codec=random.choice(list(Codec)),
        producer=random.choice([None, None, producer]),
    )
    if kind == 1:
        batch += make_batch(b"second")
    elif kind == 2:
        del batch[random.randrange(len(batch)) :]
    elif kind <= 6:
        spoil_header(random, batch)
    elif kind == 7:
        batch[random.randrange(len(batch))] ^= 1 << random.randrange(8)
    return bytes(batch)


HEADER_FIELDS = {
    "base_offset": (0, 8),
    "batch_length": (8, 4),
    "leader_epoch": (12, 4),
    "magic": (16, 1),
    "crc": (17, 4),
    "attributes": (21, 2),
    "last_offset_delta": (23, 4),
    "base_timestamp": (27, 8),
    "max_timestamp": (35, 8),
    "producer_id": (43, 8),
    "producer_epoch": (51, 2),
    "base_sequence": (53, 4),
    "count": (57, 4),
}


def spoil_header(random: Random, batch: bytearray) -> None:
    """Set one or two fields of a batch's header to random values, with a correct CRC."""
    for name in random.sample(sorted(HEADER_FIELDS), random.choice([1, 1, 2])):
        position, size = HEADER_FIELDS[name]
        limit = 1 << (8 * size - 1)
        value = random.choice([0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 7, -1, -2, limit - 1, -limit, 100])
        batch[position : position + size] = value.to_bytes(size, "big", signed=True)
        if name != "crc":
            make_crc_right(batch)


def make_crc_right(batch: bytearray) -> None:
    """Set the CRC to that of the changed batch."""
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")


def tampered(random: Random, frame: bytes) -> bytes:
    """A request's frame with changed bytes; its size is correct, so that the next frame is read as a request again."""
    data = bytearray(frame[4:])
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        if not data:
            break
        at = random.randrange(len(data))
        match random.randrange(8):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                data[at] = random.randrange(256)
            case 2 | 3:
                lie = random.choice(LYING_SIZES)
                data[at : at + len(lie)] = lie
            case 4:
                lie = random.choice(LYING_SIZES)
                data[at : at + 1] = lie
            case 5:
                del data[at:]
            case 6:
                end = min(len(data), at + random.randint(1, 60))
                data[at:at] = data[at:end] * random.choice([1, 2, 50])
            case _:
                del data[at : at + random.randint(1, 8)]
    return len(data).to_bytes(4, "big") + bytes(data)
