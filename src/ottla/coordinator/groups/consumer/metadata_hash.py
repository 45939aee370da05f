"""The metadata hash of a group: one number over its topics, their partitions and the racks of those.

A group whose hash has changed needs a new assignment. The hash is Kafka's, so that a group that moves between Apache Kafka and
Ottla is not reassigned without need. Hashed are little-endian numbers, and texts in UTF-16 followed by their length:

    topic    0 (one byte) | id, as two numbers of 64 bits | name | partitions | for each: index | for each rack: length, rack
    group    the hashes of its topics that exist, in the order of their names; 0 if there is none
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack, unpack_from
from typing import Final

from ottla.coordinator.groups.topics import Topics

# XXH3 with 64 bits, seed 0 and the default secret: Kafka's hash of a group's topics.
#
# Pure Python, for inputs of a hundred to ten thousand bytes, a few times per change of the metadata. Input and secret are
# read in little-endian words; all sums and products are modulo 2**64.

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_MASK: Final = 2**64 - 1
_LOW: Final = 2**32 - 1

_P32_1: Final = 0x9E3779B1
_P32_2: Final = 0x85EBCA77
_P32_3: Final = 0xC2B2AE3D
_P64_1: Final = 0x9E3779B185EBCA87
_P64_2: Final = 0xC2B2AE3D27D4EB4F
_P64_3: Final = 0x165667B19E3779F9
_P64_4: Final = 0x85EBCA77C2B2AE63
_P64_5: Final = 0x27D4EB2F165667C5
_MIX_1: Final = 0x165667919E3779F9
_MIX_2: Final = 0x9FB21C651E98DF25

_STRIPE_BYTES: Final = 64
_STRIPES_PER_BLOCK: Final = (len(_SECRET) - _STRIPE_BYTES) // 8
_BLOCK_BYTES: Final = _STRIPE_BYTES * _STRIPES_PER_BLOCK
_MEDIUM_START: Final = 3
_MEDIUM_LAST: Final = 17
_MERGE_START: Final = 11
_LAST_STRIPE_SECRET: Final = len(_SECRET) - _STRIPE_BYTES - 7


def _word(data: bytes, position: int) -> int:
    value: int = unpack_from("<Q", data, position)[0]
    return value


def _half(data: bytes, position: int) -> int:
    value: int = unpack_from("<I", data, position)[0]
    return value


def _fold(left: int, right: int) -> int:
    """The 128-bit product, its halves xored."""
    product = left * right
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _MIX_1 & _MASK
    return value ^ value >> 32


def _short_avalanche(value: int) -> int:
    """The final mix of XXH64, used for the shortest inputs."""
    value ^= value >> 33
    value = value * _P64_2 & _MASK
    value ^= value >> 29
    value = value * _P64_3 & _MASK
    return value ^ value >> 32


def xxh3_64(data: bytes) -> int:
    """The hash of `data`, unsigned."""
    size = len(data)
    if size <= 16:
        return _hash_short(data, size)
    if size <= 128:
        return _hash_up_to_128(data, size)
    if size <= 240:
        return _hash_up_to_240(data, size)
    return _hash_long(data, size)


def _hash_short(data: bytes, size: int) -> int:
    if size > 8:
        low = _word(data, 0) ^ (_word(_SECRET, 24) ^ _word(_SECRET, 32))
        high = _word(data, size - 8) ^ (_word(_SECRET, 40) ^ _word(_SECRET, 48))
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    if size >= 4:
        joined = _half(data, size - 4) + (_half(data, 0) << 32)
        value = joined ^ (_word(_SECRET, 8) ^ _word(_SECRET, 16))
        value ^= (value << 49 | value >> 15) & _MASK ^ (value << 24 | value >> 40) & _MASK
        value = value * _MIX_2 & _MASK
        value ^= (value >> 35) + size
        value = value * _MIX_2 & _MASK
        return value ^ value >> 28
    if size > 0:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        return _short_avalanche(combined ^ (_half(_SECRET, 0) ^ _half(_SECRET, 4)))
    return _short_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))


def _mix_16(data: bytes, position: int, secret: int) -> int:
    return _fold(_word(data, position) ^ _word(_SECRET, secret), _word(data, position + 8) ^ _word(_SECRET, secret + 8))


def _hash_up_to_128(data: bytes, size: int) -> int:
    total = size * _P64_1
    for step in range((size - 1) // 32, -1, -1):
        total += _mix_16(data, 16 * step, 32 * step) + _mix_16(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total & _MASK)


def _hash_up_to_240(data: bytes, size: int) -> int:
    total = size * _P64_1
    for step in range(8):
        total += _mix_16(data, 16 * step, 16 * step)
    total = _avalanche(total & _MASK)
    for step in range(8, size // 16):
        total += _mix_16(data, 16 * step, 16 * (step - 8) + _MEDIUM_START)
    total += _mix_16(data, size - 16, 136 - _MEDIUM_LAST)
    return _avalanche(total & _MASK)


def _hash_long(data: bytes, size: int) -> int:
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    blocks = (size - 1) // _BLOCK_BYTES
    position = 0
    for _ in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _take_stripe(lanes, data, position, 8 * stripe)
            position += _STRIPE_BYTES
        key = unpack_from("<8Q", _SECRET, len(_SECRET) - _STRIPE_BYTES)
        for lane in range(8):
            value = lanes[lane]
            lanes[lane] = (value ^ value >> 47 ^ key[lane]) * _P32_1 & _MASK
    for stripe in range((size - 1 - position) // _STRIPE_BYTES):
        _take_stripe(lanes, data, position, 8 * stripe)
        position += _STRIPE_BYTES
    _take_stripe(lanes, data, size - _STRIPE_BYTES, _LAST_STRIPE_SECRET)
    total = size * _P64_1
    for pair in range(4):
        key_low, key_high = unpack_from("<2Q", _SECRET, _MERGE_START + 16 * pair)
        total += _fold(lanes[2 * pair] ^ key_low, lanes[2 * pair + 1] ^ key_high)
    return _avalanche(total & _MASK)


def _take_stripe(lanes: list[int], data: bytes, position: int, secret: int) -> None:
    words = unpack_from("<8Q", data, position)
    keys = unpack_from("<8Q", _SECRET, secret)
    for lane in range(8):
        word = words[lane]
        keyed = word ^ keys[lane]
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _MASK
        lanes[lane] = lanes[lane] + (keyed & _LOW) * (keyed >> 32) & _MASK


_MAGIC = b"\x00"


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + pack("<I", len(units) // 2)


def topic_hash(topics: Topics, name: str) -> int:
    """The hash of a topic that exists."""
    topic_id, count = topics.id_of(name), topics.partition_count(name)
    assert topic_id is not None, f"there is no topic {name}"
    parts = [_MAGIC, topic_id[7::-1], topic_id[:7:-1], _text(name), pack("<I", count)]
    for partition in range(count):
        parts.append(pack("<I", partition))
        for rack in topics.racks(name, partition):
            parts += (pack("<I", len(rack.encode("utf-16-le", "surrogatepass")) // 2), _text(rack))
    return xxh3_64(b"".join(parts))


class TopicHashes:
    """A cache of topic hashes; an entry is dropped when its topic changes."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def forget(self, names: Iterable[str] | None) -> None:
        """Drop the hashes of these topics, which have changed; None: of all."""
        if names is None:
            self._known.clear()
        else:
            for name in names:
                self._known.pop(name, None)

    def of_group(self, names: Iterable[str], topics: Topics) -> int:
        """The hash of a group that reads `names`, as the signed number that records hold."""
        parts = []
        for name in sorted(names):
            if topics.id_of(name) is not None:
                known = self._known.get(name)
                if known is None:
                    known = self._known[name] = topic_hash(topics, name)
                parts.append(pack("<Q", known))
        if not parts:
            return 0
        value = xxh3_64(b"".join(parts))
        return value - 2**64 if value >= 2**63 else value
